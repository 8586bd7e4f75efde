//! `cutlet tune` on the CPU backend: files that it writes, adds to and refuses, recorded problems, and what a program
//! says about a tuning file that it ignores.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use cutlet::{Device, ProblemKey, Tuning, TuningEntry, recorded_problems};

/// The program with these arguments and environment variables.
fn cutlet(arguments: &str, variables: &[(&str, &Path)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cutlet"));
    command.args(arguments.split_whitespace());
    command.env_remove(Tuning::VARIABLE);
    command.envs(variables.iter().copied());
    command.output().expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

/// What a successful command prints.
fn printed(output: &Output) -> String {
    let printed = text(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        text(&output.stderr)
    );
    printed
}

/// Asserts that the output is a refusal in a line with these words.
fn assert_refused(output: &Output, expected: &str) {
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stdout));
    let error = text(&output.stderr);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(expected), "{error}");
}

/// A path at which there is no file.
fn path(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from an earlier run.
    let _ = fs::remove_file(&path);
    path
}

/// The key of a product of f32 with packed matrices, where both leading dimensions are multiples of 128 bytes.
fn key([m, n, k]: [usize; 3], b: &str) -> ProblemKey {
    let line = format!(
        "operands=f32 c=f32 precision=exact m={m} n={n} k={k} a=row b={b} alignments=128,128,128 beta=0 bias=none \
         residual=none activation=none"
    );
    line.parse().unwrap()
}

/// A file with an entry that names this kernel.
fn file_with(name: &str, kernel: &str) -> PathBuf {
    let path = path(name);
    let mut tuning = Tuning::new(&Device::cpu());
    tuning.insert(TuningEntry {
        problem: key([32, 64, 32], "row"),
        kernel: kernel.to_string(),
        microseconds: 1.0,
    });
    tuning.save(&path).unwrap();
    path
}

/// A small GEMM.
const GEMM: &str = "gemm --m 32 --n 64 --k 32 --backend cpu --check --iters 1";

#[test]
fn shapes_are_tuned_and_added_to_the_file() {
    let file = path("shapes.tuning");
    let tune = |shapes: &str| {
        let command = format!(
            "tune --backend cpu --rounds 5 --dtype f32,tf32,e4m3,e4m3-outer,e4m3-blocks --shapes {shapes}"
        );
        printed(&cutlet(&format!("{command} --out {}", file.display()), &[]))
    };
    let said = tune("16x32x32");
    for expected in [
        "f32 16x32x32 nt ",
        "f32 16x32x32 nt in tf32 ",
        "F8E4M3 16x32x32 nt into bf16 outer scales ",
        "F8E4M3 16x32x32 nt into bf16 block scales ",
        "5 problems measured",
        " 0 failed",
    ] {
        assert!(said.contains(expected), "no {expected:?} in {said}");
    }
    let tuning = Tuning::load(&file).unwrap();
    assert_eq!(tuning.mismatch(&Device::cpu()), None);
    // Only gains are entries, and the table says which.
    let written = said
        .lines()
        .filter(|line| line.ends_with(" written"))
        .count();
    assert_eq!(tuning.entries().len(), written);
    for entry in tuning.entries() {
        assert!(said.contains(&entry.kernel), "{said}");
    }
    // Entries of other problems stay.
    let mut tuning = tuning;
    let other = key([32, 64, 32], "row");
    tuning.insert(TuningEntry {
        problem: other,
        kernel: "kept".to_string(),
        microseconds: 1.0,
    });
    tuning.save(&file).unwrap();
    tune("5x7x9");
    let tuning = Tuning::load(&file).unwrap();
    assert!(tuning.entries().iter().any(|entry| entry.problem == other));
}

#[test]
fn problems_of_a_program_are_recorded_once_and_tuned() {
    let (recorded, file) = (path("recorded.problems"), path("recorded.tuning"));
    let record = [("CUTLET_RECORD", &*recorded)];
    for options in [
        "",
        "--iters 3",
        "--beta 1",
        "--b col --bias --activation gelu",
        "--dtype f32 --c-dtype bf16 --beta 2",
        "--m 31 --c col",
        "--dtype e4m3 --c-dtype bf16 --scales outer",
    ] {
        let gemm = GEMM.replace("--iters 1", "");
        printed(&cutlet(
            &format!("gemm {}", merged(&gemm, options)),
            &record,
        ));
    }
    let keys = recorded_problems(&recorded).unwrap();
    assert_eq!(keys.len(), 6, "{keys:?}");
    assert_eq!(keys[0], key([32, 64, 32], "row"));
    let tune = format!(
        "tune --backend cpu --rounds 5 --recorded {} --out {}",
        recorded.display(),
        file.display()
    );
    let said = printed(&cutlet(&tune, &[]));
    for expected in [
        "f32 32x64x32 nn beta 1 ",
        "f32 32x64x32 nt bias+gelu ",
        "f32 32x64x32 nn into bf16 any beta ",
        "f32 64x31x32 tt ",
        "F8E4M3 32x64x32 nn into bf16 outer scales ",
        "6 problems measured",
        "0 left out, 0 failed",
    ] {
        assert!(said.contains(expected), "no {expected:?} in {said}");
    }
    // Tuning records nothing.
    assert_eq!(recorded_problems(&recorded).unwrap().len(), 6);
}

/// Options in which a later one replaces an earlier one of its name.
fn merged(before: &str, after: &str) -> String {
    let mut words: Vec<&str> = before.split_whitespace().skip(1).collect();
    let later: Vec<&str> = after.split_whitespace().collect();
    for pair in later.windows(2).filter(|pair| pair[0].starts_with("--")) {
        if let Some(at) = words.iter().position(|word| *word == pair[0]) {
            words.drain(at..at + 2);
        }
    }
    words.extend(later);
    words.join(" ")
}

#[test]
fn a_suite_is_tuned_with_its_batches() {
    let (suite, file) = (path("own.toml"), path("suite.tuning"));
    let entries = "about = \"mine\"\n[[gemm]]\nmnk = [[8, 16, 24]]\nepilogue = \"bias+relu\"\n[[gemm]]\n\
                   mnk = [[8, 16, 24]]\nbatch = 3\n";
    fs::write(&suite, entries).unwrap();
    let tune = format!(
        "tune --backend cpu --rounds 5 --dtype f32 --suite {} --out {}",
        suite.display(),
        file.display()
    );
    let said = printed(&cutlet(&tune, &[]));
    for expected in [
        "f32 8x16x24 nt bias+relu ",
        "f32 3 × 8x16x24 nt ",
        "2 problems measured",
        "0 left out, 0 failed",
    ] {
        assert!(said.contains(expected), "no {expected:?} in {said}");
    }
}

#[test]
fn a_file_of_another_device_or_version_is_ignored_with_a_line() {
    let file = file_with("other.tuning", "some_kernel");
    let right = fs::read_to_string(&file).unwrap();
    let line = |name: &str| right.lines().find(|line| line.starts_with(name)).unwrap();
    let variable = [(Tuning::VARIABLE, &*file)];
    let quiet = cutlet(GEMM, &variable);
    printed(&quiet);
    assert_eq!(text(&quiet.stderr), "");
    for (name, other, expected) in [
        (
            "kernels=",
            "kernels=0123456789abcdef",
            "its 1 entries are ignored; run `cutlet tune` again",
        ),
        (
            "cutlet=",
            "cutlet=0.0.1",
            "it is of cutlet 0.0.1 with kernels",
        ),
        (
            "device=",
            "device=NVIDIA H200",
            "it was made on NVIDIA H200 (",
        ),
    ] {
        fs::write(&file, right.replace(line(name), other)).unwrap();
        let output = cutlet(GEMM, &variable);
        printed(&output);
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(
            said.contains(&format!("cutlet: the tuning file {}", file.display())),
            "{said}"
        );
        assert!(said.contains(expected), "{said}");
        let out = format!(
            "--backend cpu --shapes 2x2x2 --dtype f32 --out {}",
            file.display()
        );
        assert_refused(
            &cutlet(&format!("tune {out}"), &[]),
            "cannot be added to: it",
        );
    }
}

#[test]
fn a_damaged_or_missing_file_is_said_once_and_gemms_run() {
    let file = file_with("damaged.tuning", "some_kernel");
    let right = fs::read_to_string(&file).unwrap();
    fs::write(&file, right.replace("precision=exact", "precision=rough")).unwrap();
    let missing = path("missing.tuning");
    for (file, expected) in [
        (
            &file,
            "line 8: precision is `rough`, which is none of exact, tf32, 3xtf32",
        ),
        (&missing, "reading it failed"),
    ] {
        let output = cutlet(GEMM, &[(Tuning::VARIABLE, file)]);
        printed(&output);
        let said = text(&output.stderr);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let out = format!("--backend cpu --shapes 2x2x2 --out {}", file.display());
    assert_refused(&cutlet(&format!("tune {out}"), &[]), "line 8: precision is");
}

#[test]
fn nothing_fails_where_the_line_cannot_be_written() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full");
    let output = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(GEMM.split_whitespace())
        .env(Tuning::VARIABLE, path("none.tuning"))
        .env("CUTLET_RECORD", Path::new("/nowhere/problems"))
        .stderr(full.expect("Linux has the device"))
        .output()
        .expect("the command starts");
    assert!(output.status.success(), "{}", text(&output.stdout));
}

#[test]
fn the_devices_rates_are_stored() {
    let file = file_with("rates.tuning", "some_kernel");
    let command = format!("tune --device --backend cpu --out {}", file.display());
    let said = printed(&cutlet(&command, &[]));
    assert!(said.contains("copy of memory "), "{said}");
    let tuning = Tuning::load(&file).unwrap();
    assert!(tuning.rates().memory_gigabytes.is_some());
    assert_eq!(tuning.entries().len(), 1);
}

#[test]
fn the_doctor_says_whether_a_tuning_file_counts() {
    let file = file_with("doctor.tuning", "some_kernel");
    let doctor = |variables: &[(&str, &Path)]| text(&cutlet("doctor", variables).stdout);
    assert!(doctor(&[]).contains("CUTLET_TUNING is not set"));
    assert!(doctor(&[(Tuning::VARIABLE, Path::new(""))]).contains("CUTLET_TUNING is not set"));
    // Where there is a GPU, the file of the CPU is that of another device.
    let said = doctor(&[(Tuning::VARIABLE, &*file)]);
    let counts = said.contains("has 1 entries") || said.contains("it was made on cpu");
    assert!(counts, "{said}");
    fs::write(&file, "format=1\n").unwrap();
    let said = doctor(&[(Tuning::VARIABLE, &*file)]);
    assert!(said.contains("it ends where `cutlet=…` belongs"), "{said}");
}

#[test]
fn what_cannot_be_tuned_is_refused_in_one_line() {
    for (arguments, expected) in [
        ("tune", "--shapes"),
        ("tune --shapes 1x2", "a shape is m, n and k from 1 to"),
        ("tune --shapes 1x2x3 --suite tiny", "cannot be used with"),
        ("tune --suite nonsense", "suite `nonsense` was asked for"),
        (
            "tune --suite gather --dtype f32 --backend cpu",
            "nothing is tuned: there is no problem; name shapes",
        ),
        (
            "tune --recorded nowhere --backend cpu",
            "nowhere: reading it failed",
        ),
        ("tune --shapes 1x2x3 --rounds 4", "4"),
    ] {
        assert_refused(&cutlet(arguments, &[]), expected);
    }
}
