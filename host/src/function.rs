//! Functions: kernels loaded on a device, ready to launch.

use std::fmt;

use cudarc::driver::sys::{self, CUfunction_attribute};
use cutlet_device::{Kernel, KernelArgs, LaunchBounds, PtxLibrary};

use crate::device::Place;
use crate::driver::check;
use crate::module::{self, Entry, Request};
use crate::{Device, Error, Result};

/// A kernel loaded on a device. `A` is the tuple of its parameter types.
///
/// Cloning it and loading it again are cheap, because the device keeps the compiled kernel. A
/// launch through a `Function` looks nothing up.
pub struct Function<A: KernelArgs> {
    device: Device,
    name: &'static str,
    parameters: &'static [&'static str],
    bounds: LaunchBounds,
    code: Code<A>,
}

pub(crate) enum Code<A> {
    /// The kernel's body, which one thread runs.
    Cpu(unsafe fn(A)),
    Gpu(Entry),
}

impl Device {
    /// Loads a kernel. `library` is the `PTX` of the crate that defines it.
    ///
    /// On a GPU, loading the first kernel of a family makes the driver compile the family's PTX, for
    /// the target that suits the GPU best. Later loads are a look-up. On the CPU there is nothing to
    /// load, and `library` may be empty.
    ///
    /// # Errors
    /// - [`UnknownFamily`](crate::Error::UnknownFamily) or [`NoTarget`](crate::Error::NoTarget) if the
    ///   library has no PTX for the kernel or the device.
    /// - [`Jit`](crate::Error::Jit), with the driver's log, if the PTX does not compile.
    /// - [`TooMuchForDevice`](crate::Error::TooMuchForDevice) if the kernel needs more threads, shared
    ///   memory or blocks a cluster than the device has.
    /// - [`NoCpuBody`](crate::Error::NoCpuBody) on the CPU, if the kernel was compiled for GPUs alone.
    /// - [`Driver`](crate::Error::Driver).
    pub fn load<A: KernelArgs>(
        &self,
        library: &PtxLibrary,
        kernel: &Kernel<A>,
    ) -> Result<Function<A>> {
        let code = match self.place() {
            Place::Cpu => Code::Cpu(kernel.body().ok_or_else(|| Error::NoCpuBody {
                kernel: kernel.name().to_string(),
            })?),
            Place::Gpu(gpu) => Code::Gpu(self.modules().get(&Request {
                gpu,
                device: self.name(),
                limits: self.limits(),
                library,
                kernel: kernel.name(),
                family: kernel.family(),
                bounds: kernel.bounds(),
            })?),
        };
        Ok(Function {
            device: self.clone(),
            name: kernel.name(),
            parameters: kernel.parameters(),
            bounds: kernel.bounds(),
            code,
        })
    }
}

/// The resources that a compiled kernel uses on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resources {
    /// Registers per thread.
    pub registers: u32,
    /// Bytes of local memory per thread: spilled registers and arrays indexed at run time.
    pub local_bytes: u32,
    /// Bytes of shared memory per block, static and dynamic.
    pub shared_bytes: u32,
    /// Blocks that run at the same time on one multiprocessor.
    pub blocks_per_multiprocessor: u32,
}

impl<A: KernelArgs> Function<A> {
    /// The kernel's name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The names of the kernel's parameters, for messages.
    pub(crate) fn parameters(&self) -> &'static [&'static str] {
        self.parameters
    }

    /// Threads, cluster size and shared memory of every launch.
    pub fn bounds(&self) -> LaunchBounds {
        self.bounds
    }

    /// The device that the kernel is loaded on.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Blocks that run at the same time on the whole device, rounded down to whole clusters: the grid
    /// of a persistent kernel. On the CPU, the number of cores, but at least one cluster.
    ///
    /// Fewer large clusters may run at the same time: a cluster runs within one GPC, and the
    /// multiprocessors left over in a GPC hold none.
    ///
    /// # Errors
    /// [`Driver`](crate::Error::Driver) if the query fails.
    pub fn resident_blocks(&self) -> Result<u32> {
        let cluster = self.bounds.in_clusters_of(1).cluster();
        let multiprocessors = self.device.multiprocessors();
        let blocks = match self.resources()? {
            Some(resources) => resources.blocks_per_multiprocessor * multiprocessors,
            None => multiprocessors.max(cluster),
        };
        Ok(blocks / cluster * cluster)
    }

    /// The resources that the compiled kernel uses; `None` on the CPU.
    ///
    /// # Errors
    /// [`Driver`](crate::Error::Driver) if the query fails.
    pub fn resources(&self) -> Result<Option<Resources>> {
        use CUfunction_attribute as A;
        let (Place::Gpu(gpu), Code::Gpu(entry)) = (self.device.place(), &self.code) else {
            return Ok(None);
        };
        gpu.make_current()?;
        let mut blocks = 0;
        // SAFETY: the handle is a loaded function's, and the driver writes one int.
        let code = unsafe {
            sys::cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &mut blocks,
                entry.function,
                i32::try_from(self.bounds.threads()).unwrap_or(i32::MAX),
                self.bounds.shared_bytes() as usize,
            )
        };
        check("asking how many blocks run at the same time", code)?;
        let fixed = module::attribute(*entry, A::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
        Ok(Some(Resources {
            registers: module::attribute(*entry, A::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
            local_bytes: module::attribute(*entry, A::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            shared_bytes: fixed + self.bounds.shared_bytes(),
            blocks_per_multiprocessor: u32::try_from(blocks).unwrap_or(0),
        }))
    }

    pub(crate) fn code(&self) -> &Code<A> {
        &self.code
    }
}

impl<A: KernelArgs> Clone for Function<A> {
    fn clone(&self) -> Self {
        let code = match &self.code {
            Code::Cpu(body) => Code::Cpu(*body),
            Code::Gpu(entry) => Code::Gpu(*entry),
        };
        Function {
            device: self.device.clone(),
            name: self.name,
            parameters: self.parameters,
            bounds: self.bounds,
            code,
        }
    }
}

impl<A: KernelArgs> fmt::Debug for Function<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function({} on {})", self.name, self.device.name())
    }
}
