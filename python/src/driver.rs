//! What the GPU's driver says of handles and addresses that other frameworks pass.

use std::ffi::c_void;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::CudaContext;
use cudarc::driver::sys::{
    self, CUcontext, CUmemorytype, CUpointer_attribute, CUresult, CUstream, CUstreamCaptureStatus,
    CUuserObject, CUuserObject_flags, CUuserObjectRetain_flags,
};
use cutlet::{HostError, Stream};

/// The result of a question to the driver.
type Answer<T> = std::result::Result<T, HostError>;

/// Whether there is a driver. All other functions here come after this question: a call into a missing library panics.
pub fn is_there() -> bool {
    static DRIVER: OnceLock<bool> = OnceLock::new();
    *DRIVER.get_or_init(|| cutlet_host::driver_version().is_ok())
}

/// Whether a handle stands for one of the streams that every context or thread has: null, `CU_STREAM_LEGACY` and
/// `CU_STREAM_PER_THREAD`. They belong to the GPU of the context that is current.
pub fn is_default(handle: usize) -> bool {
    handle <= 2
}

/// Makes a context current in this thread.
///
/// # Errors
/// If an earlier kernel failed.
pub fn make_current(context: &CudaContext) -> Answer<()> {
    let made = context.bind_to_thread();
    made.or_else(|error| check("making a GPU current in this thread", error.0))
}

/// Whether the driver does not answer what a stream is: each GPU has a default stream, and a question about a stream
/// that is captured would end the capture, in any capture mode.
///
/// # Errors
/// If there is no such stream.
fn is_unknown(handle: usize) -> Answer<bool> {
    if is_default(handle) {
        return Ok(true);
    }
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the caller of a function names a stream that lives. The driver writes the status.
    let code = unsafe { sys::cuStreamIsCapturing(stream(handle), &mut status) };
    check("asking whether a stream is captured", code)?;
    Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

/// The number of a stream, which no later stream of the process has, also if it has the same handle; `None` for the
/// default stream, and for a stream that is captured. Drivers have it as of CUDA 12.0, the oldest that the library
/// takes.
///
/// # Errors
/// If there is no such stream.
pub fn stream_id(handle: usize) -> Answer<Option<NonZeroU64>> {
    if is_unknown(handle)? {
        return Ok(None);
    }
    let mut id = 0;
    // SAFETY: as in `is_unknown`. The driver writes one number.
    let code = unsafe { sys::cuStreamGetId(stream(handle), &mut id) };
    check("asking for the number of a stream", code)?;
    Ok(NonZeroU64::new(id))
}

/// The GPU of a stream; `None` for the default stream, and for a stream that is captured.
///
/// # Errors
/// If there is no such stream.
pub fn gpu_of_stream(handle: usize) -> Answer<Option<i32>> {
    if is_unknown(handle)? {
        return Ok(None);
    }
    let doing = "asking for the GPU of a stream";
    let (mut context, mut gpu): (CUcontext, i32) = (ptr::null_mut(), 0);
    // SAFETY: as in `is_unknown`. The context is the stream's, and is current for one question.
    unsafe {
        check(doing, sys::cuStreamGetCtx(stream(handle), &mut context))?;
        check(doing, sys::cuCtxPushCurrent_v2(context))?;
        let code = sys::cuCtxGetDevice(&mut gpu);
        check(doing, sys::cuCtxPopCurrent_v2(&mut context))?;
        check(doing, code)?;
    }
    Ok(Some(gpu))
}

/// The GPU whose memory an address is in, or for which memory of all GPUs was allocated; `None` for memory of the host,
/// and for memory that CUDA does not know.
pub fn gpu_of_memory(address: u64) -> Option<i32> {
    use CUpointer_attribute::{
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
    };
    let ask = |attribute| {
        let mut answer = 0u32;
        // SAFETY: each of the three attributes has at most 32 bits. The driver looks the address up, and reads nothing
        // there.
        let code = unsafe {
            sys::cuPointerGetAttribute((&raw mut answer).cast::<c_void>(), attribute, address)
        };
        (code == CUresult::CUDA_SUCCESS).then_some(answer)
    };
    let is_of_host =
        ask(CU_POINTER_ATTRIBUTE_MEMORY_TYPE)? == CUmemorytype::CU_MEMORYTYPE_HOST as u32;
    // The driver moves it to where it is used.
    let is_managed = || ask(CU_POINTER_ATTRIBUTE_IS_MANAGED).is_some_and(|it| it != 0);
    if is_of_host && !is_managed() {
        return None;
    }
    i32::try_from(ask(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)?).ok()
}

/// The capture of a stream into a graph, which another framework began.
pub struct Capture {
    /// No two captures of a process have the same.
    pub id: u64,
    graph: sys::CUgraph,
}

/// A graph that another framework captured, and whether it is there yet.
pub struct Graph {
    /// The number of the capture that makes it.
    pub capture: u64,
    is_gone: Arc<AtomicBool>,
}

impl Capture {
    /// The capture that a stream is part of; `None` if there is none.
    ///
    /// # Errors
    /// If the driver does not say.
    pub fn of(stream: &Stream) -> Answer<Option<Capture>> {
        let Some(handle) = stream.as_raw() else {
            return Ok(None);
        };
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        let (mut id, mut graph) = (0, ptr::null_mut());
        // SAFETY: the stream is alive, the driver writes three values, and null pointers ask for nothing.
        let code = unsafe {
            sys::cuStreamGetCaptureInfo_v2(
                handle.cast(),
                &mut status,
                &mut id,
                &mut graph,
                ptr::null_mut(),
                ptr::null_mut(),
            )
        };
        check("querying the capture of a stream", code)?;
        let is_active = status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
        Ok(is_active.then_some(Capture { id, graph }))
    }

    /// The graph that the capture makes.
    ///
    /// # Errors
    /// If the driver does not note who waits for its end.
    pub fn graph(&self) -> Answer<Graph> {
        let doing = "asking to be told when a graph is destroyed";
        let is_gone = Arc::new(AtomicBool::new(false));
        let told = Arc::into_raw(is_gone.clone()).cast_mut().cast::<c_void>();
        let mut object: CUuserObject = ptr::null_mut();
        let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC as u32;
        // SAFETY: `note_end` may be called once with the pointer, from any thread.
        let code = unsafe { sys::cuUserObjectCreate(&mut object, told, Some(note_end), 1, flags) };
        if code != CUresult::CUDA_SUCCESS {
            // SAFETY: made of an `Arc` above, and no object of the driver has it.
            drop(unsafe { Arc::from_raw(told.cast_const().cast::<AtomicBool>()) });
        }
        check(doing, code)?;
        let moves = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE as u32;
        // SAFETY: the capture is not over, so its graph exists. The one reference becomes the graph's.
        check(doing, unsafe {
            sys::cuGraphRetainUserObject(self.graph, object, 1, moves)
        })?;
        Ok(Graph {
            capture: self.id,
            is_gone,
        })
    }
}

impl Graph {
    /// Whether the graph, and all that were made of it, are destroyed, and their work is done.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

/// The driver calls it when a graph and all that were made of it are destroyed.
unsafe extern "C" fn note_end(told: *mut c_void) {
    // SAFETY: made of an `Arc` in `graph`, for this call.
    let is_gone = unsafe { Arc::from_raw(told.cast_const().cast::<AtomicBool>()) };
    is_gone.store(true, Ordering::Release);
}

fn stream(handle: usize) -> CUstream {
    ptr::with_exposed_provenance_mut(handle)
}

fn check(doing: &str, code: CUresult) -> Answer<()> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(HostError::Driver {
            doing: doing.to_string(),
            code: format!("{code:?}"),
            text: "the driver refused it".to_string(),
            hint: "a stream must exist while a call uses it; `cutlet.doctor()` checks the installation",
        }),
    }
}
