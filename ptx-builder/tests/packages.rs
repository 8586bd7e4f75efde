//! Small packages with a kernel, built as their users build them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A profile that would leave calls and source lines in the kernel. The build script fails if there are calls.
const MANIFEST: &str = r#"
[package]
name = "NAME"
version = "0.1.0"
edition = "2024"

[dependencies]
cutlet-device = { path = "REPOSITORY/device" }

[build-dependencies]
cutlet-ptx-builder = { path = "REPOSITORY/ptx-builder" }

[profile.release.package.NAME]
opt-level = 1
overflow-checks = true
debug-assertions = true
debug = true

[workspace]
"#;

/// A build script that copies the PTX to where the test reads it.
const BUILD: &str = r#"
use std::{env, fs, path::Path};

fn main() {
    let generated = Path::new(&env::var("OUT_DIR").unwrap()).join("generated.rs");
    fs::write(generated, "const GENERATED: u32 = 1;").unwrap();
    let built = cutlet_ptx_builder::Builder::new()
        .target("sm_80")
        .leftovers(cutlet_ptx_builder::Leftovers::Deny)
        .build();
    for module in built.modules() {
        fs::copy(&module.path, "seen.ptx").unwrap();
    }
}
"#;

const LIBRARY: &str = r#"
#![no_std]

use cutlet_device::{GlobalMut, kernel};

include!(concat!(env!("OUT_DIR"), "/generated.rs"));

const LETTER: u32 = match option_env!("SMALL_LETTER") {
    Some(letter) => letter.as_bytes()[0] as u32,
    None => 0,
};

/// Adds up.
///
/// # Safety
/// There must be an element.
#[kernel(threads = 32)]
pub unsafe fn add(a: u32, b: u32, sum: GlobalMut<u32>) {
    unsafe { sum.store(0, a + b + 1000 * LETTER + GENERATED) }
}

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
"#;

/// A package in a folder of its own.
struct Small {
    folder: PathBuf,
}

impl Small {
    /// The name must differ from those of other tests: their builds share a folder.
    fn new(name: &str) -> Small {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        let small = Small { folder };
        let repository = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        small.write(
            "Cargo.toml",
            &MANIFEST
                .replace("NAME", name)
                .replace("REPOSITORY", &repository.display().to_string()),
        );
        small.write("build.rs", BUILD);
        small.write("src/lib.rs", LIBRARY);
        fs::copy(
            repository.join("Cargo.lock"),
            small.folder.join("Cargo.lock"),
        )
        .unwrap();
        small
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Builds it with this variable, and returns what cargo says of it.
    fn build(&self, name: &str, value: &str) -> String {
        let (succeeds, said) = self.try_build(name, value);
        assert!(succeeds, "{said}");
        said
    }

    /// Whether it builds with this variable, and what cargo says of it.
    fn try_build(&self, name: &str, value: &str) -> (bool, String) {
        let output = Command::new(env!("CARGO"))
            .current_dir(&self.folder)
            .args(["build", "--verbose", "--target-dir"])
            // With the target folder and the profile of the repository, nothing of the registry is compiled twice.
            .arg(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap())
            .env("CARGO_TERM_COLOR", "never")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
            .env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only")
            .env_remove("CUTLET_LINE_INFO")
            .env(name, value)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), said)
    }

    fn manifest(&self) -> String {
        fs::read_to_string(self.folder.join("Cargo.toml")).unwrap()
    }

    /// Names and texts of the files in a folder.
    fn files(&self, folder: &str) -> BTreeMap<String, String> {
        let entries = fs::read_dir(self.folder.join(folder)).unwrap();
        let files = entries.map(|entry| {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        });
        files.collect()
    }

    fn ptx(&self) -> String {
        fs::read_to_string(self.folder.join("seen.ptx")).unwrap()
    }
}

#[test]
fn kernels_are_compiled_anew_after_an_edit_or_for_another_value_and_not_otherwise() {
    let small = Small::new("edited");
    small.build("SMALL_LETTER", "A");
    assert!(small.ptx().contains("65001"), "{}", small.ptx());
    assert!(!small.ptx().contains(".loc"), "{}", small.ptx());
    let parameters = "\n// cutlet-parameters a: u32, b: u32, sum: *mut u32\n{";
    assert!(small.ptx().contains(parameters), "{}", small.ptx());
    let said = small.build("SMALL_LETTER", "A");
    assert!(said.contains("Fresh edited"), "{said}");

    small.build("SMALL_LETTER", "B");
    assert!(small.ptx().contains("66001"), "{}", small.ptx());

    small.write("src/lib.rs", &LIBRARY.replace("1000 *", "2000 *"));
    small.build("SMALL_LETTER", "B");
    assert!(small.ptx().contains("132001"), "{}", small.ptx());
    let said = small.build("SMALL_LETTER", "B");
    assert!(said.contains("Fresh edited"), "{said}");
}

#[test]
fn ptx_that_a_package_ships_has_no_source_lines_and_the_build_says_so() {
    let small = Small::new("shipped");
    small.write("Cargo.toml.orig", MANIFEST);
    small.write("ptx/shipped.sm_80.ptx", "// shipped\n");
    let said = small.build("CUTLET_LINE_INFO", "1");
    assert!(said.contains("ships has no source lines"), "{said}");
    assert_eq!(small.ptx(), "// shipped\n");
}

#[test]
fn a_package_that_must_ship_its_ptx_does_not_build_without() {
    let small = Small::new("unshipped");
    let required = BUILD.replace(".build()", ".shipped_by(\"make ptx\").build()");
    small.write("build.rs", &required);
    small.write("Cargo.toml.orig", MANIFEST);
    let (succeeds, said) = small.try_build("SMALL_LETTER", "A");
    assert!(!succeeds, "{said}");
    assert!(
        said.contains("`unshipped` carries no PTX for sm_80: run `make ptx` in its repository"),
        "{said}"
    );

    small.write("ptx/unshipped.sm_80.ptx", "// shipped\n");
    small.build("SMALL_LETTER", "A");
    assert_eq!(small.ptx(), "// shipped\n");
}

/// Two kernels that differ by a word, of which one is compiled.
const ALSO: &str = r#"
/// Rounds.
macro_rules! rounding {
    ($name:ident, $type:ty, $($also:tt)*) => {
        pub mod $name {
            use cutlet_device::{Float, GlobalMut, kernel};

            /// # Safety
            /// There must be an element.
            #[kernel(threads = 32, arch = "sm_90" $($also)*)]
            pub unsafe fn $name(a: f32, rounded: GlobalMut<$type>) {
                unsafe { rounded.store(0, <$type as Float>::from_f32(a)) }
            }
        }
    };
}

rounding!(round_bf16, half::bf16, , also = ["f16 for bf16"]);
#[cfg(any(not(target_arch = "nvptx64"), each_format))]
rounding!(round_f16, half::f16,);

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
"#;

/// A build script that puts into `to_ship` what the package ships, and into `seen` what it is built from.
const SHIPPING: &str = r#"
use std::{env, fs, path::PathBuf};

fn main() {
    let built = cutlet_ptx_builder::Builder::new().target("sm_90").build();
    if built.modules().is_empty() {
        return;
    }
    let out = PathBuf::from(env::var("OUT_DIR").unwrap());
    let modules = built.modules().iter().map(|module| module.path.clone());
    for (folder, files) in [
        ("to_ship", built.shipped().collect::<Vec<_>>()),
        ("seen", modules.chain([out.join("ptx.rs")]).collect()),
    ] {
        fs::create_dir_all(folder).unwrap();
        for file in files {
            fs::copy(&file, PathBuf::from(folder).join(file.file_name().unwrap())).unwrap();
        }
    }
}
"#;

#[test]
fn a_kernel_that_differs_by_a_word_is_neither_shipped_nor_embedded() {
    let small = Small::new("also");
    let half = "half = { version = \"2.7\", default-features = false }\n\n[build-dep";
    small.write("Cargo.toml", &small.manifest().replace("[build-dep", half));
    small.write("build.rs", SHIPPING);
    small.write("src/lib.rs", &format!("#![no_std]\n{ALSO}"));
    small.build("SMALL_LETTER", "A");
    let seen = || small.files("seen");
    let compiled = seen();
    assert!(
        compiled["round_f16.sm_90.ptx"].contains("cvt.rn.f16.f32"),
        "{compiled:?}"
    );
    let library = &compiled["ptx.rs"];
    let replaced = "PtxText::Replaced { zlib: ZLIB[0], words: &[::cutlet_device::PtxWord { old: \"bf16\", new: \"f16\" }] }";
    assert!(library.contains(replaced), "{library}");
    assert_eq!(library.matches("include_bytes!").count(), 1, "{library}");

    let shipped = small.files("to_ship");
    let names: Vec<_> = shipped.keys().collect();
    assert_eq!(names, ["copies", "round_bf16.sm_90.ptx"]);
    fs::rename(small.folder.join("to_ship"), small.folder.join("ptx")).unwrap();
    fs::remove_dir_all(small.folder.join("seen")).unwrap();
    small.write("Cargo.toml.orig", MANIFEST);
    // A published package has no results of an earlier build.
    small.write("build.rs", SHIPPING);
    small.build("SMALL_LETTER", "B");
    assert_eq!(seen(), compiled);
}

#[test]
fn the_first_thing_that_cargo_says_is_the_error_in_a_kernel() {
    let small = Small::new("mistaken");
    let unused = "use core::fmt::Debug;\n\n/// Adds up.";
    let library = LIBRARY.replace("/// Adds up.", unused);
    small.write("src/lib.rs", &library.replace("a + b", "a + true"));
    let (succeeds, said) = small.try_build("SMALL_LETTER", "A");
    assert!(!succeeds, "{said}");
    let errors = said.lines().filter(|line| line.starts_with("error"));
    let errors: Vec<&str> = errors.collect();
    let first = "error: mistaken@0.1.0: error[E0277]: cannot add `bool` to `u32`";
    assert_eq!(errors[0], first, "{said}");
    assert!(errors[1].contains("--> src/lib.rs:"), "{said}");
    assert!(!said.contains("unused import"), "{said}");
    assert!(!said.contains("custom build command"), "{said}");

    small.write("src/lib.rs", &library);
    small.build("SMALL_LETTER", "A");
}

/// A kernel with instructions of Hopper alone.
const HOPPER: &str = r#"
/// Waits for nothing.
#[kernel(threads = 32)]
pub fn waits(#[shared] full: cutlet_device::mbarrier::Mbarrier) {
    full.wait(0);
}
"#;

#[test]
fn a_kernel_that_its_target_cannot_run_does_not_build() {
    let small = Small::new("too_new");
    let marker = "#[cfg(not(target_arch";
    small.write(
        "src/lib.rs",
        &LIBRARY.replace(marker, &format!("{HOPPER}\n{marker}")),
    );
    let (succeeds, said) = small.try_build("SMALL_LETTER", "A");
    assert!(!succeeds, "{said}");
    let parts = [
        "error: too_new@0.1.0: kernel `waits` of `too_new` for sm_80 uses `mbarrier.try_wait",
        "which begins with sm_90: give the kernel `arch = \"sm_90\"`, or leave sm_80 out of the targets",
    ];
    assert!(parts.iter().all(|part| said.contains(part)), "{said}");

    let newer = HOPPER.replace("threads = 32", "threads = 32, arch = \"sm_90\"");
    small.write(
        "src/lib.rs",
        &LIBRARY.replace(marker, &format!("{newer}\n{marker}")),
    );
    small.build("SMALL_LETTER", "A");
}

#[test]
fn a_kernel_with_more_shared_memory_than_its_target_has_does_not_build() {
    let small = Small::new("too_large");
    small.write(
        "src/lib.rs",
        &LIBRARY.replace("threads = 32", "threads = 32, shared = 192 * 1024"),
    );
    let (succeeds, said) = small.try_build("SMALL_LETTER", "A");
    assert!(!succeeds, "{said}");
    let expected = "error: too_large@0.1.0: kernel `add` of `too_large` for sm_80 has 196608 bytes of shared memory, but \
                    a block of sm_80 has at most 166912";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_conversion_in_software_is_a_warning() {
    let small = Small::new("converting");
    small.write(
        "Cargo.toml",
        &small.manifest().replace(
            "[build-dep",
            "half = { version = \"2.7\", default-features = false }\n\n[build-dep",
        ),
    );
    small.write(
        "build.rs",
        &BUILD.replace("Leftovers::Deny", "Leftovers::Warn"),
    );
    let rounded = |by: &str| {
        LIBRARY.replace(
            "a + b",
            &format!("a + u32::from({by}(f32::from_bits(b)).to_bits())"),
        )
    };
    small.write("src/lib.rs", &rounded("half::bf16::from_f32"));
    let said = small.build("SMALL_LETTER", "A");
    let expected = "warning: converting@0.1.0: kernel `add` of `converting` for sm_80 converts in software, by \
                    `half::bf16::from_f32`: call `cutlet_device::Float::from_f32(value)`, which is one instruction";
    assert!(said.contains(expected), "{said}");

    small.write(
        "src/lib.rs",
        &rounded("<half::bf16 as cutlet_device::Float>::from_f32"),
    );
    let said = small.build("SMALL_LETTER", "A");
    assert!(!said.contains("in software"), "{said}");
}
