//! The machine that figures belong to, with its ceilings.

use cutlet_host::Backend;
use serde::{Deserialize, Serialize};

use crate::host_system::processor;
use crate::measure::dtype::Dtype;
use crate::measure::nvml::{Card, Nvml};
use crate::measure::positive::{at_least_one, positive, positive_or_absent};
use crate::measure::setting::Setting;

/// The machine that figures belong to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// `gpu` or `cpu`. Figures of the CPU backend say nothing about GPUs.
    pub backend: String,
    /// The GPU's name; the processor's on the CPU backend.
    pub name: String,
    /// Multiprocessors; cores on the CPU backend.
    #[serde(deserialize_with = "at_least_one")]
    pub multiprocessors: u32,
    /// Compute capability, as `9.0`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute_capability: Option<String>,
    /// Memory in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The CUDA version that the driver supports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// The version of cuBLASLt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cublas: Option<String>,
    /// Speed of a large copy on the device: 10⁹ bytes a second, read plus written.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "positive_or_absent"
    )]
    pub copy_gigabytes: Option<f64>,
    /// Peak speed of the memory: 10⁹ bytes a second.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "positive_or_absent"
    )]
    pub memory_gigabytes: Option<f64>,
    /// The card, as the driver's management library describes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<Card>,
    /// Peak speed of the arithmetic units, by element type.
    #[serde(default)]
    pub ceilings: Vec<Ceiling>,
}

/// Peak speed of the arithmetic units for an element type.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ceiling {
    /// The element type.
    pub dtype: Dtype,
    /// 10¹² operations a second.
    #[serde(deserialize_with = "positive")]
    pub teraflops: f64,
}

impl Machine {
    /// The machine of a setting.
    pub fn new(setting: &Setting, nvml: Option<&Nvml>) -> Machine {
        let device = setting.stream.device();
        let capability = device.compute_capability();
        let card = nvml.map(Nvml::card);
        let version = |version: usize| {
            let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
            format!("{major}.{minor}.{patch}")
        };
        let multiprocessors = device.multiprocessors();
        let clock = card.as_ref().and_then(|card| card.max_sm_mhz);
        Machine {
            backend: device.backend().to_string(),
            name: match device.backend() {
                Backend::Gpu => plain_name(device.name()),
                Backend::Cpu => processor(),
            },
            multiprocessors,
            compute_capability: capability.map(|(major, minor)| format!("{major}.{minor}")),
            memory_bytes: match device.memory() {
                Ok(Some((_, total))) => Some(total as u64),
                _ => None,
            },
            cuda: capability
                .and_then(|_| cutlet_host::driver_version().ok())
                .map(|(major, minor)| format!("{major}.{minor}")),
            cublas: setting
                .cublas
                .as_ref()
                .ok()
                .map(|cublas| version(cublas.version())),
            copy_gigabytes: None,
            ceilings: match (capability, clock) {
                (Some(capability), Some(mhz)) => ceilings(capability, multiprocessors, mhz),
                _ => Vec::new(),
            },
            memory_gigabytes: card.as_ref().and_then(memory),
            card,
        }
    }

    /// Peak speed of the arithmetic units for an element type, in 10¹² operations a second, if it is known.
    pub fn ceiling(&self, dtype: &str) -> Option<f64> {
        let ceiling = self
            .ceilings
            .iter()
            .find(|ceiling| ceiling.dtype.name() == dtype);
        ceiling.map(|ceiling| ceiling.teraflops)
    }

    /// The machine in a line: `NVIDIA H200, driver 580.159, CUDA 13.0, cuBLASLt 13.1.0`.
    pub fn line(&self) -> String {
        let versions = [
            ("driver", self.card.as_ref().map(|card| &card.driver)),
            ("CUDA", self.cuda.as_ref()),
            ("cuBLASLt", self.cublas.as_ref()),
        ];
        let versions = versions
            .iter()
            .filter_map(|(name, version)| Some(format!(", {name} {}", (*version)?)));
        format!("{}{}", self.name, versions.collect::<String>())
    }
}

/// The GPU's name without its number: `NVIDIA H200` of `gpu 0: NVIDIA H200`.
fn plain_name(name: &str) -> String {
    name.split_once(": ")
        .map_or(name, |(_, name)| name)
        .to_string()
}

/// Dense operations a clock of one multiprocessor: in f32, tf32, 16-bit floats and fp8 with f32 accumulation, in f64,
/// and in i8 with i32 accumulation.
fn operations_a_clock(capability: (u32, u32)) -> Option<[f64; 6]> {
    Some(match capability {
        (8, 0) => [128.0, 1024.0, 2048.0, 0.0, 128.0, 4096.0],
        (8, 6) => [256.0, 256.0, 512.0, 0.0, 4.0, 2048.0],
        (8, 9) => [256.0, 256.0, 512.0, 1024.0, 4.0, 2048.0],
        (9, 0) => [256.0, 2048.0, 4096.0, 8192.0, 256.0, 8192.0],
        (10, 0) => [256.0, 4096.0, 8192.0, 16384.0, 128.0, 16384.0],
        _ => return None,
    })
}

fn ceilings(capability: (u32, u32), multiprocessors: u32, mhz: u32) -> Vec<Ceiling> {
    let Some([f32_, tf32, half, fp8, f64_, i8_]) = operations_a_clock(capability) else {
        return Vec::new();
    };
    let clocks = f64::from(multiprocessors) * f64::from(mhz) * 1e6;
    [
        (Dtype::F32, f32_),
        (Dtype::Tf32, tf32),
        (Dtype::Tf32x3, tf32 / 3.0),
        (Dtype::F16, half),
        (Dtype::Bf16, half),
        (Dtype::E4m3, fp8),
        (Dtype::E4m3Fast, fp8),
        (Dtype::E4m3Outer, fp8),
        (Dtype::E4m3Blocks, fp8),
        (Dtype::F64, f64_),
        (Dtype::I8, i8_),
    ]
    .into_iter()
    .filter(|(_, operations)| *operations > 0.0)
    .map(|(dtype, operations)| Ceiling {
        dtype,
        teraflops: operations * clocks / 1e12,
    })
    .collect()
}

/// Peak speed of the memory, at two transfers a clock.
fn memory(card: &Card) -> Option<f64> {
    let clock = f64::from(card.max_memory_mhz?) * 1e6;
    Some(2.0 * clock * f64::from(card.memory_bus_bits?) / 8.0 / 1e9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_h200_has_the_ceilings_of_its_data_sheet_at_the_data_sheets_clock() {
        let of = |dtype, mhz| {
            let ceilings = ceilings((9, 0), 132, mhz);
            let ceiling = ceilings.iter().find(|ceiling| ceiling.dtype == dtype);
            ceiling.unwrap().teraflops.round()
        };
        assert_eq!(of(Dtype::F32, 1980), 67.0);
        assert_eq!(of(Dtype::Bf16, 1830), 989.0);
        assert_eq!(of(Dtype::E4m3, 1830), 1979.0);
        assert_eq!(of(Dtype::F64, 1980), 67.0);
        assert_eq!(of(Dtype::I8, 1830), 1979.0);
        let card = Card {
            driver: String::new(),
            max_sm_mhz: None,
            max_memory_mhz: Some(3201),
            memory_bus_bits: Some(6144),
            power_limit_watts: None,
        };
        assert_eq!(memory(&card).unwrap().round(), 4917.0);
    }
}
