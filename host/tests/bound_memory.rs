//! Memory that is bound to a stream is used in this stream alone, on the CPU and on a GPU if there is one.

use cutlet_host::{Backend, Device, Error, Result};

fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

fn is_refused<T>(result: Result<T>) {
    let error = result.err().expect("the memory is of another stream");
    assert!(matches!(error, Error::WrongStream { .. }), "{error}");
}

#[test]
fn scratch_memory_is_not_used_in_another_stream() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let x = stream.upload(&[1u32, 2, 3])?;
        let mut y = stream.zeroed::<u32>(3)?;
        let mut scratch = stream.scratch::<u32>(3)?;
        is_refused(other.copy(&x, scratch.view_mut()));
        is_refused(other.copy(scratch.view(), &mut y));
        is_refused(other.fill_bytes(scratch.view_mut(), 0));
        is_refused(other.copy_from_host(&[7; 3], scratch.view_mut()));
        is_refused(other.copy_to_host(scratch.view(), &mut [0; 3]));
        is_refused(other.download(scratch.view().slice(1..)?));
        is_refused(other.download(scratch.view_mut().split_at(1)?.0.view()));

        stream.copy(&x, scratch.view_mut())?;
        assert_eq!(stream.download(scratch.view())?, [1, 2, 3]);
        let usable = |stream| scratch.view().expect_usable_in(stream, || "it".to_string());
        usable(&stream)?;
        is_refused(usable(&other));
        x.view().expect_usable_in(&other, || "it".to_string())?;
    }
    Ok(())
}

#[test]
fn memory_that_is_cast_stays_bound() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let mut scratch = stream.scratch::<u64>(2)?;
        stream.copy_from_host(&[1, u64::MAX], scratch.view_mut())?;
        let words = scratch.view().cast::<u32>()?;
        assert_eq!(stream.download(words)?, [1, 0, u32::MAX, u32::MAX]);
        is_refused(other.download(words));
        is_refused(other.fill_bytes(scratch.view_mut().cast::<u8>()?, 0));
        stream.fill_bytes(scratch.view_mut().cast::<u8>()?.slice_mut(..4)?, 7)?;
        assert_eq!(stream.download(scratch.view())?, [0x0707_0707, u64::MAX]);

        // Bytes that are no whole element are left out, and elements stay aligned.
        let bytes = scratch.view().cast::<u8>()?;
        assert_eq!(bytes.slice(..15)?.cast::<u32>()?.len(), 3);
        assert_eq!(bytes.slice(1..)?.cast::<[u8; 3]>()?.len(), 5);
        let error = bytes.slice(1..)?.cast::<u32>().unwrap_err();
        assert!(matches!(error, Error::BadPointer { .. }), "{error}");
    }
    Ok(())
}
