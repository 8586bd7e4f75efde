//! Folders of NVIDIA's libraries that the system's loader does not know: those of a CUDA toolkit and of Python's packages.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The library folders of a CUDA toolkit.
pub fn toolkit_folders() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_HOME", "CUDA_PATH"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .collect();
    roots.push(PathBuf::from("/usr/local/cuda"));
    roots
        .iter()
        .flat_map(|root| [root.join("lib64"), root.join("bin")])
        .collect()
}

/// These folders below each `site-packages` of the first Python on the path, which may be a virtual environment's.
pub fn python_folders(below: &[&str]) -> Vec<PathBuf> {
    let program = "import sys; print('\\n'.join(sys.path))";
    let answers = ["python3", "python"].iter().find_map(|python| {
        let output = Command::new(python).args(["-c", program]).output().ok()?;
        output.status.success().then_some(output.stdout)
    });
    let paths = String::from_utf8_lossy(&answers.unwrap_or_default()).into_owned();
    let site_packages = paths.lines().filter(|line| !line.is_empty());
    site_packages
        .flat_map(|path| below.iter().map(move |folder| Path::new(path).join(folder)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pythons_folders_are_below_its_packages() {
        for folder in python_folders(&["nvidia/nccl/lib"]) {
            assert!(folder.ends_with("nvidia/nccl/lib"), "{folder:?}");
        }
    }
}
