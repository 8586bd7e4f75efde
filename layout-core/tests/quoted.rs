//! The examples of CuTe's documentation and of tutorials on it, each with the line that states it.

use core::fmt::Display;

use cutlet_layout_core::*;

/// Checks a quoted line, given as its beginning and the result that it states. A line without
/// underscores does not tell static integers from dynamic ones.
#[track_caller]
fn says(line: &str, result: &str, found: impl Display) {
    let result = result.trim_matches(['`', '.', ';']).replace(' ', "");
    let found = found.to_string().replace(' ', "");
    let found = if result.contains('_') {
        found
    } else {
        found.replace('_', "")
    };
    assert_eq!(found, result, "{line} {result}");
}

fn l(text: &str) -> Layout {
    text.parse().unwrap()
}

fn t(text: &str) -> IntTuple {
    text.parse().unwrap()
}

fn int(text: &str) -> IntTuple {
    t(text).to_static()
}

#[test]
fn coalesce_and_its_four_cases() {
    let a = layout!((2, (1, 6)):(1, (6, 2)));
    says("auto result = coalesce(layout); //", "_12:_1", coalesce(&a));
    says(
        "auto result = coalesce(a, Step<_1,_1>{}); //",
        "(_2,_6):(_1,_2)",
        coalesce_by_mode(&a, &shape!((1, 1))),
    );
    says(
        "column-major `Layout`s like `(_2,_4):(_1,_2)` act identically to",
        "`_8:_1`",
        coalesce(&layout!((2, 4):(1, 2))),
    );
    let (s0, d0, s1, d1) = (5, 3, 7, 4);
    assert_eq!(
        coalesce(&layout!((dyn s0, 1):(dyn d0, dyn d1))).to_string(),
        "5:3",
        "1. `s0:d0 ++ _1:d1 => s0:d0`."
    );
    assert_eq!(
        coalesce(&layout!((1, dyn s1):(dyn d0, dyn d1))).to_string(),
        "7:4",
        "2. `_1:d0 ++ s1:d1 => s1:d1`."
    );
    assert_eq!(
        coalesce(&layout!((5, 7):(3, 15))).to_string(),
        "_35:_3",
        "3. `s0:d0 ++ s1:s0*d0 => s0*s1:d0`."
    );
    assert_eq!(
        coalesce(&layout!((5, 7):(3, 4))).to_string(),
        "(_5,_7):(_3,_4)",
        "4. `s0:d0 ++ s1:d1 => (s0,s1):(d0,d1)`."
    );
}

#[test]
fn composition_value_by_value() {
    let (a, b) = (l("(6,2):(8,2)"), l("(4,3):(3,1)"));
    let r = composition(&a.to_static(), &b.to_static());
    says("R =", "((2,2),3):((24,2),8)", r);
    for (line, value) in [
        ("R( 0) = A(B( 0)) = A(B(0,0)) = A( 0) = A(0,0) =", 0),
        ("R( 1) = A(B( 1)) = A(B(1,0)) = A( 3) = A(3,0) =", 24),
        ("R( 2) = A(B( 2)) = A(B(2,0)) = A( 6) = A(0,1) =", 2),
        ("R( 3) = A(B( 3)) = A(B(3,0)) = A( 9) = A(3,1) =", 26),
        ("R( 4) = A(B( 4)) = A(B(0,1)) = A( 1) = A(1,0) =", 8),
        ("R( 5) = A(B( 5)) = A(B(1,1)) = A( 4) = A(4,0) =", 32),
        ("R( 6) = A(B( 6)) = A(B(2,1)) = A( 7) = A(1,1) =", 10),
        ("R( 7) = A(B( 7)) = A(B(3,1)) = A(10) = A(4,1) =", 34),
        ("R( 8) = A(B( 8)) = A(B(0,2)) = A( 2) = A(2,0) =", 16),
        ("R( 9) = A(B( 9)) = A(B(1,2)) = A( 5) = A(5,0) =", 40),
        ("R(10) = A(B(10)) = A(B(2,2)) = A( 8) = A(2,1) =", 18),
        ("R(11) = A(B(11)) = A(B(3,2)) = A(11) = A(5,1) =", 42),
    ] {
        // Each form of the coordinate in the line, from the left.
        let forms: Vec<IntTuple> = line
            .split(" = ")
            .map(|part| {
                let inner = part.trim_end_matches(" =").trim_end_matches(')');
                let text = inner.rsplit_once('(').unwrap().1.trim();
                match text.contains(',') {
                    true => t(&format!("({text})")),
                    false => t(text),
                }
            })
            .collect();
        let [c, inner, natural, index, coord] = forms[..] else {
            panic!("{line}")
        };
        assert_eq!((inner, r.call(&c)), (c, value.into()), "{line}");
        assert_eq!((b.call(&natural), a.call(&index)), (index, value.into()));
        assert_eq!(a.call(&coord), value.into(), "{line}");
    }
}

#[test]
fn shapes_divided_and_reduced() {
    for (line, result) in [
        ("(6,2) / 2 =>", "(3,2)"),
        ("(6,2) / 3 =>", "(2,2)"),
        ("(6,2) / 6 =>", "(1,2)"),
        ("(6,2) / 12 =>", "(1,1)"),
        ("(3,6,2,8) / 6 =>", "(1,3,2,8)"),
        ("(3,6,2,8) / 9 =>", "(1,2,2,8)"),
        ("(42,16,3) / 2 =>", "(21,16,3)"),
        ("(42,16,3) / 6 =>", "( 7,16,3)"),
        ("(3,6,2,8) / 72 =>", "(1,1,1,4)"),
        ("(6,2) % 2 =>", "(2,1)"),
        ("(6,2) % 3 =>", "(3,1)"),
        ("(6,2) % 6 =>", "(6,1)"),
        ("(6,2) % 12 =>", "(6,2)"),
        ("(3,6,2,8) % 6 =>", "(3,2,1,1)"),
        ("(3,6,2,8) % 9 =>", "(3,3,1,1)"),
        ("(1,2,2,8) % 2 =>", "(1,2,1,1)"),
        ("(1,2,2,8) % 16 =>", "(1,2,2,4)"),
    ] {
        let mut words = line.split(' ');
        let [shape, operator, n] = [(); 3].map(|_| words.next().unwrap());
        let found = match operator {
            "/" => shape_div(&t(shape), &t(n)),
            _ => shape_mod(&t(shape), &t(n)),
        };
        says(line, result, found);
    }
    // The quotient of a layout multiplies each stride by what is left of the divisor.
    for (w, x, y, z) in [(1, 10, 100, 1000), (1, 3, 18, 36)] {
        let a = layout!((3, 6, 2, 8):(dyn w, dyn x, dyn y, dyn z));
        let expected = l(&format!(
            "(1,1,1,4):({},{},{},{})",
            72 * w,
            24 * x,
            4 * y,
            2 * z
        ));
        assert_eq!(
            layout_div(&a, 72.into()),
            expected,
            "(3,6,2,8):(w,x,y,z) / 72 =>(1,1,1,4):(72*w,24*x,4*y,2*z)"
        );
    }
}

#[test]
fn composition_examples() {
    let of = |a: &str, b: &str| composition(&l(a).to_static(), &l(b).to_static());
    says(
        "`20:2 o (5,4):(4,1)` =",
        "`(5,4):(8,2)`",
        of("20:2", "(5,4):(4,1)"),
    );
    says("`20:2 o 5:4 =>", "5:8`", of("20:2", "5:4"));
    says("`20:2 o 4:1 =>", "4:2`", of("20:2", "4:1"));
    says(
        "`(10,2):(16,4) o 4:5 =>",
        "(2,2):(80,4)`",
        of("(10,2):(16,4)", "4:5"),
    );
    says("` = (5:16,", "5:16", of("(10,2):(16,4)", "5:1"));
    says(
        "The following C++ code prints",
        "`(_5,(_2,_2)):(_16,(_80,_4))`",
        of("(10,2):(16,4)", "(5,4):(1,5)"),
    );
    assert_eq!(
        composition(&l("(10,2):(16,4)"), &l("(5,4):(1,5)")).to_string(),
        "((5,1),(2,2)):((16,4),(80,4))",
        "If we use dynamic integers, the following C++ code prints"
    );
    assert_eq!(
        composition(&l("(10,2):(16,4)"), &l("5:1")).to_string(),
        "(5,1):(16,4)",
        "`(10,2):(16,4) o 5:1 => (5,1):(16,4)`. Mod out the shape `5`."
    );
    let a = l("(12,(4,8)):(59,(13,1))");
    let by_mode = |tiler: &Tiler| composition_by_mode(&a, tiler);
    says(
        "// <3:4, 8:2>",
        "(_3,(2,4)):(236,(26,1))",
        by_mode(&tile!(<3:4, 8:2>)),
    );
    says(
        "// (8, 3)",
        "(_3,(4,2)):(59,(13,1))",
        by_mode(&tile!((3, 8))),
    );
    says("// Equivalent to", "<3:1, 8:1>", tile!((3, 8)));
    // "A `Shape`, which will be interpreted as a tiler of `Layout`s with stride-1."
    says("tile of shape (1, 4):", "<_1:_1,_4:_1>", tile!((1, 4)));
}

#[test]
fn complement_examples() {
    for (line, result) in [
        ("`complement(4:1, 24)` is", "`6:4`"),
        ("`complement(6:4, 24)` is", "`4:1`"),
        ("`complement((4,6):(1,4), 24)` is", "`1:0`"),
        ("`complement(4:2, 24)` is", "`(2,3):(1,8)`"),
        ("`complement((2,4):(1,6), 24)` is", "`3:2`"),
        ("`complement((2,2):(1,6), 24)` is", "`(3,2):(2,12)`"),
        (
            "Complement of `A = (2,2):(4,1)` under `6*4 = 24` is `A* =",
            "(2,3):(2,8)`",
        ),
        (
            "Complement of `B = 4:2` under `size(A) = 24` is `B* =",
            "(2,3):(1,8)`",
        ),
    ] {
        let begin = line.find(|c: char| c.is_ascii_digit() || c == '(').unwrap();
        let layout = match line.strip_prefix("`complement(") {
            Some(rest) => rest.split(", 24").next().unwrap(),
            None => line[begin..].split('`').next().unwrap(),
        };
        let a = l(layout).to_static();
        let rest = complement(&a, &shape!(24));
        says(line, result, rest);
        assert_eq!(Layout::concat2(&a, &rest).cosize(), 24, "has cosize `24`");
    }
    let seven = 7;
    assert_eq!(
        complement(&layout!(4:1), &shape!((4, dyn seven))),
        complement(&layout!(4:1), &28.into()),
        "Both will produce the same `complement` mathematically"
    );
}

#[test]
fn divide_examples() {
    let a = layout!((4, 2, 3):(2, 1, 8));
    says(
        "Composition of `A = (4,2,3):(2,1,8)` with `(B,B*)` is then",
        "`((2,2),(2,3)):((4,1),(2,8))`",
        logical_divide(&a, &tile!(4:2)),
    );
    let (a, b) = (
        layout!((9, (4, 8)):(59, (13, 1))),
        tile!(<3:3, (2, 4):(1, 8)>),
    );
    let tile = composition_by_mode(&a, &b);
    says(
        "the first mode of each mode of the result is the sublayout",
        "`(3,(2,4)):(177,(13,2))`",
        tile,
    );
    assert_eq!(zipped_divide(&a, &b).mode(0).to_string(), tile.to_string());
    let sizes = |layout: Layout| {
        let modes = [0, 1].map(|i| product_each(&layout.mode(i).shape()));
        IntTuple::tuple(&modes)
    };
    let in_place = logical_divide(&a, &b);
    says(
        "// ((TileM,RestM), (TileN,RestN)) with shape",
        "((3,3), (8,4))",
        sizes(in_place),
    );
    let zd = zipped_divide(&a, &b);
    says(
        "// ((TileM,TileN), (RestM,RestN)) with shape",
        "((3,8), (3,4))",
        sizes(zd),
    );
    // "Then, the offset to the `3`rd tile is `zd(0,3)`. The offset to the `7`th tile is `zd(0,7)`."
    assert_eq!(
        (zd.index((0, 3)), zd.index((0, 7))),
        (zd.index((0, (0, 1))), zd.index((0, (1, 2))))
    );
    let (shape, tiler) = (Layout::col_major(&shape!((8, 6, 5))), tile!(<2, 3>));
    for (line, found, expected) in [
        (
            "((TileM,RestM), (TileN,RestN), L, ...)",
            logical_divide(&shape, &tiler),
            "((2,4),(3,2),5)",
        ),
        (
            "((TileM,TileN), (RestM,RestN,L,...))",
            zipped_divide(&shape, &tiler),
            "((2,3),(4,2,5))",
        ),
        (
            "((TileM,TileN), RestM, RestN, L, ...)",
            tiled_divide(&shape, &tiler),
            "((2,3),4,2,5)",
        ),
        (
            "(TileM, TileN, RestM, RestN, L, ...)",
            flat_divide(&shape, &tiler),
            "(2,3,4,2,5)",
        ),
        (
            "((M,TileM), (N,TileN), L, ...)",
            logical_product(&shape, &tiler),
            "((8,2),(6,3),5)",
        ),
        (
            "((M,N), (TileM,TileN,L,...))",
            zipped_product(&shape, &tiler),
            "((8,6),(2,3,5))",
        ),
        (
            "((M,N), TileM, TileN, L, ...)",
            tiled_product(&shape, &tiler),
            "((8,6),2,3,5)",
        ),
        (
            "(M, N, TileM, TileN, L, ...)",
            flat_product(&shape, &tiler),
            "(8,6,2,3,5)",
        ),
    ] {
        says(line, expected, found.shape());
    }
}

#[test]
fn product_examples() {
    let a = layout!((2, 2):(4, 1));
    let product = logical_product(&a, &tile!(6:1));
    says(
        "Concatenation of `(A,A* o B) =",
        "((2,2),(2,3)):((4,1),(2,8))`",
        product,
    );
    says(
        "Composition of `A* = (2,3):(2,8)` with `B = 6:1` is then",
        "`(2,3):(2,8)`",
        composition(&layout!((2, 3):(2, 8)), &layout!(6:1)),
    );
    // "// @post compatible(layout_a, layout<0>(result))" and "layout<1>".
    for b in [layout!(6:1), layout!((4, 2):(2, 1))] {
        let product = logical_product(&a, &Tiler::layout(&b));
        assert_eq!(product.rank(), 2, "// @post rank(result) == 2");
        assert!(a.is_compatible_with(&product.mode(0)) && b.is_compatible_with(&product.mode(1)));
    }
}

#[test]
fn layouts_that_are_printed() {
    let d = 4;
    let s2xh4 = l("(2,(2,2)):(4,(2,1))");
    says("s8        :", "_8:_1", Layout::col_major(&shape!(8)));
    says("d8        :", "8:_1", Layout::col_major(&8.into()));
    says("s2xs4     :", "(_2,_4):(_1,_2)", layout!((2, 4)));
    says("s2xd4     :", "(_2,4):(_1,_2)", layout!((2, dyn d)));
    says(
        "s2xd4_a   :",
        "(_2,4):(_12,_1)",
        layout!((2, dyn d):(12, 1)),
    );
    says(
        "s2xd4_col :",
        "(_2,4):(_1,_2)",
        Layout::col_major(&shape!((2, dyn d))),
    );
    says(
        "s2xd4_row :",
        "(_2,4):(4,_1)",
        Layout::row_major(&shape!((2, dyn d))),
    );
    says("s2xh4     :", "(2,(2,2)):(4,(2,1))", s2xh4);
    says(
        "s2xh4_col :",
        "(2,(2,2)):(_1,(2,4))",
        Layout::col_major(&s2xh4.shape()),
    );
}

#[test]
fn parts_and_concatenations() {
    let a = layout!((4, (3, 6)));
    says(
        "Layout a   = Layout<Shape<_4,Shape<_3,_6>>>{}; //",
        "(4,(3,6)):(1,(4,12))",
        a,
    );
    says("Layout a0  = layout<0>(a); //", "4:1", a.mode(0));
    says("Layout a1  = layout<1>(a); //", "(3,6):(4,12)", a.mode(1));
    says("Layout a10 = layout<1,0>(a); //", "3:4", a.get(&[1, 0]));
    says("Layout a11 = layout<1,1>(a); //", "6:12", a.get(&[1, 1]));
    let a = layout!((2, 3, 5, 7));
    says(
        "Layout a13 = select<1,3>(a); //",
        "(3,7):(2,30)",
        a.select(&[1, 3]),
    );
    says(
        "Layout a01 = select<0,1,3>(a); //",
        "(2,3,7):(1,2,30)",
        a.select(&[0, 1, 3]),
    );
    says("Layout a2  = select<2>(a); //", "(5):(6)", a.select(&[2]));
    says("Layout a13 = take<1,3>(a); //", "(3,5):(2,6)", a.take(1, 3));
    says(
        "Layout a14 = take<1,4>(a); //",
        "(3,5,7):(2,6,30)",
        a.take(1, 4),
    );
    assert!(a.try_take(1, 1).is_err(), "// take<1,1> not allowed.");
    let b = a.group(0, 2);
    says(
        "Layout b = group<0,2>(a); //",
        "((_2,_3),_5,_7):((_1,_2),_6,_30)",
        b,
    );
    let c = b.group(1, 3);
    says(
        "Layout c = group<1,3>(b); //",
        "((_2,_3),(_5,_7)):((_1,_2),(_6,_30))",
        c,
    );
    says(
        "Layout f = flatten(b); //",
        "(_2,_3,_5,_7):(_1,_2,_6,_30)",
        b.flatten(),
    );
    says(
        "Layout e = flatten(c); //",
        "(_2,_3,_5,_7):(_1,_2,_6,_30)",
        c.flatten(),
    );
    let (a, b) = (layout!(3:1), layout!(4:3));
    let (row, col) = (Layout::concat2(&a, &b), Layout::concat2(&b, &a));
    says("Layout row = make_layout(a, b); //", "(3,4):(1,3)", row);
    says("Layout col = make_layout(b, a); //", "(4,3):(3,1)", col);
    let q = Layout::concat2(&row, &col);
    says(
        "Layout q   = make_layout(row, col); //",
        "((3,4),(4,3)):((1,3),(3,1))",
        q,
    );
    let aa = Layout::concat(&[a]);
    says("Layout aa  = make_layout(a); //", "(3):(1)", aa);
    says(
        "Layout aaa = make_layout(aa); //",
        "((3)):((1))",
        Layout::concat(&[aa]),
    );
    let d = Layout::concat(&[a, aa, a]);
    says(
        "Layout d   = make_layout(a, make_layout(a), a); //",
        "(3,(3),3):(1,(1),1)",
        d,
    );
    let ab = a.append(&b);
    says("Layout ab = append(a, b); //", "(3,4):(1,3)", ab);
    says(
        "Layout ba = prepend(a, b); //",
        "(4,3):(3,1)",
        a.prepend(&b),
    );
    let c = ab.append(&ab);
    says(
        "Layout c  = append(ab, ab); //",
        "(3,4,(3,4)):(1,3,(1,3))",
        c,
    );
    says(
        "Layout d  = replace<2>(c, b); //",
        "(3,4,4):(1,3,3)",
        c.replace(2, &b),
    );
}

#[test]
fn coordinates_that_are_printed() {
    let (shape, stride) = (shape!((3, (2, 3))), shape!((3, (12, 1))));
    for (coord, result) in [
        ("16", "(1,(1,2))"),
        ("_16", "(_1,(_1,_2))"),
        ("(1,5)", "(1,(1,2))"),
        ("(_1,5)", "(_1,(1,2))"),
        ("(1,(1,2))", "(1,(1,2))"),
        ("(_1,(1,_2))", "(_1,(1,_2))"),
    ] {
        let found = idx2crd(&t(coord), &shape);
        assert_eq!(found.to_string(), result, "print(idx2crd({coord}, shape));");
    }
    for (coord, result) in [
        ("16", "17"),
        ("_16", "_17"),
        ("(1,5)", "17"),
        ("(_1,5)", "17"),
        ("(_1,_5)", "_17"),
        ("(1,(1,2))", "17"),
        ("(_1,(_1,_2))", "_17"),
    ] {
        let found = crd2idx(&t(coord), &shape, &stride);
        assert_eq!(
            found.to_string(),
            result,
            "print(crd2idx({coord}, shape, stride));"
        );
    }
    let natural = idx2crd(&int("191"), &t("((2,2),(4,2),(2,3))"));
    says("191->", "((1  ,1  ),(3,  1  ),(1,2))", natural);
    for (line, layout, values) in [
        (
            "Index: 0 2 4 6 1 3 5 7",
            "((4,2)):((2,1))",
            [0, 2, 4, 6, 1, 3, 5, 7],
        ),
        (
            "Index :  0  2  4  6  8 10 12 14",
            "8:2",
            [0, 2, 4, 6, 8, 10, 12, 14],
        ),
        (
            "Index :  0  1  2  3  4  5  6  7",
            "((4,2)):((1,4))",
            [0, 1, 2, 3, 4, 5, 6, 7],
        ),
    ] {
        let found: Vec<i64> = (0..8).map(|c| l(layout).at(c)).collect();
        assert_eq!(found, values, "{line}");
    }
    for (line, a, b, holds) in [
        ("Shape (4,6) < ((2,2),6)", "(4,6)", "((2,2),6)", true),
        (
            "((2,3),4) !< ((2,2),(3,2))",
            "((2,3),4)",
            "((2,2),(3,2))",
            false,
        ),
        ("(24) !< 24", "(24)", "24", false),
    ] {
        assert_eq!(compatible(&t(a), &t(b)), holds, "{line}");
    }
}

#[test]
fn the_table_of_coordinates() {
    // "| 1-D | 2-D | Natural |" of the shape (3,(2,3)), which the tutorial calls (3,(2,2)).
    let shape = t("(3,(2,3))");
    for line in [
        "0 (0,0) (0,(0,0)) 9 (0,3) (0,(1,1))",
        "1 (1,0) (1,(0,0)) 10 (1,3) (1,(1,1))",
        "2 (2,0) (2,(0,0)) 11 (2,3) (2,(1,1))",
        "3 (0,1) (0,(1,0)) 12 (0,4) (0,(0,2))",
        "4 (1,1) (1,(1,0)) 13 (1,4) (1,(0,2))",
        "5 (2,1) (2,(1,0)) 14 (2,4) (2,(0,2))",
        "6 (0,2) (0,(0,1)) 15 (0,5) (0,(1,2))",
        "7 (1,2) (1,(0,1)) 16 (1,5) (1,(1,2))",
        "8 (2,2) (2,(0,1)) 17 (2,5) (2,(1,2))",
    ] {
        let forms: Vec<IntTuple> = line.split(' ').map(t).collect();
        for row in forms.chunks(3) {
            for form in row {
                assert_eq!(idx2crd(form, &shape), row[2], "{line}");
            }
        }
    }
}
