//! Step 5, `cp.async`: copies to shared memory run while threads multiply. They go through no register.
//!
//! Four stages of shared memory form a ring. One is multiplied, and three are on their way.

use cutlet_device::collective::{Stages, TileRing};
use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
use cutlet_device::tile::{KMajor, OperandLayout, SwizzleSpan};
use cutlet_device::tiled::{CpAsync, copy};
use cutlet_device::{Float, Global, GlobalMut, block_idx, kernel, sync_threads, thread_idx};
use cutlet_layout_core::{Fragment, L, TiledCopy};
use half::bf16;

use crate::matrices::matrices;
use crate::step4_vector_loads::{OfC, Sums, Tile, TileC, multiply};

/// 64×4 threads, each with a vector of 8 elements of a row at a time: the threads of step 4, with an instruction.
type Copy = TiledCopy<CpAsync<8>, L!((64, 4):(4, 1)), L!((1, 8):(0, 1))>;
/// Stages of the ring.
const STAGES: u32 = 4;
/// A tile of step 4 for each stage.
type Ring = TileRing<
    bf16,
    OperandLayout<bf16, KMajor, 128, 32, 64>,
    SwizzleSpan<bf16, 64>,
    Stages<{ STAGES as usize }>,
>;

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The matrices must have these extents: m, n and k. Their addresses and k in bytes must be multiples of 16.
#[kernel(threads = 256)]
pub unsafe fn cp_async_ring(
    extents: [i32; 3],
    a: Global<bf16>,
    b: Global<bf16>,
    c: GlobalMut<bf16>,
    #[shared] rings: (Ring, Ring),
) {
    // SAFETY: the launcher promises the extents.
    let (a, b, c) = unsafe { matrices(extents, a, b, c) };
    let (row, column) = (block_idx().y, block_idx().x);
    let thread = thread_idx();
    let (ring_a, ring_b) = rings;
    let copier = Copy::thread_slice(thread);
    // Tiles beyond the last one are zeros, for which nothing is read. They are a group, too, so that each turn has one.
    let fill = |k_tile: u32| {
        let stage = k_tile % STAGES;
        // SAFETY: all threads have read the stage, or it was never filled.
        let (to_a, to_b) = unsafe { (ring_a.tile(stage).tensor(), ring_b.tile(stage).tensor()) };
        let from_a = copier.partition(a.local_tile::<Tile>((row, k_tile)));
        let from_b = copier.partition(b.local_tile::<Tile>((column, k_tile)));
        copy(&from_a, &copier.partition(to_a));
        copy(&from_b, &copier.partition(to_b));
        cp_async_commit();
    };

    for k_tile in 0..STAGES - 1 {
        fill(k_tile);
    }
    let mut sums = Fragment::<f32, Sums>::filled(0.0);
    for k_tile in 0..a.tiles::<Tile>()[1] {
        // Of the groups that are on their way, this k-tile's is the oldest.
        cp_async_wait::<{ STAGES - 2 }>();
        // Now all threads' copies have arrived. And all threads have read the stage of the k-tile before: it is filled.
        sync_threads();
        fill(k_tile + STAGES - 1);
        let stage = k_tile % STAGES;
        // SAFETY: the stage is full, and filled again after the next barrier.
        unsafe { multiply(&mut sums, ring_a.tile(stage), ring_b.tile(stage), thread) };
    }
    cp_async_wait::<0>();
    c.local_tile::<TileC>((row, column))
        .partition::<OfC>(thread)
        .store_with(|v| Float::from_f32(sums.get(v)));
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &cp_async_ring)?;
    let (extents, grid) = (it.extents(), it.grid([128, 128]));
    // SAFETY: the operands have these extents. `Step::gemm` has checked k, and buffers are aligned to 256 bytes.
    unsafe { stream.launch(&function, grid, (extents, it.a, it.b, it.c.reborrow())) }?;
    Ok(())
}
