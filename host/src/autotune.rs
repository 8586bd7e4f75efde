//! The autotuner: it checks and measures the candidates for a problem, and remembers the fastest.

mod candidates;
mod case;
mod output;
mod tuned;
mod winners;

pub use candidates::Candidates;
pub use tuned::{Ranked, Tuned};

use std::fmt::Display;
use std::path::Path;

use cutlet_device::PtxLibrary;

use crate::{Backend, Device, Error, Result, Stream};
use case::Case;
use winners::{Winner, Winners};

/// Finds out which of several [`Candidates`] solves a problem the fastest on a device, and remembers it by a key.
///
/// The first call for a key checks that all candidates give the same result, and measures them as `cutlet bench` and
/// `cutlet tune` do: interleaved, after work that raises the clocks, with 256 MiB of other data between two uses of a
/// buffer, short runs inside graphs. Later calls for the key return what it found. A candidate that does not run or is
/// wrong is left out, with the reason.
///
/// The choice is the first candidate in the order of their listing that the fastest one does not beat beyond the noise:
/// in every round, and by more than 1 %.
///
/// On the CPU, whose times say nothing about a GPU, candidates are checked alone, and the first right one is the choice.
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// use cutlet_device::{Global, GlobalMut, Kernel, PtxLibrary, block_idx, instantiate, thread_idx};
/// use cutlet_device::{ThreadGroup, ThreadIdx};
/// use cutlet_host::{Autotuner, Buffer, Candidates, Device, Result, Stream};
///
/// /// # Safety
/// /// `x` and `y` must have `n` elements.
/// #[inline(always)]
/// unsafe fn double<G: ThreadGroup>(thread: ThreadIdx<G>, n: u32, x: Global<f32>, y: GlobalMut<f32>) {
///     let i = block_idx().x.get() * G::THREADS + thread.get();
///     if i < n {
///         // SAFETY: the launcher promises the elements.
///         unsafe { y.store(i64::from(i), 2.0 * x.load(i64::from(i))) };
///     }
/// }
///
/// instantiate! {
///     /// Doubles in blocks of 64.
///     #[kernel(threads = 64)]
///     pub unsafe fn double_64(n: u32, x: Global<f32>, y: GlobalMut<f32>) = double::<_>(thread_idx(), ..);
///     /// Doubles in blocks of 256.
///     #[kernel(threads = 256)]
///     pub unsafe fn double_256(n: u32, x: Global<f32>, y: GlobalMut<f32>) = double::<_>(thread_idx(), ..);
/// }
///
/// // In a crate of kernels, the build script writes it.
/// static PTX: PtxLibrary = PtxLibrary { families: &[] };
///
/// /// What a launch reads and writes.
/// struct Operands {
///     x: Buffer<f32>,
///     y: Buffer<f32>,
/// }
///
/// type Double = Kernel<(u32, Global<f32>, GlobalMut<f32>)>;
///
/// /// Launches an instance.
/// fn launch(kernel: &Double, stream: &Stream, Operands { x, y }: &mut Operands) -> Result<()> {
///     let function = stream.device().load(&PTX, kernel)?;
///     let n = x.len() as u32;
///     // SAFETY: both buffers have `n` elements.
///     unsafe { stream.launch(&function, n.div_ceil(kernel.bounds().threads()), (n, &*x, y)) }
/// }
///
/// let stream = Device::auto().stream()?;
/// let mut autotuner = Autotuner::new(stream.device());
/// let n = 1000;
/// let candidates = Candidates::new(2 * n * size_of::<f32>(), |stream| {
///     Ok(Operands { x: stream.upload(&vec![1.5; n])?, y: stream.zeroed(n)? })
/// })
/// .candidate("double_64", |stream, operands| launch(&double_64, stream, operands))
/// .candidate("double_256", |stream, operands| launch(&double_256, stream, operands))
/// .output(0.0, |operands| operands.y.view_mut());
/// let tuned = autotuner.tune(&stream, format_args!("double n={n}"), candidates)?;
/// println!("{tuned}");
/// # if stream.device().backend() == cutlet_host::Backend::Cpu {
/// assert_eq!((tuned.index(), tuned.name()), (0, "double_64")); // on the CPU, the first
/// # }
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Autotuner {
    device: Device,
    winners: Winners,
}

impl Autotuner {
    /// An autotuner that remembers in memory.
    pub fn new(device: &Device) -> Autotuner {
        Autotuner {
            device: device.clone(),
            winners: Winners::default(),
        }
    }

    /// An autotuner that also remembers in a file of this folder, which is made. Each kind of GPU has a file, and the CPU
    /// has none.
    ///
    /// Entries count with the kernels that were measured, whose PTX `library` has, on the same driver and version of
    /// cutlet. Otherwise problems are measured again. So each library of kernels needs a folder of its own.
    ///
    /// # Errors
    /// [`Error::TuningFile`] if the file is damaged or cannot be written.
    pub fn in_folder(
        device: &Device,
        library: &PtxLibrary,
        folder: impl AsRef<Path>,
    ) -> Result<Autotuner> {
        Ok(Autotuner {
            device: device.clone(),
            winners: match device.backend() {
                Backend::Gpu => Winners::in_folder(device, library, folder.as_ref())?,
                Backend::Cpu => Winners::default(),
            },
        })
    }

    /// The candidate for a problem: the one that is remembered for the key and these candidates' names, or else the
    /// fastest, after a measurement. That takes seconds, and on a GPU memory for 256 MiB of operands and 256 MiB more.
    ///
    /// The key says all that the fastest candidate depends on, in words such as `rms_norm rows=4096 columns=8192`.
    ///
    /// # Errors
    /// [`Error::Autotune`] if no candidate runs and is right, with each one's reason, or if names are missing or given
    /// twice; [`Error::TuningFile`] if the file cannot be written; [`Error::Capturing`] during a capture, if nothing is
    /// remembered;
    /// [`Error::WrongDevice`]; errors of the device, and of making operands.
    pub fn tune<S>(
        &mut self,
        stream: &Stream,
        key: impl Display,
        candidates: Candidates<'_, S>,
    ) -> Result<Tuned> {
        self.device
            .expect(stream.device(), || "the autotuner".to_string())?;
        let words = key.to_string();
        let key = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let found = match key.is_empty() {
            true => {
                Some("the key has no word; say what the fastest candidate depends on".to_string())
            }
            false => candidates.wrong_name(),
        };
        if let Some(found) = found {
            return Err(Error::Autotune { key, found });
        }
        let names = candidates.names();
        if let Some((index, winner)) = self.winners.find(&key, &names) {
            return Ok(Tuned::remembered(key, index, winner));
        }
        stream.must_not_capture("autotuning")?;
        let tuned = Case::new(candidates).choose(stream, key)?;
        let winner = Winner {
            name: tuned.name().to_string(),
            microseconds: tuned.microseconds(),
        };
        self.winners.insert(tuned.key(), &names, winner)?;
        Ok(tuned)
    }
}
