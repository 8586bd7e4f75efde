//! Memory of a GPU's pool: allocated in the order of a stream, and freed after the work of all streams that used it.
//! Neither waits.

use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUevent_flags, CUstream};

use crate::buffer::too_large;
use crate::gpu::Gpu;
use crate::gpu_event::GpuEvent;
use crate::lock::lock;
use crate::user_stream::{NoMark, UserStream};
use crate::{Device, Result, Stream};

/// Memory of a GPU's pool.
pub(crate) struct Pooled {
    address: u64,
    /// The stream that it was allocated in.
    home: Arc<UserStream>,
    /// Behind the allocation.
    allocated: GpuEvent,
    /// Other streams whose work used it.
    others: Mutex<Vec<Arc<UserStream>>>,
}

impl Pooled {
    /// So many bytes for the stream's later work, and after [`is_used_in`](Self::is_used_in) for that of others. `None`
    /// if the memory must be allocated otherwise: the device has no pools, or work in the stream is recorded.
    ///
    /// # Errors
    /// If there is too little memory, or the driver fails.
    pub(crate) fn new(stream: &Stream, bytes: usize) -> Result<Option<Pooled>> {
        let (Some((gpu, handle)), Some(home)) = (stream.gpu(), stream.user()) else {
            return Ok(None);
        };
        // Where another thread's capture forbids the question, it forbids work in the stream, too.
        if !gpu.has_pools || stream.is_capturing().unwrap_or(true) {
            return Ok(None);
        }
        let (device, pool) = (stream.device(), stream.device().memory_pool());
        pool.free_postponed(device, gpu);
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING;
        let allocated = GpuEvent::new(device, gpu, flags)?;
        let mut address = pool.allocate(gpu, bytes, handle)?;
        if address.is_none() {
            // The memory of idle scratch blocks may suffice.
            stream.free_idle_blocks();
            address = pool.allocate(gpu, bytes, handle)?;
        }
        let address = address.ok_or_else(|| too_large(device, bytes))?;
        if let Err(error) = allocated.record(handle) {
            free_after(address, handle);
            return Err(error);
        }
        Ok(Some(Pooled {
            address,
            home: home.clone(),
            allocated,
            others: Mutex::default(),
        }))
    }

    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Work of the stream is about to use the memory, and is done before it is freed. The first time, the stream waits
    /// on the device until the memory is allocated.
    pub(crate) fn is_used_in(&self, stream: &Stream) -> Result<()> {
        let (Some((_, handle)), Some(user)) = (stream.gpu(), stream.user()) else {
            return Ok(());
        };
        if Arc::ptr_eq(user, &self.home) {
            return Ok(());
        }
        let mut others = lock(&self.others);
        // Recorded work does not run now. Who replays it keeps the memory.
        if others.iter().any(|it| Arc::ptr_eq(it, user)) || stream.is_capturing().unwrap_or(true) {
            return Ok(());
        }
        self.allocated.precede(handle)?;
        others.push(user.clone());
        Ok(())
    }

    /// Another library may use the memory in streams of its own, until it is freed.
    #[cfg(feature = "dlpack")]
    pub(crate) fn is_used_elsewhere(&self) {
        lock(&self.others).push(UserStream::unknown());
    }

    /// Frees the memory after all work that uses it, without waiting. Returns the memory if another library captures one
    /// of the streams: it can be freed later.
    pub(crate) fn free(self, device: &Device, gpu: &Gpu) -> Result<(), Pooled> {
        let is_of_home_alone = lock(&self.others).is_empty();
        if is_of_home_alone {
            // The stream's later buffers can have the memory at once.
            let freed = self.home.while_alive(|stream| {
                free_after(self.address, stream);
                Ok(())
            });
            match freed {
                Some(Ok(())) => return Ok(()),
                Some(Err(_)) => return Err(self),
                None => {}
            }
        }
        self.free_in_spare_stream(device, gpu)
    }

    /// Frees the memory in a stream that has no other work, so that no stream waits for work of another one.
    fn free_in_spare_stream(self, device: &Device, gpu: &Gpu) -> Result<(), Pooled> {
        let mut marks = Vec::new();
        let mut users = lock(&self.others).clone();
        users.push(self.home.clone());
        for user in users {
            match user.mark(device, gpu) {
                Ok(mark) => marks.push(mark),
                Err(NoMark::Captured) => return Err(self),
                Err(NoMark::Unknown) if gpu.wait().is_ok() => {}
                // Nobody knows when the memory can be freed, so it is not.
                Err(NoMark::Unknown) => return Ok(()),
            }
        }
        let Some(spare) = gpu.spare_stream() else {
            return match gpu.wait() {
                Ok(()) => {
                    // SAFETY: the handle of the default stream.
                    free_after(self.address, std::ptr::null_mut());
                    Ok(())
                }
                Err(_) => Ok(()),
            };
        };
        if marks.iter().all(|mark| mark.precede(spare).is_ok()) {
            free_after(self.address, spare);
        }
        Ok(())
    }
}

/// Frees memory of a pool after a stream's work. The stream is alive, and nothing uses the memory later.
fn free_after(address: u64, stream: CUstream) {
    // SAFETY: allocated from a pool, and freed once; the rest is the caller's. An error here is an earlier kernel's, and
    // the next call returns it.
    let _ = unsafe { sys::cuMemFreeAsync(address, stream) };
}
