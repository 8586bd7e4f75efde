//! A stream beside a GPU's stream, for work that the caller waits for. Nobody else has it, so no capture records its
//! work, and waiting for it disturbs no capture.

use std::ptr;

use cudarc::driver::sys::{self, CUresult, CUstream, CUstream_flags};

use crate::device::Place;
use crate::driver::check;
use crate::gpu::Gpu;
use crate::{Device, Result};

pub(crate) struct Aside {
    device: Device,
    stream: CUstream,
}

// SAFETY: the driver takes a stream's handle from any thread.
unsafe impl Send for Aside {}
// SAFETY: as above, and from several threads at a time.
unsafe impl Sync for Aside {}

impl Aside {
    /// A stream of `device`, which is this GPU.
    pub(crate) fn new(device: &Device, gpu: &Gpu) -> Result<Aside> {
        gpu.make_current()?;
        let mut stream: CUstream = ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the driver writes one handle.
        let code = unsafe { sys::cuStreamCreate(&mut stream, flags) };
        check("making a stream", code)?;
        Ok(Aside {
            device: device.clone(),
            stream,
        })
    }

    /// Has `enqueue` enqueue work, and waits until it is done. The device is current in this thread.
    pub(crate) fn run(
        &self,
        doing: &str,
        enqueue: impl FnOnce(CUstream) -> CUresult,
    ) -> Result<()> {
        let enqueued = enqueue(self.stream);
        // Also after an error, which may be that of earlier work.
        // SAFETY: the stream is alive.
        let waited = unsafe { sys::cuStreamSynchronize(self.stream) };
        check(doing, enqueued)?;
        check(doing, waited)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let Place::Gpu(gpu) = self.device.place()
            && gpu.make_current().is_ok()
        {
            // SAFETY: made in `new` and destroyed once. An error here is an earlier kernel's, and the next call
            // returns it.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.stream) };
        }
    }
}
