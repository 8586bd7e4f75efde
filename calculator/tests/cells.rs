//! The cells of pictures as data.

use cutlet_calculator::cells::{ColorBy, layout_cells, thread_value_cells, tiled_cells};
use cutlet_calculator::{Calculator, Options, Symbols, code, evaluate, gallery};

fn cells(text: &str, color: ColorBy) -> serde_json::Value {
    let mut calculator = Calculator::new(text, Options::default());
    let value = calculator.evaluate().unwrap();
    layout_cells(&value, color, calculator.symbols()).unwrap()
}

#[test]
fn cells_have_coordinates_and_lines_between_modes() {
    let cells = cells("((2,2),(2,3)):((1,8),(4,16))", ColorBy::Row);
    assert_eq!(cells["texts"][1], "4");
    assert_eq!(cells["naturals"][7], "((1,0),(1,0))");
    assert_eq!(cells["groups"][7], 1);
    assert_eq!(cells["row_lines"].to_string(), "[0,1,0]");
    assert_eq!(cells["column_lines"].to_string(), "[0,1,0,1,0]");
    assert_eq!(cells["row_labels"][3], "(1,1)");
}

#[test]
fn banks_and_symbols_are_shown() {
    let banks = cells("(2,40):(1,2)", ColorBy::Bank(16));
    assert_eq!(banks["groups"][3].to_string(), "3");
    assert_eq!(banks["groups"][35].to_string(), "3", "bank 35 is bank 3");
    let symbolic = cells("(2,2):(1,ldm)", ColorBy::Index);
    assert_eq!(
        symbolic["texts"].to_string(),
        r#"["0","ldm","1","1 + ldm"]"#
    );
    assert!(ColorBy::named("mood", 32).is_err());
    let large = evaluate("(1000,1000)").unwrap();
    let refusal = layout_cells(&large, ColorBy::Index, &Symbols::default()).unwrap_err();
    assert!(refusal.message.contains("1000000 cells are too many"));
}

#[test]
fn every_atom_of_the_gallery_covers_its_tile() {
    let atoms = gallery::examples()
        .into_iter()
        .filter(|example| example.topic.ends_with("atoms"))
        .filter_map(|example| example.tile.map(|tile| (example.expression, tile)));
    let mut count = 0;
    for (expression, tile) in atoms {
        let cells = thread_value_cells(&evaluate(&expression).unwrap(), &tile).unwrap();
        let holders = cells["holders"].as_array().unwrap();
        assert!(
            holders
                .iter()
                .all(|holders| holders != &serde_json::json!([])),
            "{expression}"
        );
        count += 1;
    }
    assert!(count >= 20);
}

#[test]
fn every_element_of_a_tiled_operation_has_a_holder() {
    for (text, tile, operands) in [
        (
            "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>",
            "(64,32,32)",
            3,
        ),
        (
            "TiledMma<Mma16816<bf16>, L!((2, 1):(1, 0)), (L!(32:1), L!((2, 4, 2):(1, 4, 2)))>",
            "",
            3,
        ),
        ("Wgmma<16, bf16>", "", 3),
        (
            "TiledCopy<CpAsync<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>",
            "",
            1,
        ),
        (
            "make_tiled_copy_A(ldmatrix(4, 16), make_tiled_mma(Mma16816<bf16>, (2,2)))",
            "",
            2,
        ),
    ] {
        let cells = tiled_cells(evaluate(text).unwrap().tiled().unwrap(), tile).unwrap();
        let shown = cells["operands"].as_array().unwrap();
        assert_eq!(shown.len(), operands, "{text}");
        for operand in shown {
            let threads = cells["threads"].as_u64().unwrap() as usize;
            assert_eq!(operand["first"].as_array().unwrap().len(), threads);
            let holders = operand["holders"].as_array().unwrap();
            assert!(
                holders.iter().all(serde_json::Value::is_array),
                "{text}: {operand}"
            );
        }
    }
    // Row 1, column 9 of C: thread 4 of the second warp in a row has the column as its second value.
    let mma = evaluate("make_tiled_mma(Mma16816<bf16>, (1,2))").unwrap();
    let cells = tiled_cells(mma.tiled().unwrap(), "").unwrap();
    assert_eq!(
        cells["operands"][2]["holders"][16 + 9].to_string(),
        "[36,1]"
    );
    let error = tiled_cells(mma.tiled().unwrap(), "(16,16,4)").unwrap_err();
    assert!(error.to_string().contains("do not divide a tile (16,16,4)"));
}

/// Code that is exported is notation that reads back.
#[test]
fn exported_code_reads_back() {
    for text in [
        "(_4,(2,_3)):(_8,(1,_2))",
        "(_4,_2):(_1,_4)",
        "Sw<3,4,3> o _0 o (_8,_8):(_8,_1)",
        "(_2,_2):(_1@0,_3@1)",
        "_8:_1",
        "_2:_1@1@0",
        "(_4,_2):(_1,_4) o _1 o (2,2):(1,2)",
    ] {
        let value = evaluate(text).unwrap();
        let cpp = code::cpp(&value).unwrap();
        assert_eq!(evaluate(&cpp).unwrap().to_string(), text, "{cpp}");
    }
    let layout = evaluate("(_4,_2):(_1,_4)").unwrap();
    assert_eq!(code::rust_type(&layout).unwrap(), "L!((4, 2):(1, 4))");
    assert!(code::rust_type(&evaluate("(4,2)").unwrap()).is_err());
    assert!(code::rust(&evaluate("gather([1,0]) o 0 o 2:1").unwrap()).is_err());
    let swizzled = evaluate("Sw<3,4,3> o 0 o (_8,_8):(_8,_1)").unwrap();
    assert_eq!(
        code::rust(&swizzled).unwrap(),
        "ComposedLayout::new(Swizzle::new(3, 4, 3), shape!(dyn 0), layout!((8, 8):(8, 1)))"
    );
}
