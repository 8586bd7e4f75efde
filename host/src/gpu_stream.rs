//! Streams of a GPU's driver.

use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;

use cudarc::driver::CudaStream;

use crate::driver::RelaxedCaptureMode;

/// A stream of a GPU's driver. cudarc owns the handle, so that a program can use it with cudarc.
pub(crate) struct GpuStream(ManuallyDrop<Arc<CudaStream>>);

impl GpuStream {
    /// The stream as one of cudarc.
    pub(crate) fn as_cudarc(&self) -> &Arc<CudaStream> {
        &self.0
    }
}

impl From<Arc<CudaStream>> for GpuStream {
    fn from(stream: Arc<CudaStream>) -> GpuStream {
        GpuStream(ManuallyDrop::new(stream))
    }
}

impl Deref for GpuStream {
    type Target = CudaStream;
    fn deref(&self) -> &CudaStream {
        &self.0
    }
}

impl Drop for GpuStream {
    fn drop(&mut self) {
        let _relaxed = RelaxedCaptureMode::enter();
        // SAFETY: dropped once, and not used later.
        unsafe { ManuallyDrop::drop(&mut self.0) };
    }
}
