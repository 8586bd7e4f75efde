//! The C exchange API of DLPack: functions of a framework that describe an array, and tell the current stream, without
//! any object of Python.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use cutlet::dlpack::dlpark::ffi::{
    DLDeviceType, DLPACK_MAJOR_VERSION, DLPackExchangeAPI, DLTensor,
};
use pyo3::ffi;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The functions of a framework. It keeps them as long as the process lives.
#[derive(Clone, Copy)]
pub struct Exchange {
    /// The address of the framework's table, by which frameworks differ.
    table: usize,
    describe: unsafe extern "C" fn(*mut c_void, *mut DLTensor) -> i32,
    stream: unsafe extern "C" fn(DLDeviceType, i32, *mut *mut c_void) -> i32,
}

/// What is known of types of arrays. The types are kept, so that no other type gets their address.
static KNOWN: Mutex<Vec<(Py<PyType>, Option<Exchange>)>> = Mutex::new(Vec::new());

/// The most types that are remembered.
const MOST_TYPES: usize = 64;

impl PartialEq for Exchange {
    fn eq(&self, other: &Exchange) -> bool {
        self.table == other.table
    }
}

impl Exchange {
    /// The functions of an array's framework, if it has them.
    pub fn of(array: &Bound<'_, PyAny>) -> Option<Exchange> {
        let of = array.get_type_ptr();
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(it, _): &&(Py<PyType>, _)| ptr::eq(it.as_ptr().cast(), of);
        if let Some((_, exchange)) = known().iter().find(is_it) {
            return *exchange;
        }
        // Not under the lock: code in Python may run, and let another thread run that waits for the lock.
        let exchange = found(array);
        let mut known = known();
        if known.len() < MOST_TYPES {
            known.push((array.get_type().unbind(), exchange));
        }
        exchange
    }

    /// The description of an array. Its shape and strides belong to the array.
    ///
    /// # Errors
    /// The framework's exception.
    pub fn describe(self, array: &Bound<'_, PyAny>) -> PyResult<DLTensor> {
        let mut tensor = MaybeUninit::<DLTensor>::zeroed();
        // SAFETY: the array is of the type whose framework has the function, and the interpreter is attached.
        match unsafe { (self.describe)(array.as_ptr().cast(), tensor.as_mut_ptr()) } {
            // SAFETY: the function has filled it in.
            0 => Ok(unsafe { tensor.assume_init() }),
            _ => Err(PyErr::fetch(array.py())),
        }
    }

    /// The handle of the framework's current stream on a GPU.
    ///
    /// # Errors
    /// The framework's exception.
    pub fn current_stream(self, py: Python<'_>, gpu: i32) -> PyResult<usize> {
        let mut stream = ptr::null_mut();
        // SAFETY: the function writes one handle, and the interpreter is attached.
        match unsafe { (self.stream)(DLDeviceType::CUDA, gpu, &mut stream) } {
            0 => Ok(stream.addr()),
            _ => Err(PyErr::fetch(py)),
        }
    }
}

/// Looks for the functions of an array's type.
fn found(array: &Bound<'_, PyAny>) -> Option<Exchange> {
    let name = intern!(array.py(), "__dlpack_c_exchange_api__");
    let capsule = array.get_type().getattr(name).ok()?;
    // SAFETY: the object is alive, and its name is compared.
    let api = unsafe {
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) == 0 {
            return None;
        }
        ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr())
    };
    let mut api = api.cast::<DLPackExchangeAPI>();
    while !api.is_null() {
        // SAFETY: the framework keeps the table. Its header is the same in all versions.
        let header = unsafe { &(*api).header };
        if header.version.major == DLPACK_MAJOR_VERSION {
            let table = api.addr();
            // SAFETY: a table of this version.
            let api = unsafe { &*api };
            return Some(Exchange {
                table,
                describe: api.dltensor_from_py_object_no_sync?,
                stream: api.current_work_stream?,
            });
        }
        api = header.prev_api.cast();
    }
    None
}
