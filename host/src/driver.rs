//! The NVIDIA driver: whether it is installed, its version, and its errors in words.

use std::marker::PhantomData;
use std::mem;

use cudarc::driver::sys::{self, CUdevice_attribute, CUresult, CUstreamCaptureMode};
use cudarc::driver::{CudaContext, DriverError};
use libloading::Library;

use crate::{Error, Result};

/// The oldest driver that has all functions that this crate calls, in `cuDriverGetVersion`'s counting: CUDA 12.0.
const OLDEST: i32 = 12_000;

/// The driver's library.
const DRIVER: &str = if cfg!(windows) {
    "nvcuda.dll"
} else {
    "libcuda"
};

/// Whether a usable driver is installed; `Err` says what is wrong. Probed once per process.
///
/// All other driver calls of this crate come after this check, because a call into a missing
/// library panics.
pub(crate) fn present() -> Result<(), String> {
    static PRESENT: std::sync::OnceLock<Result<(), String>> = std::sync::OnceLock::new();
    PRESENT.get_or_init(probe).clone()
}

fn probe() -> Result<(), String> {
    if cfg!(miri) {
        return Err("there is no NVIDIA driver: Miri loads no library".to_string());
    }
    if !is_installed() {
        return Err(format!("there is no NVIDIA driver: {DRIVER} was not found"));
    }
    let version = version().map_err(|error| error.to_string())?;
    if version < OLDEST {
        let (major, minor) = (version / 1000, version % 1000 / 10);
        return Err(format!(
            "the NVIDIA driver is too old (it supports CUDA {major}.{minor}; 12.0 is needed)"
        ));
    }
    cudarc::driver::result::init().map_err(|DriverError(code)| {
        let (name, text) = words(code);
        format!("the NVIDIA driver does not start ({name}: {text})")
    })
}

/// Whether the driver's library can be loaded. It stays loaded.
///
/// cudarc has such a function only if it loads the library itself. Where another package of the program has it linked, it
/// has not.
fn is_installed() -> bool {
    const NAMES: &[&str] = if cfg!(windows) {
        &[DRIVER]
    } else {
        &["libcuda.so.1", "libcuda.so"]
    };
    // SAFETY: loading the driver's library only runs its initialisers, which may run at any time.
    let load = |name: &&str| unsafe { Library::new(*name) };
    let library = NAMES.iter().find_map(|name| load(name).ok());
    library.map(mem::forget).is_some()
}

/// The CUDA version that the driver supports, in its counting: 13000 is 13.0.
///
/// Call only after the library has been found.
fn version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: the driver writes one int. The call is allowed before `cuInit`.
    check("asking for the driver's version", unsafe {
        sys::cuDriverGetVersion(&mut version)
    })?;
    Ok(version)
}

/// The CUDA version that the installed driver supports, as (major, minor).
///
/// # Errors
/// [`Error::NoDriver`] if there is no usable driver.
pub fn driver_version() -> Result<(u32, u32)> {
    present().map_err(|found| Error::NoDriver {
        asked: "the driver's version".to_string(),
        found,
    })?;
    let version = version()?.unsigned_abs();
    Ok((version / 1000, version % 1000 / 10))
}

/// Number of GPUs that the driver offers.
///
/// # Errors
/// [`Error::NoDriver`] if there is no usable driver.
pub fn gpu_count() -> Result<usize> {
    present().map_err(|found| Error::NoDriver {
        asked: "the number of GPUs".to_string(),
        found,
    })?;
    let count = cudarc::driver::result::device::get_count().during("counting GPUs")?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// A property of a GPU.
pub(crate) fn attribute(context: &CudaContext, attribute: CUdevice_attribute) -> Result<u32> {
    let value = context.attribute(attribute);
    let value = value.during("asking for a device attribute")?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Converts a driver call's result code. `doing` says what the call was for.
pub(crate) fn check(doing: &str, code: CUresult) -> Result<()> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(error(doing, code)),
    }
}

/// While it exists, the driver lets this thread allocate, free, wait and load kernels although another thread captures a
/// stream. A capture in CUDA's global mode forbids that otherwise, and is itself broken by some of these calls. They
/// touch no stream of a capture.
pub(crate) struct RelaxedCaptureMode {
    before: CUstreamCaptureMode,
    /// The mode is the thread's, so the guard stays there.
    of_thread: PhantomData<*const ()>,
}

impl RelaxedCaptureMode {
    pub(crate) fn enter() -> Result<RelaxedCaptureMode> {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: the driver reads one mode and writes one.
        let code = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut mode) };
        check("relaxing this thread's capture mode", code)?;
        Ok(RelaxedCaptureMode {
            before: mode,
            of_thread: PhantomData,
        })
    }
}

impl Drop for RelaxedCaptureMode {
    fn drop(&mut self) {
        // SAFETY: as in `enter`. The call cannot fail where it succeeded before.
        let _ = unsafe { sys::cuThreadExchangeStreamCaptureMode(&mut self.before) };
    }
}

/// Adds to a driver error what the call was for.
pub(crate) trait During<T> {
    /// `doing` says what the call was for.
    fn during(self, doing: &str) -> Result<T>;
}

impl<T> During<T> for Result<T, DriverError> {
    fn during(self, doing: &str) -> Result<T> {
        self.map_err(|DriverError(code)| error(doing, code))
    }
}

/// The driver's name for an error (`CUDA_ERROR_…`) and its description.
pub(crate) fn words(code: CUresult) -> (String, String) {
    let error = DriverError(code);
    let name = error
        .error_name()
        .map(|name| name.to_string_lossy().into_owned());
    let text = error
        .error_string()
        .map(|text| text.to_string_lossy().into_owned());
    (
        name.unwrap_or_else(|_| format!("error {}", code as u32)),
        text.unwrap_or_else(|_| "no description".to_string()),
    )
}

/// The error of a driver call that returned `code`.
pub(crate) fn error(doing: &str, code: CUresult) -> Error {
    let (name, text) = words(code);
    Error::Driver {
        doing: doing.to_string(),
        code: name,
        text,
        hint: hint(code),
    }
}

fn hint(code: CUresult) -> &'static str {
    match code {
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
        | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
        | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
        | CUresult::CUDA_ERROR_INVALID_PC
        | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
        | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
        | CUresult::CUDA_ERROR_LAUNCH_FAILED => {
            "an earlier kernel on this device failed and the process must restart; \
             find the kernel on `Device::cpu()` or with compute-sanitizer"
        }
        CUresult::CUDA_ERROR_ASSERT => {
            "an assertion in a kernel failed (its message is on standard output) and the process must \
             restart; fix the kernel or its input"
        }
        CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => {
            "a kernel ran too long on a GPU that also drives a display: give each launch less work, or \
             use another GPU"
        }
        CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => {
            "a block needs more registers or shared memory than there are: use fewer threads"
        }
        CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
        | CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
        | CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED
        | CUresult::CUDA_ERROR_STREAM_CAPTURE_ISOLATION
        | CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
        | CUresult::CUDA_ERROR_STREAM_CAPTURE_MERGE
        | CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
        | CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
        | CUresult::CUDA_ERROR_CAPTURED_EVENT => {
            "capture only launches, device copies and fills, and join all forks before the capture ends; \
             if another library captures meanwhile, make this call before or after its capture"
        }
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => "free buffers or use a smaller problem",
        CUresult::CUDA_ERROR_SYSTEM_DRIVER_MISMATCH
        | CUresult::CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE => {
            "the versions of the driver's library and kernel module differ: reboot or reinstall the driver"
        }
        _ => "run `cutlet doctor` to check the installation",
    }
}
