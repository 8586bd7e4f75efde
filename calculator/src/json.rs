//! Answers as JSON, for scripts and for the playground.

use cutlet_layout_core::{Int, IntTuple, Layout, contraction};
use serde_json::{Map, Value as Json, json};

use crate::analysis::{Banks, Bijection, Sectors, banks, bijection, sectors};
use crate::calculator::{Calculator, Options};
use crate::cells::tma_json;
use crate::composed::Composed;
use crate::equality::Comparison;
use crate::functions::cosize_of_composed;
use crate::hint::static_hint;
use crate::refusal::{Refusal, caught};
use crate::symbols::Symbols;
use crate::value::Value;

/// What is asked about an expression.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// How the expression is read.
    pub options: Options,
    /// Whether operations are explained.
    pub explain: bool,
    /// The width of elements in bits, if conflicts of banks are counted.
    pub banks: Option<i64>,
    /// The width of elements in bits, if sectors are counted.
    pub sectors: Option<i64>,
    /// Whether the layout is tested for being a bijection.
    pub bijective: bool,
}

/// The answer to a question about an expression: an object with `value`, or with `error`.
///
/// ```
/// use cutlet_calculator::json::{Question, answer};
///
/// let answer = answer("(4,2):(1,4)", &Question::default());
/// assert_eq!(answer["value"]["shape"].to_string(), "[4,2]");
/// assert_eq!(answer["value"]["size"], 8);
/// ```
pub fn answer(expression: &str, question: &Question) -> Json {
    let mut calculator = Calculator::new(expression, question.options);
    if question.explain {
        calculator = calculator.explaining();
    }
    let result = calculator.evaluate();
    let symbols = calculator.symbols();
    let mut answer = Map::new();
    answer.insert("expression".into(), expression.into());
    match &result {
        Ok(value) => {
            answer.insert("value".into(), value_json(value, symbols));
            if !question.options.is_static
                && let Some(hint) = static_hint(expression, value)
            {
                answer.insert("hint".into(), hint.into());
            }
            analyse(value, question, &mut answer);
        }
        Err(refusal) => {
            answer.insert("error".into(), refusal_json(refusal));
        }
    }
    if question.explain {
        let explanations = calculator.explanations().iter();
        let lines = explanations.map(|explanation| {
            let lines = explanation.lines().iter();
            lines.map(|line| symbols.named(line)).collect::<Vec<_>>()
        });
        answer.insert("explanations".into(), lines.collect::<Vec<_>>().into());
    }
    Json::Object(answer)
}

fn analyse(value: &Value, question: &Question, answer: &mut Map<String, Json>) {
    let mut add = |name: &str, result: Result<Json, Refusal>| {
        let json = result.unwrap_or_else(|refusal| json!({ "error": refusal_json(&refusal) }));
        answer.insert(name.into(), json);
    };
    if let Some(bits) = question.banks {
        add(
            "banks",
            caught(|| banks(value, bits).map(|banks| banks_json(&banks))),
        );
    }
    if let Some(bits) = question.sectors {
        let found = caught(|| sectors(value, bits).map(|sectors| sectors_json(&sectors)));
        add("coalescing", found);
    }
    if question.bijective {
        let found = caught(|| bijection(value).map(|bijection| bijection_json(&bijection)));
        add("bijective", found);
    }
}

/// A refusal as an object with its message and column.
pub fn refusal_json(refusal: &Refusal) -> Json {
    json!({ "message": refusal.message, "column": refusal.column })
}

fn banks_json(banks: &Banks) -> Json {
    json!({
        "text": banks.to_string(),
        "worst": banks.worst(),
        "ways": banks.ways,
        "wavefronts": banks.wavefronts,
        "width": banks.width,
        "banks": banks.banks,
        "warps": banks.warps,
    })
}

fn sectors_json(sectors: &Sectors) -> Json {
    json!({
        "text": sectors.to_string(),
        "sectors": sectors.sectors,
        "fewest": sectors.fewest,
        "width": sectors.width,
        "warps": sectors.warps,
    })
}

fn bijection_json(bijection: &Bijection) -> Json {
    json!({
        "text": bijection.to_string(),
        "injective": !matches!(bijection, Bijection::Overlapping { .. }),
        "bijective": matches!(bijection, Bijection::Bijective { .. }),
    })
}

/// What two layouts have in common, as an object.
pub fn comparison_json(comparison: &Comparison) -> Json {
    let mut object = json!({
        "text": comparison.to_string(),
        "same_layout": *comparison == Comparison::SameLayout,
        "same_function": comparison.is_same_function(),
    });
    if let Comparison::Different { at, left, right } = comparison {
        object["at"] = (*at).into();
        object["values"] = json!([left, right]);
    }
    object
}

fn value_json(value: &Value, symbols: &Symbols) -> Json {
    let mut object = json!({
        "kind": value.kind(),
        "text": symbols.named(&value.to_string()),
    });
    match value {
        Value::Layout(layout) => add_layout(&mut object, layout, symbols),
        Value::Composed(layout) => add_composed(&mut object, layout, symbols),
        Value::Sliced(sliced) => {
            add_layout(&mut object, &sliced.layout, symbols);
            object["offset"] = tuple_json(&sliced.offset, symbols);
        }
        Value::Several(values) => {
            let values = values.iter().map(|value| value_json(value, symbols));
            object["values"] = values.collect::<Vec<_>>().into();
        }
        Value::Tuple(tuple) => object["tuple"] = tuple_json(tuple, symbols),
        Value::Truth(truth) => object["truth"] = (*truth).into(),
        Value::List(list) => {
            let list = list.iter().map(|tuple| tuple_json(tuple, symbols));
            object["list"] = list.collect::<Vec<_>>().into();
        }
        Value::Tiled(tiled) => {
            object["threads"] = tiled.threads().into();
            object["tile"] = tuple_json(&tiled.tile(), symbols);
        }
        Value::TmaBox(boxes) => object["tma"] = tma_json(boxes),
        Value::Contraction(layouts) => object["contraction"] = contraction_json(layouts, symbols),
        Value::Comparison(comparison) => object["comparison"] = comparison_json(comparison),
        _ => {}
    }
    object
}

/// The modes of a contraction by roles, and its layouts.
fn contraction_json(contraction: &contraction::Layouts, symbols: &Symbols) -> Json {
    let modes = contraction.modes().as_slice().iter().map(|mode| {
        let stride = |stride: &Int| tuple_json(&IntTuple::int(*stride), symbols);
        json!({
            "names": mode.names.as_str(),
            "role": mode.role.to_string(),
            "extent": mode.extent.value(),
            "strides": mode.strides.iter().map(stride).collect::<Vec<_>>(),
        })
    });
    let layout = |layout: &Layout| value_json(&Value::Layout(*layout), symbols);
    json!({
        "modes": modes.collect::<Vec<_>>(),
        "a": layout(contraction.a()),
        "b": layout(contraction.b()),
        "c": layout(contraction.c()),
    })
}

fn add_layout(object: &mut Json, layout: &Layout, symbols: &Symbols) {
    object["shape"] = tuple_json(&layout.shape(), symbols);
    object["stride"] = tuple_json(&layout.stride(), symbols);
    object["size"] = layout.size().into();
    object["rank"] = layout.rank().into();
    object["depth"] = layout.depth().into();
    object["static"] = layout.is_static().into();
    if !layout.has_basis() {
        object["cosize"] = layout.cosize().into();
    }
}

fn add_composed(object: &mut Json, layout: &Composed, symbols: &Symbols) {
    object["inner"] = layout.inner().to_string().into();
    object["offset"] = tuple_json(layout.offset(), symbols);
    add_layout(object, layout.outer(), symbols);
    if let Some(object) = object.as_object_mut() {
        object.remove("cosize");
    }
    if let Ok(cosize) = caught(|| cosize_of_composed(layout)) {
        object["cosize"] = cosize.into();
    }
}

/// An int tuple as nested arrays of numbers. Strides in directions and symbols are strings, and `_` is null.
fn tuple_json(tuple: &IntTuple, symbols: &Symbols) -> Json {
    if tuple.is_tuple() {
        let modes = (0..tuple.rank()).map(|i| tuple_json(&tuple.mode(i), symbols));
        return Json::Array(modes.collect());
    }
    match tuple.as_int() {
        Some(int) if int.basis().is_none() => int.value().into(),
        Some(int) => symbols.named(&int.to_string()).into(),
        None => Json::Null,
    }
}
