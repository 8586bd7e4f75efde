//! `cutlet gemm` and `cutlet gather`: results on the CPU backend, JSON, and bad arguments.

use std::process::{Command, Output};

fn cutlet(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the command starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is UTF-8")
}

#[test]
fn gemm_prints_its_device_and_error() {
    let output = cutlet("gemm --m 33 --n 65 --k 17 --backend cpu --check --iters 1");
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}");
    for expected in [
        "cpu (it was asked for)",
        "f32 33 x 65 x 17",
        "FLOP/s",
        "of 2145 entries",
    ] {
        assert!(printed.contains(expected), "no {expected:?} in {printed}");
    }
}

#[test]
fn every_order_is_right() {
    for a in ["row", "col"] {
        for b in ["row", "col"] {
            for c in ["row", "col"] {
                let orders = format!("--a {a} --b {b} --c {c} --alpha -0.5 --beta 2");
                let output = cutlet(&format!(
                    "gemm --m 20 --n 30 --k 40 {orders} --backend cpu --check --iters 1"
                ));
                assert!(
                    output.status.success(),
                    "{orders}: {}",
                    text(&output.stdout)
                );
            }
        }
    }
}

#[test]
fn every_element_type_is_right() {
    for dtype in ["f32", "bf16", "f16"] {
        let output = cutlet(&format!(
            "gemm --dtype {dtype} --m 70 --n 40 --k 72 --b col --backend cpu --check --iters 1"
        ));
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{dtype}: {printed}");
        assert!(
            printed.contains(&format!("{dtype} 70 x 40 x 72")),
            "{printed}"
        );
    }
}

#[test]
fn every_precision_is_right() {
    for precision in ["exact", "tf32", "3xtf32"] {
        for options in ["", "--bias --activation gelu", "--c-dtype bf16"] {
            let output = cutlet(&format!(
                "gemm --precision {precision} --m 70 --n 40 --k 136 --b col {options} --backend cpu --check --iters 1"
            ));
            let printed = text(&output.stdout);
            assert!(output.status.success(), "{precision} {options}: {printed}");
            let said = printed.contains(&format!(" in {precision} 70 x 40 x 136"));
            assert_eq!(said, precision != "exact", "{printed}");
        }
    }
}

#[test]
fn products_of_8_bit_floats_have_scales() {
    for (dtype, scales) in [
        ("e4m3", "tensor"),
        ("e4m3", "outer"),
        ("e4m3", "blocks"),
        ("e5m2", "tensor"),
        ("e5m2", "outer"),
        ("e5m2", "blocks"),
    ] {
        let output = cutlet(&format!(
            "gemm --dtype {dtype} --scales {scales} --m 33 --n 136 --k 300 --b col --backend cpu --check --iters 1"
        ));
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{dtype} {scales}: {printed}");
        let problem = format!("{dtype} into bf16 33 x 136 x 300, scales: {scales}");
        assert!(printed.contains(&problem), "{printed}");
    }
    let refused = "gemm --dtype bf16 --scales outer";
    let output = cutlet(refused);
    let complaint = text(&output.stderr);
    assert!(!output.status.success(), "{refused}");
    let why = "products of e4m3 and e5m2 have some";
    assert!(complaint.contains(why), "{refused}: {complaint}");
}

#[test]
fn c_may_be_of_another_type() {
    for (dtype, c_dtype) in [("bf16", "f32"), ("f16", "bf16"), ("f32", "f16")] {
        let output = cutlet(&format!(
            "gemm --dtype {dtype} --c-dtype {c_dtype} --m 70 --n 40 --k 72 --b col --beta 1 --backend cpu --check \
             --iters 1"
        ));
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{dtype} {c_dtype}: {printed}");
        assert!(
            printed.contains(&format!("{dtype} into {c_dtype} 70 x 40 x 72")),
            "{printed}"
        );
    }
}

#[test]
fn every_epilogue_is_right() {
    for dtype in ["f32", "bf16"] {
        for fused in ["--bias", "--activation silu", "--bias --activation gelu"] {
            for c in ["row", "col"] {
                let output = cutlet(&format!(
                    "gemm --dtype {dtype} --m 33 --n 40 --k 72 --b col --c {c} --alpha 2 --beta -1 \
                     {fused} --backend cpu --check --iters 1"
                ));
                let printed = text(&output.stdout);
                assert!(output.status.success(), "{dtype} {c} {fused}: {printed}");
            }
        }
    }
}

#[test]
fn what_is_hard_to_compare_is_right() {
    // Sums whose terms cancel, and the negative end of SiLU; then results that are infinite, or partly.
    for hard in [
        "--n 2 --k 1587 --activation silu",
        "--n 1 --k 4000",
        "--n 40 --k 16 --alpha 1e38",
        "--n 40 --k 16 --alpha 1e38 --activation relu",
        "--n 40 --k 16 --alpha -1e38 --beta 1e38 --bias --activation gelu",
        "--n 40 --k 16 --alpha 1e38 --activation silu --dtype bf16",
        "--n 400 --k 16 --alpha 16000 --dtype f16",
        "--n 40 --k 16 --alpha 1e38 --dtype f64",
    ] {
        let output = cutlet(&format!(
            "gemm --m 1 {hard} --backend cpu --check --iters 1"
        ));
        assert!(output.status.success(), "{hard}: {}", text(&output.stdout));
    }
}

/// Neighbouring seeds of A and B: sums of 5,000 products are those of independent numbers.
#[test]
fn right_products_of_any_seed_pass() {
    for seed in 0..8 {
        for dtype in ["f32", "bf16", "i8"] {
            let output = cutlet(&format!(
                "gemm --m 1 --n 1 --k 5000 --dtype {dtype} --seed {seed} --backend cpu --check --iters 1"
            ));
            let printed = text(&output.stdout);
            assert!(output.status.success(), "{dtype} {seed}: {printed}");
        }
    }
}

#[test]
fn a_product_of_nothing_scales_c() {
    for options in [
        "",
        "--beta 2",
        "--beta -1 --bias --activation gelu --dtype bf16",
        "--dtype i8",
    ] {
        let output = cutlet(&format!(
            "gemm --m 20 --n 30 --k 0 {options} --backend cpu --check --iters 1"
        ));
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{options}: {printed}");
        assert!(printed.contains("20 x 30 x 0"), "{printed}");
    }
}

#[test]
fn an_unknown_kernel_is_answered_with_those_that_exist() {
    let output = cutlet(
        "gemm --m 64 --n 64 --k 64 --dtype bf16 --b col --kernel bf16_128x128 --backend cpu",
    );
    assert_eq!(output.status.code(), Some(2));
    let complaint = text(&output.stderr);
    for exists in ["`bf16_128x128`", "bf16_128x256x64_2x1_coop", "mma_bf16_"] {
        assert!(complaint.contains(exists), "{complaint}");
    }
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
}

#[test]
fn the_commands_of_the_demo_are_right() {
    for arguments in include_str!("demo.txt").lines() {
        let output = cutlet(&format!("{arguments} --backend cpu --iters 1"));
        let printed = text(&output.stdout);
        assert!(output.status.success(), "{arguments}: {printed}");
    }
}

#[test]
fn gemm_and_gather_speak_json() {
    let output = cutlet("gemm --m 8 --n 8 --k 8 --backend cpu --check --iters 1 --json");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!(report["check"]["entries"], 64);
    assert!(report["microseconds"].as_f64().expect("a time") > 0.0);

    let output = cutlet(
        "gather --table-rows 9 --rows 50 --row-bytes 70 --index i64 --backend cpu --check --iters 1 --json",
    );
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON value");
    assert_eq!(report["wrong_elements"], 0);
}

/// One index in eight is no row of the table.
#[test]
fn rows_out_of_range_are_left_out_or_taken_to_the_nearest_row_or_an_error() {
    for command in [
        "gather",
        "scatter",
        "scatter --add bf16",
        "scatter --add f32 --in-order",
    ] {
        let run = |policy: &str| {
            let shape = "--table-rows 9 --rows 50 --row-bytes 72 --index i64";
            cutlet(&format!(
                "{command} {shape} --out-of-range {policy} --backend cpu --check --iters 1 --json"
            ))
        };
        for policy in ["clamp", "skip"] {
            let printed = text(&run(policy).stdout);
            let report: serde_json::Value = serde_json::from_str(&printed).expect("one JSON value");
            assert_eq!(
                report["wrong_elements"], 0,
                "{command}, {policy}: {printed}"
            );
        }
        let output = run("error");
        assert_eq!(output.status.code(), Some(2), "{command}");
        let complaint = text(&output.stderr);
        assert!(
            complaint.contains("was not a row of its table"),
            "{command}: {complaint}"
        );
    }
}

#[test]
fn scatters_store_and_add() {
    for options in [
        "--index i64",
        "--add f32",
        "--add bf16 --index i64",
        "--add f16 --in-order",
        "--add f32 --in-order",
    ] {
        let shape = "--table-rows 9 --rows 50 --row-bytes 72";
        let output = cutlet(&format!(
            "scatter {shape} {options} --backend cpu --check --iters 1 --json"
        ));
        let printed = text(&output.stdout);
        let report: serde_json::Value = serde_json::from_str(&printed).expect("one JSON value");
        assert_eq!(report["wrong_elements"], 0, "{options}: {printed}");
    }
    let complaint = text(&cutlet("scatter --row-bytes 7 --add f32 --backend cpu").stderr);
    assert!(
        complaint.contains("a number has 4 bytes; give a multiple"),
        "{complaint}"
    );
}

#[test]
fn bad_arguments_are_one_line_and_exit_code_2() {
    for arguments in [
        "gemm --m 0",
        "gemm --m -3",
        "gemm --n x",
        "gemm --k 99999999999999999999",
        "gemm --m 3000000000",
        "gemm --n 2147482625",
        "gemm --k 2147482625",
        "gemm --iters 0",
        "gemm --dtype tf32",
        "gemm --dtype f64 --c-dtype f32",
        "gemm --dtype i8 --c-dtype i8",
        "gemm --dtype i8 --alpha 0.5",
        "gemm --alpha nan",
        "gemm --beta inf --dtype f64",
        "gemm --alpha 1e39 --dtype bf16",
        "gemm --beta 1e-60",
        "gemm --k -1",
        "gemm --dtype bf16 --precision tf32",
        "gemm --precision bf16",
        "gemm --activation tanh",
        "gemm --backend tpu",
        "scatter --in-order",
        "scatter --add i8",
        "gather --rows 0",
        "gather --row-bytes -1",
        "gather --row-bytes 2147482625",
        "gather --table-rows 3000000000 --index i32",
        "gather --table-rows 3000000000 --index i64",
        "nonsense",
    ] {
        let output = cutlet(arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        assert!(complaint.starts_with("error: "), "{arguments}: {complaint}");
    }
}

#[test]
fn complaints_about_arguments_are_helpful() {
    for (arguments, helpful) in [
        ("layout", "<EXPR>"),
        ("bench compare", "<OLD> <NEW>"),
        (
            "gemm --dtype bf17",
            "[possible values: f32, bf16, f16, e4m3, e5m2, f64, i8]",
        ),
        ("gemm --dtype bf17", "; tip: a similar value exists: 'bf16'"),
        ("gemm --M 3", "; `--help` lists all"),
        ("gem", "; tip: a similar subcommand exists: 'gemm'"),
    ] {
        let output = cutlet(arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        assert!(complaint.starts_with("error: "), "{arguments}: {complaint}");
        assert!(complaint.contains(helpful), "{arguments}: {complaint}");
    }
}

#[test]
fn help_is_true_of_every_matrix() {
    let help = text(&cutlet("gemm --help").stdout);
    for order in ["row: Rows are contiguous", "col: Columns are contiguous"] {
        assert_eq!(help.matches(order).count(), 3, "{help}");
    }
    // Only the type of A and B decides which cores multiply.
    assert_eq!(help.matches("CUDA cores").count(), 1, "{help}");
}

/// This much memory cannot be addressed on any machine.
#[test]
fn a_problem_that_the_host_cannot_hold_is_one_line_and_exit_code_2() {
    for arguments in [
        "gemm --m 2147482624 --n 2147482624 --k 1 --backend cpu",
        "gemm --m 2147482624 --n 1 --k 2147482624 --dtype bf16 --backend cpu",
        "gather --table-rows 2147482624 --row-bytes 2147482624 --backend cpu",
        "gather --rows 2147482624 --row-bytes 2147482624 --backend cpu",
    ] {
        let output = cutlet(arguments);
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{arguments}: {complaint}");
        for expected in ["error: ", "were asked for on", "a smaller problem"] {
            assert!(complaint.contains(expected), "{arguments}: {complaint}");
        }
    }
}

#[test]
fn every_seed_is_a_seed() {
    let problem = "--m 8 --n 8 --k 8 --beta 1 --bias --backend cpu --check --iters 1";
    let output = cutlet(&format!("gemm --seed {} {problem}", u64::MAX));
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_check_says_how_many_entries_are_rightly_infinite() {
    // Too large for f16.
    let output =
        cutlet("gemm --m 8 --n 8 --k 8 --dtype f16 --alpha 1e30 --backend cpu --check --iters 1");
    let printed = text(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains("of 64 entries, of which 64 are infinite or NaN as they must be"),
        "{printed}"
    );
}

#[test]
fn a_gpu_that_is_not_there_is_one_line_and_exit_code_2() {
    let output = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(["gemm", "--backend", "gpu"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .expect("the command starts");
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    assert!(complaint.contains("`--backend cpu`"), "{complaint}");
}
