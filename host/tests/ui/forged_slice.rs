//! A type of one's own in place of a cudarc view. Its address may be any number.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaStream, DevicePtr, DeviceSlice, SyncOnDrop};
use cutlet_host::{Borrowed, Result, Stream};

struct Forged(Arc<CudaStream>);

impl DeviceSlice<f32> for Forged {
    fn len(&self) -> usize {
        1 << 40
    }

    fn stream(&self) -> &Arc<CudaStream> {
        &self.0
    }
}

impl DevicePtr<f32> for Forged {
    fn device_ptr<'a>(&'a self, _: &'a CudaStream) -> (CUdeviceptr, SyncOnDrop<'a>) {
        (0xdead_0000, SyncOnDrop::Sync(None))
    }
}

fn download(stream: &Stream, forged: Forged) -> Result<Vec<f32>> {
    let forged = Borrowed::new(stream, forged)?;
    stream.download(forged.view())
}

fn main() {}
