//! Streams and buffers of cudarc in calls of this crate. Needs a GPU.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::CudaContext;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cutlet_host::{Backend, Borrowed, BorrowedMut, Device, Error, Event, PinnedBuffer, Stream};
use cutlet_not_run::not_run;

/// cudarc's context of GPU 0, if there is a GPU.
fn context() -> Option<Arc<CudaContext>> {
    if Device::auto().backend() == Backend::Cpu {
        not_run("there is no GPU");
        return None;
    }
    Some(CudaContext::new(0).unwrap())
}

/// cudarc's own calls disturb cudarc's captures in other threads, so one test at a time uses cudarc.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn a_stream_of_cudarc_is_a_stream() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let theirs = context.new_stream()?;
    let ours = Stream::from_cudarc(&theirs)?;
    assert_eq!(ours.device(), &Device::gpu(0)?);
    assert_eq!(ours.as_raw(), Some(theirs.cu_stream().cast()));

    // SAFETY: `theirs` outlives the borrowed stream.
    let raw = unsafe { Stream::from_raw(ours.device(), theirs.cu_stream().cast())? };
    let buffer = raw.upload(&[1u8, 2, 3])?;
    assert_eq!(ours.download(&buffer)?, [1, 2, 3]);
    Ok(())
}

/// This crate does not see that order.
#[test]
fn work_that_cudarc_orders_is_not_refused() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let device = Device::from_cudarc(&context)?;
    let (first, second) = (device.stream()?, device.stream()?);
    let mut x = first.filled::<u8>(100, 1)?;
    context.synchronize()?;
    assert_eq!(second.download(&x)?, [1; 100]);
    first.fill_bytes(&mut x, 2)?;
    let theirs = [&first, &second].map(|stream| stream.as_cudarc().expect("it is a GPU's"));
    theirs[1].join(theirs[0])?;
    assert_eq!(second.download(&x)?, [2; 100]);
    Ok(())
}

#[test]
fn slices_of_cudarc_are_read_and_written() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let theirs = context.new_stream()?;
    let mut slice = theirs.clone_htod(&[1.0f32, 2.0, 3.0])?;
    let ours = Stream::from_cudarc(&theirs)?;

    let read = Borrowed::new(&ours, slice.as_view())?;
    assert_eq!(ours.download(read.view())?, [1.0, 2.0, 3.0]);
    drop(read);
    let read = Borrowed::new(&ours, slice.slice(1..))?;
    assert_eq!(ours.download(read.view())?, [2.0, 3.0]);
    drop(read);

    let mut written = BorrowedMut::new(&ours, slice.as_view_mut())?;
    ours.fill_bytes(written.view_mut().slice_mut(1..)?, 0)?;
    drop(written);
    assert_eq!(theirs.clone_dtoh(&slice)?, [1.0, 0.0, 0.0]);

    let cpu = Device::cpu().stream()?;
    let refused = Borrowed::new(&cpu, slice.as_view()).unwrap_err();
    assert!(matches!(refused, Error::WrongDevice { .. }), "{refused}");
    Ok(())
}

#[test]
fn slices_of_cudarc_are_used_in_their_own_stream() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let theirs = context.new_stream()?;
    let mut slice = theirs.clone_htod(&[1.0f32, 2.0, 3.0])?;
    let another = Device::gpu(0)?.stream()?;
    let refused = Borrowed::new(&another, slice.as_view()).unwrap_err();
    assert!(matches!(refused, Error::WrongStream { .. }), "{refused}");
    let refused = BorrowedMut::new(&another, slice.as_view_mut()).unwrap_err();
    assert!(matches!(refused, Error::WrongStream { .. }), "{refused}");

    let ours = Stream::from_cudarc(&theirs)?;
    let read = Borrowed::new(&ours, slice.as_view())?;
    let refused = another.download(read.view()).unwrap_err();
    assert!(matches!(refused, Error::WrongStream { .. }), "{refused}");
    drop(read);
    // Without its guard, the slice is freed after the stream's work all the same.
    let mut forgotten = BorrowedMut::new(&ours, slice.as_view_mut())?;
    ours.fill_bytes(forgotten.view_mut(), 0)?;
    std::mem::forget(forgotten);
    drop(slice);
    ours.synchronize()?;

    // Slices can be allocated in a stream of this crate.
    let theirs = another.as_cudarc().expect("the stream is a GPU's");
    let slice = theirs.clone_htod(&[4.0f32])?;
    let read = Borrowed::new(&another, slice.as_view())?;
    assert_eq!(another.download(read.view())?, [4.0]);
    Ok(())
}

#[test]
fn the_per_thread_stream_is_no_stream() {
    let Some(context) = context() else {
        return;
    };
    let refused = Stream::from_cudarc(&context.per_thread_stream()).unwrap_err();
    assert!(matches!(refused, Error::PerThreadStream), "{refused}");
}

/// Programs with candle have their work in the stream that each thread has by default.
#[test]
fn each_thread_has_the_stream_that_is_its_default() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let work = |first: u32| -> Result<(), cutlet_host::Error> {
        // SAFETY: the stream stays in its thread.
        let stream = unsafe { Stream::of_this_thread(&context)? };
        let theirs = context.per_thread_stream();
        let slice = theirs.clone_htod(&[first, 2, 3]).expect("there is memory");
        let mut copy = theirs.alloc_zeros::<u32>(3).expect("there is memory");
        for round in 0..50 {
            // Scratch memory and words, whose work the dropped stream leaves behind.
            let mut scratch = stream.scratch::<u32>(3)?;
            let read = Borrowed::new(&stream, slice.as_view())?;
            stream.copy(read.view(), scratch.view_mut())?;
            let mut write = BorrowedMut::new(&stream, copy.as_view_mut())?;
            stream.copy(scratch.view(), write.view_mut())?;
            let words = stream.resident("words", || Ok(Some(vec![first])))?;
            let words = words.expect("nothing is being captured");
            assert_eq!(stream.download(&*words)?, [first], "round {round}");
            assert_eq!(stream.download(write.view_mut().view())?, [first, 2, 3]);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (7..11)
            .map(|first| scope.spawn(move || work(first)))
            .collect();
        for thread in threads {
            thread.join().expect("a thread panicked")?;
        }
        Ok(())
    })
}

/// Streams of one handle have words of their own, and none during a capture by another library.
#[test]
fn streams_of_one_handle_keep_their_own_words() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let theirs = context.new_stream()?;
    let streams = [Stream::from_cudarc(&theirs)?, Stream::from_cudarc(&theirs)?];
    let words = |nth: usize| streams[nth].resident("words", || Ok(Some(vec![nth as u32])));
    let [one, another] = [words(0)?, words(1)?].map(|it| it.expect("nothing is being captured"));
    assert_ne!(one.view().address(), another.view().address());
    assert_eq!(
        words(0)?.map(|it| it.view().address()),
        Some(one.view().address())
    );
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    assert!(words(0)?.is_none());
    theirs
        .end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)?;
    assert!(words(1)?.is_some());
    Ok(())
}

/// cudarc has safe functions that begin and end a capture of a stream.
#[test]
fn a_capture_that_cudarc_began_is_noticed() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let theirs = context.new_stream()?;
    let (ours, again) = (Stream::from_cudarc(&theirs)?, Stream::from_cudarc(&theirs)?);
    assert_eq!(ours, again);
    let mut x = ours.upload(&[1u32, 2, 3])?;
    let mut y = ours.zeroed::<u32>(3)?;
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    for stream in [&ours, &again] {
        let refused = stream.download(&x).unwrap_err();
        assert!(matches!(refused, Error::Capturing { .. }), "{refused}");
        let refused = stream.fork().unwrap_err();
        assert!(matches!(refused, Error::Capture { .. }), "{refused}");
        assert_eq!(stream.filled::<u8>(3, 7)?.len(), 3);
    }
    let mut scratch = ours.scratch::<u32>(3)?;
    ours.copy(&x, scratch.view_mut())?;
    again.copy(scratch.view(), &mut y)?;
    let address = scratch.view().address();
    drop(scratch);
    // Later work of the capture may use the memory.
    let mut scratch = ours.scratch::<u32>(3)?;
    assert_eq!(scratch.view().address(), address);
    let graph = theirs
        .end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)?
        .expect("the capture recorded two copies");
    // It is memory as any other after the capture.
    ours.fill_bytes(scratch.view_mut(), 1)?;
    assert_eq!(ours.download(scratch.view())?, [0x0101_0101; 3]);
    assert_eq!(ours.download(&y)?, [0; 3]);
    ours.copy_from_host(&[4, 5, 6], &mut x)?;
    graph.launch()?;
    assert_eq!(ours.download(&y)?, [4, 5, 6]);
    assert_eq!(ours.download(scratch.view())?, [4, 5, 6]);
    drop(graph);
    assert_eq!(ours.download(scratch.view())?, [4, 5, 6]);
    Ok(())
}

/// Scratch memory of a capture by cudarc is the graph's alone, as long as the graph lives.
#[test]
fn a_graph_of_cudarc_keeps_scratch_memory() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    const BYTES: usize = 1 << 20;
    let theirs = context.new_stream()?;
    let ours = Stream::from_cudarc(&theirs)?;
    let x = ours.filled::<u8>(BYTES, 5)?;
    let mut y = ours.zeroed::<u8>(BYTES)?;
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    let mut scratch = ours.scratch::<u8>(BYTES)?;
    let of_graph = scratch.view().address();
    ours.copy(&x, scratch.view_mut())?;
    ours.copy(scratch.view(), &mut y)?;
    drop(scratch);
    let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
    let graph = theirs
        .end_capture(flags)?
        .expect("the capture recorded two copies");
    drop(ours);
    let another = Device::gpu(0)?.stream()?;
    let others = (0..64).map(|_| another.filled::<u8>(BYTES, 9));
    let others = others.collect::<Result<Vec<_>, _>>()?;
    assert!(
        others
            .iter()
            .all(|other| other.view().address() != of_graph)
    );
    graph.launch()?;
    theirs.synchronize()?;
    assert_eq!(another.download(&y)?, [5; BYTES]);
    for other in &others {
        assert_eq!(another.download(other)?, [9; BYTES]);
    }
    Ok(())
}

/// In CUDA's global mode, a capture forbids all threads many calls. This crate's calls are none of them, and they leave
/// the capture alone.
#[test]
fn a_capture_of_cudarc_in_global_mode_forbids_nothing() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let _alone = alone();
    let theirs = context.new_stream()?;
    let captured = Stream::from_cudarc(&theirs)?;
    let mut recorded = captured.filled::<u8>(100, 0xff)?;
    let (device, stream) = (Device::gpu(0)?, Device::gpu(0)?.stream()?);
    let x = stream.upload(&[7u32; 1000])?;
    let (start, end) = (Event::new(&device)?, Event::new(&device)?);
    type Call<'a> = (&'a str, &'a (dyn Fn() -> cutlet_host::Result<()> + Sync));
    let calls: [Call; 8] = [
        ("a stream", &|| device.stream().map(drop)),
        ("an upload", &|| stream.upload(&[7u32; 1000]).map(drop)),
        ("a download", &|| stream.download(&x).map(drop)),
        ("page-locked memory", &|| {
            PinnedBuffer::<u32>::zeroed(&device, 1000).map(drop)
        }),
        ("an event", &|| Event::new(&device).map(drop)),
        ("the time between events", &|| {
            start.record(&stream)?;
            end.record(&stream)?;
            end.synchronize()?;
            end.elapsed_since(&start).map(drop)
        }),
        ("scratch memory", &|| {
            let mut scratch = stream.scratch::<u32>(1000)?;
            stream.copy(&x, scratch.view_mut())?;
            drop(scratch);
            stream.synchronize()
        }),
        ("another capture", &|| {
            let mut y = stream.zeroed::<u32>(1000)?;
            let graph = device.capture(|stream| {
                let mut scratch = stream.scratch::<u32>(1000)?;
                stream.copy(&x, scratch.view_mut())?;
                stream.copy(scratch.view(), &mut y)
            })?;
            // SAFETY: the buffers live past the download.
            unsafe { graph.launch(&stream)? };
            assert_eq!(stream.download(&y)?, [7; 1000]);
            Ok(())
        }),
    ];
    for (name, call) in calls {
        for in_another_thread in [true, false] {
            let of = |error: &dyn std::fmt::Display| format!("{name}: {error}");
            theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL)?;
            let result = match in_another_thread {
                true => std::thread::scope(|scope| scope.spawn(call).join())
                    .expect("a call returns errors and does not panic"),
                false => call(),
            };
            let fill = captured.fill_bytes(&mut recorded, 0);
            let flags = CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
            let graph = theirs.end_capture(flags).map_err(|it| of(&it))?;
            result.map_err(|it| of(&it))?;
            fill.map_err(|it| of(&it))?;
            captured.fill_bytes(&mut recorded, 0xff)?;
            graph.expect("the capture recorded a fill").launch()?;
            assert_eq!(captured.download(&recorded)?, [0; 100], "{name}");
        }
    }
    Ok(())
}
