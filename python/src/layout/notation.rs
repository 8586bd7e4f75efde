//! CuTe's notation of objects of Python, and objects of what it says.

use cutlet_calculator::Value;
use cutlet_layout_core::IntTuple;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString, PyTuple};

use super::Layout;

/// An argument in CuTe's notation: an integer, a tuple of them, `None` for `_`, a layout, or a text as it is. A tuple
/// with layouts in it is a tiler, or else a coordinate.
///
/// # Errors
/// If it is something else.
pub fn text_of(object: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(text_within(object, MOST_LEVELS)?.0)
}

/// The most tuples within each other. No layout has as many, and a list may hold itself.
const MOST_LEVELS: usize = 32;

/// The text of an argument with at most so many levels of tuples, and whether a layout is in it.
fn text_within(object: &Bound<'_, PyAny>, levels: usize) -> PyResult<(String, bool)> {
    if let Ok(layout) = object.cast::<Layout>() {
        return Ok((layout.get().text.clone(), true));
    }
    if object.is_none() {
        return Ok(("_".to_string(), false));
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok((text.to_cow()?.into_owned(), false));
    }
    if object.is_instance_of::<PyTuple>() || object.is_instance_of::<PyList>() {
        if levels == 0 {
            return Err(PyTypeError::new_err(format!(
                "a tuple has more than {MOST_LEVELS} levels, and no layout does; give fewer"
            )));
        }
        let (mut texts, mut has_layout) = (Vec::new(), false);
        for part in object.try_iter()? {
            let (text, is_of_layout) = text_within(&part?, levels - 1)?;
            texts.push(text);
            has_layout |= is_of_layout;
        }
        let texts = texts.join(",");
        return Ok(match has_layout {
            true => (format!("<{texts}>"), true),
            false => (format!("({texts})"), false),
        });
    }
    // Integers of NumPy are no `int`, but say which one they are.
    let index = intern!(object.py(), "__index__");
    if !object.is_instance_of::<PyBool>() && object.hasattr(index)? {
        let number: i64 = object.call_method0(index)?.extract()?;
        return Ok((number.to_string(), false));
    }
    Err(PyTypeError::new_err(format!(
        "{} is a {}; give an integer, a tuple of integers, None for a mode that stays, a Layout, or a text in CuTe's \
         notation",
        object.repr()?,
        object.get_type()
    )))
}

/// Arguments of a function, separated by commas.
///
/// # Errors
/// As [`text_of`].
pub fn texts_of(arguments: &Bound<'_, PyTuple>) -> PyResult<String> {
    let texts = arguments.iter().map(|argument| text_of(&argument));
    Ok(texts.collect::<PyResult<Vec<String>>>()?.join(", "))
}

/// A text without the marks of static integers: `_4` is `4`.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut before = ' ';
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let marks_a_number = letter == '_'
            && !before.is_alphanumeric()
            && letters
                .peek()
                .is_some_and(|it| it.is_ascii_digit() || *it == '-');
        if !marks_a_number {
            plain.push(letter);
        }
        before = letter;
    }
    plain
}

/// The object of a value: layouts, integers, tuples of them, true and false. Other values are their texts.
///
/// # Errors
/// If there is no memory.
pub fn object<'py>(
    py: Python<'py>,
    value: &Value,
    expression: &str,
) -> PyResult<Bound<'py, PyAny>> {
    match value {
        Value::Tuple(tuple) => integers(py, tuple),
        Value::Layout(_) | Value::Composed(_) => {
            let layout = Layout::of(value.clone(), expression.to_string());
            Ok(Bound::new(py, layout)?.into_any())
        }
        Value::Sliced(sliced) => {
            let layout = Layout::of(Value::Layout(sliced.layout), expression.to_string());
            let offset = integers(py, &sliced.offset)?;
            Ok((Bound::new(py, layout)?, offset)
                .into_pyobject(py)?
                .into_any())
        }
        Value::Several(values) => {
            let objects: Vec<Bound<'py, PyAny>> = (values.iter())
                .map(|it| object(py, it, expression))
                .collect::<PyResult<_>>()?;
            Ok(PyTuple::new(py, objects)?.into_any())
        }
        Value::Truth(truth) => Ok(PyBool::new(py, *truth).to_owned().into_any()),
        Value::List(list) => {
            let objects: Vec<Bound<'py, PyAny>> = (list.iter())
                .map(|it| integers(py, it))
                .collect::<PyResult<_>>()?;
            Ok(PyList::new(py, objects)?.into_any())
        }
        other => Ok(PyString::new(py, &plain(&other.to_string())).into_any()),
    }
}

/// Integers, and tuples of them. `_` is `None`, and a stride in a basis direction is its text.
fn integers<'py>(py: Python<'py>, tuple: &IntTuple) -> PyResult<Bound<'py, PyAny>> {
    if tuple.is_tuple() {
        let modes: Vec<Bound<'py, PyAny>> = (0..tuple.rank())
            .map(|nth| integers(py, &tuple.mode(nth)))
            .collect::<PyResult<_>>()?;
        return Ok(PyTuple::new(py, modes)?.into_any());
    }
    if tuple.is_underscore(0) {
        return Ok(py.None().into_bound(py));
    }
    match tuple.as_int() {
        Some(int) if int.basis().is_none() => Ok(int.value().into_pyobject(py)?.into_any()),
        _ => Ok(PyString::new(py, &plain(&tuple.to_string())).into_any()),
    }
}
