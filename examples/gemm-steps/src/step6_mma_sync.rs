//! Step 6, `mma.sync`: tensor cores multiply. A warp issues products of 16×8×16 elements, from registers that
//! `ldmatrix` fills.

use cutlet_device::collective::{CpAsyncPipeline, StageIdx, Stages, TileRing};
use cutlet_device::sm80::Mma16816;
use cutlet_device::tile::{KMajor, KMajorTile, OperandLayout, SwizzleSpan};
use cutlet_device::tiled::{
    CpAsync, FragmentC, LdMatrix, copy, gemm as multiply_step, load_a, load_b,
};
use cutlet_device::{Float, Global, GlobalMut, block_idx, kernel, thread_idx};
use cutlet_layout_core::{
    InOrder, L, Steps, ThreadIndex, ThreadMma, TileIndex, TiledCopy, TiledMma, each,
};
use half::bf16;

use crate::matrices::{Output, matrices};

/// Eight warps: two below one another, and four side by side.
type Warps = L!((2, 4):(4, 1));
/// The instruction, by all warps at once: 32×32 elements of C, and 16 k.
pub type Mma = TiledMma<Mma16816<bf16>, Warps>;
/// A thread's accumulators of a tile of C.
pub type Sums = FragmentC<Mma16816<bf16>, Warps, InOrder, TileC>;
/// A block's tile of C, and tiles of A and of B for 64 k.
pub type TileC = L!((128, 128):(1@0, 1@1));
/// See [`TileC`].
pub type Tile = L!((128, 64):(1@0, 1@1));
/// The same in shared memory: rows of 128 bytes, swizzled.
pub type Stored = KMajorTile<bf16, 128, 64>;
/// 32×8 threads, each with a vector of 8 elements of a row at a time.
type Copy = TiledCopy<CpAsync<8>, L!((32, 8):(8, 1)), L!((1, 8):(0, 1))>;

/// A tile of [`Stored`] for each of three stages.
type Ring =
    TileRing<bf16, OperandLayout<bf16, KMajor, 128, 64, 128>, SwizzleSpan<bf16, 128>, Stages<3>>;
/// It counts stages and groups as step 5 does by hand.
type Pipeline = CpAsyncPipeline<Stages<3>>;

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The matrices must have these extents: m, n and k. Their addresses and k in bytes must be multiples of 16, and n is
/// even.
#[kernel(threads = 256)]
pub unsafe fn mma_sync(
    extents: [i32; 3],
    a: Global<bf16>,
    b: Global<bf16>,
    c: GlobalMut<bf16>,
    #[shared] rings: (Ring, Ring),
) {
    // SAFETY: the launcher promises the extents.
    let (a, b, c) = unsafe { matrices(extents, a, b, c) };
    let (row, column) = (block_idx().y, block_idx().x);
    let (ring_a, ring_b) = rings;
    let copier = Copy::thread_slice(thread_idx());
    let fill = |k_tile: u32, stage: StageIdx| {
        // SAFETY: the pipeline says that no thread uses the stage.
        let (to_a, to_b) = unsafe { (ring_a.stage(stage).tensor(), ring_b.stage(stage).tensor()) };
        let from_a = copier.partition(a.local_tile::<Tile>((row, k_tile)));
        let from_b = copier.partition(b.local_tile::<Tile>((column, k_tile)));
        copy(&from_a, &copier.partition(to_a));
        copy(&from_b, &copier.partition(to_b));
    };

    let mut pipeline = Pipeline::new();
    for k_tile in 0..Pipeline::AHEAD {
        fill(k_tile, pipeline.acquire());
        pipeline.commit();
    }
    let mma = Mma::thread_slice(thread_idx());
    let mut sums = mma.fragment_c::<TileC, f32>(0.0);
    for k_tile in 0..a.tiles::<Tile>()[1] {
        let full = pipeline.wait();
        fill(k_tile + Pipeline::AHEAD, pipeline.acquire());
        pipeline.commit();
        // SAFETY: the stage is full, and filled again after the next wait.
        unsafe { multiply(&mut sums, ring_a.stage(full), ring_b.stage(full), mma) };
    }
    pipeline.drain();
    store(&sums, c, (row, column), mma);
}

/// Adds the products of a tile of A and one of B to the thread's accumulators.
///
/// # Safety
/// Barriers must order the reads after the tiles' writes, and before those that follow.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn multiply(
    sums: &mut Sums,
    a: Stored,
    b: Stored,
    mma: ThreadMma<Mma, impl ThreadIndex>,
) {
    // SAFETY: as promised by the caller.
    let (a, b) = unsafe { (a.tensor(), b.tensor()) };
    each::<Steps<Mma, Tile>>(|step| {
        let of_a = load_a(LdMatrix, mma, a, step);
        let of_b = load_b(LdMatrix, mma, b, step);
        multiply_step(mma, &of_a, &of_b, sums);
    });
}

/// Rounds the thread's accumulators to bf16, and stores them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn store(
    sums: &Sums,
    c: Output,
    at: (impl TileIndex, impl TileIndex),
    mma: ThreadMma<Mma, impl ThreadIndex>,
) {
    mma.partition_c_in_vectors::<2, _>(c.local_tile::<TileC>(at))
        .store_with(|v| Float::from_f32(sums.get(v)));
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &mma_sync)?;
    let (extents, grid) = (it.extents(), it.grid([128, 128]));
    // SAFETY: the operands have these extents. `Step::gemm` has checked n and k, and buffers are aligned to 256 bytes.
    unsafe { stream.launch(&function, grid, (extents, it.a, it.b, it.c.reborrow())) }?;
    Ok(())
}
