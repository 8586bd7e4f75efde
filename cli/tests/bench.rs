//! `cutlet bench` as a user meets it on a machine without a GPU: the tiny suite against plain
//! references, its files, comparisons of runs, suites of one's own, and what is refused.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

fn cutlet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

/// Asserts that the command makes no sense to the program, which says so in one line with these words.
fn assert_refused(arguments: &[&str], expected: &str) {
    let output = cutlet(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    let error = text(&output.stderr);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(expected), "{error}");
}

/// An empty folder of this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may be there from an earlier run.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

fn results(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("results.json")).expect("there are results");
    serde_json::from_str(&text).expect("results are JSON")
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

/// Runs the tiny suite into a folder of this name.
fn tiny(name: &str) -> (PathBuf, String) {
    let out = folder(name);
    let output = cutlet(&[
        "bench",
        "all",
        "--backend",
        "cpu",
        "--rounds",
        "5",
        "--out",
        path(&out),
    ]);
    let printed = text(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        text(&output.stderr)
    );
    (out, printed)
}

#[test]
fn instances_are_measured_by_parts_of_their_names() {
    let out = folder("instances");
    let arguments = ["bench", "gemm", "--backend", "cpu", "--dtype", "bf16"];
    let arguments = [&arguments[..], &["--rounds", "5", "--out", path(&out)]].concat();
    let instances = |option: &str| {
        let output = cutlet(&[&arguments[..], &[option]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        let row = &results(&out)["rows"][0];
        let contestants = row["contestants"].as_array().unwrap().iter();
        let instances = contestants.filter(|contestant| contestant["role"] == "instance");
        let names = instances.map(|contestant| contestant["name"].as_str().unwrap().to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(instances("--seed=1"), [""; 0]);
    assert_eq!(instances("--instances=64x64_c1_kk"), ["bf16_1x64x64_c1_kk"]);
    assert!(instances("--instances").len() > 1);
    let nonsense = [&arguments[..], &["--instances=64x64_c1_kk,63x64"]].concat();
    assert_refused(&nonsense, "no instance has that in its name");
}

#[test]
fn a_run_that_is_interrupted_leaves_what_it_measured() {
    let out = folder("interrupted");
    let file = out.join("results.json");
    let mut run = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(["bench", "all", "--backend", "cpu", "--rounds", "50"])
        .args(["--out", path(&out)])
        .stdout(Stdio::null())
        .spawn()
        .expect("the command starts");
    while !file.exists() {
        let ended = run.try_wait().expect("the command can be asked");
        assert!(ended.is_none(), "it ended without results: {ended:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
    run.kill().expect("the command can be stopped");
    run.wait().expect("the command ends");

    let rows = results(&out)["rows"].as_array().map(Vec::len);
    let rows = rows.expect("rows");
    assert!((1..16).contains(&rows), "{rows} rows");
    let report = cutlet(&["bench", "report", path(&out)]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let printed = text(&report.stdout);
    let report = std::fs::read_to_string(out.join("report.md")).expect("there is a report");
    for said in [printed, report] {
        assert!(said.contains(&format!("{rows} of 16 rows")), "{said}");
    }
}

#[test]
fn the_tiny_suite_is_checked_timed_and_reported() {
    let (out, printed) = tiny("tiny");
    for expected in [
        "not how fast a GPU is",
        "128 128 128",
        "exact",
        "geometric mean",
        "16 rows measured, 0 skipped, 0 wrong or failed",
    ] {
        assert!(printed.contains(expected), "no {expected:?} in {printed}");
    }

    let results = results(&out);
    assert_eq!(results["schema"], 1);
    assert_eq!(results["machine"]["backend"], "cpu");
    let rows = results["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 16);
    for row in rows {
        assert_eq!(row["status"], "measured", "{row}");
        let rounds = row["contestants"][0]["rounds"].as_array();
        assert_eq!(rounds.expect("rounds").len(), 5);
    }
    let gemm = &rows[0]["check"];
    assert_eq!(gemm["to_f64"]["entries"], 4096);
    assert_eq!(gemm["to_baseline"]["entries"], 64 * 64);
    assert!(gemm["to_f64"]["relative"].as_f64().expect("an error") < 1e-6);

    let report = std::fs::read_to_string(out.join("report.md")).expect("there is a report");
    assert!(report.contains("The CPU backend ran this"));
    assert!(report.contains("1/√k where an activation is fused"));
    for plot in [
        "gemm-f32-speed",
        "gemm-f32-ratio",
        "gather-speed",
        "gather-ratio",
    ] {
        assert!(report.contains(&format!("({plot}.png)")), "{plot}");
        let svg = std::fs::read_to_string(out.join(format!("{plot}.svg"))).expect("an SVG");
        assert!(svg.contains("</svg>") && svg.contains("Inter"), "{plot}");
        let png = std::fs::read(out.join(format!("{plot}.png"))).expect("a PNG");
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n", "{plot}");
    }

    // The report comes out the same from the results alone.
    std::fs::remove_file(out.join("report.md")).expect("the report can be removed");
    assert!(cutlet(&["bench", "report", path(&out)]).status.success());
    let again = std::fs::read_to_string(out.join("report.md")).expect("there is a report");
    assert_eq!(again, report);

    // The results may be named themselves, as where runs are compared.
    std::fs::remove_file(out.join("report.md")).expect("the report can be removed");
    let file = out.join("results.json");
    let output = cutlet(&["bench", "report", path(&file)]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let again = std::fs::read_to_string(out.join("report.md")).expect("there is a report");
    assert_eq!(again, report);
}

#[test]
fn a_run_has_not_changed_from_itself_and_a_slower_one_is_found() {
    let (old, _) = tiny("old");
    let compared = cutlet(&["bench", "compare", path(&old), path(&old), "--fail"]);
    let printed = text(&compared.stdout);
    assert!(compared.status.success(), "{printed}");
    assert!(
        printed.contains("no change beyond the noise in 16 rows"),
        "{printed}"
    );

    // Figures that are written here: measured ones may vary as much as they like.
    let new = folder("slower");
    let mut results = results(&old);
    for (folder, figures) in [(&old, [1.0, 0.9, 1.1]), (&new, [0.5, 0.4, 0.6])] {
        for (name, figure) in ["median", "min", "max"].into_iter().zip(figures) {
            results["rows"][1]["ratio"][name] = Value::from(figure);
        }
        std::fs::write(folder.join("results.json"), results.to_string())
            .expect("results are written");
    }
    let compared = cutlet(&["bench", "compare", path(&old), path(&new), "--fail"]);
    let printed = text(&compared.stdout);
    assert_eq!(compared.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("slower:\n  gemm f32 128x128x128"),
        "{printed}"
    );
    assert!(
        printed.contains("0 rows faster, 1 slower, 15 without"),
        "{printed}"
    );
}

#[test]
fn results_of_another_schema_are_refused() {
    let out = folder("schema");
    std::fs::write(out.join("results.json"), "{\"schema\": 99}").expect("a file is written");
    let output = cutlet(&["bench", "compare", path(&out), path(&out)]);
    assert_eq!(output.status.code(), Some(2));
    let error = text(&output.stderr);
    assert!(error.contains("its schema is 99"), "{error}");
}

#[test]
fn a_suite_of_ones_own_is_a_file_and_types_without_a_kernel_are_said() {
    let out = folder("own");
    let suite = out.join("own.toml");
    let entry = "about = \"mine\"\n[[gemm]]\nmnk = [[5, 6, 7]]\nlayout = \"tn\"\n";
    std::fs::write(&suite, entry).expect("a file is written");
    let output = cutlet(&[
        "bench",
        "gemm",
        "--backend",
        "cpu",
        "--suite",
        path(&suite),
        "--dtype",
        "f32,e4m3",
        "--out",
        path(&out),
    ]);
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("5 6 7 tn"), "{printed}");
    assert!(printed.contains("1 rows measured, 1 skipped"), "{printed}");
    let results = results(&out);
    assert_eq!(results["rows"][1]["status"], "skipped");
    assert!(results["rows"][1]["reason"].is_string());
}

#[test]
fn baselines_can_be_measured_alone() {
    let out = folder("baselines");
    let output = cutlet(&[
        "bench",
        "gemm",
        "--backend",
        "cpu",
        "--dtype",
        "bf16",
        "--baselines",
        "--out",
        path(&out),
    ]);
    assert!(output.status.success(), "{}", text(&output.stdout));
    let row = &results(&out)["rows"][0];
    assert_eq!(row["contestants"].as_array().expect("contestants").len(), 1);
    assert!(
        row["check"]["baseline_to_f64"]["relative"]
            .as_f64()
            .expect("an error")
            < 4e-3
    );

    // Figures that are written here: measured ones may vary as much as they like.
    let slower = folder("slower-baselines");
    let mut results = results(&out);
    for (folder, figures) in [(&out, [1.0, 0.9, 1.1]), (&slower, [2.0, 1.9, 2.1])] {
        for (name, figure) in ["median", "min", "max"].into_iter().zip(figures) {
            results["rows"][0]["contestants"][0]["microseconds"][name] = Value::from(figure);
        }
        std::fs::write(folder.join("results.json"), results.to_string())
            .expect("results are written");
    }
    let compared = cutlet(&["bench", "compare", path(&out), path(&slower)]);
    let printed = text(&compared.stdout);
    assert!(
        printed.contains(" -50.0%  1.0 to 2.0 us of the baseline"),
        "{printed}"
    );
    assert!(printed.contains("1 slower, 3 without"), "{printed}");
}

#[test]
fn what_cannot_be_measured_is_refused_in_one_line() {
    for (arguments, expected) in [
        (vec!["bench", "gemm", "--suite", "nonsense"], "headline"),
        (vec!["bench", "gemm", "--rounds", "4"], "4"),
        (vec!["bench", "gemm", "--dtype", "f64"], "f64"),
    ] {
        assert_refused(&arguments, expected);
    }
}

#[test]
fn what_is_wrong_with_a_suite_is_said_with_its_line() {
    let suite = folder("wrong").join("wrong.toml");
    let entry = "about = \"mine\"\n\n[[gemm]]\nmnk = [[1, 2, 3]]\n\n[[gemm]]\n";
    for (last, expected) in [
        (
            "mnk = [[1, 1, 1], [0, 2, 3]]",
            "the entry in line 6 is wrong: a GEMM has the shape [0, 2, 3]",
        ),
        (
            "mnk = [[\"a\", 2, 3]]",
            "line 6 is wrong: invalid type: string \"a\", expected usize in `mnk`",
        ),
        ("m = [1]", "line 6 is wrong: a GEMM has `m` without `nk`"),
        ("mnk = [[1, 2, 3]", "line 7 is wrong: "),
        ("[[gem]]", "line 7 is wrong: unknown field `gem`"),
    ] {
        std::fs::write(&suite, format!("{entry}{last}\n")).expect("a file is written");
        let arguments = ["bench", "gemm", "--backend", "cpu", "--suite", path(&suite)];
        assert_refused(&arguments, expected);
    }
}

#[test]
fn a_run_that_would_measure_nothing_is_refused() {
    let folder = folder("nothing");
    let empty = folder.join("empty.toml");
    std::fs::write(&empty, "about = \"nothing\"\n").expect("a file is written");
    for (arguments, expected) in [
        (
            vec!["gemm", "--suite", "gather"],
            "suite `gather` was asked for, but it has no GEMM in f32",
        ),
        (
            vec!["gather", "--suite", "headline"],
            "but it has no gather;",
        ),
        // tiny has GEMMs, but that is no reason to leave out the other.
        (
            vec!["gemm", "--suite", "tiny", "--suite", "gather"],
            "`gather` was asked for",
        ),
        (
            vec!["gemm", "--suite", "epilogue", "--dtype", "tf32"],
            "it has no GEMM in tf32;",
        ),
        (
            vec!["all", "--suite", path(&empty), "--dtype", "f32"],
            "it has no GEMM in f32 and no gather;",
        ),
    ] {
        let out = folder.join("out");
        let common = ["--backend", "cpu", "--out", path(&out)];
        assert_refused(&[&["bench"], &arguments[..], &common].concat(), expected);
    }
}
