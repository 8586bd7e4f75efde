//! The `--backend` option: the device that runs a command.

use std::fmt;

use clap::ValueEnum;
use cutlet::Device;
use cutlet_host::Backend as Kind;
use serde::Serialize;

/// The device of the kernels.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Backend {
    /// The first GPU if there is one, else the CPU.
    #[default]
    Auto,
    /// The first GPU.
    Gpu,
    /// The CPU: the same kernels, with a coroutine for each GPU thread.
    Cpu,
}

impl Backend {
    /// The device.
    pub fn device(self) -> cutlet::Result<Device> {
        Ok(match self {
            Backend::Auto => Device::auto(),
            Backend::Gpu => Device::gpu(0)?,
            Backend::Cpu => Device::cpu(),
        })
    }

    /// Whether a device was named, and none need be looked for.
    pub fn is_named(self) -> bool {
        !matches!(self, Backend::Auto)
    }
}

/// The device that ran a command, in its result.
#[derive(Clone, Debug, Serialize)]
pub struct RanOn {
    /// `gpu` or `cpu`.
    backend: String,
    /// `gpu 0: NVIDIA H200`, or `cpu`.
    name: String,
    /// Why it is this device.
    why: String,
}

impl RanOn {
    /// This device.
    pub fn new(device: &Device) -> RanOn {
        let described = device.describe();
        RanOn {
            backend: described.backend.to_string(),
            name: described.name,
            why: described.why,
        }
    }
}

impl fmt::Display for RanOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.why)
    }
}

/// What figures of the CPU backend do not show; `None` for a GPU.
pub fn no_figures(device: &Device) -> Option<String> {
    (device.backend() == Kind::Cpu).then(|| {
        format!(
            "the CPU backend runs this ({}): its figures show that all works, and say nothing about a GPU",
            device.describe().why
        )
    })
}

/// A problem would take the CPU backend long, and nobody asked for the CPU.
#[derive(Debug, thiserror::Error)]
#[error(
    "{problem} was asked for, which needs a GPU, but this would run on {device}, and for long; take a smaller one \
     (`--suite tiny`), or insist with `--backend cpu`"
)]
pub struct NeedsGpu {
    problem: String,
    device: String,
}

impl NeedsGpu {
    /// The error about a problem that would run on this device.
    pub fn new(problem: String, device: &Device) -> NeedsGpu {
        NeedsGpu {
            problem,
            device: device.describe().to_string(),
        }
    }
}

/// Whether a run of so many operations, or of a movement of so many bytes, takes the CPU backend long: about half a
/// minute on two cores, and some seconds.
pub fn is_long_on_cpu(operations: f64, bytes: f64) -> bool {
    operations > 1e10 || bytes > 2e8
}

/// An error message with the option in place of the library call that it recommends.
pub fn as_an_option(error: &str) -> String {
    error.replace("`Device::cpu()`", "the CPU (`--backend cpu`)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_about_a_missing_gpu_name_the_option() {
        let no_driver = cutlet_host::Error::NoDriver {
            asked: "gpu 0".to_string(),
            found: "there is none".to_string(),
        };
        let no_such_gpu = cutlet_host::Error::NoSuchGpu {
            ordinal: 1,
            count: 1,
        };
        let no_target = cutlet_host::Error::NoTarget {
            kernel: "gemm_f32",
            built_for: "sm_80".to_string(),
            device: "gpu 0".to_string(),
            major: 7,
            minor: 5,
            fix: "add a target".to_string(),
        };
        let older = cutlet::Error::Device {
            asked: "gemm",
            found: "gpu 0".to_string(),
        };
        for error in [
            no_driver.to_string(),
            no_such_gpu.to_string(),
            no_target.to_string(),
            older.to_string(),
        ] {
            let told = as_an_option(&error);
            assert!(told.contains("the CPU (`--backend cpu`)"), "{told}");
            assert!(!told.contains("Device::"), "{told}");
        }
    }
}
