//! DLPack tensors: imports of other libraries' memory, exports of buffers, and what is refused.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cudarc::driver::CudaContext;
use cutlet_host::dlpack::dlpark::ffi::{
    DLDataType, DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned,
    DLPackVersion, DLTensor,
};
use cutlet_host::dlpack::dlpark::metadata::Dynamic;
use cutlet_host::dlpack::dlpark::{DlpackFlags, Managed, ManagedTensorBase, legacy, versioned};
use cutlet_host::dlpack::{Element, Imported, ImportedMut};
use cutlet_host::{Backend, Device, Error, Result, Stream, View};
use half::{bf16, f16};

/// The CPU, and the GPU where there is one.
fn devices() -> Vec<Device> {
    let auto = Device::auto();
    match auto.backend() {
        Backend::Gpu => vec![Device::cpu(), auto],
        Backend::Cpu => vec![auto],
    }
}

/// A tensor of a C library that counts how often the tensor was given back.
#[repr(C)]
struct Foreign<M> {
    /// What the consumer gets, at the address of the whole.
    managed: M,
    data: Vec<u64>,
    shape: Vec<i64>,
    strides: Vec<i64>,
    given_back: Arc<AtomicUsize>,
}

impl<M: ManagedTensorBase> Foreign<M> {
    /// 8 words in the CPU's memory, which `change` describes otherwise.
    fn hand_over(
        shape: &[i64],
        strides: &[i64],
        change: impl FnOnce(&mut M),
    ) -> (Managed<M>, Arc<AtomicUsize>) {
        let given_back = Arc::new(AtomicUsize::new(0));
        let managed = M::from_parts(DLTensor::default(), ptr::null_mut(), Some(give_back::<M>));
        let foreign = Box::into_raw(Box::new(Foreign {
            managed,
            data: (0..8).collect(),
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            given_back: given_back.clone(),
        }));
        // SAFETY: nothing else has the tensor yet.
        let tensor = unsafe {
            let foreign = &mut *foreign;
            *foreign.managed.tensor_mut() = DLTensor {
                data: foreign.data.as_mut_ptr().cast::<c_void>(),
                device: DLDevice::CPU,
                ndim: shape.len() as i32,
                dtype: DLDataType::U64,
                shape: foreign.shape.as_mut_ptr(),
                strides: foreign.strides.as_mut_ptr(),
                byte_offset: 0,
            };
            change(&mut foreign.managed);
            foreign as *mut Foreign<M>
        };
        // SAFETY: the tensor begins with `M`, and its shape and strides live as long.
        let managed = unsafe { Managed::from_raw(tensor.cast::<M>()) }.unwrap();
        (managed, given_back)
    }
}

unsafe extern "C" fn give_back<M>(managed: *mut M) {
    // SAFETY: made of a box in `hand_over`, and given back once.
    let foreign = unsafe { Box::from_raw(managed.cast::<Foreign<M>>()) };
    foreign.given_back.fetch_add(1, Ordering::Relaxed);
}

/// A tensor of 2×4 words on the CPU, which `change` describes otherwise.
fn changed(change: impl FnOnce(&mut DLTensor)) -> Managed<DLManagedTensor> {
    let change = |managed: &mut DLManagedTensor| change(&mut managed.dl_tensor);
    Foreign::hand_over(&[2, 4], &[4, 1], change).0
}

/// The message of a refusal to import.
fn refusal(change: impl FnOnce(&mut DLTensor)) -> String {
    let stream = Device::cpu().stream().unwrap();
    // SAFETY: a description that is wrong is refused before the memory is used.
    let refused = unsafe { Imported::new(&stream, changed(change)) };
    refused.unwrap_err().to_string()
}

fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_buffer_becomes_a_tensor_and_comes_back() -> Result<()> {
    fn check<M: ManagedTensorBase>(device: &Device) -> Result<()> {
        let stream = device.stream()?;
        let buffer = stream.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
        let address = buffer.view().address();
        let tensor: Managed<M> = stream.export_dlpack(buffer, &[2, 3], None)?;
        // SAFETY: the tensor is a buffer of the device, which nothing else uses.
        let mut tensor = unsafe { ImportedMut::new(&stream, tensor)? };
        assert_eq!(
            (tensor.shape(), tensor.strides()),
            (&[2, 3][..], &[3, 1][..])
        );
        assert_eq!(tensor.data_type(), f32::DATA_TYPE);
        assert_eq!(tensor.view::<f32>()?.address(), address, "it was copied");
        stream.copy_from_host(&[9.0], tensor.view_mut::<f32>()?.slice_mut(1..2)?)?;
        assert_eq!(
            stream.download(tensor.view::<f32>()?)?,
            [1.0, 9.0, 3.0, 4.0, 5.0, 6.0]
        );
        Ok(())
    }
    for device in devices() {
        check::<DLManagedTensor>(&device)?;
        check::<DLManagedTensorVersioned>(&device)?;
    }
    Ok(())
}

#[test]
fn a_tensor_is_used_in_the_stream_that_its_consumer_names() -> Result<()> {
    for device in devices() {
        let (producer, consumer) = (device.stream()?, device.stream()?);
        let is_gpu = device.backend() == Backend::Gpu;
        assert_eq!(consumer.dlpack_stream().is_some(), is_gpu);
        let mut consumers = vec![(consumer.dlpack_stream(), consumer)];
        if is_gpu {
            let context = CudaContext::new(0).unwrap();
            // SAFETY: this thread alone uses its stream.
            consumers.push((Some(2), unsafe { Stream::of_this_thread(&context)? }));
        }
        for (named, consumer) in &consumers {
            let buffer = producer.filled::<u8>(1 << 24, 7)?;
            // SAFETY: the consumer's stream is alive, and no thread captures it.
            let tensor: versioned::Dlpack =
                unsafe { producer.export_dlpack_to(*named, buffer, &[1 << 24], None)? };
            // SAFETY: the tensor is a buffer of the device, whose producer was given the stream.
            let tensor = unsafe { Imported::new(consumer, tensor)? };
            let last = tensor.view::<u8>()?.slice((1 << 24) - 1..)?;
            assert_eq!(consumer.download(last)?, [7]);
        }
    }
    Ok(())
}

#[test]
fn every_element_type_is_exported_and_imported() -> Result<()> {
    fn check<T: Element + PartialEq + std::fmt::Debug>(value: T, name: &str) -> Result<()> {
        let stream = Device::cpu().stream()?;
        let tensor: versioned::Dlpack =
            stream.export_dlpack(stream.upload(&[value])?, &[], None)?;
        // SAFETY: the tensor is a buffer of the device, which nothing else uses.
        let tensor = unsafe { Imported::new(&stream, tensor)? };
        assert_eq!(stream.download(tensor.view::<T>()?)?, [value]);
        says(
            &tensor.to_string(),
            &[&format!("tensor of {name} with shape () and")],
        );
        Ok(())
    }
    check(-1i8, "i8")?;
    check(-1i16, "i16")?;
    check(-1i32, "i32")?;
    check(-1i64, "i64")?;
    check(u8::MAX, "u8")?;
    check(u16::MAX, "u16")?;
    check(u32::MAX, "u32")?;
    check(u64::MAX, "u64")?;
    check(f16::EPSILON, "f16")?;
    check(bf16::EPSILON, "bf16")?;
    check(f32::EPSILON, "f32")?;
    check(f64::EPSILON, "f64")
}

#[test]
fn the_memory_of_another_library_is_used_in_place_until_the_import_ends() -> Result<()> {
    fn check<M: ManagedTensorBase>() -> Result<()> {
        let stream = Device::cpu().stream()?;
        let (tensor, given_back) = Foreign::<M>::hand_over(&[2, 4], &[1, 2], |_| ());
        // SAFETY: the tensor is on the CPU, and nothing else uses it.
        let mut tensor = unsafe { ImportedMut::new(&stream, tensor)? };
        // Columns are contiguous, and elements come in the order of addresses.
        assert_eq!(
            (tensor.shape(), tensor.strides()),
            (&[2, 4][..], &[1, 2][..])
        );
        assert_eq!(
            stream.download(tensor.view::<u64>()?)?,
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
        stream.fill_bytes(tensor.view_mut::<u64>()?.slice_mut(..7)?, 0)?;
        assert_eq!(
            stream.download(tensor.view::<u64>()?)?,
            [0, 0, 0, 0, 0, 0, 0, 7]
        );
        assert_eq!(given_back.load(Ordering::Relaxed), 0);
        drop(tensor);
        assert_eq!(given_back.load(Ordering::Relaxed), 1);
        Ok(())
    }
    check::<DLManagedTensor>()?;
    check::<DLManagedTensorVersioned>()
}

/// Looks at a byte when its tensor is given back, in a stream that waits for no other.
struct Observer {
    device: Device,
    address: u64,
    seen: Arc<AtomicUsize>,
}

impl Drop for Observer {
    fn drop(&mut self) {
        let stream = self.device.stream().unwrap();
        // SAFETY: the buffer that has the byte is freed later.
        let byte = unsafe { View::<u8>::from_raw(&self.device, self.address, 1) }.unwrap();
        let seen = stream.download(byte).unwrap()[0];
        self.seen.store(seen.into(), Ordering::Relaxed);
    }
}

#[test]
fn a_tensor_is_given_back_after_the_work_of_its_stream() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        // On a GPU, milliseconds of work, which the calls do not wait for.
        let (len, place) = match device.backend() {
            Backend::Cpu => (1 << 10, DLDevice::CPU),
            Backend::Gpu => (1 << 30, DLDevice::cuda(0)),
        };
        let buffer = stream.zeroed::<u8>(len)?;
        let address = buffer.view().address();
        let seen = Arc::new(AtomicUsize::new(0));
        let observer = Observer {
            device: device.clone(),
            address: address + len as u64 - 1,
            seen: seen.clone(),
        };
        let mut tensor = Dynamic::compact([len])
            .initialize_as::<DLManagedTensor>(Box::new(observer))
            .unwrap();
        tensor
            .set_data(ptr::with_exposed_provenance_mut(address as usize))
            .set_device(place)
            .set_dtype(DLDataType::U8);
        // SAFETY: the buffer outlives the tensor, and nothing else writes it.
        let mut tensor = unsafe { ImportedMut::new(&stream, tensor.finish())? };
        for byte in 1..=20 {
            stream.fill_bytes(tensor.view_mut::<u8>()?, byte)?;
        }
        drop(tensor);
        assert_eq!(seen.load(Ordering::Relaxed), 20);
    }
    Ok(())
}

#[test]
fn a_tensor_that_is_freed_in_order_is_given_back_once() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (tensor, given_back) = Foreign::<DLManagedTensor>::hand_over(&[8], &[1], |_| ());
    // SAFETY: the tensor is on the CPU, where work is done when its call returns, and nothing else uses it.
    let tensor = unsafe { ImportedMut::new(&stream, tensor)?.freed_in_order() };
    assert_eq!(given_back.load(Ordering::Relaxed), 0);
    drop(tensor);
    assert_eq!(given_back.load(Ordering::Relaxed), 1);
    Ok(())
}

#[test]
fn a_refused_tensor_is_given_back_once() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (tensor, given_back) = Foreign::<DLManagedTensor>::hand_over(&[8], &[-1], |_| ());
    // SAFETY: refused before the memory is used.
    unsafe { Imported::new(&stream, tensor) }.unwrap_err();
    assert_eq!(given_back.load(Ordering::Relaxed), 1);

    let read_only = |tensor: &mut DLManagedTensorVersioned| tensor.flags = DlpackFlags::READ_ONLY;
    let (tensor, given_back) = Foreign::hand_over(&[8], &[1], read_only);
    // SAFETY: as above.
    let refused = unsafe { ImportedMut::new(&stream, tensor) }.unwrap_err();
    says(
        &refused.to_string(),
        &["for writing was asked for", "read-only", "`Imported`"],
    );
    assert_eq!(given_back.load(Ordering::Relaxed), 1);

    let (tensor, _) = Foreign::hand_over(&[8], &[1], read_only);
    // SAFETY: the tensor is on the CPU, and nothing writes it.
    let tensor = unsafe { Imported::new(&stream, tensor)? };
    assert_eq!(tensor.view::<u64>()?.len(), 8);
    Ok(())
}

#[test]
fn a_tensor_belongs_to_one_stream() -> Result<()> {
    for device in devices() {
        let (stream, other) = (device.stream()?, device.stream()?);
        let buffer = stream.zeroed::<u64>(4)?;
        let tensor: legacy::Dlpack = stream.export_dlpack(buffer, &[4], None)?;
        // SAFETY: the tensor is a buffer of the device, which nothing else uses.
        let mut tensor = unsafe { ImportedMut::new(&stream, tensor)? };
        for refused in [
            other.download(tensor.view::<u64>()?).map(drop),
            other.fill_bytes(tensor.view_mut::<u64>()?, 1),
        ] {
            assert!(matches!(refused, Err(Error::WrongStream { .. })));
        }
    }
    Ok(())
}

/// An export waits for its own stream alone.
#[test]
#[cfg(debug_assertions)]
fn an_export_comes_after_the_work_of_other_streams() -> Result<()> {
    let device = Device::cpu();
    let (first, second) = (device.stream()?, device.stream()?);
    let export = |buffer| second.export_dlpack::<f32, DLManagedTensor>(buffer, &[3], None);
    let refused = export(first.zeroed(3)?).err();
    let refused = refused.expect("nothing orders the streams").to_string();
    says(&refused, &["the buffer (3 × f32)", "after a fill"]);
    let filled = first.zeroed(3)?;
    second.wait_for(&first)?;
    export(filled).map(drop)
}

#[test]
fn strides_may_be_left_out_before_version_1_2() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let without = |minor| {
        let change = move |managed: &mut DLManagedTensorVersioned| {
            managed.version = DLPackVersion { major: 1, minor };
            managed.dl_tensor.strides = ptr::null_mut();
        };
        Foreign::hand_over(&[2, 4], &[0, 0], change).0
    };
    // SAFETY: the tensor is on the CPU, and nothing else uses it.
    let tensor = unsafe { Imported::new(&stream, without(1))? };
    assert_eq!(tensor.strides(), [4, 1]);
    // SAFETY: refused before the memory is used.
    let refused = unsafe { Imported::new(&stream, without(2)) }.unwrap_err();
    says(
        &refused.to_string(),
        &["DLPack 1.2 requires explicit strides"],
    );

    // SAFETY: as above.
    let tensor = unsafe { Imported::new(&stream, changed(|it| it.strides = ptr::null_mut()))? };
    assert_eq!(tensor.strides(), [4, 1]);
    Ok(())
}

#[test]
fn empty_tensors_and_scalars_are_tensors() -> Result<()> {
    for device in devices() {
        let stream = device.stream()?;
        let tensor: versioned::Dlpack =
            stream.export_dlpack(stream.upload::<f32>(&[])?, &[3, 0], None)?;
        assert!(tensor.validate().unwrap().data_ptr().is_null());
        // SAFETY: the tensor has no elements.
        let mut tensor = unsafe { ImportedMut::new(&stream, tensor)? };
        assert_eq!(tensor.shape(), [3, 0]);
        assert!(tensor.view_mut::<f32>()?.is_empty());
    }
    let stream = Device::cpu().stream()?;
    // SAFETY: the tensor is on the CPU, and nothing else uses it.
    let scalar =
        unsafe { Imported::new(&stream, changed(|it| (it.ndim, it.byte_offset) = (0, 24)))? };
    assert_eq!(stream.download(scalar.view::<u64>()?)?, [3]);
    Ok(())
}

#[test]
fn wrong_descriptions_are_refused() {
    says(
        &refusal(|it| it.ndim = -1),
        &[
            "an import of a DLPack tensor was asked for",
            "ndim is negative",
        ],
    );
    says(
        &refusal(|it| it.shape = ptr::null_mut()),
        &["shape pointer is null"],
    );
    says(&refusal(|it| it.dtype.bits = 0), &["bit width"]);
    says(&refusal(|it| it.dtype.lanes = 0), &["lane count"]);
    says(
        &refusal(|it| it.byte_offset = u64::MAX),
        &["18446744073709551615 bytes after address"],
    );

    let refusal = |shape: &[i64], strides: &[i64]| {
        let stream = Device::cpu().stream().unwrap();
        let (tensor, _) = Foreign::<DLManagedTensor>::hand_over(shape, strides, |_| ());
        // SAFETY: refused before the memory is used.
        let refused = unsafe { Imported::new(&stream, tensor) };
        refused.unwrap_err().to_string()
    };
    says(&refusal(&[-1], &[1]), &["dimension 0 is negative: -1"]);
    says(
        &refusal(&[1 << 40, 1 << 40], &[0, 0]),
        &["number of elements overflows"],
    );
    says(
        &refusal(&[2, 3], &[3, -1]),
        &[
            "tensor of u64 with shape (2, 3) and strides (3, -1) was",
            "dimension 1 is negative",
            "copy it",
        ],
    );
    says(
        &refusal(&[2, 3], &[i64::MAX, i64::MAX]),
        &["strides reach beyond 64 bits"],
    );
}

#[test]
fn tensors_of_other_devices_are_refused() {
    let on = |device_type, device_id| {
        let device = DLDevice {
            device_type,
            device_id,
        };
        let stream = Device::cpu().stream().unwrap();
        // SAFETY: the memory is on the CPU, and nothing else uses it.
        unsafe { Imported::new(&stream, changed(|it| it.device = device)).map(drop) }
    };
    on(DLDeviceType::CUDAHOST, 0).unwrap();
    for (device_type, named) in [
        (DLDeviceType::CUDA, "gpu 1"),
        (DLDeviceType::CUDAMANAGED, "managed memory"),
        (DLDeviceType::ROCM, "device 1 of DLPack's type 10"),
    ] {
        let refused = on(device_type, 1).unwrap_err();
        assert!(matches!(refused, Error::WrongDevice { .. }), "{refused}");
        says(
            &refused.to_string(),
            &["the DLPack tensor is on", named, "the stream is on cpu"],
        );
    }
}

#[test]
fn views_of_other_types_are_refused() -> Result<()> {
    let stream = Device::cpu().stream()?;
    for (data_type, named) in [
        (DLDataType::I64, "i64"),
        (DLDataType::BOOL, "bool"),
        (DLDataType::C64, "complex numbers of 64 bits"),
        (
            DLDataType::new(DLDataTypeCode::UINT, 32, 2),
            "u32 in vectors of 2",
        ),
        (DLDataType::F4E2M1FN, "4 bits with DLPack's type code 17"),
    ] {
        let tensor = changed(|it| it.dtype = data_type);
        // SAFETY: the tensor is on the CPU, and nothing else uses it.
        let mut tensor = unsafe { ImportedMut::new(&stream, tensor)? };
        assert_eq!(tensor.data_type(), data_type);
        let refused = tensor.view::<u64>().unwrap_err().to_string();
        let found = format!("a DLPack tensor of {named} with shape (2, 4)");
        says(&refused, &["a view of u64 was asked for", &found]);
        assert_eq!(tensor.view_mut::<u64>().unwrap_err().to_string(), refused);
    }
    Ok(())
}

#[test]
fn addresses_that_no_element_has_are_refused() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let view = |change: fn(&mut DLTensor)| {
        // SAFETY: refused before the memory is used.
        let mut tensor = unsafe { ImportedMut::new(&stream, changed(change))? };
        let refused = tensor.view::<u64>().unwrap_err();
        assert_eq!(
            tensor.view_mut::<u64>().unwrap_err().to_string(),
            refused.to_string()
        );
        Ok::<_, Error>(refused)
    };
    let misaligned = view(|it| it.byte_offset = 4)?;
    assert!(
        matches!(misaligned, Error::BadPointer { alignment: 8, .. }),
        "{misaligned}"
    );
    says(&misaligned.to_string(), &["it is not aligned"]);
    let null = view(|it| (it.data, it.byte_offset) = (ptr::null_mut(), 8))?;
    says(&null.to_string(), &["0x0 was given", "it is null"]);
    Ok(())
}

#[test]
fn elements_with_gaps_have_a_span_and_no_view() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let (tensor, _) = Foreign::<DLManagedTensor>::hand_over(&[2, 3], &[4, 1], |_| ());
    // SAFETY: the tensor is on the CPU, and nothing else uses it.
    let mut tensor = unsafe { ImportedMut::new(&stream, tensor)? };
    let refused = tensor.view::<u64>().unwrap_err().to_string();
    says(
        &refused,
        &[
            "a view of u64",
            "shape (2, 3) and strides (4, 1) are not consecutive",
            "`span`",
        ],
    );
    assert_eq!(tensor.view_mut::<u64>().unwrap_err().to_string(), refused);

    // SAFETY: the element between the rows is not written, and has a value.
    let mut span = unsafe { tensor.span_mut::<u64>()? };
    stream.fill_bytes(span.slice_mut(4..)?, 0)?;
    assert_eq!(stream.download(&span)?, [0, 1, 2, 3, 0, 0, 0]);
    // SAFETY: as above.
    assert_eq!(unsafe { tensor.span::<u64>()? }.len(), 7);

    // The same row twice.
    let (tensor, _) = Foreign::<DLManagedTensor>::hand_over(&[2, 3], &[0, 1], |_| ());
    // SAFETY: the tensor is on the CPU, and nothing else uses it.
    let tensor = unsafe { Imported::new(&stream, tensor)? };
    says(
        &tensor.view::<u64>().unwrap_err().to_string(),
        &["strides (0, 1) are not consecutive"],
    );
    // SAFETY: there are no gaps.
    assert_eq!(unsafe { tensor.span::<u64>()? }.len(), 3);
    Ok(())
}

#[test]
fn shapes_that_do_not_fit_are_not_exported() -> Result<()> {
    let stream = Device::cpu().stream()?;
    let refusal = |shape: &[usize], strides: Option<&[usize]>| {
        let buffer = stream.zeroed::<f32>(6).unwrap();
        let refused = stream.export_dlpack::<f32, DLManagedTensorVersioned>(buffer, shape, strides);
        refused.err().expect("it does not fit").to_string()
    };
    says(
        &refusal(&[2, 4], None),
        &[
            "an export with shape (2, 4) in row-major order",
            "needs 8 elements and the buffer has 6",
        ],
    );
    says(
        &refusal(&[2, 2], Some(&[5, 1])),
        &["shape (2, 2) and strides (5, 1)", "needs 7 elements"],
    );
    says(
        &refusal(&[2, 2], Some(&[1])),
        &["each dimension needs one stride"],
    );
    says(&refusal(&[2, usize::MAX, 2], None), &["exceed 63 bits"]);
    says(&refusal(&[2], Some(&[usize::MAX])), &["exceed 63 bits"]);

    let buffer = stream.zeroed::<f32>(6)?;
    let tensor: versioned::Dlpack = stream.export_dlpack(buffer, &[2, 2], Some(&[4, 1]))?;
    let described = tensor.validate_export().unwrap();
    assert_eq!(
        (described.shape(), described.strides()),
        (&[2, 2][..], Some(&[4, 1][..]))
    );
    assert_eq!(
        (described.device(), described.dtype()),
        (DLDevice::CPU, DLDataType::F32)
    );
    Ok(())
}
