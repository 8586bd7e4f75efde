//! Memory and streams of other libraries, used in place by their addresses and handles.

use std::error::Error;

use cudarc::driver::{CudaContext, DevicePtr, DevicePtrMut};
use cutlet::{Backend, Device, Result, Stream, Tensor, TensorMut, View, ViewMut, gemm};

const X: [f32; 4] = [1.0, 2.0, 3.0, 4.0];
const X_SQUARED: [f32; 4] = [7.0, 10.0, 15.0, 22.0];

/// `y = x²` of 2×2 matrices at these addresses.
///
/// # Safety
/// At each address, four elements are memory of the stream's device, until the stream's work is done. Other accesses to
/// them are ordered with it.
unsafe fn square(stream: &Stream, x: u64, y: u64) -> Result<()> {
    // SAFETY: the caller's promise.
    let (x, y) = unsafe {
        (
            View::<f32>::from_raw(stream.device(), x, 4)?,
            ViewMut::<f32>::from_raw(stream.device(), y, 4)?,
        )
    };
    let x = Tensor::new(x, [2, 2])?;
    gemm(stream, 1.0, x, x, 0.0, TensorMut::new(y, [2, 2])?)
}

/// On the CPU, memory of any allocator.
fn memory_of_the_host(device: &Device) -> Result<Vec<f32>> {
    let (x, mut y) = (X.to_vec(), vec![0.0f32; 4]);
    let (from, to) = (x.as_ptr(), y.as_mut_ptr());
    let stream = device.stream()?;
    // SAFETY: both vectors live until the call returns, when the CPU's work is done.
    unsafe {
        square(
            &stream,
            from.expose_provenance() as u64,
            to.expose_provenance() as u64,
        )?
    };
    Ok(y)
}

/// On a GPU, a stream and slices of cudarc. It also has a safe way, by `Stream::from_cudarc` and `Borrowed`; this one is
/// for any library that tells its addresses and its stream's handle.
fn memory_of_cudarc() -> Result<Vec<f32>, Box<dyn Error>> {
    let context = CudaContext::new(0)?;
    let theirs = context.new_stream()?;
    let x = theirs.clone_htod(&X)?;
    let mut y = theirs.alloc_zeros::<f32>(4)?;

    let device = Device::from_cudarc(&context)?;
    // SAFETY: `theirs` outlives the result, and nothing captures it.
    let stream = unsafe { Stream::from_raw(&device, theirs.cu_stream().cast())? };
    {
        let (x, _until_read) = x.device_ptr(&theirs);
        let (y, _until_written) = y.device_ptr_mut(&theirs);
        // SAFETY: the slices have four elements. They are made, used and freed in this one stream.
        unsafe { square(&stream, x, y)? };
    }
    Ok(theirs.clone_dtoh(&y)?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::auto();
    let y = match device.backend() {
        Backend::Cpu => memory_of_the_host(&device)?,
        Backend::Gpu => memory_of_cudarc()?,
    };
    assert_eq!(y, X_SQUARED);
    println!("{X:?} squared is {y:?}, on {}", device.describe());
    Ok(())
}
