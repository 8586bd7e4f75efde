//! The examples of CuTe's documentation and of tutorials on it, as they are pasted, each with the answer that it
//! states.

use crate::check::{check, check_static};

#[test]
fn layouts_are_made_and_printed() {
    let s2xh4 = "Layout s2xh4 = make_layout(make_shape (2,make_shape (2,2)),
                           make_stride(4,make_stride(2,1)));";
    let s2xh4_col = format!(
        "{s2xh4}\nLayout s2xh4_col = make_layout(shape(s2xh4),\n                              LayoutLeft{{}});"
    );
    check(&[
        // s8        :  _8:_1
        ("Layout s8 = make_layout(Int<8>{});", "_8:_1"),
        // d8        :  8:_1
        ("Layout d8 = make_layout(8);", "8:_1"),
        // s2xs4     :  (_2,_4):(_1,_2)
        (
            "Layout s2xs4 = make_layout(make_shape(Int<2>{}, Int<4>{}));",
            "(_2,_4):(_1,_2)",
        ),
        // s2xd4_a   :  (_2,4):(_12,_1)
        (
            "Layout s2xd4_a = make_layout(make_shape(Int<2>{}, 4), make_stride(Int<12>{}, Int<1>{}));",
            "(_2,4):(_12,_1)",
        ),
        // s2xd4_col :  (_2,4):(_1,_2)
        (
            "Layout s2xd4_col = make_layout(make_shape(Int<2>{},4),\n                               LayoutLeft{});",
            "(_2,4):(_1,_2)",
        ),
        // s2xd4_row :  (_2,4):(4,_1)
        (
            "Layout s2xd4_row = make_layout(make_shape(Int<2>{},4),\n                               LayoutRight{});",
            "(_2,4):(4,_1)",
        ),
        // s2xh4     :  (2,(2,2)):(4,(2,1))
        (s2xh4, "(2,(2,2)):(4,(2,1))"),
        // s2xh4_col :  (2,(2,2)):(_1,(2,4))
        (&s2xh4_col, "(2,(2,2)):(_1,(2,4))"),
        ("make_tuple(int{2}, Int<3>{})", "(2,_3)"),
        (
            "  auto tensor_shape = make_shape(2, 3);
  auto tensor_stride = make_stride(1, 2);
  print_layout(make_layout(tensor_shape, tensor_stride));",
            "(2,3):(1,2)",
        ),
        (
            "tensor_shape = make_shape(2, 3);
tensor_stride = make_stride(3, 1);
print_layout(make_layout(tensor_shape, tensor_stride));",
            "(2,3):(3,1)",
        ),
        (
            "Layout layout = make_layout(make_shape (make_shape (2,2), 2),
                            make_stride(make_stride(4,2), 1));
print_layout(layout);",
            "((2,2),2):((4,2),1)",
        ),
        (
            "Layout layout = make_layout(make_shape (8,make_shape (2,2)),
                            make_stride(2,make_stride(1,16)));
print_layout(layout);",
            "(8,(2,2)):(2,(1,16))",
        ),
    ]);
}

#[test]
fn parts_of_layouts() {
    let of = |first: &str, lines: &[(&str, &str)]| {
        for (line, expected) in lines {
            check(&[(&format!("{first}\n{line}"), expected)]);
        }
    };
    of(
        "Layout a   = Layout<Shape<_4,Shape<_3,_6>>>{}; // (4,(3,6)):(1,(4,12))",
        &[
            (
                "Layout a0  = layout<0>(a);                     // 4:1",
                "_4:_1",
            ),
            (
                "Layout a1  = layout<1>(a);                     // (3,6):(4,12)",
                "(_3,_6):(_4,_12)",
            ),
            (
                "Layout a10 = layout<1,0>(a);                   // 3:4",
                "_3:_4",
            ),
            (
                "Layout a11 = layout<1,1>(a);                   // 6:12",
                "_6:_12",
            ),
        ],
    );
    of(
        "Layout a   = Layout<Shape<_2,_3,_5,_7>>{};     // (2,3,5,7):(1,2,6,30)",
        &[
            (
                "Layout a13 = select<1,3>(a);                   // (3,7):(2,30)",
                "(_3,_7):(_2,_30)",
            ),
            (
                "Layout a01 = select<0,1,3>(a);                 // (2,3,7):(1,2,30)",
                "(_2,_3,_7):(_1,_2,_30)",
            ),
            (
                "Layout a2  = select<2>(a);                     // (5):(6)",
                "(_5):(_6)",
            ),
            (
                "Layout a13 = take<1,3>(a);                     // (3,5):(2,6)",
                "(_3,_5):(_2,_6)",
            ),
            (
                "Layout a14 = take<1,4>(a);                     // (3,5,7):(2,6,30)",
                "(_3,_5,_7):(_2,_6,_30)",
            ),
            (
                "Layout b = group<0,2>(a);                 // ((_2,_3),_5,_7):((_1,_2),_6,_30)",
                "((_2,_3),_5,_7):((_1,_2),_6,_30)",
            ),
            (
                "Layout b = group<0,2>(a); Layout c = group<1,3>(b);                 // ((_2,_3),(_5,_7)):((_1,_2),(_6,_30))",
                "((_2,_3),(_5,_7)):((_1,_2),(_6,_30))",
            ),
            (
                "Layout b = group<0,2>(a); Layout f = flatten(b);                    // (_2,_3,_5,_7):(_1,_2,_6,_30)",
                "(_2,_3,_5,_7):(_1,_2,_6,_30)",
            ),
        ],
    );
    of(
        "Layout a = Layout<_3,_1>{};                     // 3:1
Layout b = Layout<_4,_3>{};                     // 4:3
Layout row = make_layout(a, b);                 // (3,4):(1,3)
Layout col = make_layout(b, a);                 // (4,3):(3,1)
Layout ab = append(a, b);                       // (3,4):(1,3)",
        &[
            (
                "Layout q   = make_layout(row, col);             // ((3,4),(4,3)):((1,3),(3,1))",
                "((_3,_4),(_4,_3)):((_1,_3),(_3,_1))",
            ),
            (
                "Layout aa  = make_layout(a);                    // (3):(1)",
                "(_3):(_1)",
            ),
            (
                "Layout aaa = make_layout(make_layout(a));       // ((3)):((1))",
                "((_3)):((_1))",
            ),
            (
                "Layout d   = make_layout(a, make_layout(a), a); // (3,(3),3):(1,(1),1)",
                "(_3,(_3),_3):(_1,(_1),_1)",
            ),
            (
                "Layout ba = prepend(a, b);                      // (4,3):(3,1)",
                "(_4,_3):(_3,_1)",
            ),
            (
                "Layout c  = append(ab, ab);                     // (3,4,(3,4)):(1,3,(1,3))",
                "(_3,_4,(_3,_4)):(_1,_3,(_1,_3))",
            ),
            (
                "Layout c  = append(ab, ab); Layout d  = replace<2>(c, b);                   // (3,4,4):(1,3,3)",
                "(_3,_4,_4):(_1,_3,_3)",
            ),
        ],
    );
}

#[test]
fn coordinates_are_printed() {
    let of = |lines: &[(&str, &str)]| {
        for (line, expected) in lines {
            let text = format!(
                "auto shape  = Shape <_3,Shape<  _2,_3>>{{}};\nauto stride = Stride<_3,Stride<_12,_1>>{{}};\n{line}"
            );
            check(&[(&text, expected)]);
        }
    };
    of(&[
        (
            "print(idx2crd(   16, shape));                                // (1,(1,2))",
            "(1,(1,2))",
        ),
        (
            "print(idx2crd(_16{}, shape));                                // (_1,(_1,_2))",
            "(_1,(_1,_2))",
        ),
        (
            "print(idx2crd(make_coord(   1,5), shape));                   // (1,(1,2))",
            "(1,(1,2))",
        ),
        (
            "print(idx2crd(make_coord(_1{},5), shape));                   // (_1,(1,2))",
            "(_1,(1,2))",
        ),
        (
            "print(idx2crd(make_coord(   1,make_coord(1,   2)), shape));  // (1,(1,2))",
            "(1,(1,2))",
        ),
        (
            "print(idx2crd(make_coord(_1{},make_coord(1,_2{})), shape));  // (_1,(1,_2))",
            "(_1,(1,_2))",
        ),
        ("print(crd2idx(   16, shape, stride));       // 17", "17"),
        ("print(crd2idx(_16{}, shape, stride));       // _17", "_17"),
        (
            "print(crd2idx(make_coord(   1,   5), shape, stride));  // 17",
            "17",
        ),
        (
            "print(crd2idx(make_coord(_1{},   5), shape, stride));  // 17",
            "17",
        ),
        (
            "print(crd2idx(make_coord(_1{},_5{}), shape, stride));  // _17",
            "_17",
        ),
        (
            "print(crd2idx(make_coord(   1,make_coord(   1,   2)), shape, stride));  // 17",
            "17",
        ),
        (
            "print(crd2idx(make_coord(_1{},make_coord(_1{},_2{})), shape, stride));  // _17",
            "_17",
        ),
    ]);
    check(&[
        (
            "auto shape_v2 = cute::Shape<cute::Shape<_2,_2>, cute::Shape<_4,_2>, cute::Shape<_2,_3>>{};
print(idx2crd(   191, shape_v2));",
            "((1,1),(3,1),(1,2))",
        ),
        (
            "auto shape_v2 = cute::Shape<cute::Shape<_2,_2>, cute::Shape<_4,_2>, cute::Shape<_2,_3>>{};
sz_shape = cute::size(shape_v2);",
            "_192",
        ),
    ]);
}

#[test]
fn algebra_in_cpp() {
    check(&[
        (
            "auto layout = Layout<Shape <_2,Shape <_1,_6>>,
                     Stride<_1,Stride<_6,_2>>>{};
auto result = coalesce(layout);    // _12:_1",
            "_12:_1",
        ),
        (
            "auto a = Layout<Shape <_2,Shape <_1,_6>>,
                Stride<_1,Stride<_6,_2>>>{};
auto result = coalesce(a, Step<_1,_1>{});   // (_2,_6):(_1,_2)
// Identical to
auto same_r = make_layout(coalesce(layout<0>(a)),
                          coalesce(layout<1>(a)));
result == same_r",
            "the same layout",
        ),
        (
            "Layout a = make_layout(make_shape (Int<10>{}, Int<2>{}),
                       make_stride(Int<16>{}, Int<4>{}));
Layout b = make_layout(make_shape (Int< 5>{}, Int<4>{}),
                       make_stride(Int< 1>{}, Int<5>{}));
Layout c = composition(a, b);
print(c);",
            "(_5,(_2,_2)):(_16,(_80,_4))",
        ),
        (
            "Layout a = make_layout(make_shape (10, 2),
                       make_stride(16, 4));
Layout b = make_layout(make_shape ( 5, 4),
                       make_stride( 1, 5));
Layout c = composition(a, b);
print(c);",
            "((5,1),(2,2)):((16,4),(80,4))",
        ),
        (
            "// (12,(4,8)):(59,(13,1))
auto a = make_layout(make_shape (12,make_shape ( 4,8)),
                     make_stride(59,make_stride(13,1)));
// <3:4, 8:2>
auto tiler = make_tile(Layout<_3,_4>{},  // Apply 3:4 to mode-0
                       Layout<_8,_2>{}); // Apply 8:2 to mode-1

// (_3,(2,4)):(236,(26,1))
auto result = composition(a, tiler);",
            "(_3,(2,4)):(236,(26,1))",
        ),
        (
            "auto a = make_layout(make_shape (12,make_shape ( 4,8)),
                     make_stride(59,make_stride(13,1)));
auto tiler = make_tile(Layout<_3,_4>{},  // Apply 3:4 to mode-0
                       Layout<_8,_2>{}); // Apply 8:2 to mode-1
auto result = composition(a, tiler);
// Identical to
auto same_r = make_layout(composition(layout<0>(a), get<0>(tiler)),
                          composition(layout<1>(a), get<1>(tiler)));
result == same_r",
            "the same layout",
        ),
        (
            "auto a = make_layout(make_shape (12,make_shape ( 4,8)),
                     make_stride(59,make_stride(13,1)));
// (8, 3)
auto tiler = make_shape(Int<3>{}, Int<8>{});
// (_3,(4,2)):(59,(13,1))
auto result = composition(a, tiler);",
            "(_3,(4,2)):(59,(13,1))",
        ),
        (
            "auto layout_a = make_layout(make_shape (Int< 9>{}, make_shape (Int< 4>{}, Int<8>{})),
                            make_stride(Int<59>{}, make_stride(Int<13>{}, Int<1>{})));
// B: shape is (3,8)
auto tiler = make_tile(Layout<_3,_3>{},           // Apply     3:3     to mode-0
                       Layout<Shape <_2,_4>,      // Apply (2,4):(1,8) to mode-1
                              Stride<_1,_8>>{});

// ((TileM,RestM), (TileN,RestN)) with shape ((3,3), (8,4))
auto ld = logical_divide(layout_a, tiler);
// ((TileM,TileN), (RestM,RestN)) with shape ((3,8), (3,4))
auto zd = zipped_divide(layout_a, tiler);
layout<0>(zd) == composition(layout_a, tiler)",
            "the same layout",
        ),
    ]);
}

#[test]
fn algebra_in_formulas() {
    check_static(&[
        // R = ((2,2),3):((24,2),8)
        (
            "A = (6,2):(8,2)\nB = (4,3):(3,1)\nR = A o B",
            "((_2,_2),_3):((_24,_2),_8)",
        ),
        (
            "A = (6,2):(8,2)\nB = (4,3):(3,1)\nR = A o B\ncompatible(B, R)",
            "true",
        ),
        // 1. to 4. of "Reshape a layout into a matrix"
        ("20:2 o (5,4):(4,1)", "(_5,_4):(_8,_2)"),
        ("20:2 o (5:4,4:1)", "(_5,_4):(_8,_2)"),
        ("(20:2 o 5:4, 20:2 o 4:1)", "(_5,_4):(_8,_2)"),
        ("(5:8, 4:2)", "(_5,_4):(_8,_2)"),
        ("(10,2):(16,4) o (5:1,4:5)", "(_5,(_2,_2)):(_16,(_80,_4))"),
        (
            "((10,2):(16,4) o 5:1, (10,2):(16,4) o 4:5)",
            "(_5,(_2,_2)):(_16,(_80,_4))",
        ),
        ("(5:16, (2,2):(80,4))", "(_5,(_2,_2)):(_16,(_80,_4))"),
        // The three steps of the division, and those of the product.
        ("complement(4:2, 24)", "(_2,_3):(_1,_8)"),
        ("(4:2, complement(4:2, 24))", "(_4,(_2,_3)):(_2,(_1,_8))"),
        (
            "(4,2,3):(2,1,8) o (4,(2,3)):(2,(1,8))",
            "((_2,_2),(_2,_3)):((_4,_1),(_2,_8))",
        ),
        ("complement((2,2):(4,1), 6*4)", "(_2,_3):(_2,_8)"),
        ("(2,3):(2,8) o 6:1", "(_2,_3):(_2,_8)"),
        (
            "((2,2):(4,1), (2,3):(2,8) o 6:1)",
            "((_2,_2),(_2,_3)):((_4,_1),(_2,_8))",
        ),
        // Cosizes 24 of the examples of the complement.
        ("cosize((6,4):(4,1))", "_24"),
        ("cosize((4,6):(1,4))", "_24"),
        ("cosize((4,(2,3)):(2,(1,8)))", "_24"),
        ("cosize(((2,4),3):((1,6),2))", "_24"),
        ("cosize(((2,2),(3,2)):((1,6),(2,12)))", "_24"),
    ]);
}

/// "Indeed, it is always the case that `layout<0>(zipped_divide(a, b)) == composition(a, b)`."
#[test]
fn the_tile_of_a_zipped_divide_is_the_composition() {
    let layouts = [
        "(8,8):(8,1)",
        "(_12,(_4,_8)):(_59,(_13,_1))",
        "(16,(4,6),3):(1,(16,64),384)",
        "Sw<3,0,3> o 0 o (8,8):(8,1)",
    ];
    let tilers = [
        "_",
        "<_>",
        "<_,4>",
        "<4,_>",
        "<_,_>",
        "<3:3,(2,4):(1,8)>",
        "<_,2:2>",
        "(_,4)",
        "2:1",
    ];
    for (a, b) in layouts.iter().flat_map(|a| tilers.map(|b| (a, b))) {
        if b == "<3:3,(2,4):(1,8)>" && a.contains("Sw") {
            continue;
        }
        let law = format!("a = {a}; b = {b}; layout<0>(zipped_divide(a, b)) == composition(a, b)");
        check(&[(&law, "the same layout")]);
    }
}
