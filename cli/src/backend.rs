//! The `--backend` option: the device that runs a command.

use clap::ValueEnum;
use cutlet::Device;

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
