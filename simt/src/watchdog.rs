//! The watchdog: ends launches whose threads make no progress.
//!
//! A thread in an endless loop keeps its OS thread. First the watchdog lets the launch fail: then the thread ends at
//! its next access to memory. A thread that makes no access, or catches the panic, cannot be ended from outside. Its
//! launch cannot return either, so the watchdog says which threads run and at which lines, which wait and for what, and
//! ends the process.

use std::process::abort;
use std::sync::{Condvar, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::grid::Grid;

/// Environment variable that says after how many seconds without progress a launch ends. 0 is never.
pub(crate) const VARIABLE: &str = "CUTLET_SIMT_WATCHDOG_SECONDS";

const DEFAULT_SECONDS: f64 = 60.0;

/// How long threads have to end after their launch has failed, at most.
const GRACE: Duration = Duration::from_secs(5);

/// A launch that is watched.
struct Watched {
    grid: *const Grid<'static>,
    /// The steps that were seen last, and since when there are no more.
    steps: u64,
    since: Instant,
    failed: bool,
}

// SAFETY: a grid is shared by OS threads. The entry is removed before the grid goes.
unsafe impl Send for Watched {}

static WATCHED: Mutex<Vec<Watched>> = Mutex::new(Vec::new());
static ADDED: Condvar = Condvar::new();

fn watched() -> MutexGuard<'static, Vec<Watched>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// How long a launch may make no progress; `None` if it may do so for ever.
fn limit() -> Option<Duration> {
    static LIMIT: OnceLock<Option<Duration>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let text = std::env::var(VARIABLE).ok();
        let seconds = text.and_then(|text| text.parse::<f64>().ok());
        let limit = Duration::try_from_secs_f64(seconds.unwrap_or(DEFAULT_SECONDS)).ok()?;
        (!limit.is_zero()).then_some(limit)
    })
}

/// A launch is watched until this is dropped.
pub(crate) struct Watch(*const Grid<'static>);

impl Watch {
    /// Watches a grid, which must outlive the result.
    pub(crate) fn new(grid: &Grid<'_>) -> Option<Self> {
        let limit = limit()?;
        static STARTED: Once = Once::new();
        STARTED.call_once(|| {
            // Without a watchdog, a launch without progress hangs.
            let _ = thread::Builder::new()
                .name("cutlet-simt-watchdog".to_owned())
                .spawn(move || watch(limit));
        });
        let grid: *const Grid<'static> = std::ptr::from_ref(grid).cast();
        watched().push(Watched {
            grid,
            steps: 0,
            since: Instant::now(),
            failed: false,
        });
        ADDED.notify_one();
        Some(Self(grid))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        watched().retain(|watched| watched.grid != self.0);
    }
}

fn watch(limit: Duration) -> ! {
    let tick = (limit / 8).clamp(Duration::from_millis(10), Duration::from_secs(1));
    loop {
        thread::sleep(tick);
        let mut all = watched();
        while all.is_empty() {
            all = ADDED.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
        all.iter_mut().for_each(|one| one.look(limit));
    }
}

impl Watched {
    fn look(&mut self, limit: Duration) {
        // SAFETY: `Watch::drop` removes the entry while the grid lives. The caller holds the lock for that.
        let grid = unsafe { &*self.grid };
        let steps = grid.steps();
        if steps != self.steps {
            self.steps = steps;
            self.since = Instant::now();
            return;
        }
        let stands = self.since.elapsed();
        if !self.failed && stands >= limit {
            self.failed = true;
            grid.fail(grid.no_progress(limit));
        } else if self.failed && stands >= limit + limit.min(GRACE) {
            // Printed first: looking for the lines may fail.
            eprintln!(
                "\n{}. The threads do not end, so the process cannot go on.",
                grid.no_progress(limit)
            );
            for (thread, line) in grid.lines_of_running() {
                eprintln!("{thread} at {line}");
            }
            abort();
        }
    }
}
