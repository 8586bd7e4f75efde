//! Streams and buffers of cudarc in calls of this crate. Needs a GPU.

use std::sync::Arc;

use cudarc::driver::CudaContext;
use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode};
use cutlet_host::{Backend, Borrowed, BorrowedMut, Device, Error, Stream};
use cutlet_not_run::not_run;

/// cudarc's context of GPU 0, if there is a GPU.
fn context() -> Option<Arc<CudaContext>> {
    if Device::auto().backend() == Backend::Cpu {
        not_run("there is no GPU");
        return None;
    }
    Some(CudaContext::new(0).unwrap())
}

#[test]
fn a_stream_of_cudarc_is_a_stream() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
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

#[test]
fn slices_of_cudarc_are_read_and_written() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
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

/// cudarc has safe functions that begin and end a capture of a stream.
#[test]
fn a_capture_that_cudarc_began_is_noticed() -> Result<(), Box<dyn std::error::Error>> {
    let Some(context) = context() else {
        return Ok(());
    };
    let theirs = context.new_stream()?;
    let (ours, again) = (Stream::from_cudarc(&theirs)?, Stream::from_cudarc(&theirs)?);
    assert_eq!(ours, again);
    let mut x = ours.upload(&[1u32, 2, 3])?;
    theirs.begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
    for stream in [&ours, &again] {
        let refused = stream.download(&x).unwrap_err();
        assert!(matches!(refused, Error::Capturing { .. }), "{refused}");
    }
    let mut scratch = ours.scratch::<u32>(3)?;
    ours.copy(&x, scratch.view_mut())?;
    again.copy(scratch.view(), &mut x)?;
    let graph = theirs
        .end_capture(CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH)?;
    for refused in [
        ours.download(scratch.view()).map(drop),
        ours.fill_bytes(scratch.view_mut(), 0),
    ] {
        let refused = refused.unwrap_err();
        assert!(matches!(refused, Error::Capture { .. }), "{refused}");
    }
    drop(scratch);
    drop(graph);
    assert_eq!(ours.download(&x)?, [1, 2, 3]);
    Ok(())
}
