//! Requests of the page, and their answers.

use cutlet_calculator::analysis::{banks, find_swizzle, swizzled};
use cutlet_calculator::cells::{ColorBy, layout_cells, thread_value_cells, tiled_cells};
use cutlet_calculator::json::{Question, answer, refusal_json};
use cutlet_calculator::picture::Picture;
use cutlet_calculator::{
    Calculator, Options, Refusal, SIGNATURES, Value, caught, code, gallery, meaning,
};
use serde_json::{Value as Json, json};

/// The answer to a request. Its field `ask` says what is asked: `answer`, `latex`,
/// `table`, `swizzle`, `gallery` or `functions`.
pub fn respond(request: &str) -> String {
    let request: Json = match serde_json::from_str(request) {
        Ok(request) => request,
        Err(error) => return json!({ "error": { "message": error.to_string() } }).to_string(),
    };
    let expression = request["expression"].as_str().unwrap_or_default();
    let response = match request["ask"].as_str() {
        Some("answer") => full_answer(expression, &request),
        Some("latex") => drawn("latex", Picture::Latex, expression, &request),
        Some("table") => drawn("table", Picture::Table, expression, &request),
        Some("swizzle") => swizzle(expression, &request),
        Some("gallery") => examples(),
        Some("functions") => functions(),
        _ => {
            json!({ "error": { "message": "ask for answer, latex, table, swizzle, gallery or functions" } })
        }
    };
    response.to_string()
}

fn options(request: &Json) -> Options {
    Options {
        is_static: request["static"].as_bool().unwrap_or_default(),
    }
}

/// The value with its explanations, analyses, pictures and code.
fn full_answer(expression: &str, request: &Json) -> Json {
    let question = Question {
        options: options(request),
        explain: true,
        banks: request["bits"].as_i64(),
        sectors: request["bits"].as_i64(),
        bijective: true,
    };
    let mut response = answer(expression, &question);
    let mut calculator = Calculator::new(expression, question.options).explaining();
    match calculator.evaluate() {
        Ok(Value::Tiled(tiled)) => {
            let tile = request["tile"].as_str().unwrap_or_default();
            response["tiled"] = or_error(caught(|| tiled_cells(&tiled, tile)));
        }
        // The picture of a TMA box is that of its elements in shared memory.
        Ok(Value::TmaBox(boxes)) => {
            add_pictures(&mut response, boxes.shared(), &calculator, request)
        }
        Ok(contraction @ Value::Contraction(_)) => {
            response["color"] = color(&calculator, request).into();
            response["contraction"] = tensors(&contraction, &calculator, request);
        }
        Ok(value) => add_pictures(&mut response, &value, &calculator, request),
        Err(_) => {}
    }
    response
}

/// Adds the cells of a layout, of its threads and values, and its code.
fn add_pictures(response: &mut Json, value: &Value, calculator: &Calculator<'_>, request: &Json) {
    if let (Value::Symbolic(_), Err(refusal)) = (value, value.layout()) {
        response["cells"] = or_error(Err(refusal));
    }
    if value.shape().is_err() || matches!(value, Value::Tuple(_)) {
        return;
    }
    response["color"] = color(calculator, request).into();
    response["cells"] = cells(value, calculator, request);
    if let Value::Composed(layout) = value
        && layout.swizzled().is_some()
    {
        // The same layout without its swizzle, to be seen beside it.
        response["unswizzled"] = cells(&Value::Layout(*layout.outer()), calculator, request);
    }
    if let Some(tile) = request["tile"].as_str() {
        response["thread_values"] = or_error(caught(|| thread_value_cells(value, tile)));
    }
    if calculator.symbols().is_empty() {
        response["code"] = json!({
            "rust": or_error(code::rust(value).map(Json::from)),
            "rust_type": or_error(code::rust_type(value).map(Json::from)),
            "cpp": or_error(code::cpp(value).map(Json::from)),
        });
    }
}

/// What the colours of a picture tell.
fn color<'a>(calculator: &Calculator<'_>, request: &'a Json) -> &'a str {
    match request["color"].as_str() {
        // Each column of a zipped layout is a tile.
        None | Some("auto") if calculator.has_zipped() => "column",
        None | Some("auto") => "index",
        Some(name) => name,
    }
}

/// The cells of a layout.
fn cells(value: &Value, calculator: &Calculator<'_>, request: &Json) -> Json {
    let bits = request["bits"].as_i64().unwrap_or(32);
    let color = ColorBy::named(color(calculator, request), bits);
    let cells = color.and_then(|color| caught(|| layout_cells(value, color, calculator.symbols())));
    or_error(cells)
}

/// The tensors of a contraction, each with its layout and its cells.
fn tensors(contraction: &Value, calculator: &Calculator<'_>, request: &Json) -> Json {
    let names = ["A (M,K,L)", "B (N,K,L)", "C (M,N,L)"].into_iter();
    let layouts = contraction.parts().unwrap_or_default();
    let tensors = names.zip(&layouts).map(|(name, layout)| {
        json!({
            "name": name,
            "layout": calculator.shown(layout),
            "cells": cells(layout, calculator, request),
        })
    });
    tensors.collect::<Vec<_>>().into()
}

fn or_error(result: Result<Json, Refusal>) -> Json {
    result.unwrap_or_else(|refusal| json!({ "error": refusal_json(&refusal) }))
}

/// The swizzle that an access to shared memory wants, and what it costs then.
fn swizzle(expression: &str, request: &Json) -> Json {
    let bits = request["bits"].as_i64().unwrap_or(32);
    let found = caught(|| {
        let value = Calculator::new(expression, options(request)).evaluate()?;
        let swizzle = find_swizzle(std::slice::from_ref(&value), bits)?;
        let swizzled = swizzled(swizzle, &value)?;
        let cost = banks(&swizzled, bits)?;
        Ok(json!({
            "swizzle": swizzle.to_string(),
            "expression": swizzled.to_string(),
            "text": cost.to_string(),
        }))
    });
    or_error(found)
}

/// The text of a picture, under a name.
fn drawn(name: &str, picture: Picture, expression: &str, request: &Json) -> Json {
    let value = Calculator::new(expression, options(request)).evaluate();
    match value.and_then(|value| caught(|| picture.draw(&value))) {
        Ok(text) => json!({ name: text }),
        Err(refusal) => json!({ "error": refusal_json(&refusal) }),
    }
}

fn examples() -> Json {
    let examples = gallery::examples().into_iter().map(|example| {
        json!({
            "topic": example.topic,
            "title": example.title,
            "expression": example.expression,
            "tile": example.tile,
        })
    });
    json!({ "examples": examples.collect::<Vec<_>>() })
}

fn functions() -> Json {
    let all = SIGNATURES.iter().flat_map(|(topic, signatures)| {
        signatures.iter().map(move |signature| {
            let name = signature.split('(').next().unwrap_or_default();
            json!({ "topic": topic, "signature": signature, "meaning": meaning(name) })
        })
    });
    json!({ "functions": all.collect::<Vec<_>>() })
}
