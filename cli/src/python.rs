//! The Python that the command asks about PyTorch.

use std::ffi::OsString;

/// The variable that names it.
pub const VARIABLE: &str = "CUTLET_PYTHON";

/// The Python that the variable names, else `python3`.
pub fn python() -> OsString {
    std::env::var_os(VARIABLE).unwrap_or_else(|| "python3".into())
}
