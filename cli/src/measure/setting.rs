//! Where and under which conditions problems are set up.

use cutlet::{Device, Stream};
use cutlet_cli::cublas::{Cublas, CublasError};
use cutlet_host::{Backend, measure};

use super::error::Result;
use crate::progress::Progress;

/// Where and under which conditions problems are set up.
pub struct Setting {
    /// The stream of all work.
    pub stream: Stream,
    /// The baseline of GEMMs, or why there is none. Where a call failed, GEMM rows fail.
    pub cublas: Result<Cublas, CublasError>,
    /// Whether only the baselines are measured.
    pub baselines_only: bool,
    /// cutlet's kernel instances whose names contain one of these are measured too.
    pub instances: Vec<String>,
    /// Seed of all inputs.
    pub seed: u64,
    /// Shows what is done to a problem.
    pub progress: Progress,
}

impl Setting {
    /// The setting on a device, with everything measured but single instances, and without progress.
    ///
    /// # Errors
    /// If the device cannot make a stream.
    pub fn new(device: &Device, seed: u64) -> Result<Setting> {
        let stream = device.stream()?;
        Ok(Setting {
            cublas: Cublas::new(stream.device()),
            stream,
            baselines_only: false,
            instances: Vec::new(),
            seed,
            progress: Progress::hidden(),
        })
    }

    /// Whether the device is a GPU.
    pub fn on_gpu(&self) -> bool {
        self.stream.device().backend() == Backend::Gpu
    }

    /// How many sets of `bytes` each are needed so that no run finds its data in a cache; one on the CPU, whose
    /// figures are no measurements.
    pub fn sets(&self, bytes: usize) -> usize {
        measure::sets(self.stream.device(), bytes)
    }
}
