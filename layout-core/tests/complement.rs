//! Complement: its post-conditions on all small layouts, and errors for overlapping ones.

mod model;

use cutlet_layout_core::*;
use model::{image, layouts, modes};

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

fn post_conditions(layout: &Layout, complement: &Layout, target: i64) {
    let (own, rest) = (image(&modes(layout)), image(&modes(complement)));
    assert!(
        rest.is_sorted_by(|a, b| a < b),
        "{complement} of {layout} is not ordered"
    );
    assert!(
        rest[1..].iter().all(|i| !own.contains(i)),
        "{complement} meets {layout}"
    );
    let cosize = filter(layout).cosize();
    let bound = (target + cosize - 1) / cosize * cosize;
    assert!(
        complement.cosize() <= bound,
        "{complement} of {layout} is beyond {bound}"
    );
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
fn the_bound_is_kept_where_the_target_is_no_multiple() {
    // Rounding up at the end would reach 30, beyond 28.
    assert_eq!(
        complement(&layout!(3:3), &shape!(28)).to_string(),
        "(_3,_3):(_1,_9)"
    );
    // A division rounds up nevertheless, because its last tile may be partial.
    assert_eq!(logical_divide(&layout!(28:1), &tile!(3:3)).size(), 36);
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
