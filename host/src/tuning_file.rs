//! Tuning files: kernels that were measured to be the fastest at some problems on a device. What the files of the library
//! `cutlet` and of an [`Autotuner`](crate::Autotuner) have in common. It is no part of the public interface.

mod text;
mod version;

pub use text::{Damage, Header, Lines, end, kernel_and_time, value};
pub use version::version_of;

use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crate::{Backend, Device};

/// What times of kernels depend on besides the device.
#[derive(Clone, Debug, PartialEq)]
pub struct Versions {
    /// The version of cutlet.
    pub cutlet: String,
    /// The version of the kernels: see [`version_of`].
    pub kernels: String,
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cutlet {} with kernels {}", self.cutlet, self.kernels)
    }
}

/// The kind of device that kernels were measured on.
#[derive(Clone, Debug, PartialEq)]
pub struct TunedDevice {
    /// The name, without the number that the driver gave it: `NVIDIA H200`, `cpu`.
    pub name: String,
    /// How many multiprocessors it has.
    pub multiprocessors: u32,
    /// The CUDA version of the driver, `13.0`; `none` on the CPU. It compiled the kernels.
    pub cuda: String,
}

impl TunedDevice {
    /// The kind of this device.
    pub fn of(device: &Device) -> Self {
        TunedDevice {
            name: model_name(device).to_string(),
            multiprocessors: device.multiprocessors(),
            cuda: match (device.backend(), crate::driver_version()) {
                (Backend::Gpu, Ok((major, minor))) => format!("{major}.{minor}"),
                _ => "none".to_string(),
            },
        }
    }

    /// Whether it is the device's kind. Drivers of other versions count, so that a file can be shipped.
    pub fn is(&self, device: &Device) -> bool {
        self.multiprocessors == device.multiprocessors() && self.name == model_name(device)
    }
}

impl fmt::Display for TunedDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({} multiprocessors)",
            self.name, self.multiprocessors
        )
    }
}

/// The device's name without the number that the driver gave it: `NVIDIA H200` of `gpu 0: NVIDIA H200`.
pub fn model_name(device: &Device) -> &str {
    let name = device.name();
    name.split_once(": ").map_or(name, |(_, model)| model)
}

/// Writes a file. An interrupted write leaves the file as it was before.
///
/// # Errors
/// If it cannot be written.
pub fn replace(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_added_extension("part");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}
