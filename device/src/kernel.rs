//! The typed handle of a kernel: its name, argument types, launch bounds and, on the CPU, its body.

use core::ffi::c_void;
use core::fmt;

use crate::DeviceData;

/// How a kernel is compiled to be launched; written in `#[kernel(…)]`, held by its [`Kernel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchBounds {
    /// Threads of a block, 1 to 1024. Every launch of the kernel uses exactly this many.
    pub threads: u32,
    /// Blocks that shall fit on one multiprocessor at a time: the compiler limits registers
    /// accordingly. 0 leaves it open.
    pub min_blocks: u32,
    /// Blocks of a cluster, along x; 1 is a launch without clusters.
    pub cluster: u32,
    /// Dynamic shared memory of a block, in bytes.
    pub shared_bytes: u32,
}

impl LaunchBounds {
    /// The most shared memory that a block of any kernel may ask for, in bytes: 227 KiB, what GPUs of compute
    /// capability 9.0 and 10.0 have.
    pub const MOST_SHARED_BYTES: u32 = 227 * 1024;

    /// Bounds that a device can satisfy, checked where `#[kernel]` evaluates them: at compile time.
    ///
    /// ```compile_fail
    /// # use cutlet_device::kernel;
    /// #[kernel(threads = 2048)] // at most 1024
    /// fn too_many_threads(n: u32) {}
    /// ```
    ///
    /// # Panics
    /// On a number of threads outside 1 to 1024, a cluster outside 1 to 16, or more than 227 KiB of
    /// shared memory.
    pub const fn new(threads: u32, min_blocks: u32, cluster: u32, shared_bytes: u32) -> Self {
        assert!(
            0 < threads && threads <= 1024,
            "#[kernel]: `threads` must be 1 to 1024"
        );
        assert!(min_blocks <= 32, "#[kernel]: `min_blocks` must be 0 to 32");
        assert!(
            0 < cluster && cluster <= 16,
            "#[kernel]: `cluster` must be 1 to 16"
        );
        assert!(
            shared_bytes <= Self::MOST_SHARED_BYTES,
            "#[kernel]: `shared` must be at most 232448 bytes (227 KiB)"
        );
        LaunchBounds {
            threads,
            min_blocks,
            cluster,
            shared_bytes,
        }
    }
}

/// A kernel as the host knows it, made by [`#[kernel]`](macro@crate::kernel) or
/// [`instantiate!`](crate::instantiate).
///
/// `A` is the tuple of the kernel's argument types ([`KernelArgs`]), so that a launch with other
/// arguments does not compile. Name and family agree with the PTX by construction: both come from
/// the same macro.
pub struct Kernel<A> {
    name: &'static str,
    module: &'static str,
    bounds: LaunchBounds,
    body: unsafe fn(A),
}

impl<A> Kernel<A> {
    /// For the macros: a handle of the kernel `name` in the module of path `module` (with the
    /// crate's name in front). `body` runs one thread of it on the CPU.
    pub const fn new(
        name: &'static str,
        module: &'static str,
        bounds: LaunchBounds,
        body: unsafe fn(A),
    ) -> Self {
        Kernel {
            name,
            module,
            bounds,
            body,
        }
    }

    /// The name of the function, which is also the name of the PTX entry.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The family: the path of the kernel's module below its crate (`gemm`), or the crate's name for
    /// a kernel at the crate root. [`PtxLibrary::family`](crate::PtxLibrary::family) takes it.
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

    /// Threads, blocks per multiprocessor, cluster and shared memory.
    pub const fn bounds(&self) -> LaunchBounds {
        self.bounds
    }

    /// The body: one call runs one thread of one block on the CPU, with the device pointers among
    /// the arguments taken as host addresses.
    ///
    /// It is unsafe because a kernel accesses memory through the pointers it is given. Meant for the
    /// CPU backend, which first sets up the thread's indices, barriers and shared memory.
    pub const fn body(&self) -> unsafe fn(A) {
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

/// The most arguments that a kernel can have.
pub const MAX_ARGS: usize = 12;

/// The arguments of a kernel: a tuple of up to [`MAX_ARGS`] values of [`DeviceData`].
///
/// # Safety
/// [`for_each`](KernelArgs::for_each) visits exactly the parameters of the PTX entry, in order.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of kernel arguments",
    label = "a kernel takes up to 12 arguments, each of them plain device data",
    note = "more arguments than that: put them into a `#[repr(C)]` struct that derives `DeviceData`"
)]
pub unsafe trait KernelArgs: Copy + Send + Sync + 'static {
    /// Calls `visit` with the address of each argument, in order: what a launch hands to the driver.
    /// Arguments without bytes have no parameter in the PTX and are left out.
    fn for_each(&self, visit: impl FnMut(*const c_void));
}

macro_rules! kernel_args {
    ($($arg:ident)*) => {
        // SAFETY: rustc makes one PTX parameter for each argument of the entry, in order, except
        // for arguments of size 0, which get none.
        #[allow(non_snake_case, unused_mut, unused_variables)]
        unsafe impl<$($arg: DeviceData),*> KernelArgs for ($($arg,)*) {
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
