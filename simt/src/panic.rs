//! Panics in kernels: caught with their message and location, and not printed.

use std::any::Any;
use std::cell::Cell;
use std::mem;
use std::panic::{self, AssertUnwindSafe, Location, catch_unwind};
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
    /// The report of a panic with this payload that the calling OS thread has just caught. The payload is dropped, and a
    /// panic of its destructor goes no further.
    #[cold]
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let message = if let Some(text) = payload.downcast_ref::<&str>() {
            (*text).to_owned()
        } else if let Some(text) = payload.downcast_ref::<String>() {
            text.clone()
        } else {
            "panicked with a value that is not text".to_owned()
        };
        let location = LOCATION.take().unwrap_or_default();
        discard(payload);
        Self { message, location }
    }
}

/// Drops a payload. It may be of any type, and a panic of its destructor must not unwind through the scheduler.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Its destructor may panic as well, with a payload whose destructor panics, and so on.
        mem::forget(another);
    }
}

impl PanicReport {
    /// The report of what is wrong at a line.
    pub(crate) fn at(line: &Location<'_>, message: &str) -> Self {
        Self {
            message: message.to_owned(),
            location: line.to_string(),
        }
    }
}

/// How the messages begin of panics after which the process ends. Those of a kernel would not be seen otherwise.
const FATAL: [&str; 3] = [
    "panic in a destructor during cleanup",
    "panic in a function that cannot unwind",
    "unsafe precondition(s) violated",
];

/// Installs a panic hook, once. Where `running` names a running GPU thread, the hook notes the location of a panic
/// instead of printing it. It passes every other panic on to the hook before it.
pub(crate) fn install_hook(running: fn() -> Option<String>) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let Some(running) = running() else {
                return previous(info);
            };
            let message = info.payload_as_str().unwrap_or_default();
            if FATAL.iter().any(|fatal| message.starts_with(fatal)) {
                let before = LOCATION.take();
                let before = before.map_or(String::new(), |at| {
                    format!(", while it unwinds because of a panic at {at}")
                });
                let message = message.lines().next().unwrap_or_default();
                eprintln!("\n{running}: {message}{before}. The process cannot go on.");
                return previous(info);
            }
            LOCATION.set(info.location().map(ToString::to_string));
        }));
    });
}
