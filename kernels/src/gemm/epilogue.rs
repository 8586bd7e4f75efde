//! Epilogues: what becomes of accumulators on their way to C. Every family applies the same ones.

mod activation;
mod bias;
mod fused;
mod operands;
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
pub(in crate::gemm) use operands::COLUMNS;
pub use operands::EpilogueOperands;
pub use residual::Residual;
pub use scale::Scale;
pub use then::Then;

/// What becomes of each accumulator before it is rounded and written to C; a kernel's last argument.
///
/// Ready-made parts are composed by [`Then`]:
///
/// | part | `x` becomes |
/// |---|---|
/// | [`Scale`] | `alpha·x + beta·old` |
/// | [`Residual`] | `x + beta·source[row, column]` |
/// | [`ColumnBias`], [`RowBias`] | `x + bias[column]`, `x + bias[row]` |
/// | [`Linear`] | `alpha·x + beta·source[row, column]`, and one of the biases, chosen at run time |
/// | [`Relu`], [`Gelu`], [`Silu`] | `relu(x)`, `gelu(x)`, `silu(x)` |
/// | [`AtLeast`], [`AnyActivation`] | `max(x, floor)`; one of the activations, chosen at run time |
///
/// ```
/// use cutlet_kernels::gemm::epilogue::{ColumnBias, Epilogue, Gelu, Scale, Then};
/// use half::bf16;
///
/// /// `gelu(alpha·acc + bias[column])`. Parts that are not named cost nothing.
/// type ScaleBiasGelu = Then<Scale, Then<ColumnBias<bf16>, Gelu>>;
/// # fn is_epilogue<E: Epilogue>() {}
/// # is_epilogue::<ScaleBiasGelu>();
/// ```
///
/// An epilogue of your own says what becomes of a single value:
///
/// ```
/// use cutlet_device::DeviceData;
/// use cutlet_kernels::gemm::epilogue::{Epilogue, Scale};
/// use cutlet_layout_core::Coord;
///
/// /// The causal mask of attention: a scaled score, or -∞ where the column is beyond the row.
/// #[derive(Clone, Copy, DeviceData)]
/// #[repr(C)]
/// struct Causal {
///     scale: f32,
/// }
///
/// impl Epilogue for Causal {
///     type Acc = f32;
///     type Row = ();
///     type Columns = ();
///
///     #[inline(always)]
///     fn apply(&self, acc: f32, _: Option<f32>, [row, column]: Coord) -> f32 {
///         if column > row { f32::NEG_INFINITY } else { self.scale * acc }
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
/// An epilogue that needs something of each row or column can read it once for all of a thread's values, during the
/// mainloop: [`row`](Self::row) and [`columns`](Self::columns) read, and [`apply_pairs`](Self::apply_pairs) gets what they
/// read. These operands take registers. So with such an epilogue TMA must be able to store C, and old C is not read (a
/// [`Residual`] reads it instead).
///
/// Values beyond C's edges are computed as well. An index made of the coordinate must be kept in bounds.
///
/// The package `examples/own-epilogue/` makes a kernel with an epilogue of its own and launches it.
pub trait Epilogue: DeviceData {
    /// The type of accumulators, in which the epilogue computes.
    type Acc: DeviceData + Default;
    /// What is read of a row: `()` for nothing.
    type Row: Copy + Default;
    /// What is read of two neighbouring columns: `()` for nothing.
    type Columns: Copy + Default;

    /// Reads what is needed of a row, which may lie beyond C's edge. It is called once for all of a thread's values in the
    /// row, before the mainloop.
    #[inline(always)]
    fn row(&self, row: i32) -> Self::Row {
        let _ = row;
        Self::Row::default()
    }

    /// Reads what is needed of columns `first`, which is even, and `first + 1`, as [`row`](Self::row) does of a row.
    #[inline(always)]
    fn columns(&self, first: i32) -> Self::Columns {
        let _ = first;
        Self::Columns::default()
    }

    /// Whether [`apply`](Self::apply) gets the old element of C, the same for all elements. If not, C is not read.
    #[inline(always)]
    fn reads_old(&self) -> bool {
        false
    }

    /// Whether accumulators are written as they are where old elements are not read. Then nothing is applied.
    #[inline(always)]
    fn is_identity(&self) -> bool {
        false
    }

    /// The new element of C at `at` = (row, column). Beyond C's edges the result is not used.
    fn apply(&self, acc: Self::Acc, old: Option<Self::Acc>, at: Coord) -> Self::Acc;

    /// [`apply`](Self::apply), without old elements, to several pairs, so that what is the same for all of them is decided
    /// once. `pair(nth)` says where the `nth` of them is and what was read for it.
    #[inline(always)]
    fn apply_pairs<const N: usize>(
        &self,
        accs: &mut [[Self::Acc; 2]; N],
        pair: impl Fn(usize) -> Pair<Self::Row, Self::Columns>,
    ) {
        for (nth, accs) in accs.iter_mut().enumerate() {
            let [row, column] = pair(nth).at;
            *accs = [
                self.apply(accs[0], None, [row, column]),
                self.apply(accs[1], None, [row, column + 1]),
            ];
        }
    }
}

/// Applies the epilogue, without old elements, where value `v` of the thread's is at `at(v)`.
#[inline(always)]
pub(super) fn apply<Epi: Epilogue, L: StaticLayout>(
    epilogue: Epi,
    accumulators: &mut Fragment<Epi::Acc, L>,
    at: impl Fn(usize) -> Coord,
) {
    each::<L>(|v| accumulators.set(v, epilogue.apply(accumulators.get(v), None, at(v))));
}

/// What is known of two accumulators of neighbouring columns, the first of them even.
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
    /// The same pair for a part of an epilogue: `needs` picks what the part needs of the row and the columns.
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
