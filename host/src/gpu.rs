//! A GPU of the driver: its context and its compute capability.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::CudaContext;
use cudarc::driver::sys::{self, CUdevice_attribute, CUstream};

use crate::Result;
use crate::driver::{During, RelaxedCaptureMode, attribute, check};
use crate::gpu_stream::GpuStream;

pub(crate) struct Gpu {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) capability: (u32, u32),
    /// Whether memory can be allocated in the order of streams.
    pub(crate) has_pools: bool,
    /// Memory is freed in it that several streams have used. It is made with the GPU, because cudarc waits for the whole
    /// device when the first stream of a context is made, which a capture of another library forbids.
    spare_stream: Option<GpuStream>,
}

impl Gpu {
    /// A GPU with this context.
    pub(crate) fn new(context: Arc<CudaContext>, capability: (u32, u32)) -> Gpu {
        let _relaxed = RelaxedCaptureMode::enter();
        let spare_stream = context.new_stream().ok().map(GpuStream::from);
        let pools = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED;
        let has_pools = attribute(&context, pools).is_ok_and(|it: u32| it != 0);
        Gpu {
            context,
            capability,
            has_pools,
            spare_stream,
        }
    }

    /// A stream without work but that of freeing memory.
    pub(crate) fn spare_stream(&self) -> Option<CUstream> {
        Some(self.spare_stream.as_ref()?.cu_stream())
    }

    /// Waits for all work of the GPU.
    pub(crate) fn wait(&self) -> Result<()> {
        self.make_current()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
        // SAFETY: the context is current.
        check("waiting for the device", unsafe { sys::cuCtxSynchronize() })
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
