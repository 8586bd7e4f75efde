//! Tiled products of warpgroups, with A in shared memory or in registers, compared with plain loops.

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::sm90::{Accumulator, Wgmma, warpgroup_arrive};
use cutlet_device::tile::{KMajor, MnMajor, OperandTile};
use cutlet_device::tiled::*;
use cutlet_device::warpgroup::{ThreadOfWarpgroups, warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::{
    GlobalMut, MmaInstruction, SharedMemory, Threads, fence_async_shared, sync_threads, thread_idx,
};
use cutlet_layout_core::{L, RowMajor, Tensor, TiledMma, Width};
use half::{bf16, f16};

use crate::fixture::{failure, fill, launch, says, small};

fn value_a(row: usize, k: usize) -> i32 {
    small(row * 131 + k * 7)
}

fn value_b(row: usize, k: usize) -> i32 {
    small(row * 37 + k * 1013 + 5)
}

/// C is `times` the product over `k`.
fn assert_product(c: &[f32], columns: usize, k: usize, times: f32) {
    for (i, found) in c.iter().enumerate() {
        let (row, column) = (i / columns, i % columns);
        let sum: i32 = (0..k).map(|k| value_a(row, k) * value_b(column, k)).sum();
        assert_eq!(*found, times * sum as f32, "({row}, {column})");
    }
}

/// Adds the product of an M×K tile of A, which `$atom` reads to registers, and an N×K tile of B twice.
macro_rules! check_registers {
    ($wgmma:ty, $warps:ty, $atom:expr, A: $ja:ty, $sa:literal, B: $jb:ty, $sb:literal,
        [$m:literal, $n:literal, $k:literal], $steps:literal steps, $atoms:literal atoms) => {{
        type Instruction = $wgmma;
        type Product = TiledMma<Instruction, $warps>;
        type TileA = OperandTile<<Instruction as MmaInstruction>::A, $ja, $m, $k, $sa>;
        type TileB = OperandTile<<Instruction as MmaInstruction>::B, $jb, $n, $k, $sb>;
    type TileC = L!(($m, $n):(1@0, 1@1));
        let c = vec![f32::NAN; $m * $n];
        let to = GlobalMut::from_ptr(c.as_ptr().cast_mut());
        launch(Product::THREADS, 1, 1, || {
            let mut shared = SharedMemory::new();
            let (a, b) = (TileA::take(&mut shared), TileB::take(&mut shared));
            fill(a, value_a);
            fill(b, value_b);
            fence_async_shared();
            sync_threads();
            let thread = thread_idx().of_block::<Threads<{ Product::THREADS }>>();
            let mma = Product::thread_slice(thread);
            // SAFETY: the tile is written.
            let a: [[_; $steps]; $atoms] = load_registers_a($atom, mma, unsafe { a.tensor() });
            let mut sums = Accumulator::new_array();
            for accumulate in [false, true] {
                let group = warpgroup_arrive();
                // SAFETY: B is written, and A lives until the wait.
                unsafe { gemm_from_registers(&group, mma, &a, b, &mut sums, accumulate) };
                group.commit();
            }
            let sums = wait_c::<_, _, _, TileC, $atoms>(mma, sums);
            // SAFETY: C has as many elements.
            let c = unsafe { Tensor::new(to, RowMajor::new([$m, $n], $n)) };
            store_c(ByElement, mma, c.local_tile::<TileC>((0, 0)), &sums);
        })
        .unwrap();
        assert_product(&c, $n, $k, 2.0);
    }};
}

type One = L!((1, 1):(0, 0));
type Below = L!((2, 1):(1, 0));
type Aside = L!((1, 2):(0, 1));
type Four = L!((2, 2):(1, 2));

#[test]
fn registers_of_a_are_loaded_by_ldmatrix() {
    check_registers!(Wgmma<96, bf16>, Below, LdMatrix, A: KMajor, 128, B: KMajor, 128, [256, 96, 64], 4 steps, 2 atoms);
    check_registers!(Wgmma<64, f16>, Aside, LdMatrix, A: KMajor, 64, B: KMajor, 64, [64, 128, 32], 2 steps, 1 atoms);
    check_registers!(Wgmma<32, bf16, bf16, KMajor, MnMajor>, Four, LdMatrix,
        A: KMajor, 32, B: MnMajor, 64, [128, 64, 48], 3 steps, 1 atoms);
}

#[test]
fn lines_along_m_are_transposed() {
    check_registers!(Wgmma<40, bf16>, One, LdMatrixTransposed, A: MnMajor, 128, B: KMajor, 128, [64, 40, 64], 4 steps, 1 atoms);
    check_registers!(Wgmma<64, f16>, Below, LdMatrixTransposed, A: MnMajor, 64, B: KMajor, 64, [256, 64, 32], 2 steps, 2 atoms);
}

#[test]
fn registers_of_other_widths() {
    check_registers!(Wgmma<16, f32>, One, LdMatrix, A: KMajor, 128, B: KMajor, 128, [64, 16, 32], 4 steps, 1 atoms);
    check_registers!(Wgmma<16, F8E4M3>, Below, LdMatrix, A: KMajor, 64, B: KMajor, 64, [128, 16, 64], 2 steps, 1 atoms);
    check_registers!(Wgmma<24, F8E5M2, F8E4M3>, One, LdMatrix, A: KMajor, 32, B: KMajor, 128, [128, 24, 128], 4 steps, 2 atoms);
}

#[test]
fn every_tile_is_read_by_element() {
    check_registers!(Wgmma<32, bf16>, Below, ByElement, A: MnMajor, 128, B: KMajor, 64, [128, 32, 32], 2 steps, 1 atoms);
    check_registers!(Wgmma<8, f32>, One, ByElement, A: MnMajor, 32, B: KMajor, 32, [128, 8, 8], 1 steps, 2 atoms);
    check_registers!(Wgmma<8, F8E4M3>, One, ByElement, A: KMajor, 32, B: KMajor, 32, [64, 8, 32], 1 steps, 1 atoms);
}

/// `(A·Bᵀ)·Bᵀ`, where the first product stays in registers.
#[test]
fn accumulators_become_registers_of_a() {
    type First = TiledMma<Wgmma<64, bf16>, Below>;
    type Second = TiledMma<Wgmma<64, bf16, bf16, KMajor, MnMajor>, Below>;
    type Tile = L!((256, 64):(1@0, 1@1));
    // Sums of 16 products of a few ones are exact in bf16.
    let (ones_of_a, ones_of_b) = (
        |row: usize, k: usize| i32::from(value_a(row, k) > 2),
        |row: usize, k: usize| i32::from(value_b(row, k) > 1),
    );
    let c = vec![f32::NAN; 256 * 64];
    let to = GlobalMut::from_ptr(c.as_ptr().cast_mut());
    launch(256, 1, 1, || {
        let mut shared = SharedMemory::new();
        let a = OperandTile::<bf16, KMajor, 256, 16, 32>::take(&mut shared);
        let b = OperandTile::<bf16, KMajor, 64, 16, 32>::take(&mut shared);
        let of_rows = OperandTile::<bf16, MnMajor, 64, 64, 128>::take(&mut shared);
        fill(a, ones_of_a);
        fill(b, ones_of_b);
        fill(of_rows, ones_of_b);
        fence_async_shared();
        sync_threads();
        let thread = thread_idx().of_block::<Threads<256>>();
        let (first, second) = (First::thread_slice(thread), Second::thread_slice(thread));
        let mut sums = Accumulator::new_array::<2>();
        let group = warpgroup_arrive();
        // SAFETY: the tiles are written, and no thread writes to them again.
        unsafe { gemm_shared(&group, first, a, b, &mut sums, false) };
        group.commit();
        let products = wait_c::<_, _, _, Tile, 2>(first, sums);
        let products: [[_; 4]; 2] = accumulators_as_registers_a(first, &products);
        let mut sums = Accumulator::new_array::<2>();
        let group = warpgroup_arrive();
        // SAFETY: as above. The registers live until the wait.
        unsafe { gemm_from_registers(&group, second, &products, of_rows, &mut sums, false) };
        group.commit();
        let sums = wait_c::<_, _, _, Tile, 2>(second, sums);
        // SAFETY: C has as many elements.
        let c = unsafe { Tensor::new(to, RowMajor::new([256, 64], 64)) };
        store_c(Width::<2>, second, c.local_tile::<Tile>((0, 0)), &sums);
    })
    .unwrap();
    let first = |row: usize, column: usize| -> i32 {
        (0..16)
            .map(|k| ones_of_a(row, k) * ones_of_b(column, k))
            .sum()
    };
    for (i, found) in c.iter().enumerate() {
        let (row, column) = (i / 64, i % 64);
        let sum: i32 = (0..64).map(|k| first(row, k) * ones_of_b(column, k)).sum();
        assert_eq!(*found, sum as f32, "({row}, {column})");
    }
}

#[test]
fn registers_that_are_made_in_an_open_group_are_refused() {
    type Product = TiledMma<Wgmma<8, bf16>, One>;
    let result = launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let a = OperandTile::<bf16, KMajor, 64, 16, 32>::take(&mut shared);
        let b = OperandTile::<bf16, KMajor, 8, 16, 32>::take(&mut shared);
        fill(a, value_a);
        fill(b, value_b);
        fence_async_shared();
        sync_threads();
        let mma = Product::thread_slice(warpgroup_thread_idx());
        let mut sums = Accumulator::new_array::<1>();
        let group = warpgroup_arrive();
        // SAFETY: the model refuses what is wrong here.
        unsafe {
            let a: [[_; 1]; 1] = load_registers_a(LdMatrix, mma, a.tensor());
            gemm_from_registers(&group, mma, &a, b, &mut sums, false);
            group.commit();
            wait_c::<_, _, _, L!((64, 8):(1@0, 1@1)), 1>(mma, sums);
        }
    });
    says(
        &failure(result),
        &["filled after its fence", "tiled_registers.rs"],
    );
}

/// The second and the third warpgroup of a block multiply tiles in shared memory, or each its own.
#[test]
fn some_warpgroups_of_a_block_multiply() {
    type Both = TiledMma<Wgmma<64, bf16>, Below>;
    type Each = TiledMma<Wgmma<64, bf16>, One>;
    type Tile = L!((128, 64):(1@0, 1@1));
    type Half = L!((64, 64):(1@0, 1@1));
    for together in [true, false] {
        let c = vec![f32::NAN; 128 * 64];
        let to = GlobalMut::from_ptr(c.as_ptr().cast_mut());
        launch(384, 1, 1, || {
            let mut shared = SharedMemory::new();
            let a = OperandTile::<bf16, KMajor, 128, 64>::take(&mut shared);
            let b = OperandTile::<bf16, KMajor, 64, 64>::take(&mut shared);
            fill(a, value_a);
            fill(b, value_b);
            fence_async_shared();
            sync_threads();
            let (warpgroup, thread) = (warpgroup_idx(), warpgroup_thread_idx());
            if warpgroup.is_first() {
                return;
            }
            let consumer = warpgroup.after(1);
            // SAFETY: C has as many elements.
            let c = unsafe { Tensor::new(to, RowMajor::new([128, 64], 64)) };
            let mut sums = Accumulator::new_array::<1>();
            let group = warpgroup_arrive();
            if together {
                let mma = Both::thread_slice(ThreadOfWarpgroups::<2>::new(consumer, thread));
                // SAFETY: the tiles are written, and no thread writes to them again.
                unsafe { gemm_shared(&group, mma, a.operand_a(), b, &mut sums, false) };
                group.commit();
                let sums = wait_c::<_, _, _, Tile, 1>(mma, sums);
                store_c(ByElement, mma, c.local_tile::<Tile>((0, 0)), &sums);
            } else {
                let mma = Each::thread_slice(thread);
                let rows = a.start().offset(i64::from(consumer.get()) * 64 * 64);
                let rows = OperandTile::<bf16, KMajor, 64, 64>::from_shared(rows);
                // SAFETY: as above.
                unsafe { gemm_shared(&group, mma, rows, b.operand_b(), &mut sums, false) };
                group.commit();
                let sums = wait_c::<_, _, _, Half, 1>(mma, sums);
                store_c(ByElement, mma, c.local_tile::<Half>((consumer, 0)), &sums);
            }
        })
        .unwrap();
        assert_product(&c, 64, 64, 1.0);
    }
}
