//! Products: a block, and its repetitions in the tiler's order, on all small layouts.

use crate::model::{self, image, layouts, modes};
use cutlet_layout_core::*;
use proptest::prelude::*;

#[test]
fn repetitions_are_disjoint_and_in_the_tilers_order() {
    let blocks = layouts(16, 2, &[None, Some(1), Some(2), Some(6), Some(8)]);
    let tilers = layouts(12, 2, &[None, Some(1), Some(2), Some(3), Some(4)]);
    let mut multiplied = 0u32;
    for a in &blocks {
        for b in &tilers {
            let (a, b) = (model::layout(a), model::layout(b));
            let Ok(product) = try_logical_product(&a, &Tiler::layout(&b)) else {
                continue;
            };
            multiplied += 1;
            assert_eq!(product.mode(0), a);
            assert!(
                b.is_compatible_with(&product.mode(1)),
                "{a} x {b} gives {product}"
            );
            let (block, own) = (image(&modes(&a)), image(&modes(&b)));
            let tiles = image(&modes(&product.mode(1)));
            for (x, y) in (0..tiles.len()).flat_map(|i| (0..i).map(move |j| (i, j))) {
                assert_eq!(
                    own[x].cmp(&own[y]),
                    tiles[x].cmp(&tiles[y]),
                    "{a} x {b} gives {product}"
                );
                let distance = tiles[x] - tiles[y];
                let meet = distance != 0 && block.iter().any(|i| block.contains(&(i + distance)));
                assert!(!meet, "two blocks of {a} x {b} meet in {product}");
            }
        }
    }
    assert!(multiplied > 5_000, "{multiplied}");
}

#[test]
fn blocks_and_rakes() {
    let (a, b) = (layout!((2, 5):(5, 1)), layout!((3, 4):(1, 3)));
    let (blocked, raked) = (blocked_product(&a, &b), raked_product(&a, &b));
    for (i, j, m, n) in (0..240).map(|c| (c % 2, c / 2 % 5, c / 10 % 3, c / 30 % 4)) {
        let expected = a.index((i, j)) + 10 * b.index((m, n));
        assert_eq!(blocked.index((i + 2 * m, j + 5 * n)), expected);
        assert_eq!(raked.index((m + 3 * i, n + 4 * j)), expected);
    }
    assert_eq!(
        blocked_product(&layout!(4:1), &layout!((2, 3):(1, 2))).to_string(),
        "(_8,_3):(_1,_8)"
    );
    assert_eq!(
        blocked_product(&layout!(4:1), &layout!(3:1)).to_string(),
        "(_12):(_1)"
    );
}

#[test]
fn tiling_to_a_shape() {
    let atom = layout!((8, 64):(64, 1));
    let by_columns = tile_to_shape(&atom, &shape!((128, 128)), &shape!((0, 1)));
    assert_eq!(by_columns.to_string(), "(_128,(_64,_2)):(_64,(_1,_8192))");
    assert!(compatible(&shape!((128, 128)), &by_columns.shape()));
    let by_rows = tile_to_shape(&atom, &shape!((128, 128)), &shape!((1, 0)));
    assert_eq!(
        by_rows.to_string(),
        "((_8,_16),(_64,_2)):((_64,_1024),(_1,_512))"
    );
    let staged = tile_to_shape(&atom, &shape!((128, 64, 3)), &shape!((0, 1, 2)));
    assert_eq!(staged.to_string(), "(_128,_64,_3):(_64,_1,_8192)");
    let dynamic = tile_to_shape(&atom, &shape!((128, 128)), &(1, 0).into());
    assert_eq!(dynamic, by_rows, "a dynamic order says the same");
    assert!(try_tile_to_shape(&atom, &shape!((100, 64)), &shape!((0, 1))).is_err());
    assert!(try_tile_to_shape(&atom, &shape!(512), &shape!(0)).is_err());
}

#[test]
fn a_product_that_no_layout_computes_is_refused() {
    assert!(try_logical_product(&layout!(4:2), &tile!(5:1)).is_err());
    assert!(try_logical_product(&layout!((4, 2):(1, 2)), &tile!(3:1)).is_err());
    assert!(try_logical_product(&layout!(4:1), &tile!(3:1@0)).is_err());
}

#[test]
fn blocks_that_would_overlap_are_refused() {
    let refused = |a: Layout, b: Layout| {
        let error = try_logical_product(&a, &Tiler::layout(&b)).unwrap_err();
        error.message().to_string()
    };
    for tiler in [layout!((4, 2):(2, -5)), layout!((4, 2):(2, -7))] {
        let why = refused(layout!(2:4), tiler);
        assert!(why.contains("maps below 0"), "{why}");
    }
    let gaps = layout!((2, 2, 2):(1, 3, 11));
    assert_eq!(
        refused(gaps, layout!(2:1)),
        "product: (2,2,2):(1,3,11) by 2:1: the tiler's cosize asks for 2 repetitions, but only 1 \
         fit without overlap: give a tiler of a smaller cosize"
    );
    let gap = layout!((2, 2):(6, 2));
    assert_eq!(
        logical_product(&gap, &tile!(2:1)).to_string(),
        "((_2,_2),_2):((_6,_2),_1)"
    );
    // The complement in 12 repeats the block once more, because the gap at its end stays open.
    assert_eq!(
        logical_product(&gap, &tile!(2:2)).to_string(),
        "((_2,_2),_2):((_6,_2),_12)"
    );
    // Beyond the block there is always room.
    assert_eq!(
        logical_product(&gap, &tile!(4:2)).to_string(),
        "((_2,_2),_4):((_6,_2),_12)"
    );
}

#[test]
fn an_underscore_keeps_its_mode() {
    let a = layout!((4, 3):(1, 4));
    assert_eq!(logical_product(&a, &tile!(<_, 2>)).mode(0), a.mode(0));
    assert_eq!(
        zipped_product(&a, &tile!(<2, _>)).to_string(),
        "((_4,_1),(_2,_3)):((_1,_0),(_4,_4))"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    // "make_layout(layout, composition(complement(layout, size(layout)*cosize(tiler)), tiler))"
    #[test]
    fn a_product_is_the_layout_and_a_composition_with_its_complement(
        a in prop::collection::vec((1..7i64, 0..30i64), 1..4),
        b in prop::collection::vec((1..7i64, 0..20i64), 1..3),
    ) {
        let (a, b) = (model::layout(&a), model::layout(&b));
        let target = IntTuple::int(a.size_int() * b.cosize_int());
        let defined = try_complement(&a, &target).and_then(|rest| try_composition(&rest, &b));
        match (try_logical_product(&a, &Tiler::layout(&b)), defined) {
            (Ok(product), Ok(repetitions)) => {
                prop_assert_eq!(product, Layout::concat2(&a, &repetitions));
            }
            // By its definition alone, blocks overlap.
            (Err(error), Ok(_)) => prop_assert_eq!(error.kind(), ErrorKind::Overlap),
            (product, Err(_)) => prop_assert!(product.is_err()),
        }
    }
}
