//! The PTX that a published package carries in its folder `ptx/`.

use std::path::{Path, PathBuf};

/// The folder, if this is a published package that has one.
///
/// `cargo package` leaves the manifest as it was written in `Cargo.toml.orig`. In a working copy the
/// folder is only what the next package will carry, and may be older than the kernels.
pub(crate) fn folder(package: &Path) -> Option<PathBuf> {
    let folder = package.join("ptx");
    (package.join("Cargo.toml.orig").exists() && folder.is_dir()).then_some(folder)
}
