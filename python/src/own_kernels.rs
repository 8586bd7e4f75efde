//! `load`: kernels of a user's package, from the PTX that its build writes, launched with arrays of Python.

mod argument;
mod signature;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cutlet_device::{Kernel as Handle, PtxFamily, PtxLibrary, PtxModule, PtxText};
use cutlet_host::Grid;
use pyo3::exceptions::{PyAttributeError, PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::call::{Argument, Call};
use crate::error::{Result, wrong_type, wrong_value};
use crate::stream::Place;
use argument::{Packed, Value};
use signature::{Parameter, Refusal, Signature};

/// Loads the kernels of a package from the PTX that its build wrote.
///
/// Arguments:
///     path: A file of PTX, or a folder of them, such as `cutlet.build_kernels` returns.
///
/// The driver compiles a kernel at its first launch, for the best of its targets. What is loaded stays in memory until the
/// process ends.
///
/// Returns:
///     A `Module`.
///
/// Raises:
///     ValueError: There is no PTX, or it is not of cutlet-ptx-builder.
///     OSError: A file cannot be read.
#[pyfunction]
pub fn load(py: Python<'_>, path: PathBuf) -> Result<Module> {
    let texts = texts(&path)?;
    let found = found_in(&texts);
    if found.is_empty() {
        return wrong_value(format!("load: {} has no kernel", path.display()));
    }
    let library = library(texts);
    let mut module = Module {
        path,
        kernels: BTreeMap::new(),
        refused: BTreeMap::new(),
    };
    for (name, (family, signature)) in found {
        match signature {
            Ok(signature) => {
                let kernel = Kernel::new(library, &name, &family, signature);
                module.kernels.insert(name, Py::new(py, kernel)?);
            }
            Err(why) => {
                module.refused.insert(name, why);
            }
        }
    }
    Ok(module)
}

/// Kernels by their names: their families, and their signatures unless Python cannot launch them.
type Found = BTreeMap<String, (String, std::result::Result<Signature, Refusal>)>;

/// The kernels of all texts. Those for several targets must be the same.
fn found_in(texts: &[Text]) -> Found {
    let mut found = Found::new();
    for text in texts {
        for entry in signature::entries(&text.ptx) {
            let described = (text.family.clone(), entry.signature);
            let why = match found.get(entry.name) {
                None => {
                    found.insert(entry.name.to_owned(), described);
                    continue;
                }
                Some(known) if *known == described => continue,
                Some((family, _)) if *family == text.family => {
                    format!(
                        "it is another one for {} than for other targets",
                        text.target
                    )
                }
                Some((family, _)) => {
                    format!("the modules `{family}` and `{}` have it", text.family)
                }
            };
            found.insert(entry.name.to_owned(), (described.0, Err(why)));
        }
    }
    found
}

/// A file of PTX.
struct Text {
    /// The module of its kernels in their crate.
    family: String,
    target: String,
    ptx: String,
}

/// The file, or the files of the folder.
fn texts(path: &Path) -> Result<Vec<Text>> {
    let mut paths = vec![path.to_owned()];
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(PyErr::from)?;
        paths = entries
            .map(|entry| entry.map(|it| it.path()))
            .collect::<std::io::Result<_>>()
            .map_err(PyErr::from)?;
        paths.retain(|it| it.extension().is_some_and(|it| it == "ptx"));
        paths.sort();
        if paths.is_empty() {
            return wrong_value(format!("load: {} has no file *.ptx", path.display()));
        }
    }
    paths.iter().map(|path| text(path)).collect()
}

fn text(path: &Path) -> Result<Text> {
    let ptx = fs::read_to_string(path).map_err(PyErr::from)?;
    let Some(target) = signature::target(&ptx) else {
        return wrong_value(format!(
            "load: {} has no `.target`, as PTX does",
            path.display()
        ));
    };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // `gather-by_rows.sm_90a.ptx` has the kernels of `gather::by_rows`.
    let family = name.split('.').next().unwrap_or_default();
    Ok(Text {
        family: family.replace('-', "::"),
        target: target.to_owned(),
        ptx,
    })
}

/// The texts as a library of the host, which stays in memory as those of programs do.
fn library(texts: Vec<Text>) -> &'static PtxLibrary {
    let mut families: BTreeMap<String, Vec<PtxModule>> = BTreeMap::new();
    for text in texts {
        families.entry(text.family).or_default().push(PtxModule {
            target: text.target.leak(),
            ptx: PtxText::Plain(text.ptx.leak()),
        });
    }
    let families: Vec<PtxFamily> = families
        .into_iter()
        .map(|(name, modules)| PtxFamily {
            name: name.leak(),
            modules: modules.leak(),
        })
        .collect();
    Box::leak(Box::new(PtxLibrary {
        families: families.leak(),
    }))
}

/// The kernels of a package: `module.name` and `module["name"]`.
#[pyclass(frozen, module = "cutlet")]
pub struct Module {
    path: PathBuf,
    kernels: BTreeMap<String, Py<Kernel>>,
    refused: BTreeMap<String, Refusal>,
}

#[pymethods]
impl Module {
    /// The names of the kernels.
    #[getter]
    fn kernels(&self) -> Vec<&str> {
        self.kernels.keys().map(String::as_str).collect()
    }

    /// Kernels that Python cannot launch, and why.
    #[getter]
    fn refused(&self) -> BTreeMap<String, Refusal> {
        self.refused.clone()
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Kernel>> {
        let kernel = self.kernels.get(name).map(|it| it.clone_ref(py));
        kernel.ok_or_else(|| PyKeyError::new_err(self.missing(name)))
    }

    fn __getattr__(&self, py: Python<'_>, name: &str) -> PyResult<Py<Kernel>> {
        let kernel = self.kernels.get(name).map(|it| it.clone_ref(py));
        kernel.ok_or_else(|| PyAttributeError::new_err(self.missing(name)))
    }

    fn __repr__(&self) -> String {
        format!(
            "<cutlet.Module {}: {}>",
            self.path.display(),
            self.kernels().join(", ")
        )
    }
}

impl Module {
    /// Why there is no kernel of this name.
    fn missing(&self, name: &str) -> String {
        match self.refused.get(name) {
            Some(why) => format!("Python cannot launch `{name}`: {why}"),
            None => format!(
                "{} has no kernel `{name}`; it has {}",
                self.path.display(),
                self.kernels().join(", ")
            ),
        }
    }
}

/// A kernel of a user's package.
///
/// A call launches it, and returns when the launch is enqueued:
/// `kernel(*arguments, grid=blocks, stream=None)`. `grid` is the number of blocks, or up to three numbers. An argument is
/// an array for a pointer, a number, or `bytes` for a struct by value. Nothing checks that the kernel stays within its
/// arrays: keep what its documentation demands.
#[pyclass(frozen, module = "cutlet")]
pub struct Kernel {
    library: &'static PtxLibrary,
    handle: Handle<Packed>,
    signature: Signature,
}

impl Kernel {
    fn new(library: &'static PtxLibrary, name: &str, family: &str, signature: Signature) -> Kernel {
        let names: Vec<&'static str> = signature
            .parameters
            .iter()
            .map(|it| &*it.name.clone().leak())
            .collect();
        // The host takes the family from the path of the kernel's module, which begins with a crate.
        let module = format!("crate::{family}").leak();
        let bounds = signature.bounds.launch_bounds();
        // SAFETY: a launch passes one value for each parameter of the entry, of its size there, and the bounds are those
        // of the entry. There is no body for the CPU.
        let handle =
            unsafe { Handle::new(name.to_owned().leak(), module, names.leak(), bounds, None) };
        Kernel {
            library,
            handle,
            signature,
        }
    }

    /// `scale(n: u32, x: *const f32)`.
    fn in_words(&self) -> String {
        let parameters: Vec<_> = self.parameters().iter().map(ToString::to_string).collect();
        format!("{}({})", self.handle.name(), parameters.join(", "))
    }

    fn parameters(&self) -> &[Parameter] {
        &self.signature.parameters
    }

    /// The arguments of a call.
    fn read<'py>(&self, call: &mut Call<'py>, given: &Bound<'py, PyTuple>) -> Result<Vec<Value>> {
        let parameters = self.parameters();
        if given.len() != parameters.len() {
            return wrong_type(format!(
                "{}: {} arguments were given; give {}: {}",
                self.handle.name(),
                given.len(),
                parameters.len(),
                self.in_words()
            ));
        }
        let mut values = Vec::with_capacity(parameters.len());
        let names = self.handle.parameters().iter().zip(parameters);
        for ((name, parameter), given) in names.zip(given.iter()) {
            values.push(Value::read(call, name, parameter, &given)?);
        }
        self.expect_apart(&values)?;
        Ok(values)
    }

    /// Returns an error if an array that the kernel may write overlaps another one.
    fn expect_apart(&self, values: &[Value]) -> Result<()> {
        let arrays: Vec<(&Argument, bool)> = values
            .iter()
            .zip(self.parameters())
            .filter_map(|(value, parameter)| match (value, parameter.kind) {
                (Value::Array(array, _), signature::Kind::Array { may_write, .. }) => {
                    Some((array, may_write))
                }
                _ => None,
            })
            .collect();
        for (nth, (array, may_write)) in arrays.iter().enumerate() {
            for (other, other_may_write) in &arrays[..nth] {
                match (may_write, other_may_write) {
                    (true, _) => array.expect_apart(self.handle.name(), other)?,
                    (false, true) => other.expect_apart(self.handle.name(), array)?,
                    (false, false) => {}
                }
            }
        }
        Ok(())
    }
}

#[pymethods]
impl Kernel {
    #[getter(__name__)]
    fn name(&self) -> &'static str {
        self.handle.name()
    }

    /// Names and types of the parameters, in Rust's words.
    #[getter(parameters)]
    fn parameters_of_python(&self) -> Vec<(&str, &str)> {
        let parameters = self.parameters().iter();
        parameters.map(|it| (&*it.name, &*it.type_name)).collect()
    }

    /// Threads of a block.
    #[getter]
    fn threads(&self) -> u32 {
        self.signature.bounds.threads
    }

    /// Blocks of a cluster.
    #[getter]
    fn cluster(&self) -> u32 {
        self.signature.bounds.cluster
    }

    /// Bytes of shared memory that a launch gives a block.
    #[getter]
    fn shared_bytes(&self) -> u32 {
        self.signature.bounds.shared_bytes
    }

    fn __repr__(&self) -> String {
        format!(
            "<cutlet.Kernel {}, {} threads>",
            self.in_words(),
            self.threads()
        )
    }

    #[pyo3(signature = (*arguments, grid, stream=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        arguments: &Bound<'py, PyTuple>,
        grid: &Bound<'py, PyAny>,
        stream: Option<&Bound<'py, PyAny>>,
    ) -> Result<()> {
        let mut call = Call::new(py, self.handle.name(), stream);
        let grid = blocks(self.handle.name(), grid)?;
        let values = self.read(&mut call, arguments)?;
        let context = call.context();
        if context.place == Place::Cpu {
            return Err(PyRuntimeError::new_err(format!(
                "{}: the arrays are on the CPU, and PTX runs on a GPU alone; move them there",
                self.handle.name()
            ))
            .into());
        }
        let packed = Packed::new(&values);
        call.run(false, || {
            let function = context.stream.device().load(self.library, &self.handle)?;
            // SAFETY: the arguments are of the kernel's types. That it stays within its arrays is the promise of who
            // calls it, and that they live until it is done is that of `Call`.
            unsafe { context.stream.launch(&function, grid, packed)? };
            Ok(())
        })
    }
}

/// The argument `grid`: a number of blocks, or one to three of them.
fn blocks(kernel: &str, given: &Bound<'_, PyAny>) -> Result<Grid> {
    const GIVE: &str = "give a number of blocks, or up to three numbers";
    let extents = match given.extract::<i64>() {
        Ok(x) => vec![x],
        Err(_) => match given.extract::<Vec<i64>>() {
            Ok(extents) => extents,
            Err(_) => return wrong_type(format!("{kernel}: grid is {given}; {GIVE}")),
        },
    };
    let possible: Vec<u32> = extents
        .iter()
        .filter_map(|it| u32::try_from(*it).ok().filter(|it| *it > 0))
        .collect();
    let extent = |nth: usize| possible.get(nth).copied().unwrap_or(1);
    match (1..=3).contains(&extents.len()) && possible.len() == extents.len() {
        true => Ok(Grid::from([extent(0), extent(1), extent(2)])),
        false => wrong_value(format!(
            "{kernel}: grid is {given}; {GIVE}, each at least 1"
        )),
    }
}
