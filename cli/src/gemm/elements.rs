//! The options that name the element types and the precision of products.

use std::fmt;

use clap::{Args, ValueEnum};
use cutlet_device::fp8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use serde::Serialize;

use super::arithmetic::{Element, Stored};
use crate::measure::dtype::Dtype;
use crate::measure::scales::{Scale, Scales, scale};

/// The element types and the precision of a command's products.
#[derive(Args, Clone, Copy, Debug)]
pub struct ElementsArgs {
    /// The type of the elements, accumulated in f32, or in f64 (f64) and i32 (i8). CUDA cores multiply f32, tensor
    /// cores the other types. `cutlet doctor` lists those that a GPU multiplies.
    #[arg(long, value_enum, default_value_t)]
    dtype: Elements,
    /// The type of C and of a bias, if it differs from A's and B's. Of i8 it is i32.
    #[arg(long, value_enum)]
    c_dtype: Option<ElementsOfC>,
    /// The precision of products of f32, or of sums of e4m3. Where there are no tensor cores for it, products are exact.
    #[arg(long, value_enum, default_value_t)]
    precision: Precision,
}

/// Work that is written once for all element types.
pub trait ForElements {
    type Output;

    /// Does it for a C of `D`.
    fn run<T: Element<D>, D: Stored>(self) -> Self::Output;

    /// Does it for 8-bit floats, which may have scales.
    fn run_scaled<T: Element<D>, D: Stored>(self, _: Scale<T, D>) -> Self::Output
    where
        Self: Sized,
    {
        self.run::<T, D>()
    }
}

impl ElementsArgs {
    /// The precision of products.
    pub fn precision(&self) -> cutlet::Precision {
        self.precision.into()
    }

    /// Refuses scales that these types have not.
    ///
    /// # Errors
    /// If products of these types have no such scales.
    pub fn expect_scales(&self, scales: Scales) -> Result<(), String> {
        match (self.dtype, scales) {
            (_, Scales::None) | (Elements::E4m3 | Elements::E5m2, _) => Ok(()),
            _ => Err(format!(
                "scales ({scales}) were asked for of {}, but products of e4m3 and e5m2 have some; leave out --scales",
                self.dtype.name()
            )),
        }
    }

    /// Does `work` in these types.
    ///
    /// # Errors
    /// If there is no such product.
    pub fn run<W: ForElements>(&self, work: W) -> Result<W::Output, String> {
        use {Elements as Of, ElementsOfC as OfC};
        Ok(match (self.dtype, self.of_c()) {
            (Of::F32, OfC::F32) => work.run::<f32, f32>(),
            (Of::F32, OfC::Bf16) => work.run::<f32, bf16>(),
            (Of::F32, OfC::F16) => work.run::<f32, f16>(),
            (Of::Bf16, OfC::F32) => work.run::<bf16, f32>(),
            (Of::Bf16, OfC::Bf16) => work.run::<bf16, bf16>(),
            (Of::Bf16, OfC::F16) => work.run::<bf16, f16>(),
            (Of::F16, OfC::F32) => work.run::<f16, f32>(),
            (Of::F16, OfC::Bf16) => work.run::<f16, bf16>(),
            (Of::F16, OfC::F16) => work.run::<f16, f16>(),
            (Of::E4m3, OfC::F32) => work.run_scaled::<F8E4M3, f32>(scale),
            (Of::E4m3, OfC::Bf16) => work.run_scaled::<F8E4M3, bf16>(scale),
            (Of::E4m3, OfC::F16) => work.run_scaled::<F8E4M3, f16>(scale),
            (Of::E5m2, OfC::F32) => work.run_scaled::<F8E5M2, f32>(scale),
            (Of::E5m2, OfC::Bf16) => work.run_scaled::<F8E5M2, bf16>(scale),
            (Of::E5m2, OfC::F16) => work.run_scaled::<F8E5M2, f16>(scale),
            (Of::F64, OfC::F64) => work.run::<f64, f64>(),
            (Of::I8, OfC::I32) => work.run::<i8, i32>(),
            (of, of_c) => {
                return Err(format!(
                    "a product of {} was asked for in a C of {}; leave out --c-dtype, or name f32, bf16 or f16 for \
                     operands of these types",
                    of.name(),
                    of_c.name()
                ));
            }
        })
    }

    /// The largest relative distance of a right C from its reference, for sums of `k` products.
    pub fn tolerance(&self, k: usize) -> f64 {
        let of_c = self.of_c().dtype().tolerance(k);
        let of_c = match self.dtype {
            // The products of 128 of k are added with about 14 bits.
            Elements::E4m3 | Elements::E5m2 => of_c.max(1e-3),
            _ => of_c,
        };
        match self.precision {
            Precision::Exact => of_c,
            Precision::Tf32 => of_c.max(Dtype::Tf32.tolerance(k)),
            Precision::Tf32x3 => of_c.max(Dtype::Tf32x3.tolerance(k)),
            Precision::FastAccumulation => of_c.max(Dtype::E4m3Fast.tolerance(k)),
        }
    }

    /// The types as results have them.
    pub fn named(&self) -> Named {
        Named {
            dtype: self.dtype.name(),
            c_dtype: self.of_c().name(),
            precision: self.precision().to_string(),
        }
    }

    fn of_c(&self) -> ElementsOfC {
        self.c_dtype.unwrap_or(self.dtype.of_c())
    }
}

/// The element types and the precision of products, in a result.
#[derive(Debug, Serialize)]
pub struct Named {
    dtype: &'static str,
    c_dtype: &'static str,
    precision: String,
}

impl Named {
    /// The unit of operations a second.
    pub fn unit(&self) -> &'static str {
        match self.dtype {
            "i8" => "OP/s",
            _ => "FLOP/s",
        }
    }
}

/// As in `bf16 into f32` and `f32 in tf32`.
impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Named {
            dtype,
            c_dtype,
            precision,
        } = self;
        write!(f, "{dtype}")?;
        if c_dtype != dtype {
            write!(f, " into {c_dtype}")?;
        }
        match precision.as_str() {
            "exact" => Ok(()),
            precision => write!(f, " in {precision}"),
        }
    }
}

/// The element types of A and B.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Elements {
    #[default]
    F32,
    Bf16,
    F16,
    E4m3,
    E5m2,
    F64,
    I8,
}

impl Elements {
    fn name(self) -> &'static str {
        match self {
            Elements::F32 => "f32",
            Elements::Bf16 => "bf16",
            Elements::F16 => "f16",
            Elements::E4m3 => "e4m3",
            Elements::E5m2 => "e5m2",
            Elements::F64 => "f64",
            Elements::I8 => "i8",
        }
    }

    /// The type of C if none is named.
    fn of_c(self) -> ElementsOfC {
        match self {
            Elements::F32 => ElementsOfC::F32,
            Elements::Bf16 | Elements::E4m3 | Elements::E5m2 => ElementsOfC::Bf16,
            Elements::F16 => ElementsOfC::F16,
            Elements::F64 => ElementsOfC::F64,
            Elements::I8 => ElementsOfC::I32,
        }
    }
}

/// The element types of C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ElementsOfC {
    F32,
    Bf16,
    F16,
    F64,
    I32,
}

impl ElementsOfC {
    fn name(self) -> &'static str {
        match self {
            ElementsOfC::F32 => "f32",
            ElementsOfC::Bf16 => "bf16",
            ElementsOfC::F16 => "f16",
            ElementsOfC::F64 => "f64",
            ElementsOfC::I32 => "i32",
        }
    }

    /// The types with its tolerance.
    fn dtype(self) -> Dtype {
        match self {
            ElementsOfC::F32 => Dtype::F32,
            ElementsOfC::Bf16 => Dtype::Bf16,
            ElementsOfC::F16 => Dtype::F16,
            ElementsOfC::F64 => Dtype::F64,
            ElementsOfC::I32 => Dtype::I8,
        }
    }
}

/// The precisions of products.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Precision {
    /// Operands as they are.
    #[default]
    Exact,
    /// Operands rounded to tf32.
    Tf32,
    /// Three products of tf32 for each product.
    #[value(name = "3xtf32")]
    Tf32x3,
    /// Sums of 8-bit floats with the bits that tensor cores keep.
    FastAccumulation,
}

impl From<Precision> for cutlet::Precision {
    fn from(precision: Precision) -> Self {
        match precision {
            Precision::Exact => cutlet::Precision::Exact,
            Precision::Tf32 => cutlet::Precision::Tf32,
            Precision::Tf32x3 => cutlet::Precision::Tf32x3,
            Precision::FastAccumulation => cutlet::Precision::FastAccumulation,
        }
    }
}
