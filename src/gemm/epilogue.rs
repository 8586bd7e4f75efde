//! What [`Gemm`](super::Gemm) fuses with the product: a bias, a residual, an activation.

use std::fmt;
use std::ops::Range;

use cutlet_device::DeviceData;
use cutlet_host::{IntoView, Stream, View};
pub use cutlet_kernels::gemm::epilogue::Activation;
use cutlet_kernels::gemm::epilogue::{Accumulator, BiasAlong};

use crate::matrix::{addresses, alignment, disjoint, in_stream};
use crate::{Error, Matrix, MatrixMut, Order, Result};

/// Numbers that are added to the product: one for each row of C, or one for each column.
#[derive(Debug)]
pub struct Bias<'a, D: DeviceData> {
    pub(super) along: BiasAlong,
    pub(super) elements: View<'a, D>,
}

impl<'a, D: DeviceData> Bias<'a, D> {
    /// A number for each row of C: `C[i, j]` gets `elements[i]`.
    pub fn rows(elements: impl IntoView<'a, Element = D>) -> Self {
        Bias {
            along: BiasAlong::Rows,
            elements: elements.into_view(),
        }
    }

    /// A number for each column of C: `C[i, j]` gets `elements[j]`, as in a linear layer whose inputs are rows.
    pub fn columns(elements: impl IntoView<'a, Element = D>) -> Self {
        Bias {
            along: BiasAlong::Columns,
            elements: elements.into_view(),
        }
    }

    fn transposed(self) -> Self {
        let along = match self.along {
            BiasAlong::Rows => BiasAlong::Columns,
            BiasAlong::Columns => BiasAlong::Rows,
        };
        Bias { along, ..self }
    }
}

impl<D: DeviceData> Clone for Bias<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: DeviceData> Copy for Bias<'_, D> {}

/// The operation that gates a product, where no kernel fuses it: from the product to C.
pub type Gate<D> = fn(&Stream, Matrix<'_, D>, MatrixMut<'_, D>) -> Result<()>;

/// What is fused with a product besides its factors.
#[derive(Debug)]
pub struct EpilogueArgs<'a, D: DeviceData> {
    pub bias: Option<Bias<'a, D>>,
    /// The residual; in a problem, also a source: what `beta` multiplies instead of C as it was.
    pub residual: Option<Matrix<'a, D>>,
    pub activation: Option<Activation>,
    /// The gate, if the product's columns are interleaved gates and ups. C has half as many columns.
    pub gate: Option<Gate<D>>,
}

impl<D: DeviceData> Default for EpilogueArgs<'_, D> {
    fn default() -> Self {
        EpilogueArgs {
            bias: None,
            residual: None,
            activation: None,
            gate: None,
        }
    }
}

impl<D: DeviceData> Clone for EpilogueArgs<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<D: DeviceData> Copy for EpilogueArgs<'_, D> {}

impl<D: DeviceData> EpilogueArgs<'_, D> {
    /// Whether there is neither a bias, nor a residual, nor an activation.
    pub fn are_none(&self) -> bool {
        self.bias.is_none() && self.residual.is_none() && self.activation.is_none()
    }

    /// The columns of B for a C of so many columns.
    pub fn columns_of_b(&self, columns: usize) -> usize {
        match self.gate {
            None => columns,
            Some(_) => 2 * columns,
        }
    }

    /// What is fused with the transposed product.
    pub fn transposed(self) -> Self {
        EpilogueArgs {
            bias: self.bias.map(Bias::transposed),
            residual: self.residual.map(Matrix::transposed),
            ..self
        }
    }

    /// Refuses operands that work in the stream may not use.
    pub fn in_stream(&self, stream: &Stream) -> Result<()> {
        if let Some(bias) = self.bias {
            in_stream("gemm", stream, "the bias", bias.elements)?;
        }
        if let Some(residual) = self.residual {
            in_stream("gemm", stream, "the residual", residual.view)?;
        }
        Ok(())
    }

    /// Says that a product in the stream reads the operands.
    pub fn use_in(&self, stream: &Stream) -> Result<()> {
        if let Some(bias) = self.bias {
            bias.elements.use_in(stream, "gemm", "the bias")?;
        }
        if let Some(residual) = self.residual {
            residual.view.use_in(stream, "gemm", "the residual")?;
        }
        Ok(())
    }

    /// Refuses operands that do not fit a C of `rows × columns`, or overlap the addresses of C.
    pub fn check(&self, rows: usize, columns: usize, c: Range<u64>) -> Result<()> {
        let agree = |found: String, agree: bool| match agree {
            true => Ok(()),
            false => Err(Error::Extents {
                operation: "gemm",
                found,
            }),
        };
        if let Some(Bias { along, elements }) = self.bias {
            let (of, count) = match along {
                BiasAlong::Rows => ("rows", rows),
                BiasAlong::Columns => ("columns", columns),
            };
            let len = elements.len();
            agree(
                format!("the bias has {len} elements, and C has {count} {of}; make them agree"),
                len == count,
            )?;
            disjoint("gemm", "the bias", addresses(&elements), c.clone())?;
        }
        if let Some(residual) = &self.residual {
            let found = [residual.rows(), residual.columns()];
            agree(
                format!(
                    "the residual is {}×{}, and C is {rows}×{columns}; make them agree",
                    found[0], found[1]
                ),
                found == [rows, columns],
            )?;
            disjoint("gemm", "the residual", residual.addresses(), c)?;
        }
        Ok(())
    }

    /// Refuses an activation that is not computed in `F`.
    pub fn check_arithmetic<F: Accumulator>(&self) -> Result<()> {
        match self.activation {
            Some(activation) if !F::has(activation) => Err(Error::Arithmetic {
                asked: format!("the activation {activation:?}"),
                found: "only ReLU is computed in f64 and in i32; use it, or another element type",
            }),
            _ => Ok(()),
        }
    }
}

/// The part of [`EpilogueArgs`] that a plan depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpilogueShape {
    bias: Option<(BiasAlong, u64)>,
    residual: Option<(Order, usize, u64)>,
    activation: Option<Activation>,
    is_gated: bool,
}

impl fmt::Display for EpilogueShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.bias {
            Some((BiasAlong::Rows, alignment)) => {
                write!(f, "a bias for rows at a multiple of {alignment} bytes")?;
            }
            Some((BiasAlong::Columns, alignment)) => {
                write!(f, "a bias for columns at a multiple of {alignment} bytes")?;
            }
            None => write!(f, "no bias")?,
        }
        match self.residual {
            Some((order, ld, alignment)) => write!(
                f,
                ", a {order:?} residual with leading dimension {ld} at a multiple of {alignment} bytes"
            )?,
            None => write!(f, ", no residual")?,
        }
        match (self.activation, self.is_gated) {
            (_, true) => write!(f, ", SwiGLU"),
            (Some(activation), _) => write!(f, ", {activation:?}"),
            (None, _) => write!(f, ", no activation"),
        }
    }
}

impl<D: DeviceData> EpilogueArgs<'_, D> {
    /// The part that a plan depends on.
    pub fn shape(&self) -> EpilogueShape {
        EpilogueShape {
            bias: self
                .bias
                .map(|bias| (bias.along, alignment(bias.elements.address()))),
            residual: self
                .residual
                .map(|it| (it.order(), it.ld(), alignment(it.view.address()))),
            activation: self.activation,
            is_gated: self.gate.is_some(),
        }
    }
}
