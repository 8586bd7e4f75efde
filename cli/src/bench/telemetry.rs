//! What the card did while a row was measured, in samples and in the rests between them alike: clocks, power and
//! temperature, read in a thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::nvml::{Nvml, Reading};
use super::statistics::Spread;

/// Time between two readings.
const INTERVAL: Duration = Duration::from_millis(20);

/// What the card did while a row was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Telemetry {
    /// Clock of the multiprocessors in MHz.
    pub sm_mhz: Spread,
    /// Power in watts, as the driver averages it.
    pub watts: Spread,
    /// The highest temperature in °C.
    pub celsius: u32,
}

/// Reads a card until dropped.
pub struct Recorder {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    readings: Mutex<Vec<Reading>>,
    stop: AtomicBool,
}

impl Recorder {
    /// Starts reading; with no card there is nothing to read.
    pub fn start(nvml: Option<Nvml>) -> Recorder {
        let shared = Arc::new(Shared::default());
        let thread = nvml.map(|nvml| {
            let shared = shared.clone();
            std::thread::spawn(move || {
                while !shared.stop.load(Ordering::Relaxed) {
                    if let Some(reading) = nvml.read() {
                        let mut readings = shared
                            .readings
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner);
                        readings.push(reading);
                    }
                    std::thread::sleep(INTERVAL);
                }
            })
        });
        Recorder { shared, thread }
    }

    /// What was read since the last call.
    pub fn take(&self) -> Option<Telemetry> {
        let mut readings = self
            .shared
            .readings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        summary(&std::mem::take(&mut *readings))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A reader that panicked has read nothing more; the figures stand without it.
            let _ = thread.join();
        }
    }
}

fn summary(readings: &[Reading]) -> Option<Telemetry> {
    let spread = |figure: fn(&Reading) -> f64| {
        let figures: Vec<f64> = readings.iter().map(figure).collect();
        Spread::of(&figures)
    };
    Some(Telemetry {
        celsius: readings.iter().map(|reading| reading.celsius).max()?,
        sm_mhz: spread(|reading| f64::from(reading.sm_mhz)),
        watts: spread(|reading| reading.watts),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_middle_and_the_extremes() {
        let reading = |sm_mhz, watts, celsius| Reading {
            sm_mhz,
            watts,
            celsius,
        };
        let summary = summary(&[
            reading(1980, 500.0, 40),
            reading(1700, 690.0, 55),
            reading(1800, 650.0, 50),
        ])
        .unwrap();
        assert_eq!(summary.sm_mhz.median, 1800.0);
        assert_eq!((summary.watts.max, summary.celsius), (690.0, 55));
    }

    #[test]
    fn without_a_card_nothing_is_read() {
        assert_eq!(Recorder::start(None).take(), None);
    }
}
