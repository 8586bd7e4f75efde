//! Every item of the vocabulary on the CPU, as a kernel uses it.

use cutlet_device::*;
use cutlet_simt::{LaunchSpec, SimtError, launch};
use half::{bf16, f16};

/// Runs `body` on `blocks` blocks of `threads` threads with 4 KiB of shared memory.
fn run(blocks: u32, threads: u32, body: impl Fn() + Sync) -> Result<(), SimtError> {
    let spec = LaunchSpec {
        kernel: "vocabulary",
        grid: [blocks, 1, 1],
        block: [threads, 1, 1],
        cluster: 1,
        shared_bytes: 4096,
        overlap_previous: false,
    };
    launch(&spec, &body)
}

/// The result of `each` for every thread of one block.
fn of_each_thread<T: DeviceData + Default>(threads: u32, each: impl Fn() -> T + Sync) -> Vec<T> {
    let mut results = vec![T::default(); threads as usize];
    let out = GlobalMut::from_ptr(results.as_mut_ptr());
    // SAFETY: each thread has its own element.
    run(1, threads, || unsafe {
        out.store(thread_idx().get().into(), each())
    })
    .unwrap();
    results
}

#[track_caller]
fn assert_panics(result: Result<(), SimtError>, expected: &str) {
    let error = result.unwrap_err();
    let SimtError::Panic {
        message, location, ..
    } = &error
    else {
        panic!("{error}")
    };
    assert!(message.contains(expected), "{message}");
    assert!(
        location.contains("vocabulary.rs:"),
        "the location is {location}, and not the caller's"
    );
}

#[test]
fn indices() {
    let threads = of_each_thread(70, || {
        assert_eq!((block_dim().x, grid_dim().x, cluster_size()), (70, 1, 1));
        assert_eq!(cluster_rank().get(), 0);
        assert_eq!(warp_idx_sync(), warp_idx());
        assert_eq!(uniform(warp_idx().get()), warp_idx().get());
        [
            thread_idx().get() as u16,
            warp_idx().get() as u16,
            lane_idx().get() as u16,
            0,
        ]
    });
    for (i, thread) in (0..).zip(threads) {
        assert_eq!(thread, [i, i / 32, i % 32, 0]);
    }
    let mut blocks = vec![0; 5];
    let out = GlobalMut::from_ptr(blocks.as_mut_ptr());
    run(5, 1, || {
        let at = block_idx();
        assert_eq!((at.y.get(), at.z.get()), (0, 0));
        // SAFETY: each block has its own element.
        unsafe { out.store(at.x.get().into(), at.x.get() + 1) };
    })
    .unwrap();
    assert_eq!(blocks, [1, 2, 3, 4, 5]);
}

#[test]
fn shuffles() {
    let lane = || lane_idx().get();
    let expect = |name: &str, found: Vec<u32>, expected: fn(u32) -> u32| {
        for (lane, found) in (0..).zip(found) {
            assert_eq!(found, expected(lane), "{name} in lane {lane}");
        }
    };
    expect("shfl", of_each_thread(32, || shfl(lane() * 10, 35)), |_| 30);
    expect(
        "shfl of another",
        of_each_thread(32, || shfl(lane(), lane() + 1)),
        |l| (l + 1) % 32,
    );
    expect(
        "shfl_xor",
        of_each_thread(32, || shfl_xor(lane(), 5)),
        |l| l ^ 5,
    );
    expect("shfl_up", of_each_thread(32, || shfl_up(lane(), 3)), |l| {
        if l < 3 { l } else { l - 3 }
    });
    expect(
        "shfl_down",
        of_each_thread(32, || shfl_down(lane(), 3)),
        |l| if l < 29 { l + 3 } else { l },
    );
    let floats = of_each_thread(32, || shfl_xor(lane() as f32 + 0.5, 1));
    assert_eq!(floats[6], 7.5);
    assert_eq!(of_each_thread(32, || shfl_up(-(lane() as i32), 1))[9], -8);
    assert_eq!(
        of_each_thread(32, || shfl(bf16::from_f32(lane() as f32), 4))[0],
        bf16::from_f32(4.0)
    );
    assert_eq!(
        of_each_thread(32, || shfl(f16::from_f32(lane() as f32), 4))[0],
        f16::from_f32(4.0)
    );
    // A sum over the warp.
    let sums = of_each_thread(64, || {
        [16, 8, 4, 2, 1]
            .into_iter()
            .fold(thread_idx().get(), |sum, mask| sum + shfl_xor(sum, mask))
    });
    assert!(sums[..32].iter().all(|&sum| sum == 496) && sums[32..].iter().all(|&sum| sum == 1520));
}

#[test]
fn values_of_several_words_are_shuffled() {
    let found = of_each_thread(32, || {
        let thread = thread_idx().get();
        let value = (f64::from(thread) + 0.5, -i64::from(thread), [thread; 2]);
        let (float, int, words) = shfl_xor(value, 3);
        assert_eq!(int, -i64::from(thread ^ 3));
        assert_eq!(words, [thread ^ 3; 2]);
        assert_eq!(shfl(u64::from(thread) << 40, 5), 5 << 40);
        float
    });
    assert_eq!(found[8], 11.5);
}

/// Checks sums and extremes of each `LANES` lanes, of 64 threads.
fn check_logical_warps<const LANES: u32, T>(of: fn(u32) -> T)
where
    T: ReduceElement + Default + PartialOrd + std::fmt::Debug + std::ops::Add<Output = T>,
{
    let larger = |a, b| if a < b { b } else { a };
    run(1, 64, || {
        let value = |thread: u32| of(thread * 37 % 64);
        let thread = thread_idx().get();
        let lanes = || (thread / LANES * LANES..).take(LANES as usize).map(value);
        let sum = lanes().fold(T::default(), |a, b| a + b);
        let max = lanes().reduce(larger).unwrap();
        let min = lanes().reduce(|a, b| if a < b { a } else { b }).unwrap();
        let own = value(thread);
        assert_eq!(LogicalWarp::<LANES>::sum(own), sum);
        assert_eq!(LogicalWarp::<LANES>::max(own), max);
        assert_eq!(LogicalWarp::<LANES>::min(own), min);
        assert_eq!(LogicalWarp::<LANES>::reduce(own, larger), max);
    })
    .unwrap();
}

#[test]
fn lanes_are_reduced() {
    macro_rules! check {
        ($($of:expr),*) => {$(
            check_logical_warps::<1, _>($of);
            check_logical_warps::<2, _>($of);
            check_logical_warps::<4, _>($of);
            check_logical_warps::<8, _>($of);
            check_logical_warps::<16, _>($of);
            check_logical_warps::<32, _>($of);
        )*};
    }
    check!(
        |i| i,
        |i| i as i32 - 32,
        |i| u64::from(i) << 33,
        |i| (i64::from(i) - 32) << 33,
        |i| i as f32 - 32.5,
        |i| f64::from(i) - 32.5
    );
    let found = of_each_thread(32, || {
        let lane = lane_idx().get();
        assert_eq!(warp_sum(u32::MAX - lane), 0u32.wrapping_sub(32 + 496));
        assert_eq!((warp_max(lane), warp_min(lane)), (31, 0));
        let number = if lane == 3 { f32::NAN } else { lane as f32 };
        assert_eq!((warp_max(number), warp_min(number)), (31.0, 0.0));
        assert!(warp_reduce(number, max_nan).is_nan());
        warp_reduce((lane % 7, lane), |a, b| a.max(b)).1
    });
    assert_eq!(found, [27; 32]);
}

#[test]
fn missing_lanes_have_no_value_and_do_not_vote() {
    // The second warp has 8 lanes.
    let found = of_each_thread(40, || shfl_down(lane_idx().get() as f32, 4));
    assert_eq!(found[32..36], [4.0, 5.0, 6.0, 7.0]);
    assert!(found[36..].iter().all(|value| value.is_nan()));
    assert_eq!(of_each_thread(40, || ballot(true))[39], 0xFF);
    assert_eq!(
        of_each_thread(40, || u32::from(all(thread_idx().get() >= 32)))[39],
        1
    );
}

#[test]
fn votes() {
    let thread = || thread_idx().get();
    assert_eq!(
        of_each_thread(64, || ballot(thread() % 3 == 0))[40],
        0x9249_2492
    );
    let any = of_each_thread(64, || u32::from(any(thread() == 40)));
    assert_eq!((any[0], any[63]), (0, 1));
    let all = of_each_thread(64, || u32::from(all(thread() != 40)));
    assert_eq!((all[0], all[63]), (1, 0));
}

#[test]
fn global_memory_in_vectors() {
    #[repr(align(16))]
    struct Aligned<T>(T);
    let source = Aligned(core::array::from_fn::<u8, 64, _>(|i| i as u8));
    let mut target = Aligned([0u8; 64]);
    fn copy<T: DeviceData, const N: usize>(source: &[u8; 64], target: &mut [u8; 64]) {
        target.fill(0);
        let (from, to) = (source.as_ptr().cast::<T>(), target.as_mut_ptr().cast::<T>());
        let (from, to) = (Global::from_ptr(from), GlobalMut::from_ptr(to));
        let vectors = 64 / size_of::<[T; N]>();
        // SAFETY: the vectors are within the arrays, and each thread has its own.
        run(1, vectors as u32, || unsafe {
            let at = i64::from(thread_idx().get()) * N as i64;
            let values: [T; N] = from.load_vec(at);
            to.store_vec(at, values);
            to.store_vec_streaming(at, from.load_vec_read_only::<N>(at));
            to.offset(at)
                .store_vec(0, from.offset(at).load_vec_once::<N>(0));
            to.store(at, to.as_global().load(at));
        })
        .unwrap();
        assert_eq!(source, target);
    }
    copy::<u8, 1>(&source.0, &mut target.0);
    copy::<u8, 16>(&source.0, &mut target.0);
    copy::<bf16, 8>(&source.0, &mut target.0);
    copy::<u32, 2>(&source.0, &mut target.0);
    copy::<f32, 4>(&source.0, &mut target.0);
    copy::<u64, 1>(&source.0, &mut target.0);
    copy::<f64, 2>(&source.0, &mut target.0);

    let misaligned = Global::from_ptr(source.0.as_ptr().cast::<u32>()).offset(1);
    // SAFETY: the address is in the array. It is not aligned on purpose.
    let result = run(1, 1, || unsafe {
        misaligned.load_vec::<4>(0);
    });
    assert_panics(result, "a load of 16 bytes at 0x");
}

#[test]
fn a_load_whose_condition_fails_reads_nothing() {
    let source: [bf16; 32] = core::array::from_fn(|i| bf16::from_f32(1.0 + i as f32));
    let from = Global::from_ptr(source.as_ptr());
    run(1, 64, || {
        let at = thread_idx().get();
        // SAFETY: elements are read within the array alone.
        let found = unsafe { from.load_if(at.into(), at < 32) };
        let expected = if at < 32 { 1.0 + at as f32 } else { 0.0 };
        assert_eq!(found.to_f32(), expected);
    })
    .unwrap();
}

#[test]
fn shared_memory_is_taken_in_aligned_arrays() {
    run(1, 64, || {
        let mut memory = SharedMemory::new();
        let bytes: Shared<u8> = memory.take(3);
        let words: Shared<u32> = memory.take(64);
        let tile: Shared<bf16> = memory.take_aligned::<_, 1024>(64 * 8);
        assert_eq!(
            (bytes.address(), words.address(), tile.address()),
            (0, 16, 1024)
        );
        assert_eq!(memory.used(), 2048);
        let thread = thread_idx().get();
        let me = i64::from(thread);
        // SAFETY: threads write their own elements and read others' after a barrier.
        unsafe {
            words.store(me, thread);
            tile.store_vec(me * 8, [bf16::from_f32(thread as f32); 8]);
            sync_threads();
            let next = (me + 1) % 64;
            assert_eq!(words.load(next), next as u32);
            assert_eq!(
                tile.offset(next * 8).load_vec_at::<4, 8>(),
                [bf16::from_f32(next as f32); 4]
            );
            assert_eq!(
                tile.cast::<u16>().load(next * 8 + 7),
                bf16::from_f32(next as f32).to_bits()
            );
            assert_eq!(words.offset(next).offset(-1).load(1), next as u32);
            sync_threads();
            words.offset(me).store_vec_at::<1, 0>([7]);
            assert_eq!(words.load(me), 7);
        }
    })
    .unwrap();
}

#[test]
fn more_shared_memory_than_the_kernel_has_is_an_error_where_it_is_taken() {
    let expected = "takes 4112 bytes of shared memory, but the kernel has 4096";
    let memory = || {
        let mut memory = SharedMemory::new();
        let _: Shared<u8> = memory.take(4096);
        memory
    };
    assert_panics(run(1, 1, || _ = memory().take::<u8>(16)), expected);
    assert_panics(
        run(1, 1, || _ = mbarrier::Mbarrier::take(&mut memory())),
        "takes 4104 bytes",
    );
    assert_panics(
        run(1, 1, || _ = SharedMemory::new().take::<u64>(1 << 30)),
        "no room for so many elements",
    );
}

/// Storage with parts of its own, one of which is two things in turn.
#[derive(Clone, Copy, SharedStorage)]
struct Storage<T: DeviceData> {
    pair: Pair,
    ring: SharedArray<T, 64, 1024>,
    turns: SharedUnion<SharedArray<u8, 100>, SharedArray<u64, 3>>,
}

#[derive(Clone, Copy, SharedStorage)]
struct Pair(SharedArray<u16, 3>, mbarrier::Mbarrier);

#[test]
fn shared_storage_lies_one_after_the_other() {
    assert_eq!((Pair::BYTES, Pair::ALIGN), (16 + 8, 16));
    assert_eq!(
        (Storage::<u32>::BYTES, Storage::<u32>::ALIGN),
        (1024 + 256 + 100, 1024)
    );
    run(1, 1, || {
        let mut memory = SharedMemory::new();
        let _: Shared<u8> = memory.take(1);
        let Storage { pair, ring, turns } = memory.take_storage::<Storage<u32>>();
        assert_eq!((pair.0.address(), pair.1.address()), (1024, 1040));
        assert_eq!(ring.address(), 2048);
        let (first, second) = (turns.first(), turns.second());
        assert_eq!((first.address(), second.address()), (2304, 2304));
        assert_eq!(memory.used(), 2404);
    })
    .unwrap();
}

#[test]
fn an_access_outside_the_blocks_shared_memory_is_an_error() {
    let words = || SharedMemory::new().take::<u32>(1024);
    // SAFETY: the accesses are outside on purpose. The CPU backend ends the kernel before them.
    unsafe {
        assert_panics(
            run(1, 1, || {
                words().load(1024);
            }),
            "access to 4 bytes at offset 4096",
        );
        assert_panics(
            run(1, 1, || words().store(-1, 0)),
            "is not an address in shared memory",
        );
        assert_panics(
            run(1, 1, || {
                words().load_vec::<4>(1);
            }),
            "not a multiple of 16 bytes",
        );
        assert_panics(
            run(1, 1, || {
                atomic_add(words(), 5000, 1);
            }),
            "at offset 20000",
        );
    }
}

#[test]
fn a_load_of_unwritten_shared_memory_is_an_error() {
    let taken_at = line!() + 2;
    let result = run(1, 4, || {
        let elements = SharedMemory::new().take::<f32>(4);
        // SAFETY: the element is within shared memory. It is not written on purpose.
        assert!(unsafe { elements.load(2) }.is_nan());
    });
    assert_panics(
        result.clone(),
        "a load of 4 bytes reads shared memory at offset 8, which nothing has written",
    );
    let taken = format!(
        "byte 8 of the 16 bytes that the kernel reserves at device/tests/vocabulary.rs:{taken_at}:"
    );
    assert_panics(result, &taken);
}

#[test]
fn a_value_that_is_not_used_may_be_unwritten() {
    // SAFETY: the element is within shared memory.
    let found = of_each_thread(4, || unsafe {
        SharedMemory::new().take::<f32>(4).load_unwritten(2)
    });
    assert!(found.iter().all(|value| value.is_nan()));
}

#[test]
fn shared_memory_beyond_32_bits_is_not_taken() {
    let result = run(1, 4, || {
        let mut shared = SharedMemory::new();
        shared.take::<u8>(1024);
        shared.take::<u8>(u32::MAX as usize - 15);
    });
    assert_panics(result, "bytes of shared memory, but the kernel has 4096");
}

#[test]
fn an_index_beyond_32_bits_is_out_of_bounds() {
    for index in [1 << 30, -(1 << 30), 1 << 32, i64::MAX, i64::MIN] {
        let result = run(1, 4, || {
            let elements = SharedMemory::new().take::<f32>(4);
            // SAFETY: the CPU backend ends the kernel.
            unsafe { elements.store(index, 1.0) };
        });
        assert_panics(result, "shared memory");
    }
}

#[test]
fn atomics_of_all_blocks_add_up() {
    fn totals<T: DeviceData + Default + AtomicAdd>(one: T) -> T {
        let mut total = [T::default()];
        let out = GlobalMut::from_ptr(total.as_mut_ptr());
        // SAFETY: all accesses are atomic until the last barrier.
        run(16, 64, || unsafe {
            let block: Shared<T> = SharedMemory::new().take(1);
            if thread_idx().get() == 0 {
                block.store(0, T::default());
            }
            sync_threads();
            atomic_add(block, 0, one);
            sync_threads();
            if thread_idx().get() == 0 {
                atomic_add(out, 0, block.load(0));
            }
        })
        .unwrap();
        total[0]
    }
    assert_eq!(totals(1u32), 1024);
    assert_eq!(totals(-1i32), -1024);
    assert_eq!(totals(3u64), 3072);
    assert_eq!(totals(-3i64), -3072);
    assert_eq!(totals(0.5f32), 512.0);
    assert_eq!(totals(0.25f64), 256.0);
}

#[test]
fn atomics_return_the_old_value() {
    macro_rules! check {
        ($($type:ty)*) => {$({
            let mut cell: [$type; 1] = [5 as $type];
            let cell = GlobalMut::from_ptr(cell.as_mut_ptr());
            // SAFETY: one thread, one element.
            run(1, 1, || unsafe {
                assert_eq!(atomic_min(cell, 0, 3 as $type), 5 as $type);
                assert_eq!(atomic_max(cell, 0, 9 as $type), 3 as $type);
                assert_eq!(atomic_cas(cell, 0, 8 as $type, 1 as $type), 9 as $type);
                assert_eq!(atomic_cas(cell, 0, 9 as $type, 1 as $type), 9 as $type);
                assert_eq!(atomic_exchange(cell, 0, 2 as $type), 1 as $type);
                assert_eq!(atomic_load(cell, 0), 2 as $type);
                atomic_store(cell, 0, 4 as $type);
                assert_eq!(cell.load(0), 4 as $type);
            })
            .unwrap();
        })*};
    }
    check!(u32 i32 u64 i64);
    let mut cell = [-1i32];
    let out = GlobalMut::from_ptr(cell.as_mut_ptr());
    // SAFETY: one thread, one element.
    run(1, 1, || unsafe { assert_eq!(atomic_max(out, 0, -5), -1) }).unwrap();
    let mut cell = [1.5f32];
    let out = GlobalMut::from_ptr(cell.as_mut_ptr());
    // SAFETY: one thread, one element.
    run(1, 1, || unsafe {
        assert_eq!(atomic_exchange(out, 0, 2.5), 1.5)
    })
    .unwrap();
    assert_eq!(cell, [2.5]);
}

#[test]
fn blocks_pass_data_by_flags() {
    let mut flags = vec![0u32; 33];
    let mut data = vec![0u32; 33];
    let (flags, values) = (
        GlobalMut::from_ptr(flags.as_mut_ptr()),
        GlobalMut::from_ptr(data.as_mut_ptr()),
    );
    // SAFETY: the flags order the accesses to the values.
    run(32, 32, || unsafe {
        // The block that all others wait for runs last, so that they poll often.
        let block = i64::from(31 - block_idx().x.get());
        if thread_idx().get() == 0 {
            if block > 0 {
                wait_until(|| atomic_load(flags, block - 1) == 1);
                values.store(block, values.load(block - 1) + 1);
            }
            thread_fence();
            atomic_store(flags, block, 1);
        }
    })
    .unwrap();
    assert_eq!(data[31], 31);
}

#[test]
fn spinning_on_an_atomic_lets_others_run() {
    let mut lock = [0u32, 0];
    let lock = GlobalMut::from_ptr(lock.as_mut_ptr());
    let mut total = [0u32];
    let total = GlobalMut::from_ptr(total.as_mut_ptr());
    // SAFETY: the lock orders the accesses to the total.
    run(8, 8, || unsafe {
        while atomic_cas(lock, 0, 0, 1) != 0 {}
        thread_fence();
        total.store(0, total.load(0) + 1);
        // Other threads of the block try to take the lock meanwhile.
        let_others_run();
        atomic_store(lock, 0, 0);
        while atomic_load(lock, 0) == 2 {}
    })
    .unwrap();
    // SAFETY: the kernel has ended.
    assert_eq!(unsafe { total.load(0) }, 64);
    let line = line!() + 2;
    // SAFETY: as above.
    let error = run(3, 1, || unsafe { while atomic_load(lock, 1) == 0 {} });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("spins on the value at 0x"), "{error}");
    assert!(error.contains(&format!("vocabulary.rs:{line}:")), "{error}");
}

/// Lets the other threads run once.
fn let_others_run() {
    let polls = std::cell::Cell::new(0);
    wait_until(|| polls.replace(polls.get() + 1) > 0);
}

#[test]
fn floats_convert_to_nearest_even() {
    assert_eq!(f16::from_f32(1.0 + 1.0 / 2048.0), f16::ONE);
    assert_eq!(<f16 as Float>::from_f32(65504.0).to_bits(), 0x7BFF);
    assert_eq!(Float::to_f32(f16::from_bits(0x0001)), 5.960_464_5e-8);
    assert_eq!(
        <bf16 as Float>::from_f32(1.0 + 3.0 / 256.0).to_bits(),
        0x3F82
    );
    assert_eq!(Float::to_f32(bf16::from_bits(0xC049)), -3.140_625);
    assert_eq!(
        bf16::pair_from_f32([1.0, -2.0]).map(bf16::to_bits),
        [0x3F80, 0xC000]
    );
    assert_eq!(
        f16::pair_from_f32([1.0, -2.0]).map(f16::to_bits),
        [0x3C00, 0xC000]
    );
    let (brains, halves) = (bf16::pack_f32([1.0, -2.0]), f16::pack_f32([1.0, -2.0]));
    assert_eq!([brains, halves], [0xC000_3F80, 0xC000_3C00]);
    assert_eq!(bf16::unpack(brains), bf16::pair_from_f32([1.0, -2.0]));
    assert_eq!(f16::unpack(halves), f16::pair_from_f32([1.0, -2.0]));
    assert_eq!(bf16::unpack_f32(brains), f16::unpack_f32(halves));
    assert_eq!(
        f32::pair_from_f32([1.0, -2.0]).map(Float::to_f32),
        [1.0, -2.0]
    );
}

#[test]
fn arithmetic() {
    // With two roundings, the product's last bits would be lost.
    let x = 1.0 + f32::EPSILON;
    assert_eq!(
        fma(x, x, -(1.0 + 2.0 * f32::EPSILON)),
        f32::EPSILON * f32::EPSILON
    );
    assert_eq!(fma(3.0f64, 4.0, 5.0), 17.0);
}

#[test]
fn approximations_are_within_their_bounds() {
    let relative = |found: f32, expected: f64, bound: f64| {
        let error = (f64::from(found) / expected - 1.0).abs();
        assert!(error <= bound.exp2(), "{found}, not {expected}");
    };
    let absolute = |found: f32, expected: f64, bound: f64| {
        let error = (f64::from(found) - expected).abs();
        assert!(error <= bound.exp2(), "{found}, not {expected}");
    };
    for nth in 1..1000 {
        let x = nth as f32 / 32.0;
        let exact = f64::from(x);
        for (x, exact) in [(x, exact), (-x, -exact)] {
            let bound = (-22f64).exp2() + exact.abs() * (-23.7f64).exp2();
            relative(exp_approx(x), exact.exp(), bound.log2());
            relative(exp2_approx(x), exact.exp2(), -22.0);
            relative(rcp_approx(x), exact.recip(), -23.0);
            relative(tanh_approx(x), exact.tanh(), -11.0);
            absolute(sin_approx(x), exact.sin(), -14.7);
            absolute(cos_approx(x), exact.cos(), -14.7);
        }
        relative(sqrt_approx(x), exact.sqrt(), -23.0);
        relative(rsqrt_approx(x), exact.sqrt().recip(), -22.9);
        if x > 0.5 && x < 2.0 {
            absolute(log2_approx(x), exact.log2(), -22.0);
            absolute(ln_approx(x), exact.ln(), -22.0);
        } else {
            relative(log2_approx(x), exact.log2(), -22.0);
            relative(ln_approx(x), exact.ln(), -21.6);
        }
    }
    for x in [0.5, -3.0] {
        let [first, second] = tanh_approx_f16([x, -x]);
        absolute(first, f64::from(x).tanh(), -10.0);
        absolute(second, f64::from(-x).tanh(), -10.0);
    }
}

#[test]
fn a_failed_assertion_ends_the_kernel() {
    let limit = 3;
    let result = run(1, 8, || {
        debug::assert!(thread_idx().get() < limit);
    });
    assert_panics(
        result.clone(),
        "assertion failed: thread_idx().get() < limit",
    );
    assert!(matches!(
        result,
        Err(SimtError::Panic {
            thread: [3, 0, 0],
            ..
        })
    ));
    let result = run(1, 8, || {
        let thread = thread_idx();
        debug::assert!(
            thread.get() != 5,
            "{} of {{8}}, {:x}, {}, {}",
            thread,
            255,
            -1i8,
            0.1f32
        );
    });
    assert_panics(result, "5 of {8}, ff, -1, 0.1");
}

#[test]
fn named_barriers_and_fences() {
    run(1, 64, || {
        thread_fence_block();
        if warp_idx().get() == 0 {
            barrier_arrive(3, 64);
        } else {
            barrier_sync(3, 64);
        }
        sync_warp();
        sync_threads();
        debug::print!("thread {} of {} is done", thread_idx(), block_dim().x);
    })
    .unwrap();
}

#[test]
fn an_index_is_among_the_first_threads_or_not() {
    let found = of_each_thread(70, || match thread_idx().among_first::<Threads<40>>() {
        Some(thread) => thread.get() as i32,
        None => -1,
    });
    for (i, found) in (0..).zip(found) {
        assert_eq!(found, if i < 40 { i } else { -1 });
    }
}

#[test]
fn a_block_of_another_number_of_threads_is_noticed() {
    run(2, 96, || {
        let thread = thread_idx().of_block::<Threads<96>>();
        assert_eq!(thread.get(), thread_idx().get());
    })
    .unwrap();
    let result = run(1, 64, || {
        thread_idx().of_block::<Threads<96>>();
    });
    assert_panics(
        result,
        "the block has 64 threads, and the code names 96: name those of the kernel",
    );
}
