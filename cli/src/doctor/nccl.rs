//! NVIDIA's library for several GPUs, and its version.

use std::path::PathBuf;

use cutlet_cli::nvidia_folders::{python_folders, toolkit_folders};
use libloading::Library;

use super::finding::Finding;

const TOPIC: &str = "NCCL";
/// The library's file.
const FILE: &str = "libnccl.so.2";
/// Folders of the library in Python's `site-packages`.
const PYTHON_FOLDERS: [&str; 2] = ["nvidia/nccl/lib", "nvidia/cu13/lib"];

/// The finding about the library.
pub fn nccl() -> Finding {
    match version_of(FILE.into()) {
        Some(version) => Finding::found(
            TOPIC,
            format!("{version} in {FILE}, from the system's loader"),
        ),
        None => in_folders(),
    }
}

fn in_folders() -> Finding {
    let folders = toolkit_folders().into_iter();
    let folders = folders.chain(python_folders(&PYTHON_FOLDERS));
    let mut files = folders.map(|folder| folder.join(FILE));
    let found = files.find_map(|file| {
        let there = file.is_file().then(|| file.clone())?;
        Some((version_of(there)?, file))
    });
    match found {
        Some((version, file)) => Finding::found(TOPIC, format!("{version} in {}", file.display())),
        None => Finding::none(
            TOPIC,
            format!("no {FILE} (only programs that join several GPUs use it)"),
            "`pip install nvidia-nccl-cu13`, or Debian's and NVIDIA's package libnccl2",
        ),
    }
}

/// The version of the library in a file; `None` if it cannot be loaded.
fn version_of(file: PathBuf) -> Option<String> {
    // SAFETY: NVIDIA's initialisers can run at any time.
    let library = unsafe { Library::new(file) }.ok()?;
    let mut version = 0;
    // SAFETY: the type is that of NCCL's header.
    let get: libloading::Symbol<'_, unsafe extern "C" fn(*mut i32) -> i32> =
        unsafe { library.get(b"ncclGetVersion") }.ok()?;
    // SAFETY: the function writes one integer, which lives.
    let status = unsafe { get(&mut version) };
    (status == 0).then(|| in_words(version))
}

/// A version as NCCL counts since 2.9: 22703 is 2.27.3.
fn in_words(version: i32) -> String {
    let (major, minor, patch) = (version / 10_000, version / 100 % 100, version % 100);
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers() {
        assert_eq!(in_words(22703), "2.27.3");
    }

    #[test]
    fn another_library_is_not_this_one() {
        assert_eq!(version_of("libc.so.6".into()), None);
        assert_eq!(version_of("no-such-library.so".into()), None);
    }
}
