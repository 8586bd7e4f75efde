//! A GPU's pool of memory, from which buffers and scratch memory are allocated in the order of streams.

use std::ffi::c_void;
use std::sync::Mutex;

use cudarc::driver::sys::{
    self, CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute,
    CUmemPoolProps, CUmemoryPool, CUresult, CUstream,
};

use crate::driver::{RelaxedCaptureMode, check};
use crate::gpu::Gpu;
use crate::lock::lock;
use crate::pooled::Pooled;
use crate::{Device, Result};

/// A GPU's pool, made at its first use. It keeps freed memory for reuse.
#[derive(Default)]
pub(crate) struct MemoryPool {
    made: Mutex<Option<Pool>>,
    /// Memory that could not be freed when its buffer was dropped, because another library captured a stream of it.
    later: Mutex<Vec<Pooled>>,
}

#[derive(Clone, Copy)]
struct Pool(CUmemoryPool);

// SAFETY: a pool's handle may be used from any thread.
unsafe impl Send for Pool {}

impl MemoryPool {
    /// The address of memory for the stream's later work; `None` if there is too little.
    pub(crate) fn allocate(
        &self,
        gpu: &Gpu,
        bytes: usize,
        stream: CUstream,
    ) -> Result<Option<u64>> {
        let pool = self.pool(gpu)?;
        gpu.make_current()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
        let mut address = 0;
        // SAFETY: the driver writes one address. Pool and stream are of this context.
        let code = unsafe { sys::cuMemAllocFromPoolAsync(&mut address, bytes, pool, stream) };
        if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
            return Ok(None);
        }
        check("allocating memory in a stream", code)?;
        Ok(Some(address))
    }

    /// Keeps memory to be freed later.
    pub(crate) fn free_later(&self, memory: Pooled) {
        lock(&self.later).push(memory);
    }

    /// Frees what could not be freed before, as far as that is possible by now.
    pub(crate) fn free_postponed(&self, device: &Device, gpu: &Gpu) {
        let postponed = std::mem::take(&mut *lock(&self.later));
        if postponed.is_empty() || gpu.make_current().is_err() {
            lock(&self.later).extend(postponed);
            return;
        }
        let _relaxed = RelaxedCaptureMode::enter();
        for memory in postponed {
            if let Err(memory) = memory.free(device, gpu) {
                self.free_later(memory);
            }
        }
    }

    /// Gives unused memory back to the driver, but `keep` bytes.
    pub(crate) fn trim(&self, gpu: &Gpu, keep: usize) -> Result<()> {
        let Some(Pool(pool)) = *lock(&self.made) else {
            return Ok(());
        };
        gpu.make_current()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
        // SAFETY: the pool is alive as long as its GPU.
        check("giving unused memory back", unsafe {
            sys::cuMemPoolTrimTo(pool, keep)
        })
    }

    fn pool(&self, gpu: &Gpu) -> Result<CUmemoryPool> {
        let mut made = lock(&self.made);
        if let Some(Pool(pool)) = *made {
            return Ok(pool);
        }
        gpu.make_current()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
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
