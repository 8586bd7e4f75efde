//! Buffers are freed after the work that uses them, and nobody waits for it.

use std::time::{Duration, Instant};

use cutlet_host::{Backend, Buffer, Device, Result, Stream};
use cutlet_not_run::not_run;

/// Bytes of the buffers whose memory is used again.
const BYTES: usize = 1 << 20;

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

/// A buffer, and how often it is filled to keep a stream busy.
struct Work {
    filled: Buffer<u8>,
    times: usize,
}

impl Work {
    /// Milliseconds of work on a GPU.
    fn new(stream: &Stream) -> Result<Work> {
        let (bytes, times) = match stream.device().backend() {
            Backend::Cpu => (1, 1),
            Backend::Gpu => (256 << 20, 200),
        };
        let filled = stream.zeroed(bytes)?;
        stream.synchronize()?;
        Ok(Work { filled, times })
    }

    fn enqueue(&mut self, stream: &Stream) -> Result<()> {
        (0..self.times).try_for_each(|_| stream.fill_bytes(&mut self.filled, 1))
    }
}

/// Fills new buffers in a stream at once: those with memory that is freed too early.
fn overwrite_freed_memory(stream: &Stream) -> Result<Vec<Buffer<u8>>> {
    (0..4).map(|_| stream.filled(BYTES, 0xff)).collect()
}

#[test]
fn a_buffer_is_freed_after_the_work_of_its_stream() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let mut work = Work::new(&stream)?;
        let x = stream.filled::<u8>(BYTES, 7)?;
        let mut y = stream.zeroed::<u8>(BYTES)?;
        work.enqueue(&stream)?;
        stream.copy(&x, &mut y)?;
        drop(x);
        let _new = overwrite_freed_memory(&other)?;
        other.synchronize()?;
        assert!(stream.download(&y)?.iter().all(|it| *it == 7));
    }
    Ok(())
}

/// The stream that made the buffer has nothing to do when another one is busy with it.
#[test]
fn a_buffer_is_freed_after_the_work_of_other_streams() -> Result<()> {
    for device in devices() {
        for ends_first in [false, true] {
            let (home, user) = (device.stream()?, device.stream()?);
            let mut work = Work::new(&user)?;
            let x = home.filled::<u8>(BYTES, 7)?;
            let mut y = user.zeroed::<u8>(BYTES)?;
            work.enqueue(&user)?;
            user.wait_for(&home)?;
            user.copy(&x, &mut y)?;
            let reader = device.stream()?;
            reader.wait_for(&user)?;
            // A stream may go before its work is done, and before the buffer.
            if ends_first {
                drop(user);
            }
            drop(x);
            let _new = overwrite_freed_memory(&home)?;
            home.synchronize()?;
            assert!(reader.download(&y)?.iter().all(|it| *it == 7));
        }
    }
    Ok(())
}

#[test]
fn the_memory_of_a_graph_is_freed_after_its_replays() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let mut work = Work::new(&stream)?;
        let x = other.filled::<u8>(BYTES, 7)?;
        let mut y = stream.zeroed::<u8>(BYTES)?;
        other.synchronize()?;
        let mut graph = device.capture_owned(x, |stream, x| stream.copy(&*x, &mut y))?;
        work.enqueue(&stream)?;
        graph.launch(&stream)?;
        drop(graph);
        let _new = overwrite_freed_memory(&other)?;
        other.synchronize()?;
        assert!(stream.download(&y)?.iter().all(|it| *it == 7));
    }
    Ok(())
}

/// Asserts that the host takes less than half as long for something as a stream for the work that it is busy with
/// meanwhile. What waits for the work does so each time. Other tests, which use the GPU at the same time, may delay the
/// host now and then.
fn assert_no_wait(device: &Device, on_host: impl Fn(&Stream) -> Result<()>) -> Result<()> {
    let mut times: Vec<[Duration; 2]> = Vec::new();
    for _ in 0..10 {
        let stream = device.stream()?;
        let mut work = Work::new(&stream)?;
        work.enqueue(&stream)?;
        let begin = Instant::now();
        on_host(&stream)?;
        let host = begin.elapsed();
        stream.synchronize()?;
        let device = begin.elapsed();
        if 2 * host < device {
            return Ok(());
        }
        times.push([host, device]);
    }
    panic!("the host waits: it takes the first time, and the work the second one: {times:?}");
}

#[test]
fn allocating_and_dropping_wait_for_nothing() -> Result<()> {
    let device = Device::auto();
    if device.backend() == Backend::Cpu {
        not_run("there is no GPU");
        return Ok(());
    }
    assert_no_wait(&device, |stream| {
        let other = device.stream()?;
        for _ in 0..10 {
            let x = stream.zeroed::<u8>(BYTES)?;
            other.wait_for(stream)?;
            x.view().use_in(&other, "a read", "x")?;
            drop(x);
            drop(other.zeroed::<u8>(BYTES)?);
        }
        Ok(())
    })
}

/// A stream that made a buffer does not wait for another one that used it, when the buffer is dropped.
#[test]
fn a_drop_makes_no_stream_wait_for_another() -> Result<()> {
    let device = Device::auto();
    if device.backend() == Backend::Cpu {
        not_run("there is no GPU");
        return Ok(());
    }
    assert_no_wait(&device, |busy| {
        let home = device.stream()?;
        let x = home.zeroed::<u8>(BYTES)?;
        home.synchronize()?;
        x.view().use_in(busy, "a read", "x")?;
        drop(x);
        home.zeroed::<u8>(BYTES)?;
        home.synchronize()
    })
}

#[test]
fn the_memory_of_dropped_buffers_is_used_again() -> Result<()> {
    let device = Device::auto();
    if device.backend() == Backend::Cpu {
        not_run("there is no GPU");
        return Ok(());
    }
    let stream = device.stream()?;
    let free = || Ok::<_, cutlet_host::Error>(device.memory()?.expect("it is a GPU").0);
    drop(stream.zeroed::<u8>(64 << 20)?);
    let before = free()?;
    for _ in 0..100 {
        drop(stream.zeroed::<u8>(64 << 20)?);
    }
    // Tests beside this one allocate less than half of what the loop would.
    assert!(before - free()?.min(before) < 50 * (64 << 20));
    device.trim_memory(0)
}
