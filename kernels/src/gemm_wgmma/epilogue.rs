//! Epilogues: what becomes of the sums on their way to C.

mod activation;
mod bias;
mod fused;
mod residual;
mod scale;
mod then;

use cutlet_device::DeviceData;
use cutlet_layout_core::{Coord, Fragment, StaticLayout, each};

pub use activation::{
    Activation, AnyActivation, AtLeast, Gelu, GeluForBf16, Relu, Silu, gelu, gelu_exact, relu, silu,
};
pub use bias::{ColumnBias, RowBias};
pub use fused::{BiasAlong, Fused, Linear};
pub use residual::Residual;
pub use scale::Scale;
pub use then::Then;

/// What becomes of each sum before it is rounded and written to C; a kernel's last argument.
///
/// Parts that come ready-made are composed by [`Then`]:
///
/// | part | `x` becomes |
/// |---|---|
/// | [`Scale`] | `alpha·x + beta·old` |
/// | [`Residual`] | `x + beta·source[row, column]` |
/// | [`ColumnBias`], [`RowBias`] | `x + bias[column]`, `x + bias[row]` |
/// | [`Linear`] | `alpha·x + beta·source[row, column]`, and one of the biases, chosen at run time |
/// | [`Relu`], [`Gelu`], [`Silu`] | `relu(x)`, `gelu(x)`, `silu(x)` |
/// | [`AtLeast`], [`AnyActivation`] | `max(x, floor)`, one of these chosen at run time |
///
/// ```
/// use cutlet_kernels::gemm_wgmma::{ColumnBias, Gelu, Scale, Then};
/// use half::bf16;
///
/// /// `gelu(alpha·sum + bias[column])`; bias and activation cost nothing where they are not named.
/// type ScaleBiasGelu = Then<Scale, Then<ColumnBias<bf16>, Gelu>>;
/// # fn is_epilogue<E: cutlet_kernels::gemm_wgmma::Epilogue>() {}
/// # is_epilogue::<ScaleBiasGelu>();
/// ```
///
/// One of your own says what becomes of a single value:
///
/// ```
/// use cutlet_device::DeviceData;
/// use cutlet_kernels::gemm_wgmma::{Epilogue, Scale};
/// use cutlet_layout_core::{Coord, Fragment, StaticLayout, each};
///
/// /// The causal mask of attention: a scaled score, or -∞ where a column is later than the row.
/// #[derive(Clone, Copy, DeviceData)]
/// #[repr(C)]
/// struct Causal {
///     scale: f32,
/// }
///
/// impl Epilogue for Causal {
///     type Row = ();
///     type Columns = ();
///
///     #[inline(always)]
///     fn apply(&self, sum: f32, _: Option<f32>, [row, column]: Coord) -> f32 {
///         if column > row { f32::NEG_INFINITY } else { self.scale * sum }
///     }
/// }
///
/// let causal = Causal { scale: 0.125 };
/// assert_eq!(causal.apply(4.0, None, [2, 1]), 0.5);
/// assert_eq!(causal.apply(4.0, None, [1, 2]), f32::NEG_INFINITY);
///
/// let scale = Scale { alpha: 2.0, beta: -1.0 };
/// assert!(scale.reads_old());
/// assert_eq!(scale.apply(4.0, Some(3.0), [0, 0]), 5.0);
/// ```
///
/// Where it reads something of each row or column, it can read that once for all of a thread's
/// values, ahead of the sums: [`row`](Self::row) and [`columns`](Self::columns) do, and
/// [`apply_pairs`](Self::apply_pairs) is given what they read. What that takes of registers is missing
/// elsewhere: with such an epilogue, TMA must be able to store C, and old C is not read (a
/// [`Residual`] reads it).
///
/// Values beyond C's edges are computed as well. An index made of the coordinate must be kept within
/// what is there.
///
/// The package `examples/own-epilogue/` makes a kernel with an epilogue of its own and launches it.
pub trait Epilogue: DeviceData {
    /// What is read of a row: `()` for nothing.
    type Row: Copy + Default;
    /// What is read of two neighbouring columns: `()` for nothing.
    type Columns: Copy + Default;

    /// Reads what is needed of a row, which may lie beyond C's edge: once for all of a thread's
    /// values in it, before they are multiplied.
    #[inline(always)]
    fn row(&self, row: i32) -> Self::Row {
        let _ = row;
        Self::Row::default()
    }

    /// Reads what is needed of columns `first`, which is even, and `first + 1`: as [`row`](Self::row).
    #[inline(always)]
    fn columns(&self, first: i32) -> Self::Columns {
        let _ = first;
        Self::Columns::default()
    }

    /// Whether [`apply`](Self::apply) is given the old element of C. The same for all elements;
    /// where it is false, C is not read.
    #[inline(always)]
    fn reads_old(&self) -> bool {
        false
    }

    /// Whether, without the old element, the sum is what is written; then nothing is applied.
    #[inline(always)]
    fn is_identity(&self) -> bool {
        false
    }

    /// The new element of C at `at` = (row, column), which may lie beyond C's edges, where what
    /// comes out is not used.
    fn apply(&self, sum: f32, old: Option<f32>, at: Coord) -> f32;

    /// [`apply`](Self::apply), without old elements, to several pairs at a time: what is the same for
    /// all of them is decided once. What is known of the nth of them, `pair(nth)` says.
    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        sums: &mut [[f32; 2]; N],
        pair: impl Fn(usize) -> Pair<Self::Row, Self::Columns>,
    ) {
        for (nth, sums) in sums.iter_mut().enumerate() {
            let [row, column] = pair(nth).at;
            *sums = [
                self.apply(sums[0], None, [row, column]),
                self.apply(sums[1], None, [row, column + 1]),
            ];
        }
    }
}

/// `sums = epilogue(sums)` without old elements, where value `v` of the thread's is at `at(v)`.
#[inline(always)]
pub(super) fn apply<L: StaticLayout>(
    epilogue: impl Epilogue,
    sums: &mut Fragment<f32, L>,
    at: impl Fn(usize) -> Coord,
) {
    each::<L>(|v| sums.set(v, epilogue.apply(sums.get(v), None, at(v))));
}

/// What is known of two sums of neighbouring columns, the first of them even.
#[derive(Clone, Copy, Debug)]
pub struct Pair<R, C> {
    /// (row, column) of the first.
    pub at: Coord,
    /// What [`Epilogue::row`] read of their row.
    pub row: R,
    /// What [`Epilogue::columns`] read of their columns.
    pub columns: C,
}

impl<R, C> Pair<R, C> {
    /// The same pair for a part of an epilogue, which `needs` this of what was read of the row and the columns.
    #[inline(always)]
    fn for_part<PartR, PartC>(self, needs: impl Fn(R, C) -> (PartR, PartC)) -> Pair<PartR, PartC> {
        let (row, columns) = needs(self.row, self.columns);
        Pair {
            at: self.at,
            row,
            columns,
        }
    }
}
