//! Epilogues: what is applied to accumulators before they are stored to C. All families share them.

mod activation;
mod bias;
mod element;
mod fused;
mod operands;
mod outer_scales;
mod residual;
mod scale;
mod then;
mod unpaired_outer_scales;

use core::array;

use cutlet_device::DeviceData;
use cutlet_device::collective::Group;
use cutlet_layout_core::{Coord, Fragment, FragmentLayout, each};

pub use activation::{
    Activation, AnyActivation, AtLeast, Gelu, GeluForBf16, OptionalGeluErf, Relu, Silu, gelu,
    gelu_exact, relu, silu,
};
pub use bias::{ColumnBias, RowBias};
pub use element::{Accumulator, ElementC, FromSums};
pub use fused::{BiasAlong, Fused, FusedWithErf, FusedWithOld, Linear};
pub(in crate::gemm) use operands::COLUMNS;
pub use operands::EpilogueOperands;
pub use outer_scales::OuterScales;
pub use residual::Residual;
pub use scale::Scale;
pub use then::Then;
pub use unpaired_outer_scales::UnpairedOuterScales;

/// What is applied to each accumulator before it is rounded and written to C. It is a kernel's last argument.
///
/// [`Then`] composes ready-made parts:
///
/// | part | `x` becomes |
/// |---|---|
/// | [`Scale`] | `alpha·x + beta·old` |
/// | [`Residual`] | `x + beta·source[row, column]` |
/// | [`ColumnBias`], [`RowBias`] | `x + bias[column]`, `x + bias[row]` |
/// | [`Linear`] | `alpha·x + beta·source[row, column]`, plus one of the biases, chosen at run time |
/// | [`Relu`], [`Gelu`], [`Silu`] | `relu(x)`, `gelu(x)`, `silu(x)` |
/// | [`AtLeast`] | `max(x, floor)` |
/// | [`AnyActivation`] | one of the activations, chosen at run time |
/// | [`OptionalGeluErf`] | GELU by the error function, if it is chosen at run time |
/// | [`OuterScales`], [`UnpairedOuterScales`] | `alpha·x·of_rows[row]·of_columns[column]` |
///
/// Parts that end in a type parameter compute in any [`Accumulator`], as `f32` by default.
///
/// ```
/// use cutlet_kernels::gemm::epilogue::{ColumnBias, Epilogue, Gelu, Scale, Then};
/// use half::bf16;
///
/// /// `gelu(alpha·acc + bias[column])`. Parts that are left out cost nothing.
/// type ScaleBiasGelu = Then<Scale, Then<ColumnBias<bf16>, Gelu>>;
/// # fn is_epilogue<E: Epilogue>() {}
/// # is_epilogue::<ScaleBiasGelu>();
/// ```
///
/// An epilogue of your own defines [`apply`](Self::apply) for a single value:
///
/// ```
/// use cutlet_device::DeviceData;
/// use cutlet_kernels::gemm::epilogue::{Epilogue, Scale};
/// use cutlet_layout_core::Coord;
///
/// /// The causal mask of attention: a scaled score, or −∞ if the column is beyond the row.
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
/// let scale: Scale = Scale { alpha: 2.0, beta: -1.0 };
/// assert!(scale.reads_old());
/// assert_eq!(scale.apply(4.0, Some(3.0), [0, 0]), 5.0);
/// ```
///
/// An epilogue may have operands of each row or column, such as a bias. [`row`](Self::row) and
/// [`columns`](Self::columns) read them once for all of a thread's values, during the mainloop, and
/// [`apply_pairs`](Self::apply_pairs) gets them. They take registers. So an epilogue with operands needs a C that TMA
/// can store, and does not get old elements. (A [`Residual`] reads them itself.) Kernels of groups have no such limits:
/// they call [`apply`](Self::apply) where TMA cannot store.
///
/// The epilogue is applied beyond C's edges, too. It must keep indices that it computes from the coordinate in bounds.
///
/// The package `examples/own-epilogue/` has a kernel with an epilogue of its own, and launches it.
pub trait Epilogue: DeviceData {
    /// The type of accumulators, in which the epilogue computes.
    type Acc: Accumulator;
    /// The operands of a row: `()` for none.
    type Row: Copy + Default;
    /// The operands of two neighbouring columns: `()` for none.
    type Columns: Copy + Default;

    /// Reads the operands of a row, which may be beyond C's edge. Called before the mainloop, once for all of a
    /// thread's values in the row.
    #[inline(always)]
    fn row(&self, row: i32) -> Self::Row {
        let _ = row;
        Self::Row::default()
    }

    /// Reads the operands of the columns `first` and `first + 1`, as [`row`](Self::row) does of a row. `first` is even.
    #[inline(always)]
    fn columns(&self, first: i32) -> Self::Columns {
        let _ = first;
        Self::Columns::default()
    }

    /// Whether [`apply`](Self::apply) gets the old elements of C. If not, C is not read.
    #[inline(always)]
    fn reads_old(&self) -> bool {
        false
    }

    /// Whether [`apply`](Self::apply) without an old element returns the accumulator unchanged. Then it is not called.
    #[inline(always)]
    fn is_identity(&self) -> bool {
        false
    }

    /// The epilogue of a group of a grouped product. Its C begins `to_c` elements after that of the first group. A
    /// number for each column is the same for all groups.
    #[inline(always)]
    fn of_group(self, group: Group, to_c: i64) -> Self {
        let _ = (group, to_c);
        self
    }

    /// Returns the new element of C at `at` = (row, column). Beyond C's edges the result is not used.
    fn apply(&self, acc: Self::Acc, old: Option<Self::Acc>, at: Coord) -> Self::Acc;

    /// [`apply`](Self::apply) without old elements, to several pairs at a time, so that a branch that all of them share
    /// is taken once. `pair(nth)` is the place of the `nth` pair, and its operands.
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

/// Applies the epilogue without old elements. The thread's value `v` is at `at(v)`.
#[inline(always)]
pub(super) fn apply<Epi: Epilogue, L: FragmentLayout>(
    epilogue: Epi,
    accumulators: &mut Fragment<Epi::Acc, L>,
    at: impl Fn(usize) -> Coord,
) {
    each::<L>(|v| accumulators.set(v, epilogue.apply(accumulators.get(v), None, at(v))));
}

/// Applies the epilogue without old elements to four neighbours in each of four rows. The thread's value `v` is at
/// `at(v)`, and its first columns are multiples of two. All reads of operands are in flight at the same time.
#[inline(always)]
pub(super) fn apply_fours<Epi: Epilogue, L: FragmentLayout>(
    epilogue: Epi,
    accumulators: &Fragment<Epi::Acc, L>,
    at: impl Fn(usize) -> Coord,
) -> Fragment<Epi::Acc, L> {
    const { assert!(L::SIZE == 16, "four neighbours in each of four rows") };
    let rows: [_; 4] = array::from_fn(|row| epilogue.row(at(4 * row)[0]));
    let columns: [_; 2] = array::from_fn(|pair| epilogue.columns(at(2 * pair)[1]));
    let mut pairs: [_; 8] =
        array::from_fn(|pair| [accumulators.get(2 * pair), accumulators.get(2 * pair + 1)]);
    epilogue.apply_pairs(&mut pairs, |pair| Pair {
        at: at(2 * pair),
        row: rows[pair / 2],
        columns: columns[pair % 2],
    });
    Fragment::from_fn(|v| pairs[v / 2][v % 2])
}

/// The place and the operands of two accumulators in neighbouring columns. The first column is even.
#[derive(Clone, Copy, Debug)]
pub struct Pair<R, C> {
    /// (row, column) of the first accumulator.
    pub at: Coord,
    /// Their row's operands, as [`Epilogue::row`] read them.
    pub row: R,
    /// Their columns' operands, as [`Epilogue::columns`] read them.
    pub columns: C,
}

impl<R, C> Pair<R, C> {
    /// The pair for a part of an epilogue: `pick` picks the part's operands.
    #[inline(always)]
    fn for_part<PartR, PartC>(self, pick: impl Fn(R, C) -> (PartR, PartC)) -> Pair<PartR, PartC> {
        let (row, columns) = pick(self.row, self.columns);
        Pair {
            at: self.at,
            row,
            columns,
        }
    }
}
