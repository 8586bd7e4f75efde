//! `cutlet new`: what it makes, and what it refuses. `cargo xtask test` builds and runs such a package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A folder in which nothing is.
fn empty_folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn new(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .arg("new")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command starts")
}

fn complaint(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_package_is_the_example_under_its_own_name() {
    let folder = empty_folder("new");
    let made = new(&folder, &["my-kernels"]);
    assert!(made.status.success(), "{}", complaint(&made));
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/own-kernel");
    for file in ["build.rs", "src/main.rs", ".github/workflows/ci.yml"] {
        let found = fs::read_to_string(folder.join("my-kernels").join(file)).expect("a file");
        let expected = fs::read_to_string(example.join(file)).expect("a file");
        assert_eq!(found, expected.replace("own_kernel", "my_kernels"));
    }
    let printed = String::from_utf8_lossy(&made.stdout);
    for line in ["cd my-kernels\n", "cargo test ", "cutlet ptx "] {
        assert!(printed.contains(line), "{printed}");
    }
}

#[test]
fn what_cannot_become_a_package_is_refused() {
    let folder = empty_folder("new-refused");
    fs::write(folder.join("file"), "").expect("a file is written");
    for (arguments, expected) in [
        (&["file"][..], "file exists and is not empty"),
        (&["."], "`.` ends in no name of a package"),
        (&["1st"], "begin with a letter"),
        (&["mine", "--path", "."], ". is no checkout of cutlet"),
    ] {
        let refused = new(&folder, arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}");
        let complaint = complaint(&refused);
        assert!(complaint.contains(expected), "{complaint}");
    }
    assert!(!folder.join("mine").exists());
}
