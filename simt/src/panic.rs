//! Panics in kernels: caught with their message and location, and not printed.

use std::any::Any;
use std::cell::Cell;
use std::panic;
use std::sync::Once;

/// A caught panic.
#[derive(Default)]
pub(crate) struct PanicReport {
    pub(crate) message: String,
    /// `file:line:column`; empty if unknown.
    pub(crate) location: String,
}

thread_local! {
    /// Location of the last panic of a kernel on this OS thread.
    static LOCATION: Cell<Option<String>> = const { Cell::new(None) };
}

impl PanicReport {
    /// The report of a panic with this payload that the calling OS thread has just caught.
    pub(crate) fn new(payload: &(dyn Any + Send)) -> Self {
        let message = if let Some(text) = payload.downcast_ref::<&str>() {
            (*text).to_owned()
        } else if let Some(text) = payload.downcast_ref::<String>() {
            text.clone()
        } else {
            "panicked with a value that is not text".to_owned()
        };
        Self {
            message,
            location: LOCATION.take().unwrap_or_default(),
        }
    }
}

/// Installs a panic hook, once. Where `in_kernel` returns true, the hook notes the location of a panic instead of
/// printing it. It passes every other panic on to the hook before it.
pub(crate) fn install_hook(in_kernel: fn() -> bool) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if in_kernel() {
                LOCATION.set(info.location().map(ToString::to_string));
            } else {
                previous(info);
            }
        }));
    });
}
