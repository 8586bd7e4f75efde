//! A pipelined GEMM: loads, matrix instructions and stores together, at sizes that tiles do not divide.

use cutlet_device::collective::*;
use cutlet_device::sm90::*;
use cutlet_device::tile::{
    KMajor, KMajorTile, Major, MnMajor, OperandLayout, OperandTile, SwizzleSpan,
};
use cutlet_device::tma::{
    CacheHint, LoadOptions, tma_store_commit, tma_store_wait, tma_store_wait_read,
};
use cutlet_device::warpgroup::{
    decrease_registers, increase_registers, warpgroup_idx, warpgroup_thread_idx,
};
use cutlet_device::{SharedMemory, fence_async_shared, sync_threads, thread_idx};
use half::bf16;

use crate::fixture::{Matrix, launch};

/// Computes C as a GEMM kernel does: a producer and two consumers share a pipeline, and TMA stores C from shared
/// memory.
fn check_gemm<JA: Major, JB: Major>(m: usize, n: usize, k: usize)
where
    Wgmma<64, bf16, bf16, JA, JB>:
        WgmmaInstruction<A = bf16, B = bf16, Acc = f32, MajorA = JA, MajorB = JB>,
{
    type Tile<J, const MN: usize> = OperandTile<bf16, J, MN, 64>;
    const STAGES: usize = 3;
    type Ring<J, const MN: usize> =
        TileRing<bf16, OperandLayout<bf16, J, MN, 64, 128>, SwizzleSpan<bf16, 128>, Stages<STAGES>>;
    type TileC = KMajorTile<bf16, 128, 64>;
    let extents = |major: bool, mn: usize| if major { (mn, k) } else { (k, mn) };
    let (rows_a, columns_a) = extents(JA::IS_K_MAJOR, m);
    let (rows_b, columns_b) = extents(JB::IS_K_MAJOR, n);
    let a = Matrix::<bf16>::new(rows_a, columns_a, 1);
    let b = Matrix::<bf16>::new(rows_b, columns_b, 2);
    let c = Matrix {
        elements: vec![bf16::NAN; m * n],
        rows: m,
        columns: n,
    };
    let map_a = a.map(Tile::<JA, 128>::tile_box(1));
    let map_b = b.map(Tile::<JB, 64>::tile_box(1));
    let map_c = c.map(TileC::tile_box(2));
    let (tiles_m, tiles_n, k_tiles) = (m.div_ceil(128), n.div_ceil(64), k.div_ceil(64));
    launch(384, 2, 1, || {
        let mut shared = SharedMemory::new();
        let ring_a = Ring::<JA, 128>::take(&mut shared);
        let ring_b = Ring::<JB, 64>::take(&mut shared);
        let tile_c = TileC::take(&mut shared);
        let pipeline = Pipeline::<Stages<STAGES>>::take(&mut shared);
        if thread_idx().get() == 0 {
            // SAFETY: no thread uses the barriers before the block's barrier.
            unsafe { pipeline.init(1, 2) };
        }
        sync_threads();
        let tiles = (cutlet_device::block_idx().x.get() as usize..tiles_m * tiles_n).step_by(2);
        let warpgroup = warpgroup_idx();
        if warpgroup.get() == 0 {
            decrease_registers::<24>();
            if thread_idx().get() == 0 {
                let mut producer = pipeline.producer();
                for tile in tiles {
                    let (row, column) =
                        ((tile % tiles_m * 128) as i32, (tile / tiles_m * 64) as i32);
                    for k_tile in 0..k_tiles as i32 {
                        let filling = producer.acquire((128 + 64) * 64 * 2);
                        let (stage, barrier) = (filling.stage(), filling.barrier());
                        let options = LoadOptions::DEFAULT.hint(CacheHint::EvictLast);
                        // SAFETY: the maps are of these tiles; the stage is empty.
                        unsafe {
                            ring_a
                                .stage(stage)
                                .load(&map_a, [row, 64 * k_tile], barrier, options);
                            ring_b.stage(stage).load(
                                &map_b,
                                [column, 64 * k_tile],
                                barrier,
                                options,
                            );
                        }
                    }
                }
                producer.drain();
            }
            return;
        }
        increase_registers::<240>();
        let consumer_idx = warpgroup.after(1).get();
        let thread = warpgroup_thread_idx();
        let mut consumer = pipeline.consumer();
        for tile in tiles {
            let (row, column) = ((tile % tiles_m * 128) as i32, (tile / tiles_m * 64) as i32);
            let mut accumulators = Accumulator::<Wgmma<64, bf16, bf16, JA, JB>>::new();
            let mut last = None;
            for k_tile in 0..k_tiles {
                let filled = consumer.wait();
                let a = ring_a.operand_a(filled.stage()).rows(consumer_idx);
                let b = ring_b.operand_b(filled.stage());
                let group = warpgroup_arrive();
                for i in 0..4 {
                    // SAFETY: the stage is full until it is released.
                    unsafe {
                        group.mma(&mut accumulators, a.k_step(i), b.k_step(i), k_tile + i > 0)
                    };
                }
                group.commit();
                warpgroup_wait::<1>();
                if let Some(done) = last.replace(filled) {
                    consumer.release(done, thread);
                }
            }
            let accumulators = accumulators.wait();
            if let Some(done) = last {
                consumer.release(done, thread);
            }
            // The tile of C may be overwritten once the store before has read it.
            if thread.get() == 0 {
                tma_store_wait_read::<0>();
            }
            cutlet_device::barrier_sync(1 + consumer_idx, 128);
            // SAFETY: these rows of the tile are this warpgroup's.
            unsafe {
                store_accumulator::<Wgmma<64, bf16, bf16, JA, JB>, _, _, _>(
                    tile_c,
                    consumer_idx,
                    0,
                    thread,
                    &accumulators,
                )
            };
            fence_async_shared();
            cutlet_device::barrier_sync(1 + consumer_idx, 128);
            if thread.get() == 0 {
                // SAFETY: the map is of this tile, which is written.
                unsafe { tile_c.store_part::<2, 2>(consumer_idx, &map_c, [row, column]) };
                tma_store_commit();
            }
        }
        if thread.get() == 0 {
            tma_store_wait::<0>();
        }
    })
    .unwrap();
    let at = |matrix: &Matrix<bf16>, k_major: bool, mn: usize, k: usize| {
        if k_major {
            matrix.at(mn, k)
        } else {
            matrix.at(k, mn)
        }
    };
    for row in 0..m {
        for column in 0..n {
            let sum: f32 = (0..k)
                .map(|k| at(&a, JA::IS_K_MAJOR, row, k) * at(&b, JB::IS_K_MAJOR, column, k))
                .sum();
            let expected = bf16::from_f32(sum).to_f32();
            assert_eq!(c.at(row, column), expected, "({row}, {column})");
        }
    }
}

#[test]
fn a_pipelined_gemm_is_right_at_odd_sizes() {
    check_gemm::<KMajor, KMajor>(200, 104, 136);
    check_gemm::<KMajor, MnMajor>(136, 72, 72);
    check_gemm::<MnMajor, KMajor>(72, 136, 200);
    check_gemm::<MnMajor, MnMajor>(264, 64, 8);
}
