//! The calculator for layouts as a WebAssembly module without imports.
//!
//! A request and its answer are JSON. The page writes a request into memory from [`allocate`], calls [`answer`], and
//! reads the answer: four bytes of length, then the text.
//!
//! WebAssembly has no unwinding, so an operation that panics to refuse ends the call. The page then reads the panic's
//! message from [`refusal`], and goes on with a fresh instance of the module.

mod request;

use std::sync::{Mutex, Once, PoisonError};

pub use request::respond;

/// The message of the last panic.
static REFUSAL: Mutex<String> = Mutex::new(String::new());

/// Memory for a request of `length` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr()
}

/// The answer to a request, which it frees.
///
/// # Safety
/// The request is memory from [`allocate`] with the same length, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(request: *mut u8, length: usize) -> *mut u8 {
    record_panics();
    // SAFETY: the caller promises that `allocate` made this slice and that nobody else uses it.
    let request = unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(request, length)) };
    with_length(&respond(&String::from_utf8_lossy(&request)))
}

/// The message of the panic that ended the last call.
#[unsafe(no_mangle)]
pub extern "C" fn refusal() -> *mut u8 {
    with_length(&REFUSAL.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Frees an answer.
///
/// # Safety
/// The text is one that [`answer`] or [`refusal`] returned, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(text: *mut u8) {
    // SAFETY: the caller promises that `with_length` made this text: its length is in its first four bytes.
    let length = u32::from_le_bytes(unsafe { *text.cast::<[u8; 4]>() }) as usize;
    let whole = std::ptr::slice_from_raw_parts_mut(text, length + 4);
    // SAFETY: as above, and `with_length` leaked a boxed slice of this length.
    drop(unsafe { Box::from_raw(whole) });
}

/// A text behind its length.
fn with_length(text: &str) -> *mut u8 {
    let mut bytes = Vec::with_capacity(text.len() + 4);
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text.as_bytes());
    Box::leak(bytes.into_boxed_slice()).as_mut_ptr()
}

fn record_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let message = panic
                .payload_as_str()
                .unwrap_or("the operation has no result");
            *REFUSAL.lock().unwrap_or_else(PoisonError::into_inner) = message.to_owned();
        }));
    });
}
