//! Events of a GPU's driver.

use std::ptr;

use cudarc::driver::sys::{self, CUevent, CUevent_flags, CUresult, CUstream};
use cudarc::driver::{DriverError, result};

use crate::device::Place;
use crate::driver::{During, RelaxedCaptureMode, check};
use crate::gpu::Gpu;
use crate::{Device, Result};

/// An event of a GPU's driver.
pub(crate) struct GpuEvent {
    device: Device,
    event: CUevent,
}

// SAFETY: the driver takes an event's handle from any thread.
unsafe impl Send for GpuEvent {}
// SAFETY: as above, and from several threads at a time.
unsafe impl Sync for GpuEvent {}

impl GpuEvent {
    /// An event of `device`, which is this GPU.
    pub(crate) fn new(device: &Device, gpu: &Gpu, flags: CUevent_flags) -> Result<GpuEvent> {
        gpu.make_current()?;
        let mut event: CUevent = ptr::null_mut();
        // SAFETY: the driver writes one handle.
        let code = unsafe { sys::cuEventCreate(&mut event, flags as u32) };
        check("making an event", code)?;
        Ok(GpuEvent {
            device: device.clone(),
            event,
        })
    }

    /// Puts the mark after the stream's earlier work. The stream is one of the event's context.
    pub(crate) fn record(&self, stream: CUstream) -> Result<()> {
        self.device.bind()?;
        // SAFETY: event and stream are alive and of the current context.
        check("recording an event", unsafe {
            sys::cuEventRecord(self.event, stream)
        })
    }

    /// Makes later work of the stream wait for the mark. The stream is one of the event's context.
    pub(crate) fn precede(&self, stream: CUstream) -> Result<()> {
        self.device.bind()?;
        // SAFETY: as in `record`.
        check("having a stream wait for an event", unsafe {
            sys::cuStreamWaitEvent(stream, self.event, 0)
        })
    }

    /// Waits until the mark is reached.
    pub(crate) fn synchronize(&self) -> Result<()> {
        self.device.bind()?;
        let _relaxed = RelaxedCaptureMode::enter()?;
        // SAFETY: the event is alive.
        check("waiting for an event", unsafe {
            sys::cuEventSynchronize(self.event)
        })
    }

    /// Milliseconds from `start` to this mark, which are reached. `None` if one of them was never recorded.
    pub(crate) fn milliseconds_since(&self, start: &GpuEvent) -> Result<Option<f32>> {
        let _relaxed = RelaxedCaptureMode::enter()?;
        // SAFETY: both events are alive.
        match unsafe { result::event::elapsed(start.event, self.event) } {
            Ok(milliseconds) => Ok(Some(milliseconds)),
            Err(DriverError(CUresult::CUDA_ERROR_INVALID_HANDLE)) => Ok(None),
            Err(error) => Err(error).during("asking for the time between two events"),
        }
    }
}

impl Drop for GpuEvent {
    fn drop(&mut self) {
        if let Place::Gpu(gpu) = self.device.place()
            && gpu.make_current().is_ok()
        {
            let _relaxed = RelaxedCaptureMode::enter();
            // SAFETY: made in `new` and destroyed once. Streams that wait for it keep what they need of it. An error here
            // is an earlier kernel's, and the next call returns it.
            let _ = unsafe { sys::cuEventDestroy_v2(self.event) };
        }
    }
}
