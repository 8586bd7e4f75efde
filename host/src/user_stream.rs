//! Streams as memory knows them that their work uses: memory is freed after this work, and may outlive the stream.

use std::sync::{Arc, Mutex};

use cudarc::driver::sys::{self, CUevent_flags, CUresult, CUstream, CUstreamCaptureStatus};

use crate::Device;
use crate::gpu::Gpu;
use crate::gpu_event::GpuEvent;
use crate::lock::lock;

/// A GPU's stream, or what is left of it.
pub(crate) struct UserStream(Mutex<State>);

enum State {
    /// The stream is alive.
    Alive(Handle),
    /// The stream is gone. The event is the end of its work.
    Ended(Arc<GpuEvent>),
    /// It is not known when its work ends: it stands for another stream in each thread, is another library's, or was
    /// captured when it went.
    Unknown,
}

#[derive(Clone, Copy)]
struct Handle(CUstream);

// SAFETY: a stream's handle may be used from any thread.
unsafe impl Send for Handle {}

/// Why there is no mark behind a stream's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMark {
    /// Another library captures the stream: there is one later.
    Captured,
    /// It is not known when the work ends.
    Unknown,
}

impl UserStream {
    pub(crate) fn new(handle: CUstream) -> Arc<Self> {
        Arc::new(UserStream(Mutex::new(State::Alive(Handle(handle)))))
    }

    /// Streams of which nothing is known.
    pub(crate) fn unknown() -> Arc<Self> {
        Arc::new(UserStream(Mutex::new(State::Unknown)))
    }

    /// The stream is about to go.
    pub(crate) fn end(&self, device: &Device, gpu: &Gpu) {
        let mut state = lock(&self.0);
        if let State::Alive(Handle(handle)) = *state {
            *state = match mark(device, gpu, handle) {
                Ok(mark) => State::Ended(mark),
                Err(_) => State::Unknown,
            };
        }
    }

    /// An event behind the stream's work so far.
    pub(crate) fn mark(&self, device: &Device, gpu: &Gpu) -> Result<Arc<GpuEvent>, NoMark> {
        match &*lock(&self.0) {
            State::Alive(Handle(handle)) => mark(device, gpu, *handle),
            State::Ended(mark) => Ok(mark.clone()),
            State::Unknown => Err(NoMark::Unknown),
        }
    }

    /// Does something with the stream, which stays alive meanwhile. `None` if it is gone, or is not one stream.
    pub(crate) fn while_alive<R>(
        &self,
        then: impl FnOnce(CUstream) -> Result<R, NoMark>,
    ) -> Option<Result<R, NoMark>> {
        match &*lock(&self.0) {
            State::Alive(Handle(handle)) if is_captured(*handle) => Some(Err(NoMark::Captured)),
            State::Alive(Handle(handle)) => Some(then(*handle)),
            State::Ended(_) | State::Unknown => None,
        }
    }
}

/// An event behind the work of a stream that is alive.
fn mark(device: &Device, gpu: &Gpu, stream: CUstream) -> Result<Arc<GpuEvent>, NoMark> {
    gpu.make_current().map_err(|_| NoMark::Unknown)?;
    if is_captured(stream) {
        return Err(NoMark::Captured);
    }
    let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING;
    let event = GpuEvent::new(device, gpu, flags).map_err(|_| NoMark::Unknown)?;
    event.record(stream).map_err(|_| NoMark::Unknown)?;
    Ok(Arc::new(event))
}

/// Whether work in the stream is recorded, or may be: another thread's capture can forbid the question.
fn is_captured(stream: CUstream) -> bool {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the caller's stream is alive, and the driver writes one value.
    let code = unsafe { sys::cuStreamIsCapturing(stream, &mut status) };
    code != CUresult::CUDA_SUCCESS || status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE
}
