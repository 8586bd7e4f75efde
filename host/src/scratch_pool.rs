//! A GPU's pool of scratch memory.

use std::ffi::c_void;
use std::sync::Mutex;

use cudarc::driver::sys::{
    self, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute,
    CUmemPoolProps, CUmemoryPool,
};

use crate::Result;
use crate::driver::check;
use crate::gpu::Gpu;
use crate::lock::lock;

/// A GPU's pool of scratch memory, made at its first use. It keeps freed memory for reuse.
#[derive(Default)]
pub(crate) struct ScratchPool(Mutex<Option<Pool>>);

#[derive(Clone, Copy)]
struct Pool(CUmemoryPool);

// SAFETY: a pool's handle may be used from any thread.
unsafe impl Send for Pool {}

impl ScratchPool {
    pub(crate) fn pool(&self, gpu: &Gpu) -> Result<CUmemoryPool> {
        let mut made = lock(&self.0);
        if let Some(Pool(pool)) = *made {
            return Ok(pool);
        }
        gpu.make_current()?;
        // SAFETY: all zeros are a valid value of each field, and the driver requires zeros in the
        // fields that are not set below.
        let mut properties: CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location = CUmemLocation {
            type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: gpu.context.ordinal() as i32,
        };
        let mut pool = std::ptr::null_mut();
        // SAFETY: the driver reads the properties and writes one handle.
        check("making a memory pool", unsafe {
            sys::cuMemPoolCreate(&mut pool, &properties)
        })?;
        let mut keep = u64::MAX;
        // SAFETY: the attribute is a 64-bit number.
        check("setting up a memory pool", unsafe {
            sys::cuMemPoolSetAttribute(
                pool,
                CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                (&raw mut keep).cast::<c_void>(),
            )
        })?;
        *made = Some(Pool(pool));
        Ok(pool)
    }
}
