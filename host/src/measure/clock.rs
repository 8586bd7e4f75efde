//! A stopwatch for tests, which the load of other processes cannot disturb.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::{Stopwatch, Timer};
use crate::{Result, Stream};

/// A clock that only runs advance which say so.
#[derive(Clone, Default)]
pub struct Clock(Rc<Cell<Duration>>);

impl Clock {
    pub fn advance(&self, by: Duration) {
        self.0.set(self.0.get() + by);
    }

    /// A timer by this clock.
    pub fn timer<'a>(&self, stream: &'a Stream) -> Timer<'a> {
        let stopwatch = ByClock {
            clock: self.clone(),
            start: Duration::ZERO,
        };
        Timer::new(stream)
            .unwrap()
            .with_stopwatch(Box::new(stopwatch))
    }
}

struct ByClock {
    clock: Clock,
    start: Duration,
}

impl Stopwatch for ByClock {
    fn start(&mut self, _: &Stream) -> Result<()> {
        self.start = self.clock.0.get();
        Ok(())
    }

    fn stop(&mut self, _: &Stream) -> Result<Duration> {
        Ok(self.clock.0.get() - self.start)
    }
}
