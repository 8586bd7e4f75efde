//! The error type of this crate.

use std::fmt;

use crate::Grid;

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. A message says what was asked for, what was found and what to do. `Debug` prints it as well, so that
/// `unwrap` shows it.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call needs a GPU, and there is no usable NVIDIA driver.
    #[error(
        "{asked} was asked for, but {found}; install the NVIDIA driver or run on `Device::cpu()`"
    )]
    NoDriver {
        /// What the caller asked for.
        asked: String,
        /// What is wrong with the driver.
        found: String,
    },

    /// There is no GPU with this number.
    #[error(
        "gpu {ordinal} was asked for, but the driver offers {count} (numbered from 0); \
         choose one of them (CUDA_VISIBLE_DEVICES may hide others) or run on `Device::cpu()`"
    )]
    NoSuchGpu {
        /// The GPU's number.
        ordinal: usize,
        /// Number of GPUs that the driver offers.
        count: usize,
    },

    /// A kernel was loaded on the CPU, and no body of it was compiled for the CPU.
    #[error(
        "kernel `{kernel}` was asked for on the CPU, but it was compiled for GPUs alone; enable the feature `cpu` of \
         `cutlet-host` if it is off, or compile a body by `#[kernel(cpu = …)]`"
    )]
    NoCpuBody {
        /// The kernel.
        kernel: String,
    },

    /// A driver call failed.
    #[error("{doing}: the driver returned {code} ({text}); {hint}")]
    Driver {
        /// What the call was for.
        doing: String,
        /// The driver's name for the error, `CUDA_ERROR_…`.
        code: String,
        /// The driver's description of the error.
        text: String,
        /// What to do.
        hint: &'static str,
    },

    /// The device has too little free memory.
    #[error(
        "{bytes} bytes were asked for on {device}, where {found}; \
         free buffers, or use a smaller problem or another device"
    )]
    OutOfMemory {
        /// Bytes that were asked for.
        bytes: usize,
        /// The device.
        device: String,
        /// How much memory is free, if known.
        found: String,
    },

    /// A call mixes objects of two devices.
    #[error(
        "{what} is on {found}, but the stream is on {expected}; \
         use a stream of that device, or copy the data through the host"
    )]
    WrongDevice {
        /// The object that is on another device than the stream.
        what: String,
        /// The object's device.
        found: String,
        /// The stream's device.
        expected: String,
    },

    /// Memory that is bound to one stream is used in another.
    #[error(
        "{what} is memory of another stream, which may free it before this stream has used it; \
         use it in its own stream, or copy it to a buffer there"
    )]
    WrongStream {
        /// The memory.
        what: String,
    },

    /// Two streams use the same elements, one of them writes them, and nothing orders the two. On a GPU, the elements
    /// that are read or left would depend on which stream is faster.
    ///
    /// Builds with debug assertions find it, on both backends. They look at copies, fills, launches, and the operations
    /// of libraries that call [`View::use_in`](crate::View::use_in). All elements of a view count as used, except for
    /// [relaxed](crate::View::relaxed) views: pass slices. They know of no work that a graph replays, and of no memory
    /// with another owner. They look for nothing on a GPU on which another library may order work, too: once
    /// [`Device::from_cudarc`](crate::Device::from_cudarc), [`Device::make_current`](crate::Device::make_current),
    /// [`Stream::from_cudarc`](crate::Stream::from_cudarc), [`from_raw`](crate::Stream::from_raw),
    /// [`of_this_thread`](crate::Stream::of_this_thread), [`as_cudarc`](crate::Stream::as_cudarc),
    /// [`as_raw`](crate::Stream::as_raw) or [`View::from_raw`](crate::View::from_raw) was called on it, or a tensor was
    /// exported.
    #[error(
        "{what} is {asked} in a stream, after {found} in another one that it does not wait for; call `wait_for` with \
         the other stream, or record an `Event` there and `wait` for it, or `synchronize` the other stream"
    )]
    Unordered {
        /// The memory, with the number and the type of its elements.
        what: String,
        /// `read` or `written`.
        asked: &'static str,
        /// What the other stream did with it: `a fill (src/main.rs:7:12) wrote it`.
        found: String,
    },

    /// The per-thread default stream was given as a stream.
    #[error(
        "the per-thread default stream was given, which is another stream in each thread, so that its work has no \
         order; give a stream of cudarc's `new_stream` or the default stream, or use `Stream::of_this_thread`"
    )]
    PerThreadStream,

    /// Source and destination of a copy differ in length.
    #[error(
        "{doing}: the source has {source_len} elements, the destination {destination_len}; take slices of equal length"
    )]
    LengthMismatch {
        /// The copy.
        doing: &'static str,
        /// Elements of the source.
        source_len: usize,
        /// Elements of the destination.
        destination_len: usize,
    },

    /// A copy reads what nothing has written. The CPU backend finds it in [`Scratch`](crate::Scratch).
    #[error(
        "{doing}: element {element} of the {len} that are read was not written by anything; check that the grid \
         covers all elements, or fill the memory by `fill_bytes` first"
    )]
    Unwritten {
        /// The copy.
        doing: &'static str,
        /// The first such element.
        element: usize,
        /// Elements of the source.
        len: usize,
    },

    /// A slice reaches outside its buffer.
    #[error(
        "elements {start}..{end} were asked for of a buffer of {len}; use a range with start <= end <= {len}"
    )]
    OutOfRange {
        /// First element that was asked for.
        start: usize,
        /// One past the last element that was asked for.
        end: usize,
        /// Elements of the buffer.
        len: usize,
    },

    /// An address that the caller gave is not valid for the elements.
    #[error(
        "address {address:#x} was given for elements that need an alignment of {alignment} bytes: {found}; \
         pass the address of the first element"
    )]
    BadPointer {
        /// The address.
        address: u64,
        /// The alignment that the elements need, in bytes.
        alignment: usize,
        /// What is wrong with the address.
        found: &'static str,
    },

    /// The library has no PTX of the kernel's family.
    #[error(
        "kernel `{kernel}` of family `{family}` was asked for, but this PTX library has {found}; \
         load it with the `PTX` of the crate that defines the kernel, built with the features that the kernel needs"
    )]
    UnknownFamily {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's family.
        family: &'static str,
        /// The families that the library has.
        found: String,
    },

    /// No PTX of the kernel runs on the device.
    #[error(
        "kernel `{kernel}` is built for {built_for}, none of which runs on {device} \
         (compute capability {major}.{minor}); {fix}, or run on `Device::cpu()`"
    )]
    NoTarget {
        /// The kernel.
        kernel: &'static str,
        /// The targets that the kernel is built for.
        built_for: String,
        /// The device.
        device: String,
        /// Compute capability, major.
        major: u32,
        /// Compute capability, minor.
        minor: u32,
        /// What to do.
        fix: String,
    },

    /// The driver could not compile the PTX.
    #[error(
        "kernel `{kernel}`: the driver could not compile the {target} PTX of family `{family}` ({code}); \
         if the PTX version is too new, install a newer driver; the compiler's log:\n{log}"
    )]
    Jit {
        /// The kernel.
        kernel: &'static str,
        /// The kernel's family.
        family: &'static str,
        /// The target of the PTX.
        target: &'static str,
        /// The driver's name for the error.
        code: String,
        /// The compiler's log.
        log: String,
    },

    /// A kernel needs more than the device has.
    #[error("kernel `{kernel}` needs {asked}, but {device} has {found}; {fix}")]
    TooMuchForDevice {
        /// The kernel.
        kernel: &'static str,
        /// What the kernel needs.
        asked: String,
        /// The device.
        device: String,
        /// What the device has.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// The grid of a launch exceeds the device's limits.
    #[error("kernel `{kernel}` was launched on {grid}: {found}; {fix}")]
    BadGrid {
        /// The kernel.
        kernel: &'static str,
        /// The grid.
        grid: Grid,
        /// The limit that the grid exceeds.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// TMA cannot move boxes of this tensor.
    #[error("{asked} was asked for, but {found}; {fix}")]
    BadTensorMap {
        /// The tensor and the boxes.
        asked: String,
        /// What TMA cannot do.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// An operation that a graph cannot hold was called during a capture.
    #[error(
        "{doing} was asked for while the stream is being captured into a graph, but nothing runs during a capture; \
         do it before or after"
    )]
    Capturing {
        /// The operation.
        doing: &'static str,
    },

    /// A capture failed.
    #[error("a stream was captured into a graph, but {found}; {fix}")]
    Capture {
        /// What happened.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// The time of an event was asked for, and the event has none.
    #[error(
        "the time of an event was asked for, but {found}; first record it in a stream that is not being captured"
    )]
    EventNotRecorded {
        /// Why the event has no time.
        found: &'static str,
    },

    /// The time between events of two devices was asked for.
    #[error(
        "the time from an event on {start} to one on {end} was asked for, but devices have no common clock; \
         record both events on one device"
    )]
    EventsOfTwoDevices {
        /// The first event's device.
        start: String,
        /// The second event's device.
        end: String,
    },

    /// A problem cannot be autotuned.
    #[error("`{key}` was autotuned, but {found}")]
    Autotune {
        /// The problem.
        key: String,
        /// What is wrong, with the reasons of all candidates that are left out.
        found: String,
    },

    /// The file of an autotuner is damaged, or cannot be read or written.
    #[error("{place}: {found}")]
    TuningFile {
        /// The file, with the line that is wrong if it is a line.
        place: String,
        /// What was found, and what to do.
        found: String,
    },

    /// A DLPack tensor cannot be used as was asked, or a buffer cannot become one.
    #[cfg(feature = "dlpack")]
    #[error("{asked} was asked for, but {found}; {fix}")]
    Dlpack {
        /// The use.
        asked: String,
        /// What is wrong with the tensor, its shape or its strides.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// A kernel failed on the CPU backend.
    #[error("on the CPU backend, {0}")]
    Kernel(#[from] cutlet_simt::SimtError),
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
