//! Threads that share a stream or a graph: their work runs one after the other, and captures do not disturb it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cutlet_device::PtxLibrary;
use cutlet_host::{
    Backend, Buffer, Device, Error, Event, Function, Graph, PinnedBuffer, Result, Scratch, Stream,
    View, ViewMut,
};

/// The CPU needs no PTX.
static PTX: PtxLibrary = PtxLibrary { families: &[] };

/// Launches by each thread.
const LAUNCHES: usize = if cfg!(miri) { 3 } else { 20 };
/// Captures by each thread.
const CAPTURES: usize = if cfg!(miri) { 20 } else { 5000 };
/// Copies beside another thread's captures.
const COPIES: usize = if cfg!(miri) { 30 } else { 20_000 };
/// Duration of [`kernels::takes_long`].
const LONG: Duration = Duration::from_millis(100);

/// Number of running launches of [`kernels::alone`], for each test.
static RUNNING: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);
static HAS_ENDED: AtomicBool = AtomicBool::new(false);
/// The stream and function that [`kernels::launches_itself`] launches.
static ITSELF: OnceLock<(Stream, Function<()>)> = OnceLock::new();

mod kernels {
    use std::sync::atomic::Ordering;
    use std::thread;
    use std::time::Duration;

    use cutlet_device::kernel;

    /// Panics if another launch with the same `test` runs.
    #[kernel(threads = 1)]
    pub fn alone(test: u32) {
        let running = &super::RUNNING[test as usize];
        let others = running.fetch_add(1, Ordering::SeqCst);
        // Time for another thread's launch, if nothing prevents it.
        thread::sleep(Duration::from_millis(2));
        running.fetch_sub(1, Ordering::SeqCst);
        assert!(others == 0, "{others} other launches run");
    }

    #[kernel(threads = 1)]
    pub fn takes_long() {
        super::HAS_BEGUN.store(true, Ordering::SeqCst);
        thread::sleep(super::LONG);
        super::HAS_ENDED.store(true, Ordering::SeqCst);
    }

    #[kernel(threads = 1)]
    pub fn launches_itself() {
        let (stream, itself) = super::ITSELF.get().expect("set before the launch");
        // SAFETY: the kernel touches no memory.
        unsafe { stream.launch(itself, 1, ()) }.unwrap();
    }
}

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

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

/// Calls each function `LAUNCHES` times, in a thread of its own.
fn in_threads<'a>(works: [&'a (dyn Fn() -> Result<()> + Sync); 2]) -> Result<()> {
    let repeat =
        |work: &'a (dyn Fn() -> Result<()> + Sync)| move || (0..LAUNCHES).try_for_each(|_| work());
    thread::scope(|scope| {
        let threads = works.map(|work| scope.spawn(repeat(work)));
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .expect("a thread returns errors and does not panic")
        })
    })
}

/// A graph of two launches of `alone` with this `test`.
fn two_launches(stream: &Stream, alone: &Function<(u32,)>, test: u32) -> Result<Graph> {
    stream.capture(|stream| {
        // SAFETY: the kernel touches no memory.
        (0..2).try_for_each(|_| unsafe { stream.launch(alone, 1, (test,)) })
    })
}

#[test]
#[cfg_attr(miri, ignore = "Miri runs no kernels")]
fn launches_of_clones_run_one_after_the_other() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let alone = stream.device().load(&PTX, &kernels::alone)?;
    let launch = |stream: &Stream| {
        // SAFETY: the kernel touches no memory.
        unsafe { stream.launch(&alone, 1, (0,)) }
    };
    let clone = stream.clone();
    in_threads([&|| launch(&stream), &|| launch(&clone)])
}

#[test]
#[cfg_attr(miri, ignore = "Miri runs no kernels")]
fn a_graph_runs_alone_in_its_stream() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let alone = stream.device().load(&PTX, &kernels::alone)?;
    let graph = two_launches(&stream, &alone, 1)?;
    // SAFETY: the kernel touches no memory.
    in_threads([&|| unsafe { graph.launch(&stream) }, &|| unsafe {
        stream.launch(&alone, 1, (1,))
    }])
}

#[test]
#[cfg_attr(miri, ignore = "Miri runs no kernels")]
fn replays_of_a_graph_run_one_after_the_other_in_any_streams() -> Result<()> {
    let streams = [Device::cpu().stream()?, Device::cpu().stream()?];
    let alone = streams[0].device().load(&PTX, &kernels::alone)?;
    let graph = two_launches(&streams[0], &alone, 2)?;
    // SAFETY: the kernel touches no memory.
    let replay = |stream: &Stream| unsafe { graph.launch(stream) };
    in_threads([&|| replay(&streams[0]), &|| replay(&streams[1])])
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
#[cfg_attr(miri, ignore = "Miri runs no kernels")]
fn waiting_waits_for_the_work_of_other_threads() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let takes_long = stream.device().load(&PTX, &kernels::takes_long)?;
    let (start, end) = (Event::new(stream.device())?, Event::new(stream.device())?);
    start.record(&stream)?;
    thread::scope(|scope| {
        // SAFETY: the kernel touches no memory.
        let launch = scope.spawn(|| unsafe { stream.launch(&takes_long, 1, ()) });
        let waiting = Instant::now();
        while !HAS_BEGUN.load(Ordering::SeqCst) {
            assert!(waiting.elapsed().as_secs() < 60, "the kernel never began");
            thread::yield_now();
        }
        end.record(&stream)?;
        stream.synchronize()?;
        assert!(HAS_ENDED.load(Ordering::SeqCst));
        launch
            .join()
            .expect("a thread returns errors and does not panic")
    })?;
    assert!(end.elapsed_since(&start)? >= LONG);
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "Miri runs no kernels")]
fn a_launch_that_fails_blocks_no_other() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let alone = stream.device().load(&PTX, &kernels::alone)?;
    // As if another launch ran forever.
    RUNNING[3].fetch_add(1, Ordering::SeqCst);
    // SAFETY: the kernel touches no memory.
    let wrong = unsafe { stream.launch(&alone, 1, (3,)) };
    assert!(wrong.is_err());
    RUNNING[3].fetch_sub(1, Ordering::SeqCst);
    thread::scope(|scope| {
        // SAFETY: as above.
        let launch = scope.spawn(|| unsafe { stream.launch(&alone, 1, (3,)) });
        launch
            .join()
            .expect("a thread returns errors and does not panic")
    })
}

/// The launch would wait for its own end.
#[test]
#[cfg_attr(miri, ignore = "Miri runs no kernels")]
fn a_kernel_that_launches_into_its_own_stream_is_an_error() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let itself = stream.device().load(&PTX, &kernels::launches_itself)?;
    let (stream, itself) = ITSELF.get_or_init(|| (stream, itself));
    // SAFETY: the kernel touches no memory.
    let refused = unsafe { stream.launch(itself, 1, ()) }.unwrap_err();
    let message = refused.to_string();
    assert!(
        message.contains("a kernel cannot launch another one"),
        "{message}"
    );
    Ok(())
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
