//! `cutlet bench` on a machine without a GPU: the tiny suite against plain loops, its files, comparisons of runs, a
//! user's own suites, and refusals.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

fn cutlet(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(arguments)
        .output()
        .expect("the command starts")
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

/// Asserts that the program refuses the arguments, with an error of one line that contains these words.
fn assert_refused(arguments: &[&str], expected: &str) {
    let output = cutlet(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    let error = text_of(&output.stderr);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(expected), "{error}");
}

/// An empty folder with this name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    // It may exist from an earlier run.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// The facts and the lines of a run's results.
struct Results {
    facts: toml::Table,
    header: Vec<String>,
    lines: Vec<BTreeMap<String, String>>,
}

impl Results {
    fn read(folder: &Path) -> Results {
        let text = fs::read_to_string(folder.join("results.csv")).expect("there are results");
        let (facts, lines): (Vec<_>, Vec<_>) = text.lines().partition(|line| line.starts_with('#'));
        let facts: Vec<&str> = facts.iter().map(|fact| &fact[1..]).collect();
        let lines = lines.join("\n");
        let mut reader = csv::Reader::from_reader(lines.as_bytes());
        let header = reader.headers().expect("there is a header").clone();
        let lines = reader
            .deserialize()
            .map(|line| line.expect("a line of cells"));
        Results {
            facts: toml::from_str(&facts.join("\n")).expect("the facts are TOML"),
            lines: lines.collect(),
            header: header.iter().map(str::to_string).collect(),
        }
    }

    fn write(&self, folder: &Path) {
        let facts = toml::to_string(&self.facts).expect("facts can be written");
        let mut text: String = facts.lines().map(|fact| format!("# {fact}\n")).collect();
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&self.header).expect("a header");
        for line in &self.lines {
            let cells = self.header.iter().map(|column| &line[column]);
            writer.write_record(cells).expect("a line");
        }
        text += &text_of(&writer.into_inner().expect("lines"));
        fs::write(folder.join("results.csv"), text).expect("results are written");
    }

    /// The lines with this role.
    fn of_role(&self, role: &str) -> impl Iterator<Item = &BTreeMap<String, String>> {
        self.lines.iter().filter(move |line| line["role"] == role)
    }

    /// Sets median, minimum and maximum of the microseconds in the first line with this role, and the speed that
    /// follows from them.
    fn set_times(&mut self, role: &str, times: [f64; 3]) {
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| line["role"] == role).expect("a line");
        let speed = number(line, "speed") * number(line, "median_us") / times[0];
        line.insert("speed".to_string(), speed.to_string());
        self.set(role, ["median_us", "min_us", "max_us"], times);
    }

    /// Sets median, minimum and maximum in the first line with this role.
    fn set(&mut self, role: &str, columns: [&str; 3], figures: [f64; 3]) {
        let mut lines = self.lines.iter_mut();
        let line = lines.find(|line| line["role"] == role).expect("a line");
        for (column, figure) in columns.into_iter().zip(figures) {
            line.insert(column.to_string(), figure.to_string());
        }
    }
}

fn number(line: &BTreeMap<String, String>, column: &str) -> f64 {
    let text = &line[column];
    text.parse()
        .unwrap_or_else(|_| panic!("{column} is {text}"))
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn a_mixture_of_experts_is_timed_step_by_step_and_checked() {
    let output = cutlet(&[
        "bench",
        "moe",
        "--backend",
        "cpu",
        "--tokens",
        "16",
        "--rounds",
        "5",
    ]);
    let printed = text_of(&output.stdout);
    assert!(output.status.success(), "{printed}");
    for words in [
        "16 tokens",
        "route",
        "second product",
        "the layer",
        "right: 8 tokens",
    ] {
        assert!(printed.contains(words), "no {words} in {printed}");
    }
}

/// The types of the tiny suite's GEMMs here: 12 rows. Its gathers are four more, its other movements seven, and
/// its contractions six.
const DTYPES: &str = "--dtype=f32,f16,bf16";

/// What a run leaves in its folder.
const TINY_FILES: [&str; 2] = ["report.html", "results.csv"];

/// What the tiny suite printed, and a folder with this name that has its results. It runs once: on the CPU it takes half a
/// minute.
fn tiny(name: &str) -> (PathBuf, &'static str) {
    static RUN: LazyLock<(PathBuf, String)> = LazyLock::new(run_tiny);
    let (results, printed) = &*RUN;
    let out = folder(name);
    for file in TINY_FILES {
        fs::copy(results.join(file), out.join(file)).expect("the run has made the file");
    }
    (out, printed)
}

/// Runs the tiny suite.
fn run_tiny() -> (PathBuf, String) {
    let out = folder("tiny-run");
    let output = cutlet(&[
        "bench",
        "all",
        "--backend",
        "cpu",
        "--rounds",
        "5",
        DTYPES,
        "--out",
        path(&out),
    ]);
    let printed = text_of(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}\n{}",
        text_of(&output.stderr)
    );
    let mut files: Vec<_> = fs::read_dir(&out)
        .expect("a folder")
        .map(|file| file.expect("a file").file_name())
        .collect();
    files.sort();
    assert_eq!(files, TINY_FILES);
    (out, printed)
}

#[test]
fn instances_are_measured_by_parts_of_their_names() {
    let out = folder("instances");
    let arguments = ["bench", "gemm", "--backend", "cpu", "--rounds", "5"];
    let arguments = [&arguments[..], &["--out", path(&out)]].concat();
    let instances = |dtype: &str, option: &str| {
        let output = cutlet(&[&arguments[..], &["--dtype", dtype, option]].concat());
        assert!(output.status.success(), "{}", text_of(&output.stderr));
        let results = Results::read(&out);
        let first = results.lines[0]["m"].clone();
        let instances = results
            .of_role("instance")
            .filter(|line| line["m"] == first);
        let names = instances.map(|line| line["contestant"].clone());
        names.collect::<Vec<_>>()
    };
    assert_eq!(instances("bf16", "--seed=1"), [""; 0]);
    assert_eq!(
        instances("bf16", "--instances=64x64x64_1x1_ws"),
        ["bf16_64x64x64_1x1_ws"]
    );
    // Of all types, i8 has the fewest instances.
    assert!(instances("i8", "--instances").len() > 1);
    let nonsense = ["--dtype=bf16", "--instances=64x64x64_1x1_ws,63x64"];
    let nonsense = [&arguments[..], &nonsense].concat();
    assert_refused(&nonsense, "no instance has that in its name");
}

#[test]
fn a_run_that_is_interrupted_leaves_what_it_measured() {
    let out = folder("interrupted");
    let file = out.join("results.csv");
    let mut run = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(["bench", "all", "--backend", "cpu", "--rounds", "50"])
        .args([DTYPES, "--out", path(&out)])
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

    let rows = Results::read(&out).of_role("cutlet").count();
    assert!((1..29).contains(&rows), "{rows} rows");
    let report = cutlet(&["bench", "report", path(&out)]);
    assert!(report.status.success(), "{}", text_of(&report.stderr));
    let printed = text_of(&report.stdout);
    for said in [printed, page_in(&out)] {
        assert!(said.contains(&format!("{rows} of 29 rows")), "{said}");
    }
}

#[test]
fn the_tiny_suite_is_checked_timed_and_reported() {
    let (out, printed) = tiny("tiny");
    for expected in [
        "say nothing about a GPU",
        "128 128 128",
        "exact",
        "geometric mean",
        "29 rows measured, 0 skipped, 0 wrong or failed",
    ] {
        assert!(printed.contains(expected), "no {expected:?} in {printed}");
    }
    check_tiny_results(&Results::read(&out));
    check_tiny_page(&out);
    check_pages_of_results(&out);
    check_pages_in_one_folder(&out);
}

/// Checks what `results.csv` says of the tiny suite.
fn check_tiny_results(results: &Results) {
    assert_eq!(results.facts["schema"].as_integer(), Some(2));
    assert_eq!(results.facts["machine"]["backend"].as_str(), Some("cpu"));
    assert_eq!(results.facts["protocol"]["rounds"].as_integer(), Some(5));
    assert_eq!(results.of_role("cutlet").count(), 29);
    for line in &results.lines {
        assert_eq!(line["status"], "measured", "{line:?}");
        assert_eq!(line["suite"], "tiny");
        let [median, min, max] = ["median_us", "min_us", "max_us"].map(|it| number(line, it));
        assert!(0.0 < min && min <= median && median <= max, "{line:?}");
    }
    let gemm = results.of_role("cutlet").next().expect("a GEMM");
    assert_eq!(
        ["m", "n", "k", "layout"].map(|it| &*gemm[it]),
        ["64", "64", "64", "nt"]
    );
    assert!(number(gemm, "error") < 1e-6);
    let gathers = results
        .lines
        .iter()
        .filter(|line| line["family"] == "gather");
    for gather in gathers {
        assert_eq!([&*gather["error"], &*gather["max_error"]], ["0", "0"]);
    }
}

/// The page in a run's folder.
fn page_in(folder: &Path) -> String {
    fs::read_to_string(folder.join("report.html")).expect("there is a page")
}

/// Checks a run's page.
fn check_tiny_page(out: &Path) {
    let page = page_in(out);
    for expected in [
        "The CPU backend ran this",
        "1/√k where an activation is fused",
        "<code>cutlet bench all --backend cpu --rounds 5",
        "<h2>GEMM in f32</h2>",
        "<h3>Speed relative to plain loops</h3>",
        "<h3>Bytes read and written a second</h3>",
        "<h2>Contractions in bf16</h2>",
        "bij,bkj-&gt;ik 3 × 20 × 16 × 24",
        "64 × 64 × 64 bias+gelu</text>",
        "prefers-color-scheme: dark",
    ] {
        assert!(page.contains(expected), "no {expected} in {page}");
    }
    assert_alone(&page);
}

/// Asserts that a page can be sent: it has no scripts, and refers to nothing outside of itself.
fn assert_alone(page: &str) {
    for other in [
        "<script", "<link", "<img", "src=", "url(", "@import", "http",
    ] {
        assert!(!page.contains(other), "{other} in {page}");
    }
    for reference in page.split("href=\"").skip(1) {
        let target = reference.split('"').next().expect("a target");
        let id = target.strip_prefix('#').expect("a place in the page");
        assert!(page.contains(&format!("id=\"{id}\"")), "{target}");
    }
}

/// The results alone give the same page.
fn check_pages_of_results(out: &Path) {
    let page = page_in(out);
    fs::remove_file(out.join("report.html")).expect("the page can be removed");
    assert!(cutlet(&["bench", "report", path(out)]).status.success());
    assert_eq!(page_in(out), page);

    // A run's results may be named in place of its folder.
    fs::remove_file(out.join("report.html")).expect("the page can be removed");
    let file = out.join("results.csv");
    let output = cutlet(&["bench", "report", path(&file)]);
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    assert_eq!(page_in(out), page);
}

/// Pages of several results share a folder.
fn check_pages_in_one_folder(out: &Path) {
    let file = out.join("results.csv");
    let pages = folder("pages");
    for name in ["one.csv", "two.csv"] {
        fs::copy(&file, pages.join(name)).expect("results can be copied");
    }
    let [one, two] = ["one.csv", "two.csv"].map(|name| pages.join(name));
    let output = cutlet(&["bench", "report", path(&one), path(&two)]);
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    for name in ["one.html", "two.html"] {
        let page = fs::read_to_string(pages.join(name)).expect("a page");
        assert_eq!(page, page_in(out));
    }
    let elsewhere = path(&pages);
    let twice = [
        "bench",
        "report",
        path(out),
        path(&file),
        "--out",
        elsewhere,
    ];
    assert_refused(&twice, "two of them have the same folder and name");
}

/// The results in `docs/results` have pages.
#[test]
fn stored_results_can_be_reported() {
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/results");
    let out = folder("stored");
    let files = fs::read_dir(stored).expect("there are stored results");
    let files = files.map(|file| path(&file.expect("a file").path()).to_string());
    let files: Vec<String> = files.collect();
    let mut arguments = vec!["bench", "report", "--out", path(&out)];
    arguments.extend(files.iter().map(String::as_str));
    let output = cutlet(&arguments);
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    let pages = fs::read_dir(&out).expect("a folder");
    let pages = pages.map(|page| fs::read_to_string(page.expect("a page").path()));
    let pages: Vec<String> = pages.map(|page| page.expect("a page")).collect();
    assert_eq!(pages.len(), files.len());
    let rooflines = pages
        .iter()
        .filter(|page| page.contains("<h3>Roofline</h3>"));
    assert!(rooflines.count() > 10);
    for page in &pages {
        assert_alone(page);
        assert!(page.contains("<h3>Speed relative to"), "{page}");
        assert!(page.contains("<dt>driver</dt><dd>580."), "{page}");
    }
}

#[test]
fn absurd_results_are_refused_with_file_and_line() {
    let (out, _) = tiny("absurd");
    let file = out.join("results.csv");
    let right = fs::read_to_string(&file).expect("there are results");
    let line = 2 + right
        .lines()
        .take_while(|line| line.starts_with('#'))
        .count();
    for absurd in ["0", "-1.5", "NaN", "inf"] {
        for column in ["median_us", "ratio"] {
            let mut results = Results::read(&out);
            results.lines[0].insert(column.to_string(), absurd.to_string());
            results.write(&out);
            let expected = format!("results.csv: line {line}: {column} is `{absurd}`");
            assert_refused(&["bench", "report", path(&out)], &expected);
            fs::write(&file, &right).expect("results are written");
        }
    }
}

#[test]
fn ratios_that_do_not_follow_from_the_times_are_refused() {
    let (out, _) = tiny("ratios");
    let mut results = Results::read(&out);
    results.set_times("cutlet", [100.0, 90.0, 110.0]);
    results.set_times("baseline", [100.0, 90.0, 110.0]);
    results.set(
        "cutlet",
        ["ratio", "ratio_min", "ratio_max"],
        [1.0, 0.9, 4.5],
    );
    results.write(&out);
    for command in [
        &["report", path(&out)][..],
        &["compare", path(&out), path(&out)],
    ] {
        let arguments = [&["bench"], command].concat();
        let expected = "ratio_max is 4.5, but the times allow 0.818182 to 1.22222 only; restore the file, or measure again";
        assert_refused(&arguments, expected);
    }
}

#[test]
fn results_are_kept_when_nobody_reads_the_table() {
    let out = folder("closed");
    let arguments = [
        "bench",
        "all",
        "--backend",
        "cpu",
        "--rounds",
        "5",
        "--out",
        path(&out),
    ];
    let mut run = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(run.stdout.take());
    let output = run.wait_with_output().expect("the command ends");
    assert!(output.status.success(), "{:?}", output.status);
    assert_eq!(text_of(&output.stderr), "");

    // `head` closes the pipe after the table's first row.
    let shell = format!(
        "'{}' bench all --backend cpu --rounds 5 --out '{}' | head -4",
        env!("CARGO_BIN_EXE_cutlet"),
        path(&out)
    );
    let output = Command::new("sh")
        .args(["-c", &shell])
        .output()
        .expect("a shell");
    assert_eq!(text_of(&output.stderr), "");
    assert!(Results::read(&out).of_role("cutlet").count() >= 1);
}

#[test]
fn a_run_has_not_changed_from_itself_and_a_slower_one_is_found() {
    let (old, _) = tiny("old");
    let compared = cutlet(&["bench", "compare", path(&old), path(&old), "--fail"]);
    let printed = text_of(&compared.stdout);
    assert!(compared.status.success(), "{printed}");
    assert!(
        printed.contains("no change beyond the noise in 29 rows"),
        "{printed}"
    );

    // The figures are written here: measured figures may vary.
    let new = folder("slower");
    let mut results = Results::read(&old);
    for (folder, figures, times) in [
        (&old, [1.0, 0.9, 1.1], [100.0, 90.0, 110.0]),
        (&new, [0.5, 0.4, 0.6], [200.0, 160.0, 240.0]),
    ] {
        results.set("cutlet", ["ratio", "ratio_min", "ratio_max"], figures);
        results.set_times("cutlet", times);
        results.set_times("baseline", [100.0, 90.0, 110.0]);
        results.write(folder);
    }
    let compared = cutlet(&["bench", "compare", path(&old), path(&new), "--fail"]);
    let printed = text_of(&compared.stdout);
    assert_eq!(compared.status.code(), Some(1), "{printed}");
    assert!(
        printed.contains("slower:\n  gemm f32 64x64x64"),
        "{printed}"
    );
    assert!(
        printed.contains("0 rows faster, 1 slower, 28 without"),
        "{printed}"
    );
}

#[test]
fn results_of_another_schema_are_refused() {
    let out = folder("schema");
    fs::write(out.join("results.csv"), "# schema = 99\n").expect("a file is written");
    let output = cutlet(&["bench", "compare", path(&out), path(&out)]);
    assert_eq!(output.status.code(), Some(2));
    let error = text_of(&output.stderr);
    assert!(error.contains("its schema is 99"), "{error}");
}

#[test]
fn a_suite_may_be_a_file_and_types_without_a_kernel_are_skipped() {
    let out = folder("own");
    let suite = out.join("own.toml");
    let entry = "about = \"mine\"\n[[contract]]\nlabel = \"rows\"\nnotation = \"ij,kj->ik\"\n\
                 extents = { i = 5, j = 6, k = 7 }\n";
    fs::write(&suite, entry).expect("a file is written");
    let output = cutlet(&[
        "bench",
        "contract",
        "--backend",
        "cpu",
        "--suite",
        path(&suite),
        "--dtype",
        "f32,e4m3",
        "--out",
        path(&out),
    ]);
    let printed = text_of(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(printed.contains("ij,kj->ik"), "{printed}");
    assert!(printed.contains("1 rows measured, 1 skipped"), "{printed}");
    let results = Results::read(&out);
    let skipped = results.lines.last().expect("lines");
    assert_eq!(skipped["status"], "skipped");
    assert!(!skipped["note"].is_empty());
}

#[test]
fn instances_for_a_batch_are_those_that_compute_it_in_one_launch() {
    let out = folder("batch");
    let suite = out.join("own.toml");
    let entry = "about = \"mine\"\n[[gemm]]\nmnk = [[24, 16, 32]]\nbatch = 2\n";
    fs::write(&suite, entry).expect("a file is written");
    let arguments = ["bench", "gemm", "--backend", "cpu", "--dtype", "bf16"];
    let arguments = [&arguments[..], &["--rounds", "5", "--out", path(&out)]].concat();
    let of_suite = ["--suite", path(&suite), "--instances=64x64x64_1x1_ws"];
    let output = cutlet(&[&arguments[..], &of_suite].concat());
    assert!(output.status.success(), "{}", text_of(&output.stderr));
    let results = Results::read(&out);
    let instances: Vec<&str> = results
        .of_role("instance")
        .map(|line| line["contestant"].as_str())
        .collect();
    assert_eq!(instances, ["bf16_grouped_64x64x64_1x1_ws"]);
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
    assert!(output.status.success(), "{}", text_of(&output.stdout));
    let mut results = Results::read(&out);
    assert_eq!(results.lines.len(), 4);
    assert_eq!(results.of_role("baseline").count(), 4);
    assert!(number(&results.lines[0], "error") < 4e-3);

    // The figures are written here: measured figures may vary.
    let slower = folder("slower-baselines");
    let operations = 2.0 * f64::from(64).powi(3);
    for (folder, figures) in [(&out, [1.0, 0.9, 1.1]), (&slower, [2.0, 1.9, 2.1])] {
        results.set("baseline", ["median_us", "min_us", "max_us"], figures);
        let speed = operations / figures[0] / 1e6;
        results.lines[0].insert("speed".to_string(), speed.to_string());
        results.write(folder);
    }
    let compared = cutlet(&["bench", "compare", path(&out), path(&slower)]);
    let printed = text_of(&compared.stdout);
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
        (vec!["bench", "gemm", "--dtype", "f8"], "f8"),
    ] {
        assert_refused(&arguments, expected);
    }
}

#[test]
fn mistakes_in_a_suite_are_refused_with_their_line() {
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
        fs::write(&suite, format!("{entry}{last}\n")).expect("a file is written");
        let arguments = ["bench", "gemm", "--backend", "cpu", "--suite", path(&suite)];
        assert_refused(&arguments, expected);
    }
}

#[test]
fn what_needs_a_gpu_says_so_in_one_line() {
    let out = folder("gpu");
    for (arguments, expected) in [
        (
            vec!["gemm", "--suite", "headline"],
            "was asked for, which needs a GPU, but this would run on cpu",
        ),
        (vec!["movement", "--suite", "movement"], "which needs a GPU"),
        (
            vec!["gemm", "--sustained"],
            "--sustained was asked for, which needs a GPU, but this would run on cpu",
        ),
    ] {
        let common = ["--dtype", "f32", "--out", path(&out)];
        let arguments = [&["bench"], &arguments[..], &common].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_cutlet"))
            .args(&arguments)
            .env("CUDA_VISIBLE_DEVICES", "")
            .output()
            .expect("the command starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let error = text_of(&output.stderr);
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_run_that_would_measure_nothing_is_refused() {
    let folder = folder("nothing");
    let empty = folder.join("empty.toml");
    fs::write(&empty, "about = \"nothing\"\n").expect("a file is written");
    for (arguments, expected) in [
        (
            vec!["gemm", "--suite", "gather"],
            "suite `gather` was asked for, but it has no GEMM in f32",
        ),
        (
            vec!["gather", "--suite", "headline"],
            "but it has no gather;",
        ),
        // tiny has GEMMs, but gather has none.
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
            "it has no GEMM and no contraction in f32, no gather and no movement;",
        ),
    ] {
        let out = folder.join("out");
        let common = ["--backend", "cpu", "--out", path(&out)];
        assert_refused(&[&["bench"], &arguments[..], &common].concat(), expected);
    }
}
