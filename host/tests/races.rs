//! The CPU backend finds races, and names both accesses with their lines.

use cutlet_device::{
    Global, GlobalMut, Kernel, KernelArgs, PtxLibrary, SharedArray, atomic_add, atomic_count,
    atomic_load, atomic_store, block_idx, kernel, shfl_down, sync_threads, sync_warp, thread_fence,
    thread_idx, wait_until,
};
use cutlet_host::{Device, LaunchArgs, Result, Stream, cpu};

static PTX: PtxLibrary = PtxLibrary { families: &[] };

fn run<A: KernelArgs>(
    stream: &Stream,
    kernel: &Kernel<A>,
    blocks: u32,
    args: impl LaunchArgs<A>,
) -> Result<()> {
    cpu::check_races(true);
    let function = stream.device().load(&PTX, kernel)?;
    // SAFETY: the kernels stay within their buffers, or the CPU backend ends them.
    unsafe { stream.launch(&function, blocks, args) }
}

/// The line of this file on which a comment stands.
fn line_of(comment: &str) -> String {
    let source = include_str!("races.rs");
    let comment = format!("// {comment}");
    let mut lines = (1..).zip(source.lines());
    let (line, _) = lines
        .find(|(_, text)| text.ends_with(&comment))
        .expect("the comment exists");
    format!("races.rs:{line}:")
}

/// Checks that a launch fails by a race between the accesses on the lines with two comments.
#[track_caller]
fn races(result: Result<()>, [earlier, later]: [&str; 2], parts: &[&str]) {
    let text = result.expect_err("there is a race").to_string();
    let lines = [line_of(earlier), line_of(later)];
    for part in parts
        .iter()
        .copied()
        .chain(["races"])
        .chain(lines.iter().map(String::as_str))
    {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

/// Reverses 64 elements through shared memory, with or without the barrier.
#[kernel(threads = 64)]
pub unsafe fn reverse(with_barrier: u32, x: GlobalMut<f32>, #[shared] tile: SharedArray<f32, 64>) {
    let i = i64::from(thread_idx().get());
    // SAFETY: there are 64 elements.
    unsafe {
        tile.store(i, x.load(i)); // the tile's store
        if with_barrier == 1 {
            sync_threads();
        }
        x.store(i, tile.load(63 - i)); // the tile's load
    }
}

#[test]
fn a_missing_barrier_is_a_race_in_shared_memory() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut x = stream.upload(&(0..64).map(|i| i as f32).collect::<Vec<_>>())?;
    run(&stream, &reverse, 1, (1u32, &mut x))?;
    assert_eq!(stream.download(&x)?[0], 63.0);
    let result = run(&stream, &reverse, 1, (0u32, &mut x));
    let parts = [
        "kernel `reverse`, block (0, 0, 0), thread (32, 0, 0)",
        "a load of 4 bytes",
        "call sync_threads",
    ];
    races(result, ["the tile's store", "the tile's load"], &parts[..1]);
    let result = run(&stream, &reverse, 1, (0u32, &mut x));
    races(
        result,
        ["the tile's store", "the tile's load"],
        &["shared memory at offset", "thread (31, 0, 0)"],
    );
    Ok(())
}

/// Each thread adds its neighbour's element, twice. The second store comes too early without the second barrier.
#[kernel(threads = 64)]
pub unsafe fn rotate(with_barrier: u32, x: GlobalMut<f32>, #[shared] tile: SharedArray<f32, 64>) {
    let i = i64::from(thread_idx().get());
    // SAFETY: there are 64 elements.
    unsafe {
        tile.store(i, x.load(i));
        sync_threads();
        let next = tile.load((i + 1) % 64); // the neighbour's load
        if with_barrier == 1 {
            sync_threads();
        }
        tile.store(i, next); // the next store
    }
}

#[test]
fn a_store_before_others_have_read_is_a_race() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut x = stream.upload(&(0..64).map(|i| i as f32).collect::<Vec<_>>())?;
    run(&stream, &rotate, 1, (1u32, &mut x))?;
    let result = run(&stream, &rotate, 1, (0u32, &mut x));
    races(
        result,
        ["the neighbour's load", "the next store"],
        &["a store of 4 bytes"],
    );
    Ok(())
}

/// Lanes pass values through shared memory. A shuffle makes them wait, but orders nothing.
#[kernel(threads = 32)]
pub unsafe fn in_warp(synchronised: u32, y: GlobalMut<u32>, #[shared] words: SharedArray<u32, 32>) {
    let i = i64::from(thread_idx().get());
    // SAFETY: there are 32 elements.
    unsafe {
        words.store(i, i as u32); // a lane's store
        if synchronised == 1 {
            sync_warp();
        } else {
            shfl_down(0u32, 1);
        }
        y.store(i, words.load(31 - i)); // a lane's load
    }
}

#[test]
fn a_shuffle_orders_no_memory() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut y = stream.zeroed::<u32>(32)?;
    run(&stream, &in_warp, 1, (1u32, &mut y))?;
    let result = run(&stream, &in_warp, 1, (0u32, &mut y));
    races(
        result,
        ["a lane's store", "a lane's load"],
        &["call sync_warp"],
    );
    Ok(())
}

/// All blocks write their number to the same element, or to one of their own.
#[kernel(threads = 1)]
pub unsafe fn all_to_one(stride: i64, y: GlobalMut<u32>) {
    let block = block_idx().x.get();
    // SAFETY: there is an element for each block.
    unsafe { y.store(stride * i64::from(block), block) }; // a block's store
}

#[test]
fn stores_of_different_blocks_race() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut y = stream.zeroed::<u32>(8)?;
    run(&stream, &all_to_one, 8, (1i64, &mut y))?;
    let result = run(&stream, &all_to_one, 8, (0i64, &mut y));
    let parts = [
        "element 0 of argument 2 (`y`)",
        "of block (",
        "blocks run in any order",
    ];
    races(result, ["a block's store"; 2], &parts);
    Ok(())
}

/// All threads write the same value.
#[kernel(threads = 64)]
pub unsafe fn same_value(y: GlobalMut<u32>) {
    // SAFETY: there is an element.
    unsafe { y.store(0, 7) };
}

#[test]
fn stores_of_the_same_value_do_not_race() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut y = stream.upload(&[7u32])?;
    run(&stream, &same_value, 4, (&mut y,))
}

/// Neighbouring threads write the bytes of one word.
#[kernel(threads = 64)]
pub unsafe fn bytes(y: GlobalMut<u8>) {
    let i = thread_idx().get();
    // SAFETY: there are 64 elements.
    unsafe { y.store(i.into(), i as u8 + 1) };
}

#[test]
fn bytes_of_one_word_do_not_race() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut y = stream.zeroed::<u8>(64)?;
    run(&stream, &bytes, 1, (&mut y,))
}

/// The last block to arrive adds what all blocks have written.
#[kernel(threads = 32)]
pub unsafe fn last_adds(way: u32, partials: GlobalMut<u32>, count: GlobalMut<u32>) {
    let (blocks, block) = (8, block_idx().x.get());
    if !thread_idx().is_first() {
        return;
    }
    // SAFETY: there is an element for each block, and a counter.
    unsafe {
        partials.store(block.into(), block + 1); // a partial's store
        let before = match way {
            0 => atomic_add(count, 0, 1),
            1 => {
                thread_fence();
                let before = atomic_add(count, 0, 1);
                thread_fence();
                before
            }
            _ => atomic_count(count, 0, blocks - 1),
        };
        if before == blocks - 1 {
            let all = (0..blocks).map(|block| partials.load(block.into())); // a partial's load
            assert_eq!(all.sum::<u32>(), 36);
        }
    }
}

#[test]
fn atomic_operations_order_with_fences_or_on_their_own() -> Result<()> {
    let stream = Device::cpu().stream()?;
    for way in [1u32, 2] {
        let (mut partials, mut count) = (stream.zeroed::<u32>(8)?, stream.zeroed::<u32>(1)?);
        run(&stream, &last_adds, 8, (way, &mut partials, &mut count))?;
    }
    let (mut partials, mut count) = (stream.zeroed::<u32>(8)?, stream.zeroed::<u32>(1)?);
    let result = run(&stream, &last_adds, 8, (0u32, &mut partials, &mut count));
    races(
        result,
        ["a partial's store", "a partial's load"],
        &["atomic_store"],
    );
    Ok(())
}

/// Block 1 waits for the value of block 0 by a flag, or only reads it.
#[kernel(threads = 1)]
pub unsafe fn by_flag(waits: u32, flag: GlobalMut<u32>, value: GlobalMut<u32>) {
    // SAFETY: there are two elements each.
    unsafe {
        if block_idx().x.get() == 0 {
            value.store(0, 5); // the flag's store
            atomic_store(flag, 0, 1);
        } else {
            if waits == 1 {
                wait_until(|| atomic_load(flag, 0) == 1);
            } else {
                wait_until(|| atomic_add(flag, 0, 0) == 1);
            }
            value.store(1, value.load(0)); // the flag's load
        }
    }
}

#[test]
fn a_flag_orders_if_it_is_loaded_in_order() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (mut flag, mut value) = (stream.zeroed::<u32>(1)?, stream.zeroed::<u32>(2)?);
    run(&stream, &by_flag, 2, (1u32, &mut flag, &mut value))?;
    assert_eq!(stream.download(&value)?, [5, 5]);
    let (mut flag, mut value) = (stream.zeroed::<u32>(1)?, stream.zeroed::<u32>(2)?);
    let result = run(&stream, &by_flag, 2, (0u32, &mut flag, &mut value));
    races(
        result,
        ["the flag's store", "the flag's load"],
        &["element 0 of argument 3"],
    );
    Ok(())
}

/// Adds by atomic operations, and reads the sum plainly at once.
#[kernel(threads = 64)]
pub unsafe fn mixed(plain: u32, sum: GlobalMut<f32>, x: Global<f32>) {
    let i = thread_idx().get();
    // SAFETY: there are 64 elements.
    unsafe {
        atomic_add(sum, 0, x.load(i.into())); // an atomic operation
        if plain == 1 && i == 63 {
            sum.load(0); // a plain load
        }
    }
}

#[test]
fn a_plain_access_races_with_an_atomic_operation() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (mut sum, x) = (stream.zeroed::<f32>(1)?, stream.upload(&[1.0f32; 64])?);
    run(&stream, &mixed, 2, (0u32, &mut sum, &x))?;
    assert_eq!(stream.download(&sum)?, [128.0]);
    let result = run(&stream, &mixed, 1, (1u32, &mut sum, &x));
    races(
        result,
        ["an atomic operation", "a plain load"],
        &["an atomic operation by thread"],
    );
    Ok(())
}
