//! Streams and buffers of cudarc in calls of this crate. Needs a GPU.

use std::sync::Arc;

use cudarc::driver::CudaContext;
use cutlet_host::{Backend, Borrowed, BorrowedMut, Device, Error, Stream};

/// cudarc's context of GPU 0, if there is a GPU.
fn context() -> Option<Arc<CudaContext>> {
    if Device::auto().backend() == Backend::Cpu {
        println!("not run: there is no GPU");
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
    let ours = Device::gpu(0)?.stream()?;

    let read = Borrowed::new(&ours, &slice)?;
    assert_eq!(ours.download(read.view())?, [1.0, 2.0, 3.0]);
    drop(read);

    let mut written = BorrowedMut::new(&ours, &mut slice)?;
    ours.fill_bytes(written.view_mut().slice_mut(1..)?, 0)?;
    drop(written);
    assert_eq!(theirs.clone_dtoh(&slice)?, [1.0, 0.0, 0.0]);

    let cpu = Device::cpu().stream()?;
    let refused = Borrowed::new(&cpu, &slice).unwrap_err();
    assert!(matches!(refused, Error::WrongDevice { .. }), "{refused}");
    Ok(())
}
