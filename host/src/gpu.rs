//! A GPU of the driver: its context and its compute capability.

use std::sync::Arc;

use cudarc::driver::CudaContext;

use crate::Result;
use crate::driver::During;

pub(crate) struct Gpu {
    pub(crate) context: Arc<CudaContext>,
    pub(crate) capability: (u32, u32),
}

impl Gpu {
    /// Makes this GPU's context current in the calling thread. Driver calls need it.
    pub(crate) fn bind(&self) -> Result<()> {
        let bound = self.context.bind_to_thread();
        bound.during("making the device current in this thread")
    }
}
