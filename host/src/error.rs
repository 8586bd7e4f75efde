//! The one error type of this crate: what was asked, what was found, what to do.

use crate::Grid;

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed. Every message says what was asked, what was found and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A GPU was asked for and there is no usable NVIDIA driver.
    #[error(
        "{asked} was asked for, but {found}; install the NVIDIA driver or run on `Device::cpu()`"
    )]
    NoDriver {
        /// What the caller wanted.
        asked: String,
        /// What is the matter with the driver.
        found: String,
    },

    /// The GPU asked for does not exist.
    #[error(
        "gpu {ordinal} was asked for, but the driver offers {count} (numbered from 0); \
         choose one of those (CUDA_VISIBLE_DEVICES may hide others) or run on `Device::cpu()`"
    )]
    NoSuchGpu {
        /// The number asked for.
        ordinal: usize,
        /// How many GPUs there are.
        count: usize,
    },

    /// A call into the driver failed.
    #[error("{doing}: the driver answered {code} ({text}); {hint}")]
    Driver {
        /// What was being done.
        doing: String,
        /// The driver's name of the error, `CUDA_ERROR_…`.
        code: String,
        /// The driver's description of it.
        text: String,
        /// What to do about it.
        hint: &'static str,
    },

    /// The device has too little free memory.
    #[error(
        "{bytes} bytes were asked for on {device}, where {found}; \
         free buffers, use a smaller problem or another device"
    )]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
        /// The device.
        device: String,
        /// How much is free, as far as it is known.
        found: String,
    },

    /// Objects of two devices meet in one call.
    #[error(
        "{what} is on {found}, but the stream is on {expected}; \
         use a stream of that device, or copy the data through the host"
    )]
    WrongDevice {
        /// The object that is elsewhere.
        what: String,
        /// Where it is.
        found: String,
        /// Where it should be.
        expected: String,
    },

    /// Two extents that must agree do not.
    #[error(
        "{doing}: the source has {source_len} elements, the destination {destination_len}; take slices of equal length"
    )]
    LengthMismatch {
        /// What was being done.
        doing: &'static str,
        /// Elements of the source.
        source_len: usize,
        /// Elements of the destination.
        destination_len: usize,
    },

    /// A slice reaches outside its buffer.
    #[error(
        "elements {start}..{end} were asked for of a buffer of {len}; keep 0 <= start <= end <= {len}"
    )]
    OutOfRange {
        /// First element asked for.
        start: usize,
        /// One past the last element asked for.
        end: usize,
        /// Elements that there are.
        len: usize,
    },

    /// A pointer handed in from outside cannot hold the elements it is said to hold.
    #[error(
        "a pointer {address:#x} was handed in for elements of alignment {alignment}: {found}; pass the address of the first element"
    )]
    BadPointer {
        /// The address.
        address: u64,
        /// What the element type needs, in bytes.
        alignment: usize,
        /// What is wrong with it.
        found: &'static str,
    },

    /// The library has no PTX of the kernel's family at all.
    #[error(
        "kernel `{kernel}` of family `{family}` was asked for, but this PTX library has {found}; \
         load it with the `PTX` of the crate that defines the kernel"
    )]
    UnknownFamily {
        /// The kernel.
        kernel: &'static str,
        /// Its family.
        family: &'static str,
        /// The families that there are.
        found: String,
    },

    /// The family's PTX was built for other devices.
    #[error(
        "kernel `{kernel}` is built for {built_for}, none of which runs on {device} (compute capability {major}.{minor}); \
         {fix}, or run on `Device::cpu()`"
    )]
    NoTarget {
        /// The kernel.
        kernel: &'static str,
        /// The targets that its PTX exists for.
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

    /// The driver's compiler refused the PTX.
    #[error(
        "kernel `{kernel}`: the driver does not compile the {target} PTX of family `{family}` ({code}); its log:\n{log}\nA PTX version that is too new is cured by a newer driver"
    )]
    Jit {
        /// The kernel.
        kernel: &'static str,
        /// Its family.
        family: &'static str,
        /// The target of the PTX.
        target: &'static str,
        /// The driver's name of the error.
        code: String,
        /// The compiler's log.
        log: String,
    },

    /// A kernel needs more than the device has.
    #[error("kernel `{kernel}` needs {asked}, but {device} has {found}; {fix}")]
    TooMuchForDevice {
        /// The kernel.
        kernel: &'static str,
        /// What it needs.
        asked: String,
        /// The device.
        device: String,
        /// What is there.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// The grid of a launch is outside the device's limits.
    #[error("kernel `{kernel}` was launched on {grid}: {found}; {fix}")]
    BadGrid {
        /// The kernel.
        kernel: &'static str,
        /// Blocks along x, y, z.
        grid: Grid,
        /// Which limit it breaks.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// TMA cannot move this tensor in such boxes.
    #[error("{asked}, was asked for: {found}; {fix}")]
    BadTensorMap {
        /// The tensor and the boxes.
        asked: String,
        /// What stands in the way.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// Something that cannot be part of a graph was asked for during a capture.
    #[error(
        "{doing} was asked for while the stream is being captured into a graph, where nothing runs yet; do it before or after the capture"
    )]
    Capturing {
        /// What was asked for.
        doing: &'static str,
    },

    /// A capture was left in a state that gives no graph.
    #[error("the capture gave no graph: {found}; {fix}")]
    Capture {
        /// What happened.
        found: String,
        /// What to do.
        fix: &'static str,
    },

    /// The time of an event was asked for before it was recorded.
    #[error(
        "the time of an event was asked for, but {found}; record it on a stream that is not being captured, then ask"
    )]
    EventNotRecorded {
        /// What is the matter.
        found: &'static str,
    },

    /// The time between events of two devices was asked for.
    #[error(
        "the time from an event on {start} to one on {end} was asked for, but devices have no common clock; take both events on one device"
    )]
    EventsOfTwoDevices {
        /// The device of the first.
        start: String,
        /// The device of the second.
        end: String,
    },

    /// A kernel went wrong on the CPU backend.
    #[error("on the CPU backend, {0}")]
    Kernel(#[from] cutlet_simt::SimtError),
}
