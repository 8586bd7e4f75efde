//! NVIDIA's disassembler, which prints machine code as text.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::output;
use crate::{Error, Lookup, Wheel};

const WHEEL: Wheel = Wheel {
    // The oldest version there is. It reads the output of older assemblers.
    package: "nvidia-cuda-nvdisasm==13.2.51",
    sha256: [
        "5a7acf77c55d6d2911ed6155d4d5bc156ffadf9df7a68a89b0c1155f4b13688c",
        "483c8f652c1ca006135584b4faf7ea1d2bafe4c40ec1c9ef57a04c6acfbdd57f",
    ],
    program: "nvidia/cu13/bin/nvdisasm",
    instead: "CUTLET_NVDISASM",
};

/// The disassembler.
pub struct Nvdisasm {
    program: PathBuf,
}

impl Nvdisasm {
    /// Finds the disassembler, or fetches it. The variable `CUTLET_NVDISASM` names another one.
    ///
    /// # Errors
    /// If it has to be fetched and cannot be.
    pub fn get(lookup: &Lookup<'_>) -> Result<Self, Error> {
        Ok(Self {
            program: lookup.find(&WHEEL)?,
        })
    }

    /// The instructions of all entries in a cubin, below their source lines if the PTX has them.
    /// [`listing::read`](crate::listing::read) finds loops.
    ///
    /// # Errors
    /// If the disassembler does not run, or refuses the file.
    pub fn list(&self, cubin: &Path) -> Result<String, Error> {
        let mut command = Command::new(&self.program);
        command
            .args(["--print-code", "--print-line-info"])
            .arg(cubin);
        let (listing, _) = output(&mut command)?;
        Ok(listing)
    }
}
