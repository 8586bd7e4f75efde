//! Programmatic dependent launch: a kernel begins while the kernel before it in the stream ends.

/// Waits until the earlier kernels in the stream have ended and their writes are visible.
///
/// In a dependent launch, each thread calls it before it reads what the earlier kernels write, or writes what they
/// read. The CPU backend checks this. In any other launch it returns at once. It may be called in kernels for every
/// target: GPUs older than sm_90 have no dependent launches.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn grid_dependency_wait() {
    imp::wait();
}

/// Lets the next kernel in the stream begin, if it is a dependent launch, once every block has called this or ended.
///
/// A short kernel calls it after [`grid_dependency_wait`]. If it calls it before, the kernels of a stream begin one after
/// the other and all wait, and a wait among several ends later.
#[inline(always)]
pub fn launch_dependents() {
    imp::launch();
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use crate::since_sm_90::since_sm_90;

    #[inline(always)]
    pub fn wait() {
        // SAFETY: waits only.
        unsafe {
            since_sm_90!("griddepcontrol.wait;", options(nostack));
        }
    }

    #[inline(always)]
    pub fn launch() {
        // SAFETY: a hint to the scheduler.
        unsafe {
            since_sm_90!("griddepcontrol.launch_dependents;", options(nostack));
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub use cutlet_simt::grid_dependency_wait as wait;

    /// Launches on the CPU run one after the other.
    pub fn launch() {}
}
