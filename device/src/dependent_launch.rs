//! Programmatic dependent launch: a kernel begins while the kernel before it in the stream ends.

/// Waits until the earlier kernels in the stream have ended and their writes are visible.
///
/// In a dependent launch, each thread calls it before it reads what the earlier kernels write, or writes what they
/// read. The CPU backend checks this. In any other launch it returns at once. It may be called in kernels for every
/// target: a launch of a kernel that was compiled for an older target than sm_90 never begins early.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn grid_dependency_wait() {
    imp::wait();
}

/// Lets the next kernel in the stream begin, if it is a dependent launch, once every block has called this or ended.
#[inline(always)]
pub fn launch_dependents() {
    imp::launch();
}

/// For older targets there are no dependent launches.
#[cfg(all(target_arch = "nvptx64", not(target_feature = "sm_90")))]
mod imp {
    #[inline(always)]
    pub fn wait() {}

    #[inline(always)]
    pub fn launch() {}
}

#[cfg(all(target_arch = "nvptx64", target_feature = "sm_90"))]
mod imp {
    use core::arch::asm;

    #[inline(always)]
    pub fn wait() {
        // SAFETY: waits only.
        unsafe { asm!("griddepcontrol.wait;", options(nostack)) };
    }

    #[inline(always)]
    pub fn launch() {
        // SAFETY: a hint to the scheduler.
        unsafe { asm!("griddepcontrol.launch_dependents;", options(nostack)) };
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub use cutlet_simt::grid_dependency_wait as wait;

    /// Launches on the CPU run one after the other.
    pub fn launch() {}
}
