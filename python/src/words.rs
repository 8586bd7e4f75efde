//! Words of the library and of its command for which Python has others.

/// Phrases, and what Python has for them.
const PHRASES: &[(&str, &str)] = &[
    ("run on `Device::cpu()`", "pass arrays of the CPU"),
    ("on `Device::cpu()`", "with arrays of the CPU"),
    ("`Device::cpu()`", "the CPU"),
    ("`cutlet doctor`", "`cutlet.doctor()`"),
    ("with `cutlet tune`", "with the command `cutlet tune`"),
    (
        "use `Stream::fork` for a second stream of a capture",
        "in a capture, pass arrays of one framework",
    ),
    ("--functions lists", "`cutlet.layouts.signatures()` lists"),
    ("--bijective looks", "`bijective` looks"),
    (
        "give its shape with --tv",
        "`thread_values` draws them, and takes its shape",
    ),
];

/// Element types, and NumPy's names of them.
const TYPES: &[(&str, &str)] = &[
    ("f16", "float16"),
    ("bf16", "bfloat16"),
    ("f32", "float32"),
    ("f64", "float64"),
    ("i8", "int8"),
    ("i32", "int32"),
    ("i64", "int64"),
];

/// A message of the library in Python's words.
pub fn of_python(message: &str) -> String {
    let mut text = message.to_string();
    for (phrase, other) in PHRASES {
        if text.contains(phrase) {
            text = text.replace(phrase, other);
        }
    }
    let is_of_name = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut result = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(is_of_name) {
        let (before, from) = rest.split_at(start);
        let end = from.find(|it| !is_of_name(it)).unwrap_or(from.len());
        let (word, after) = from.split_at(end);
        let named = TYPES.iter().find(|(name, _)| *name == word);
        result += before;
        result += named.map_or(word, |(_, other)| other);
        rest = after;
    }
    result + rest
}
