//! What estimates know of a device, and the time that a launch's work takes on it.

use cutlet_host::Device;

use super::measured::H200;
use crate::gemm::tuning_file::installed;

/// What the time of a kernel depends on of its device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceSpeed {
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// Bytes that memory brings for each multiprocessor in a clock, as the driver states it.
    pub memory_rate: f64,
    /// Clusters of 1, 2, 4 and 8 blocks that run at the same time, one block a multiprocessor.
    pub clusters: [u32; 4],
    /// Clocks of a multiprocessor in a second, as the driver states it.
    pub clock: f64,
}

/// What a launch does. Every family's estimate is made of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Work {
    /// Clocks of the busiest multiprocessor.
    pub computing: f64,
    /// Bytes that memory brings.
    pub bytes: f64,
    /// The share of the memory's stated rate that the kernel reaches.
    pub of_memory_rate: f64,
    /// Clocks before the first bytes are there.
    pub latency: f64,
    /// Clocks that nothing else overlaps: of the start, and of a second kernel.
    pub overhead: f64,
}

/// The share of the stated rate that a large copy reaches on the H200 that the estimates were fitted to: 4220 of
/// 4917·10⁹ bytes a second.
const COPY_OF_STATED: f64 = 0.858;

impl DeviceSpeed {
    /// That of a device. The rate of its memory is what its driver states, or would state where a copy was measured. What
    /// is not known is an H200's.
    pub fn of(device: &Device) -> Self {
        let stated = || device.memory_rate().unwrap_or(H200.memory_rate);
        DeviceSpeed {
            multiprocessors: device.multiprocessors(),
            memory_rate: measured_memory_rate(device).unwrap_or_else(stated),
            clusters: [1, 2, 4, 8].map(|blocks| clusters_at_a_time(device, blocks)),
            clock: device.highest_clock().unwrap_or(H200.clock),
        }
    }

    /// Bytes that memory brings in a clock.
    pub fn bytes_a_clock(&self) -> f64 {
        self.memory_rate * f64::from(self.multiprocessors)
    }

    /// The time of a launch's work in microseconds.
    pub fn time_of(&self, work: Work) -> f64 {
        let rate = work.of_memory_rate * self.bytes_a_clock();
        let memory = work.bytes / rate + work.latency;
        self.microseconds(overlapped(work.computing, memory) + work.overhead)
    }

    /// The time that a pass over so many bytes adds after a product.
    pub fn time_of_pass(&self, bytes: usize) -> f64 {
        /// What the launch adds besides the bytes.
        const CLOCKS: f64 = 4000.0;
        const OF_MEMORY_RATE: f64 = 0.8;
        self.time_of(Work {
            bytes: bytes as f64,
            of_memory_rate: OF_MEMORY_RATE,
            overhead: CLOCKS,
            ..Work::default()
        })
    }

    /// The time of so many clocks.
    pub fn microseconds(&self, clocks: f64) -> f64 {
        clocks / self.clock * 1e6
    }
}

/// The time of computing and of memory, which slow each other down if they take about the same time. The fourth power
/// models how much.
pub fn overlapped(computing: f64, memory: f64) -> f64 {
    (computing.powi(4) + memory.powi(4)).sqrt().sqrt()
}

/// Clusters of so many blocks that run at the same time. A device that has no such clusters is refused at the launch.
fn clusters_at_a_time(device: &Device, blocks: u32) -> u32 {
    let fitting = device.multiprocessors() / blocks;
    device
        .clusters_at_a_time(blocks)
        .map_or(fitting, |it| it.min(fitting))
}

/// The rate that a driver would state for memory that a copy was measured on, in bytes a clock for each multiprocessor.
fn measured_memory_rate(device: &Device) -> Option<f64> {
    let clock = device.highest_clock()?;
    let gigabytes = installed::memory_gigabytes(device)?;
    Some(stated_from_copy(gigabytes, clock) / f64::from(device.multiprocessors()))
}

/// The rate in bytes a clock that a driver would state where a copy reads and writes so many 10⁹ bytes a second. The
/// clock is in Hz.
fn stated_from_copy(gigabytes: f64, clock: f64) -> f64 {
    gigabytes * 1e9 / clock / COPY_OF_STATED
}

#[cfg(test)]
mod tests {
    use super::*;

    /// On the device of the fit, the measured rate and the stated one give the same estimates.
    #[test]
    fn an_h200s_copy_gives_the_rate_that_its_driver_states() {
        let measured = stated_from_copy(4220.0, H200.clock);
        let stated = H200.bytes_a_clock();
        assert!(
            (measured / stated - 1.0).abs() < 0.005,
            "{measured} {stated}"
        );
    }

    #[test]
    fn work_takes_the_time_of_what_takes_longest() {
        let memory = Work {
            bytes: 0.8 * H200.bytes_a_clock() * H200.clock,
            of_memory_rate: 0.8,
            ..Work::default()
        };
        assert!((H200.time_of(memory) / 1e6 - 1.0).abs() < 1e-9);
        let computing = Work {
            computing: 10.0 * H200.clock,
            ..memory
        };
        assert!((H200.time_of(computing) / 1e7 - 1.0).abs() < 1e-4);
    }
}
