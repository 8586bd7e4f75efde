//! Buffers, views, copies, fills and events, on the CPU and on a GPU if there is one.

use std::time::Duration;

use cutlet_host::{Backend, Device, Error, Event, PinnedBuffer, Result, View, ViewMut};
use cutlet_not_run::not_run;

/// The CPU, and the GPU where there is one.
fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

#[test]
fn a_download_returns_the_upload() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let data: Vec<f64> = (0..10_007).map(f64::from).collect();
        let buffer = stream.upload(&data)?;
        assert_eq!(buffer.len(), data.len());
        assert_eq!(buffer.device(), &device);
        assert_eq!(stream.download(&buffer)?, data);

        let mut part = vec![0.0; 7];
        stream.copy_to_host(buffer.slice(10_000..)?, &mut part)?;
        assert_eq!(part, data[10_000..]);
    }
    Ok(())
}

#[test]
fn empty_buffers_work() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut empty = stream.upload::<f32>(&[])?;
        assert!(empty.is_empty());
        stream.fill_bytes(&mut empty, 1)?;
        assert_eq!(stream.download(&empty)?, []);
        let mut other = stream.zeroed::<f32>(3)?;
        stream.copy(&empty, other.slice_mut(3..)?)?;
        assert_eq!(stream.download(&other)?, [0.0; 3]);
    }
    Ok(())
}

#[test]
fn copies_and_fills_write_only_their_slice() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let source = stream.upload(&[1u16, 2, 3, 4])?;
        let mut buffer = stream.filled::<u16>(6, 0xee)?;
        stream.copy(source.slice(1..=2)?, buffer.slice_mut(1..3)?)?;
        stream.fill_bytes(buffer.slice_mut(4..5)?, 0)?;
        let expected = [0xeeee, 2, 3, 0xeeee, 0, 0xeeee];
        assert_eq!(stream.download(&buffer)?, expected);

        let (mut low, high) = buffer.view_mut().split_at(2)?;
        stream.copy(&high.view().slice(..2)?, &mut low)?;
        assert_eq!(stream.download(&buffer)?, [3, 0xeeee, 3, 0xeeee, 0, 0xeeee]);
    }
    Ok(())
}

#[test]
fn pinned_memory_is_copied_both_ways() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut there = PinnedBuffer::<i32>::zeroed(&device, 1000)?;
        let mut back = PinnedBuffer::<i32>::zeroed(&device, 1000)?;
        assert!(there.iter().all(|&x| x == 0));
        for (at, x) in (0..).zip(there.iter_mut()) {
            *x = at;
        }
        let mut buffer = stream.zeroed::<i32>(1000)?;
        // SAFETY: all three stay alive and are not accessed until `synchronize` has returned.
        unsafe {
            stream.copy_from_host_async(&there, &mut buffer)?;
            stream.copy_to_host_async(&buffer, &mut back)?;
        }
        stream.synchronize()?;
        assert_eq!(there[..], back[..]);
    }
    Ok(())
}

#[test]
fn a_stream_keeps_its_scratch_memory_for_later() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut copies = stream.zeroed::<u8>(4)?;
        let mut addresses = Vec::new();
        for byte in 0..4 {
            let (mut scratch, other) = (stream.scratch::<u8>(100)?, stream.scratch::<u8>(200)?);
            assert_ne!(scratch.view().address(), other.view().address());
            stream.fill_bytes(scratch.view_mut(), byte)?;
            let at = usize::from(byte);
            let to = copies.slice_mut(at..=at)?;
            stream.copy(scratch.view().slice(..1)?, to)?;
            addresses.push((scratch.view().address(), other.view().address()));
        }
        assert_eq!(stream.download(&copies)?, [0, 1, 2, 3]);
        if device.backend() == Backend::Gpu {
            assert!(addresses.iter().all(|&both| both == addresses[0]));
        }
    }
    Ok(())
}

#[test]
fn memory_from_outside_is_used_in_place() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut owner = stream.upload(&[1u32, 2, 3, 4])?;
        let address = owner.view().address();
        // SAFETY: `owner` stays alive, and one stream orders all accesses.
        let outside = unsafe { View::<u32>::from_raw(&device, address + 4, 2)? };
        assert_eq!(stream.download(outside)?, [2, 3]);
        // SAFETY: as above.
        let outside = unsafe { ViewMut::<u64>::from_raw(&device, address, 2)? };
        stream.copy_from_host(&[7, 8], outside)?;
        assert_eq!(stream.download(&owner)?, [7, 0, 8, 0]);
        stream.fill_bytes(&mut owner, 0)?;

        // SAFETY: refused before anything is accessed.
        let refused = unsafe { View::<u64>::from_raw(&device, address + 4, 1) };
        assert!(matches!(
            refused,
            Err(Error::BadPointer { alignment: 8, .. })
        ));
        // SAFETY: as above.
        let refused = unsafe { View::<u64>::from_raw(&device, 0, 1) };
        assert!(refused.unwrap_err().to_string().contains("null"));
        // SAFETY: as above.
        let refused = unsafe { View::<u64>::from_raw(&device, address, usize::MAX / 4) };
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("past the end of the address space")
        );
    }
    Ok(())
}

#[test]
fn extents_that_do_not_fit_are_errors() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let mut buffer = stream.zeroed::<f32>(4)?;
        for refused in [buffer.slice(2..5), buffer.slice(5..), buffer.slice(..=4)] {
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("of a buffer of 4"), "{message}");
        }
        #[expect(
            clippy::reversed_empty_ranges,
            reason = "the range under test is reversed"
        )]
        let refused = buffer.slice(3..1);
        assert!(matches!(
            refused,
            Err(Error::OutOfRange {
                start: 3,
                end: 1,
                len: 4
            })
        ));
        assert!(buffer.slice(usize::MAX..).is_err());
        assert!(buffer.view_mut().split_at(5).is_err());

        let error = stream.copy_from_host(&[1.0; 3], &mut buffer).unwrap_err();
        let message = error.to_string();
        assert!(
            message.contains("source has 3 elements, the destination 4"),
            "{message}"
        );
        assert!(stream.copy_to_host(&buffer, &mut [0.0; 5]).is_err());
    }
    Ok(())
}

#[test]
#[cfg_attr(miri, ignore = "Miri ends if there is too little memory")]
fn too_much_memory_is_an_error() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        for len in [usize::MAX, isize::MAX as usize / 8, 1 << 50] {
            let error = stream.zeroed::<f64>(len).unwrap_err();
            assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        }
        assert_eq!(stream.download(&stream.upload(&[1u8])?)?, [1]);
    }
    Ok(())
}

#[test]
fn events_time_and_order_streams() -> Result<()> {
    for device in devices() {
        let (first, second) = (device.stream()?, device.stream()?);
        let (start, end) = (Event::new(&device)?, Event::new(&device)?);
        assert!(matches!(
            end.elapsed_since(&start),
            Err(Error::EventNotRecorded { .. })
        ));

        start.record(&first)?;
        let mut buffer = first.filled::<u8>(1 << 24, 1)?;
        first.fill_bytes(&mut buffer, 2)?;
        end.record(&first)?;
        second.wait(&end)?;
        let last = second.download(buffer.slice((1 << 24) - 1..)?)?;
        assert_eq!(last, [2]);
        end.synchronize()?;
        assert!(end.elapsed_since(&start)? > Duration::ZERO);
    }
    Ok(())
}

#[test]
fn a_device_says_what_it_is_and_why() {
    let cpu = Device::cpu();
    assert_eq!(cpu.describe().to_string(), "cpu (it was asked for)");
    assert_eq!(cpu.compute_capability(), None);
    assert!(cpu.multiprocessors() > 0);

    let auto = Device::auto();
    let description = auto.describe();
    match auto.backend() {
        Backend::Gpu => assert_eq!(description.why, "the NVIDIA driver offers it"),
        Backend::Cpu => assert!(description.why.contains("NVIDIA driver"), "{description}"),
    }
    assert_eq!(auto, Device::auto());
}

#[test]
fn an_unwrapped_error_shows_its_message() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let x = stream.zeroed::<u8>(2)?;
    let error = x.slice(1..3).unwrap_err();
    assert_eq!(format!("{error:?}"), error.to_string());
    assert!(error.to_string().contains('3'), "{error}");
    Ok(())
}

#[test]
fn a_gpu_that_does_not_exist_is_an_error() {
    let error = Device::gpu(1000).unwrap_err();
    match Device::auto().backend() {
        Backend::Gpu => assert!(matches!(error, Error::NoSuchGpu { ordinal: 1000, .. })),
        Backend::Cpu => {
            let message = error.to_string();
            assert!(
                message.starts_with("gpu 1000 was asked for, but"),
                "{message}"
            );
            assert!(message.contains("Device::cpu()"), "{message}");
        }
    }
}

#[test]
fn devices_are_not_mixed() -> Result<()> {
    let auto = Device::auto();
    if auto.backend() == Backend::Cpu {
        not_run("there is no GPU, only one device");
        return Ok(());
    }
    let (gpu, cpu) = (auto.stream()?, Device::cpu().stream()?);
    let mut there = gpu.zeroed::<f32>(1)?;
    let here = cpu.zeroed::<f32>(1)?;
    let message = gpu.copy(&here, &mut there).unwrap_err().to_string();
    assert!(
        message.starts_with("the source is on cpu, but the stream is on gpu 0"),
        "{message}"
    );
    assert!(cpu.download(&there).is_err());
    assert!(cpu.fill_bytes(&mut there, 0).is_err());
    let event = Event::new(cpu.device())?;
    assert!(matches!(event.record(&gpu), Err(Error::WrongDevice { .. })));
    Ok(())
}

#[test]
fn gpus_are_not_mixed() -> Result<()> {
    let (Ok(first), Ok(second)) = (Device::gpu(0), Device::gpu(1)) else {
        not_run("there are not two GPUs");
        return Ok(());
    };
    let (on_first, on_second) = (first.stream()?, second.stream()?);
    let x = on_first.upload(&[1.0f32])?;
    let mut y = on_second.zeroed::<f32>(1)?;
    let message = on_second.copy(&x, &mut y).unwrap_err().to_string();
    assert!(
        message.starts_with("the source is on gpu 0") && message.contains("on gpu 1"),
        "{message}"
    );
    on_second.copy_from_host(&on_first.download(&x)?, &mut y)?;
    assert_eq!(on_second.download(&y)?, [1.0]);
    Ok(())
}
