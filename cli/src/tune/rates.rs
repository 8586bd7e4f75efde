//! The rates of a device that estimates need: of its memory, of its L2 cache, and its clock under load.

use std::time::{Duration, Instant};

use cutlet::{DeviceRates, Matrix, MatrixMut};
use half::bf16;

use crate::measure::error::Error;
use crate::measure::nvml::Nvml;
use crate::measure::random::random;
use crate::measure::setting::Setting;
use crate::measure::telemetry::Recorder;
use crate::measure::timer::Timer;

/// How often a copy is timed.
const TIMES: usize = 20;
/// The clock is read while GEMMs run for so long.
const LOAD: Duration = Duration::from_millis(1500);
/// The extents of these GEMMs.
const EXTENT: usize = 4096;

/// A copy that is timed.
struct Copy {
    /// Bytes that are copied.
    bytes: usize,
    /// Copies between two events, so that launches do not decide.
    count: usize,
}

impl Copy {
    /// Of memory: far more than any L2 cache holds.
    fn of_memory(on_gpu: bool) -> Copy {
        Copy {
            bytes: if on_gpu { 1 << 30 } else { 16 << 20 },
            count: 1,
        }
    }

    /// Of the L2 cache: source and destination stay in 40 MB, those of an A100, or in the 50 MB of an H100.
    const OF_L2: Copy = Copy {
        bytes: 8 << 20,
        count: 64,
    };

    /// Bytes that are read and written, in 10⁹ a second.
    fn gigabytes(&self, setting: &Setting, timer: &mut Timer) -> Result<f64, Error> {
        let stream = &setting.stream;
        // Zeros would draw less power.
        let from = random::<u32>(stream, self.bytes / 4, setting.seed)?;
        let mut to = stream.zeroed::<u32>(from.len())?;
        let microseconds = timer.time(TIMES, |stream| {
            (0..self.count).try_for_each(|_| Ok(stream.copy(&from, &mut to)?))
        })?;
        let bytes = 2.0 * self.bytes as f64 * self.count as f64;
        Ok(bytes / microseconds.median / 1e3)
    }
}

/// Measures the rates. Without a GPU, only copies of memory are measured.
pub fn measure(setting: &Setting, timer: &mut Timer) -> Result<DeviceRates, Error> {
    let on_gpu = setting.on_gpu();
    Ok(DeviceRates {
        memory_gigabytes: Some(rounded(Copy::of_memory(on_gpu).gigabytes(setting, timer)?)),
        l2_gigabytes: match on_gpu {
            true => Some(rounded(Copy::OF_L2.gigabytes(setting, timer)?)),
            false => None,
        },
        loaded_megahertz: match on_gpu {
            true => loaded_megahertz(setting)?,
            false => None,
        },
    })
}

/// A rate with a digit after the point.
fn rounded(rate: f64) -> f64 {
    (rate * 10.0).round() / 10.0
}

/// The median clock of the multiprocessors while GEMMs run; `None` where the management library does not tell it.
fn loaded_megahertz(setting: &Setting) -> Result<Option<f64>, Error> {
    let stream = &setting.stream;
    let Some(nvml) = Nvml::of(stream) else {
        return Ok(None);
    };
    let a = random::<bf16>(stream, EXTENT * EXTENT, setting.seed)?;
    let b = random::<bf16>(stream, EXTENT * EXTENT, setting.seed.wrapping_add(1))?;
    let mut c = stream.zeroed::<bf16>(EXTENT * EXTENT)?;
    let recorder = Recorder::start(Some(nvml));
    let began = Instant::now();
    while began.elapsed() < LOAD {
        for _ in 0..16 {
            let a = Matrix::row_major(&a, EXTENT, EXTENT)?;
            let b = Matrix::col_major(&b, EXTENT, EXTENT)?;
            let c = MatrixMut::row_major(&mut c, EXTENT, EXTENT)?;
            cutlet::gemm(stream, 1.0, a, b, 0.0, c)?;
        }
        stream.synchronize()?;
    }
    Ok(recorder.take().map(|telemetry| telemetry.sm_mhz))
}

/// The rates in lines.
pub fn report(rates: &DeviceRates) -> String {
    let line = |what: &str, rate: Option<f64>, unit: &str| match rate {
        Some(rate) => format!("{what:<18} {rate:>8.1} {unit}"),
        None => format!("{what:<18} not measured here"),
    };
    [
        line(
            "copy of memory",
            rates.memory_gigabytes,
            "GB/s, read plus written",
        ),
        line(
            "copy within L2",
            rates.l2_gigabytes,
            "GB/s, read plus written",
        ),
        line("clock under load", rates.loaded_megahertz, "MHz"),
    ]
    .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutlet::Device;

    #[test]
    fn without_a_gpu_only_memory_is_measured() {
        let setting = Setting::new(&Device::cpu(), 1).unwrap();
        let mut timer = Timer::new(&setting).unwrap();
        let rates = measure(&setting, &mut timer).unwrap();
        assert!(rates.memory_gigabytes.unwrap() > 0.0);
        assert_eq!((rates.l2_gigabytes, rates.loaded_megahertz), (None, None));
        let lines = report(&rates);
        assert_eq!(lines.matches("not measured here").count(), 2, "{lines}");
    }
}
