//! Requests of the page and their answers, on the host.

use cutlet_playground::respond;
use serde_json::{Value, json};

fn ask(request: Value) -> Value {
    serde_json::from_str(&respond(&request.to_string())).unwrap()
}

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

/// The guide's links open expressions that have a value.
#[test]
fn links_of_the_guide_have_values() {
    let guide = include_str!("../../docs/layouts.md");
    let links: Vec<&str> = guide
        .split("index.html#")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
        .collect();
    assert!(links.len() > 12);
    for link in links {
        let mut request = json!({ "ask": "answer" });
        for (key, value) in link.split('&').filter_map(|field| field.split_once('=')) {
            let key = if key == "e" { "expression" } else { key };
            request[key] = decoded(value).into();
        }
        let answer = ask(request);
        for part in [&answer, &answer["cells"], &answer["thread_values"]] {
            assert!(part["error"].is_null(), "{link}: {part}");
        }
    }
}

/// The text of a part of a link, in which `%28` is a parenthesis.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| {
        let byte = u8::from_str_radix(&part[..2], 16).unwrap();
        text + &char::from(byte).to_string() + &part[2..]
    })
}
