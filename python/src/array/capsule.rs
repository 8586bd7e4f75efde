//! Capsules of DLPack: descriptions of arrays that `__dlpack__` returns, in the versioned form or in the older one.

use std::ptr::NonNull;

use cutlet::dlpack::dlpark::DlpackFlags;
use cutlet::dlpack::dlpark::ffi::{
    DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLPACK_MAJOR_VERSION, DLTensor,
};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{Result, wrong_value};
use crate::stream::Place;

/// A description that was taken from its capsule. Dropping it gives it back.
pub enum Capsule {
    Versioned(NonNull<DLManagedTensorVersioned>),
    Unversioned(NonNull<DLManagedTensor>),
}

impl Capsule {
    /// What an array's `__dlpack__` returns. On a GPU, the framework makes `stream` wait for its own work.
    ///
    /// # Errors
    /// The framework's exception.
    pub fn of(array: &Bound<'_, PyAny>, stream: Option<usize>) -> PyResult<Capsule> {
        let py = array.py();
        let arguments = PyDict::new(py);
        if let Some(stream) = stream {
            arguments.set_item(intern!(py, "stream"), stream)?;
        }
        let method = array.getattr(intern!(py, "__dlpack__"))?;
        arguments.set_item(intern!(py, "max_version"), (1, 0))?;
        let capsule = match method.call((), Some(&arguments)) {
            // A framework from before versions.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => {
                arguments.del_item(intern!(py, "max_version"))?;
                method.call((), Some(&arguments))?
            }
            result => result?,
        };
        taken(&capsule)
    }

    /// The description.
    pub fn tensor(&self) -> &DLTensor {
        // SAFETY: it is alive until the capsule is dropped.
        unsafe {
            match self {
                Capsule::Versioned(managed) => &managed.as_ref().dl_tensor,
                Capsule::Unversioned(managed) => &managed.as_ref().dl_tensor,
            }
        }
    }

    /// Whether the owner forbids writes. The older form does not say.
    pub fn is_read_only(&self) -> bool {
        match self {
            // SAFETY: as in `tensor`.
            Capsule::Versioned(managed) => unsafe { managed.as_ref() }
                .flags
                .contains(DlpackFlags::READ_ONLY),
            Capsule::Unversioned(_) => false,
        }
    }
}

impl Drop for Capsule {
    fn drop(&mut self) {
        // SAFETY: the description was taken from its capsule, and is given back once.
        unsafe {
            match self {
                Capsule::Versioned(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
                Capsule::Unversioned(managed) => {
                    if let Some(deleter) = managed.as_ref().deleter {
                        deleter(managed.as_ptr());
                    }
                }
            }
        }
    }
}

/// Takes the description out of a capsule.
fn taken(capsule: &Bound<'_, PyAny>) -> PyResult<Capsule> {
    let object = capsule.as_ptr();
    // SAFETY: the names are compared before the pointers are read, and the names are static.
    unsafe {
        if ffi::PyCapsule_IsValid(object, c"dltensor_versioned".as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(object, c"dltensor_versioned".as_ptr());
            ffi::PyCapsule_SetName(object, c"used_dltensor_versioned".as_ptr());
            let managed = NonNull::new(managed.cast::<DLManagedTensorVersioned>());
            let managed = managed.ok_or_else(|| no_capsule(capsule))?;
            let taken = Capsule::Versioned(managed);
            let version = managed.as_ref().version;
            if version.major != DLPACK_MAJOR_VERSION {
                return Err(PyBufferError::new_err(format!(
                    "a DLPack capsule has version {}.{}, and version {DLPACK_MAJOR_VERSION} is read",
                    version.major, version.minor
                )));
            }
            return Ok(taken);
        }
        if ffi::PyCapsule_IsValid(object, c"dltensor".as_ptr()) != 0 {
            let managed = ffi::PyCapsule_GetPointer(object, c"dltensor".as_ptr());
            ffi::PyCapsule_SetName(object, c"used_dltensor".as_ptr());
            let managed = NonNull::new(managed.cast::<DLManagedTensor>());
            return Ok(Capsule::Unversioned(
                managed.ok_or_else(|| no_capsule(capsule))?,
            ));
        }
    }
    Err(no_capsule(capsule))
}

fn no_capsule(found: &Bound<'_, PyAny>) -> PyErr {
    PyBufferError::new_err(format!("__dlpack__ returned no DLPack capsule: {found}"))
}

/// The place that an array's `__dlpack_device__` names.
///
/// # Errors
/// The framework's exception, or that no kernel runs there.
pub fn dlpack_device(name: &str, array: &Bound<'_, PyAny>) -> Result<Place> {
    let device = array.call_method0(intern!(array.py(), "__dlpack_device__"))?;
    let (kind, number): (u32, i32) = device.extract()?;
    place_of(name, DLDeviceType(kind), number)
}

/// The place of a device.
///
/// # Errors
/// If no kernel runs there.
pub fn place_of(name: &str, kind: DLDeviceType, number: i32) -> Result<Place> {
    match kind {
        DLDeviceType::CPU | DLDeviceType::CUDAHOST => Ok(Place::Cpu),
        DLDeviceType::CUDA => Ok(Place::Gpu(number)),
        DLDeviceType(kind) => wrong_value(format!(
            "{name} is on device {number} of DLPack's type {kind}; give arrays of the CPU or of an NVIDIA GPU"
        )),
    }
}

/// The number by which DLPack calls a stream: 1 is the default stream.
pub fn dlpack_stream(handle: usize) -> usize {
    match handle {
        0 => 1,
        handle => handle,
    }
}
