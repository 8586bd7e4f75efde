//! Tables, lists, LaTeX and SVG, compared with the texts of CuTe and of tutorials on it.

use cutlet_layout_core::{
    ComposedLayout, IntTuple, Layout, Swizzle, identity, layout, picture, shape, tile,
    zipped_divide,
};

fn dynamic(text: &str) -> Layout {
    text.parse().expect("a layout")
}

#[test]
fn print_layout_of_example_1() {
    assert_eq!(
        picture::table(&dynamic("(2,3):(1,2)")).to_string(),
        concat!(
            "(2,3):(1,2)\n",
            "      0   1   2 \n",
            "    +---+---+---+\n",
            " 0  | 0 | 2 | 4 |\n",
            "    +---+---+---+\n",
            " 1  | 1 | 3 | 5 |\n",
            "    +---+---+---+\n",
        )
    );
}

#[test]
fn print_layout_of_example_2() {
    assert_eq!(
        picture::table(&dynamic("(2,3):(3,1)")).to_string(),
        concat!(
            "(2,3):(3,1)\n",
            "      0   1   2 \n",
            "    +---+---+---+\n",
            " 0  | 0 | 1 | 2 |\n",
            "    +---+---+---+\n",
            " 1  | 3 | 4 | 5 |\n",
            "    +---+---+---+\n",
        )
    );
}

#[test]
fn print_layout_of_example_3() {
    assert_eq!(
        picture::table(&dynamic("((2,2),2):((4,2),1)")).to_string(),
        concat!(
            "((2,2),2):((4,2),1)\n",
            "      0   1 \n",
            "    +---+---+\n",
            " 0  | 0 | 1 |\n",
            "    +---+---+\n",
            " 1  | 4 | 5 |\n",
            "    +---+---+\n",
            " 2  | 2 | 3 |\n",
            "    +---+---+\n",
            " 3  | 6 | 7 |\n",
            "    +---+---+\n",
        )
    );
}

#[test]
fn print_layout_of_example_4() {
    assert_eq!(
        picture::table(&dynamic("(8,(2,2)):(2,(1,16))")).to_string(),
        concat!(
            "(8,(2,2)):(2,(1,16))\n",
            "       0    1    2    3 \n",
            "    +----+----+----+----+\n",
            " 0  |  0 |  1 | 16 | 17 |\n",
            "    +----+----+----+----+\n",
            " 1  |  2 |  3 | 18 | 19 |\n",
            "    +----+----+----+----+\n",
            " 2  |  4 |  5 | 20 | 21 |\n",
            "    +----+----+----+----+\n",
            " 3  |  6 |  7 | 22 | 23 |\n",
            "    +----+----+----+----+\n",
            " 4  |  8 |  9 | 24 | 25 |\n",
            "    +----+----+----+----+\n",
            " 5  | 10 | 11 | 26 | 27 |\n",
            "    +----+----+----+----+\n",
            " 6  | 12 | 13 | 28 | 29 |\n",
            "    +----+----+----+----+\n",
            " 7  | 14 | 15 | 30 | 31 |\n",
            "    +----+----+----+----+\n",
        )
    );
}

#[test]
fn vectors_are_listed() {
    assert_eq!(
        picture::table(&dynamic("8:1")).to_string(),
        concat!(
            "Layout:  8:1\n",
            "Coord :  0  1  2  3  4  5  6  7\n",
            "Index :  0  1  2  3  4  5  6  7\n",
        )
    );
    assert_eq!(
        picture::table(&dynamic("8:2")).to_string(),
        concat!(
            "Layout:  8:2\n",
            "Coord :  0  1  2  3  4  5  6  7\n",
            "Index :  0  2  4  6  8 10 12 14\n",
        )
    );
}

#[test]
fn nested_vectors_are_drawn_as_what_they_nest() {
    assert_eq!(
        picture::table(&dynamic("((4,2)):((2,1))")).to_string(),
        concat!(
            "Layout:  ((4,2)):((2,1))\n",
            "      0   1 \n",
            "    +---+---+\n",
            " 0  | 0 | 1 |\n",
            "    +---+---+\n",
            " 1  | 2 | 3 |\n",
            "    +---+---+\n",
            " 2  | 4 | 5 |\n",
            "    +---+---+\n",
            " 3  | 6 | 7 |\n",
            "    +---+---+\n",
            "Coord :  0  1  2  3  4  5  6  7\n",
            "Index :  0  2  4  6  1  3  5  7\n",
        )
    );
    assert_eq!(
        picture::table(&dynamic("((4,2)):((1,4))")).to_string(),
        concat!(
            "Layout:  ((4,2)):((1,4))\n",
            "      0   1 \n",
            "    +---+---+\n",
            " 0  | 0 | 4 |\n",
            "    +---+---+\n",
            " 1  | 1 | 5 |\n",
            "    +---+---+\n",
            " 2  | 2 | 6 |\n",
            "    +---+---+\n",
            " 3  | 3 | 7 |\n",
            "    +---+---+\n",
            "Coord :  0  1  2  3  4  5  6  7\n",
            "Index :  0  1  2  3  4  5  6  7\n",
        )
    );
}

#[test]
fn annotated_table_and_the_coordinates_of_index_17() {
    let layout = dynamic("(3,(2,3)):(3,(12,1))");
    assert_eq!(
        picture::annotated_table(&layout).to_string(),
        concat!(
            "Layout (3, (2, 3)):(3, (12, 1))\n",
            "       0     1     2     3     4     5     <== 1-D col coord\n",
            "     (0,0) (1,0) (0,1) (1,1) (0,2) (1,2)   <== 2-D col coord (j,k)\n",
            "    +-----+-----+-----+-----+-----+-----+\n",
            " 0  |  0  |  12 |  1  |  13 |  2  |  14 |\n",
            "    +-----+-----+-----+-----+-----+-----+\n",
            " 1  |  3  |  15 |  4  |  16 |  5  |  17 |\n",
            "    +-----+-----+-----+-----+-----+-----+\n",
            " 2  |  6  |  18 |  7  |  19 |  8  |  20 |\n",
            "    +-----+-----+-----+-----+-----+-----+\n",
        )
    );
    let forms: Vec<String> = picture::coordinates_of(&layout, 17)
        .map(|coord| coord.to_string())
        .collect();
    assert_eq!(forms, ["16", "(1,5)", "(1,(1,2))"]);
    assert_eq!(
        picture::coordinates_of(&layout, 17).to_string(),
        "Coord: 16\nCoord: (1, 5)\nCoord: (1, (1, 2))\n"
    );
}

/// An index of several coordinates, and one of none.
#[test]
fn all_coordinates_of_an_index_are_found() {
    let forms: Vec<String> = picture::coordinates_of(&layout!((2, 3):(1, 0)), 1)
        .map(|coord| coord.to_string())
        .collect();
    assert_eq!(forms, ["1", "(1,0)", "3", "(1,1)", "5", "(1,2)"]);
    assert_eq!(picture::coordinates_of(&layout!(4:2), 3).count(), 0);
}

#[test]
fn idx2crd_list() {
    let list = picture::coordinate_list(&shape!(((2, 2), (4, 2), (2, 3)))).to_string();
    let lines: Vec<&str> = list.lines().collect();
    assert_eq!(lines.len(), 192);
    assert_eq!(lines[0], "000 |((0,0),(0,0),(0,0))");
    assert_eq!(lines[1], "001 |((1,0),(0,0),(0,0))");
    assert_eq!(lines[31], "031 |((1,1),(3,1),(0,0))");
    assert_eq!(lines[191], "191 |((1,1),(3,1),(1,2))");
}

#[test]
fn coordinates_of_deep_layouts() {
    let deep = dynamic("(((((2,2),2),2),2),2)");
    let forms: Vec<String> = picture::coordinates_of(&deep, 37)
        .map(|c| c.to_string())
        .collect();
    assert_eq!(forms, ["37", "(5,1)", "(((((1,0),1),0),0),1)"]);
    assert!(
        picture::annotated_table(&deep)
            .to_string()
            .contains(" ((((1,0),1),0),0)\n")
    );
}

#[test]
fn tables_have_room_for_what_they_show() {
    let negative = picture::table(&dynamic("(2,2):(-1,-20)")).to_string();
    assert!(negative.contains(" 1  |  -1 | -21 |"), "{negative}");
    let coordinates = picture::table(&identity(&shape!((2, 2)))).to_string();
    assert!(
        coordinates.contains(" 1  | (1,0) | (1,1) |"),
        "{coordinates}"
    );
    let three = picture::table(&dynamic("(2,2,2):(1,2,4)")).to_string();
    assert!(three.contains(" 1  | 1 | 3 | 5 | 7 |"), "{three}");
}

#[test]
fn composed_layouts_are_drawn_too() {
    let swizzled = ComposedLayout::new(
        Swizzle::new(1, 0, 1),
        IntTuple::from(0),
        layout!((2, 2):(2, 1)),
    );
    let table = picture::table(&swizzled).to_string();
    assert!(
        table.starts_with("Sw<1,0,1> o 0 o (_2,_2):(_2,_1)\n"),
        "{table}"
    );
    assert!(table.contains(" 1  | 3 | 2 |"), "{table}");
}

#[test]
fn thread_value_tables_name_the_owner_of_each_element() {
    // The accumulators of mma.m16n8k16, as CuTe writes them.
    let tv = layout!(((4, 8), (2, 2)):((32, 1), (16, 8)));
    let drawn = picture::ThreadValues::new(&tv, &shape!((16, 8))).unwrap();
    assert_eq!(drawn.owner(0, 0), Some((0, 0)));
    assert_eq!(drawn.owner(0, 1), Some((0, 1)));
    assert_eq!(drawn.owner(9, 5), Some((6, 3)));
    let table = picture::thread_value_table(&drawn).to_string();
    assert!(table.contains(" 9  |  T4V2 |"), "{table}");

    let broadcast = layout!(((2, 2), 2):((0, 1), 2));
    let drawn = picture::ThreadValues::new(&broadcast, &shape!((2, 2))).unwrap();
    assert_eq!(
        drawn.owner(1, 1),
        Some((2, 1)),
        "the first of the threads that hold it"
    );

    let sparse = picture::ThreadValues::new(&layout!((2, 1):(2, 0)), &shape!((1, 4))).unwrap();
    assert_eq!(sparse.owner(0, 1), None);

    let outside = picture::ThreadValues::new(&layout!((2, 4):(1, 4)), &shape!((2, 4)));
    assert!(outside.unwrap_err().message().contains("outside the tile"));
}

#[test]
fn thread_values_in_basis_directions_are_coordinates() {
    let tv = layout!(((4, 8), (2, 2)):((2@1, 1@0), (1@1, 8@0)));
    let drawn = picture::ThreadValues::new(&tv, &shape!((16, 8))).unwrap();
    let plain = layout!(((4, 8), (2, 2)):((32, 1), (16, 8)));
    let plain = picture::ThreadValues::new(&plain, &shape!((16, 8))).unwrap();
    for row in 0..16 {
        for column in 0..8 {
            assert_eq!(drawn.owner(row, column), plain.owner(row, column));
        }
    }
    let reversed = layout!(((4, 8), (2, 2)):((2@0, 1@1), (1@0, 8@1)));
    assert!(picture::ThreadValues::new(&reversed, &shape!((16, 8))).is_err());
}

#[test]
fn latex_documents_draw_every_cell() {
    let document = picture::latex(&layout!((2, 3):(3, 1))).to_string();
    assert!(
        document.starts_with("% Layout: (_2,_3):(_3,_1)\n\\documentclass"),
        "{document}"
    );
    assert!(document.ends_with("\\end{document}\n"));
    assert_eq!(document.matches("\\node[fill=").count(), 6);
    assert!(document.contains("at (1,2) {5};"), "{document}");

    let drawn = picture::ThreadValues::new(&layout!((2, 2):(1, 2)), &shape!((2, 2))).unwrap();
    let document = picture::thread_value_latex(&drawn).to_string();
    assert!(document.contains(r"at (1,1) {T1 \\ V1};"), "{document}");
}

#[test]
fn svg_documents_draw_every_cell_and_escape_their_titles() {
    let swizzled = ComposedLayout::new(
        Swizzle::new(3, 0, 3),
        IntTuple::from(0),
        layout!((8, 8):(8, 1)),
    );
    let document = picture::svg(&swizzled).to_string();
    assert!(document.contains("Sw&lt;3,0,3&gt; o 0 o"), "{document}");
    assert_eq!(document.matches("stroke=\"black\"").count(), 64);

    let divided = zipped_divide(&layout!((4, 4):(1, 4)), &tile!(<2, 2>));
    assert_eq!(
        picture::svg(&divided)
            .to_string()
            .matches("stroke=\"black\"/>")
            .count(),
        16
    );

    let drawn = picture::ThreadValues::new(&layout!((2, 2):(1, 2)), &shape!((2, 2))).unwrap();
    let document = picture::thread_value_svg(&drawn).to_string();
    assert!(
        document.contains(">T1</text>") && document.contains(">V1</text>"),
        "{document}"
    );
    let count = |document: &str, number| {
        document
            .matches(&picture::Color::of_thread(number).to_string())
            .count()
    };
    assert_eq!(count(&document, 1), 2);

    let drawn = picture::ThreadValues::new(&layout!((1, 4):(1, 1)), &shape!((2, 2))).unwrap();
    let panel = picture::ThreadValuePanel::new(&drawn).by_value();
    let document = picture::Figure::new(&[&panel]).to_string();
    assert_eq!([0, 3].map(|value| count(&document, value)), [1, 1]);
}

/// Lines are thicker where a mode ends, and labels are natural coordinates.
#[test]
fn svg_documents_show_where_modes_end() {
    let nested = picture::svg(&layout!(((2, 2), (2, (1, 2), 2)))).to_string();
    let lines: Vec<&str> = nested.lines().filter(|l| l.contains("<path")).collect();
    assert_eq!(lines.len(), 1 + 3, "{nested}");
    let thick = |width: i64| {
        let width = format!("stroke-width=\"{width}\"");
        lines.iter().filter(|line| line.contains(&width)).count()
    };
    // The rows end a pair once. The columns end pairs at 2, 4 and 6, and a pair of pairs at 4.
    assert_eq!((thick(3), thick(5)), (3, 1), "{nested}");
    assert!(nested.contains(">(1,0)</text>") && nested.contains(">(1,(0,1),1)</text>"));

    let flat = picture::svg(&layout!((4, 8))).to_string();
    assert!(!flat.contains("<path") && flat.contains(">7</text>"));
}

/// Two threads that share an element are both named, in all pictures.
#[test]
fn all_holders_are_named() {
    let shared = picture::ThreadValues::new(&layout!((2, 2):(0, 1)), &shape!((1, 2))).unwrap();
    let table = picture::thread_value_table(&shared).to_string();
    assert!(table.contains("| T0V0,T1V0 | T0V1,T1V1 |"), "{table}");
    let svg = picture::thread_value_svg(&shared).to_string();
    assert!(
        svg.contains(">T0,T1</text>") && svg.contains(">V1,V1</text>"),
        "{svg}"
    );
    let latex = picture::thread_value_latex(&shared).to_string();
    assert!(latex.contains(r"{T0 \\ V0 \\ T1 \\ V0};"), "{latex}");
}

/// A cell is as wide as the widest text, and never narrower than a square.
#[test]
fn svg_cells_grow_with_their_text() {
    let width = |svg: String| -> String {
        let cell = svg.split("<rect x=").nth(1).unwrap();
        cell.split("width=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        width(picture::svg(&layout!((2, 2):(1, 2000))).to_string()),
        "40"
    );
    assert_eq!(
        width(picture::svg(&layout!((2, 2):(1, 2000000))).to_string()),
        "71"
    );
    assert_eq!(
        width(picture::svg(&layout!((2, 2):(1@0, 10@1))).to_string()),
        "62"
    );
}
