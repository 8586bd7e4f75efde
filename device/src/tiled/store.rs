//! Accumulators of a tiled MMA, from registers to a tile of C.

use cutlet_layout_core::{
    Arrangement, Engine, EngineMut, Fixed, Fragment, Mma, OperandC, PartitionC, PartitionValues,
    Permutation, Repeats, StaticLayout, StaticSwizzle, StoredMatrices, ThreadIndex, ThreadMma,
    ThreadValue, TileShape, Tiled, TiledMma, Width,
};
use half::{bf16, f16};

use super::ByElement;
use super::load::assert_rows;
use crate::{DeviceData, Shared, stmatrix, stmatrix_transposed};
use crate::{Float, Float16};

/// A tile that the warps `W` of a tiled MMA of `I` cover with accumulators: M×N.
pub trait TileOfC<I: Mma, W: Arrangement>:
    Tiled<Tile: TileShape<Rows: Repeats<I::M, W::Below>, Columns: Repeats<I::N, W::Aside>>>
{
}

impl<I: Mma, W: Arrangement, S> TileOfC<I, W> for S where
    S: Tiled<Tile: TileShape<Rows: Repeats<I::M, W::Below>, Columns: Repeats<I::N, W::Aside>>>
{
}

/// A thread's values of an M×N tile of C.
pub(super) type Values<V, I, W, P, S> =
    Fragment<V, PartitionValues<TiledMma<I, W, P>, OperandC, <S as Tiled>::Tile>>;

/// A value that is stored as a `T`: itself, or an `f32` that is rounded to a 16-bit float.
#[diagnostic::on_unimplemented(
    message = "values of `{Self}` are not stored to elements of `{T}`",
    note = "`store_c` rounds `f32` to `bf16` and `f16`; for other types convert first: `values.map(|_, value| ..)`"
)]
pub trait StoredAs<T>: Copy {
    /// The element.
    fn stored(self) -> T;
}

/// Values of which two are stored as a register with elements `T` of 16 bits.
#[diagnostic::on_unimplemented(
    message = "two values of `{Self}` do not become one register of `{T}`, as `stmatrix` stores them",
    note = "`stmatrix` stores `bf16` and `f16`, and values of `f32` as these; take `ByElement` or `Width<2>` for others"
)]
pub trait PackedAs<T>: StoredAs<T> {
    /// The register, with the first value in its lower half.
    fn packed(pair: [Self; 2]) -> u32;
}

macro_rules! stored_as_they_are {
    ($($type:ty)+) => {$(
        impl StoredAs<$type> for $type {
            #[inline(always)]
            fn stored(self) -> $type {
                self
            }
        }
    )+};
}
stored_as_they_are!(bf16 f16 f32 f64 i32);

macro_rules! of_16_bits {
    ($($type:ty)+) => {$(
        impl StoredAs<$type> for f32 {
            #[inline(always)]
            fn stored(self) -> $type {
                <$type as Float>::from_f32(self)
            }
        }

        impl PackedAs<$type> for f32 {
            #[inline(always)]
            fn packed(pair: [f32; 2]) -> u32 {
                <$type as Float16>::pack_f32(pair)
            }
        }

        impl PackedAs<$type> for $type {
            #[inline(always)]
            fn packed(pair: [$type; 2]) -> u32 {
                <$type as Float16>::pack(pair)
            }
        }
    )+};
}
of_16_bits!(bf16 f16);

/// Instructions that store values `V` of a thread to its elements of a tile `S`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not store values of `{V}` to `{S}`",
    note = "`StMatrix` and `StMatrixTransposed` store to elements of 16 bits of a tile in shared memory, on GPUs from \
            sm_90 on; `ByElement` and `Width<N>` store to any tile that is written"
)]
pub trait StoreC<V: Copy, S: Tiled>: Copy {
    /// Whether it transposes the matrices that it stores, if it stores matrices.
    #[doc(hidden)]
    const TRANSPOSED: Option<bool> = None;

    /// See [`store_c`].
    #[doc(hidden)]
    fn store_c<I: Mma, W: Arrangement, P: Permutation, X: ThreadIndex>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        values: &Values<V, I, W, P, S>,
    ) where
        S: TileOfC<I, W>;
}

/// What is wrong with a tile that an atom cannot write.
const UNWRITABLE: &str = "the rows that `stmatrix` writes are not 16 bytes side by side in this tile: `StMatrix` is \
    for tiles that are consecutive along n, `StMatrixTransposed` for those along m, and `ByElement` for all others";

/// Stores a thread's accumulators, or values that were computed of them, to an M×N tile of C. All threads of the tiled
/// MMA call it. `atom` is the instruction that stores them. Accumulators in `f32` are rounded to the tile's elements,
/// if these are `bf16` or `f16`.
///
/// | atom | the tile |
/// |---|---|
/// | [`StMatrix`], from sm_90 on | elements of 16 bits in shared memory, consecutive along n |
/// | [`StMatrixTransposed`], from sm_90 on | elements of 16 bits in shared memory, consecutive along m |
/// | [`Width<2>`](Width) | any, if pairs along n are consecutive |
/// | [`ByElement`] | any |
///
/// ```
/// use cutlet_device::sm80::Mma16816;
/// use cutlet_device::tile::KMajorTile;
/// use cutlet_device::tiled::{StMatrix, copy, store_c};
/// use cutlet_device::{GlobalMut, kernel, sync_threads, thread_idx};
/// use cutlet_layout_core::{L, RowMajor, Tensor, TiledCopy, TiledMma, Width};
/// use half::bf16;
///
/// type Mma = TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>;
/// type Tile = L!((64, 64):(1@0, 1@1));
/// /// Each thread has 16 bytes of a row.
/// type Copy = TiledCopy<Width<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
///
/// /// # Safety
/// /// `c` has 64×64 elements, and begins at a multiple of 16 bytes.
/// #[kernel(threads = 128, arch = "sm_90a")]
/// unsafe fn ones(c: GlobalMut<bf16>, #[shared] tile: KMajorTile<bf16, 64, 64>) {
///     // SAFETY: as promised by the caller. The barrier orders the accesses to the tile.
///     let (c, tile) = unsafe { (Tensor::new(c, RowMajor::new([64, 64], 64)), tile.tensor()) };
///     let mma = Mma::thread_slice(thread_idx());
///     let sums = mma.fragment_c::<Tile, f32>(1.0);
///     store_c(StMatrix, mma, tile, &sums);
///     sync_threads();
///     let lines = Copy::thread_slice(thread_idx());
///     copy(&lines.partition(tile), &lines.partition(c.local_tile::<Tile>((0, 0))));
/// }
/// assert_eq!(ones.bounds().threads(), 128);
/// ```
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn store_c<Atom, I, W, P, X, V, S>(
    _atom: Atom,
    mma: ThreadMma<TiledMma<I, W, P>, X>,
    tile: S,
    values: &Values<V, I, W, P, S>,
) where
    Atom: StoreC<V, S>,
    I: Mma,
    W: Arrangement,
    P: Permutation,
    X: ThreadIndex,
    V: Copy,
    S: TileOfC<I, W>,
{
    // Here, so that an error names the line of the caller.
    const {
        assert_rows::<
            S,
            <S::Engine as Engine>::Element,
            StoredMatrices<TiledMma<I, W, P>, S::Tile, false>,
            StoredMatrices<TiledMma<I, W, P>, S::Tile, true>,
        >(Atom::TRANSPOSED, UNWRITABLE)
    }
    Atom::store_c(mma, tile, values);
}

/// `stmatrix`: elements of 16 bits, to a tile of which each 16 bytes along n are consecutive in shared memory.
///
/// A tile that is consecutive along m does not compile:
///
/// ```compile_fail,E0080
/// use cutlet_device::sm80::Mma16816;
/// use cutlet_device::tile::MnMajorTile;
/// use cutlet_device::tiled::{StMatrix, store_c};
/// use cutlet_device::{kernel, thread_idx};
/// use cutlet_layout_core::{L, TiledMma};
/// use half::bf16;
///
/// type Mma = TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>;
///
/// # /// # Safety
/// # /// None.
/// #[kernel(threads = 128, arch = "sm_90a")]
/// unsafe fn product(#[shared] c: MnMajorTile<bf16, 64, 64>) {
///     let mma = Mma::thread_slice(thread_idx());
///     let sums = mma.fragment_c::<L!((64, 64):(1@0, 1@1)), f32>(0.0);
///     store_c(StMatrix, mma, unsafe { c.tensor() }, &sums);
/// }
/// # fn main() { product.body(); }
/// ```
///
/// GPUs before sm_90 do not have the instruction, and kernels for them are not built with it. [`Width<2>`](Width) is in
/// its place there.
#[derive(Clone, Copy, Debug)]
pub struct StMatrix;

/// `stmatrix.trans`: elements of 16 bits, to a tile of which each 16 bytes along m are consecutive in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct StMatrixTransposed;

macro_rules! by_matrices {
    ($atom:ty: $store:ident, $is_transposed:literal) => {
        /// To tiles whose extents and layout the compiler knows.
        impl<V, T, S, L, Z> StoreC<V, S> for $atom
        where
            V: PackedAs<T>,
            T: DeviceData,
            S: Tiled<Engine = Shared<T>, Inner = Fixed<L, Z>>,
            L: StaticLayout,
            Z: StaticSwizzle,
        {
            const TRANSPOSED: Option<bool> = Some($is_transposed);

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn store_c<I: Mma, W: Arrangement, P: Permutation, X: ThreadIndex>(
                mma: ThreadMma<TiledMma<I, W, P>, X>,
                tile: S,
                values: &Values<V, I, W, P, S>,
            ) where
                S: TileOfC<I, W>,
            {
                type Stores<I, W, P, S> =
                    StoredMatrices<TiledMma<I, W, P>, <S as Tiled>::Tile, $is_transposed>;
                let matrices = const { Stores::<I, W, P, S>::MATRICES };
                let rows = tile.partition_tile_broadcast::<Stores<I, W, P, S>>(mma.thread());
                // A loop and no closure, so that an error on the CPU names the line of the caller.
                let mut nth = 0;
                while nth < const { <Stores<I, W, P, S> as ThreadValue>::Val::SIZE } {
                    let register = |matrix: usize| {
                        let v = 2 * (matrices * nth + matrix);
                        V::packed([values.get(v), values.get(v + 1)])
                    };
                    let to = rows.engine_at(nth);
                    // SAFETY: the tensor's creator promised its elements, and that barriers order their accesses. Each
                    // row is of one store, and 16 bytes that lie in the tile.
                    unsafe {
                        match matrices {
                            4 => $store(to, [register(0), register(1), register(2), register(3)]),
                            2 => $store(to, [register(0), register(1)]),
                            _ => $store(to, [register(0)]),
                        }
                    }
                    nth += 1;
                }
            }
        }
    };
}
by_matrices!(StMatrix: stmatrix, false);
by_matrices!(StMatrixTransposed: stmatrix_transposed, true);

/// Stores `N` neighbouring values at a time. Those outside of the tensor are left out.
impl<V, S, const N: usize> StoreC<V, S> for Width<N>
where
    S: Tiled<Engine: EngineMut>,
    V: StoredAs<<S::Engine as Engine>::Element>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn store_c<I: Mma, W: Arrangement, P: Permutation, X: ThreadIndex>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        values: &Values<V, I, W, P, S>,
    ) where
        S: TileOfC<I, W>,
    {
        tile.partition_tile::<PartitionC<TiledMma<I, W, P>, S::Tile, N>>(mma.thread())
            .store_with(|v| values.get(v).stored());
    }
}

/// Stores one value at a time. Those outside of the tensor are left out.
impl<V, S> StoreC<V, S> for ByElement
where
    V: Copy,
    S: Tiled,
    Width<1>: StoreC<V, S>,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn store_c<I: Mma, W: Arrangement, P: Permutation, X: ThreadIndex>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        values: &Values<V, I, W, P, S>,
    ) where
        S: TileOfC<I, W>,
    {
        Width::<1>::store_c(mma, tile, values);
    }
}
