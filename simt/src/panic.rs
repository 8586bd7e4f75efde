//! Panics in kernels: caught with message and place, and kept off the screen.

use std::any::Any;
use std::cell::Cell;
use std::panic;
use std::sync::Once;

use crate::context::in_kernel;

/// What is known of a panic.
#[derive(Default)]
pub(crate) struct PanicReport {
    pub(crate) message: String,
    /// `file:line:column`, empty if unknown.
    pub(crate) location: String,
}

thread_local! {
    /// Where the last panic of a kernel on this OS thread happened.
    static LOCATION: Cell<Option<String>> = const { Cell::new(None) };
}

impl PanicReport {
    /// Reads what a caught panic brought along.
    pub(crate) fn new(payload: &(dyn Any + Send)) -> Self {
        let message = if let Some(text) = payload.downcast_ref::<&str>() {
            (*text).to_owned()
        } else if let Some(text) = payload.downcast_ref::<String>() {
            text.clone()
        } else {
            "panicked with a value that is no text".to_owned()
        };
        Self {
            message,
            location: LOCATION.take().unwrap_or_default(),
        }
    }
}

/// Puts a panic hook in front of the present one that notes where a kernel panicked instead of
/// printing it, and passes on every other panic.
pub(crate) fn install_hook() {
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
