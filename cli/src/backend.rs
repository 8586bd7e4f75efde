//! The `--backend` option: which device runs a command.

use clap::ValueEnum;
use cutlet::Device;

/// Where kernels run.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub enum Backend {
    /// The first GPU if there is one, else the CPU.
    #[default]
    Auto,
    /// The first GPU.
    Gpu,
    /// The CPU: the same kernels, every GPU thread a coroutine.
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
