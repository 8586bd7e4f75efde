//! Threads that share streams, graphs and events, without kernels. Miri and ThreadSanitizer run them: `cargo xtask
//! miri` and `cargo xtask tsan`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use cutlet_host::{
    Backend, Buffer, Device, Error, Event, Function, Graph, PinnedBuffer, Result, Scratch, Stream,
    View, ViewMut,
};

/// Calls by each thread.
const CALLS: usize = if cfg!(miri) { 3 } else { 20 };
/// Calls beside another thread's captures.
const CALLS_BESIDE_CAPTURES: usize = if cfg!(miri) { 10 } else { 3000 };

/// Threads may share and send all of these.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<(Device, Stream, Event, Graph)>();
    shared::<(
        Function<(u32,)>,
        Buffer<u32>,
        Scratch<'_, u32>,
        PinnedBuffer<u32>,
    )>();
    shared::<(View<'_, u32>, ViewMut<'_, u32>)>();
};

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

/// Calls each function `CALLS` times, in a thread of its own.
fn in_threads<'a>(works: [&'a (dyn Fn() -> Result<()> + Sync); 2]) -> Result<()> {
    let repeat =
        |work: &'a (dyn Fn() -> Result<()> + Sync)| move || (0..CALLS).try_for_each(|_| work());
    thread::scope(|scope| {
        let threads = works.map(|work| scope.spawn(repeat(work)));
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .expect("a thread returns errors and does not panic")
        })
    })
}

/// Calls `work` again and again while another thread captures on the same device.
fn beside_captures(device: &Device, work: impl Fn() -> Result<()>) -> Result<()> {
    let stream = device.stream()?;
    let x = stream.upload(&[1u8; 100])?;
    let mut y = stream.zeroed::<u8>(100)?;
    let ends = AtomicBool::new(false);
    let mut capture = || -> Result<()> {
        loop {
            let graph = device.capture(|stream| {
                let mut scratch = stream.scratch::<u8>(100)?;
                stream.copy(&x, scratch.view_mut())?;
                stream.copy(scratch.view(), &mut y)
            })?;
            // SAFETY: the graph keeps its scratch memory, and the buffers live past the wait.
            unsafe { graph.launch(&stream)? };
            stream.synchronize()?;
            if ends.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
    };
    thread::scope(|scope| {
        let captures = scope.spawn(&mut capture);
        let result = (0..CALLS_BESIDE_CAPTURES).try_for_each(|_| work());
        ends.store(true, Ordering::Relaxed);
        captures
            .join()
            .expect("a thread returns errors and does not panic")?;
        result
    })?;
    assert_eq!(stream.download(&y)?, [1; 100]);
    Ok(())
}

#[test]
fn captures_in_two_threads_do_not_meet() -> Result<()> {
    for device in devices() {
        let address = |stream: &Stream| {
            let words = stream.resident("words", || Ok(Some(vec![0])))?;
            Ok::<_, Error>(words.expect("the stream is our own").view().address())
        };
        let capture = || {
            let graph = device.capture(|stream| {
                let of_graph = address(stream)?;
                thread::yield_now();
                assert_eq!(address(stream)?, of_graph);
                assert!(stream.is_capturing()?);
                Ok::<_, Error>(())
            });
            graph.map(drop)
        };
        in_threads([&capture, &capture])?;
    }
    Ok(())
}

#[test]
fn copies_that_wait_run_beside_captures() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let buffer = stream.upload(&[7u32; 1000])?;
        beside_captures(&device, || {
            assert_eq!(stream.download(&buffer)?, [7; 1000]);
            let mut copy = [0; 1000];
            stream.copy_to_host(&buffer, &mut copy)?;
            assert_eq!(copy, [7; 1000]);
            let uploaded = stream.upload(&[8; 1000])?;
            assert_eq!(stream.download(&uploaded)?, [8; 1000]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn waits_run_beside_captures() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let (start, end) = (Event::new(&device)?, Event::new(&device)?);
        beside_captures(&device, || {
            start.record(&stream)?;
            end.record(&stream)?;
            end.synchronize()?;
            end.elapsed_since(&start)?;
            stream.synchronize()
        })?;
    }
    Ok(())
}

#[test]
fn streams_buffers_and_page_locked_memory_come_and_go_beside_captures() -> Result<()> {
    for device in devices() {
        beside_captures(&device, || {
            let stream = device.stream()?;
            let mut pinned = PinnedBuffer::<u8>::zeroed(&device, 100)?;
            let filled = stream.filled::<u8>(100, 3)?;
            stream.copy_to_host(&filled, &mut pinned)?;
            assert_eq!(pinned[..], [3; 100]);
            Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn scratch_memory_is_readable_beside_captures() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        beside_captures(&device, || {
            let mut scratch = stream.scratch::<u32>(1000)?;
            stream.fill_bytes(scratch.view_mut(), 1)?;
            assert_eq!(stream.download(scratch.view())?, [0x0101_0101; 1000]);
            Ok(())
        })?;
    }
    Ok(())
}

/// Each thread forks in a capture of its own, and both threads use one more stream, its words and its events.
#[test]
fn threads_share_streams_words_and_events() -> Result<()> {
    let device = Device::cpu();
    let (shared, mark) = (device.stream()?, Event::new(&device)?);
    let work = || {
        let stream = device.stream()?;
        let x = stream.upload(&[1u32, 2, 3])?;
        let mut y = shared.zeroed::<u32>(3)?;
        let graph = device.capture(|stream| {
            let fork = stream.fork()?;
            let mut scratch = fork.scratch::<u32>(3)?;
            fork.copy(&x, scratch.view_mut())?;
            fork.copy(scratch.view(), &mut y)
        })?;
        mark.record(&shared)?;
        stream.wait(&mark)?;
        let words = shared.resident("words", || Ok(Some(vec![7, 8])))?;
        let words = words.expect("the stream is our own");
        assert_eq!(shared.download(&*words)?, [7, 8]);
        // SAFETY: the graph keeps its scratch memory, and the buffers live past the download.
        unsafe { graph.launch(&shared)? };
        assert_eq!(shared.download(&y)?, [1, 2, 3]);
        Ok(())
    };
    in_threads([&work, &work])
}

#[test]
fn replays_of_copies_in_two_threads_do_not_overlap() -> Result<()> {
    let streams = [Device::cpu().stream()?, Device::cpu().stream()?];
    let x = streams[0].upload(&[1u32; 100])?;
    let mut y = streams[0].zeroed::<u32>(100)?;
    let graph = Device::cpu().capture(|stream| {
        let mut scratch = stream.scratch::<u32>(100)?;
        stream.fill_bytes(scratch.view_mut(), 0)?;
        stream.copy(&x, scratch.view_mut())?;
        stream.copy(scratch.view(), &mut y)
    })?;
    // SAFETY: the graph keeps its scratch memory, and the buffers live past the download.
    let replay = |stream: &Stream| unsafe { graph.launch(stream) };
    in_threads([&|| replay(&streams[0]), &|| replay(&streams[1])])?;
    assert_eq!(streams[0].download(&y)?, [1; 100]);
    Ok(())
}
