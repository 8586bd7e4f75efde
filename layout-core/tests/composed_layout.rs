//! Examples from tutorials on CuTe: composed layouts, with any function as inner transform.

use cutlet_layout_core::*;

#[test]
fn a_custom_transform_of_coordinates() {
    let inner = |c: &IntTuple| IntTuple::from((c.leaf(0).value(), c.leaf(1).value() + 1));
    let layout = ComposedLayout::new(inner, shape!((1, 0)), identity(&shape!((8, 4))));
    assert_eq!(layout.call(&0.into()).to_string(), "(1,1)");
    assert_eq!(layout.call(&(2, 3).into()), (3, 4).into());
}

#[test]
fn gather_prints_the_index_tensor() {
    let index: [i64; 16] = [7, 250, 0, 13, 99, 1, 1, 42, 200, 255, 8, 64, 3, 128, 77, 31];
    let inner = |c: &IntTuple| IntTuple::from(index[c.as_int().unwrap().value() as usize]);
    let gather = ComposedLayout::new(inner, shape!(0), Layout::col_major(&shape!((16))));
    let printed: Vec<String> = (0..gather.size())
        .map(|i| format!("{i} -> {}", gather.call(&i.into())))
        .collect();
    assert_eq!(printed[0], "0 -> 7");
    assert_eq!(printed[15], "15 -> 31");
    for (i, line) in printed.iter().enumerate() {
        assert_eq!(line, &format!("{i} -> {}", index[i]));
    }
}

#[test]
fn slices_and_partitions_act_on_the_outer_layout() {
    let index: [i64; 16] = [7, 250, 0, 13, 99, 1, 1, 42, 200, 255, 8, 64, 3, 128, 77, 31];
    let inner = |c: &IntTuple| IntTuple::from(index[c.as_int().unwrap().value() as usize]);
    let gather = ComposedLayout::new(inner, shape!(0), layout!(16:1));
    let tiles = gather.zipped_divide(&tile!(4));
    assert_eq!(tiles.outer().to_string(), "(_4,_4):(_1,_4)");
    let third = tiles.slice(&(IntTuple::UNDERSCORE, 2).into());
    assert_eq!(
        (third.outer().to_string(), third.offset().to_string()),
        ("(_4):(_1)".into(), "8".into())
    );
    let values: Vec<_> = (0..4).map(|i| third.call(&i.into())).collect();
    assert_eq!(values, [200, 255, 8, 64].map(IntTuple::from));
}

#[test]
fn a_layout_and_a_swizzle_as_inner() {
    let composed = ComposedLayout::new(layout!((6, 2):(8, 2)), shape!(1), layout!((4, 3):(3, 1)));
    for c in 0..12 {
        assert_eq!(
            composed.at(c),
            layout!((6, 2):(8, 2)).at(1 + layout!((4, 3):(3, 1)).at(c))
        );
    }
    const SWIZZLED: ComposedLayout<Swizzle> =
        ComposedLayout::new(Swizzle::new(3, 4, 3), shape!(0), layout!((8, 64):(64, 1)));
    const { assert!(SWIZZLED.at(1) == 64) };
    assert_eq!(SWIZZLED.to_string(), "Sw<3,4,3> o _0 o (_8,_64):(_64,_1)");
    assert_eq!(
        "Sw<3,4,3> o 0 o (8,64):(64,1)".parse::<ComposedLayout<Swizzle>>(),
        Ok(SWIZZLED)
    );
}

#[test]
fn offsets_are_not_wrapped_and_keep_their_direction() {
    let message = |call: &(dyn Fn() + std::panic::RefUnwindSafe)| {
        let panic = std::panic::catch_unwind(call).unwrap_err();
        match panic.downcast_ref::<String>() {
            Some(message) => message.clone(),
            None => (*panic.downcast_ref::<&str>().unwrap()).into(),
        }
    };
    let far = ComposedLayout::new(Swizzle::new(0, 0, 0), i64::MAX.into(), layout!(4:1));
    assert_eq!(far.at(0), i64::MAX);
    assert_eq!(
        message(&|| _ = far.at(1)),
        "at: the index does not fit 64 bits"
    );
    let aside = ComposedLayout::new(layout!(16:1), shape!(5@1), layout!(4:1));
    assert_eq!(
        message(&|| _ = aside.at(3)),
        "at: the offset is a coordinate: use call"
    );
    assert_eq!(
        message(&|| _ = aside.call(&3.into())),
        "composed layout: 5@1 + 3: offset and outer layout have different directions"
    );
    let swizzled = ComposedLayout::new(Swizzle::new(1, 0, 1), shape!(5@1), layout!(4:0));
    assert_eq!(
        message(&|| _ = swizzled.call(&0.into())),
        "Sw<1,0,1> swizzles an index, not the coordinate _5@1: use a plain offset and plain strides"
    );
}

#[test]
fn operations_on_the_outer_layout() {
    let a: ComposedLayout<Swizzle> = "Sw<2,0,3> o _0 o (_8,(_4,_2)):(_8,(_1,_4))"
        .parse()
        .unwrap();
    for (found, expected) in [
        (a.mode(1), "(_4,_2):(_1,_4)"),
        (a.get(&[1, 0]), "_4:_1"),
        (a.select(&[1, 0]), "((_4,_2),_8):((_1,_4),_8)"),
        (a.take(1, 2), "((_4,_2)):((_1,_4))"),
        (a.group(0, 2), "((_8,(_4,_2))):((_8,(_1,_4)))"),
        (a.flatten(), "(_8,_4,_2):(_8,_1,_4)"),
        (a.coalesce(), "(_8,_8):(_8,_1)"),
        (a.append(&layout!(2:64)), "(_8,(_4,_2),_2):(_8,(_1,_4),_64)"),
        (
            a.prepend(&layout!(2:64)),
            "(_2,_8,(_4,_2)):(_64,_8,(_1,_4))",
        ),
    ] {
        assert_eq!(found.to_string(), format!("Sw<2,0,3> o _0 o {expected}"));
    }
    assert_eq!((a.cosize(), a.depth()), (64, 2));
    let offset = ComposedLayout::new(*a.inner(), shape!(5), layout!(4:-1));
    let all: Vec<i64> = (0..4).map(|c| offset.at(c)).collect();
    assert_eq!((all, offset.cosize()), (vec![5, 4, 3, 2], 6));
    let table = |c: &IntTuple| IntTuple::from([7, 250, -3, 13][c.leaf(0).value() as usize]);
    let gather = ComposedLayout::new(table, shape!(0), layout!(4:1));
    assert_eq!(gather.cosize(), 254, "from -3 to 250");
    assert!(a.try_mode(2).is_err() && a.try_get(&[1, 2]).is_err());
    assert!(a.try_select(&[2]).is_err() && a.try_take(1, 3).is_err());
    let halves = Swizzle::new(3, 3, 3).composition(&layout!((8, 64):(64, 1)));
    assert_eq!(halves.upcast(2), halves.recast(16, 32));
    assert_eq!(halves.downcast(2), halves.recast(16, 8));
    assert!(halves.try_upcast(16).is_err() && halves.try_upcast(0).is_err());
}

#[test]
fn a_swizzle_after_a_swizzle() {
    let mut found = 0;
    let all: Vec<Swizzle> = (0..4)
        .flat_map(|b| (0..4).flat_map(move |m| (-4..5).map(move |s| (b, m, s))))
        .filter_map(|(b, m, s)| Swizzle::try_new(b, m, s).ok())
        .collect();
    for &a in &all {
        for &b in &all {
            let both = |i: i64| a.apply(b.apply(i));
            match a.try_compose(b) {
                Ok(c) => {
                    found += 1;
                    assert!((0..4096).all(|i| c.apply(i) == both(i)), "{a} o {b} = {c}");
                }
                // No swizzle of this size does it.
                Err(error) => assert!(
                    !all.iter().any(|c| (0..4096).all(|i| c.apply(i) == both(i))),
                    "{error}"
                ),
            }
        }
    }
    assert!(found > 1000, "{found}");
    let error = Swizzle::new(1, 0, 3)
        .try_compose(Swizzle::new(1, 2, 3))
        .unwrap_err();
    assert_eq!(
        error.message(),
        "Sw<1,0,3> o Sw<1,2,3> is no single swizzle: apply one after the other"
    );
}

#[test]
fn compositions_of_composed_layouts() {
    let (outer, part) = (layout!((8, 8):(8, 1)), layout!((2, 4):(8, 1)));
    let shifted = ComposedLayout::new(layout!((8, 8):(8, 1)), shape!(3), part);
    // A layout after a composed layout.
    let after = shifted.after(&layout!(64:2));
    assert!((0..8).all(|c| after.at(c) == 2 * shifted.at(c)));
    // A swizzle after a swizzled layout.
    let swizzled = Swizzle::new(2, 0, 3).composition(&outer);
    let twice = swizzled.after(Swizzle::new(1, 2, 3));
    assert!((0..64).all(|c| twice.at(c) == Swizzle::new(1, 2, 3).apply(swizzled.at(c))));
    // A composed layout after a composed layout, and slices and tiles of both.
    let nested = swizzled.nested(&shifted);
    for c in 0..8i64 {
        assert_eq!(nested.call(&c.into()), swizzled.at(shifted.at(c)).into());
    }
    let row = nested.slice(&shape!((1, _)));
    for j in 0..4i64 {
        assert_eq!(row.call(&j.into()), nested.call(&(1, j).into()));
    }
    let deeper = nested.nested(&ComposedLayout::new(layout!(8:1), shape!(1), layout!(3:2)));
    assert_eq!(deeper.call(&2.into()), nested.call(&5.into()));
}

#[test]
fn right_inverses_of_composed_layouts() {
    let mut whole = 0;
    for outer in [
        layout!((8, 8):(8, 1)),
        layout!((8, 8):(1, 8)),
        layout!((4, 2, 8):(2, 1, 8)),
        layout!((2, 4):(1, 2)),
        layout!((4, 4):(1, 8)),
        layout!((6, 8):(8, 1)),
    ] {
        for (b, m, s) in [
            (3, 0, 3),
            (2, 0, 3),
            (2, 1, 2),
            (1, 0, 5),
            (2, 0, -3),
            (0, 0, 0),
            (1, 2, 3),
        ] {
            let tile = Swizzle::new(b, m, s).composition(&outer);
            let Ok(inverse) = tile.try_right_inverse() else {
                continue;
            };
            for i in 0..inverse.size() {
                assert_eq!(tile.at(inverse.at(i)), i, "{inverse} of {tile}");
            }
            whole += u32::from(inverse.size() == outer.size());
        }
    }
    assert!(whole >= 20, "{whole}");
    let moved = ComposedLayout::new(Swizzle::new(2, 0, 3), shape!(8), layout!((8, 8):(8, 1)));
    let error = moved.try_right_inverse().unwrap_err();
    assert!(error.message().contains("its offset is not 0"), "{error}");
    let plain = ComposedLayout::new(layout!((8, 8):(8, 1)), shape!(0), layout!((4, 8):(1, 8)));
    let inverse = plain.right_inverse();
    assert!((0..inverse.size()).all(|i| plain.at(inverse.at(i)) == i));
    assert_eq!(inverse.size(), 32);
}

#[test]
fn a_closure_prints_by_its_name() {
    let next = |c: &IntTuple| IntTuple::from(c.leaf(0).value() + 1);
    let named = ComposedLayout::new(Named::new("next", next), shape!(0), layout!((2, 4):(4, 1)));
    assert_eq!(named.to_string(), "next o _0 o (_2,_4):(_4,_1)");
    assert_eq!(
        named.slice(&shape!((1, _))).to_string(),
        "next o _4 o (_4):(_1)"
    );
    assert_eq!(format!("{:?}", named.inner()), "next");
    assert_eq!(named.call(&shape!((1, 2))), 7.into());
    assert!(
        picture::table(&named)
            .to_string()
            .starts_with("next o _0 o")
    );
}

#[test]
fn parts_of_tilers() {
    let tiler: Tiler = "<3:4,<(2,4):(1,8),_>>".parse().unwrap();
    assert_eq!(tiler.get(&[1, 0]).to_string(), "(2,4):(1,8)");
    assert_eq!(tiler.mode(0).as_layout().map(Layout::size), Some(3));
    assert_eq!((tiler.rank(), tiler.size()), (2, None));
    assert_eq!(tiler.get(&[1, 0]).size().map(Int::value), Some(8));
    let error = tiler.try_get(&[2]).unwrap_err();
    assert_eq!(
        error.message(),
        "mode: the tiler has no mode 2: its rank is 2, and modes are counted from 0"
    );
}
