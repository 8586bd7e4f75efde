//! Limits: what a launch on a device must keep to.

use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUdevice_attribute as A;
use cutlet_device::LaunchBounds;

use crate::Result;
use crate::driver::attribute;

/// What a launch must keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Blocks along x, y and z of a grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Shared memory of a block, static and dynamic together, in bytes.
    pub shared_bytes: u32,
    /// Blocks of a cluster; 1 where there are no clusters.
    pub cluster: u32,
    /// Blocks that can run at the same time on one multiprocessor.
    pub blocks_per_multiprocessor: u32,
}

impl Limits {
    /// What GPUs of compute capability 9.0 and 10.0 keep to, so that a launch that passes here
    /// passes there. Those of 12.0 have 99 KiB of shared memory for a block, and clusters of 8.
    pub(crate) const CPU: Limits = Limits {
        grid: [i32::MAX as u32, 65_535, 65_535],
        threads: 1024,
        shared_bytes: LaunchBounds::MOST_SHARED_BYTES,
        cluster: 16,
        blocks_per_multiprocessor: 1,
    };

    pub(crate) fn of_gpu(context: &CudaContext, capability: (u32, u32)) -> Result<Limits> {
        let ask = |limit: A| attribute(context, limit);
        Ok(Limits {
            grid: [
                ask(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
                ask(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
                ask(A::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
            ],
            threads: ask(A::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
            shared_bytes: ask(A::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
            cluster: if capability.0 >= 9 { 16 } else { 1 },
            blocks_per_multiprocessor: ask(A::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)?,
        })
    }
}
