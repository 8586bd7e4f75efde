//! The CPU backend checks every access to global memory against the buffers of the launch.

use cutlet_device::cp_async::{cp_async, cp_async_commit, cp_async_wait, cp_async_zfill};
use cutlet_device::{
    Global, GlobalMut, Kernel, LaunchBounds, PtxLibrary, SharedArray, atomic_add, block_idx,
    kernel, thread_idx,
};
use cutlet_host::{Device, LaunchArgs, Result, Stream, View, ViewMut};
use cutlet_layout_core::{L, RowMajor, Tensor, Tv};

static PTX: PtxLibrary = PtxLibrary { families: &[] };

/// Each of two blocks copies element `from + 4 * block + thread`, one place further by thread 2 of block 1.
#[kernel(threads = 4)]
pub unsafe fn shifted(from: i64, shift: i64, x: Global<f32>, y: GlobalMut<f32>) {
    let at = i64::from(block_idx().x.get() * 4 + thread_idx().get());
    let is_chosen = block_idx().x.get() == 1 && thread_idx().get() == 2;
    // SAFETY: the test wants an access outside.
    unsafe {
        let value = x.load(from + at);
        y.store(if is_chosen { at + shift } else { at }, value);
    }
}

/// One thread reads four elements at once from element `at`.
#[kernel(threads = 1)]
pub unsafe fn four(at: i64, x: Global<f32>, y: GlobalMut<f32>) {
    // SAFETY: the test wants an access that is misaligned or outside.
    unsafe { y.store_vec(0, x.load_vec::<4>(at)) };
}

/// One thread adds 1 to element `at`.
#[kernel(threads = 1)]
pub unsafe fn add(at: i64, x: GlobalMut<u32>) {
    // SAFETY: the test wants an access outside.
    unsafe { atomic_add(x, at, 1) };
}

/// Copies element `at` through shared memory, by one of the two instructions.
#[kernel(threads = 1)]
pub unsafe fn through_shared(
    at: i64,
    zfill: u32,
    x: Global<f32>,
    y: GlobalMut<f32>,
    #[shared] element: SharedArray<f32, 1>,
) {
    // SAFETY: the test wants an access outside.
    unsafe {
        match zfill {
            0 => cp_async::<_, 1>(*element, x.offset(at), 1),
            _ => cp_async_zfill::<_, 1>(*element, x.offset(at), true),
        }
        cp_async_commit();
        cp_async_wait::<0>();
        y.store(0, element.load(0));
    }
}

/// A wrong store, whose panic the kernel catches.
#[kernel(threads = 1)]
pub unsafe fn quiet(at: i64, x: GlobalMut<u32>) {
    // SAFETY: the test wants an access outside.
    let _ = std::panic::catch_unwind(|| unsafe { x.store(at, 7) });
}

/// Pointers in a struct have no argument of their own.
#[derive(Clone, Copy, cutlet_device::DeviceData)]
#[repr(C)]
pub struct Pair {
    x: Global<f32>,
    y: GlobalMut<f32>,
}

/// Copies element 0 of a pair's memory to element `at`.
#[kernel(threads = 1)]
pub unsafe fn through_struct(at: i64, pair: Pair) {
    // SAFETY: the test wants an access outside.
    unsafe { pair.y.store(at, pair.x.load(0)) };
}

/// Copies rows of four elements as a tensor, of which the matrix at `y` has fewer.
#[kernel(threads = 4)]
pub unsafe fn by_tensors(rows: i32, x: Global<f32>, y: GlobalMut<f32>) {
    type Rows = Tv<L!(4:1@0), L!(4:1@1), 4>;
    let thread = thread_idx();
    // SAFETY: the test wants an access outside.
    let (x, y) = unsafe {
        let of = |rows| RowMajor::new([rows, 4], 4);
        (Tensor::new(x, of(rows)), Tensor::new(y, of(rows)))
    };
    let values = x.partition::<Rows>(thread).load(0.0); // the load of a row
    y.partition::<Rows>(thread).store(&values); // the store of a row
}

/// Stores by a tile, which may begin anywhere.
#[kernel(threads = 4)]
pub unsafe fn by_tile(rows: i64, tile: u32, y: GlobalMut<f32>) {
    type Tile = L!((256, 4):(1@0, 1@1));
    type Rows = Tv<L!(4:1@1), L!(256:1@0)>;
    // SAFETY: the test wants numbers that do not fit.
    let y = unsafe { Tensor::new(y, RowMajor::new([rows as i32, 4], 4)) }; // the matrix
    let tile = y.local_tile::<Tile>((tile, 0)); // the tile
    tile.partition::<Rows>(thread_idx()).store_with(|_| 1.0);
}

#[test]
fn extents_and_tiles_beyond_31_bits_are_errors_of_the_kernel_s_line() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut y = stream.zeroed::<f32>(4)?;
    run(&stream, &by_tile, 1, (1i64, 0u32, &mut y))?;
    assert_eq!(stream.download(&y)?, [1.0; 4]);
    let result = run(&stream, &by_tile, 1, (3_000_000_000i64, 0u32, &mut y));
    says(
        result,
        &["made of -1294967296 x 4 elements", &line_of("the matrix")],
    );
    let result = run(&stream, &by_tile, 1, (1i64, 12_000_000u32, &mut y));
    says(
        result,
        &["12000000 * 256 = 3072000000 rows", &line_of("the tile")],
    );
    Ok(())
}

/// The line of this file on which a comment stands.
fn line_of(comment: &str) -> String {
    let source = include_str!("memory_checks.rs");
    let comment = format!("// {comment}");
    let mut lines = (1..).zip(source.lines());
    let (line, _) = lines
        .find(|(_, text)| text.ends_with(&comment))
        .expect("the comment exists");
    format!("memory_checks.rs:{line}:")
}

#[test]
fn accesses_of_a_tensor_are_attributed_to_the_kernel_s_line() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (x, mut y) = (stream.upload(&[1.0f32; 16])?, stream.zeroed::<f32>(16)?);
    run(&stream, &by_tensors, 1, (4, &x, &mut y))?;
    let result = run(&stream, &by_tensors, 1, (4, &x, y.slice_mut(..8)?));
    says(
        result,
        &["element 8 of argument 3", &line_of("the store of a row")],
    );
    let result = run(&stream, &by_tensors, 1, (4, x.slice(..12)?, &mut y));
    says(
        result,
        &["element 12 of argument 2", &line_of("the load of a row")],
    );
    Ok(())
}

fn run<A: cutlet_device::KernelArgs>(
    stream: &Stream,
    kernel: &Kernel<A>,
    blocks: u32,
    args: impl LaunchArgs<A>,
) -> Result<()> {
    let function = stream.device().load(&PTX, kernel)?;
    // SAFETY: the CPU backend keeps the kernel within its buffers.
    unsafe { stream.launch(&function, blocks, args) }
}

#[track_caller]
fn says(result: Result<()>, parts: &[&str]) {
    let text = result.expect_err("the launch must fail").to_string();
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert!(
        text.contains("memory_checks.rs:"),
        "no line of the kernel: {text}"
    );
}

const CHOSEN: &str = "kernel `shifted`, block (1, 0, 0), thread (2, 0, 0): ";

#[test]
fn a_store_outside_of_its_buffer_is_an_error_and_reaches_no_memory() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = stream.upload(&[1.0f32; 8])?;
    // The view is in the middle of a buffer, whose other elements are its neighbours.
    let mut y = stream.zeroed::<f32>(24)?;
    // On Windows, buffers lie so low that a longer way back would lead below address 0.
    for shift in [2, -7, 1000, 1 << 40, -(1 << 12)] {
        let args = (0i64, shift, &x, y.slice_mut(8..16)?);
        let result = run(&stream, &shifted, 2, args);
        let element = format!("at element {} of argument 4 (`y`)", 6 + shift);
        let size = "which has 8 elements of 4 bytes";
        says(result, &[CHOSEN, "a store of 4 bytes", &element, size]);
        let y = stream.download(&y)?;
        assert!(y[..8].iter().chain(&y[16..]).all(|&y| y == 0.0));
    }
    let result = run(&stream, &shifted, 2, (0i64, 2i64, &x, y.slice_mut(8..16)?));
    says(
        result,
        &[
            "at element 8 of argument 4",
            "out of bounds",
            "pass a longer buffer",
        ],
    );
    Ok(())
}

#[test]
fn a_load_outside_of_its_buffer_is_an_error() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = stream.upload(&[1.0f32; 16])?;
    let mut y = stream.zeroed::<f32>(8)?;
    let result = run(&stream, &shifted, 1, (-1i64, 0i64, x.slice(4..12)?, &mut y));
    says(
        result,
        &[
            "thread (0, 0, 0)",
            "a load of 4 bytes at element -1 of argument 3 (`x`), which has 8 elements of 4 bytes",
        ],
    );
    let empty = x.slice(3..3)?;
    let result = run(&stream, &shifted, 1, (0i64, 0i64, empty, &mut y));
    says(
        result,
        &["element 0 of argument 3 (`x`), which has 0 elements"],
    );
    Ok(())
}

#[test]
fn vectors_and_atomics_are_checked() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (x, mut y) = (stream.upload(&[1.0f32; 8])?, stream.zeroed::<f32>(4)?);
    run(&stream, &four, 1, (4i64, &x, &mut y))?;
    let result = run(&stream, &four, 1, (8i64, &x, &mut y));
    says(result, &["a load of 16 bytes at element 8 of argument 2"]);
    let result = run(&stream, &four, 1, (2i64, &x, &mut y));
    says(
        result,
        &[
            "element 2 of argument 2",
            "misaligned",
            "not a multiple of 16",
        ],
    );
    let mut counts = stream.zeroed::<u32>(2)?;
    let result = run(&stream, &add, 1, (2i64, &mut counts));
    says(
        result,
        &["an atomic operation of 4 bytes at element 2 of argument 2"],
    );
    Ok(())
}

/// A view is part of a buffer, whose other elements are no part of it.
#[test]
fn copies_to_shared_memory_are_checked_against_the_view() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (x, mut y) = (stream.upload(&[1.0f32; 8])?, stream.zeroed::<f32>(1)?);
    for zfill in [0u32, 1] {
        run(
            &stream,
            &through_shared,
            1,
            (3i64, zfill, x.slice(..4)?, &mut y),
        )?;
        let result = run(
            &stream,
            &through_shared,
            1,
            (4i64, zfill, x.slice(..4)?, &mut y),
        );
        says(
            result,
            &["a load of 4 bytes at element 4 of argument 3 (`x`), which has 4 elements"],
        );
    }
    Ok(())
}

#[test]
fn a_kernel_cannot_hide_a_wrong_access() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut x = stream.zeroed::<u32>(4)?;
    run(&stream, &quiet, 1, (3i64, &mut x))?;
    let result = run(&stream, &quiet, 1, (4i64, &mut x));
    says(
        result,
        &[
            "kernel `quiet`",
            "a store of 4 bytes at element 4 of argument 2",
        ],
    );
    Ok(())
}

#[test]
fn a_load_of_what_nothing_has_written_is_an_error() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let mut x = stream.scratch::<f32>(8)?;
    let mut y = stream.zeroed::<f32>(8)?;
    let result = run(&stream, &shifted, 1, (0i64, 0i64, x.view(), &mut y));
    says(
        result,
        &[
            "element 0 of argument 3",
            "nothing has written",
            "fill_bytes",
        ],
    );
    // A kernel writes four elements, and the host two more.
    let ones = stream.upload(&[1.0f32; 8])?;
    run(&stream, &shifted, 1, (0i64, 0i64, &ones, x.view_mut()))?;
    run(&stream, &shifted, 1, (0i64, 0i64, x.view(), &mut y))?;
    stream.fill_bytes(x.view_mut().slice_mut(4..6)?, 0)?;
    let result = run(&stream, &shifted, 2, (0i64, 0i64, x.view(), &mut y));
    says(
        result,
        &[
            "block (1, 0, 0), thread (2, 0, 0)",
            "element 6 of argument 3",
        ],
    );
    Ok(())
}

/// A grid that is one block short leaves elements that nothing writes.
#[test]
fn a_copy_of_what_nothing_has_written_is_an_error() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = stream.upload(&[1.0f32; 12])?;
    let mut y = stream.scratch::<f32>(12)?;
    run(&stream, &shifted, 2, (0i64, 0i64, &x, y.view_mut()))?;
    let message =
        "element 8 of the 12 that are read was not written by anything; check that the grid covers";
    let mut copy = stream.zeroed::<f32>(12)?;
    for (result, doing) in [
        (stream.download(y.view()).map(drop), "copying to the host: "),
        (stream.copy(y.view(), &mut copy), "copying on the device: "),
    ] {
        let text = result
            .expect_err("nothing wrote the last elements")
            .to_string();
        assert!(text.contains(&format!("{doing}{message}")), "{text}");
    }
    let written = y.view().slice(..8)?;
    assert_eq!(stream.download(written)?, [1.0; 8]);
    run(&stream, &shifted, 3, (0i64, 0i64, &x, y.view_mut()))?;
    assert_eq!(stream.download(y.view())?, [1.0; 12]);
    Ok(())
}

fn pair(x: View<'_, f32>, y: &ViewMut<'_, f32>) -> Pair {
    let address = |address: u64| address as usize;
    Pair {
        x: Global::from_ptr(std::ptr::with_exposed_provenance(address(x.address()))),
        y: GlobalMut::from_ptr(std::ptr::with_exposed_provenance_mut(address(y.address()))),
    }
}

#[test]
fn pointers_in_structs_are_checked_against_live_buffers() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = stream.upload(&[1.0f32; 8])?;
    let mut y = stream.zeroed::<f32>(8)?;
    let both = pair(x.view(), &y.view_mut());
    run(&stream, &through_struct, 1, (7i64, both))?;
    let result = run(&stream, &through_struct, 1, (8i64, both));
    says(result, &["a store of 4 bytes", "outside of every buffer"]);
    drop(x);
    let result = run(&stream, &through_struct, 1, (0i64, both));
    says(
        result,
        &["a load of 4 bytes", "has been freed", "keep it alive"],
    );
    Ok(())
}

#[test]
fn memory_of_another_owner_may_be_used() -> Result<()> {
    let device = Device::cpu();
    let stream = device.stream()?;
    let (x, mut y) = ([2.0f32; 4], [0.0f32; 4]);
    {
        // SAFETY: the arrays outlive the views, and nothing else uses them meanwhile.
        let (x, y) = unsafe {
            (
                View::from_raw(&device, x.as_ptr().expose_provenance() as u64, 4)?,
                ViewMut::from_raw(&device, y.as_mut_ptr().expose_provenance() as u64, 4)?,
            )
        };
        run(&stream, &through_struct, 1, (1i64, pair(x, &y)))?;
        run(&stream, &shifted, 1, (0i64, 0i64, x, y))?;
    }
    assert_eq!(y, [2.0; 4]);
    Ok(())
}

#[test]
fn a_graph_checks_its_replays() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = stream.upload(&[1.0f32; 8])?;
    let mut y = stream.zeroed::<f32>(8)?;
    let function = stream.device().load(&PTX, &shifted)?;
    // SAFETY: the CPU backend keeps the kernel within its buffers, which outlive the graph.
    let graph = unsafe {
        Device::cpu().capture(|stream| stream.launch(&function, 2, (0i64, 2i64, &x, &mut y)))?
    };
    // SAFETY: as above.
    let result = unsafe { graph.launch(&stream) };
    says(result, &[CHOSEN, "element 8 of argument 4"]);
    Ok(())
}

#[test]
fn a_replay_with_memory_that_was_freed_is_an_error() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = stream.upload(&[1.0f32; 8])?;
    let mut y = stream.zeroed::<f32>(8)?;
    let function = stream.device().load(&PTX, &shifted)?;
    // A graph keeps the memory of buffers, and not what is known by its address alone.
    let cpu = Device::cpu();
    // SAFETY: the CPU backend ends a kernel that uses what was freed.
    let by_address = unsafe { View::from_raw(&cpu, x.view().address(), 8)? };
    // SAFETY: the CPU backend keeps the kernel within its buffers.
    let graph = cpu.capture(|stream| unsafe {
        stream.launch(&function, 2, (0i64, 0i64, by_address, &mut y))
    })?;
    // SAFETY: the buffers live.
    unsafe { graph.launch(&stream)? };
    drop(x);
    // SAFETY: the CPU backend ends a kernel that uses what was freed.
    let result = unsafe { graph.launch(&stream) };
    says(
        result,
        &[
            "argument 3",
            "is too late",
            "has been freed",
            "keep it alive",
        ],
    );
    Ok(())
}

/// The handle of a kernel is also made by hand.
#[test]
fn an_empty_kernel_needs_no_buffers() -> Result<()> {
    // SAFETY: the kernel runs on the CPU alone, and does nothing.
    static NOTHING: Kernel<()> = unsafe {
        Kernel::new(
            "nothing",
            "checks",
            &[],
            LaunchBounds::new(1, 0, 1, 0),
            Some(|()| {}),
        )
    };
    run(&Device::cpu().stream()?, &NOTHING, 1, ())
}
