//! Tuning files: kernels that were measured to be the fastest at some problems on a device. A GEMM runs them instead of
//! those that are estimated to be the fastest.
//!
//! A [`Tuning`] is the content of a file. [`text`] reads and writes it, [`problem_key`] says what a line is about, and
//! [`version`] which kernels were measured. The tunings of a process are [`installed`], and a [`recorder`] notes its
//! problems for the next tuning.

pub mod installed;
mod notice;
pub mod problem_key;
pub mod recorder;
mod text;
mod version;
pub mod words;

use std::fs;
use std::path::{Path, PathBuf};

use cutlet_host::Device;
use cutlet_host::tuning_file::{self, Header, TunedDevice, Versions};

use crate::{Error, Result};
use problem_key::ProblemKey;

/// The content of a tuning file: for each of some problems, the kernel that was measured to be the fastest on a device.
///
/// `cutlet tune` writes such files. A process takes one from the environment variable [`Tuning::VARIABLE`], or by
/// [`install`](Self::install). An entry counts for problems with exactly its [`ProblemKey`], on devices of its name
/// with as many multiprocessors, in programs with the same version of cutlet and of its kernels.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Gemm, Tuning, TuningEntry};
///
/// let device = Device::cpu();
/// let mut tuning = Tuning::new(&device);
/// tuning.insert(TuningEntry {
///     problem: "operands=f32 c=f32 precision=exact m=8 n=24 k=16 a=row b=row alignments=64,32,32 beta=0 bias=none \
///               residual=none activation=none".parse()?,
///     kernel: "f32_64x64_kn".to_string(),
///     microseconds: 3.5,
/// });
/// # let path = std::env::temp_dir().join(format!("cutlet-doc-{}.tuning", std::process::id()));
/// tuning.save(&path)?;
/// Tuning::load(&path)?.install();
/// # std::fs::remove_file(&path)?;
///
/// let stream = device.stream()?;
/// let zeros = |m, n| DeviceTensor::<f32>::zeroed(&stream, [m, n]);
/// let (a, b, mut c) = (zeros(8, 16)?, zeros(16, 24)?, zeros(8, 24)?);
/// let plan = Gemm::new(&a, &b, &mut c).plan(&stream)?;
/// assert_eq!(plan.kernel(), Some("f32_64x64_kn"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Tuning {
    /// The file that it was read from.
    path: Option<PathBuf>,
    header: Header,
    rates: DeviceRates,
    entries: Vec<TuningEntry>,
}

/// The kernel that was measured to be the fastest at a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct TuningEntry {
    /// The problem.
    pub problem: ProblemKey,
    /// The name of the kernel instance.
    pub kernel: String,
    /// The time that was measured, in microseconds.
    pub microseconds: f64,
}

/// Measured rates of a device, as `cutlet tune --device` stores them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceRates {
    /// Bytes that a large copy reads and writes in memory, in 10⁹ bytes a second. It replaces the rate that the driver
    /// states in estimates.
    pub memory_gigabytes: Option<f64>,
    /// Bytes that a copy within the L2 cache reads and writes, in 10⁹ bytes a second. No estimate depends on it yet.
    pub l2_gigabytes: Option<f64>,
    /// The clock of the multiprocessors while a long GEMM runs, in MHz. No estimate depends on it yet.
    pub loaded_megahertz: Option<f64>,
}

/// The versions of this program.
fn current_versions() -> Versions {
    Versions {
        // Its estimates choose the splits of a named kernel.
        cutlet: env!("CARGO_PKG_VERSION").to_string(),
        kernels: version::of_kernels().to_string(),
    }
}

impl Tuning {
    /// The environment variable that names a process's tuning file. It is read at the first GEMM.
    pub const VARIABLE: &str = "CUTLET_TUNING";

    /// An empty tuning for devices of this device's kind and for this program's kernels.
    pub fn new(device: &Device) -> Self {
        Tuning {
            path: None,
            header: Header {
                made_with: current_versions(),
                device: TunedDevice::of(device),
            },
            rates: DeviceRates::default(),
            entries: Vec::new(),
        }
    }

    /// Reads a file. A file of another device or version is read as well: see [`mismatch`](Self::mismatch).
    ///
    /// # Errors
    /// [`Error::TuningFile`] if it cannot be read or is damaged, with the line that is wrong.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = read(path)?;
        text::read(&text, path)
    }

    /// Writes a file. An interrupted write leaves the file as it was before.
    ///
    /// # Errors
    /// [`Error::TuningFile`] if it cannot be written.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        tuning_file::replace(path, &text::write(self))
            .map_err(|error| refused(path, format!("writing it failed: {error}")))
    }

    /// Adds an entry, in place of one for the same problem.
    pub fn insert(&mut self, entry: TuningEntry) {
        self.remove(&entry.problem);
        self.entries.push(entry);
    }

    /// Removes the entry for a problem, if there is one.
    pub fn remove(&mut self, problem: &ProblemKey) {
        self.entries.retain(|known| known.problem != *problem);
    }

    /// The entries.
    pub fn entries(&self) -> &[TuningEntry] {
        &self.entries
    }

    /// The measured rates of the device.
    pub fn rates(&self) -> DeviceRates {
        self.rates
    }

    /// Stores measured rates of the device.
    pub fn set_rates(&mut self, rates: DeviceRates) {
        self.rates = rates;
    }

    /// Why this program ignores the entries on a device: they are of another device or version. None if they count.
    pub fn mismatch(&self, device: &Device) -> Option<String> {
        self.other_version().or_else(|| self.other_device(device))
    }

    /// Why entries cannot be added to those that are there: they are of another device or version, or were measured
    /// with another driver. None if they can.
    pub fn merge_refusal(&self, device: &Device) -> Option<String> {
        let (theirs, ours) = (&self.header.device.cuda, TunedDevice::of(device).cuda);
        let other_driver = || {
            (*theirs != ours).then(|| {
                format!("it was measured with CUDA {theirs}, and the driver here has CUDA {ours}")
            })
        };
        self.mismatch(device).or_else(other_driver)
    }

    /// Why no device of this program uses the entries, if their version is another.
    fn other_version(&self) -> Option<String> {
        let current = current_versions();
        let (made_with, count) = (&self.header.made_with, self.entries.len());
        (*made_with != current).then(|| {
            format!(
                "it is of {made_with}, and this program has {current}: its {count} entries are ignored; run \
                 `cutlet tune` again"
            )
        })
    }

    /// Why this device does not use the entries, if it is another one.
    fn other_device(&self, device: &Device) -> Option<String> {
        let (tuned, count) = (&self.header.device, self.entries.len());
        let here = TunedDevice::of(device);
        (!tuned.is(device)).then(|| {
            format!("it was made on {tuned}, and this is {here}: its {count} entries are ignored")
        })
    }

    /// Has all GEMMs of the process that are planned from now on look for their kernels in this tuning, too. An entry
    /// for a problem replaces an earlier tuning's entry for it. [`Gemm::untuned`](crate::Gemm::untuned) and
    /// [`Gemm::instance`](crate::Gemm::instance) leave tunings out.
    ///
    /// If the tuning is of another version, nothing changes, and a line on standard error says so, as at the first
    /// GEMM on another device. [`mismatch`](Self::mismatch) tells before.
    pub fn install(self) {
        installed::install(self);
    }

    /// The file in words.
    fn place(&self) -> String {
        match &self.path {
            Some(path) => format!("the tuning file {}", path.display()),
            None => "the installed tuning".to_string(),
        }
    }
}

/// The text of a file.
fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(|error| refused(path, format!("reading it failed: {error}")))
}

/// The error about a file, or about a place in it.
fn refused(path: &Path, found: String) -> Error {
    Error::TuningFile {
        place: path.display().to_string(),
        found,
    }
}

/// The error about a line of a file. Lines are counted from 1.
fn refused_line(path: &Path, line: usize, found: String) -> Error {
    Error::TuningFile {
        place: format!("{}, line {line}", path.display()),
        found,
    }
}
