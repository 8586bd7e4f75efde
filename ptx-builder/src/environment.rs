//! Keeps the outer build's settings out of the nested one.

use std::env;
use std::ffi::{OsStr, OsString};
use std::process::Command;

/// Variables of cargo for places and connections, which do not change how it compiles.
const KEPT: [&str; 7] = [
    "CARGO_HOME",
    "CARGO_HTTP_",
    "CARGO_NET_",
    "CARGO_REGISTRIES_",
    "CARGO_REGISTRY_",
    "CARGO_TERM_",
    "CARGO_MAKEFLAGS",
];

/// Other variables that change what rustc or cargo do.
const DROPPED: [&str; 12] = [
    "CLIPPY_ARGS",
    "CLIPPY_CONF_DIR",
    "RUSTC",
    "RUSTC_BOOTSTRAP",
    "RUSTC_LINKER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_TOOLCHAIN",
    "SYSROOT",
];

/// Library paths of the loader. cargo and rustup add the running toolchain's libraries to them.
const LIBRARY_PATHS: [&str; 2] = ["LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"];

/// Removes the variables that an outer cargo, rustup, clippy or rustdoc set from the command's environment.
pub(crate) fn scrub(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if is_outer(&name.to_string_lossy()) {
            command.env_remove(name);
        }
    }
    for name in LIBRARY_PATHS {
        if let Some(paths) = env::var_os(name) {
            match without_toolchains(&paths) {
                Some(paths) => command.env(name, paths),
                None => command.env_remove(name),
            };
        }
    }
}

/// Whether an outer build sets this variable, so that no kernel sees its value.
pub(crate) fn is_outer(name: &str) -> bool {
    let of_cargo = name.starts_with("CARGO") || name.starts_with("__CARGO");
    DROPPED.contains(&name) || of_cargo && !KEPT.iter().any(|kept| name.starts_with(kept))
}

/// The paths without those that hold libraries of a Rust toolchain: the compiler of another toolchain would load these.
fn without_toolchains(paths: &OsStr) -> Option<OsString> {
    let kept: Vec<_> = env::split_paths(paths)
        .filter(|path| !path.join("rustlib").exists())
        .collect();
    if kept.is_empty() {
        return None;
    }
    env::join_paths(kept).ok()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn settings_of_the_outer_build_are_dropped_and_the_way_to_registries_is_kept() {
        for name in [
            "CARGO_ENCODED_RUSTFLAGS",
            "CARGO_TARGET_DIR",
            "CARGO_BUILD_TARGET",
            "CARGO_PROFILE_RELEASE_LTO",
            "CARGO_CFG_TARGET_ARCH",
            "CARGO",
            "__CARGO_TEST_CHANNEL_OVERRIDE_DO_NOT_USE_THIS",
            "RUSTC_WORKSPACE_WRAPPER",
            "CLIPPY_ARGS",
        ] {
            assert!(is_outer(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "CARGO_HOME",
            "CARGO_NET_OFFLINE",
            "CARGO_HTTP_PROXY",
        ] {
            assert!(!is_outer(name), "{name}");
        }
    }

    #[test]
    fn libraries_of_a_toolchain_are_dropped() {
        let output = Command::new("rustc").args(["--print", "sysroot"]).output();
        let sysroot = String::from_utf8(output.unwrap().stdout).unwrap();
        let toolchain = Path::new(sysroot.trim()).join("lib");
        let other = env::temp_dir();
        let paths = env::join_paths([&toolchain, &other]).unwrap();
        assert_eq!(without_toolchains(&paths), Some(other.into()));
        assert_eq!(without_toolchains(toolchain.as_os_str()), None);
    }
}
