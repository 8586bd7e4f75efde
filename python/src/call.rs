//! A call of a function: its arrays, where they are, and the stream in which its work is enqueued.

use std::ops::Deref;
use std::sync::PoisonError;

use cutlet::Device;
use cutlet::dlpack::dlpark::ffi::DLTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::array::{
    Array, Capsule, Dimensions, Exchange, Interface, cuda_interface, dlpack_device, dlpack_stream,
    numpy_interface, place_of,
};
use crate::data_type::DataType;
use crate::driver;
use crate::error::{Result, wrong_type, wrong_value};
use crate::output;
use crate::rows::Kept;
use crate::stream::{self, Context, CurrentContext, Place};

/// A call. Its first array says where it runs, and in whose stream.
pub struct Call<'py> {
    py: Python<'py>,
    /// The function's name.
    pub operation: &'static str,
    /// The argument `stream`.
    asked: Option<Bound<'py, PyAny>>,
    /// The name of the first array, and its stream.
    first: Option<(&'static str, &'static Context)>,
    /// The framework of the first array, if that is on a GPU.
    framework: Option<Framework>,
    /// Streams of other frameworks' arrays. They wait for the work.
    others: Vec<&'static Context>,
    /// Whether the call waits for its work, because the owner of an array may free it in another order than the
    /// stream's.
    waits_for_work: bool,
    /// Makes the GPU current again that was so before the call.
    _current: Option<CurrentContext>,
}

/// A framework, by its exchange API or else by its name.
#[derive(PartialEq)]
enum Framework {
    Exchange(Exchange),
    Named(String),
}

/// Whether an array whose framework refuses it is asked for one without a record of its gradient.
#[derive(Clone, Copy, PartialEq, Eq)]
enum MayDetach {
    Yes,
    No,
}

/// An array that was passed. What `__dlpack__` returned is given back when it is dropped.
pub struct Argument {
    array: Array,
    owner: Option<Capsule>,
}

impl Deref for Argument {
    type Target = Array;

    fn deref(&self) -> &Array {
        &self.array
    }
}

impl From<Array> for Argument {
    fn from(array: Array) -> Self {
        Argument { array, owner: None }
    }
}

impl<'py> Call<'py> {
    pub fn new(
        py: Python<'py>,
        operation: &'static str,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> Call<'py> {
        Call {
            py,
            operation,
            asked: stream.cloned(),
            first: None,
            framework: None,
            others: Vec::new(),
            waits_for_work: false,
            _current: None,
        }
    }

    /// An array to read.
    ///
    /// # Errors
    /// If it is no array, is elsewhere than the first one, or has an element type or strides that no kernel takes.
    pub fn read(&mut self, name: &'static str, array: &Bound<'py, PyAny>) -> Result<Argument> {
        if let Some(exchange) = Exchange::of(array) {
            let tensor = exchange.describe(array)?;
            let place = place_of(name, tensor.device.device_type, tensor.device.device_id)?;
            let py = self.py;
            let is_first = self.first.is_none();
            let context = self.settle(name, place, |gpu| Ok(exchange.current_stream(py, gpu)?))?;
            if let (Place::Gpu(gpu), None) = (place, &self.asked) {
                let framework = Some(Framework::Exchange(exchange));
                if is_first {
                    self.framework = framework;
                } else if self.framework != framework {
                    self.order(context, exchange.current_stream(py, gpu)?)?;
                }
            }
            // SAFETY: the description is the framework's, of an array that the caller keeps.
            let described = unsafe { described(name, &tensor, false)? };
            self.expect_plain(array, &described)?;
            return Ok(described.into());
        }
        if array.hasattr(intern!(self.py, "mask"))? {
            return wrong_value(format!(
                "{}: {name} is a {} with a mask, which no kernel reads; fill it first",
                self.operation,
                array.get_type()
            ));
        }
        if array.hasattr(intern!(self.py, "__dlpack__"))? {
            return self.read_dlpack(name, array, MayDetach::Yes);
        }
        if let Some(interface) = cuda_interface(array)? {
            return self.read_on_gpu(name, array, &interface);
        }
        if let Some(interface) = numpy_interface(array)? {
            self.settle(name, Place::Cpu, |_| Ok(0))?;
            return Ok(interface.array(name, array)?.into());
        }
        Err(PyTypeError::new_err(format!(
            "{}: {name} is a {}; give an array with `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`",
            self.operation,
            array.get_type()
        ))
        .into())
    }

    /// Refuses a view of PyTorch whose elements are conjugates, or negatives, of what is in memory: descriptions do not
    /// say so. A negative view is the imaginary part of a conjugate one, which has no stride of 1.
    fn expect_plain(&self, array: &Bound<'py, PyAny>, described: &Array) -> Result<()> {
        let asked: &[&str] = match described.data_type {
            DataType::C64 => &["is_conj", "is_neg"],
            DataType::F32 if described.in_runs() => &[],
            DataType::F32 => &["is_neg"],
            _ => &[],
        };
        for question in asked {
            if array.hasattr(*question)? && array.call_method0(*question)?.extract()? {
                return wrong_value(format!(
                    "{}: {} is a view for which `{question}()` holds; pass `resolve_conj().resolve_neg()`",
                    self.operation, described.name
                ));
            }
        }
        Ok(())
    }

    /// An array with `__dlpack__`. NumPy refuses it for types that it does not have, and older versions for arrays
    /// that are read-only. PyTorch refuses it for tensors whose gradient is recorded.
    fn read_dlpack(
        &mut self,
        name: &'static str,
        array: &Bound<'py, PyAny>,
        may_detach: MayDetach,
    ) -> Result<Argument> {
        let place = dlpack_device(name, array)?;
        if place != Place::Cpu {
            self.note_owner(array)?;
        }
        let context = self.settle(name, place, |gpu| stream::current_stream(array, gpu))?;
        let consumer = match place {
            Place::Cpu => None,
            Place::Gpu(_) => Some(dlpack_stream(context.handle)),
        };
        let refused = match Capsule::of(array, consumer) {
            Ok(capsule) => {
                let is_read_only = capsule.is_read_only();
                let device = capsule.tensor().device;
                let found = place_of(name, device.device_type, device.device_id)?;
                if found != place {
                    return wrong_value(format!(
                        "{}: {name} is on {place} by its `__dlpack_device__`, and on {found} by its `__dlpack__`; both \
                         must say the same",
                        self.operation
                    ));
                }
                // SAFETY: the capsule has the description of an array.
                let array = unsafe { described(name, capsule.tensor(), is_read_only)? };
                return Ok(Argument {
                    array,
                    owner: Some(capsule),
                });
            }
            Err(error) => error,
        };
        let interface = match place {
            Place::Cpu => numpy_interface(array)?,
            Place::Gpu(_) => cuda_interface(array)?,
        };
        match interface {
            Some(interface) => Ok(interface.array(name, array)?.into()),
            None if may_detach == MayDetach::No => Err(refused.into()),
            None => match array.call_method0(intern!(self.py, "detach")) {
                Ok(detached) => self.read_dlpack(name, &detached, MayDetach::No),
                Err(_) => Err(refused.into()),
            },
        }
    }

    /// Notes the framework of an array on a GPU that has no exchange API. CuPy, and PyTorch of versions without one, free
    /// memory in the order of their current stream, which is the call's if their array is the first one. Otherwise the
    /// call waits for its work, so that an owner may free its array when the call returns.
    fn note_owner(&mut self, array: &Bound<'py, PyAny>) -> Result<()> {
        let name = stream::framework(array)?;
        let frees_in_stream = ["cupy", "torch"].contains(&name.as_str());
        let framework = Some(Framework::Named(name));
        let is_first = self.first.is_none();
        let is_of_stream = self.asked.is_none() && (is_first || self.framework == framework);
        if is_first {
            self.framework = framework;
        }
        self.waits_for_work |= !is_of_stream || !frees_in_stream;
        Ok(())
    }

    /// Makes the work wait for what a framework has enqueued in its stream, and the stream wait for the work.
    fn order(&mut self, context: &'static Context, handle: usize) -> Result<()> {
        if context.handle != handle {
            let theirs = stream::context(self.py, self.operation, context.place, handle)?;
            context.stream.wait_for(&theirs.stream)?;
            self.others.push(theirs);
        }
        Ok(())
    }

    /// An array of a GPU that tells its address, but neither its GPU nor how to wait for it. The driver knows the GPU.
    fn read_on_gpu(
        &mut self,
        name: &'static str,
        array: &Bound<'py, PyAny>,
        interface: &Interface<'_>,
    ) -> Result<Argument> {
        let described = interface.array(name, array)?;
        let place = self.place_of_memory(&described)?;
        self.note_owner(array)?;
        let ready_in = interface.stream().map_or(0, stream::default_is_0);
        let context = self.settle(name, place, |_| Ok(ready_in))?;
        if context.handle != ready_in {
            let theirs = stream::context(self.py, self.operation, place, ready_in)?;
            context.stream.wait_for(&theirs.stream)?;
        }
        Ok(described.into())
    }

    /// The GPU of an array's memory. One without elements is where the other arrays are, or on GPU 0.
    fn place_of_memory(&self, array: &Array) -> Result<Place> {
        if array.shape().contains(&0) || !driver::is_there() {
            return Ok(match self.first {
                Some((_, context)) if context.place != Place::Cpu => context.place,
                _ => Place::Gpu(0),
            });
        }
        if CurrentContext::now().is_none() {
            // The driver answers in a context alone. Before a program's first call of CUDA there is none.
            Device::gpu(0)?;
        }
        match driver::gpu_of_memory(array.address()) {
            Some(gpu) => Ok(Place::Gpu(gpu)),
            None => wrong_value(format!(
                "{}: {} has `__cuda_array_interface__`, and its address {:#x} is no memory of a GPU; copy it to one",
                self.operation,
                array.name,
                array.address()
            )),
        }
    }

    /// An array to write.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if its owner forbids writes.
    pub fn write(&mut self, name: &'static str, array: &Bound<'py, PyAny>) -> Result<Argument> {
        let found = self.read(name, array)?;
        // JAX's arrays are immutable, and their capsules do not say so.
        let is_of_jax = found.owner.is_some() && stream::framework(array)? == "jaxlib";
        match found.is_read_only || is_of_jax {
            true => wrong_value(format!(
                "{}: {name} is read-only; give an array that may be written",
                self.operation
            )),
            false => Ok(found),
        }
    }

    /// An array that the framework of `like` makes in the call's stream, of its type unless another is asked for. Its
    /// elements are not set.
    ///
    /// # Errors
    /// If the framework has no arrays that may be written.
    pub fn empty(
        &self,
        like: &Bound<'py, PyAny>,
        shape: &[usize],
        data_type: Option<DataType>,
    ) -> Result<Bound<'py, PyAny>> {
        let stream = match (&self.asked, self.first) {
            (Some(_), Some((_, context))) if context.place != Place::Cpu => Some(context.handle),
            _ => None,
        };
        output::empty(self.operation, like, shape, data_type, stream)
    }

    /// The stream of the call's arrays.
    ///
    /// # Panics
    /// If no array was read.
    pub fn context(&self) -> &'static Context {
        self.first.expect("a call reads its arrays first").1
    }

    /// Does the call's work. Other threads of Python run meanwhile on the CPU, where work takes long, and if it `waits`.
    ///
    /// # Errors
    /// Those of the work.
    pub fn run<R: Send>(
        &self,
        waits: bool,
        work: impl FnOnce() -> cutlet::Result<R> + Send,
    ) -> Result<R> {
        let context = self.context();
        let waits_for_work = self.waits_for_work && context.place != Place::Cpu;
        let others = &self.others;
        let work = || {
            let result = work();
            // Also after an error: a part of the work may be enqueued.
            for other in others {
                other.stream.wait_for(&context.stream)?;
            }
            if waits_for_work {
                context.stream.synchronize()?;
            }
            result
        };
        let result: cutlet::Result<R> = match waits || waits_for_work || context.place == Place::Cpu
        {
            true => self.py.detach(work),
            false => work(),
        };
        Ok(result?)
    }

    /// As [`run`](Self::run), with the operations that the stream keeps. If another thread has them and waits for its work,
    /// this call waits without the interpreter, which that work may need.
    ///
    /// # Errors
    /// Those of the work.
    pub fn run_kept<R: Send>(
        &self,
        waits: bool,
        work: impl FnOnce(&mut Kept) -> cutlet::Result<R> + Send,
    ) -> Result<R> {
        let kept = self.context().kept.lock_py_attached(self.py);
        let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        self.run(waits, || work(kept))
    }

    /// The call's stream: the one that was asked for, or else the current one of the first array.
    fn settle(
        &mut self,
        name: &'static str,
        place: Place,
        current: impl FnOnce(i32) -> Result<usize>,
    ) -> Result<&'static Context> {
        if let Some((first, context)) = self.first {
            return match context.place == place {
                true => Ok(context),
                false => wrong_value(format!(
                    "{}: {name} is on {place}, and {first} is on {}; move one of them",
                    self.operation, context.place
                )),
            };
        }
        let handle = match (place, &self.asked) {
            (Place::Cpu, None) => 0,
            (Place::Cpu, Some(_)) => {
                return wrong_value(format!(
                    "{}: stream was given, and {name} is on the CPU, which has none; leave it out",
                    self.operation
                ));
            }
            (Place::Gpu(gpu), Some(stream)) => {
                let asked = stream::asked(stream)?;
                if let Some(of_stream) = asked.gpu.filter(|it| *it != gpu) {
                    return wrong_value(format!(
                        "{}: stream is of GPU {of_stream}, and {name} is on GPU {gpu}; give a stream of GPU {gpu}",
                        self.operation
                    ));
                }
                asked.handle
            }
            (Place::Gpu(gpu), None) => current(gpu)?,
        };
        if place != Place::Cpu {
            self._current = CurrentContext::now();
        }
        let context = stream::context(self.py, self.operation, place, handle)?;
        self.first = Some((name, context));
        Ok(context)
    }
}

/// The array of a description.
///
/// # Safety
/// The description is of an array that the caller keeps.
unsafe fn described(name: &'static str, tensor: &DLTensor, is_read_only: bool) -> Result<Array> {
    let Some(data_type) = DataType::of_dlpack(tensor.dtype) else {
        let found = tensor.dtype;
        return wrong_type(format!(
            "{name} has elements of {} bits of DLPack's type code {} in vectors of {}, which no kernel takes; convert it",
            found.bits, found.code.0, found.lanes
        ));
    };
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let of = |numbers: *const i64| match rank == 0 || numbers.is_null() {
        true => None,
        // SAFETY: the description has an extent for each dimension, and a stride if there are any.
        false => Some(unsafe { std::slice::from_raw_parts(numbers, rank) }),
    };
    let (shape, strides) = (of(tensor.shape), of(tensor.strides));
    let dimensions = Dimensions::new(name, shape.unwrap_or_default(), strides)?;
    // The CPU backend makes pointers of addresses.
    let data = tensor.data.expose_provenance() as u64;
    let address = match data {
        0 => 0,
        data => data.wrapping_add(tensor.byte_offset),
    };
    Array::new(name, data_type, is_read_only, address, dimensions)
}
