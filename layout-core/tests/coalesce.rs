//! Coalesce and filter: all small layouts, and dynamic integers, which stay.

use crate::model::{self, image, layouts, modes};
use cutlet_layout_core::*;

fn small_layouts() -> Vec<model::Modes> {
    let mut all = layouts(64, 2, &[None, Some(0), Some(1), Some(3), Some(8)]);
    all.extend(
        layouts(64, 4, &[None, Some(0), Some(5)])
            .into_iter()
            .filter(|m| m.len() > 2),
    );
    all
}

#[test]
fn coalescing_keeps_the_function_and_leaves_nothing_to_merge() {
    let all = small_layouts();
    assert!(all.len() > 10_000);
    for list in all {
        let layout = model::layout(&list);
        let result = coalesce(&layout);
        assert!(
            result.depth() <= 1 && result.size() == layout.size(),
            "{layout} gives {result}"
        );
        assert_eq!(
            image(&modes(&result)),
            image(&list),
            "{layout} gives {result}"
        );
        assert_eq!(
            modes(&result),
            model::coalesced(&list),
            "{layout} gives {result}"
        );
    }
}

#[test]
fn filtering_leaves_every_value_once_per_repetition() {
    for list in small_layouts() {
        let layout = model::layout(&list);
        let result = filter(&layout);
        let kept: model::Modes = list.iter().copied().filter(|m| m.1 != 0).collect();
        assert_eq!(
            image(&modes(&result)),
            image(&kept),
            "{layout} gives {result}"
        );
        assert_eq!(result.size() * nullspace(&layout).size(), layout.size());
        for i in image(&modes(&nullspace(&layout))) {
            assert_eq!(layout.at(i), 0);
        }
    }
}

#[test]
fn nothing_left_is_one() {
    assert_eq!(
        coalesce(&layout!((1, (1, 1)):(3, (4, 5)))).to_string(),
        "_1:_0"
    );
    assert_eq!(filter(&layout!((4, 2):(0, 0))).to_string(), "_1:_0");
    assert_eq!(nullspace(&layout!((4, 2):(1, 4))).to_string(), "_1:_0");
}

#[test]
fn a_nullspace_has_the_modes_of_dynamic_stride_0_too() {
    for (text, expected) in [
        ("(2,12):(14,0)", "12:2"),
        ("(2,(12,3)):(14,(0,0))", "(12,3):(2,24)"),
        ("(_2,3):(0,1)", "_2:_1"),
        ("(2,12):(14,1)", "_1:_0"),
    ] {
        let layout: Layout = text.parse().unwrap();
        let found = nullspace(&layout);
        assert_eq!(found.to_string(), expected, "{text}");
        assert!(image(&modes(&found)).iter().all(|&i| layout.at(i) == 0));
    }
}

#[test]
fn dynamic_modes_are_kept() {
    let text = |text: &str| coalesce(&text.parse().unwrap()).to_string();
    assert_eq!(text("(4,1):(1,9)"), "(4,1):(1,9)");
    assert_eq!(text("(4,_1):(1,9)"), "4:1");
    assert_eq!(text("(4,5):(1,4)"), "(4,5):(1,4)");
    assert_eq!(text("(_4,_5):(_1,_4)"), "_20:_1");
    assert_eq!(text("(_4,5):(_1,_4)"), "(_4,5):(_1,_4)");
    assert_eq!(text("(4,_5):(_0,_0)"), "20:_0");
    assert_eq!(text("(_4,_5):(1,_4)"), "(_4,_5):(1,_4)");
    assert_eq!(
        filter_zeros(&"(4,_3):(_0,0)".parse().unwrap()).to_string(),
        "(_1,_3):(_0,0)"
    );
}

#[test]
fn profiles_choose_where() {
    let a = layout!(((2, 1), (3, (4, 5))):((1, 7), (0, (2, 8))));
    assert_eq!(
        coalesce_by_mode(&a, &shape!((1, (1, 1)))).to_string(),
        "(_2,(_3,_20)):(_1,(_0,_2))"
    );
    assert_eq!(
        coalesce_by_mode(&a, &shape!((1))).to_string(),
        "(_2,(_3,(_4,_5))):(_1,(_0,(_2,_8)))"
    );
    assert_eq!(
        filter_by_mode(&a, &shape!((1, 1))).to_string(),
        "(_2,_20):(_1,_2)"
    );
    assert!(try_coalesce_by_mode(&a, &shape!((1, 1, 1))).is_err());
}
