//! Limits of a launch on a device.

use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUdevice_attribute as A;
use cutlet_device::LaunchBounds;

use crate::Result;
use crate::driver::attribute;

/// The limits of a launch on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Blocks of a grid along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of shared memory of a block, static and dynamic together.
    pub shared_bytes: u32,
    /// Blocks of a cluster; 1 on a device without clusters.
    pub cluster: u32,
    /// Blocks that can run at the same time on one multiprocessor.
    pub blocks_per_multiprocessor: u32,
}

impl Limits {
    /// Limits of the CPU backend: those of compute capability 9.0 and 10.0, so that a launch that is
    /// accepted here is accepted there. Compute capability 12.0 has less: 99 KiB of shared memory a
    /// block, and clusters of 8.
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
