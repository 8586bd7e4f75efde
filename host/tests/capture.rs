//! Captures of copies and fills, their replays, and the memory of graphs, on the CPU and on a GPU if there is one.

use cutlet_host::{Backend, Buffer, Device, Error, Event, Result, Stream};

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

fn ramp(stream: &Stream, n: u16) -> Result<Buffer<f32>> {
    let data: Vec<f32> = (0..n).map(f32::from).collect();
    stream.upload(&data)
}

#[test]
fn a_fork_that_does_not_join_is_an_error_on_a_gpu() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut x = stream.zeroed::<u8>(1)?;
        let captured = device.capture(|stream| {
            let fork = stream.fork()?;
            fork.fill_bytes(&mut x, 1)?;
            std::mem::forget(fork);
            Ok::<_, Error>(())
        });
        // The CPU runs recorded work in the order of its calls, so nothing is lost.
        if device.backend() == Backend::Gpu {
            let refused = captured.unwrap_err();
            assert!(matches!(refused, Error::Driver { .. }), "{refused}");
        }
        assert_eq!(stream.download(&x)?, [0]);
    }
    Ok(())
}

#[test]
fn a_stream_of_a_capture_is_ordered_with_no_stream_outside() -> Result<()> {
    for device in devices() {
        let (outside, mark) = (device.stream()?, Event::new(&device)?);
        let mut x = outside.zeroed::<u8>(1)?;
        mark.record(&outside)?;
        let graph = device.capture(|stream| {
            let is_refused = |result: Result<()>| {
                let error = result.unwrap_err();
                let refused = matches!(error, Error::Capture { .. } | Error::Capturing { .. });
                assert!(refused, "{error}");
            };
            is_refused(stream.wait(&mark));
            is_refused(mark.record(stream));
            is_refused(stream.wait_for(&outside));
            is_refused(outside.wait_for(stream));
            stream.fill_bytes(&mut x, 1)
        })?;
        // The refused calls have left the capture and the other stream alone.
        // SAFETY: the buffer lives past the download.
        unsafe { graph.launch(&outside)? };
        assert_eq!(outside.download(&x)?, [1]);
        mark.synchronize()?;
    }
    Ok(())
}

#[test]
fn forks_run_after_and_before_the_stream_that_they_fork_from() -> Result<()> {
    const BYTES: usize = 1 << 20;
    for device in devices() {
        let stream = device.stream()?;
        let mut x = stream.zeroed::<u8>(BYTES)?;
        let mut copies = [stream.zeroed::<u8>(BYTES)?, stream.zeroed::<u8>(BYTES)?];
        let mut work = |stream: &Stream| {
            let [one, another] = &mut copies;
            stream.fill_bytes(&mut x, 1)?;
            let first = stream.fork()?;
            let second = stream.fork()?;
            first.copy(&x, &mut *one)?;
            second.wait_for(&first)?;
            second.copy(&*one, &mut *another)?;
            second.join()?;
            first.join()?;
            stream.fill_bytes(&mut x, 2)
        };
        work(&stream)?;
        let graph = device.capture(&mut work)?;
        let expect = |copies: &[Buffer<u8>]| -> Result<()> {
            for copy in copies {
                assert_eq!(stream.download(copy)?, [1; BYTES]);
            }
            Ok(())
        };
        expect(&copies)?;
        for copy in &mut copies {
            stream.fill_bytes(copy, 0)?;
        }
        // SAFETY: the buffers live past the download.
        unsafe { graph.launch(&stream)? };
        expect(&copies)?;
        assert_eq!(stream.download(&x)?, [2; BYTES]);
    }
    Ok(())
}

#[test]
fn scratch_memory_of_a_fork_stays_with_the_graph() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let x = ramp(&stream, 100)?;
        let mut copy = stream.zeroed::<f32>(100)?;
        let mut of_graph = None;
        let graph = device.capture(|stream| {
            let fork = stream.fork()?;
            let mut scratch = fork.scratch::<f32>(100)?;
            of_graph = Some(scratch.view().address());
            fork.copy(&x, scratch.view_mut())?;
            fork.copy(scratch.view(), &mut copy)?;
            drop(scratch);
            // Later work of the same stream may use the memory.
            assert_eq!(Some(fork.scratch::<f32>(99)?.view().address()), of_graph);
            // Work of the other stream may run at the same time.
            assert_ne!(Some(stream.scratch::<f32>(100)?.view().address()), of_graph);
            fork.join()
        })?;
        let others: Vec<Buffer<f32>> = (0..8).map(|_| stream.zeroed(100)).collect::<Result<_>>()?;
        for buffer in &others {
            assert_ne!(Some(buffer.view().address()), of_graph);
        }
        // SAFETY: the graph keeps its scratch memory, and the buffers live past the download.
        unsafe { graph.launch(&stream)? };
        assert_eq!(stream.download(&copy)?, stream.download(&x)?);
    }
    Ok(())
}

#[test]
fn a_capture_whose_work_fails_or_panics_leaves_nothing_behind() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut x = stream.zeroed::<u8>(1)?;
        let failed = device.capture(|stream| {
            let fork = stream.fork()?;
            fork.fill_bytes(&mut x, 1)?;
            stream.synchronize()
        });
        assert!(matches!(failed.unwrap_err(), Error::Capturing { .. }));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            device.capture(|stream| -> Result<()> {
                let fork = stream.fork()?;
                fork.fill_bytes(&mut x, 1)?;
                panic!("as the test wants it")
            })
        }));
        assert!(panicked.is_err());
        let graph = device.capture(|stream| stream.fill_bytes(&mut x, 2))?;
        assert_eq!(stream.download(&x)?, [0]);
        // SAFETY: the buffer lives past the download.
        unsafe { graph.launch(&stream)? };
        assert_eq!(stream.download(&x)?, [2]);
    }
    Ok(())
}

#[test]
fn resident_words_of_a_capture_stay_with_the_graph() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let words = |stream: &Stream, first: u32| {
            let words = stream.resident("words", || Ok(Some(vec![first, 7])))?;
            Ok::<_, Error>(words.expect("the stream is our own"))
        };
        let own = words(&stream, 1)?;
        let mut copy = stream.zeroed::<u32>(2)?;
        let mut of_graph = None;
        let graph = device.capture(|stream| {
            let words = words(stream, 2)?;
            of_graph = Some(words.view().address());
            stream.copy(&*words, &mut copy)
        })?;
        assert_ne!(of_graph, Some(own.view().address()));
        let again = words(&stream, 3)?;
        assert_eq!(again.view().address(), own.view().address());
        // SAFETY: the graph keeps its words, and the buffer lives past the download.
        unsafe { graph.launch(&stream)? };
        assert_eq!(stream.download(&copy)?, [2, 7]);
    }
    Ok(())
}

#[test]
fn words_may_be_made_of_other_words() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let outer = stream.resident("outer", || {
        let inner = stream.resident("inner", || Ok(Some(vec![1, 2])))?;
        let inner = stream.download(&*inner.expect("the stream is our own"))?;
        // A call for the same key ends first, so its words stay.
        stream.resident("outer", || Ok(Some(vec![3, inner[1]])))?;
        Ok(Some(vec![0, 0]))
    })?;
    let outer = outer.expect("the stream is our own");
    assert_eq!(stream.download(&*outer)?, [3, 2]);
    Ok(())
}

#[test]
fn keys_of_different_types_have_words_of_their_own() -> Result<()> {
    #[derive(PartialEq, Eq, Hash)]
    struct Mine(u32);
    #[derive(PartialEq, Eq, Hash)]
    struct Yours(u32);
    let stream = Device::cpu().stream()?;
    let mine = stream.resident(Mine(1), || Ok(Some(vec![1])))?;
    let yours = stream.resident(Yours(1), || Ok(Some(vec![2, 3])))?;
    let other = stream.resident(Mine(2), || Ok(Some(vec![4])))?;
    let words = [mine, yours, other].map(|words| words.expect("the stream is our own"));
    let words = words.map(|words| stream.download(&*words).expect("the words are readable"));
    assert_eq!(words, [vec![1], vec![2, 3], vec![4]]);
    Ok(())
}

#[test]
fn a_buffer_that_is_made_during_a_capture_is_filled_at_once() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut made = None;
        let graph = device.capture(|stream| {
            made = Some(stream.filled::<u32>(1000, 0xab)?);
            Ok::<_, Error>(())
        })?;
        let made = made.expect("the capture made it");
        assert_eq!(stream.download(&made)?, [0xabab_abab; 1000]);
        drop(graph);
    }
    Ok(())
}

#[test]
fn operations_that_a_graph_cannot_hold_are_errors() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let x = ramp(&stream, 4)?;
        let expect = |error: Error| assert!(matches!(error, Error::Capturing { .. }), "{error}");
        expect(
            device
                .capture(|stream| stream.download(&x).map(drop))
                .unwrap_err(),
        );
        expect(
            device
                .capture(|stream| stream.upload(&[1]).map(drop))
                .unwrap_err(),
        );
        expect(device.capture(Stream::synchronize).unwrap_err());
        let graph = device.capture(|_| Ok::<_, Error>(()))?;
        // SAFETY: the graph is empty.
        expect(
            device
                .capture(|stream| unsafe { graph.launch(stream) })
                .unwrap_err(),
        );
        // The stream still works.
        assert!(!stream.is_capturing()?);
        assert_eq!(stream.download(&x)?, [0.0, 1.0, 2.0, 3.0]);
    }
    Ok(())
}
