//! OS threads that help a launch. They start once, and sleep between launches.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;

/// Work that helpers may join until `run` withdraws it.
struct Offer {
    work: Work,
    running: Mutex<usize>,
    idle: Condvar,
}

/// The work of a launch. It outlives its offer (see [`run`]).
struct Work(*const (dyn Fn() + Sync));

// SAFETY: the closure is `Sync`: any thread may call it.
unsafe impl Send for Work {}
// SAFETY: as above.
unsafe impl Sync for Work {}

struct Pool {
    helpers: usize,
    offers: Mutex<VecDeque<Arc<Offer>>>,
    offered: Condvar,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<&'static Pool> = OnceLock::new();
    POOL.get_or_init(|| {
        let helpers = thread::available_parallelism().map_or(1, usize::from) - 1;
        let pool: &'static Pool = Box::leak(Box::new(Pool {
            helpers,
            offers: Mutex::new(VecDeque::new()),
            offered: Condvar::new(),
        }));
        for number in 0..helpers {
            // Without a helper that cannot be started, a launch has one core less: the launching thread works in any
            // case.
            let _ = thread::Builder::new()
                .name(format!("cutlet-simt-{number}"))
                .spawn(move || pool.help());
        }
        pool
    })
}

impl Pool {
    fn help(&self) -> ! {
        loop {
            let offer = {
                let mut offers = lock(&self.offers);
                loop {
                    if let Some(offer) = offers.pop_front() {
                        // Counted while the offers are locked: from here on `run` waits for this helper.
                        *lock(&offer.running) += 1;
                        break offer;
                    }
                    offers = self
                        .offered
                        .wait(offers)
                        .unwrap_or_else(PoisonError::into_inner);
                }
            };
            let _joined = Joined(&offer);
            // SAFETY: while `running` counts this helper, `run` does not return, and the closure lives.
            unsafe { (*offer.work.0)() };
        }
    }
}

/// A helper that has joined an offer. It is counted out at the end, also by a panic.
struct Joined<'o>(&'o Offer);

impl Drop for Joined<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.0.running);
        *running -= 1;
        if *running == 0 {
            self.0.idle.notify_all();
        }
    }
}

/// Withdraws an offer when dropped, and waits for the helpers that have joined.
struct Withdraw<'p>(&'p Pool, Arc<Offer>);

impl Drop for Withdraw<'_> {
    fn drop(&mut self) {
        lock(&self.0.offers).retain(|offer| !Arc::ptr_eq(offer, &self.1));
        let mut running = lock(&self.1.running);
        while *running > 0 {
            running = self
                .1
                .idle
                .wait(running)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Calls `work` on the calling thread and, at the same time, on up to `cores - 1` helpers. Returns when all calls have
/// returned.
///
/// A panic of `work` on the calling thread is passed on. `work` must not panic on a helper, which would end with it.
pub(crate) fn run(cores: usize, work: &(dyn Fn() + Sync)) {
    let pool = pool();
    let helpers = pool.helpers.min(cores - 1);
    if helpers == 0 {
        return work();
    }
    // SAFETY: only the lifetime changes. `Withdraw` keeps this function from returning or unwinding while a helper
    // uses the closure. Afterwards no helper can join.
    let unbounded = unsafe {
        std::mem::transmute::<&(dyn Fn() + Sync), *const (dyn Fn() + Sync + 'static)>(work)
    };
    let offer = Arc::new(Offer {
        work: Work(unbounded),
        running: Mutex::new(0),
        idle: Condvar::new(),
    });
    lock(&pool.offers).extend(std::iter::repeat_n(&offer, helpers).cloned());
    let _withdraw = Withdraw(pool, offer);
    for _ in 0..helpers {
        pool.offered.notify_one();
    }
    work();
}
