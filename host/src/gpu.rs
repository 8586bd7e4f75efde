//! A GPU of the driver: its context and its compute capability.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::CudaContext;
use cudarc::driver::sys;

use crate::Result;
use crate::driver::{During, RelaxedCaptureMode, check};
use crate::gpu_stream::GpuStream;

pub(crate) struct Gpu {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) capability: (u32, u32),
    /// Never used. cudarc waits for the whole device when the first stream of a context is made, which a capture of
    /// another library forbids.
    _first_stream: Option<GpuStream>,
}

impl Gpu {
    /// A GPU with this context.
    pub(crate) fn new(context: Arc<CudaContext>, capability: (u32, u32)) -> Gpu {
        let _relaxed = RelaxedCaptureMode::enter();
        let first_stream = context.new_stream().ok().map(GpuStream::from);
        Gpu {
            context,
            capability,
            _first_stream: first_stream,
        }
    }

    /// A new stream, which other streams and the default stream do not wait for.
    pub(crate) fn new_stream(&self) -> Result<GpuStream> {
        self.make_current()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
        let stream = self.context.new_stream().during("making a stream")?;
        Ok(GpuStream::from(stream))
    }

    /// Makes this GPU's context current in the calling thread, if it is not. Driver calls need it.
    ///
    /// Every launch comes here. cudarc's `bind_to_thread` does the same, and an atomic exchange in memory that all
    /// threads share.
    pub(crate) fn make_current(&self) -> Result<()> {
        let context = self.context.cu_ctx();
        let mut current = ptr::null_mut();
        // SAFETY: the driver writes one handle.
        let code = unsafe { sys::cuCtxGetCurrent(&mut current) };
        check("querying the thread's current context", code)?;
        if current == context {
            return Ok(());
        }
        // SAFETY: `self.context` keeps the context alive.
        let code = unsafe { sys::cuCtxSetCurrent(context) };
        check("making the device current in this thread", code)
    }
}
