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
    assert!(error.message().contains("begins at bit 16"), "{error}");
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
