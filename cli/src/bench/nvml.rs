//! NVIDIA's management library, loaded where present: clocks and power of a GPU.

use std::ffi::{CString, c_char, c_void};

use cutlet::Stream;
use serde::{Deserialize, Serialize};

use super::positive::positive_or_absent;

/// File names of the library.
const FILES: [&str; 2] = ["libnvidia-ml.so.1", "nvml.dll"];

/// `NVML_CLOCK_SM`.
const SM_CLOCK: u32 = 1;
/// `NVML_CLOCK_MEM`.
const MEMORY_CLOCK: u32 = 2;

type Status = i32;
type Handle = *mut c_void;

/// A GPU as the management library sees it.
pub struct Nvml {
    library: libloading::Library,
    device: Handle,
}

// SAFETY: the library may be called from any thread.
unsafe impl Send for Nvml {}
// SAFETY: as above.
unsafe impl Sync for Nvml {}

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
        Nvml::open(uuid.bytes.map(|byte| byte as u8))
    }

    /// The GPU with this UUID; `None` if the library or the GPU is missing.
    fn open(uuid: [u8; 16]) -> Option<Nvml> {
        // SAFETY: NVIDIA's initialisers can run at any time.
        let mut libraries = FILES
            .iter()
            .filter_map(|file| unsafe { libloading::Library::new(*file) }.ok());
        let mut nvml = Nvml {
            library: libraries.next()?,
            device: std::ptr::null_mut(),
        };
        // SAFETY: the signature is that of NVIDIA's header.
        let status = unsafe {
            let init: libloading::Symbol<unsafe extern "C" fn() -> Status> =
                nvml.library.get(b"nvmlInit_v2").ok()?;
            init()
        };
        if status != 0 {
            return None;
        }
        let uuid = CString::new(uuid_text(uuid)).ok()?;
        // SAFETY: as above. The text ends with a zero, and the library writes one handle.
        let status = unsafe {
            let by_uuid: libloading::Symbol<
                unsafe extern "C" fn(*const c_char, *mut Handle) -> Status,
            > = nvml.library.get(b"nvmlDeviceGetHandleByUUID").ok()?;
            by_uuid(uuid.as_ptr(), &mut nvml.device)
        };
        (status == 0).then_some(nvml)
    }

    /// The GPU's properties.
    pub fn card(&self) -> Card {
        Card {
            driver: self.driver().unwrap_or_else(|| "unknown".to_string()),
            max_sm_mhz: self.ask_of(b"nvmlDeviceGetMaxClockInfo", SM_CLOCK),
            max_memory_mhz: self.ask_of(b"nvmlDeviceGetMaxClockInfo", MEMORY_CLOCK),
            memory_bus_bits: self.ask(b"nvmlDeviceGetMemoryBusWidth"),
            power_limit_watts: self
                .ask(b"nvmlDeviceGetEnforcedPowerLimit")
                .map(|milliwatts| f64::from(milliwatts) * 1e-3),
        }
    }

    /// Clock and power now.
    pub fn read(&self) -> Option<Reading> {
        Some(Reading {
            sm_mhz: self.ask_of(b"nvmlDeviceGetClockInfo", SM_CLOCK)?,
            watts: f64::from(self.ask(b"nvmlDeviceGetPowerUsage")?) * 1e-3,
        })
    }

    fn driver(&self) -> Option<String> {
        let mut text = [0u8; 96];
        // SAFETY: the signature is that of NVIDIA's header; the library writes at most the length.
        let status = unsafe {
            let version: libloading::Symbol<unsafe extern "C" fn(*mut c_char, u32) -> Status> =
                self.library.get(b"nvmlSystemGetDriverVersion").ok()?;
            version(text.as_mut_ptr().cast(), text.len() as u32)
        };
        let text = text.split(|&byte| byte == 0).next()?;
        (status == 0).then(|| String::from_utf8_lossy(text).into_owned())
    }

    /// A figure of the device.
    fn ask(&self, function: &[u8]) -> Option<u32> {
        let mut figure = 0;
        // SAFETY: the functions asked above have this signature in NVIDIA's header. The library writes one figure.
        let status = unsafe {
            let function: libloading::Symbol<unsafe extern "C" fn(Handle, *mut u32) -> Status> =
                self.library.get(function).ok()?;
            function(self.device, &mut figure)
        };
        (status == 0).then_some(figure)
    }

    /// A figure of one of the device's clocks.
    fn ask_of(&self, function: &[u8], which: u32) -> Option<u32> {
        let mut figure = 0;
        // SAFETY: as in `ask`.
        let status = unsafe {
            let function: libloading::Symbol<
                unsafe extern "C" fn(Handle, u32, *mut u32) -> Status,
            > = self.library.get(function).ok()?;
            function(self.device, which, &mut figure)
        };
        (status == 0).then_some(figure)
    }
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
