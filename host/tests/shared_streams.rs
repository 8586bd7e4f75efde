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
/// Captures by each thread.
const CAPTURES: usize = if cfg!(miri) { 20 } else { 5000 };
/// Copies beside another thread's captures.
const COPIES: usize = if cfg!(miri) { 30 } else { 10_000 };

/// Threads may share and send all of these.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<(Device, Stream, Event, Graph)>();
    shared::<(
        Function<(u32,)>,
        Buffer<u32>,
        Scratch<u32>,
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

/// Calls `work` again and again while another thread captures the stream.
fn beside_captures(stream: &Stream, work: impl Fn() -> Result<(), String>) {
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let captured = stream.capture(|_| Ok::<_, Error>(()));
                captured.expect("no other thread captures");
            }
        });
        let result = (0..COPIES).try_for_each(|_| work());
        ends.store(true, Ordering::Relaxed);
        assert_eq!(result, Ok(()));
    });
}

/// The result of a call that a capture may refuse; `None` if it did.
fn unless_captured<T>(result: Result<T>) -> Result<Option<T>, String> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(Error::Capturing { .. }) => Ok(None),
        Err(error) => Err(error.to_string()),
    }
}

#[test]
fn a_capture_that_does_not_begin_leaves_another_threads_capture_alone() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let address = |stream: &Stream| {
        let words = stream.resident("words", || Ok(Some(vec![0])))?;
        Ok::<_, Error>(words.expect("the stream is our own").view().address())
    };
    let own = address(&stream)?;
    let capture = || {
        let mut captured = 0;
        while captured < CAPTURES {
            let graph = stream.capture(|stream| {
                let of_graph = address(stream)?;
                assert_ne!(of_graph, own);
                thread::yield_now();
                assert_eq!(address(stream)?, of_graph);
                Ok(())
            });
            match graph {
                Ok(_) => captured += 1,
                // The other thread's capture is not over.
                Err(Error::Capturing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let other = scope.spawn(capture);
        capture()?;
        other
            .join()
            .expect("a thread returns errors and does not panic")
    })
}

#[test]
fn a_copy_that_waits_is_not_captured_by_another_thread() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let buffer = stream.upload(&[7u32; 1000])?;
        beside_captures(&stream, || {
            let expect = |copy: &[u32]| match copy == [7; 1000] {
                true => Ok(()),
                false => Err(format!("{copy:?}")),
            };
            if let Some(copy) = unless_captured(stream.download(&buffer))? {
                expect(&copy)?;
            }
            let mut copy = [0; 1000];
            if unless_captured(stream.copy_to_host(&buffer, &mut copy))?.is_some() {
                expect(&copy)?;
            }
            let Some(uploaded) = unless_captured(stream.upload(&[7; 1000]))? else {
                return Ok(());
            };
            match unless_captured(stream.download(&uploaded))? {
                Some(copy) => expect(&copy),
                None => Ok(()),
            }
        });
    }
    Ok(())
}

#[test]
fn a_wait_and_captures_in_another_thread_take_turns() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        beside_captures(&stream, || {
            unless_captured(stream.synchronize()).map(|_| ())
        });
    }
    Ok(())
}

#[test]
fn scratch_memory_is_readable_although_another_thread_captures() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        beside_captures(&stream, || {
            let error = |error: Error| error.to_string();
            let mut scratch = stream.scratch::<u32>(1000).map_err(error)?;
            stream.fill_bytes(scratch.view_mut(), 1).map_err(error)?;
            match unless_captured(stream.download(scratch.view()))? {
                Some(copy) if copy.len() != 1000 => Err(format!("{} elements", copy.len())),
                _ => Ok(()),
            }
        });
        // Nothing has gone wrong on the device.
        stream.synchronize()?;
    }
    Ok(())
}

/// Each thread joins a capture of its own with a stream, and both threads use a third stream, its words and its events.
#[test]
fn threads_share_streams_words_and_events() -> Result<()> {
    let device = Device::cpu();
    let (shared, mark) = (device.stream()?, Event::new(&device)?);
    let work = || {
        let (stream, other) = (device.stream()?, device.stream()?);
        let (fork, join) = (Event::new(&device)?, Event::new(&device)?);
        let x = stream.upload(&[1u32, 2, 3])?;
        let mut y = stream.zeroed::<u32>(3)?;
        let graph = stream.capture(|stream| {
            fork.record(stream)?;
            other.wait(&fork)?;
            let mut scratch = other.scratch::<u32>(3)?;
            other.copy(&x, scratch.view_mut())?;
            other.copy(scratch.view(), &mut y)?;
            join.record(&other)?;
            stream.wait(&join)
        })?;
        mark.record(&shared)?;
        other.wait(&mark)?;
        let words = shared.resident("words", || Ok(Some(vec![7, 8])))?;
        let words = words.expect("the stream is our own");
        assert_eq!(shared.download(&*words)?, [7, 8]);
        // SAFETY: the graph keeps its scratch memory, and the buffers live past the download.
        unsafe { graph.launch(&shared)? };
        assert_eq!(stream.download(&y)?, [1, 2, 3]);
        Ok(())
    };
    in_threads([&work, &work])
}

#[test]
fn replays_of_copies_in_two_threads_do_not_overlap() -> Result<()> {
    let streams = [Device::cpu().stream()?, Device::cpu().stream()?];
    let x = streams[0].upload(&[1u32; 100])?;
    let mut y = streams[0].zeroed::<u32>(100)?;
    let graph = streams[0].capture(|stream| {
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
