//! Checks programs that need a CUDA toolkit because of what else is in them, on machines without one.
//!
//! candle compiles its own kernels with nvcc, in a build script. cudarc asks nvcc for its version, and can link NVIDIA's
//! static libraries. For `cargo check`, their machine code does not matter. So a folder stands in for the toolkit: its
//! libraries are empty, and its nvcc is xtask, which under that name makes the files that nvcc is asked for, and leaves
//! them empty.

use std::path::{Path, PathBuf};

use crate::{
    process::{self, Outcome, cargo},
    workspace::target_dir,
};

/// The version that the stand-in claims, in the words of nvcc. cudarc reads the fourth line.
const VERSION: &str = "\
nvcc: NVIDIA (R) Cuda compiler driver
(this one compiles nothing)
for `cargo check`
Cuda compilation tools, release 13.0, V13.0.88";

/// The libraries that cudarc links statically, as far as cutlet uses them.
const STATIC_LIBRARIES: [&str; 2] = ["libstdc++.a", "libcudart_static.a"];

/// Each program's check. Features are those of all packages of a program, so cutlet's and the other's meet here.
const CHECKS: [&str; 2] = [
    // candle has cudarc link the driver dynamically.
    "clippy --package cutlet-candle --all-targets --features cuda -- --deny warnings",
    "check --package cutlet-host --features cudarc/static-linking,cudarc/cuda-version-from-build-system",
];

/// Runs the checks.
pub fn run() -> Outcome {
    let toolkit = target_dir()?.join("no-cuda-toolkit");
    fill(&toolkit)
        .map_err(|error| format!("cannot make the folder {}: {error}", toolkit.display()))?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::iter::once(toolkit.join("bin")).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(first).map_err(|error| format!("PATH: {error}"))?;
    for check in CHECKS {
        process::run(
            cargo(check)
                .env("PATH", &path)
                .env("NVCC", nvcc_in(&toolkit))
                .env("CUDA_HOME", &toolkit)
                // Otherwise candle asks the GPU.
                .env("CUDA_COMPUTE_CAP", "90"),
        )?;
    }
    Ok(())
}

/// Makes the folder that stands in for a toolkit.
fn fill(toolkit: &Path) -> std::io::Result<()> {
    for folder in ["bin", "include", "lib64"] {
        std::fs::create_dir_all(toolkit.join(folder))?;
    }
    std::fs::copy(std::env::current_exe()?, nvcc_in(toolkit))?;
    // By this file, cudarc knows a toolkit.
    std::fs::write(toolkit.join("include/cuda.h"), "")?;
    for library in STATIC_LIBRARIES {
        std::fs::write(toolkit.join("lib64").join(library), "!<arch>\n")?;
    }
    Ok(())
}

fn nvcc_in(toolkit: &Path) -> PathBuf {
    let name = format!("nvcc{}", std::env::consts::EXE_SUFFIX);
    toolkit.join("bin").join(name)
}

/// Whether this program was started under the name of nvcc.
pub fn stands_in_for_nvcc() -> bool {
    let program = std::env::args_os().next().map(PathBuf::from);
    program.is_some_and(|it| it.file_stem().is_some_and(|stem| stem == "nvcc"))
}

/// Does as nvcc, but compiles nothing.
pub fn nvcc(arguments: &[String]) -> Outcome {
    let after = |option: &str| {
        let at = arguments.iter().position(|it| it == option)?;
        arguments.get(at + 1).map(Path::new)
    };
    if arguments.iter().any(|it| it == "--version") {
        println!("{VERSION}");
        return Ok(());
    }
    let made = match (after("-o"), after("--output-directory"), arguments.last()) {
        (Some(file), ..) => file.to_owned(),
        (None, Some(folder), Some(source)) => {
            let ptx = Path::new(source).with_extension("ptx");
            folder.join(ptx.file_name().unwrap_or_default())
        }
        _ => return Err(format!("no file was asked for by {arguments:?}")),
    };
    std::fs::write(&made, "").map_err(|error| format!("cannot write {}: {error}", made.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stand_in_makes_what_nvcc_is_asked_for() {
        let folder = std::env::temp_dir().join(format!("xtask-nvcc-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let shown = folder.display();
        nvcc(&words(format!("-c -o {shown}/a.o -O3 src/a.cu"))).unwrap();
        nvcc(&words(format!(
            "--ptx --output-directory {shown} -O3 src/b.cu"
        )))
        .unwrap();
        assert!(folder.join("a.o").exists() && folder.join("b.ptx").exists());
        assert!(nvcc(&words("-O3".to_owned())).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
        let fourth = VERSION.lines().nth(3).unwrap();
        assert!(fourth.contains("release 13.0, "));
    }
}
