//! Streams of other frameworks as streams of the library, and what is kept with them.

use std::ffi::c_void;
use std::fmt;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;
use cutlet::{Device, Stream};
use pyo3::intern;
use pyo3::prelude::*;

use crate::driver;
use crate::error::{Result, wrong_type};
use crate::rows::Kept;

/// Where an array's elements are, and the kernels that use them run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Cpu,
    Gpu(i32),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Cpu => f.write_str("the CPU"),
            Place::Gpu(number) => write!(f, "GPU {number}"),
        }
    }
}

/// A stream, and the operations that keep memory in its order.
pub struct Context {
    pub place: Place,
    /// The stream's handle (`CUstream`).
    pub handle: usize,
    pub stream: Stream,
    /// A call waits for the lock without the interpreter, as the thread that has the lock may wait for work.
    pub kept: Mutex<Kept>,
}

/// The streams that calls have had so far. A stream keeps what its calls chose and the memory that they share, so it is
/// never dropped. There are as many as the frameworks' pools have, mostly one.
static CONTEXTS: Mutex<Vec<&'static Context>> = Mutex::new(Vec::new());

/// The stream of this handle.
///
/// # Errors
/// If there is no such GPU, or the handle is that of CUDA's per-thread default stream.
pub fn context(place: Place, handle: usize) -> Result<&'static Context> {
    let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |it: &&&Context| it.place == place && it.handle == handle;
    if let Some(context) = contexts.iter().find(is_it) {
        return Ok(context);
    }
    let stream = match place {
        Place::Cpu => Device::cpu().stream()?,
        Place::Gpu(number) => {
            let device = Device::gpu(usize::try_from(number).unwrap_or(usize::MAX))?;
            let handle = ptr::with_exposed_provenance_mut::<c_void>(handle);
            // SAFETY: the caller of a function names a stream of this GPU that lives as long as work is enqueued in it.
            // The interpreter is attached, or the caller's capture is in the caller's thread.
            unsafe { Stream::from_raw(&device, handle)? }
        }
    };
    let context: &'static Context = Box::leak(Box::new(Context {
        place,
        handle,
        stream,
        kept: Mutex::default(),
    }));
    contexts.push(context);
    Ok(context)
}

/// The handle of a stream that was passed: an integer, a stream of PyTorch or CuPy, or an object with
/// `__cuda_stream__`.
///
/// # Errors
/// If it is nothing of that.
pub fn handle_of(stream: &Bound<'_, PyAny>) -> Result<usize> {
    let py = stream.py();
    if let Ok(handle) = stream.extract::<usize>() {
        return Ok(default_is_0(handle));
    }
    for name in [intern!(py, "cuda_stream"), intern!(py, "ptr")] {
        if let Ok(handle) = stream.getattr(name).and_then(|it| it.extract::<usize>()) {
            return Ok(default_is_0(handle));
        }
    }
    if let Ok(pair) = stream.call_method0(intern!(py, "__cuda_stream__")) {
        let (_, handle): (i32, usize) = pair.extract()?;
        return Ok(default_is_0(handle));
    }
    wrong_type(format!(
        "stream is {stream}; give a stream of PyTorch or CuPy, an object with `__cuda_stream__`, or a handle"
    ))
}

/// CUDA has two handles of the default stream.
pub fn default_is_0(handle: usize) -> usize {
    match handle {
        1 => 0,
        handle => handle,
    }
}

/// The package that an array's type comes from.
pub fn framework(array: &Bound<'_, PyAny>) -> PyResult<String> {
    let module = array.get_type().module()?;
    let module = module.to_cow()?;
    Ok(module.split('.').next().unwrap_or_default().to_string())
}

/// The current stream of the framework that an array comes from; the default stream if the framework names none.
pub fn current_stream(array: &Bound<'_, PyAny>, gpu: i32) -> Result<usize> {
    let py = array.py();
    let current = match &*framework(array)? {
        "torch" => {
            let cuda = py.import(intern!(py, "torch.cuda"))?;
            let stream = cuda.call_method1(intern!(py, "current_stream"), (gpu,))?;
            stream.getattr(intern!(py, "cuda_stream"))?.extract()?
        }
        "cupy" => {
            let cuda = py.import(intern!(py, "cupy.cuda"))?;
            let stream = cuda.call_method0(intern!(py, "get_current_stream"))?;
            stream.getattr(intern!(py, "ptr"))?.extract()?
        }
        _ => 0,
    };
    Ok(current)
}

/// The context that is current in a thread, which is current again when this is dropped. Frameworks take the GPU of the
/// current context for the one that a program chose, and the library's calls make that of their arrays current.
pub struct CurrentContext(sys::CUcontext);

impl CurrentContext {
    /// The present one; `None` without a driver.
    pub fn now() -> Option<CurrentContext> {
        if !driver::is_there() {
            return None;
        }
        let mut current = ptr::null_mut();
        // SAFETY: the driver is there, and writes one handle.
        let code = unsafe { sys::cuCtxGetCurrent(&mut current) };
        // Before a program's first call of CUDA there is none, and the library's becomes current.
        (code == sys::CUresult::CUDA_SUCCESS && !current.is_null())
            .then_some(CurrentContext(current))
    }
}

impl Drop for CurrentContext {
    fn drop(&mut self) {
        let mut current = ptr::null_mut();
        // SAFETY: the driver is there, and the context was current a moment ago.
        unsafe {
            let code = sys::cuCtxGetCurrent(&mut current);
            if code != sys::CUresult::CUDA_SUCCESS || current != self.0 {
                let _ = sys::cuCtxSetCurrent(self.0);
            }
        }
    }
}
