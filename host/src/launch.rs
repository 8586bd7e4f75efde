//! Launches: a loaded kernel enqueued in a stream, with a grid and arguments.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{self, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchConfig};
use cutlet_device::{KernelArgs, LaunchBounds, MAX_ARGS};
use cutlet_simt::{Buffers, LaunchSpec};

use crate::args::LaunchArgs;
use crate::cpu_queue::Work;
use crate::device::Device;
use crate::driver::check;
use crate::function::Code;
use crate::module::Entry;
use crate::stream::Queue;
use crate::{Error, Function, Grid, Result, Stream};

/// The configuration of a launch: its grid, its clusters, whether it may begin early, and whether its blocks run at the
/// same time. Threads and shared memory belong to the kernel.
///
/// A [`Grid`], or anything that converts to one, converts to a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchConfig {
    /// The number of blocks along x, y and z.
    pub grid: Grid,
    /// Blocks of a cluster, along x, of a kernel that leaves them to the launch (`cluster = 0`). Others have
    /// their own, whatever this says.
    pub cluster: u32,
    /// Programmatic dependent launch: the kernel may begin while the previous kernel in the stream
    /// ends. It must [wait](cutlet_device::grid_dependency_wait) before it reads what earlier kernels
    /// write, or writes what they read. Below compute capability 9.0 the launch is an ordinary one.
    pub overlap_previous: bool,
    /// Cooperative launch: no block runs before there is room for all of them, so that blocks may
    /// [wait](cutlet_device::wait_until) for each other, whatever else runs on the device. The grid has at most
    /// [`Function::resident_blocks`].
    pub cooperative: bool,
}

impl<G: Into<Grid>> From<G> for LaunchConfig {
    fn from(grid: G) -> LaunchConfig {
        LaunchConfig {
            grid: grid.into(),
            cluster: 1,
            overlap_previous: false,
            cooperative: false,
        }
    }
}

impl LaunchConfig {
    /// A dependent launch of a kernel that waits: [`overlap_previous`](Self::overlap_previous).
    ///
    /// ```
    /// use cutlet_host::LaunchConfig;
    /// assert!(LaunchConfig::dependent(3).overlap_previous);
    /// ```
    pub fn dependent(grid: impl Into<Grid>) -> LaunchConfig {
        LaunchConfig {
            overlap_previous: true,
            ..LaunchConfig::from(grid)
        }
    }
}

impl Stream {
    /// Enqueues a launch of `function` on a grid of blocks.
    ///
    /// `args` is a tuple with one value for each parameter of the kernel. A `Global<T>` parameter
    /// takes `&Buffer<T>` or a [`View`](crate::View). A `GlobalMut<T>` parameter takes
    /// `&mut Buffer<T>` or a [`ViewMut`](crate::ViewMut). Any other parameter takes a value of its own
    /// type. Wrong arguments do not compile.
    ///
    /// The launch allocates nothing and can be captured in a graph. On the CPU, the kernel has run
    /// when this returns.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// use cutlet_device::{Global, GlobalMut, PtxLibrary, block_idx, kernel, thread_idx};
    /// use cutlet_host::Device;
    ///
    /// /// Doubles `n` elements of `x` into `y`.
    /// #[kernel(threads = 128)]
    /// pub unsafe fn double(n: u32, x: Global<f32>, y: GlobalMut<f32>) {
    ///     let i = block_idx().x.get() * 128 + thread_idx().get();
    ///     if i < n {
    ///         // SAFETY: `x` and `y` have `n` elements, and no two threads have the same `i`.
    ///         unsafe { y.store(i64::from(i), 2.0 * x.load(i64::from(i))) };
    ///     }
    /// }
    ///
    /// // In a crate of kernels, the build script writes it.
    /// static PTX: PtxLibrary = PtxLibrary { families: &[] };
    ///
    /// let device = Device::cpu();
    /// let stream = device.stream()?;
    /// let function = device.load(&PTX, &double)?;
    /// let x = stream.upload(&[1.0f32, 2.0, 3.0])?;
    /// let mut y = stream.zeroed::<f32>(3)?;
    /// // SAFETY: both buffers have 3 elements and live until the download has waited.
    /// unsafe { stream.launch(&function, 3u32.div_ceil(128), (3, &x, &mut y))? };
    /// assert_eq!(stream.download(&y)?, [2.0, 4.0, 6.0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::BadGrid`] if the grid exceeds the device's limits, [`Error::WrongDevice`] if function
    /// or arguments are on another device, [`Error::WrongStream`] if an argument is bound to another
    /// stream, [`Error::Unordered`] if another stream uses an argument and nothing orders the two,
    /// [`Error::Driver`]. A kernel that fails is an
    /// [`Error::Kernel`] on the CPU. On a GPU a later call returns its error.
    ///
    /// # Safety
    /// The kernel was loaded with the PTX of the crate that defines it. It stays within the memory of its
    /// arguments. The memory stays alive until the kernel is done. All other accesses to it are ordered with the
    /// launch.
    #[cfg_attr(debug_assertions, track_caller)]
    pub unsafe fn launch<A: KernelArgs>(
        &self,
        function: &Function<A>,
        config: impl Into<LaunchConfig>,
        args: impl LaunchArgs<A>,
    ) -> Result<()> {
        let config = config.into();
        let name = function.name();
        let bounds = function.bounds().in_clusters_of(config.cluster);
        let of_function = || format!("kernel `{name}`");
        function.device().expect(self.device(), of_function)?;
        check_grid(name, bounds, config.grid, self.device())?;
        if config.cooperative {
            check_cooperative(function, config.grid)?;
        }
        let buffers = RefCell::new(Buffers::of_kernel(function.parameters()));
        let args = args.into_args(name, self, &buffers)?;
        match (function.code(), self.queue()) {
            (Code::Cpu(body), Queue::Cpu(queue)) => queue.submit(CpuLaunch {
                name,
                bounds,
                config,
                body: *body,
                args,
                buffers: buffers.into_inner(),
            }),
            (Code::Gpu(entry), Queue::Gpu(stream)) => {
                self.device().bind()?;
                // SAFETY: function, stream and arguments are on the current device, and the arguments
                // have the kernel's types. The rest is the caller's promise.
                unsafe { launch_gpu(*entry, name, bounds, config, stream.cu_stream(), &args) }
            }
            _ => Ok(()),
        }
    }
}

fn check_grid(
    kernel: &'static str,
    bounds: LaunchBounds,
    grid: Grid,
    device: &Device,
) -> Result<()> {
    let limits = device.limits().grid;
    let bad = |found: String, fix: &'static str| {
        Err(Error::BadGrid {
            kernel,
            grid,
            found,
            fix,
        })
    };
    for (axis, blocks, limit) in [
        ("x", grid.x, limits[0]),
        ("y", grid.y, limits[1]),
        ("z", grid.z, limits[2]),
    ] {
        if blocks == 0 {
            return bad(
                format!("there are no blocks along {axis}"),
                "skip the launch if there is nothing to do",
            );
        }
        if blocks > limit {
            return bad(
                format!("{} has at most {limit} blocks along {axis}", device.name()),
                "give each block more work, or use the x axis, which has the highest limit",
            );
        }
    }
    if bounds.cluster() > device.limits().cluster {
        return bad(
            format!("it is launched in clusters of {} blocks", bounds.cluster()),
            "use clusters of at most 16 blocks, and of one block below compute capability 9.0",
        );
    }
    if !grid.x.is_multiple_of(bounds.cluster()) {
        return bad(
            format!("its clusters are of {} blocks along x", bounds.cluster()),
            "round the number of blocks along x up to whole clusters",
        );
    }
    Ok(())
}

/// Refuses a grid whose blocks cannot all run at the same time.
fn check_cooperative<A: KernelArgs>(function: &Function<A>, grid: Grid) -> Result<()> {
    let room = u64::from(function.resident_blocks()?);
    if grid.blocks() <= room {
        return Ok(());
    }
    Err(Error::BadGrid {
        kernel: function.name(),
        grid,
        found: format!(
            "{} runs at most {room} of its blocks at the same time, as a cooperative launch must",
            function.device().name()
        ),
        fix: "launch at most `Function::resident_blocks` blocks, and give each of them more work",
    })
}

/// # Safety
/// `entry` is a kernel in the current context with parameters of `args`' types. `stream` is a stream
/// of that context. The safety requirements of [`Stream::launch`] hold.
pub(crate) unsafe fn launch_gpu<A: KernelArgs>(
    entry: Entry,
    name: &'static str,
    bounds: LaunchBounds,
    config: LaunchConfig,
    stream: sys::CUstream,
    args: &A,
) -> Result<()> {
    let mut pointers = [ptr::null_mut::<c_void>(); MAX_ARGS];
    let mut places = pointers.iter_mut();
    args.for_each(|argument| {
        if let Some(place) = places.next() {
            *place = argument.cast_mut();
        }
    });
    // SAFETY: there is a pointer for each of the kernel's parameters, and the arguments live past the call. The rest
    // is the caller's promise.
    unsafe { launch_pointers(entry, name, bounds, config, stream, &mut pointers) }
}

/// How many clusters of a kernel with these bounds run on its GPU at the same time.
pub(crate) fn max_active_clusters(entry: Entry, bounds: LaunchBounds) -> Result<u32> {
    let mut cluster = cluster_attribute(bounds);
    let launch = CUlaunchConfig {
        gridDimX: bounds.cluster(),
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: bounds.threads(),
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: bounds.shared_bytes(),
        hStream: ptr::null_mut(),
        attrs: &mut cluster,
        numAttrs: 1,
    };
    let mut clusters = 0;
    // SAFETY: the handle is a loaded function's, the configuration lives past the call, and the driver writes one int.
    let code = unsafe { sys::cuOccupancyMaxActiveClusters(&mut clusters, entry.function, &launch) };
    check("asking how many clusters run at the same time", code)?;
    Ok(u32::try_from(clusters).unwrap_or(0))
}

/// The attribute of a launch in clusters.
fn cluster_attribute(bounds: LaunchBounds) -> CUlaunchAttribute {
    // SAFETY: an attribute is plain data, and all zeros are a valid one (`IGNORE`).
    let mut attribute: CUlaunchAttribute = unsafe { std::mem::zeroed() };
    attribute.id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim.x = bounds.cluster();
    attribute.value.clusterDim.y = 1;
    attribute.value.clusterDim.z = 1;
    attribute
}

/// The part of [`launch_gpu`] that does not depend on the types of the arguments.
///
/// # Safety
/// `pointers` has a pointer to an argument for each of the kernel's parameters. The safety requirements of
/// [`launch_gpu`] hold.
unsafe fn launch_pointers(
    entry: Entry,
    name: &'static str,
    bounds: LaunchBounds,
    config: LaunchConfig,
    stream: sys::CUstream,
    pointers: &mut [*mut c_void; MAX_ARGS],
) -> Result<()> {
    // SAFETY: an attribute is plain data, and all zeros are a valid one (`IGNORE`).
    let mut attributes: [CUlaunchAttribute; 3] = unsafe { std::mem::zeroed() };
    let mut count = 0;
    if bounds.cluster() > 1 {
        attributes[count] = cluster_attribute(bounds);
        count += 1;
    }
    if config.overlap_previous && entry.can_begin_early {
        let attribute = &mut attributes[count];
        attribute.id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attribute.value.programmaticStreamSerializationAllowed = 1;
        count += 1;
    }
    if config.cooperative {
        let attribute = &mut attributes[count];
        attribute.id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attribute.value.cooperative = 1;
        count += 1;
    }
    let launch = CUlaunchConfig {
        gridDimX: config.grid.x,
        gridDimY: config.grid.y,
        gridDimZ: config.grid.z,
        blockDimX: bounds.threads(),
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: bounds.shared_bytes(),
        hStream: stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: count as u32,
    };
    // SAFETY: the configuration and its attributes live past the call, which copies them. The rest
    // is the caller's promise.
    let code = unsafe {
        sys::cuLaunchKernelEx(
            &launch,
            entry.function,
            pointers.as_mut_ptr(),
            ptr::null_mut(),
        )
    };
    match code {
        sys::CUresult::CUDA_SUCCESS => Ok(()),
        code => check(&format!("launching kernel `{name}`"), code),
    }
}

/// A launch on the CPU backend.
struct CpuLaunch<A: KernelArgs> {
    name: &'static str,
    bounds: LaunchBounds,
    config: LaunchConfig,
    body: unsafe fn(A),
    args: A,
    buffers: Buffers,
}

impl<A: KernelArgs> Work for CpuLaunch<A> {
    unsafe fn run(&self) -> Result<()> {
        let Grid { x, y, z } = self.config.grid;
        let spec = LaunchSpec {
            kernel: self.name,
            grid: [x, y, z],
            block: [self.bounds.threads(), 1, 1],
            cluster: self.bounds.cluster(),
            shared_bytes: self.bounds.shared_bytes(),
            overlap_previous: self.config.overlap_previous,
        };
        // SAFETY: the caller of `launch` promised that the kernel stays within the memory of its
        // arguments. By `run`'s contract that memory is alive.
        let body = || unsafe { (self.body)(self.args) };
        cutlet_simt::launch_with(&spec, &self.buffers, &body)?;
        Ok(())
    }
}
