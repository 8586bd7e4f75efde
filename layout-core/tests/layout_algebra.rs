//! Examples from CuTe's documentation: the layout algebra, from coalescing to products.

use cutlet_layout_core::*;

fn l(text: &str) -> Layout {
    text.parse().unwrap()
}

#[test]
fn coalescing() {
    let a = layout!((2, (1, 6)):(1, (6, 2)));
    assert_eq!(coalesce(&a).to_string(), "_12:_1");
    let by_mode = coalesce_by_mode(&a, &shape!((1, 1)));
    assert_eq!(by_mode.to_string(), "(_2,_6):(_1,_2)");
    assert_eq!(
        by_mode,
        Layout::concat2(&coalesce(&a.mode(0)), &coalesce(&a.mode(1)))
    );
}

#[test]
fn coalescing_neighbours() {
    assert_eq!(
        coalesce(&layout!((2, (1, 6)):(1, (6, 2)))).to_string(),
        "_12:_1"
    );
    let (s, d, n) = (4, 3, 7);
    // s0:d0 ++ _1:d1 => s0:d0
    assert_eq!(
        coalesce(&layout!((dyn s, 1):(dyn d, dyn n))).to_string(),
        "4:3"
    );
    // _1:d0 ++ s1:d1 => s1:d1
    assert_eq!(
        coalesce(&layout!((1, dyn s):(dyn n, dyn d))).to_string(),
        "4:3"
    );
    // s0:d0 ++ s1:s0*d0 => s0*s1:d0
    assert_eq!(coalesce(&layout!((4, 5):(3, 12))).to_string(), "_20:_3");
    // s0:d0 ++ s1:d1 => (s0,s1):(d0,d1)
    assert_eq!(
        coalesce(&layout!((4, 5):(3, 13))).to_string(),
        "(_4,_5):(_3,_13)"
    );
}

#[test]
fn composing() {
    let (a, b) = (layout!((6, 2):(8, 2)), layout!((4, 3):(3, 1)));
    let r = composition(&a, &b);
    assert_eq!(r, l("((2,2),3):((24,2),8)"));
    assert!(b.is_compatible_with(&r));
    let values: Vec<i64> = (0..12).map(|c| r.at(c)).collect();
    assert_eq!(values, [0, 24, 2, 26, 8, 32, 10, 34, 16, 40, 18, 42]);
    for c in 0..12 {
        assert_eq!(r.at(c), a.at(b.at(c)));
    }
}

#[test]
fn dividing_shapes() {
    let cases = [
        (shape!((6, 2)), 2, shape!((3, 2))),
        (shape!((6, 2)), 3, shape!((2, 2))),
        (shape!((6, 2)), 6, shape!((1, 2))),
        (shape!((6, 2)), 12, shape!((1, 1))),
        (shape!((3, 6, 2, 8)), 6, shape!((1, 3, 2, 8))),
        (shape!((3, 6, 2, 8)), 9, shape!((1, 2, 2, 8))),
        (shape!((42, 16, 3)), 2, shape!((21, 16, 3))),
        (shape!((42, 16, 3)), 6, shape!((7, 16, 3))),
    ];
    for (s, n, quotient) in cases {
        assert_eq!(shape_div(&s, &n.into()), quotient);
    }
    assert!(try_shape_div(&shape!((6, 2)), &4.into()).is_err());
}

#[test]
fn keeping_the_first_elements() {
    let cases = [
        (shape!((6, 2)), 2, shape!((2, 1))),
        (shape!((6, 2)), 3, shape!((3, 1))),
        (shape!((6, 2)), 6, shape!((6, 1))),
        (shape!((6, 2)), 12, shape!((6, 2))),
        (shape!((3, 6, 2, 8)), 6, shape!((3, 2, 1, 1))),
        (shape!((3, 6, 2, 8)), 9, shape!((3, 3, 1, 1))),
        (shape!((1, 2, 2, 8)), 2, shape!((1, 2, 1, 1))),
        (shape!((1, 2, 2, 8)), 16, shape!((1, 2, 2, 4))),
    ];
    for (s, n, kept) in cases {
        assert_eq!(shape_mod(&s, &n.into()), kept);
    }
}

#[test]
fn reshaping_into_matrices() {
    let row_major = composition(&layout!(20:2), &layout!((5, 4):(4, 1)));
    assert_eq!(row_major.to_string(), "(_5,_4):(_8,_2)");
    assert_eq!(composition(&layout!(20:2), &layout!(5:4)), l("5:8"));
    assert_eq!(composition(&layout!(20:2), &layout!(4:1)), l("4:2"));

    let (a, b) = (layout!((10, 2):(16, 4)), layout!((5, 4):(1, 5)));
    assert_eq!(
        composition(&a, &b).to_string(),
        "(_5,(_2,_2)):(_16,(_80,_4))"
    );
    let dynamic = composition(&a.to_dynamic(), &b.to_dynamic());
    assert_eq!(dynamic.to_string(), "((5,1),(2,2)):((16,4),(80,4))");
    assert_eq!(composition(&a, &layout!(5:1)), l("5:16"));
    assert_eq!(composition(&a, &layout!(4:5)), l("(2,2):(80,4)"));
}

#[test]
fn composing_by_mode() {
    let a = l("(12,(4,8)):(59,(13,1))");
    let result = composition_by_mode(&a, &tile!(<3:4, 8:2>));
    assert_eq!(result.to_string(), "(_3,(2,4)):(236,(26,1))");
    let same = Layout::concat2(
        &composition(&a.mode(0), &layout!(3:4)),
        &composition(&a.mode(1), &layout!(8:2)),
    );
    assert_eq!(result.to_string(), same.to_string());

    let result = composition_by_mode(&a, &tile!((3, 8)));
    assert_eq!(result.to_string(), "(_3,(4,2)):(59,(13,1))");
    assert_eq!(
        composition_by_mode(&a, &tile!(<3:1, 8:1>)).to_string(),
        result.to_string()
    );
}

#[test]
fn complements() {
    let cases = [
        (layout!(4:1), "_6:_4"),
        (layout!(6:4), "_4:_1"),
        (layout!((4, 6):(1, 4)), "_1:_0"),
        (layout!(4:2), "(_2,_3):(_1,_8)"),
        (layout!((2, 4):(1, 6)), "_3:_2"),
        (layout!((2, 2):(1, 6)), "(_3,_2):(_2,_12)"),
    ];
    for (layout, expected) in cases {
        let complement = complement(&layout, &shape!(24));
        assert_eq!(complement.to_string(), expected);
        assert_eq!(Layout::concat2(&layout, &complement).cosize(), 24);
    }
}

#[test]
fn complements_in_partly_static_cotargets() {
    let seven = 7;
    assert_eq!(
        complement(&layout!(4:1), &shape!((4, dyn seven))).to_string(),
        "7:_4"
    );
    let dynamic = complement(&layout!(4:1), &28.into());
    assert_eq!(dynamic.to_string(), "7:_4");
    assert_eq!(
        complement(&layout!(2:1), &shape!((4, dyn seven))).to_string(),
        "(_2,7):(_2,_4)"
    );
    assert_eq!(complement(&layout!(2:1), &28.into()).to_string(), "14:_2");
}

#[test]
fn dividing_in_one_dimension() {
    let (a, b) = (layout!((4, 2, 3):(2, 1, 8)), layout!(4:2));
    let rest = complement(&b, &IntTuple::from(a.size()).to_static());
    assert_eq!(rest, l("(2,3):(1,8)"));
    let both = Layout::concat2(&b, &rest);
    assert_eq!(both, l("(4,(2,3)):(2,(1,8))"));
    assert_eq!(composition(&a, &both), l("((2,2),(2,3)):((4,1),(2,8))"));
    assert_eq!(
        logical_divide(&a, &tile!(4:2)),
        l("((2,2),(2,3)):((4,1),(2,8))")
    );
}

#[test]
fn dividing_in_two_dimensions() {
    let a = layout!((9, (4, 8)):(59, (13, 1)));
    let tiler = tile!(<3:3, (2, 4):(1, 8)>);
    let ld = logical_divide(&a, &tiler);
    assert_eq!(product_each(&ld.mode(0).shape()), shape!((3, 3)));
    assert_eq!(product_each(&ld.mode(1).shape()), shape!((8, 4)));
    let tile = Layout::concat2(&ld.get(&[0, 0]), &ld.get(&[1, 0]));
    assert_eq!(tile, l("(3,(2,4)):(177,(13,2))"));
    assert_eq!(tile, composition_by_mode(&a, &tiler));

    let zd = zipped_divide(&a, &tiler);
    assert_eq!(product_each(&zd.mode(0).shape()), shape!((3, 8)));
    assert_eq!(product_each(&zd.mode(1).shape()), shape!((3, 4)));
    assert_eq!(zd.mode(0), composition_by_mode(&a, &tiler));
    // The offsets of the third, the seventh and the (1,2)th tile.
    assert_eq!(zd.index((0, 3)), ld.index(((0, 0), (0, 1))));
    assert_eq!(zd.index((0, 7)), ld.index(((0, 1), (0, 2))));
    assert_eq!(zd.index((0, (1, 2))), zd.index((0, 7)));
}

#[test]
fn flavours_of_division() {
    let a = Layout::col_major(&shape!((8, 6, 5)));
    let tiler = tile!(<2, 3>);
    assert_eq!(
        logical_divide(&a, &tiler).shape(),
        shape!(((2, 4), (3, 2), 5))
    );
    assert_eq!(
        zipped_divide(&a, &tiler).shape(),
        shape!(((2, 3), (4, 2, 5)))
    );
    assert_eq!(tiled_divide(&a, &tiler).shape(), shape!(((2, 3), 4, 2, 5)));
    assert_eq!(flat_divide(&a, &tiler).shape(), shape!((2, 3, 4, 2, 5)));
}

#[test]
fn multiplying_in_one_dimension() {
    let (a, b) = (layout!((2, 2):(4, 1)), layout!(6:1));
    let rest = complement(&a, &shape!(24));
    assert_eq!(rest, l("(2,3):(2,8)"));
    assert_eq!(composition(&rest, &b), l("(2,3):(2,8)"));
    let product = logical_product(&a, &Tiler::layout(&b));
    assert_eq!(product, l("((2,2),(2,3)):((4,1),(2,8))"));
    // The same as the divide.
    assert_eq!(
        product,
        logical_divide(&layout!((4, 2, 3):(2, 1, 8)), &tile!(4:2))
    );
    let reordered = logical_product(&a, &tile!((4, 2):(2, 1)));
    assert_eq!(reordered.mode(1).size(), 8);
    assert!(layout!((4, 2):(2, 1)).is_compatible_with(&reordered.mode(1)));
}

#[test]
fn multiplying_in_two_dimensions() {
    // The 2x5 row-major block, repeated 3x4 times in column-major order.
    let (a, b) = (layout!((2, 5):(5, 1)), layout!((3, 4):(1, 3)));
    let by_tiler = logical_product(&a, &tile!(<3:5, 4:6>));
    let blocked = blocked_product(&a, &b);
    assert_eq!(blocked, l("(6,(5,4)):(5,(1,30))"));
    for i in 0..6 {
        for j in 0..20 {
            assert_eq!(by_tiler.index((i, j)), blocked.index((i, j)));
        }
    }
    assert_eq!(raked_product(&a, &b), l("((3,2),(4,5)):((10,5),(30,1))"));
    let product = logical_product(&a, &Tiler::layout(&b));
    assert_eq!(product.rank(), 2);
    assert!(a.is_compatible_with(&product.mode(0)) && b.is_compatible_with(&product.mode(1)));
}

#[test]
fn flavours_of_products() {
    let a = Layout::col_major(&shape!((8, 6, 5)));
    let tiler = tile!(<2, 3>);
    assert_eq!(
        logical_product(&a, &tiler).shape(),
        shape!(((8, 2), (6, 3), 5))
    );
    assert_eq!(
        zipped_product(&a, &tiler).shape(),
        shape!(((8, 6), (2, 3, 5)))
    );
    assert_eq!(tiled_product(&a, &tiler).shape(), shape!(((8, 6), 2, 3, 5)));
    assert_eq!(flat_product(&a, &tiler).shape(), shape!((8, 6, 2, 3, 5)));
}
