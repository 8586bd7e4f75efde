//! NVIDIA's disassembler, which prints machine code as text.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    process::{Outcome, output},
    wheel::Wheel,
};

const WHEEL: Wheel = Wheel {
    // The oldest version there is. It reads the output of older assemblers.
    package: "nvidia-cuda-nvdisasm==13.2.51",
    program: "nvdisasm",
    instead: "CUTLET_NVDISASM",
};

/// The disassembler.
pub struct Nvdisasm {
    program: PathBuf,
}

impl Nvdisasm {
    /// Finds the disassembler, or fetches it.
    pub fn get() -> Outcome<Self> {
        Ok(Self {
            program: WHEEL.get()?,
        })
    }

    /// The instructions of all entries in a cubin.
    pub fn list(&self, cubin: &Path) -> Outcome<String> {
        let (listing, _) = output(Command::new(&self.program).arg("--print-code").arg(cubin))?;
        Ok(listing)
    }
}
