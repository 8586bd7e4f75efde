//! Step 7, TMA and mbarriers: one thread asks for whole tiles, and the copy engine computes their addresses.
//!
//! A stage has a barrier in shared memory. It counts the bytes that arrive, and threads wait for its phase to end. The
//! product is that of step 6.

use cutlet_device::collective::{Stages, TileRing};
use cutlet_device::mbarrier::{Mbarrier, fence_mbarrier_init};
use cutlet_device::tile::{KMajor, OperandLayout, SwizzleSpan};
use cutlet_device::tiled::{TmaLoad, TmaMatrix, copy_tile};
use cutlet_device::tma::TensorMap;
use cutlet_device::{
    GlobalMut, SharedArray, block_idx, elect_one, kernel, sync_threads, thread_idx, warp_idx_sync,
};
use half::bf16;

use crate::matrices::output;
use crate::step6_mma_sync::{Mma, Stored, Tile, TileC, multiply, store};

/// Stages of the ring.
const STAGES: u32 = 3;
/// A tile of [`Stored`] for each stage.
type Ring = TileRing<
    bf16,
    OperandLayout<bf16, KMajor, 128, 64, 128>,
    SwizzleSpan<bf16, 128>,
    Stages<{ STAGES as usize }>,
>;
/// A barrier for each stage.
type Barriers = SharedArray<u64, { STAGES as usize }>;

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The maps must describe A as (m, k) and B as (n, k), with the boxes of [`Stored`]. C must have these extents, m and
/// n, and n is even.
#[kernel(threads = 256, arch = "sm_90a")]
pub unsafe fn tma(
    #[grid_constant] map_a: &TensorMap,
    #[grid_constant] map_b: &TensorMap,
    extents: [i32; 2],
    k_tiles: u32,
    c: GlobalMut<bf16>,
    #[shared] storage: (Ring, Ring, Barriers),
) {
    // SAFETY: the launcher promises the maps and the extents.
    let (a, b, c) = unsafe {
        (
            TmaMatrix::new(map_a),
            TmaMatrix::new(map_b),
            output(extents, c),
        )
    };
    let (row, column) = (block_idx().y, block_idx().x);
    let warp = warp_idx_sync();
    let (ring_a, ring_b, words) = storage;
    let full = |stage: u32| Mbarrier::from_shared(words.offset(i64::from(stage)));
    if warp.is_first() && elect_one() {
        for stage in 0..STAGES {
            // SAFETY: no thread uses the barriers before the block's barrier.
            unsafe { full(stage).init(1) };
        }
        fence_mbarrier_init();
    }
    sync_threads();
    let fill = |k_tile: u32| {
        if k_tile < k_tiles && warp.is_first() && elect_one() {
            let stage = k_tile % STAGES;
            full(stage).arrive_expect_tx(2 * Stored::BYTES);
            let load = TmaLoad::with(full(stage));
            let (a, b) = (
                a.local_tile::<Tile>((row, k_tile)),
                b.local_tile::<Tile>((column, k_tile)),
            );
            // SAFETY: the maps have these tiles' boxes. All threads have read the stage, or it was never filled.
            unsafe {
                copy_tile(load, a, ring_a.tile(stage));
                copy_tile(load, b, ring_b.tile(stage));
            }
        }
    };

    for k_tile in 0..STAGES - 1 {
        fill(k_tile);
    }
    let mma = Mma::thread_slice(thread_idx());
    let mut sums = mma.fragment_c::<TileC, f32>(0.0);
    for k_tile in 0..k_tiles {
        let stage = k_tile % STAGES;
        // A barrier's phases have parity 0 and 1 in turns. Each round through the ring is a phase.
        full(stage).wait(k_tile / STAGES % 2);
        // All threads have read the stage of the k-tile before, which is filled now.
        sync_threads();
        fill(k_tile + STAGES - 1);
        // SAFETY: the stage is full, and filled again after the next barrier.
        unsafe { multiply(&mut sums, ring_a.tile(stage), ring_b.tile(stage), mma) };
    }
    store(&sums, c, (row, column), mma);
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &tma)?;
    let map_a = it.map_of_a(Stored::tile_box(1))?;
    let map_b = it.map_of_b(Stored::tile_box(1))?;
    let [m, n, _] = it.extents();
    let (grid, k_tiles) = (it.grid([128, 128]), it.k.div_ceil(64) as u32);
    // SAFETY: the maps and C have these extents. `Step::gemm` has checked n.
    unsafe {
        stream.launch(
            &function,
            grid,
            (map_a, map_b, [m, n], k_tiles, it.c.reborrow()),
        )
    }?;
    Ok(())
}
