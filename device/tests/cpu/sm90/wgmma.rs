//! `wgmma` of every type, width, major and swizzle.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::operand::MatrixDescriptor;
use cutlet_device::sm90::*;
use cutlet_device::tile::{
    KMajor, KMajorTile, Major, MnMajor, OperandLayout, OperandTile, SharedTile, SwizzleSpan,
};
use cutlet_device::warpgroup::warpgroup_thread_idx;
use cutlet_device::{PartialSum, SharedMemory, fence_async_shared, sync_threads, thread_idx};
use cutlet_layout_core::{StaticLayout, StaticSwizzle, each};
use half::{bf16, f16};

use crate::fixture::{Element, failure, fill, launch, says, small};

/// Multiplies two tiles that threads wrote, and compares the accumulators with plain loops.
fn check_product<I, LA, WA, LB, WB>()
where
    I: WgmmaInstruction<A: Element, B: Element>,
    LA: StaticLayout,
    WA: StaticSwizzle,
    LB: StaticLayout,
    WB: StaticSwizzle,
{
    let k = LA::LAYOUT.mode(1).size() as usize;
    let a = |m: usize, k: usize| small(m * 131 + k * 7);
    let b = |n: usize, k: usize| small(n * 37 + k * 1013 + 5);
    let m_atoms = LA::LAYOUT.mode(0).size() as usize / 64;
    let wrong = AtomicU32::new(0);
    launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let tile_a = SharedTile::<I::A, LA, WA>::take(&mut shared);
        let tile_b = SharedTile::<I::B, LB, WB>::take(&mut shared);
        fill(tile_a, a);
        fill(tile_b, b);
        fence_async_shared();
        sync_threads();
        for m_atom in 0..m_atoms {
            let operand_a = tile_a.operand_a::<I>().rows(m_atom as u32);
            let operand_b = tile_b.operand_b::<I>();
            let mut accumulators = Accumulator::<I>::new();
            let group = warpgroup_arrive();
            for k_step in 0..k / I::K {
                // SAFETY: the tiles are written, and no thread writes to them again.
                unsafe {
                    group.mma(
                        &mut accumulators,
                        operand_a.k_step(k_step),
                        operand_b.k_step(k_step),
                        k_step > 0,
                    );
                }
            }
            group.commit();
            let accumulators = accumulators.wait();
            let thread = warpgroup_thread_idx().get() as i64;
            each::<I::Values>(|v| {
                let at = |direction| {
                    let start = WarpgroupThreads::LAYOUT.at_basis(thread, direction);
                    (start + I::Values::LAYOUT.at_basis(v as i64, direction)) as usize
                };
                let (m, n) = (64 * m_atom + at(0), at(1));
                let expected: i32 = (0..k).map(|k| a(m, k) * b(n, k)).sum();
                if accumulators.get(v).to_f32() != expected as f32 {
                    wrong.fetch_add(1, Relaxed);
                }
            });
        }
    })
    .unwrap();
    assert_eq!(wrong.into_inner(), 0);
}

/// [`check_product`] of a 128 × `k` tile A and an `n` × `k` tile B, with these majors and swizzles.
macro_rules! product {
    ($a:ty, $b:ty, $ja:ty, $jb:ty, n $n:literal, k $k:literal, swizzles $sa:literal $sb:literal) => {
        check_product::<
            Wgmma<$n, $a, $b, $ja, $jb>,
            OperandLayout<$a, $ja, 128, $k, $sa>,
            SwizzleSpan<$a, $sa>,
            OperandLayout<$b, $jb, $n, $k, $sb>,
            SwizzleSpan<$b, $sb>,
        >()
    };
}

#[test]
fn products_of_every_swizzle_and_major_are_right() {
    product!(bf16, bf16, KMajor, KMajor, n 64, k 64, swizzles 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 64, k 128, swizzles 128 64);
    product!(bf16, bf16, KMajor, KMajor, n 64, k 32, swizzles 32 64);
    product!(bf16, bf16, KMajor, KMajor, n 64, k 32, swizzles 16 16);
    product!(bf16, bf16, KMajor, MnMajor, n 128, k 64, swizzles 128 128);
    product!(bf16, bf16, MnMajor, KMajor, n 64, k 64, swizzles 128 64);
    product!(f16, f16, MnMajor, MnMajor, n 128, k 48, swizzles 64 128);
    product!(f16, f16, MnMajor, MnMajor, n 32, k 32, swizzles 32 32);
    product!(f16, f16, MnMajor, MnMajor, n 32, k 32, swizzles 16 16);
}

#[test]
fn products_of_every_width_are_right() {
    product!(bf16, bf16, KMajor, KMajor, n 8, k 64, swizzles 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 24, k 64, swizzles 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 160, k 64, swizzles 128 128);
    product!(bf16, bf16, KMajor, KMajor, n 256, k 64, swizzles 128 128);
    product!(bf16, bf16, KMajor, MnMajor, n 96, k 64, swizzles 128 64);
    product!(bf16, bf16, KMajor, MnMajor, n 256, k 16, swizzles 32 128);
}

#[test]
fn products_of_every_type_are_right() {
    product!(f32, f32, KMajor, KMajor, n 64, k 32, swizzles 128 128);
    product!(f32, f32, KMajor, KMajor, n 32, k 16, swizzles 64 32);
    product!(F8E4M3, F8E4M3, KMajor, KMajor, n 64, k 128, swizzles 128 128);
    product!(F8E4M3, F8E5M2, KMajor, KMajor, n 32, k 64, swizzles 64 32);
    product!(F8E5M2, F8E4M3, KMajor, KMajor, n 16, k 32, swizzles 16 32);
    product!(F8E5M2, F8E5M2, KMajor, KMajor, n 8, k 32, swizzles 32 16);
    product!(i8, i8, KMajor, KMajor, n 64, k 128, swizzles 128 128);
    product!(i8, i8, KMajor, KMajor, n 16, k 64, swizzles 64 32);
}

/// The product of elements `a` and `b`, 32 of each, by `instructions` instructions of which all but the first accumulate.
fn product_of_i8(a: i8, b: i8, instructions: usize) -> i32 {
    type Mma = Wgmma<8, i8>;
    type TileA = KMajorTile<i8, 64, 32, 32>;
    type TileB = KMajorTile<i8, 8, 32, 32>;
    let seen = AtomicU32::new(0);
    launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (of_a, of_b) = (TileA::take(&mut shared), TileB::take(&mut shared));
        fill(of_a, |_, _| a.into());
        fill(of_b, |_, _| b.into());
        fence_async_shared();
        sync_threads();
        let (of_a, of_b) = (of_a.operand_a().k_step(0), of_b.operand_b().k_step(0));
        let mut accumulators = Accumulator::<Mma>::new();
        let group = warpgroup_arrive();
        for nth in 0..instructions {
            // SAFETY: the tiles are written, and no thread writes to them again.
            unsafe { group.mma(&mut accumulators, of_a, of_b, nth > 0) };
        }
        group.commit();
        let accumulators = accumulators.wait();
        if thread_idx().get() == 0 {
            seen.store(accumulators.get(0) as u32, Relaxed);
        }
    })
    .unwrap();
    seen.into_inner() as i32
}

#[test]
fn products_of_the_least_i8_are_exact_and_sums_wrap_around() {
    let least = 32 * 128 * 128;
    assert_eq!(product_of_i8(-128, -128, 3), 3 * least);
    assert_eq!(product_of_i8(-128, 127, 2), -2 * 32 * 128 * 127);
    // f32 does not have this number.
    assert_eq!(product_of_i8(-127, 127, 1041), -1041 * 32 * 127 * 127);
    assert_eq!(product_of_i8(-128, -128, 1 << 12), i32::MIN);
}

#[test]
fn f32_operands_are_rounded_towards_zero_to_tf32() {
    type Mma = Wgmma<8, f32>;
    type TileA = KMajorTile<f32, 64, 8, 32>;
    type TileB = KMajorTile<f32, 8, 8, 32>;
    let one_and_more = 1.0 + f32::EPSILON * 4096.0;
    let seen = AtomicU32::new(0);
    launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let (a, b) = (TileA::take(&mut shared), TileB::take(&mut shared));
        fill(a, |_, _| 1);
        fill(b, |_, _| 0);
        sync_threads();
        if thread_idx().get() == 0 {
            // SAFETY: element (0, 0), which the swizzle leaves in place.
            unsafe { b.start().store(0, one_and_more) };
        }
        sync_threads();
        let mut accumulators = Accumulator::<Mma>::new();
        let group = warpgroup_arrive();
        // SAFETY: the tiles are written, and no thread writes to them again.
        unsafe {
            group.mma(
                &mut accumulators,
                a.operand_a().k_step(0),
                b.operand_b().k_step(0),
                false,
            );
        }
        group.commit();
        let accumulators = accumulators.wait();
        if thread_idx().get() == 0 {
            seen.store(accumulators.get(0).to_bits(), Relaxed);
        }
    })
    .unwrap();
    assert_eq!(f32::from_bits(seen.into_inner()), 1.0);
}

/// The error of a `wgmma` in a cluster whose descriptors have addresses of more than 18 bits.
fn with_full_addresses<JA: Major, JB: Major>() -> String
where
    Wgmma<64, bf16, bf16, JA, JB>: WgmmaInstruction<A = bf16, B = bf16, MajorA = JA, MajorB = JB>,
{
    failure(launch(128, 2, 2, || {
        let mut shared = SharedMemory::new();
        let a = OperandTile::<bf16, JA, 64, 64>::take(&mut shared);
        let b = OperandTile::<bf16, JB, 64, 64>::take(&mut shared);
        let rank_bits = |address: u32| u64::from(address >> 18 << 14);
        let (to_a, to_b) = (
            a.operand_a::<Wgmma<64, bf16, bf16, JA, JB>>()
                .k_step(0)
                .bits()
                + rank_bits(a.start().address()),
            b.operand_b::<Wgmma<64, bf16, bf16, JA, JB>>()
                .k_step(0)
                .bits()
                + rank_bits(b.start().address()),
        );
        let mut accumulators = Accumulator::<Wgmma<64, bf16, bf16, JA, JB>>::new();
        let group = warpgroup_arrive();
        // SAFETY: the descriptors are wrong on purpose. The model checks them.
        unsafe {
            let (a, b) = (
                MatrixDescriptor::from_bits(to_a),
                MatrixDescriptor::from_bits(to_b),
            );
            group.mma(&mut accumulators, a, b, false);
        }
        group.commit();
        accumulators.wait();
    }))
}

#[test]
fn a_descriptor_has_no_room_for_the_blocks_rank() {
    for message in [
        with_full_addresses::<KMajor, KMajor>(),
        with_full_addresses::<MnMajor, KMajor>(),
        with_full_addresses::<KMajor, MnMajor>(),
        with_full_addresses::<MnMajor, MnMajor>(),
    ] {
        says(&message, &["leading offset", "a block's rank"]);
    }
}

#[test]
fn threads_of_a_warpgroup_must_issue_the_same_instructions() {
    type Mma = Wgmma<8, bf16>;
    let run = |different: bool, all: bool| {
        launch(128, 1, 1, || {
            let mut shared = SharedMemory::new();
            let a = KMajorTile::<bf16, 64, 64>::take(&mut shared);
            let b = KMajorTile::<bf16, 8, 64>::take(&mut shared);
            fill(a, |_, _| 1);
            fill(b, |_, _| 1);
            sync_threads();
            let (a, b) = (a.operand_a::<Mma>(), b.operand_b::<Mma>());
            let odd = thread_idx().get() == 77;
            if odd && !all {
                return;
            }
            let step = usize::from(odd && different);
            let mut accumulators = Accumulator::<Mma>::new();
            let group = warpgroup_arrive();
            // SAFETY: no thread writes to the tiles.
            unsafe { group.mma(&mut accumulators, a.k_step(step), b.k_step(0), false) };
            group.commit();
            accumulators.wait();
        })
    };
    run(false, true).unwrap();
    says(
        &failure(run(true, true)),
        &["have issued different wgmma instructions"],
    );
    says(
        &failure(run(false, false)),
        &[
            "deadlock",
            "waits for wgmma with its warpgroup, of which 127 threads are there",
        ],
    );
}

/// The result of a product with A in registers, of which `before_fence` and `kept` say whether they are filled before
/// the fence, and kept until the wait.
fn with_registers(before_fence: bool, kept: bool) -> Result<(), cutlet_simt::SimtError> {
    type Mma = Wgmma<8, bf16>;
    launch(128, 1, 1, || {
        let mut shared = SharedMemory::new();
        let b = KMajorTile::<bf16, 8, 16, 32>::take(&mut shared);
        fill(b, |_, _| 1);
        fence_async_shared();
        sync_threads();
        let ones = || RegisterA::new(&FragmentA::filled(bf16::ONE));
        let early = before_fence.then(ones);
        let mut accumulators = Accumulator::<Mma>::new();
        let group = warpgroup_arrive();
        let a = early.unwrap_or_else(ones);
        // SAFETY: the tile is written. The model checks what is wrong on purpose.
        unsafe {
            let b = b.operand_b().k_step(0);
            group.mma_from_registers(&mut accumulators, &a, b, false);
        }
        group.commit();
        let a = kept.then_some(a);
        assert_eq!(accumulators.wait().get(3), 16.0);
        drop(a);
    })
}

#[test]
fn registers_of_a_are_filled_before_the_fence_and_kept_until_the_wait() {
    with_registers(true, true).unwrap();
    says(
        &failure(with_registers(false, true)),
        &["registers of A that were filled after its fence"],
    );
    says(
        &failure(with_registers(true, false)),
        &["registers of A are given up while a wgmma reads them"],
    );
}
