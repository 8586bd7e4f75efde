//! `cutlet contract`: results on the CPU backend, what it says of how they are computed, and bad arguments.

use std::process::{Command, Output};

fn cutlet(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cutlet"))
        .args(arguments.split_whitespace())
        .output()
        .expect("the command starts")
}

/// What a contraction on the CPU prints. It is checked, and right.
fn checked(arguments: &str) -> String {
    let output = cutlet(&format!(
        "contract {arguments} --backend cpu --check --iters 1"
    ));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{arguments}: {printed}\n{complaints}"
    );
    assert!(printed.contains("\nerror    "), "{printed}");
    printed
}

#[test]
fn a_contraction_prints_how_it_is_computed_its_speed_and_its_error() {
    let printed = checked("bij,bkj->ik --extents b=3,i=20,j=24,k=30");
    for expected in [
        "cpu (it was asked for)",
        "problem  f32 bij,bkj->ik, b=3 i=20 j=24 k=30",
        "computed M = i 20, N = k 30, K = ",
        "A: copied",
        "C: as it lies",
        "FLOP/s, ",
        "B/s",
        "of 600 entries",
    ] {
        assert!(printed.contains(expected), "no {expected:?} in {printed}");
    }
}

#[test]
fn every_element_type_is_right() {
    for options in [
        "--dtype f32",
        "--dtype f32 --precision tf32",
        "--dtype f32 --precision 3xtf32",
        "--dtype bf16",
        "--dtype bf16 --c-dtype f32",
        "--dtype f16 --beta 1",
        "--dtype f64 --alpha 0.5 --beta -2",
        "--dtype i8 --alpha 3 --beta 1",
    ] {
        checked(&format!(
            "abcd,dbea->ec --extents a=6,b=5,c=16,d=6,e=20 {options}"
        ));
    }
}

#[test]
fn layouts_say_where_elements_are() {
    // Queries and keys among the thirds of one tensor, a transposed C with gaps, a repeated row, and a diagonal.
    let thirds = "(2,16,4,8):(1536,96,8,1)";
    let scores = format!("bshd,bthd->bhst --layout-a {thirds} --layout-b {thirds}");
    let printed = checked(&scores);
    assert!(printed.contains("b=2 d=8 h=4 s=16 t=16"), "{printed}");
    checked(&format!(
        "{scores} --layout-c (2,4,16,16):(2000,500,1,20) --beta 1"
    ));
    checked("ij,kj->ik --layout-a (20,24):(0,1) --extents k=10");
    checked("ii,ij->j --extents i=20,j=30");
    checked("ij,kj->ik --layout-a ((2,3),4):((12,4),1) --extents k=10");
}

#[test]
fn what_would_be_computed_is_explained() {
    let output =
        cutlet("contract bshd,bthd->bhst --extents b=2,s=64,h=4,d=16,t=64 --backend cpu --explain");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.contains("computed M = s 64, N = t 64, K = d 16"),
        "{printed}"
    );
    assert!(!printed.contains("time"), "{printed}");
}

#[test]
fn bad_arguments_are_refused_in_one_line() {
    for (arguments, expected) in [
        ("", "MODES"),
        (
            "ij --extents i=2",
            "has no `->` and no output; write `ab,bc->ac`",
        ),
        (
            "ij,jk->ik --extents i=2,j=3",
            "the mode k has no extent; give one, as `k=64`",
        ),
        (
            "ij,jk->ik --extents i=2,j=3,k",
            "write a mode's letter, `=` and its extent",
        ),
        ("ij,jk->ik --extents i=2,j=3,k=4,l=5", "no mode l"),
        ("ij,jk->ik --layout-a (2,3 --extents k=4", "--layout-a"),
        (
            "ij,jk->ik --layout-a (2,3):(-3,1) --extents k=4",
            "strides are numbers of elements",
        ),
        (
            "ij,jk->ik --layout-a (2,3):(3,1) --extents j=4,k=4",
            "4 elements by its extent and 3 by the layout of A",
        ),
        (
            "ij,jk->ik --layout-c (2,4):(0,1) --extents j=4 --check",
            "leads to elements that it has already",
        ),
        (
            "ij,jk->ik --extents i=2,j=3,k=4 --dtype i8 --c-dtype f32",
            "leave out --c-dtype",
        ),
        (
            "ij,jk->ik --extents i=2,j=3,k=4 --explain --check",
            "cannot be used with",
        ),
    ] {
        let output = cutlet(&format!("contract {arguments} --backend cpu"));
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments}: {error}");
        assert_eq!(error.lines().count(), 1, "{error}");
        assert!(error.contains(expected), "{arguments}: {error}");
    }
}
