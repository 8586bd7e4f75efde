//! The element types of a GEMM's matrices as a value, for files that name them.

use std::fmt;

use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use half::{bf16, f16};

/// An element type of A, B or C. It prints as Rust names the type, and those of A and B with an `x` between them if they
/// differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElementType {
    /// `f32`.
    F32,
    /// `bf16`.
    Bf16,
    /// `f16`.
    F16,
    /// `F8E4M3`.
    E4m3,
    /// `F8E5M2`.
    E5m2,
    /// `F8E4M3` in A and `F8E5M2` in B.
    E4m3E5m2,
    /// `F8E5M2` in A and `F8E4M3` in B.
    E5m2E4m3,
    /// `f64`.
    F64,
    /// `i8`.
    I8,
    /// `i32`.
    I32,
}

impl fmt::Display for ElementType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl ElementType {
    /// The name in Rust.
    pub(super) const fn name(self) -> &'static str {
        match self {
            ElementType::F32 => "f32",
            ElementType::Bf16 => "bf16",
            ElementType::F16 => "f16",
            ElementType::E4m3 => "F8E4M3",
            ElementType::E5m2 => "F8E5M2",
            ElementType::E4m3E5m2 => "F8E4M3xF8E5M2",
            ElementType::E5m2E4m3 => "F8E5M2xF8E4M3",
            ElementType::F64 => "f64",
            ElementType::I8 => "i8",
            ElementType::I32 => "i32",
        }
    }
}

/// A type of elements that has an [`ElementType`].
pub trait HasElementType {
    /// The type as a value.
    const TYPE: ElementType;
}

macro_rules! has_element_type {
    ($($element:ty: $name:ident;)+) => {$(
        impl HasElementType for $element {
            const TYPE: ElementType = ElementType::$name;
        }
    )+};
}
has_element_type! {
    f32: F32;
    bf16: Bf16;
    f16: F16;
    F8E4M3: E4m3;
    F8E5M2: E5m2;
    MixedF8<F8E4M3, F8E5M2>: E4m3E5m2;
    MixedF8<F8E5M2, F8E4M3>: E5m2E4m3;
    f64: F64;
    i8: I8;
    i32: I32;
}
