//! Graphs that own what their recorded work uses, on the CPU and on a GPU if there is one.

use std::sync::Mutex;

use cutlet_host::{Backend, Buffer, Device, Error, OwnedGraph, Result, Stream, View};

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

/// Buffers of a step that copies `x` to `y`.
struct Step {
    x: Buffer<u32>,
    y: Buffer<u32>,
}

impl Step {
    fn new(stream: &Stream) -> Result<Self> {
        Ok(Step {
            x: stream.upload(&[1, 2, 3])?,
            y: stream.zeroed(3)?,
        })
    }
}

fn recorded(device: &Device, stream: &Stream) -> Result<OwnedGraph<Step>> {
    device.capture_owned(Step::new(stream)?, |stream, step| {
        stream.copy(&step.x, &mut step.y)
    })
}

#[test]
fn replays_read_what_was_written_between_them() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut graph = recorded(&device, &stream)?;
        assert_eq!(stream.download(&graph.get().y)?, [0; 3]);
        for input in [[4, 5, 6], [7, 8, 9]] {
            stream.copy_from_host(&input, &mut graph.get_mut().x)?;
            graph.launch(&stream)?;
            assert_eq!(stream.download(&graph.get().y)?, input);
        }
        let Step { x, y } = graph.into_inner();
        assert_eq!(stream.download(&x)?, stream.download(&y)?);
    }
    Ok(())
}

/// The graph moves to a thread with a stream of its own.
#[test]
fn a_graph_is_replayed_where_it_was_sent() -> Result<()> {
    for device in devices() {
        let here = device.stream()?;
        let mut graph = recorded(&device, &here)?;
        here.synchronize()?;
        let replayed = std::thread::spawn(move || {
            let stream = device.stream()?;
            graph.launch(&stream)?;
            stream.download(&graph.get().y)
        });
        assert_eq!(replayed.join().unwrap()?, [1, 2, 3]);
    }
    Ok(())
}

/// Buffers that are no part of the value, are dropped in the capture, or take the place of others.
#[test]
fn a_graph_keeps_all_memory_that_it_uses() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let first = stream.upload(&[7u32, 8, 9])?;
        let mut graph = device.capture_owned(Step::new(&stream)?, |stream, step| {
            let mut between = stream.zeroed::<u32>(3)?;
            let mut scratch = stream.scratch::<u32>(3)?;
            let beside = stream.fork()?;
            beside.copy(&first, &mut between)?;
            beside.join()?;
            stream.copy(&between, scratch.view_mut())?;
            stream.copy(scratch.view(), &mut step.y)
        })?;
        drop(first);
        // Memory that were freed would be that of new buffers.
        let others = [0xaa; 20].map(|byte| stream.filled::<u32>(3, byte).unwrap());
        graph.launch(&stream)?;
        assert_eq!(stream.download(&graph.get().y)?, [7, 8, 9]);
        let replaced = std::mem::replace(&mut graph.get_mut().y, stream.zeroed(3)?);
        drop(replaced);
        graph.launch(&stream)?;
        assert_eq!(stream.download(&graph.get().y)?, [0; 3]);
        for other in &others {
            assert_eq!(stream.download(other)?, [0xaaaa_aaaa; 3]);
        }
    }
    Ok(())
}

/// How a capture for an owned graph refuses what `work` records.
fn refusal(device: &Device, work: impl FnOnce(&Stream, &mut Step) -> Result<()>) -> String {
    let step = Step::new(&device.stream().unwrap()).unwrap();
    let refused = device.capture_owned(step, work).unwrap_err();
    assert!(matches!(refused, Error::Capture { .. }), "{refused}");
    refused.to_string()
}

#[test]
fn memory_of_others_is_refused() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let x = stream.upload(&[1u32, 2, 3])?;
        // SAFETY: the buffer lives past the captures.
        let by_address = unsafe { View::<u32>::from_raw(&device, x.view().address(), 3)? };
        let said = refusal(&device, |stream, step| stream.copy(by_address, &mut step.y));
        assert!(said.contains("is memory that a graph cannot own"), "{said}");
        // A graph whose launch is unsafe may have it.
        let mut y = stream.zeroed::<u32>(3)?;
        let graph = device.capture(|stream| stream.copy(by_address, &mut y))?;
        // SAFETY: the buffers live past the download.
        unsafe { graph.launch(&stream)? };
        assert_eq!(stream.download(&y)?, [1, 2, 3]);
    }
    Ok(())
}

#[test]
fn work_of_other_libraries_is_refused_on_a_gpu() -> Result<()> {
    let device = Device::auto();
    if device.backend() == Backend::Cpu {
        cutlet_not_run::not_run("there is no GPU");
        return Ok(());
    }
    let said = refusal(&device, |stream, step| {
        assert!(stream.as_raw().is_some());
        stream.copy(&step.x, &mut step.y)
    });
    assert!(said.contains("its handle was asked for"), "{said}");
    Ok(())
}

#[test]
fn the_error_of_the_work_is_returned() -> Result<()> {
    for device in devices() {
        let said = device
            .capture_owned(Step::new(&device.stream()?)?, |stream, step| {
                stream.download(&step.x).map(drop)
            })
            .unwrap_err();
        assert!(matches!(said, Error::Capturing { .. }), "{said}");
    }
    Ok(())
}

/// On the CPU, a replay and other threads' work on the same memory do not run at the same time: who reads between
/// replays sees what the last one left.
#[test]
fn other_work_waits_for_a_replay_on_the_cpu() -> Result<()> {
    const LEN: usize = 1 << 16;
    let device = Device::cpu();
    let first = device.stream()?;
    let shared = Mutex::new(first.filled::<u8>(LEN, 2)?);
    first.synchronize()?;
    let mut graph = device.capture_owned((), |stream, ()| {
        let mut shared = shared.lock().unwrap();
        stream.fill_bytes(&mut *shared, 1)?;
        stream.fill_bytes(&mut *shared, 2)
    })?;
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let stream = device.stream()?;
            (0..500).try_for_each(|_| {
                let read = stream.download(&*shared.lock().unwrap())?;
                assert!(read.iter().all(|it| *it == 2));
                Ok::<_, Error>(())
            })
        });
        let stream = device.stream()?;
        for _ in 0..500 {
            graph.launch(&stream)?;
        }
        reader.join().unwrap()
    })
}
