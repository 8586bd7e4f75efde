//! Operands of a tiled MMA from shared memory, in vectors of elements of which a thread multiplies all.

use core::marker::PhantomData;

use cutlet_layout_core::{
    AccessWidth, Arrangement, Basis, Bound, Fragment, FragmentLayout, Inner, Int, Layout, Mma,
    OperandA, OperandB, PartitionValues, Permutation, StaticLayout, ThreadIndex, ThreadMma,
    ThreadValue, TiledMma, Width, each,
};

use super::load::{FragmentA, FragmentB, LoadOperands, TileOfA, TileOfB, Times};
use crate::sm80::WarpMma;

/// One load for `W` of a thread's elements at a time, which are neighbours along `DIRECTION` and consecutive in shared
/// memory: [`VectorsAlongMn`] or [`VectorsAlongK`].
#[derive(Clone, Copy, Debug)]
pub struct Vectors<W, const DIRECTION: usize>(PhantomData<W>);

/// Loads of `N` neighbours along m, or n. Where the instruction gives a thread none, a permutation of the tiled MMA
/// does.
///
/// ```
/// use cutlet_device::sm80::Mma1688Tf32;
/// use cutlet_device::tile::MnMajorTile;
/// use cutlet_device::tiled::{VectorsAlongMn, gemm, load_a, load_b};
/// use cutlet_device::{GlobalMut, kernel, thread_idx};
/// use cutlet_layout_core::{L, RowMajor, Steps, Tensor, TiledMma, each};
///
/// /// A thread has rows i and i + 8 of an instruction, and columns i of two instructions: rows, and columns, 2i and
/// /// 2i + 1 of the tile.
/// type Pairs = (L!((8, 2):(2, 1)), L!((8, 1, 2):(2, 0, 1)));
/// type Mma = TiledMma<Mma1688Tf32, L!((1, 1):(0, 0)), Pairs>;
///
/// /// C = A·Bᵀ.
/// ///
/// /// # Safety
/// /// C must have 32×32 elements.
/// #[kernel(threads = 32)]
/// unsafe fn product(
///     c: GlobalMut<f32>,
///     #[shared] a: MnMajorTile<f32, 32, 16>,
///     #[shared] b: MnMajorTile<f32, 32, 16>,
/// ) {
///     // … write A and B, and meet at a barrier …
///     let by = VectorsAlongMn::<2>::new();
///     let mma = Mma::thread_slice(thread_idx());
///     let mut sums = mma.fragment_c::<L!((32, 32):(1@0, 1@1)), f32>(0.0);
///     // SAFETY: the tiles are written, and C has as many elements.
///     unsafe {
///         each::<Steps<Mma, L!((32, 16):(1@0, 1@1))>>(|step| {
///             let (a, b) = (load_a(by, mma, a.tensor(), step), load_b(by, mma, b.tensor(), step));
///             gemm(mma, &a, &b, &mut sums);
///         });
///         let c = Tensor::new(c, RowMajor::new([32, 32], 32));
///         mma.partition_c(c.local_tile::<L!((32, 32):(1@0, 1@1))>((0, 0))).store(&sums);
///     }
/// }
/// # let _ = product;
/// ```
pub type VectorsAlongMn<const N: usize> = Vectors<Width<N>, 0>;
/// Loads of `N` neighbours along k.
pub type VectorsAlongK<const N: usize> = Vectors<Width<N>, 1>;

impl<W, const DIRECTION: usize> Vectors<W, DIRECTION> {
    /// The load.
    #[inline(always)]
    pub const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<W, const DIRECTION: usize> Default for Vectors<W, DIRECTION> {
    fn default() -> Self {
        Self::new()
    }
}

impl<W: AccessWidth, const DIRECTION: usize> Vectors<W, DIRECTION> {
    /// The values from a thread's value to its neighbour along the direction.
    ///
    /// # Panics
    /// If the thread's values, of which `values` says the coordinates, have no neighbours in whole vectors.
    const fn apart(values: &Layout) -> usize {
        let (mut apart, mut leaf) = (1, 0);
        while leaf < values.num_leaves() {
            let extent = values.leaf_shape(leaf).value();
            let step = values.leaf_stride(leaf);
            if step.eq(Self::NEXT) && extent % W::VALUES as i64 == 0 {
                return apart as usize;
            }
            apart *= extent;
            leaf += 1;
        }
        assert!(
            W::VALUES == 1,
            "the elements that a thread multiplies are no neighbours in vectors of this width: give the tiled MMA a \
             permutation that makes them so, or take narrower vectors or `ByElement`"
        );
        1
    }

    /// A thread's values, the neighbours of a vector first.
    pub(super) const fn neighbours_first(values: &Layout) -> Layout {
        let apart = Self::apart(values) as i64;
        let flat = values.flatten();
        let (mut leaf, mut size) = (0, 1);
        let mut others = Layout::static_mode(1, 0);
        let mut vector = Layout::static_mode(1, 0);
        while leaf < flat.num_leaves() {
            let (extent, step) = (flat.leaf_shape(leaf), flat.leaf_stride(leaf));
            let mut mode = Layout::leaf(extent, step);
            if size == apart && W::VALUES > 1 && step.eq(Self::NEXT) {
                let width = W::VALUES as i64;
                vector = Layout::static_basis_mode(width, 1, DIRECTION);
                mode = Layout::static_basis_mode(extent.value() / width, width, DIRECTION);
            }
            others = others.append(&mode);
            size *= extent.value();
            leaf += 1;
        }
        Layout::concat2(&vector, &others)
    }

    /// The step from an element to its neighbour.
    const NEXT: Int = Int::fixed(1).along(Basis::new(DIRECTION));
}

/// Reads the registers of each instruction of a step from the partition `$part`: `$values` elements
/// for each of `$times` instructions.
macro_rules! in_vectors {
    ($operand:ident, $part:ident, $step:ident, $values:ty, $times:ty, $registers:path) => {{
        const {
            let run =
                <<S::Inner as Inner>::Bound<Neighbours<V, DIRECTION>> as Bound>::RUN;
            assert!(
                run >= V::VALUES,
                "the elements of a vector are not consecutive in this tile: take vectors along the other direction, or \
                 `ByElement`"
            );
        }
        let (first, width) = (const { <($values, $times)>::SIZE } * $step, const { V::VALUES });
        let apart = const {
            Self::apart(&PartitionValues::<TiledMma<I, W, P>, $operand, S::Tile>::LAYOUT)
        };
        let mut elements = Fragment::<_, ($values, $times)>::filled(Default::default());
        each::<($values, $times)>(|v| {
            if (v / apart) % width == 0 {
                // SAFETY: the tensor's creator promised its elements, that vectors are aligned, and that barriers order
                // their writes before.
                unsafe {
                    V::load($part.engine_at(first + v), 0, |n, element| {
                        elements.set(v + n * apart, element);
                    });
                }
            }
        });
        Fragment::from_fn(|nth| {
            $registers(|v| elements.get(const { <$values>::SIZE } * nth + v))
        })
    }};
}

/// The elements of a vector, along a direction. They are never in a fragment.
#[derive(Clone, Copy)]
struct Neighbours<W, const DIRECTION: usize>(PhantomData<W>);

impl<W: AccessWidth, const DIRECTION: usize> StaticLayout for Neighbours<W, DIRECTION> {
    const LAYOUT: Layout = Layout::static_basis_mode(W::VALUES as i64, 1, DIRECTION);
}

impl<W: AccessWidth, const DIRECTION: usize> FragmentLayout for Neighbours<W, DIRECTION> {
    type Storage = [(); 256];
}

impl<I, V: AccessWidth, const DIRECTION: usize> LoadOperands<I> for Vectors<V, DIRECTION>
where
    I: WarpMma<A: Default, B: Default> + Mma,
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load_a<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfA<I, W>>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        step: usize,
    ) -> FragmentA<I, W, S::Tile> {
        let part = mma.partition_a(tile);
        in_vectors!(
            OperandA, part, step,
            <<I as Mma>::LayoutA as ThreadValue>::Val,
            Times<S::Tile, I::M, W::Below>,
            I::registers_a
        )
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn load_b<W: Arrangement, P: Permutation, X: ThreadIndex, S: TileOfB<I, W>>(
        mma: ThreadMma<TiledMma<I, W, P>, X>,
        tile: S,
        step: usize,
    ) -> FragmentB<I, W, S::Tile> {
        let part = mma.partition_b(tile);
        in_vectors!(
            OperandB, part, step,
            <<I as Mma>::LayoutB as ThreadValue>::Val,
            Times<S::Tile, I::N, W::Aside>,
            I::registers_b
        )
    }
}
