//! `ldmatrix`, of rows in any place of shared memory.

use cutlet_device::cp_async::{cp_async, cp_async_commit, cp_async_wait};
use cutlet_device::{
    DeviceData, Global, Shared, SharedMemory, ldmatrix, ldmatrix_transposed, sync_threads,
    thread_idx,
};
use cutlet_layout_core::{CopyAtom, M16N8K16Bits16, Mma};

use crate::fixture::{failure, launch, says};

/// The bytes of row `r` of matrix `m`.
fn row(m: usize, r: usize) -> [u8; 16] {
    std::array::from_fn(|i| (m * 64 + r * 8 + i * 3) as u8 ^ (i * 16) as u8)
}

/// Loads matrices whose rows lie in reverse order.
fn load<T: DeviceData, const MATRICES: usize>(
    by: unsafe fn(Shared<T>) -> [u32; MATRICES],
    expected: impl Fn(usize, usize) -> [u8; 4] + Sync,
) {
    launch(64, 1, 1, || {
        let mut shared = SharedMemory::new();
        let rows: Shared<u8> = shared.take(2 * 8 * MATRICES * 16);
        let (warp, lane) = (
            thread_idx().get() as usize / 32,
            thread_idx().get() as usize % 32,
        );
        let at = |index: usize| rows.offset(((warp + 1) * 8 * MATRICES - 1 - index) as i64 * 16);
        if lane < 8 * MATRICES {
            // SAFETY: each lane has a row of its own.
            unsafe { at(lane).store_vec(0, row(lane / 8, lane % 8)) };
        }
        sync_threads();
        // The address of a lane without a row does not matter.
        let own = if lane < 8 * MATRICES {
            at(lane).cast::<T>()
        } else {
            Shared::from_address(u32::MAX)
        };
        // SAFETY: the rows were written before the barrier.
        let registers = unsafe { by(own) };
        for (matrix, register) in registers.iter().enumerate() {
            assert_eq!(
                register.to_le_bytes(),
                expected(matrix, lane),
                "lane {lane}, matrix {matrix}"
            );
        }
    })
    .unwrap();
}

#[test]
fn rows_are_dealt_to_lanes() {
    let expected = |matrix: usize, lane: usize| {
        let first = 4 * (lane % 4);
        row(matrix, lane / 4)[first..first + 4].try_into().unwrap()
    };
    load(ldmatrix::<u8, 1>, expected);
    load(ldmatrix::<u16, 2>, expected);
    load(ldmatrix::<f32, 4>, expected);
}

#[test]
fn transposed_matrices_are_dealt_by_columns() {
    let expected = |matrix: usize, lane: usize| {
        let element = |r: usize| {
            let row = row(matrix, r);
            [row[2 * (lane / 4)], row[2 * (lane / 4) + 1]]
        };
        let [[a, b], [c, d]] = [element(lane % 4 * 2), element(lane % 4 * 2 + 1)];
        [a, b, c, d]
    };
    load(ldmatrix_transposed::<u16, 1>, expected);
    load(ldmatrix_transposed::<u16, 2>, expected);
    load(ldmatrix_transposed::<u16, 4>, expected);
}

/// A row-major 16×16 tile gets to the registers in which `mma.m16n8k16` reads A.
#[test]
fn a_tile_gets_to_the_registers_of_a() {
    let source = CopyAtom::ldmatrix(4, 16);
    assert_eq!(source.source().mode(0).size(), 32);
    launch(32, 1, 1, || {
        let tile: Shared<u16> = SharedMemory::new().take(256);
        let lane = thread_idx().get();
        for i in (i64::from(lane)..256).step_by(32) {
            // SAFETY: each lane has its own elements.
            unsafe { tile.store(i, i as u16) };
        }
        sync_threads();
        let (row, column) = (lane % 16, lane / 16 * 8);
        // SAFETY: the tile was written before the barrier.
        let a: [u32; 4] = unsafe { ldmatrix(tile.offset(i64::from(16 * row + column))) };
        let layout = M16N8K16Bits16::ATOM;
        for v in 0..8 {
            let at = layout.a().at(i64::from(lane) + 32 * v as i64);
            let element = (a[v / 2] >> (16 * (v % 2))) as u16;
            assert_eq!(i64::from(element), at % 16 * 16 + at / 16);
        }
    })
    .unwrap();
}

#[test]
fn wrong_rows_are_errors() {
    let at = |address: u32| {
        failure(launch(32, 1, 1, || {
            let row = Shared::<u16>::from_address(address + 16 * thread_idx().get());
            // SAFETY: the access fails, or reads memory that no thread writes.
            unsafe { ldmatrix::<_, 4>(row) };
        }))
    };
    says(&at(8), &["at offset 8", "not a multiple of 16 bytes"]);
    says(
        &at(200 * 1024 - 16),
        &["thread (1, 0, 0)", "but the block has 204800 bytes"],
    );
}

#[test]
fn lanes_of_ldmatrix_know_only_what_they_waited_for() {
    let row = [7u32; 4];
    let address = row.as_ptr().expose_provenance();
    let run = |synchronised: bool| {
        launch(32, 1, 1, || {
            let from = Global::from_ptr(std::ptr::with_exposed_provenance(address));
            let rows: Shared<u32> = SharedMemory::new().take(4 * 32);
            let own = rows.offset(i64::from(4 * thread_idx().get()));
            // SAFETY: the elements are there, and each lane has its own row.
            unsafe {
                cp_async::<u32, 4>(own, from, 4);
                cp_async_commit();
                cp_async_wait::<0>();
                if synchronised {
                    cutlet_device::sync_warp();
                }
                assert_eq!(ldmatrix::<_, 4>(own), [7; 4]);
            }
        })
    };
    run(true).unwrap();
    says(
        &failure(run(false)),
        &["is used too early", "by cp.async in its group 0"],
    );
}
