//! The CPU backend as a debugger of kernels: the search for races, and reports of what accesses cost on a GPU.
//!
//! Every access to global memory is checked against the buffer that was passed, always. Races are looked for in
//! programs with debug assertions, as tests have them, unless [`check_races`] or the environment variable
//! `CUTLET_SIMT_RACES` (1 or 0) says otherwise.

pub use cutlet_simt::{
    LaunchReport, Memory, MemoryAccess, SiteReport, UnwrittenReport, check_races, checks_races,
};

use crate::Result;

/// Reports the launches that `work` makes on the CPU backend, from the calling thread: for each line of a kernel that
/// accesses memory, the sectors and the bank conflicts of a warp's requests, and for each buffer to write, the elements
/// that nothing wrote.
///
/// A replay of a graph is reported when it is launched. Launches on a GPU are not reported.
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// use cutlet_device::{GlobalMut, PtxLibrary, kernel, thread_idx};
/// use cutlet_host::{Device, cpu};
///
/// /// Writes every 8th element.
/// #[kernel(threads = 32)]
/// pub unsafe fn strided(y: GlobalMut<f32>) {
///     let i = i64::from(thread_idx().get());
///     // SAFETY: there are 256 elements.
///     unsafe { y.store(8 * i, 1.0) };
/// }
///
/// static PTX: PtxLibrary = PtxLibrary { families: &[] };
/// let stream = Device::cpu().stream()?;
/// let function = stream.device().load(&PTX, &strided)?;
/// let mut y = stream.zeroed::<f32>(256)?;
/// // SAFETY: the buffer has 256 elements.
/// let reports = cpu::report(|| unsafe { stream.launch(&function, 1, (&mut y,)) })?;
/// let store = &reports[0].sites[0];
/// assert_eq!(store.sectors_per_request(), 32.0); // 4 would do for 32 neighbours
/// let rest = &reports[0].unwritten[0];
/// assert_eq!((rest.unwritten, rest.first.clone()), (256 - 32, 1..8));
/// println!("{}", reports[0]);
/// # Ok(()) }
/// ```
///
/// # Errors
/// Those of `work`.
pub fn report(work: impl FnOnce() -> Result<()>) -> Result<Vec<LaunchReport>> {
    let (result, reports) = cutlet_simt::collect_reports(work);
    result.map(|()| reports)
}
