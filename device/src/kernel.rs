//! The typed handle of a kernel: name, argument types, launch bounds and, on the CPU, the body.

use core::ffi::c_void;
use core::fmt;

use crate::KernelParam;

/// The launch bounds for which a kernel is compiled, which a device can satisfy. They are written in `#[kernel(…)]`,
/// and its [`Kernel`] has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    threads: u32,
    min_blocks: u32,
    cluster: u32,
    shared_bytes: u32,
}

impl LaunchBounds {
    /// The most shared memory of a block in bytes: 227 KiB, the limit of compute capability 9.0 and 10.0.
    pub const MOST_SHARED_BYTES: u32 = 227 * 1024;

    /// Bounds that a device can satisfy. `#[kernel]` checks them at compile time.
    ///
    /// ```compile_fail
    /// # use cutlet_device::kernel;
    /// #[kernel(threads = 2048)] // at most 1024
    /// fn too_many_threads(n: u32) {}
    /// ```
    ///
    /// # Panics
    /// If the number of threads is not 1 to 1024, `min_blocks` or the cluster is more than 32 or 16, or there are more
    /// than 227 KiB of shared memory.
    #[track_caller]
    pub const fn new(threads: u32, min_blocks: u32, cluster: u32, shared_bytes: u32) -> Self {
        assert!(
            0 < threads && threads <= 1024,
            "#[kernel]: `threads` must be 1 to 1024"
        );
        assert!(min_blocks <= 32, "#[kernel]: `min_blocks` must be 0 to 32");
        assert!(
            cluster <= 16,
            "#[kernel]: `cluster` must be 1 to 16, or 0 if each launch says it"
        );
        assert!(
            shared_bytes <= Self::MOST_SHARED_BYTES,
            "#[kernel]: a block has at most 232448 bytes (227 KiB) of shared memory: keep less in it"
        );
        LaunchBounds {
            threads,
            min_blocks,
            cluster,
            shared_bytes,
        }
    }

    /// Threads of a block, 1 to 1024. Every launch of the kernel has exactly this many.
    pub const fn threads(self) -> u32 {
        self.threads
    }

    /// The least number of blocks that fit on a multiprocessor at a time, for which the compiler limits registers. 0 is
    /// no limit.
    pub const fn min_blocks(self) -> u32 {
        self.min_blocks
    }

    /// Blocks of a cluster, along x. 1 is a launch without clusters. 0 is a kernel whose launches say it.
    pub const fn cluster(self) -> u32 {
        self.cluster
    }

    /// The bounds of a launch that asks for clusters of so many blocks, where 0 is 1. A kernel that was compiled for a
    /// cluster keeps its own.
    pub const fn in_clusters_of(self, blocks: u32) -> Self {
        let cluster = match (self.cluster, blocks) {
            (0, 0) => 1,
            (0, blocks) => blocks,
            (own, _) => own,
        };
        Self { cluster, ..self }
    }

    /// Dynamic shared memory of a block, in bytes.
    pub const fn shared_bytes(self) -> u32 {
        self.shared_bytes
    }
}

/// The host's handle of a kernel, made by [`#[kernel]`](macro@crate::kernel) or [`instantiate!`](crate::instantiate).
///
/// `A` is the tuple of the kernel's argument types ([`KernelArgs`]), so a launch with other arguments does not compile.
/// The macro that makes the handle also makes the PTX entry, so name and family agree.
pub struct Kernel<A> {
    name: &'static str,
    module: &'static str,
    parameters: &'static [&'static str],
    bounds: LaunchBounds,
    body: Option<unsafe fn(A)>,
}

/// What is compiled of a kernel for the CPU: the value of `#[kernel(cpu = …)]`. It is a constant expression, so that a
/// generic instance can decide by its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuBody {
    /// Nothing. The CPU backend refuses the kernel.
    None,
    /// The body, once. It is the default of kernels for one architecture: these compute with its matrix instructions,
    /// whose models pick the processor's vector instructions themselves.
    Plain,
    /// The body, and a second time for processors with AVX2 and FMA. It is the default of other kernels. Without FMA,
    /// each [`fma`](crate::fma) calls the C library.
    Vector,
}

impl<A> Kernel<A> {
    /// For the macros: the handle of the kernel `name` in the module with path `module`, which begins with the crate's
    /// name. `parameters` are the names of its parameters, for messages. `body` runs one thread on the CPU, if one was
    /// compiled.
    ///
    /// A launch passes as many arguments as `A` has, and the driver reads as many as the PTX entry has. So a handle
    /// that does not fit its entry makes the driver read memory that is not there:
    ///
    /// ```compile_fail,E0133
    /// use cutlet_device::{Kernel, LaunchBounds};
    ///
    /// let bounds = LaunchBounds::new(32, 0, 1, 0);
    /// let kernel: Kernel<(u32,)> = Kernel::new("saxpy", "a_crate::blas", &["n"], bounds, None);
    /// ```
    ///
    /// # Safety
    /// The PTX entry `name` of the kernel's family has parameters of the types in `A`, and was compiled for `bounds`.
    /// `body` is the same kernel, and is sound to call where the entry is.
    pub const unsafe fn new(
        name: &'static str,
        module: &'static str,
        parameters: &'static [&'static str],
        bounds: LaunchBounds,
        body: Option<unsafe fn(A)>,
    ) -> Self {
        Kernel {
            name,
            module,
            parameters,
            bounds,
            body,
        }
    }

    /// The name of the function and of the PTX entry.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The family: the path of the kernel's module in its crate (`gemm`), or the crate's name for a kernel at the crate
    /// root. [`PtxLibrary::family`](crate::PtxLibrary::family) takes it.
    pub const fn family(&self) -> &'static str {
        let path = self.module.as_bytes();
        let mut at = 0;
        while at + 1 < path.len() {
            if path[at] == b':' && path[at + 1] == b':' {
                return self.module.split_at(at + 2).1;
            }
            at += 1;
        }
        self.module
    }

    /// The names of the parameters in order. A pattern has an empty name. A handle that was made by hand may have
    /// fewer names than parameters.
    pub const fn parameters(&self) -> &'static [&'static str] {
        self.parameters
    }

    /// Threads, blocks per multiprocessor, cluster and shared memory.
    pub const fn bounds(&self) -> LaunchBounds {
        self.bounds
    }

    /// The body, if one was [compiled for the CPU](CpuBody). One call runs one thread of one block. Device pointers among
    /// the arguments are host addresses.
    ///
    /// It is unsafe because the kernel accesses memory through its pointers. It is for the CPU backend, which first
    /// sets up the thread's indices, barriers and shared memory.
    pub const fn body(&self) -> Option<unsafe fn(A)> {
        self.body
    }
}

impl<A> fmt::Debug for Kernel<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("name", &self.name)
            .field("family", &self.family())
            .field("bounds", &self.bounds)
            .finish()
    }
}

/// The most arguments of a kernel.
pub const MAX_ARGS: usize = 12;

/// The arguments of a kernel: a tuple of at most [`MAX_ARGS`] values, each a [`KernelParam`].
///
/// # Safety
/// [`for_each`](KernelArgs::for_each) visits exactly the parameters of the PTX entry, in order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of kernel arguments",
    label = "a kernel takes up to 12 arguments, each of them plain device data",
    note = "more arguments than that: put them into a `#[repr(C)]` struct that derives `DeviceData`"
)]
pub unsafe trait KernelArgs: Copy + Send + Sync + 'static {
    /// Calls `visit` with the address of each argument in order, which a launch passes to the driver. It skips
    /// arguments of size 0, which have no parameter in the PTX.
    fn for_each(&self, visit: impl FnMut(*const c_void));
}

macro_rules! kernel_args {
    ($($arg:ident)*) => {
        // SAFETY: rustc makes one PTX parameter for each argument of the entry in order, except for arguments of size
        // 0.
        #[allow(non_snake_case, unused_mut, unused_variables)]
        unsafe impl<$($arg: KernelParam),*> KernelArgs for ($($arg,)*) {
            fn for_each(&self, mut visit: impl FnMut(*const c_void)) {
                let ($($arg,)*) = self;
                $(if size_of_val($arg) != 0 {
                    visit(core::ptr::from_ref($arg).cast());
                })*
            }
        }
    };
}

kernel_args!();
kernel_args!(A);
kernel_args!(A B);
kernel_args!(A B C);
kernel_args!(A B C D);
kernel_args!(A B C D E);
kernel_args!(A B C D E F);
kernel_args!(A B C D E F G);
kernel_args!(A B C D E F G H);
kernel_args!(A B C D E F G H I);
kernel_args!(A B C D E F G H I J);
kernel_args!(A B C D E F G H I J K);
kernel_args!(A B C D E F G H I J K L);
