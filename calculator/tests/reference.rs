//! What pycute prints, line by line: the same is printed here, or the difference has the reason that the file gives.

use crate::check::answer;
use cutlet_calculator::{Options, compare_functions, evaluate};
use cutlet_layout_core::Layout;

const PYCUTE: &str = include_str!("data/pycute.txt");

/// The expressions under a reason, with pycute's results.
fn lines(reason: &str) -> Vec<(&'static str, &'static str)> {
    let title = format!("== {reason}");
    let lines = PYCUTE.lines().skip_while(|line| *line != title).skip(1);
    let lines: Vec<_> = lines
        .take_while(|line| !line.starts_with("=="))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split_once(" = ").unwrap_or((line, "")))
        .collect();
    assert!(lines.len() > 20, "{reason}");
    lines
}

fn ours(text: &str) -> String {
    answer(text, Options { is_static: true }).replace('_', "")
}

/// Fails with the lines for which a property does not hold.
fn all(reason: &str, holds: impl Fn(&str, &str, &str) -> bool) {
    let found = lines(reason)
        .into_iter()
        .map(|(text, theirs)| (text, theirs, ours(text)));
    let wrong: Vec<String> = found
        .filter(|(text, theirs, ours)| !holds(text, theirs, ours))
        .map(|(text, theirs, ours)| format!("{text}\n  is {ours}\n  and {theirs} in pycute"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn layout(text: &str) -> Layout {
    evaluate(text).unwrap().layout().unwrap()
}

#[test]
fn results_are_pycutes() {
    all("same", |_, theirs, ours| ours == theirs);
}

/// "layout<0>(zipped_divide(a, b)) == composition(a, b)": a kept mode is its own tile.
#[test]
fn kept_modes_are_tiles() {
    all("kept modes", |text, theirs, ours| {
        let (operation, operands) = text.split_once('(').unwrap();
        let tile = if operation == "flat_divide" {
            let rank = operands.rsplit_once('<').unwrap().1;
            let rank = self::ours(&format!("rank(<{rank}"));
            self::ours(&format!("take({ours}, 0, {rank})"))
        } else {
            self::ours(&format!("layout<0>({ours})"))
        };
        let indices = |text: &str| {
            let a = layout(text);
            let mut indices: Vec<i64> = (0..a.size()).map(|c| a.at(c)).collect();
            indices.sort_unstable();
            indices
        };
        tile == self::ours(&format!("composition({operands}")) && indices(theirs) == indices(ours)
    });
}

#[test]
fn modes_of_extent_1_keep_their_stride() {
    let without = |layout: &Layout| -> Vec<(i64, i64)> {
        let leaves =
            (0..layout.num_leaves()).map(|i| (layout.leaf_shape(i), layout.leaf_stride(i)));
        leaves
            .map(|(shape, stride)| (shape.value(), stride.value()))
            .filter(|mode| mode.0 != 1)
            .collect()
    };
    all("extent 1", |_, theirs, ours| {
        let (theirs, found) = (layout(theirs), layout(ours));
        theirs.shape() == found.shape() && without(&theirs) == without(&found) && theirs != found
    });
}

#[test]
fn inverses_invert_and_right_ones_are_longest() {
    all("inverse", |text, theirs, ours| {
        let (theirs, found) = (layout(theirs), layout(ours));
        let open = text.find('(').unwrap();
        let a = layout(&text[open + 1..text.len() - 1]);
        if text.starts_with("right") {
            (0..found.size()).all(|i| a.at(found.at(i)) == i) && found.size() > theirs.size()
        } else {
            (0..a.size()).all(|c| found.at(a.at(c)) == c)
        }
    });
}

#[test]
fn ranked_products_are_coalesced() {
    all("coalesced", |_, theirs, ours| {
        let (theirs, found) = (evaluate(theirs).unwrap(), evaluate(ours).unwrap());
        let ones = vec!["1"; layout(ours).rank()].join(",");
        let coalesced = self::ours(&format!("coalesce({ours}, ({ones},))"));
        compare_functions(&theirs, &found)
            .unwrap()
            .is_same_function()
            && coalesced == ours
    });
}

#[test]
fn what_no_layout_is_is_refused() {
    all("refused", |_, _, ours| ours.starts_with("error: column "));
}
