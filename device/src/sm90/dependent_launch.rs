//! Programmatic dependent launch: a kernel starts while the one before it in the stream still ends.

/// Waits until the kernels before this one in the stream are done and what they wrote can be seen.
///
/// Each thread of a kernel launched as a dependent one calls it before it reads what they write or writes
/// what they read, which the CPU backend checks; in any other launch it returns at once.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn grid_dependency_wait() {
    imp::wait();
}

/// Lets the next kernel in the stream start, if it was launched as a dependent one, once every
/// block has called this or ended.
#[inline(always)]
pub fn launch_dependents() {
    imp::launch();
}

#[cfg(target_arch = "nvptx64")]
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
