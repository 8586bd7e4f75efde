//! The library's functions of elements.

use cutlet_device::{DeviceData, Global, GlobalMut, fma, max_nan, rcp_approx};
use cutlet_layout_core::{Fragment, FragmentLayout};
use half::{bf16, f16};

use super::map::{Map, MapArgs, map1, map2};
pub use crate::gelu_erf::{exp, gelu_erf};

/// `1 / (1 + e⁻ˣ)`.
#[inline(always)]
pub fn sigmoid(x: f32) -> f32 {
    rcp_approx(1.0 + exp(-x))
}

/// The hyperbolic tangent. The relative error is a few units in the last place.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let square = x * x;
    // Near 0, the other formula cancels.
    let series = fma(
        square,
        fma(square, fma(square, -17.0 / 315.0, 2.0 / 15.0), -1.0 / 3.0),
        1.0,
    );
    match x.abs() < 0.25 {
        true => x * series,
        false => fma(-2.0, rcp_approx(1.0 + exp(2.0 * x)), 1.0),
    }
}

/// `x · f`, but 0 for −∞, of which `f` is 0.
#[inline(always)]
fn times(x: f32, f: f32) -> f32 {
    max_nan(x, f32::MIN) * f
}

/// `x / (1 + e⁻ˣ)`. At −∞ it is 0, its limit.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    times(x, sigmoid(x))
}

/// `x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2`. At −∞ it is 0, its limit.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    const LINEAR: f32 = 0.797_884_6;
    let inner = x * fma(0.044_715 * LINEAR, x * x, LINEAR);
    times(x, sigmoid(2.0 * inner))
}

/// A function of an element that is chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Unary {
    /// The element.
    Identity,
    /// `max(x, 0)`.
    Relu,
    /// [`gelu`]: the approximation by the hyperbolic tangent.
    Gelu,
    /// [`silu`].
    Silu,
    /// [`sigmoid`].
    Sigmoid,
    /// [`tanh`].
    Tanh,
    /// [`exp`].
    Exp,
    /// `x²`.
    Square,
    /// [`gelu_erf`]: GELU by the error function.
    GeluErf,
}

/// A [`Unary`] of `x · factor + offset`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct AnyUnary {
    function: u32,
    factor: f32,
    offset: f32,
}

impl Unary {
    /// This function of `x · factor + offset`.
    pub const fn of(self, factor: f32, offset: f32) -> AnyUnary {
        AnyUnary {
            function: self as u32,
            factor,
            offset,
        }
    }
}

impl From<Unary> for AnyUnary {
    fn from(function: Unary) -> Self {
        function.of(1.0, 0.0)
    }
}

impl AnyUnary {
    /// What the function is applied to.
    #[inline(always)]
    fn inner(&self, x: f32) -> f32 {
        fma(x, self.factor, self.offset)
    }
}

/// Implements a [`Map`] that chooses among functions by its number, once for all elements of a thread.
macro_rules! chosen {
    ($type:ident of $count:literal, |$self:ident, $elements:tt| $other:expr, but {
        $($kind:path => $function:expr,)+
    }) => {
        impl Map<$count> for $type {
            #[inline(always)]
            fn apply(&self, $elements: [f32; $count]) -> f32 {
                let $self = self;
                match self.function {
                    $(code if code == $kind as u32 => $function,)+
                    _ => $other,
                }
            }

            #[inline(always)]
            fn apply_to_all<L: FragmentLayout>(
                &self,
                elements: [&Fragment<f32, L>; $count],
            ) -> Fragment<f32, L> {
                let $self = self;
                match self.function {
                    $(code if code == $kind as u32 => Fragment::from_fn(|v| {
                        let $elements = elements.map(|it| it.get(v));
                        $function
                    }),)+
                    _ => Fragment::from_fn(|v| {
                        let $elements = elements.map(|it| it.get(v));
                        $other
                    }),
                }
            }
        }
    };
}

chosen! { AnyUnary of 1, |own, [x]| own.inner(x), but {
    Unary::Relu => max_nan(own.inner(x), 0.0),
    Unary::Gelu => gelu(own.inner(x)),
    Unary::Silu => silu(own.inner(x)),
    Unary::Sigmoid => sigmoid(own.inner(x)),
    Unary::Tanh => tanh(own.inner(x)),
    Unary::Exp => exp(own.inner(x)),
    Unary::Square => own.inner(x) * own.inner(x),
    Unary::GeluErf => gelu_erf(own.inner(x)),
} }

/// A function of two elements that is chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Binary {
    /// `a · α + b · β`: the sum, if α and β are 1.
    Linear,
    /// `a · b · α + β`: the product, if α is 1 and β is 0.
    Product,
    /// `a / b`.
    Quotient,
    /// The larger one, or NaN.
    Max,
    /// The smaller one, or NaN.
    Min,
}

/// Any [`Binary`], with its α and β.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct AnyBinary {
    function: u32,
    alpha: f32,
    beta: f32,
}

impl Binary {
    /// This function with these α and β.
    pub const fn with(self, alpha: f32, beta: f32) -> AnyBinary {
        AnyBinary {
            function: self as u32,
            alpha,
            beta,
        }
    }
}

/// α is 1. β is 1 in a sum, and 0 elsewhere.
impl From<Binary> for AnyBinary {
    fn from(function: Binary) -> Self {
        match function {
            Binary::Linear => function.with(1.0, 1.0),
            _ => function.with(1.0, 0.0),
        }
    }
}

chosen! { AnyBinary of 2, |own, [a, b]| fma(a, own.alpha, b * own.beta), but {
    Binary::Product => fma(a * b, own.alpha, own.beta),
    Binary::Quotient => a / b,
    Binary::Max => max_nan(a, b),
    Binary::Min => -max_nan(-a, -b),
} }

/// The element: a map by it converts to another type.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Identity;

impl Map<1> for Identity {
    #[inline(always)]
    fn apply(&self, [x]: [f32; 1]) -> f32 {
        x
    }
}

macro_rules! instances {
    ($($module:ident of $element:ty, $shape:ident: $unary:ident $unary_any:ident $binary:ident $binary_any:ident;)+) => {$(
        #[doc = concat!("The functions of `", stringify!($element), "`.")]
        pub mod $module {
            use super::*;
            use crate::rows::{$shape, WarpAny};

            cutlet_device::instantiate! {
                /// A function of each element of rows whose vectors are aligned.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $unary(a: Global<$element>, output: GlobalMut<$element>, function: AnyUnary, args: MapArgs)
                    = map1::<$shape, AnyUnary, _, _>(cutlet_device::thread_idx(), ..);

                /// A function of each element of rows of any alignment.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $unary_any(a: Global<$element>, output: GlobalMut<$element>, function: AnyUnary, args: MapArgs)
                    = map1::<WarpAny, AnyUnary, _, _>(cutlet_device::thread_idx(), ..);

                /// A function of the elements of two tensors whose vectors are aligned.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $binary(a: Global<$element>, b: Global<$element>, output: GlobalMut<$element>,
                    function: AnyBinary, args: MapArgs)
                    = map2::<$shape, AnyBinary, _, _, _>(cutlet_device::thread_idx(), ..);

                /// A function of the elements of two tensors of any alignment.
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $binary_any(a: Global<$element>, b: Global<$element>, output: GlobalMut<$element>,
                    function: AnyBinary, args: MapArgs)
                    = map2::<WarpAny, AnyBinary, _, _, _>(cutlet_device::thread_idx(), ..);
            }
        }
    )+};
}
instances! {
    functions_f32 of f32, Warp4: unary_f32 unary_f32_any binary_f32 binary_f32_any;
    functions_f16 of f16, Warp8: unary_f16 unary_f16_any binary_f16 binary_f16_any;
    functions_bf16 of bf16, Warp8: unary_bf16 unary_bf16_any binary_bf16 binary_bf16_any;
}
