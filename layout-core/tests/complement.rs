//! Complement: its post-conditions on all small layouts, and errors for overlapping ones.

use crate::model::{self, image, layouts, modes};
use cutlet_layout_core::*;

#[test]
fn post_conditions_hold_for_all_small_layouts() {
    let mut all = layouts(
        64,
        2,
        &[None, Some(0), Some(1), Some(2), Some(3), Some(6), Some(20)],
    );
    all.extend(
        layouts(32, 3, &[None, Some(0), Some(1), Some(24)])
            .into_iter()
            .filter(|m| m.len() == 3),
    );
    let (mut found, mut refused) = (0u32, 0u32);
    for list in all {
        let layout = model::layout(&list);
        for target in [1, 7, 24, 60, 64] {
            match try_complement(&layout, &IntTuple::fixed(&[target]).mode(0)) {
                Ok(complement) => {
                    found += 1;
                    post_conditions(&layout, &complement, target);
                }
                Err(error) => {
                    refused += 1;
                    assert_eq!(error.kind(), ErrorKind::Overlap, "{error}");
                    assert!(interleaves(&list), "{error}");
                }
            }
        }
    }
    assert!(
        found > 30_000 && refused > 15_000,
        "{found} found, {refused} refused"
    );
}

/// The post-conditions of CuTe's documentation, and that nothing smaller has them.
///
/// The documentation also has "cosize(@a result) >= round_up(size(@a cotarget), cosize(@a layout_a))".
/// Its own examples break this one: `complement(4:1, 24)` is `6:4`, whose cosize is 21.
fn post_conditions(layout: &Layout, complement: &Layout, target: i64) {
    let (own, rest) = (image(&modes(layout)), image(&modes(complement)));
    // "@post cosize(make_layout(@a layout_a, @a result))) >= size(@a cotarget)"
    let cosize = |rest: &Layout| Layout::concat2(layout, rest).cosize();
    assert!(
        cosize(complement) >= target,
        "{layout} and {complement} do not reach {target}"
    );
    // "@post for all i, 1 <= i < size(@a result), @a result(i-1) < @a result(i)"
    assert!(
        rest.is_sorted_by(|a, b| a < b),
        "{complement} of {layout} is not ordered"
    );
    // "@post … for all j, 0 <= j < size(@a layout_a), @a result(i) != @a layout_a(j)"
    assert!(
        rest[1..].iter().all(|i| !own.contains(i)),
        "{complement} meets {layout}"
    );
    // "The size (and cosize) of R is bounded by size(M)": it is the smallest that reaches the
    // cotarget. With fewer of the last repetitions, the first post-condition would not hold.
    let end = model::coalesced(&modes(&filter(layout)))
        .iter()
        .map(|&(extent, stride)| extent * stride)
        .max()
        .unwrap_or(1);
    let last = complement.num_leaves() - 1;
    let (extent, stride) = (
        complement.leaf_shape(last).value(),
        complement.leaf_stride(last).value(),
    );
    if extent > 1 && stride == end {
        let mut fewer = modes(complement);
        fewer[last].0 -= 1;
        assert!(
            cosize(&model::layout(&fewer)) < target,
            "{complement} of {layout} is beyond {target}"
        );
    }
    // Together they are injective if the layout is.
    let both = Layout::concat2(&filter(layout), complement);
    let mut together = image(&modes(&both));
    together.sort();
    assert!(
        together.is_sorted_by(|a, b| a < b),
        "{complement} repeats a part of {layout}"
    );
}

/// Whether some mode begins inside the span of the modes of smaller strides.
fn interleaves(list: &[(i64, i64)]) -> bool {
    let mut modes: Vec<_> = model::coalesced(
        &list
            .iter()
            .copied()
            .filter(|m| m.1 != 0)
            .collect::<Vec<_>>(),
    );
    modes.sort_by_key(|m| m.1);
    modes
        .windows(2)
        .any(|pair| pair[1].1 < pair[0].0 * pair[0].1)
}

#[test]
fn refusals_say_why() {
    let error = try_complement(&layout!((4, 2):(1, 2)), &shape!(24)).unwrap_err();
    assert_eq!(
        error.message(),
        "complement: (4,2):(1,2) overlaps itself: its mode 2:2 begins inside the first 4 indices, \
         which its other modes already span: give it a stride of at least 4"
    );
    for (layout, target) in [
        ("4:-1", "24"),
        ("4:1@0", "24"),
        ("4:1", "(4,_)"),
        ("4:1", "0"),
    ] {
        assert!(try_complement(&layout.parse().unwrap(), &target.parse().unwrap()).is_err());
    }
}

#[test]
fn the_last_extent_is_rounded_up() {
    for (layout, target, expected) in [
        ("_2:_2", 9, "(_2,_3):(_1,_4)"),
        ("_2:_7", 48, "(_7,_4):(_1,_14)"),
        ("_3:_3", 28, "(_3,_4):(_1,_9)"),
        // Index 5 is in a gap that nothing fits, so the first repetition ends at 5.
        ("(_2,_2):(_1,_3)", 5, "_1:_0"),
        ("(_2,_2):(_1,_3)", 6, "_2:_6"),
        ("(_2,_2):(_1,_3)", 11, "_2:_6"),
        ("(_2,_2):(_1,_3)", 12, "_3:_6"),
    ] {
        let layout: Layout = layout.parse().unwrap();
        let target = IntTuple::int(Int::fixed(target));
        assert_eq!(complement(&layout, &target).to_string(), expected);
    }
    assert_eq!(logical_divide(&layout!(28:1), &tile!(3:3)).size(), 36);
}

#[test]
fn a_gap_at_the_end_counts_for_a_cotarget_of_several_extents() {
    let n = 6;
    let rest = complement(&layout!((2, 2):(1, 3)), &shape!((6, dyn n)));
    assert_eq!(rest.to_string(), "7:_6");
}

#[test]
fn everything_repeats_to_fill_a_target() {
    assert_eq!(complement(&layout!(1:0), &shape!(24)).to_string(), "_24:_1");
    assert_eq!(complement(&layout!(5:0), &shape!(24)).to_string(), "_24:_1");
    assert_eq!(complement(&layout!(8:1), &shape!(1)).to_string(), "_1:_0");
    let n = 6;
    assert_eq!(
        complement(&layout!(4:0), &shape!((4, dyn n))).to_string(),
        "(_4,6):(_1,_4)"
    );
}
