//! Activations: functions of a single value.

use core::marker::PhantomData;

use cutlet_device::{
    DeviceData, exp2_approx, fma, max_nan, rcp_approx, tanh_approx, tanh_approx_f16,
};
use cutlet_layout_core::Coord;

use super::{Accumulator, Epilogue, Pair};

macro_rules! activation {
    ($(#[$doc:meta])* $name:ident = $function:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, DeviceData)]
        #[repr(C)]
        pub struct $name;

        impl Epilogue for $name {
            type Acc = f32;
            type Row = ();
            type Columns = ();

            #[inline(always)]
            fn apply(&self, acc: f32, _: Option<f32>, _: Coord) -> f32 {
                $function(acc)
            }
        }
    };
}
activation! {
    /// [`relu`] of each value.
    Relu = relu
}
activation! {
    /// [`gelu`] of each value.
    Gelu = gelu
}
activation! {
    /// [`silu`] of each value.
    Silu = silu
}

/// [`gelu`] of each value. Pairs use [`tanh_approx_f16`], which halves the work of the unit that computes the
/// hyperbolic tangent, the bottleneck of GELU.
///
/// The error of pairs is at most 2⁻¹¹ of `x`. For positive `x`, rounding to bf16 loses more. For negative `x` the
/// relative error grows: 2 % at −2, a third at −3. Below about −3.5 the result may be 0.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct GeluForBf16;

impl Epilogue for GeluForBf16 {
    type Acc = f32;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn apply(&self, acc: f32, _: Option<f32>, _: Coord) -> f32 {
        gelu(acc)
    }

    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[f32; 2]; N],
        _: impl Fn(usize) -> Pair<(), ()>,
    ) {
        for accs in accs {
            let [first, second] = tanh_approx_f16([inner(accs[0]), inner(accs[1])]);
            *accs = [gelu_by(accs[0], first), gelu_by(accs[1], second)];
        }
    }
}

/// `max(x, floor)`: ReLU if `floor` is 0, the identity if it is −∞.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct AtLeast<F: Accumulator = f32> {
    floor: F,
    /// Makes the size a multiple of the alignment of the epilogue's other parts.
    padding: F,
}

impl<F: Accumulator> AtLeast<F> {
    /// With this smallest result.
    pub const fn new(floor: F) -> Self {
        Self {
            floor,
            padding: F::ZERO,
        }
    }
}

impl<F: Accumulator> Epilogue for AtLeast<F> {
    type Acc = F;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn apply(&self, acc: F, _: Option<F>, _: Coord) -> F {
        acc.at_least(self.floor)
    }
}

/// The function that is applied last, chosen at run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// [`relu`].
    Relu,
    /// [`gelu`].
    ///
    /// The error is at most 2⁻¹¹ of `x` in a C of bf16, and 2⁻¹² of `x` in a C of f16. For positive `x`, rounding to
    /// C's type loses more. For negative `x` the relative error grows: several per cent below about −2, all of the
    /// result below about −4. The operands' layout decides whether this or [`gelu_exact`] is computed. A C of f32
    /// always gets [`gelu_exact`].
    Gelu,
    /// [`silu`].
    Silu,
    /// [`gelu_erf`](crate::gelu_erf::gelu_erf): GELU by the error function, without an approximation.
    ///
    /// In a C of f32, the error is a few units in the last place for positive `x` and down to −4, and 2·10⁻⁵ of the
    /// tiny results below. In a C of f16 or bf16 it is the rounding's.
    ///
    /// It takes so many instructions that kernels of matrices do not have it: a second kernel applies it.
    GeluErf,
}

/// Any [`Activation`] that accumulators of `F` [have](Accumulator::has) but [`Activation::GeluErf`], or none.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct AnyActivation<F: Accumulator = f32> {
    /// 0, or 1 + the [`Activation`].
    code: u32,
    padding: u32,
    acc: PhantomData<F>,
}

impl<F: Accumulator> AnyActivation<F> {
    /// This activation, or none.
    pub const fn new(activation: Option<Activation>) -> Self {
        Self {
            code: match activation {
                None => 0,
                Some(activation) => 1 + activation as u32,
            },
            padding: 0,
            acc: PhantomData,
        }
    }
}

impl<F: Accumulator> Epilogue for AnyActivation<F> {
    type Acc = F;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn apply(&self, acc: F, _: Option<F>, _: Coord) -> F {
        const RELU: u32 = 1 + Activation::Relu as u32;
        const GELU: u32 = 1 + Activation::Gelu as u32;
        const SILU: u32 = 1 + Activation::Silu as u32;
        match self.code {
            RELU => acc.activate(Activation::Relu),
            GELU => acc.activate(Activation::Gelu),
            SILU => acc.activate(Activation::Silu),
            _ => acc,
        }
    }
}

/// [`Activation::GeluErf`], or nothing.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct OptionalGeluErf<F: Accumulator = f32> {
    applies: u32,
    padding: u32,
    acc: PhantomData<F>,
}

impl<F: Accumulator> OptionalGeluErf<F> {
    /// It, if it is this activation.
    pub const fn new(activation: Option<Activation>) -> Self {
        Self {
            applies: matches!(activation, Some(Activation::GeluErf)) as u32,
            padding: 0,
            acc: PhantomData,
        }
    }
}

impl<F: Accumulator> Epilogue for OptionalGeluErf<F> {
    type Acc = F;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn apply(&self, acc: F, _: Option<F>, _: Coord) -> F {
        match self.applies {
            0 => acc,
            _ => acc.activate(Activation::GeluErf),
        }
    }
}

/// `max(x, 0)`. Returns NaN for NaN.
#[inline(always)]
pub fn relu(x: f32) -> f32 {
    max_nan(x, 0.0)
}

/// `x`, but the least finite number for −∞, whose product with 0 would be NaN. Returns NaN for NaN.
#[inline(always)]
fn finite_below(x: f32) -> f32 {
    max_nan(x, f32::MIN)
}

/// √(2/π).
const LINEAR: f32 = 0.797_884_6;
const CUBIC: f32 = 0.044_715 * LINEAR;

/// The argument of the hyperbolic tangent in GELU.
#[inline(always)]
fn inner(x: f32) -> f32 {
    x * fma(CUBIC, x * x, LINEAR)
}

/// `x · (1 + tanh(√(2/π) · (x + 0.044715·x³))) / 2`. On a GPU the error is at most 2⁻¹² of `x`. For positive `x`,
/// rounding to bf16 or f16 loses more. For negative `x`, rounding to f16 loses less once the result is below 2⁻² of
/// `x`. At −∞ it is 0, its limit. Returns NaN for NaN.
#[inline(always)]
pub fn gelu(x: f32) -> f32 {
    gelu_by(x, tanh_approx(inner(x)))
}

/// [`gelu`] of `x`, from the hyperbolic tangent of `inner(x)`.
#[inline(always)]
fn gelu_by(x: f32, tanh: f32) -> f32 {
    let half = 0.5 * finite_below(x);
    fma(half, tanh, half)
}

/// [`gelu`], more exact and slower. For positive `x` the error is a few units in the last place. For negative `x` it is
/// less than 2⁻¹⁹ of the result down to −3, and less than 2⁻¹⁶ down to −8. At −∞ it is 0. Returns NaN for NaN.
#[inline(always)]
pub fn gelu_exact(x: f32) -> f32 {
    // (1 + tanh(y)) / 2 = 1 / (1 + e⁻²ʸ)
    finite_below(x) * rcp_approx(1.0 + exp2_approx(-2.0 * core::f32::consts::LOG2_E * inner(x)))
}

/// `x / (1 + e⁻ˣ)`. At −∞ it is 0, its limit. Returns NaN for NaN.
#[inline(always)]
pub fn silu(x: f32) -> f32 {
    // Through tanh it would take one instruction less, and below −8 the error would exceed the result.
    finite_below(x) * rcp_approx(1.0 + exp2_approx(-core::f32::consts::LOG2_E * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn activations_match_pytorch() {
        // PyTorch's relu, gelu with approximate="tanh", silu.
        for (x, expected) in [
            (0.0, [0.0, 0.0, 0.0]),
            (1.0, [1.0, 0.841_192, 0.731_058_6]),
            (-1.0, [0.0, -0.158_808, -0.268_941_4]),
            (3.0, [3.0, 2.996_363, 2.857_722_3]),
            (-10.0, [0.0, 0.0, -0.000_453_978_7]),
        ] {
            for (found, expected) in [relu(x), gelu(x), silu(x)].into_iter().zip(expected) {
                assert!((found - expected).abs() < 2e-6, "{x}: {found}, {expected}");
            }
            assert!((gelu_exact(x) - gelu(x)).abs() < 2e-6, "{x}");
        }
        assert!(relu(f32::NAN).is_nan() && gelu(f32::NAN).is_nan() && silu(f32::NAN).is_nan());
        // e⁻ˣ is infinite.
        assert_eq!(silu(-200.0), 0.0);
    }

    #[test]
    fn activations_of_infinity_are_their_limits() {
        let infinity = f32::INFINITY;
        for function in [relu, gelu, gelu_exact, silu] {
            assert_eq!(function(-infinity), 0.0);
            assert_eq!(function(f32::MIN), 0.0);
            assert_eq!(function(infinity), infinity);
            assert!(function(f32::NAN).is_nan());
        }
        let mut pairs = [[-infinity, infinity], [f32::NAN, -infinity]];
        GeluForBf16.apply_pairs(&mut pairs, |_| Pair {
            at: [0, 0],
            row: (),
            columns: (),
        });
        let [[low, high], [nan, after_nan]] = pairs;
        assert_eq!([low, high, after_nan], [0.0, infinity, 0.0]);
        assert!(nan.is_nan());
    }

    #[test]
    fn gelu_errors_are_within_the_documented_bounds() {
        for x in (-8 * 64..=6 * 64).filter(|&x| x != 0) {
            let x = x as f32 / 64.0;
            let wide = f64::from(x);
            let inner = f64::sqrt(core::f64::consts::FRAC_2_PI) * (wide + 0.044715 * wide.powi(3));
            let expected = wide / (1.0 + f64::exp(-2.0 * inner));
            let error = |found: f32| (f64::from(found) - expected).abs();
            let mut pairs = [[x, -x]];
            GeluForBf16.apply_pairs(&mut pairs, |_| Pair {
                at: [0, 0],
                row: (),
                columns: (),
            });
            let [[of_pair, _]] = pairs;
            assert!(error(of_pair) <= wide.abs() / 2048.0, "{x}: {of_pair}");
            assert!(error(gelu(x)) <= wide.abs() / 4096.0, "{x}: {}", gelu(x));
            let bits = match x {
                ..-3.0 => 16,
                ..0.0 => 19,
                _ => 21,
            };
            let exact = gelu_exact(x);
            assert!(
                error(exact) <= expected.abs() / f64::from(1 << bits),
                "{x}: {exact}, {expected}"
            );
        }
    }
}
