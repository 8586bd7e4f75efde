//! Refusals without a panic's message: an operation on layouts that panics to refuse is caught, and says why itself.

use std::cell::Cell;
use std::panic;
use std::sync::Once;

use cutlet_calculator::{Refusal, caught};

thread_local! {
    static IS_QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function. If it panics, the refusal has the panic's message, which is not printed.
///
/// # Errors
/// Those of the function.
pub fn quietly<T>(function: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |found| {
            if !IS_QUIET.get() {
                others(found);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = caught(function);
    IS_QUIET.set(false);
    result
}
