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
fn streams_that_do_not_rejoin_a_capture_and_events_from_outside_it_are_errors() -> Result<()> {
    let is_refused = |error: Error| {
        let refused = matches!(error, Error::Capture { .. } | Error::Driver { .. });
        assert!(refused, "{error}");
    };
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let (fork, join) = (Event::new(&device)?, Event::new(&device)?);
        let mut x = stream.zeroed::<u8>(1)?;
        let refused = stream.capture(|stream| {
            fork.record(stream)?;
            other.wait(&fork)?;
            join.record(&other)?;
            other.fill_bytes(&mut x, 1)?;
            // The other stream's fill is after this event, so nothing waits for it.
            stream.wait(&join)
        });
        is_refused(refused.unwrap_err());
        assert!(!stream.is_capturing()? && !other.is_capturing()?);

        let outside = Event::new(&device)?;
        outside.record(&other)?;
        let refused = stream.capture(|stream| stream.wait(&outside));
        is_refused(refused.unwrap_err());
        assert!(!stream.is_capturing()?);
        assert_eq!(stream.download(&x)?, [0]);
    }
    Ok(())
}

#[test]
fn scratch_memory_of_a_stream_that_joined_stays_with_the_graph() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let (fork, join) = (Event::new(&device)?, Event::new(&device)?);
        let x = ramp(&stream, 100)?;
        let mut copy = stream.zeroed::<f32>(100)?;
        let mut of_graph = None;
        let graph = stream.capture(|stream| {
            fork.record(stream)?;
            other.wait(&fork)?;
            let mut scratch = other.scratch::<f32>(100)?;
            of_graph = Some(scratch.view().address());
            other.copy(&x, scratch.view_mut())?;
            other.copy(scratch.view(), &mut copy)?;
            drop(scratch);
            // Its work and that of `other` may run at the same time.
            let own = stream.scratch::<f32>(100)?;
            assert_ne!(Some(own.view().address()), of_graph);
            assert_eq!(other.resident("words", || Ok(None))?.map(drop), None);
            join.record(&other)?;
            stream.wait(&join)
        })?;
        let others: Vec<Buffer<f32>> = (0..8).map(|_| other.zeroed(100)).collect::<Result<_>>()?;
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
fn scratch_memory_of_a_capture_outlives_the_graph() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let (fork, join) = (Event::new(&device)?, Event::new(&device)?);
        let mut scratch = None;
        let graph = stream.capture(|stream| {
            fork.record(stream)?;
            other.wait(&fork)?;
            let mut of_joined = other.scratch::<u32>(100)?;
            other.fill_bytes(of_joined.view_mut(), 0xab)?;
            let mut of_own = stream.scratch::<u32>(100)?;
            stream.fill_bytes(of_own.view_mut(), 0xcd)?;
            scratch = Some((of_joined, of_own));
            join.record(&other)?;
            stream.wait(&join)
        })?;
        let (of_joined, of_own) = scratch.expect("the capture made it");
        // No replay has run yet, so the memory holds any bytes.
        assert_eq!(other.download(of_joined.view())?.len(), 100);
        // SAFETY: the graph keeps its scratch memory.
        unsafe { graph.launch(&stream)? };
        stream.synchronize()?;
        drop(graph);
        assert_eq!(other.download(of_joined.view())?, [0xabab_abab; 100]);
        assert_eq!(stream.download(of_own.view())?, [0xcdcd_cdcd; 100]);
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
        let graph = stream.capture(|stream| {
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
        let graph = stream.capture(|stream| {
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
            stream
                .capture(|stream| stream.download(&x).map(drop))
                .unwrap_err(),
        );
        expect(
            stream
                .capture(|stream| stream.upload(&[1]).map(drop))
                .unwrap_err(),
        );
        expect(stream.capture(Stream::synchronize).unwrap_err());
        let graph = stream.capture(|_| Ok::<_, Error>(()))?;
        // SAFETY: the graph is empty.
        expect(
            stream
                .capture(|stream| unsafe { graph.launch(stream) })
                .unwrap_err(),
        );
        let nested = stream.capture(|stream| stream.capture(|_| Ok(())).map(drop));
        expect(nested.unwrap_err());

        // The stream still works.
        assert!(!stream.is_capturing()?);
        assert_eq!(stream.download(&x)?, [0.0, 1.0, 2.0, 3.0]);
    }
    Ok(())
}
