//! Arithmetic with an index does not compile. The error names what to do instead.

use core::convert::Infallible;
use core::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Rem, Shl, Shr, Sub};

use super::{BlockCoord, ClusterRank, LaneIdx, ThreadIdx, WarpIdx};
use crate::warpgroup::{WarpgroupIdx, WarpgroupThread};

/// A value that an operator takes beside an index of type `Index`. No type implements it.
///
/// The operators of the indices require it. So the compiler explains them by this trait's texts, which it cannot do for
/// the operators' own traits.
#[diagnostic::on_unimplemented(
    message = "an index has no arithmetic: the kernel computes with a `{Index}`",
    label = "this operator does not take a `{Index}`",
    note = "give the index to a layout instead: `tensor.local_tile::<Tile>((row, column))` takes a block's index, and \
            `tensor.partition::<Threads>(thread)` a thread's",
    note = "compare it with `is_first()`, `is(number)` or `is_below(count)`; code below layouts takes its number with \
            `get()`"
)]
pub trait Operand<Index> {
    /// The result of the operator, which is never computed.
    fn result(self) -> Infallible;
}

macro_rules! no_arithmetic {
    (@ [$($group:ident)?] $index:ident as $type:ty: $operator:ident $method:ident) => {
        impl<R: Operand<$index>, $($group)?> $operator<R> for $type {
            type Output = Infallible;

            #[inline(always)]
            fn $method(self, other: R) -> Infallible {
                other.result()
            }
        }
    };
    ($group:tt $index:ident as $type:ty: $($operator:ident $method:ident),+) => {
        $(no_arithmetic!(@ $group $index as $type: $operator $method);)+
    };
    ($($group:tt $index:ident as $type:ty,)+) => {$(
        no_arithmetic!(
            $group $index as $type: Add add, Sub sub, Mul mul, Div div, Rem rem, Shl shl, Shr shr, BitAnd bitand,
            BitOr bitor, BitXor bitxor
        );
    )+};
}
no_arithmetic!(
    [G] ThreadIdx as ThreadIdx<G>,
    [] LaneIdx as LaneIdx,
    [] WarpIdx as WarpIdx,
    [] BlockCoord as BlockCoord,
    [] ClusterRank as ClusterRank,
    [] WarpgroupIdx as WarpgroupIdx,
    [] WarpgroupThread as WarpgroupThread,
);
