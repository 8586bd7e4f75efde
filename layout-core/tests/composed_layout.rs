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
