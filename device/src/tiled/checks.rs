//! The accesses of tiled operations to tiles in shared memory, as types: what a kernel asserts of its configuration.

use core::marker::PhantomData;

use cutlet_layout_core::{
    AccessWidth, Arrangement, CopyPartition, FragmentLayout, Layout, Matrices, MatrixRows, Mma,
    OperandA, OperandB, PartitionA, PartitionB, PartitionC, Permutation, StaticLayout,
    StaticSwizzle, StoredMatrices, ThreadValue, TileShape, TiledMma, WarpAccess, Width,
    compose_coordinates,
};

use super::{ByElement, LdMatrix, LdMatrixTransposed, StMatrix, StMatrixTransposed, Vectors};
use crate::sm80::WarpMma;
use crate::tile::SharedTile;

/// Accesses of the threads of a tiled operation to a tile in shared memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no access of a tiled operation to a tile in shared memory",
    note = "write `CopyAccess<Copy, Tile>`, `LoadAAccess<Atom, Mma, Tile>`, `LoadBAccess<Atom, Mma, Tile>` or \
            `StoreCAccess<Atom, Mma, Tile>`, where `Tile` is a `SharedTile` whose extents the operation divides"
)]
pub trait SharedAccess {
    /// The accesses, from which costs are computed.
    const ACCESS: WarpAccess;
}

/// The accesses of a [`TiledCopy`](cutlet_layout_core::TiledCopy) `Copy` to a [`SharedTile`] `Tile`, which it reads or
/// writes.
#[derive(Clone, Copy, Debug)]
pub struct CopyAccess<Copy, Tile>(PhantomData<(Copy, Tile)>);

/// The accesses of [`load_a`](super::load_a) by `Atom`, for the [`TiledMma`] `Mma`, to a [`SharedTile`] `Tile`.
#[derive(Clone, Copy, Debug)]
pub struct LoadAAccess<Atom, Mma, Tile>(PhantomData<(Atom, Mma, Tile)>);

/// The accesses of [`load_b`](super::load_b) by `Atom`, for the [`TiledMma`] `Mma`, to a [`SharedTile`] `Tile`.
#[derive(Clone, Copy, Debug)]
pub struct LoadBAccess<Atom, Mma, Tile>(PhantomData<(Atom, Mma, Tile)>);

/// The accesses of [`store_c`](super::store_c) by `Atom`, for the [`TiledMma`] `Mma`, to a [`SharedTile`] `Tile`.
#[derive(Clone, Copy, Debug)]
pub struct StoreCAccess<Atom, Mma, Tile>(PhantomData<(Atom, Mma, Tile)>);

/// Panics if an access has a bank conflict: if threads that shared memory serves at once need different words of one
/// bank. The message names bank, threads and access.
///
/// ```
/// use cutlet_device::sm80::Mma16816;
/// use cutlet_device::tile::KMajorTile;
/// use cutlet_device::tiled::{
///     CopyAccess, CpAsync, LdMatrix, LoadAAccess, LoadBAccess, StMatrix, StoreCAccess, assert_conflict_free,
/// };
/// use cutlet_layout_core::{L, TiledCopy, TiledMma};
/// use half::bf16;
///
/// type Mma = TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>;
/// type Load = TiledCopy<CpAsync<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
/// type Operand = KMajorTile<bf16, 64, 64>;
/// type OfC = KMajorTile<bf16, 64, 64>;
///
/// const _: () = {
///     assert_conflict_free::<CopyAccess<Load, Operand>>();
///     assert_conflict_free::<LoadAAccess<LdMatrix, Mma, Operand>>();
///     assert_conflict_free::<LoadBAccess<LdMatrix, Mma, Operand>>();
///     assert_conflict_free::<StoreCAccess<StMatrix, Mma, OfC>>();
/// };
/// ```
///
/// Rows of 128 bytes that are not swizzled begin in the same bank:
///
/// ```compile_fail,E0080
/// # use cutlet_device::sm80::Mma16816;
/// # use cutlet_device::tile::SharedTile;
/// # use cutlet_device::tiled::{LdMatrix, LoadAAccess, assert_conflict_free};
/// # use cutlet_layout_core::{L, NoSwizzle, TiledMma};
/// # use half::bf16;
/// # type Mma = TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>;
/// type Rows = SharedTile<bf16, L!((64, 64):(64, 1)), NoSwizzle>;
/// // "bank conflict: 8 threads of a quarter warp access bank 0 at once"
/// const _: () = assert_conflict_free::<LoadAAccess<LdMatrix, Mma, Rows>>();
/// ```
#[track_caller]
pub const fn assert_conflict_free<A: SharedAccess>() {
    A::ACCESS.assert_conflict_free();
}

/// Panics unless every access is one instruction: its values are consecutive in the tile, and begin at a multiple of
/// its width. The message names the thread and the element.
///
/// ```compile_fail,E0080
/// use cutlet_device::tile::MnMajorTile;
/// use cutlet_device::tiled::{CopyAccess, assert_vectorised};
/// use cutlet_layout_core::{L, TiledCopy, Width};
/// use half::bf16;
///
/// /// Eight neighbours of a row, in a tile whose columns are consecutive.
/// type Copy = TiledCopy<Width<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
/// // "access 0 of thread 0 has 8 elements that are not consecutive in memory"
/// const _: () = assert_vectorised::<CopyAccess<Copy, MnMajorTile<bf16, 64, 64>>>();
/// ```
#[track_caller]
pub const fn assert_vectorised<A: SharedAccess>() {
    A::ACCESS.assert_vectorised();
}

/// The accesses of the partition `C` to a tile.
const fn of_partition<C: ThreadValue, T, L: StaticLayout, Z: StaticSwizzle>() -> WarpAccess {
    WarpAccess::of::<C, L, Z>(size_of::<T>() as i64)
}

/// The rows of 16 bytes of the matrices `M`.
const fn of_rows<M: ThreadValue, T, L: StaticLayout, Z: StaticSwizzle>() -> WarpAccess
where
    MatrixRows<M>: FragmentLayout,
{
    let offsets = Layout::concat2(
        &compose_coordinates(&L::LAYOUT, &M::Thr::LAYOUT),
        &compose_coordinates(&L::LAYOUT, &MatrixRows::<M>::LAYOUT),
    );
    let bytes = size_of::<T>() as i64;
    WarpAccess::new(&offsets, bytes, 16 / bytes).swizzled(Z::VALUE)
}

impl<Copy, T, L, Z> SharedAccess for CopyAccess<Copy, SharedTile<T, L, Z>>
where
    L: TileShape,
    Z: StaticSwizzle,
    CopyPartition<Copy, L::Extents>: ThreadValue,
{
    const ACCESS: WarpAccess = of_partition::<CopyPartition<Copy, L::Extents>, T, L, Z>();
}

/// The accesses to the elements of the partition `C` in vectors of `V`.
const fn of_vectors<C, V, T, L, Z, const DIRECTION: usize>() -> WarpAccess
where
    C: ThreadValue,
    V: AccessWidth,
    L: StaticLayout,
    Z: StaticSwizzle,
{
    let values = Vectors::<V, DIRECTION>::neighbours_first(&C::Val::LAYOUT);
    let offsets = Layout::concat2(
        &compose_coordinates(&L::LAYOUT, &C::Thr::LAYOUT),
        &compose_coordinates(&L::LAYOUT, &values),
    );
    WarpAccess::new(&offsets, size_of::<T>() as i64, V::VALUES as i64).swizzled(Z::VALUE)
}

macro_rules! loads {
    ($($access:ident: $operand:ty, $partition:ident;)+) => {$(
        impl<I, W, P, T, L, Z, V, const DIRECTION: usize> SharedAccess
            for $access<Vectors<V, DIRECTION>, TiledMma<I, W, P>, SharedTile<T, L, Z>>
        where
            I: WarpMma,
            W: Arrangement,
            P: Permutation,
            L: TileShape,
            Z: StaticSwizzle,
            V: AccessWidth,
            $partition<TiledMma<I, W, P>, L::Extents>: ThreadValue,
        {
            const ACCESS: WarpAccess =
                of_vectors::<$partition<TiledMma<I, W, P>, L::Extents>, V, T, L, Z, DIRECTION>();
        }

        impl<I, W, P, T, L, Z> SharedAccess
            for $access<LdMatrix, TiledMma<I, W, P>, SharedTile<T, L, Z>>
        where
            I: WarpMma,
            W: Arrangement,
            P: Permutation,
            T: core::marker::Copy + 'static,
            L: TileShape,
            Z: StaticSwizzle,
        {
            const ACCESS: WarpAccess =
                of_rows::<Matrices<TiledMma<I, W, P>, $operand, L::Extents, T, false>, T, L, Z>();
        }

        impl<I, W, P, T, L, Z> SharedAccess
            for $access<LdMatrixTransposed, TiledMma<I, W, P>, SharedTile<T, L, Z>>
        where
            I: WarpMma,
            W: Arrangement,
            P: Permutation,
            T: core::marker::Copy + 'static,
            L: TileShape,
            Z: StaticSwizzle,
        {
            const ACCESS: WarpAccess =
                of_rows::<Matrices<TiledMma<I, W, P>, $operand, L::Extents, T, true>, T, L, Z>();
        }

        impl<I, W, P, T, L, Z> SharedAccess
            for $access<ByElement, TiledMma<I, W, P>, SharedTile<T, L, Z>>
        where
            I: WarpMma,
            W: Arrangement,
            P: Permutation,
            L: TileShape,
            Z: StaticSwizzle,
            $partition<TiledMma<I, W, P>, L::Extents>: ThreadValue,
        {
            const ACCESS: WarpAccess =
                of_partition::<$partition<TiledMma<I, W, P>, L::Extents>, T, L, Z>();
        }
    )+};
}
loads! {
    LoadAAccess: OperandA, PartitionA;
    LoadBAccess: OperandB, PartitionB;
}

macro_rules! stores_of_matrices {
    ($($atom:ty: $is_transposed:literal;)+) => {$(
        impl<I, W, P, T, L, Z> SharedAccess
            for StoreCAccess<$atom, TiledMma<I, W, P>, SharedTile<T, L, Z>>
        where
            I: Mma,
            W: Arrangement,
            P: Permutation,
            L: TileShape,
            Z: StaticSwizzle,
        {
            const ACCESS: WarpAccess =
                of_rows::<StoredMatrices<TiledMma<I, W, P>, L::Extents, $is_transposed>, T, L, Z>();
        }
    )+};
}
stores_of_matrices! {
    StMatrix: false;
    StMatrixTransposed: true;
}

impl<I, W, P, T, L, Z, const N: usize> SharedAccess
    for StoreCAccess<Width<N>, TiledMma<I, W, P>, SharedTile<T, L, Z>>
where
    L: TileShape,
    Z: StaticSwizzle,
    PartitionC<TiledMma<I, W, P>, L::Extents, N>: ThreadValue,
{
    const ACCESS: WarpAccess =
        of_partition::<PartitionC<TiledMma<I, W, P>, L::Extents, N>, T, L, Z>();
}

impl<I, W, P, T, L, Z> SharedAccess
    for StoreCAccess<ByElement, TiledMma<I, W, P>, SharedTile<T, L, Z>>
where
    L: TileShape,
    Z: StaticSwizzle,
    PartitionC<TiledMma<I, W, P>, L::Extents>: ThreadValue,
{
    const ACCESS: WarpAccess = of_partition::<PartitionC<TiledMma<I, W, P>, L::Extents>, T, L, Z>();
}
