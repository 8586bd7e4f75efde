//! Swizzles and composed layouts: involutions, widths, and operations on the outer layout.

use cutlet_layout_core::*;

#[test]
fn a_swizzle_undoes_itself_and_permutes_its_period() {
    for (bits, base, shift) in [(3, 4, 3), (2, 0, 5), (1, 3, -4), (3, 0, -3), (0, 2, 0)] {
        let swizzle = Swizzle::new(bits, base, shift);
        let period = 1 << (bits + base + shift.abs());
        let mut hit = vec![false; period as usize];
        for i in 0..period {
            assert_eq!(swizzle.apply(swizzle.apply(i)), i);
            hit[swizzle.apply(i) as usize] = true;
            assert_eq!(swizzle.apply(i + 5 * period), swizzle.apply(i) + 5 * period);
        }
        assert!(hit.iter().all(|&h| h), "{swizzle}");
        assert_eq!(swizzle.source_mask() & swizzle.target_mask(), 0);
    }
}

#[test]
fn impossible_swizzles_are_refused() {
    for (bits, base, shift) in [
        (3, 4, 2),
        (-1, 0, 3),
        (3, -1, 3),
        (3, 58, 3),
        (1, 0, i64::MIN),
        (70, 0, 70),
    ] {
        assert!(
            Swizzle::try_new(bits, base, shift).is_err(),
            "Sw<{bits},{base},{shift}>"
        );
    }
}

#[test]
fn refusals_of_swizzles_say_which_limit_is_broken() {
    for (bits, base, shift, limit) in [
        (3, 4, 2, "|shift| must be at least bits"),
        (3, -1, 3, "must not be negative"),
        (63, 0, 63, "at most 62"),
        (0, 63, 0, "at most 62"),
        (0, 0, -63, "at most 62"),
        (3, 58, 3, "at most 63"),
    ] {
        let error = Swizzle::try_new(bits, base, shift).unwrap_err();
        assert!(error.message().contains(limit), "{error}");
    }
}

#[test]
fn the_same_memory_in_other_widths() {
    let bytes = Swizzle::new(3, 4, 3);
    assert_eq!(bytes.try_recast(8, 16).unwrap(), Swizzle::new(3, 3, 3));
    assert_eq!(bytes.try_recast(8, 4).unwrap(), Swizzle::new(3, 5, 3));
    assert!(bytes.try_recast(8, 256).is_err() && bytes.try_recast(8, 24).is_err());
    for i in 0..1024 {
        assert_eq!(
            bytes.try_recast(8, 16).unwrap().apply(i) * 2,
            bytes.apply(i * 2)
        );
    }
}

/// Every byte of every element stays in its place, for every pair of widths.
#[test]
fn swizzled_layouts_recast_to_the_same_bytes() {
    for (bits, base, shift) in [
        (3, 4, 3),
        (2, 4, 3),
        (1, 4, 3),
        (3, 3, 3),
        (2, 3, -2),
        (0, 0, 3),
    ] {
        for offset in [0, 8, 64, 520] {
            for (rows, columns) in [(8, 64), (16, 128)] {
                // Rows of elements of 16 bits.
                let outer = layout!((dyn rows, dyn columns):(dyn columns, 1));
                let offset = IntTuple::from(offset);
                let halves = ComposedLayout::new(Swizzle::new(bits, base, shift), offset, outer);
                for width in [1, 2, 4, 8, 16] {
                    let Ok(recast) = halves.try_recast(16, 8 * width) else {
                        // Refused only if the swizzle permutes parts of an element.
                        assert!(bits > 0 && 2 << base < width, "{halves} in {width} bytes");
                        continue;
                    };
                    for row in 0..rows {
                        for byte in 0..2 * columns {
                            let old = halves.call(&(row, byte / 2).into()).leaf(0).value();
                            let new = recast.call(&(row, byte / width).into()).leaf(0).value();
                            assert_eq!(new * width + byte % width, old * 2 + byte % 2);
                        }
                    }
                }
            }
        }
    }
    let inside = ComposedLayout::new(Swizzle::new(3, 3, 3), shape!(1), layout!(8:1));
    let error = inside.try_recast(16, 32).unwrap_err();
    assert_eq!(
        error.message(),
        "recast: the offset 1 in elements that are 2 times as wide: it would be inside an element: begin where an \
         element does"
    );
}

#[test]
fn operations_act_on_the_outer_layout() {
    let a = ComposedLayout::new(Swizzle::new(2, 0, 3), shape!(0), layout!((8, 8):(8, 1)));
    let tiles = a.zipped_divide(&tile!(<4, 2>));
    let sliced = tiles.slice(&shape!((_, (1, 2))));
    assert_eq!(sliced.to_string(), "Sw<2,0,3> o _36 o ((_4,_2)):((_8,_1))");
    for (i, j) in (0..8).map(|c| (c % 4, c / 4)) {
        assert_eq!(
            sliced.call(&IntTuple::tuple(&[(i, j).into()])),
            a.call(&(4 + i, 4 + j).into())
        );
    }
    let columns = a.composition(&layout!((2, 8):(1, 8)));
    assert_eq!(columns.outer().to_string(), "(_2,_8):(_8,_1)");
    assert!(a.try_composition(&layout!(3:7)).is_err());
    let twice = a.blocked_product(&layout!((1, 2):(1, 1)));
    assert_eq!(
        twice.to_string(),
        "Sw<2,0,3> o _0 o (_8,(_8,_2)):(_8,(_1,_64))"
    );
    assert_eq!(twice, a.tile_to_shape(&shape!((8, 16)), &shape!((0, 1))));
    assert_eq!(
        a.logical_product(&tile!(2:1)).outer().to_string(),
        "((_8,_8),_2):((_8,_1),_64)"
    );
    let flat = twice.coalesce_by_mode(&shape!(1));
    assert_eq!(flat.outer().to_string(), "(_8,_8,_2):(_8,_1,_64)");
    assert_eq!(
        flat.with_shape(&shape!((8, 16))).outer(),
        &layout!((8, (8, 2)):(8, (1, 64)))
    );
    assert_eq!((a.size(), a.rank(), a.shape()), (64, 2, shape!((8, 8))));
}

#[test]
fn recasting_layouts() {
    let a = layout!((8, (4, 2)):(1, (8, 64)));
    for n in [1, 2, 4, 8] {
        assert_eq!(downcast(&upcast(&a, n), n), a);
    }
    assert_eq!(
        recast(&a, 16, 8).to_string(),
        "(_16,(_4,_2)):(_1,(_16,_128))"
    );
    assert_eq!(
        recast(&layout!((6, 4):(1, 6)), 16, 24).to_string(),
        "(_4,_4):(_1,_4)"
    );
}

/// A refusal names the swizzle that it was given, not the one that would come out.
#[test]
fn a_torn_swizzle_is_refused_in_the_words_of_the_input() {
    let tile = Swizzle::new(2, 0, 3).composition(&layout!(8:1));
    for (refused, expected) in [
        (
            tile.try_upcast(2),
            "recast: Sw<2,0,3> in elements that are 2 times as wide: the swizzle moves 1 of the old elements at a \
             time, so it would tear a new one: choose narrower elements",
        ),
        (
            tile.try_upcast(3),
            "recast: Sw<2,0,3> in elements that are 3 times as wide: one width must be a power of 2 times the other",
        ),
        (
            tile.try_recast(16, 24),
            "recast: Sw<2,0,3> from 16 to 24 bits: one width must be a power of 2 times the other",
        ),
        (
            tile.try_downcast(1 << 60),
            "recast: Sw<2,0,3> in elements of which 1152921504606846976 are as wide as one: a swizzled bit would lie \
             beyond bit 62: choose wider elements",
        ),
        (
            tile.try_upcast(0),
            "upcast: the factor is below 1: give at least 1",
        ),
    ] {
        assert_eq!(refused.unwrap_err().message(), expected);
    }
    // Nothing is permuted by a swizzle of 0 bits, so nothing is torn.
    assert!(Swizzle::new(0, 0, 3).try_recast(8, 64).is_ok());
}

#[test]
fn what_cannot_be_recast_is_refused() {
    assert!(try_upcast(&layout!((3, 4):(1, 3)), 2).is_err());
    assert!(try_upcast(&layout!((3, 4):(1, 4)), 2).is_err());
    assert!(try_upcast(&layout!(4:1), 0).is_err());
    assert!(try_downcast(&layout!((4, 4):(2, 8)), 2).is_err());
    assert!(try_recast(&layout!(4:1), 0, 8).is_err());
    let runtime = "(4,8):(1,n)".replace('n', "6").parse::<Layout>().unwrap();
    assert_eq!(upcast(&runtime, 2).to_string(), "(2,8):(1,3)");
}

/// Layouts of powers of 2, some of which repeat or leave gaps.
fn layouts_of_bits() -> Vec<Layout> {
    [
        "_64:_1",
        "_8:_8",
        "_8:_1",
        "(_8,_8):(_8,_1)",
        "(_8,_8):(_1,_16)",
        "(_4,_4,_4):(_16,_1,_4)",
        "(_2,_4,_8):(_32,_8,_1)",
        "(_8,(_2,_4)):(_2,(_1,_16))",
        "(_8,_4):(_1,_0)",
        "(_8,_8,_2):(_0,_1,_8)",
        "(_3,_8):(_8,_1)",
        "(_16,_16):(_1,_16)",
    ]
    .map(|text| text.parse().unwrap())
    .to_vec()
}

fn swizzles() -> impl Iterator<Item = Swizzle> {
    let all =
        (0..4).flat_map(|bits| (0..4).flat_map(move |base| (-4..5).map(move |s| (bits, base, s))));
    all.filter_map(|(bits, base, shift)| Swizzle::try_new(bits, base, shift).ok())
}

#[test]
fn a_swizzle_before_a_layout_becomes_one_behind_it() {
    let rows = layout!((8, 8):(8, 1));
    assert_eq!(
        Swizzle::new(3, 0, 3).before(&rows).to_string(),
        "Sw<3,0,-3> o _0 o (_8,_8):(_8,_1)"
    );
    let mut found = 0;
    for (layout, swizzle) in layouts_of_bits()
        .into_iter()
        .flat_map(|layout| swizzles().map(move |swizzle| (layout, swizzle)))
    {
        let Ok(both) = swizzle.try_before(&layout) else {
            continue;
        };
        found += 1;
        for c in 0..layout.size() {
            assert_eq!(
                both.at(c),
                layout.at(swizzle.apply(c)),
                "{layout} o {swizzle} at {c}"
            );
        }
    }
    assert!(found > 400, "{found}");
    let refused = Swizzle::new(3, 0, 3).try_before(&layout!((8, 6):(6, 1)));
    assert_eq!(
        refused.unwrap_err().message(),
        "composition: (8,6):(6,1) o Sw<3,0,3>: the layout does not permute bits: give extents and strides that are \
         powers of 2"
    );
}

#[test]
fn left_inverses_of_swizzled_layouts_undo_them() {
    let mut found = 0;
    for (outer, swizzle) in layouts_of_bits()
        .into_iter()
        .flat_map(|layout| swizzles().map(move |swizzle| (layout, swizzle)))
    {
        let layout = swizzle.composition(&outer);
        let Ok(inverse) = layout.try_left_inverse() else {
            continue;
        };
        found += 1;
        for c in 0..layout.size() {
            assert_eq!(inverse.at(layout.at(c)), c, "{inverse} of {layout} at {c}");
        }
    }
    assert!(found > 200, "{found}");
    let moved = ComposedLayout::new(Swizzle::new(1, 0, 1), shape!(1), layout!(4:1));
    assert_eq!(
        moved.try_left_inverse().unwrap_err().message(),
        "left_inverse: Sw<1,0,1> o 1 o 4:1: its offset is not 0, so its indices do not begin at 0: move the offset \
         elsewhere"
    );
}

#[test]
fn swizzled_layouts_have_a_vector_in_common_where_both_are_contiguous() {
    let rows = Swizzle::new(3, 2, 3).composition(&layout!((8, 32):(32, 1)));
    let plain = |layout: Layout| Swizzle::new(0, 0, 0).composition(&layout);
    for (a, b, expected) in [
        // "min(max_common_vector(a, b), 1 << M)" where one is swizzled, or both are in other ways.
        (rows, plain(layout!((8, 32):(32, 1))), 4),
        (rows, plain(layout!((8, 32):(1, 8))), 1),
        (
            rows,
            Swizzle::new(2, 1, 3).composition(&layout!((8, 32):(32, 1))),
            2,
        ),
        (rows, rows, 256),
        (
            rows,
            ComposedLayout::new(*rows.inner(), shape!(2), *rows.outer()),
            2,
        ),
        (plain(layout!(6:1)), plain(layout!(6:1)), 6),
    ] {
        let common = a.max_common_layout(&b);
        assert_eq!(a.max_common_vector(&b).value(), expected, "{a} and {b}");
        assert_eq!(b.max_common_layout(&a), common, "{a} and {b}");
        assert_eq!(common.size(), expected, "{a} and {b}");
        for i in 0..common.size() {
            for layout in [a, b] {
                let begin = layout.at(common.at(0));
                let is_same = a == b;
                assert!(
                    is_same || layout.at(common.at(i)) == begin + i,
                    "{layout} at {i}"
                );
            }
        }
    }
}
