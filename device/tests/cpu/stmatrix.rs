//! `stmatrix`, and accumulators stored to tiles by it.

use cutlet_device::sm90::*;
use cutlet_device::tile::{KMajor, MnMajor, OperandLayout, SharedTile, SwizzleSpan};
use cutlet_device::warpgroup::warpgroup_thread_idx;
use cutlet_device::{
    Float, MmaInstruction, Shared, SharedMemory, stmatrix, stmatrix_transposed, sync_threads,
    thread_idx,
};
use cutlet_layout_core::{Fragment, StaticLayout, StaticSwizzle};
use half::{bf16, f16};

use crate::fixture::{launch, small};

#[test]
fn stmatrix_stores_rows_or_columns() {
    launch(32, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (rows, columns): (Shared<u16>, Shared<u16>) = (shared.take(256), shared.take(256));
        let lane = thread_idx().get();
        // Element (r, c) of matrix i is 64 i + 8 r + c.
        let register = |i: usize| {
            let first = 64 * i as u32 + lane / 4 * 8 + lane % 4 * 2;
            first | (first + 1) << 16
        };
        let registers: [u32; 4] = std::array::from_fn(register);
        let line = i64::from(8 * lane);
        // SAFETY: each lane has 16 bytes of its own, and there are 256 elements.
        unsafe {
            stmatrix(rows.offset(line), registers);
            stmatrix_transposed(columns.offset(line), registers);
            sync_threads();
            for i in 0..8 {
                let (matrix, r) = (lane as u16 / 8, lane as u16 % 8);
                assert_eq!(rows.load(line + i), 64 * matrix + 8 * r + i as u16);
                assert_eq!(columns.load(line + i), 64 * matrix + 8 * i as u16 + r);
            }
            sync_threads();
            // A fifth and a sixth matrix replace the first two.
            stmatrix(rows.offset(line), [register(4), register(5)]);
            stmatrix_transposed(columns.offset(line), [register(4), register(5)]);
            sync_threads();
            for i in 0..8 {
                let (matrix, r) = (lane as u16 / 8, lane as u16 % 8);
                let now = if matrix < 2 { matrix + 4 } else { matrix };
                assert_eq!(rows.load(line + i), 64 * now + 8 * r + i as u16);
                assert_eq!(columns.load(line + i), 64 * now + 8 * i as u16 + r);
            }
        }
    })
    .unwrap();
}

#[test]
fn accumulators_are_stored_along_the_consecutive_coordinate() {
    type Mma = Wgmma<64, bf16>;
    // Stores all columns of the accumulators, a tile of `L` at a time.
    fn check<T: StoredAccumulator<Acc = f32> + Float, L: StaticLayout, W: StaticSwizzle>() {
        let columns = L::LAYOUT.mode(1).size();
        launch(128, 1, 1, || {
            let mut shared = SharedMemory::new();
            let tile = SharedTile::<T, L, W>::take(&mut shared);
            let thread = warpgroup_thread_idx();
            let value = |m: i64, n: i64| small((m * 64 + n) as usize) as f32;
            let accumulators = Fragment::from_fn(|v| {
                type Values = <Mma as MmaInstruction>::Values;
                let at = |d| {
                    WarpgroupThreads::LAYOUT.at_basis(i64::from(thread.get()), d)
                        + Values::LAYOUT.at_basis(v as i64, d)
                };
                value(at(0), at(1))
            });
            for subtile in 0..64 / columns {
                // SAFETY: no other thread uses the tile, and all threads have read the subtile before.
                unsafe {
                    store_accumulator::<Mma, _, _, _>(
                        tile,
                        1,
                        subtile as usize,
                        thread,
                        &accumulators,
                    )
                };
                sync_threads();
                for i in (i64::from(thread.get())..64 * columns).step_by(128) {
                    let (m, n) = (i % 64, i / 64);
                    let index = W::apply(L::LAYOUT.at(128 * n + 64 + m) as u32);
                    // SAFETY: all of the tile's second half was written.
                    let stored = unsafe { tile.start().load(i64::from(index)) };
                    assert_eq!(
                        stored.to_f32(),
                        value(m, subtile * columns + n),
                        "({m}, {n})"
                    );
                }
                sync_threads();
            }
        })
        .unwrap();
    }
    check::<f16, OperandLayout<f16, KMajor, 128, 64, 128>, SwizzleSpan<f16, 128>>();
    check::<f16, OperandLayout<f16, KMajor, 128, 64, 64>, SwizzleSpan<f16, 64>>();
    check::<f16, OperandLayout<f16, MnMajor, 128, 64, 128>, SwizzleSpan<f16, 128>>();
    check::<f16, OperandLayout<f16, KMajor, 128, 16, 32>, SwizzleSpan<f16, 32>>();
    check::<f16, OperandLayout<f16, MnMajor, 128, 16, 32>, SwizzleSpan<f16, 32>>();
    check::<f16, OperandLayout<f16, MnMajor, 128, 8, 32>, SwizzleSpan<f16, 32>>();
    check::<f32, OperandLayout<f32, KMajor, 128, 32, 128>, SwizzleSpan<f32, 128>>();
    check::<f32, OperandLayout<f32, KMajor, 128, 16, 64>, SwizzleSpan<f32, 64>>();
    check::<f32, OperandLayout<f32, MnMajor, 128, 16, 64>, SwizzleSpan<f32, 64>>();
}
