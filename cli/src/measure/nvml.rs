//! Clocks and power of a GPU, as NVIDIA's management library tells them where it is present.

use std::sync::OnceLock;

use cutlet::Stream;
use nvml_wrapper::Device;
use nvml_wrapper::enum_wrappers::device::Clock;
use serde::{Deserialize, Serialize};

use super::positive::positive_or_absent;

/// A GPU as the management library sees it.
pub struct Nvml {
    device: Device<'static>,
}

/// The properties of a GPU that do not change while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// The driver's version.
    pub driver: String,
    /// Highest clock of the multiprocessors in MHz.
    pub max_sm_mhz: Option<u32>,
    /// Highest clock of the memory in MHz.
    pub max_memory_mhz: Option<u32>,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: Option<u32>,
    /// The power limit in watts.
    #[serde(default, deserialize_with = "positive_or_absent")]
    pub power_limit_watts: Option<f64>,
}

/// Clock and power at a moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// Clock of the multiprocessors in MHz.
    pub sm_mhz: u32,
    /// Power in watts, as the driver averages it.
    pub watts: f64,
}

impl Nvml {
    /// The GPU of a stream; `None` on the CPU, and if the library is missing.
    pub fn of(stream: &Stream) -> Option<Nvml> {
        let uuid = stream.as_cudarc()?.context().uuid().ok()?;
        // C's characters are signed on some machines.
        Nvml::open(uuid.bytes.map(|byte| byte.to_ne_bytes()[0]))
    }

    /// The GPU with this UUID; `None` if the library or the GPU is missing.
    fn open(uuid: [u8; 16]) -> Option<Nvml> {
        let device = library()?.device_by_uuid(uuid_text(uuid)).ok()?;
        Some(Nvml { device })
    }

    /// The GPU's properties.
    pub fn card(&self) -> Card {
        let driver = self.device.nvml().sys_driver_version();
        let limit = self.device.enforced_power_limit().ok();
        Card {
            driver: driver.unwrap_or_else(|_| "unknown".to_string()),
            max_sm_mhz: self.device.max_clock_info(Clock::SM).ok(),
            max_memory_mhz: self.device.max_clock_info(Clock::Memory).ok(),
            memory_bus_bits: self.device.memory_bus_width().ok(),
            power_limit_watts: limit.map(watts),
        }
    }

    /// Clock and power now.
    pub fn read(&self) -> Option<Reading> {
        Some(Reading {
            sm_mhz: self.device.clock_info(Clock::SM).ok()?,
            watts: watts(self.device.power_usage().ok()?),
        })
    }
}

/// The driver's version; `None` if the library is missing.
pub fn driver() -> Option<String> {
    library()?.sys_driver_version().ok()
}

/// The library, loaded once a process; `None` if it is missing.
fn library() -> Option<&'static nvml_wrapper::Nvml> {
    static LIBRARY: OnceLock<Option<nvml_wrapper::Nvml>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| nvml_wrapper::Nvml::init().ok());
    library.as_ref()
}

fn watts(milliwatts: u32) -> f64 {
    f64::from(milliwatts) * 1e-3
}

/// `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
fn uuid_text(uuid: [u8; 16]) -> String {
    let hex = |bytes: &[u8]| -> String { bytes.iter().map(|byte| format!("{byte:02x}")).collect() };
    let parts = [
        &uuid[..4],
        &uuid[4..6],
        &uuid[6..8],
        &uuid[8..10],
        &uuid[10..],
    ]
    .map(hex);
    format!("GPU-{}", parts.join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uuids_are_written_as_the_library_wants_them() {
        let uuid = std::array::from_fn(|i| i as u8 * 16 + 1);
        assert_eq!(uuid_text(uuid), "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
    }
}
