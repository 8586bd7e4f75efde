//! Clock and power of the card while a row is measured, read by a thread, in samples and in the rests between them
//! alike.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde::Serialize;

use super::nvml::{Nvml, Reading};
use super::statistics::Spread;

/// Time between two readings.
const INTERVAL: Duration = Duration::from_millis(20);

/// Clock and power of the card while a row was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Telemetry {
    /// The median clock of the multiprocessors in MHz.
    pub sm_mhz: f64,
    /// The highest power in watts, as the driver averages it.
    pub watts: f64,
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
    /// Starts reading, if there is a card.
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

    /// The readings since the last call.
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
            // The figures stand without a thread that panicked.
            let _ = thread.join();
        }
    }
}

fn summary(readings: &[Reading]) -> Option<Telemetry> {
    let spread = |figure: fn(&Reading) -> f64| {
        let figures: Vec<f64> = readings.iter().map(figure).collect();
        Spread::of(&figures)
    };
    (!readings.is_empty()).then(|| Telemetry {
        sm_mhz: spread(|reading| f64::from(reading.sm_mhz)).median,
        watts: spread(|reading| reading.watts).max,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_median_clock_and_the_highest_power() {
        let reading = |sm_mhz, watts| Reading { sm_mhz, watts };
        let summary = summary(&[
            reading(1980, 500.0),
            reading(1700, 690.0),
            reading(1800, 650.0),
        ])
        .unwrap();
        assert_eq!((summary.sm_mhz, summary.watts), (1800.0, 690.0));
    }

    #[test]
    fn without_a_card_nothing_is_read() {
        assert_eq!(Recorder::start(None).take(), None);
    }
}
