//! Locking, whatever became of who held the lock before.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the mutex. What it guards is whole also where a thread panicked with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
