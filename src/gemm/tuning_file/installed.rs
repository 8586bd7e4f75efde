//! The tunings of the process: what planning a GEMM looks up in them.
//!
//! The first look-up reads the environment variables. Without a tuning and a recorder, a look-up is two loads.

use std::collections::{HashMap, HashSet};
use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, RwLock};

use cutlet_device::DeviceData;
use cutlet_host::Device;
use cutlet_host::tuning_file::model_name;

use super::Tuning;
use super::notice::tell;
use super::problem_key::ProblemKey;
use super::recorder::Recorder;
use crate::gemm::element_type::ElementType;
use crate::gemm::operand::Operand;
use crate::gemm::problem::Problem;

/// The tunings and the recorder of the process.
struct Process {
    /// How many tunings there are.
    tunings: AtomicUsize,
    tables: RwLock<Vec<Table>>,
    recorder: Option<Recorder>,
    /// The names of the devices for which no tuning was made, once a line said so.
    told: Mutex<HashSet<String>>,
}

static PROCESS: LazyLock<Process> = LazyLock::new(Process::from_environment);

/// The path in an environment variable, unless it is empty.
fn path_in(variable: &str) -> Option<PathBuf> {
    let path = env::var_os(variable).filter(|path| !path.is_empty())?;
    Some(path.into())
}

impl Tuning {
    /// The path in the environment variable [`VARIABLE`](Self::VARIABLE). An empty one counts as none.
    pub fn path_in_environment() -> Option<PathBuf> {
        path_in(Tuning::VARIABLE)
    }
}

/// A tuning, with its kernels by problem.
struct Table {
    of: Tuning,
    kernels: HashMap<ProblemKey, Arc<str>>,
}

impl Process {
    fn from_environment() -> Self {
        let process = Process {
            tunings: AtomicUsize::new(0),
            tables: RwLock::default(),
            recorder: path_in(Recorder::VARIABLE).and_then(|path| {
                let opened = Recorder::open(&path);
                opened
                    .map_err(|error| tell(format!("{error}; no problem is recorded")))
                    .ok()
            }),
            told: Mutex::default(),
        };
        if let Some(path) = Tuning::path_in_environment() {
            match Tuning::load(path) {
                Ok(tuning) => process.install(tuning),
                Err(error) => tell(format!(
                    "{error}; it is ignored, and kernels are chosen by estimates"
                )),
            }
        }
        process
    }

    fn install(&self, tuning: Tuning) {
        if let Some(mismatch) = tuning.other_version() {
            tell(format!("{}: {mismatch}", tuning.place()));
            return;
        }
        let entries = tuning.entries.iter();
        let kernels = entries.map(|entry| (entry.problem, Arc::from(entry.kernel.as_str())));
        let table = Table {
            kernels: kernels.collect(),
            of: tuning,
        };
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        tables.push(table);
        self.tunings.store(tables.len(), Ordering::Release);
    }

    fn is_tuned(&self) -> bool {
        self.tunings.load(Ordering::Acquire) > 0
    }

    /// What `find` finds in the latest table of the device that has it.
    fn find<R>(&self, device: &Device, find: impl Fn(&Table) -> Option<R>) -> Option<R> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        let mut of_device = tables
            .iter()
            .rev()
            .filter(|table| table.of.header.device.is(device))
            .peekable();
        if of_device.peek().is_none() {
            self.tell_mismatch(device, &tables);
        }
        of_device.find_map(find)
    }

    /// Says once for each kind of device that no tuning is of it.
    fn tell_mismatch(&self, device: &Device, tables: &[Table]) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.insert(model_name(device).to_string()) {
            return;
        }
        for Table { of, .. } in tables {
            if let Some(mismatch) = of.other_device(device) {
                tell(format!("{}: {mismatch}", of.place()));
            }
        }
    }
}

/// Installs a tuning: see [`Tuning::install`].
pub fn install(tuning: Tuning) {
    PROCESS.install(tuning);
}

/// How many tunings are installed. A choice that was made with fewer of them may have changed.
pub fn count() -> usize {
    PROCESS.tunings.load(Ordering::Acquire)
}

/// The name of the kernel that was measured to be the fastest for a problem of these types, if it was measured. Records
/// the problem if the process's problems are recorded.
pub fn kernel_for<T: Operand, D: DeviceData>(
    device: &Device,
    types: [ElementType; 2],
    problem: &Problem<'_, T, D>,
) -> Option<Arc<str>> {
    let process = &*PROCESS;
    if !process.is_tuned() && process.recorder.is_none() {
        return None;
    }
    let key = ProblemKey::of(problem, types)?;
    if let Some(recorder) = &process.recorder {
        recorder.record(&key);
    }
    match process.is_tuned() {
        true => process.find(device, |table| table.kernels.get(&key).cloned()),
        false => None,
    }
}

/// The rate of the device's memory that was measured, in 10⁹ bytes a second, if it was.
pub fn memory_gigabytes(device: &Device) -> Option<f64> {
    match PROCESS.is_tuned() {
        true => PROCESS.find(device, |table| table.of.rates.memory_gigabytes),
        false => None,
    }
}
