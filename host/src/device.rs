//! Devices: a GPU or the CPU backend, and why it was chosen.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUdevice_attribute as A;

use crate::driver::{self, During, attribute};
use crate::gpu::Gpu;
use crate::lock::lock;
use crate::memory_pool::MemoryPool;
use crate::module::ModuleCache;
use crate::order::DeviceOrder;
use crate::{Error, Limits, Result};

/// A GPU or the CPU backend. Cloning is cheap, and clones are the same device.
///
/// ```
/// use cutlet_host::Device;
/// let device = Device::auto();
/// println!("running on {}", device.describe());
/// ```
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
    why: Arc<str>,
}

/// The kind of device that runs kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// An NVIDIA GPU, through the driver.
    Gpu,
    /// The CPU: every GPU thread is a coroutine, and a launch returns when it is done.
    Cpu,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Gpu => "gpu",
            Backend::Cpu => "cpu",
        })
    }
}

/// A device in words: what it is and why it was chosen. Prints as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// GPU or CPU.
    pub backend: Backend,
    /// `gpu 0: NVIDIA H200`, or `cpu`.
    pub name: String,
    /// Why this device was chosen: `it was asked for`, `the NVIDIA driver offers it`, `there is no NVIDIA driver …`.
    pub why: String,
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.why)
    }
}

struct Inner {
    name: String,
    limits: Limits,
    multiprocessors: u32,
    memory_rate: Option<f64>,
    highest_clock: Option<f64>,
    /// The group of each multiprocessor, measured at the first query.
    groups: OnceLock<Vec<u32>>,
    /// How many clusters of 1, 2, 4, 8 and 16 blocks run at the same time, asked for at the first query.
    clusters: [OnceLock<u32>; 5],
    place: Place,
    modules: ModuleCache,
    pool: MemoryPool,
    order: DeviceOrder,
}

pub(crate) enum Place {
    Cpu,
    Gpu(Gpu),
}

impl Device {
    /// GPU 0 if the driver offers one, else the CPU, whose backend is for finding bugs and far slower.
    /// [`describe`](Self::describe) says which and why, and so does the crate `log`, as a warning, if it is the CPU.
    /// [`gpu`](Self::gpu) does not fall back.
    pub fn auto() -> Device {
        match first_gpu() {
            Ok(inner) => Device {
                inner,
                why: "the NVIDIA driver offers it".into(),
            },
            Err(why) => {
                log::warn!("cutlet runs kernels on the CPU, for finding bugs, because {why}");
                Device::cpu_because(&why)
            }
        }
    }

    /// The GPU with this number. The driver numbers GPUs from 0.
    ///
    /// ```
    /// use cutlet_host::{Device, gpu_count};
    /// match Device::gpu(0) {
    ///     Ok(device) => println!("one of {}: {}", gpu_count()?, device.describe()),
    ///     // `gpu 0 was asked for, but …`
    ///     Err(error) => println!("{error}"),
    /// }
    /// # Ok::<(), cutlet_host::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoSuchGpu`], or [`Error::Driver`] if it cannot be opened.
    pub fn gpu(ordinal: usize) -> Result<Device> {
        driver::present().map_err(|found| Error::NoDriver {
            asked: format!("gpu {ordinal}"),
            found,
        })?;
        let count = driver::gpu_count()?;
        if ordinal >= count {
            return Err(Error::NoSuchGpu { ordinal, count });
        }
        Ok(Device {
            inner: open(ordinal)?,
            why: "it was asked for".into(),
        })
    }

    /// The CPU backend.
    pub fn cpu() -> Device {
        Device::cpu_because("it was asked for")
    }

    fn cpu_because(why: &str) -> Device {
        static CPU: OnceLock<Arc<Inner>> = OnceLock::new();
        let inner = CPU.get_or_init(|| Arc::new(cpu())).clone();
        Device {
            inner,
            why: why.into(),
        }
    }

    /// The device of a cudarc context. The context's buffers and streams can be used on it.
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver does not tell the device's properties.
    pub fn from_cudarc(context: &Arc<CudaContext>) -> Result<Device> {
        let inner = register(context.clone())?;
        inner.order.share();
        Ok(Device {
            inner,
            why: "its cudarc context was given".into(),
        })
    }

    /// What this device is and why it was chosen.
    pub fn describe(&self) -> Description {
        Description {
            backend: self.backend(),
            name: self.name().to_string(),
            why: self.why.to_string(),
        }
    }

    /// `gpu 0: NVIDIA H200`, or `cpu`.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// GPU or CPU.
    pub fn backend(&self) -> Backend {
        match self.inner.place {
            Place::Cpu => Backend::Cpu,
            Place::Gpu(_) => Backend::Gpu,
        }
    }

    /// Compute capability (major, minor); `None` on the CPU, which runs every kernel.
    pub fn compute_capability(&self) -> Option<(u32, u32)> {
        match &self.inner.place {
            Place::Cpu => None,
            Place::Gpu(gpu) => Some(gpu.capability),
        }
    }

    /// Number of multiprocessors of the GPU, or of cores of the CPU.
    pub fn multiprocessors(&self) -> u32 {
        self.inner.multiprocessors
    }

    /// Bytes that the GPU's memory brings for each multiprocessor in a clock, at the highest clocks, as the driver
    /// states them; `None` on the CPU, and if the driver does not say.
    pub fn memory_rate(&self) -> Option<f64> {
        self.inner.memory_rate
    }

    /// The highest clock of the GPU's multiprocessors in Hz, as the driver states it; `None` on the CPU, and if the
    /// driver does not say.
    pub fn highest_clock(&self) -> Option<f64> {
        self.inner.highest_clock
    }

    /// Limits of a launch on this device.
    pub fn limits(&self) -> Limits {
        self.inner.limits
    }

    /// Free and total memory in bytes; `None` on the CPU. What this crate keeps for later buffers is not free: see
    /// [`trim_memory`](Self::trim_memory).
    ///
    /// # Errors
    /// [`Error::Driver`] if the query fails.
    pub fn memory(&self) -> Result<Option<(usize, usize)>> {
        match &self.inner.place {
            Place::Cpu => Ok(None),
            Place::Gpu(gpu) => {
                gpu.make_current()?;
                let info = cudarc::driver::result::mem_get_info();
                info.during("asking for free memory").map(Some)
            }
        }
    }

    /// Gives memory of dropped buffers back to the driver, for other libraries and processes, but `keep` bytes of it.
    ///
    /// Memory of dropped buffers and scratch memory is kept for later ones, so that allocating takes no time. It is
    /// reused after the work that used it. Memory whose work is not done yet is not given back. On the CPU there is
    /// nothing to give back.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let device = cutlet_host::Device::auto();
    /// let stream = device.stream()?;
    /// drop(stream.zeroed::<f32>(1 << 20)?);
    /// stream.synchronize()?;
    /// device.trim_memory(0)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::Driver`] if the driver refuses.
    pub fn trim_memory(&self, keep: usize) -> Result<()> {
        match &self.inner.place {
            Place::Cpu => Ok(()),
            Place::Gpu(gpu) => {
                self.inner.pool.free_postponed(self, gpu);
                self.inner.pool.trim(gpu, keep)
            }
        }
    }

    /// Makes this GPU's context current in the calling thread, for calls to other CUDA libraries.
    /// This crate's own calls do it themselves. On the CPU it does nothing.
    ///
    /// # Errors
    /// [`Error::Driver`] if an earlier kernel broke the context.
    pub fn make_current(&self) -> Result<()> {
        if self.backend() == Backend::Gpu {
            self.order().share();
        }
        self.bind()
    }

    /// As [`make_current`](Self::make_current), for this crate's own calls.
    pub(crate) fn bind(&self) -> Result<()> {
        match &self.inner.place {
            Place::Cpu => Ok(()),
            Place::Gpu(gpu) => gpu.make_current(),
        }
    }

    pub(crate) fn known_groups(&self) -> &OnceLock<Vec<u32>> {
        &self.inner.groups
    }

    pub(crate) fn known_clusters(&self) -> &[OnceLock<u32>; 5] {
        &self.inner.clusters
    }

    pub(crate) fn place(&self) -> &Place {
        &self.inner.place
    }

    /// The kernels that were loaded; none on the CPU.
    pub(crate) fn modules(&self) -> &ModuleCache {
        &self.inner.modules
    }

    /// The pool of memory; not used on the CPU.
    pub(crate) fn memory_pool(&self) -> &MemoryPool {
        &self.inner.pool
    }

    /// The order of the device's work.
    pub(crate) fn order(&self) -> &DeviceOrder {
        &self.inner.order
    }

    /// Whether both are the same device.
    pub(crate) fn is(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns an error unless `self`, the device of `what`, is the stream's device, `expected`.
    pub(crate) fn expect(&self, expected: &Device, what: impl FnOnce() -> String) -> Result<()> {
        if self.is(expected) {
            return Ok(());
        }
        Err(Error::WrongDevice {
            what: what(),
            found: self.name().to_string(),
            expected: expected.name().to_string(),
        })
    }
}

impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        self.is(other)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({})", self.describe())
    }
}

fn cpu() -> Inner {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    Inner {
        name: "cpu".to_string(),
        limits: Limits::CPU,
        multiprocessors: u32::try_from(cores).unwrap_or(u32::MAX),
        memory_rate: None,
        highest_clock: None,
        groups: OnceLock::new(),
        clusters: Default::default(),
        place: Place::Cpu,
        modules: ModuleCache::default(),
        pool: MemoryPool::default(),
        order: DeviceOrder::default(),
    }
}

/// GPU 0, or the reason why there is none.
fn first_gpu() -> Result<Arc<Inner>, String> {
    driver::present()?;
    match driver::gpu_count() {
        Ok(0) => Err("the NVIDIA driver offers no GPU".to_string()),
        Ok(_) => open(0).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

/// Opens a GPU's primary context, if it is not open yet.
fn open(ordinal: usize) -> Result<Arc<Inner>> {
    let context = CudaContext::new(ordinal).during(&format!("opening gpu {ordinal}"))?;
    register(context)
}

/// The device of a context. An opened device stays open until the process ends, because it holds
/// compiled kernels.
fn register(context: Arc<CudaContext>) -> Result<Arc<Inner>> {
    static OPEN: Mutex<Vec<Arc<Inner>>> = Mutex::new(Vec::new());
    let mut open = lock(&OPEN);
    let is_of_context = |inner: &&Arc<Inner>| match &inner.place {
        Place::Cpu => false,
        Place::Gpu(gpu) => gpu.context.cu_ctx() == context.cu_ctx(),
    };
    if let Some(inner) = open.iter().find(is_of_context) {
        return Ok(inner.clone());
    }
    let inner = Arc::new(gpu(context)?);
    open.push(inner.clone());
    Ok(inner)
}

fn gpu(context: Arc<CudaContext>) -> Result<Inner> {
    let capability = (
        attribute(&context, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(&context, A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let name = context.name().during("asking for the device's name")?;
    let multiprocessors = attribute(&context, A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    Ok(Inner {
        name: format!("gpu {}: {name}", context.ordinal()),
        limits: Limits::of_gpu(&context, capability)?,
        multiprocessors,
        memory_rate: memory_rate(&context, multiprocessors)?,
        highest_clock: highest_clock(&context)?,
        groups: OnceLock::new(),
        clusters: Default::default(),
        place: Place::Gpu(Gpu::new(context, capability)),
        modules: ModuleCache::default(),
        pool: MemoryPool::default(),
        order: DeviceOrder::default(),
    })
}

/// See [`Device::highest_clock`].
fn highest_clock(context: &CudaContext) -> Result<Option<f64>> {
    let kilohertz = attribute(context, A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
    Ok((kilohertz > 0).then(|| f64::from(kilohertz) * 1e3))
}

/// See [`Device::memory_rate`].
fn memory_rate(context: &CudaContext, multiprocessors: u32) -> Result<Option<f64>> {
    let number = |of| attribute(context, of).map(f64::from);
    let bits = number(A::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
    let memory_clock = number(A::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    let clock = number(A::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)?;
    // Two transfers in each clock of the memory.
    let rate = 2.0 * bits / 8.0 * memory_clock / clock / f64::from(multiprocessors);
    Ok((rate.is_finite() && rate > 0.0).then_some(rate))
}

/// A second CPU, to test errors of calls that mix devices.
#[cfg(test)]
pub(crate) fn another_cpu() -> Device {
    Device {
        inner: Arc::new(Inner {
            name: "another cpu".to_string(),
            ..cpu()
        }),
        why: "two are needed".into(),
    }
}
