//! Tensors of other libraries by DLPack: a function that takes one and returns one, as a C or Python library calls it.
//! Run it with `--features dlpack`.

use std::error::Error;

use cutlet::dlpack::Imported;
use cutlet::dlpack::dlpark::ffi::DLManagedTensorVersioned;
use cutlet::dlpack::dlpark::{Managed, versioned};
use cutlet::{Device, DeviceTensor, Stream, Tensor, gemm};

/// The square of a matrix of f32. It reads the tensor where it is, and gives it back to its owner.
///
/// # Safety
/// The tensor is the caller's own. Its elements are ready in the stream, and nothing writes them meanwhile.
unsafe fn square(
    stream: &Stream,
    x: *mut DLManagedTensorVersioned,
) -> Result<*mut DLManagedTensorVersioned, Box<dyn Error>> {
    // SAFETY: the caller's promise.
    let x = unsafe { Imported::new(stream, Managed::from_raw(x)?)? };
    let shape = x.shape();
    // Whatever strides the tensor has: if no kernel reads them, the error says so.
    let x = Tensor::<f32>::from_dlpack(&x)?;
    let mut y = DeviceTensor::<f32>::zeroed(stream, shape)?;
    gemm(stream, 1.0, x, x, 0.0, &mut y)?;

    let y: versioned::Dlpack = stream.export_dlpack(y.into_buffer(), shape, None)?;
    Ok(y.into_raw())
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::auto();
    let stream = device.stream()?;

    // What another library has: the first two columns of a matrix of three, made in a stream of its own. It has its stream
    // and ours in order before it hands the tensor over. From Python, this is `x.__dlpack__(stream=…)`.
    let theirs = device.stream()?;
    let matrix = theirs.upload(&[1.0f32, 2.0, -1.0, 3.0, 4.0, -1.0])?;
    // SAFETY: our stream is alive, and nothing captures it.
    let x: versioned::Dlpack =
        unsafe { theirs.export_dlpack_to(stream.dlpack_stream(), matrix, &[2, 2], Some(&[3, 1]))? };

    // SAFETY: the tensor is ready in our stream, and nothing else has it.
    let y = unsafe { square(&stream, x.into_raw())? };

    // SAFETY: the tensor is ready in every stream, and nothing else has it.
    let y = unsafe { Imported::new(&theirs, Managed::from_raw(y)?)? };
    let elements = theirs.download(y.view::<f32>()?)?;
    assert_eq!(elements, [7.0, 10.0, 15.0, 22.0]);
    println!("{elements:?} in a {y:?}");
    Ok(())
}
