//! Captures that another library began, and memory that its graph keeps.

use std::ffi::c_void;
use std::mem::transmute;
use std::ptr;
use std::sync::{Arc, OnceLock};
use std::thread;

use cudarc::driver::CudaStream;
use cudarc::driver::sys::{
    self, CUgraph, CUgraphNode, CUresult, CUstream, CUstreamCaptureStatus, CUuserObject,
    CUuserObject_flags, CUuserObjectRetain_flags,
};

use crate::driver::{RelaxedCaptureMode, check, error};
use crate::stream_memory::CaptureId;
use crate::{Buffer, Result};

/// The capture of a stream by another library.
pub(crate) struct ForeignCapture {
    pub(crate) id: CaptureId,
    graph: CUgraph,
}

/// `cuStreamGetCaptureInfo` as of CUDA 12.0. cudarc has it under a name that depends on the version of its bindings.
type GetCaptureInfo = unsafe extern "C" fn(
    CUstream,
    *mut CUstreamCaptureStatus,
    *mut u64,
    *mut CUgraph,
    *mut *const CUgraphNode,
    *mut usize,
) -> CUresult;

impl ForeignCapture {
    /// The capture that the stream is part of; `None` if it is not being captured. The stream's context is current.
    pub(crate) fn of(stream: &CudaStream) -> Result<Option<ForeignCapture>> {
        let doing = "querying the capture of a stream";
        let ask = capture_info()?;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut id, mut graph) = (0, ptr::null_mut());
        // SAFETY: the stream is alive, the driver writes the three values, and null pointers ask for nothing.
        let code = unsafe {
            ask(
                stream.cu_stream(),
                &mut status,
                &mut id,
                &mut graph,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        check(doing, code)?;
        let is_active = status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        Ok(is_active.then_some(ForeignCapture { id, graph }))
    }

    /// Has the graph own the memory, and all graphs that are made of it.
    pub(crate) fn keep(&self, memory: Arc<Buffer<u8>>) -> Result<()> {
        let doing = "giving memory to the graph of a capture";
        let _relaxed = RelaxedCaptureMode::enter()?;
        let memory = Arc::into_raw(memory).cast_mut().cast::<c_void>();
        let mut owner: CUuserObject = ptr::null_mut();
        let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32;
        // SAFETY: `release` may be called once with the pointer, from any thread.
        let code = unsafe { sys::cuUserObjectCreate(&mut owner, memory, Some(release), 1, flags) };
        if code != CUresult::CUDA_SUCCESS {
            // SAFETY: made of an `Arc` above, and no object of the driver has it.
            drop(unsafe { Arc::from_raw(memory.cast_const().cast::<Buffer<u8>>()) });
        }
        check(doing, code)?;
        let moves = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
        // SAFETY: the capture is not over, so its graph exists. The one reference becomes the graph's.
        check(doing, unsafe {
            sys::cuGraphRetainUserObject(self.graph, owner, 1, moves)
        })
    }
}

/// The driver calls it when no graph needs the memory any more.
unsafe extern "C" fn release(memory: *mut c_void) {
    // SAFETY: made of an `Arc` in `keep`, for this call.
    let memory = unsafe { Arc::from_raw(memory.cast_const().cast::<Buffer<u8>>()) };
    // The driver may not be called here, and freeing calls it. If there is no thread, the memory stays allocated.
    let memory = std::mem::ManuallyDrop::new(memory);
    let free = move || drop(std::mem::ManuallyDrop::into_inner(memory));
    let _ = thread::Builder::new().spawn(free);
}

fn capture_info() -> Result<GetCaptureInfo> {
    static FOUND: OnceLock<GetCaptureInfo> = OnceLock::new();
    if let Some(found) = FOUND.get() {
        return Ok(*found);
    }
    let doing = "looking up `cuStreamGetCaptureInfo` in the driver";
    let (mut address, version) = (ptr::null_mut(), 12_000);
    // SAFETY: the name ends in NUL, the driver writes one address, and the null pointer asks for no status.
    let code = unsafe {
        sys::cuGetProcAddress_v2(
            c"cuStreamGetCaptureInfo".as_ptr(),
            &mut address,
            version,
            0,
            ptr::null_mut(),
        )
    };
    check(doing, code)?;
    if address.is_null() {
        return Err(error(doing, CUresult::CUDA_ERROR_NOT_FOUND));
    }
    // SAFETY: the driver's function of this name has this type as of CUDA 12.0.
    let found = unsafe { transmute::<*mut c_void, GetCaptureInfo>(address) };
    Ok(*FOUND.get_or_init(|| found))
}
