//! Threads that share a stream or a graph of the CPU: their kernels run one after the other.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cutlet_device::PtxLibrary;
use cutlet_host::{Device, Event, Function, Graph, Result, Stream};

/// The CPU needs no PTX.
static PTX: PtxLibrary = PtxLibrary { families: &[] };

/// Launches by each thread.
const LAUNCHES: usize = 20;
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
    stream.device().capture(|stream| {
        // SAFETY: the kernel touches no memory.
        (0..2).try_for_each(|_| unsafe { stream.launch(alone, 1, (test,)) })
    })
}

#[test]
fn launches_of_two_threads_run_one_after_the_other() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let alone = stream.device().load(&PTX, &kernels::alone)?;
    let launch = |stream: &Stream| {
        // SAFETY: the kernel touches no memory.
        unsafe { stream.launch(&alone, 1, (0,)) }
    };
    in_threads([&|| launch(&stream), &|| launch(&stream)])
}

#[test]
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
fn replays_of_a_graph_run_one_after_the_other_in_any_streams() -> Result<()> {
    let streams = [Device::cpu().stream()?, Device::cpu().stream()?];
    let alone = streams[0].device().load(&PTX, &kernels::alone)?;
    let graph = two_launches(&streams[0], &alone, 2)?;
    // SAFETY: the kernel touches no memory.
    let replay = |stream: &Stream| unsafe { graph.launch(stream) };
    in_threads([&|| replay(&streams[0]), &|| replay(&streams[1])])
}

#[test]
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
