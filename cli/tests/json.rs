//! `--json`: one line of documented keys for each command, and errors as JSON.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

fn cutlet(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the command starts")
}

/// The only line of a text, as JSON.
pub fn line(text: &[u8]) -> Value {
    let text = String::from_utf8(text.to_vec()).expect("the output is UTF-8");
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The result of a command that succeeds and complains about nothing.
fn result(arguments: &str) -> Value {
    let output = cutlet(&format!("{arguments} --json"));
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments}: {complaints}");
    assert_eq!(complaints, "", "{arguments}");
    line(&output.stdout)
}

/// The part of the page about JSON below the first heading that has these words.
fn section(words: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/json.md");
    let page = fs::read_to_string(page).expect("there is a page");
    let mut sections = page.split("\n## ");
    let section = sections.find(|section| section.lines().next().unwrap_or("").contains(words));
    section
        .unwrap_or_else(|| panic!("no section about {words}"))
        .to_string()
}

/// Asserts that the keys of a value are in a section of the page, or among the shared objects. Names of environment
/// variables and of modes are no keys.
fn assert_documented(value: &Value, section: &str) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                assert!(
                    section.contains(&format!("`{key}`")),
                    "no `{key}` in {section}"
                );
                if !["variables", "extents"].contains(&key.as_str()) {
                    assert_documented(value, section);
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|it| assert_documented(it, section)),
        _ => {}
    }
}

/// Asserts that a result has documented keys, these among them.
pub fn assert_result(value: &Value, about: &str, keys: &[&str]) {
    assert_documented(value, &(section(about) + &section("Shared objects")));
    for key in keys {
        assert!(!value[key].is_null(), "no {key} in {value}");
    }
}

#[test]
fn commands_that_time_a_problem_have_documented_results() {
    let gemm = result("gemm --m 20 --n 30 --k 40 --bias --backend cpu --check --iters 1");
    let keys = ["device", "m", "epilogue", "microseconds", "tflops", "check"];
    assert_result(&gemm, "`cutlet gemm`", &keys);
    assert_eq!(gemm["device"]["backend"], "cpu");
    assert_eq!(gemm["precision"], "exact");
    let attention =
        "attention --tokens 70 --heads 4 --group 2 --causal --backend cpu --check --iters 1";
    for kernels in ["", "--kernels sm80"] {
        let attention = result(&format!("{attention} {kernels}"));
        let keys = ["device", "heads_of_keys", "tflops", "check"];
        assert_result(&attention, "`cutlet attention`", &keys);
        assert_eq!(attention["check"]["right"], true);
    }
    for command in ["gather", "scatter", "scatter --add bf16 --in-order"] {
        let rows = "--table-rows 9 --rows 50 --row-bytes 72 --backend cpu --check --iters 1";
        let found = result(&format!("{command} {rows}"));
        let keys = ["operation", "gigabytes_per_second", "wrong_elements"];
        assert_result(&found, "`cutlet gather`", &keys);
    }
}

#[test]
fn a_contraction_has_documented_results() {
    let contraction = "contract abc,bda->dc --extents a=3,b=4,c=5,d=6 --backend cpu";
    let run = result(&format!("{contraction} --check --iters 1"));
    let keys = [
        "device",
        "notation",
        "computed",
        "microseconds",
        "gigabytes_per_second",
        "check",
    ];
    assert_result(&run, "`cutlet contract`", &keys);
    assert_eq!(run["extents"]["d"], 6);
    assert_eq!(run["layouts"]["b"], "(4,6,3):(18,3,1)");
    let explained = result(&format!("{contraction} --explain"));
    assert_result(&explained, "`cutlet contract`", &["computed"]);
    assert_eq!(explained["computed"], run["computed"]);
    assert!(explained["tflops"].is_null());
}

/// A suite with a row of each kind, of which one is skipped.
const SUITE: &str = "about = \"a row of each kind\"

[[gemm]]
mnk = [[16, 16, 16]]

[[gemm]]
mnk = [[16, 16, 16]]
dtypes = [\"f64\"]
epilogue = \"gelu\"

[[gather]]
row_bytes = [64]
indices = [\"uniform\"]
gathered_bytes = 1024
table_bytes = 4096

[[movement]]
operation = [\"embedding-bag\"]
dtypes = [\"f32\"]
row_bytes = [64]
indices = [\"zipf\"]
moved_bytes = 1024
table_bytes = 4096
group = 4

[[contract]]
notation = \"ij,jk->ik\"
extents = { i = 5, j = 4, k = 3 }
dtypes = [\"f32\"]
";

#[test]
fn a_benchmark_and_what_is_made_of_it_have_documented_results() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-bench");
    fs::create_dir_all(&out).expect("a folder can be made");
    let suite = out.join("suite.toml");
    fs::write(&suite, SUITE).expect("a file is written");
    let (out, suite) = (out.display(), suite.display());
    let options = "--backend cpu --rounds 5 --dtype f32,f64";
    let run = result(&format!("bench all {options} --suite {suite} --out {out}"));
    let keys = ["machine", "protocol", "rows", "summaries", "file", "page"];
    assert_result(&run, "`cutlet bench gemm`", &keys);
    let rows = run["rows"].as_array().expect("rows");
    let statuses: Vec<&Value> = rows.iter().map(|row| &row["status"]).collect();
    assert_eq!(
        statuses,
        [
            "measured", "measured", "skipped", "measured", "measured", "measured"
        ]
    );
    assert!(rows[2]["reason"].is_string());
    assert_eq!(rows[0]["problem"]["m"], 16);
    assert!(rows[0]["ratio"]["median"].as_f64().expect("a ratio") > 0.0);

    let compared = result(&format!("bench compare {out} {out}"));
    assert_result(&compared, "`cutlet bench compare`", &["unchanged", "mean"]);
    let report = result(&format!("bench report {out}"));
    assert_result(&report, "`cutlet bench report`", &["pages"]);
    assert_eq!(report["pages"][0]["page"], run["page"]);
}

#[test]
fn the_other_commands_have_documented_results() {
    let moe = result("bench moe --backend cpu --tokens 16 --rounds 5");
    assert_result(&moe, "`cutlet bench moe`", &["device", "layers"]);
    assert_eq!(moe["layers"][0]["check"]["right"], true);

    let attention = result("bench attention --backend cpu --tokens 70 --features 64 --rounds 5");
    assert_result(&attention, "`cutlet bench attention`", &["device", "rows"]);
    assert_eq!(attention["rows"][1]["check"]["right"], true);
    let decode = result("bench attention --decode --backend cpu --rounds 5");
    assert_result(&decode, "`cutlet bench attention`", &["device", "steps"]);
    let steps = decode["steps"].as_array().unwrap();
    let pages: Vec<_> = steps.iter().map(|it| it["page"].as_u64()).collect();
    assert_eq!(pages, [None, Some(16), Some(64)]);
    assert!(steps.iter().all(|it| it["check"]["right"] == true));

    let rows = result("bench rows --backend cpu --rounds 5");
    assert_result(&rows, "`cutlet bench rows`", &["device", "rows"]);
    let rows = rows["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 14);
    assert!(rows.iter().all(|row| row["right"] == true), "{rows:?}");

    let quantized = result("bench quantized --backend cpu --rounds 5");
    assert_result(&quantized, "`cutlet bench quantized`", &["device", "rows"]);
    let rows = quantized["rows"].as_array().unwrap();
    let operations: Vec<_> = rows.iter().map(|row| row["operation"].as_str()).collect();
    assert_eq!(operations, [Some("product"), Some("swiglu")]);
    assert!(rows.iter().all(|row| row["wrong"].is_null()), "{rows:?}");

    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json.tuning");
    // That of an earlier run may be of other kernels, and would be added to.
    let _ = std::fs::remove_file(&file);
    let options = "--shapes 16x32x32 --dtype f32,e4m3 --device --backend cpu --rounds 5";
    let tune = result(&format!("tune {options} --out {}", file.display()));
    assert_result(
        &tune,
        "`cutlet tune`",
        &["device", "rates", "problems", "counts"][..3],
    );
    assert_eq!([&tune["measured"], &tune["left_out"]], [2, 0]);

    let doctor = result("doctor");
    assert_result(
        &doctor,
        "`cutlet doctor`",
        &["version", "system", "findings"],
    );
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("json-new");
    let _ = fs::remove_dir_all(&made);
    let new = result(&format!("new {}/mine", made.display()));
    assert_result(&new, "`cutlet new`", &["package", "folder", "files"]);
    let functions = result("layout --functions");
    assert_result(&functions, "`cutlet layout`", &["topics"]);
}

#[test]
fn errors_are_json_with_the_same_exit_code() {
    for (arguments, expected) in [
        ("gemm --m 0 --json", "an extent must be at least 1"),
        ("gemm --dtype i8 --alpha 0.5 --json", "whole numbers"),
        (
            "gather --json --nonsense",
            "'--nonsense' found; `--help` lists all",
        ),
        (
            "bench compare no-such-run no-such-run --json",
            "no-such-run",
        ),
        ("bench gemm --suite nonsense --json", "headline"),
        ("tune --json", "--shapes"),
        ("layout (4,2):(1,4 --json", "expected `,` or `)`"),
        ("layout --compare 4:1 4: --json", "column 3"),
        ("nonsense --json", "unrecognized subcommand"),
        ("--json", "unexpected argument"),
    ] {
        let output = cutlet(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        assert!(output.stdout.is_empty(), "{arguments}");
        let error = line(&output.stderr);
        let message = error["error"]["message"].as_str().expect("a message");
        assert!(message.contains(expected), "{arguments}: {message}");
        assert_documented(&error, &section("Shared objects"));
    }
}
