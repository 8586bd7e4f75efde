//! Progress is drawn on a terminal, and only there.

#![cfg(target_os = "linux")]

use std::process::{Command, Stdio};

/// A small problem.
const GEMM: &str = "gemm --m 64 --n 64 --k 64 --check --iters 1 --backend cpu";

/// What the command writes to a terminal; `None` if there is no program that has one.
fn on_terminal(arguments: &str, variables: &[(&str, &str)]) -> Option<String> {
    let command = format!("'{}' {arguments}", env!("CARGO_BIN_EXE_cutlet"));
    let output = Command::new("script")
        .args(["-q", "-e", "-c", &command, "/dev/null"])
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        cutlet_not_run::not_run("there is no `script`");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn a_terminal_shows_what_is_done() {
    let Some(drawn) = on_terminal(GEMM, &[]) else {
        return;
    };
    for step in [
        "random matrices",
        "first product",
        "products",
        "reference in f64",
    ] {
        assert!(drawn.contains(step), "no {step} in {drawn}");
    }
    let Some(drawn) = on_terminal("bench moe --tokens 16 --rounds 5 --backend cpu", &[]) else {
        return;
    };
    assert!(drawn.contains("16 tokens: route"), "{drawn}");
}

#[test]
fn nothing_is_drawn_where_it_is_not_wanted() {
    let json = format!("{GEMM} --json");
    let quiet = format!("{GEMM} --quiet");
    for (arguments, variables) in [
        (&*json, &[][..]),
        (&*quiet, &[]),
        (GEMM, &[("NO_COLOR", "1")]),
        (GEMM, &[("TERM", "dumb")]),
    ] {
        let Some(written) = on_terminal(arguments, variables) else {
            return;
        };
        assert!(
            !written.contains("random matrices"),
            "{arguments}: {written}"
        );
        assert!(!written.contains('\u{1b}'), "{arguments}: {written}");
    }
    let output = Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(GEMM.split(' '))
        .output()
        .expect("the command starts");
    assert!(output.stderr.is_empty(), "{output:?}");
}
