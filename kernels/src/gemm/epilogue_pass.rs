//! The epilogue pass: a second kernel, which writes a C of any type and alignment. It applies everything that can be
//! fused to accumulators in f32. Of sums in f32 or i32, it applies scales, too.

use cutlet_device::{
    DeviceData, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, instantiate, thread_idx,
};
use cutlet_layout_core::{AnyStrides, Divisor, L, Raster, RowMajor, Tensor, Tv, tiles};

use super::epilogue::{ElementC, Epilogue, FromSums, FusedWithErf, OuterScales, Then, apply_fours};

/// The tile of C that a block writes.
type Tile = L!((32, 128):(1@0, 1@1));
/// A thread's values: four in each of its rows.
type Values = L!((4, 4):(1@1, 8@0));
/// Thread-value layout of the tile, written `WIDTH` at a time: a warp has whole rows.
type Threads<const WIDTH: usize> = Tv<L!((32, 8):(4@1, 1@0)), Values, WIDTH>;
/// Threads of a block.
const THREADS: u32 = 256;

/// Extents of C and of the accumulators.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct PassArgs {
    /// Elements from one row of C to the next, and from one column to the next.
    pub strides: [i64; 2],
    /// Elements from one row of accumulators to the next, a multiple of 4.
    pub ld: i64,
    /// Rows of C.
    pub m: i32,
    /// Columns of C.
    pub n: i32,
    /// Not 0 if C is written in vectors of four. Then it is row-major, its rows start at multiples of four elements and
    /// have a multiple of four, and the epilogue may read its operands in pairs.
    pub in_fours: u32,
    /// The tile of each block: see [`raster`].
    pub raster: Raster<Divisor>,
}

/// The raster of a C with these extents: one tile for each block of the grid, in the order of memory.
pub fn raster(extents: [i32; 2]) -> Raster<Divisor> {
    Raster::planned(tiles::<Tile>(extents), 1)
}

/// Everything that can be fused, after [`OuterScales`].
pub type FusedWithScales<T> = Then<OuterScales, FusedWithErf<T>>;

/// `C = epilogue(sums)`.
///
/// # Safety
/// C and the sums must have these extents. Rows of sums are read up to a multiple of 4 elements.
#[inline(always)]
unsafe fn pass<T, S, Epi>(
    thread: ThreadIdx<impl ThreadGroup>,
    sums: Global<S>,
    c: GlobalMut<T>,
    extents: PassArgs,
    epilogue: Epi,
) where
    T: ElementC<Acc = f32>,
    S: DeviceData + Default,
    f32: FromSums<S>,
    Epi: Epilogue<Acc = f32>,
{
    let PassArgs {
        strides,
        ld,
        m,
        n,
        in_fours,
        raster,
    } = extents;
    let tile = raster.tile(block_idx().x);
    // SAFETY: the launcher promises the extents.
    let (sums, to) = unsafe {
        let sums = Tensor::new(sums, RowMajor::new([m, n], ld)).local_tile::<Tile>(tile);
        let row_major = Tensor::new(c, RowMajor::new([m, n], strides[0])).local_tile::<Tile>(tile);
        let any = Tensor::new(c, AnyStrides::new([m, n], strides)).local_tile::<Tile>(tile);
        (
            sums.partition::<Threads<4>>(thread).load(S::default()),
            (row_major, any),
        )
    };
    let accumulators = sums.map(|_, sum| <f32 as FromSums<S>>::from_sum(sum));
    if in_fours != 0 {
        let to = to.0.partition::<Threads<4>>(thread);
        let new = apply_fours(epilogue, &accumulators, |v| to.bound().coordinate(v));
        to.store(&new.map(|_, value| T::narrow(value)));
    } else {
        let to = to.1.partition::<Threads<1>>(thread);
        let at = |v| to.bound().coordinate(v);
        to.store(&accumulators.map(|v, acc| T::narrow(epilogue.apply(acc, None, at(v)))));
    }
}

instantiate! {
    /// To a C of bf16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn epilogue_pass_bf16(
        accumulators: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: PassArgs,
        epilogue: FusedWithErf<half::bf16>,
    ) = pass::<half::bf16, _, _>(thread_idx(), ..);

    /// To a C of f16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn epilogue_pass_f16(
        accumulators: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: PassArgs,
        epilogue: FusedWithErf<half::f16>,
    ) = pass::<half::f16, _, _>(thread_idx(), ..);

    /// To a C of f32.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn epilogue_pass_f32(
        accumulators: Global<f32>,
        c: GlobalMut<f32>,
        extents: PassArgs,
        epilogue: FusedWithErf<f32>,
    ) = pass::<f32, _, _>(thread_idx(), ..);

    /// Of sums in i32 and scales, to a C of bf16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn scaled_pass_bf16(
        sums: Global<i32>,
        c: GlobalMut<half::bf16>,
        extents: PassArgs,
        epilogue: FusedWithScales<half::bf16>,
    ) = pass::<half::bf16, _, _>(thread_idx(), ..);

    /// Of sums in i32 and scales, to a C of f16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn scaled_pass_f16(
        sums: Global<i32>,
        c: GlobalMut<half::f16>,
        extents: PassArgs,
        epilogue: FusedWithScales<half::f16>,
    ) = pass::<half::f16, _, _>(thread_idx(), ..);

    /// Of sums in i32 and scales, to a C of f32.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn scaled_pass_f32(
        sums: Global<i32>,
        c: GlobalMut<f32>,
        extents: PassArgs,
        epilogue: FusedWithScales<f32>,
    ) = pass::<f32, _, _>(thread_idx(), ..);

    /// Of sums in f32 and scales, to a C of bf16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn scaled_pass_of_f32_bf16(
        sums: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: PassArgs,
        epilogue: FusedWithScales<half::bf16>,
    ) = pass::<half::bf16, _, _>(thread_idx(), ..);

    /// Of sums in f32 and scales, to a C of f16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn scaled_pass_of_f32_f16(
        sums: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: PassArgs,
        epilogue: FusedWithScales<half::f16>,
    ) = pass::<half::f16, _, _>(thread_idx(), ..);

    /// Of sums in f32 and scales, to a C of f32.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn scaled_pass_of_f32_f32(
        sums: Global<f32>,
        c: GlobalMut<f32>,
        extents: PassArgs,
        epilogue: FusedWithScales<f32>,
    ) = pass::<f32, _, _>(thread_idx(), ..);
}
