//! Streams of other frameworks as streams of the library, and what is kept with them.

use std::ffi::c_void;
use std::fmt;
use std::num::NonZeroU64;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;
use cutlet::{Device, Stream};
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::driver;
use crate::error::{Result, wrong_type, wrong_value};
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
    /// The driver's number of the stream, or 0 if it has not been asked for yet.
    id: AtomicU64,
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
/// If there is no such GPU or no such stream of it, or the handle is that of CUDA's per-thread default stream.
pub fn context(
    py: Python<'_>,
    operation: &str,
    place: Place,
    handle: usize,
) -> Result<&'static Context> {
    let of_handle = |it: &&&Context| it.place == place && it.handle == handle;
    let known = || CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known().iter().find(of_handle).copied();
    let Some(context) = found else {
        let context: &'static Context =
            Box::leak(Box::new(Context::new(operation, place, handle)?));
        known().push(context);
        return Ok(context);
    };
    if let Some(id) = context.present_id()? {
        match NonZeroU64::new(context.id.swap(id.get(), Ordering::Relaxed)) {
            Some(before) if before != id => {
                expect_of(operation, place, handle)?;
                context.forget(py);
            }
            // It was captured before.
            None => expect_of(operation, place, handle)?,
            Some(_) => {}
        }
    }
    Ok(context)
}

/// `CU_STREAM_PER_THREAD`.
const PER_THREAD: usize = 2;

/// Returns an error if a stream is of another GPU.
fn expect_of(operation: &str, place: Place, handle: usize) -> Result<()> {
    match driver::gpu_of_stream(handle)?.map(Place::Gpu) {
        Some(found) if found != place => wrong_value(format!(
            "{operation}: the stream {handle:#x} is of {found}, and the arrays are on {place}; give a stream of {place}"
        )),
        _ => Ok(()),
    }
}

impl Context {
    fn new(operation: &str, place: Place, handle: usize) -> Result<Context> {
        let (id, stream) = match place {
            Place::Cpu => (None, Device::cpu().stream()?),
            Place::Gpu(_) if handle == PER_THREAD => {
                return wrong_value(format!(
                    "{operation}: stream is CUDA's per-thread default stream, which is another one in each thread; \
                     give another stream"
                ));
            }
            Place::Gpu(number) => {
                // Its context is current from here on, in which the driver is asked.
                let device = Device::gpu(usize::try_from(number).unwrap_or(usize::MAX))?;
                expect_of(operation, place, handle)?;
                let address = ptr::with_exposed_provenance_mut::<c_void>(handle);
                // SAFETY: the caller of a function names a stream that lives as long as work is enqueued in it. The
                // driver says that it is of this GPU. The interpreter is attached, or the caller's capture is in its
                // thread.
                let stream = unsafe { Stream::from_raw(&device, address)? };
                (driver::stream_id(handle)?, stream)
            }
        };
        Ok(Context {
            place,
            handle,
            id: AtomicU64::new(id.map_or(0, NonZeroU64::get)),
            stream,
            kept: Mutex::default(),
        })
    }

    /// The driver's number of the stream that has the handle now, if it says it.
    fn present_id(&self) -> Result<Option<NonZeroU64>> {
        match self.stream.as_cudarc() {
            Some(stream) if !driver::is_default(self.handle) => {
                driver::make_current(stream.context())?;
                Ok(driver::stream_id(self.handle)?)
            }
            _ => Ok(None),
        }
    }

    /// Forgets what was kept of a destroyed stream, whose handle the driver gave to a new one. The driver releases a
    /// destroyed stream when its work is done (`cuStreamDestroy`), so that the new one may use its memory. What the old
    /// one's calls have left to report is forgotten, too.
    fn forget(&self, py: Python<'_>) {
        let kept = self.kept.lock_py_attached(py);
        kept.unwrap_or_else(PoisonError::into_inner).forget();
    }
}

/// A stream that was passed.
pub struct Asked {
    pub handle: usize,
    /// The GPU that its object names. A handle of the default stream is that of all GPUs.
    pub gpu: Option<i32>,
}

/// The stream of an argument: an integer, a stream of PyTorch or CuPy, or an object with `__cuda_stream__`.
///
/// # Errors
/// If it is nothing of that.
pub fn asked(stream: &Bound<'_, PyAny>) -> Result<Asked> {
    let py = stream.py();
    let of = |handle, gpu: Option<i32>| Asked {
        handle: default_is_0(handle),
        gpu: gpu.filter(|it| *it >= 0),
    };
    if let Ok(handle) = stream.extract::<usize>() {
        return Ok(of(handle, None));
    }
    for (handle, gpu) in [
        (intern!(py, "cuda_stream"), intern!(py, "device_index")),
        (intern!(py, "ptr"), intern!(py, "device_id")),
    ] {
        if let Ok(handle) = stream.getattr(handle).and_then(|it| it.extract::<usize>()) {
            let gpu = stream.getattr(gpu).and_then(|it| it.extract::<i32>());
            return Ok(of(handle, gpu.ok()));
        }
    }
    if let Ok(pair) = stream.call_method0(intern!(py, "__cuda_stream__")) {
        let (_, handle): (i32, usize) = pair.extract()?;
        return Ok(of(handle, None));
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
            let current = cuda.getattr(intern!(py, "get_current_stream"))?;
            // Older versions of CuPy have one current stream for all GPUs.
            let stream = match current.call1((gpu,)) {
                Err(error) if error.is_instance_of::<PyTypeError>(py) => current.call0()?,
                stream => stream?,
            };
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
