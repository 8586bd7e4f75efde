//! Requests of the page and their answers, on the host.

use cutlet_playground::respond;
use serde_json::{Value, json};

use crate::ask;

#[test]
fn an_answer_has_all_that_the_page_shows() {
    let answer = ask(json!({
        "ask": "answer", "expression": "((4,8),(2,2)):((32,1),(16,8))", "bits": 16, "tile": "(16,8)", "static": true,
    }));
    assert_eq!(
        answer["value"]["text"],
        "((_4,_8),(_2,_2)):((_32,_1),(_16,_8))"
    );
    assert_eq!(answer["cells"]["rows"], 32);
    assert_eq!(answer["thread_values"]["holders"][1].to_string(), "[[0,1]]");
    assert_eq!(answer["bijective"]["bijective"], true);
    assert_eq!(answer["coalescing"]["width"], 1);
    assert_eq!(
        answer["code"]["rust_type"],
        "L!(((4, 8), (2, 2)):((32, 1), (16, 8)))"
    );
}

#[test]
fn refusals_have_columns() {
    assert_eq!(
        ask(json!({ "ask": "answer", "expression": "(4,2" }))["error"]["column"],
        5
    );
    assert!(ask(json!({ "ask": "latex", "expression": "x" }))["error"]["message"].is_string());
    assert!(
        ask(json!({ "ask": "answer", "expression": "(4,2)", "color": "mood" }))["cells"].is_null()
    );
    let color = ask(json!({ "ask": "answer", "expression": "(4,2):(1,4)", "color": "mood" }));
    assert!(color["cells"]["error"]["message"].is_string());
    assert!(serde_json::from_str::<Value>(&respond("{")).unwrap()["error"].is_object());
}

#[test]
fn a_swizzle_is_seen_before_and_after() {
    let answer = ask(json!({ "ask": "answer", "expression": "Sw<1,0,1> o 0 o (2,2):(1,2)" }));
    assert_eq!(
        answer["unswizzled"]["texts"].to_string(),
        r#"["0","2","1","3"]"#
    );
    assert_eq!(answer["cells"]["texts"].to_string(), r#"["0","3","1","2"]"#);
    let plain = ask(json!({ "ask": "answer", "expression": "(2,2):(1,2)" }));
    assert!(plain["unswizzled"].is_null());
}

#[test]
fn symbols_have_no_code() {
    let answer = ask(json!({ "ask": "answer", "expression": "(4,2):(1,ldm)" }));
    assert_eq!(answer["cells"]["texts"][1], "ldm");
    assert!(answer["code"].is_null());

    let answer = ask(json!({ "ask": "answer", "expression": "(M,N):(N,1)" }));
    assert_eq!(answer["value"]["text"], "(M,N):(N,1)");
    let message = answer["cells"]["error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("give numbers for its symbols"),
        "{message}"
    );
}

#[test]
fn tables_are_cutes() {
    let answer = ask(json!({ "ask": "table", "expression": "(2,2):(1,2)" }));
    assert!(
        answer["table"]
            .as_str()
            .unwrap()
            .starts_with("(2,2):(1,2)\n      0   1 \n")
    );
}

#[test]
fn a_tiled_operation_has_its_operands() {
    let mma = "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>";
    let answer = ask(json!({ "ask": "answer", "expression": mma, "tile": "(64,64,32)" }));
    assert_eq!(answer["value"]["tile"], json!([32, 16, 16]));
    assert_eq!(answer["tiled"]["threads"], 128);
    let operands = answer["tiled"]["operands"].as_array().unwrap();
    let extents = operands
        .iter()
        .map(|it| json!([it["name"], it["rows"], it["columns"], it["values"]]));
    assert_eq!(
        extents.collect::<Vec<_>>(),
        [
            json!(["A", 64, 32, 32]),
            json!(["B", 64, 32, 32]),
            json!(["C", 64, 64, 32])
        ]
    );
    assert!(answer["cells"].is_null());

    let answer = ask(json!({ "ask": "answer", "expression": mma, "tile": "(64,64)" }));
    let message = answer["tiled"]["error"]["message"].as_str().unwrap();
    assert!(
        message.ends_with("do not divide a tile (64,64): give multiples"),
        "{message}"
    );
}

#[test]
fn a_box_of_tma_is_drawn_as_it_lies_in_shared_memory() {
    let answer =
        ask(json!({ "ask": "answer", "expression": "tma_box((64,128):(128,1), (8,64), 16, 128)" }));
    assert_eq!(answer["value"]["tma"]["legal"], true);
    assert_eq!(answer["cells"]["texts"][64], "72");
    assert_eq!(answer["unswizzled"]["texts"][64], "64");
    let answer =
        ask(json!({ "ask": "answer", "expression": "tma_box((64,127):(127,1), (8,64), 16, 128)" }));
    assert_eq!(answer["value"]["tma"]["legal"], false);
    assert_eq!(
        answer["value"]["tma"]["reasons"][0]["found"],
        "its rows are 254 bytes apart"
    );
}

#[test]
fn a_contraction_has_its_tensors() {
    let product = r#"contract("mk,nk->mn", m=8, n=6, k=4)"#;
    let answer = ask(json!({ "ask": "answer", "expression": product, "color": "row" }));
    assert_eq!(
        answer["value"]["contraction"]["modes"][1]["names"], "n",
        "{answer}"
    );
    let tensors = answer["contraction"].as_array().unwrap();
    let drawn = tensors.iter().map(|it| {
        let cells = &it["cells"];
        json!([it["name"], it["layout"], cells["rows"], cells["columns"]])
    });
    assert_eq!(
        drawn.collect::<Vec<_>>(),
        [
            json!(["A (M,K,L)", "(8,4,_1):(4,_1,_0)", 8, 4]),
            json!(["B (N,K,L)", "(6,4,_1):(4,_1,_0)", 6, 4]),
            json!(["C (M,N,L)", "(8,6,_1):(6,_1,_0)", 8, 6])
        ]
    );
    assert_eq!(tensors[0]["cells"]["groups"][4], 1);
    assert!(answer["cells"].is_null());

    // A tensor that is too large says so, and the others are drawn.
    let large = r#"contract("mk,nk->mn", m=800, n=600, k=4)"#;
    let answer = ask(json!({ "ask": "answer", "expression": large }));
    assert!(answer["contraction"][0]["cells"]["texts"].is_array());
    let message = &answer["contraction"][2]["cells"]["error"]["message"];
    assert!(
        message.as_str().unwrap().contains("too many to draw"),
        "{message}"
    );
}

#[test]
fn a_swizzle_is_found_for_an_access() {
    let answer = ask(json!({ "ask": "swizzle", "expression": "32:32", "bits": 32 }));
    assert_eq!(answer["swizzle"], "Sw<5,0,5>");
    assert_eq!(answer["expression"], "Sw<5,0,5> o _0 o 32:32");
    let answer = ask(json!({ "ask": "swizzle", "expression": "<4,2>", "bits": 32 }));
    assert!(answer["error"]["message"].is_string());
}
