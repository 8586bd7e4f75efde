//! Left and right inverses, and the functions built on them: their definitions on all small
//! layouts.

use crate::model::{self, image, layouts, modes};
use cutlet_layout_core::*;

fn small_layouts() -> Vec<model::Modes> {
    let mut all = layouts(64, 2, &[None, Some(0), Some(1), Some(2), Some(7), Some(12)]);
    all.extend(
        layouts(48, 3, &[None, Some(1), Some(0), Some(48)])
            .into_iter()
            .filter(|m| m.len() == 3),
    );
    all
}

#[test]
fn right_inverses() {
    for list in small_layouts() {
        let layout = model::layout(&list);
        let inverse = right_inverse(&layout);
        let indices = image(&modes(&inverse));
        for (i, &c) in indices.iter().enumerate() {
            assert_eq!(layout.at(c), i as i64, "{inverse} of {layout}");
        }
        // There is no longer inverse: if the layout is injective, the next index has no coordinate,
        // or a layout of these extents does not reach its coordinate.
        let all = image(&list);
        let next = indices.len() as i64;
        if is_one_to_one(&all) && all.iter().filter(|&&i| i < 2 * next).count() as i64 == 2 * next {
            panic!("{inverse} of {layout} could be twice as long");
        }
    }
}

fn is_one_to_one(values: &[i64]) -> bool {
    let mut sorted = values.to_vec();
    sorted.sort();
    sorted.is_sorted_by(|a, b| a < b)
}

#[test]
fn right_inverses_use_parts_of_modes_that_overlap() {
    // 0..8 is in the image, but not as whole modes.
    assert_eq!(
        right_inverse(&layout!((4, 4):(1, 2))).to_string(),
        "(_2,_4):(_1,_4)"
    );
    assert_eq!(right_inverse(&layout!((2, 6, 4):(1, 1, 2))).size(), 8);
}

/// Strides that do not divide each other: they share a place, and the weight of a lower place
/// corrects the digits.
#[test]
fn left_inverses_in_other_radices() {
    for (text, inverse) in [
        ("(8,12):(40,3)", "(3,40,3):(-103,8,3)"),
        ("(4,(5,4)):(1,(12,124))", "(4,3,31,2):(1,-20,4,60)"),
    ] {
        let layout: Layout = text.parse().unwrap();
        let found = left_inverse(&layout);
        assert_eq!(found.to_string(), inverse);
        for i in 0..layout.size() {
            assert_eq!(found.at(layout.at(i)), i);
        }
    }
}

#[test]
fn left_inverses() {
    let (mut found, mut refused) = (0u32, 0u32);
    for list in small_layouts() {
        let layout = model::layout(&list);
        match try_left_inverse(&layout) {
            Ok(inverse) => {
                found += 1;
                for (i, &index) in image(&list).iter().enumerate() {
                    assert_eq!(inverse.at(index), i as i64, "{inverse} of {layout}");
                }
            }
            Err(error) => {
                refused += 1;
                let divides = divides_and_spans(&list);
                assert!(!is_one_to_one(&image(&list)) || !divides, "{error}");
            }
        }
    }
    assert!(
        found > 2_000 && refused > 2_000,
        "{found} found, {refused} refused"
    );
}

/// Whether each stride divides the next and is beyond the span of those below it.
fn divides_and_spans(list: &[(i64, i64)]) -> bool {
    let mut modes = model::coalesced(list);
    modes.sort_by_key(|m| m.1);
    modes.iter().all(|m| m.1 != 0)
        && modes
            .windows(2)
            .all(|p| p[1].1 % p[0].1 == 0 && p[1].1 >= p[0].0 * p[0].1)
}

#[test]
fn left_inverses_with_strides_that_do_not_divide() {
    assert_eq!(
        left_inverse(&layout!((6, 2):(1, 7))).to_string(),
        "(_7,_2):(_1,_6)"
    );
    let inverse = left_inverse(&layout!((8, 2):(2, 17)));
    assert!((0..16).all(|i| inverse.at(layout!((8, 2):(2, 17)).at(i)) == i));
    assert!(try_left_inverse(&layout!((4, 2):(1, 0))).is_err());
    assert!(try_left_inverse(&layout!((4, 2):(1, 2))).is_err());
}

#[test]
fn common_vectors() {
    let all = layouts(16, 2, &[None, Some(1), Some(2), Some(4), Some(8)]);
    for a in &all {
        for b in &all {
            let (a, b) = (model::layout(a), model::layout(b));
            let common = max_common_layout(&a, &b);
            assert_eq!(max_common_vector(&a, &b).value(), common.size());
            for (i, &c) in image(&modes(&common)).iter().enumerate() {
                assert_eq!(
                    (a.at(c), b.at(c)),
                    (i as i64, i as i64),
                    "{common} of {a} and {b}"
                );
            }
        }
    }
    assert_eq!(
        max_common_vector(&layout!((8, 4):(1, 8)), &layout!((8, 4):(1, 8))).value(),
        32
    );
    assert_eq!(
        max_common_vector(&layout!((8, 4):(1, 16)), &layout!((8, 4):(1, 8))).value(),
        8
    );
    assert_eq!(
        max_common_vector(&layout!((8, 4):(4, 1)), &layout!((8, 4):(1, 8))).value(),
        1
    );
    assert_eq!(
        max_common_layout(&layout!((8, 4):(4, 1)), &layout!((8, 4):(4, 1))),
        layout!((4, 8):(8, 1))
    );
}

/// CuTe's result: the first mode of `a` along an inverse of whole modes of `b`, if its stride is 1.
fn vector_along_whole_modes(a: &Layout, b: &Layout) -> i64 {
    let list = model::coalesced(&modes(b));
    let (mut inverse, mut next) = (vec![(1, 0)], 1);
    while let Some(at) = list.iter().position(|&(_, stride)| stride == next) {
        inverse.push((list[at].0, model::size(&list[..at])));
        next *= list[at].0;
    }
    let Ok(composed) = try_composition(a, &model::layout(&inverse)) else {
        return 1;
    };
    match model::coalesced(&modes(&composed)).first() {
        Some(&(extent, 1)) => extent,
        _ => 1,
    }
}

#[test]
fn common_vectors_are_as_long_as_along_whole_modes() {
    let all = layouts(16, 2, &[None, Some(1), Some(2), Some(4), Some(-1)]);
    for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (a, b))) {
        let (a, b) = (model::layout(a), model::layout(b));
        let (common, least) = (max_common_layout(&a, &b), vector_along_whole_modes(&a, &b));
        assert!(
            common.size() >= least,
            "{common} of {a} and {b}, not {least}"
        );
    }
    let (four, more) = (layout!(4:1), layout!((4, 4):(1, 2)));
    assert_eq!(max_common_layout(&four, &more).to_string(), "_4:_1");
    assert_eq!(max_common_layout(&more, &four).to_string(), "_4:_1");
    assert_eq!(
        max_common_layout(&more, &more).to_string(),
        "(_2,_4):(_1,_4)"
    );
}

#[test]
fn distributing_elements() {
    for n in 1..=12 {
        for m in [
            shape!((15, 14)),
            shape!((4, 6)),
            shape!(24),
            shape!((2, (3, 5))),
        ] {
            let spread = domain_distribute(&m, Int::fixed(n));
            assert_eq!(n % spread.size(), 0);
            assert!(image(&modes(&spread)).is_sorted_by(|a, b| a < b));
            let divided = zipped_divide(&Layout::col_major(&m), &Tiler::layout(&spread));
            assert_eq!(divided.size(), m.size());
        }
    }
}
