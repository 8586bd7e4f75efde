//! A layout as it is written in Rust and in C++.

use cutlet_layout_core::{Int, IntTuple, Layout};

use crate::composed::Inner;
use crate::refusal::Refusal;
use crate::value::Value;

/// The value as an expression of Rust, with `cutlet_layout_core`'s macros.
///
/// ```
/// use cutlet_calculator::{code, evaluate};
///
/// let layout = evaluate("(_4,(2,_3)):(_8,(_1,_2@1))").unwrap();
/// assert_eq!(code::rust(&layout).unwrap(), "layout!((4, (dyn 2, 3)):(8, (1, 2@1)))");
/// ```
///
/// # Errors
/// If the value is no layout, or its inner transform has no notation.
pub fn rust(value: &Value) -> Result<String, Refusal> {
    match value {
        Value::Composed(composed) => {
            let inner = match composed.inner() {
                Inner::Swizzle(swizzle) => format!(
                    "Swizzle::new({}, {}, {})",
                    swizzle.bits(),
                    swizzle.base(),
                    swizzle.shift()
                ),
                Inner::Layout(layout) => rust_layout(layout),
                _ => return Err(unwritten(composed.inner())),
            };
            Ok(format!(
                "ComposedLayout::new({inner}, shape!({}), {})",
                rust_tuple(composed.offset()),
                rust_layout(composed.outer())
            ))
        }
        other => Ok(rust_layout(&other.layout()?)),
    }
}

fn rust_layout(layout: &Layout) -> String {
    format!(
        "layout!({}:{})",
        rust_tuple(&layout.shape()),
        rust_tuple(&layout.stride())
    )
}

fn rust_tuple(tuple: &IntTuple) -> String {
    joined(tuple, &|int| {
        let text = int.to_string();
        match text.strip_prefix('_') {
            Some(text) => text.to_owned(),
            None if int.value() < 0 && int.basis().is_none() => format!("dyn ({text})"),
            None => format!("dyn {text}"),
        }
    })
}

/// The value as a type for kernels: `L!((4,2):(1,4))`.
///
/// # Errors
/// If the value is no layout of static integers.
pub fn rust_type(value: &Value) -> Result<String, Refusal> {
    let layout = value.layout()?;
    if !layout.is_static() {
        return Err(Refusal::new(
            "a type has static integers only: write `_4` for `4`, or read all as static",
        ));
    }
    let text = layout.to_string().replace('_', "").replace(',', ", ");
    Ok(format!("L!({text})"))
}

/// The value as an expression of C++ with CuTe.
///
/// ```
/// use cutlet_calculator::{code, evaluate};
///
/// let layout = evaluate("(_4,_2):(_1,_4)").unwrap();
/// assert_eq!(code::cpp(&layout).unwrap(), "Layout<Shape<Int<4>, Int<2>>, Stride<Int<1>, Int<4>>>{}");
/// let layout = evaluate("(_4,2):(_1,100)").unwrap();
/// assert_eq!(
///     code::cpp(&layout).unwrap(),
///     "make_layout(make_shape(Int<4>{}, 2), make_stride(Int<1>{}, 100))"
/// );
/// ```
///
/// # Errors
/// If the value is no layout, or its inner transform has no notation.
pub fn cpp(value: &Value) -> Result<String, Refusal> {
    match value {
        Value::Composed(composed) => {
            let inner = match composed.inner() {
                Inner::Swizzle(swizzle) => format!(
                    "Swizzle<{}, {}, {}>{{}}",
                    swizzle.bits(),
                    swizzle.base(),
                    swizzle.shift()
                ),
                Inner::Layout(layout) => cpp_layout(layout),
                _ => return Err(unwritten(composed.inner())),
            };
            Ok(format!(
                "make_composed_layout({inner}, {}, {})",
                cpp_value(composed.offset(), "make_coord"),
                cpp_layout(composed.outer())
            ))
        }
        other => Ok(cpp_layout(&other.layout()?)),
    }
}

fn cpp_layout(layout: &Layout) -> String {
    let (shape, stride) = (layout.shape(), layout.stride());
    if layout.is_static() {
        return format!(
            "Layout<{}, {}>{{}}",
            cpp_type(&shape, "Shape"),
            cpp_type(&stride, "Stride")
        );
    }
    format!(
        "make_layout({}, {})",
        cpp_value(&shape, "make_shape"),
        cpp_value(&stride, "make_stride")
    )
}

/// A static tuple as a type.
fn cpp_type(tuple: &IntTuple, name: &str) -> String {
    if !tuple.is_tuple() {
        return tuple.as_int().map_or("Underscore".into(), cpp_int);
    }
    let modes: Vec<String> = (0..tuple.rank())
        .map(|i| cpp_type(&tuple.mode(i), name))
        .collect();
    format!("{name}<{}>", modes.join(", "))
}

fn cpp_int(int: Int) -> String {
    let value = format!("Int<{}>", int.value());
    if int.basis().is_none() {
        return value;
    }
    let levels = (0..int.basis().depth()).map(|level| int.basis().at(level).to_string());
    format!(
        "ScaledBasis<{value}, {}>",
        levels.collect::<Vec<_>>().join(", ")
    )
}

/// A tuple as a value.
fn cpp_value(tuple: &IntTuple, make: &str) -> String {
    if !tuple.is_tuple() {
        return match tuple.as_int() {
            Some(int) if int.is_static() || !int.basis().is_none() => {
                format!("{}{{}}", cpp_int(int))
            }
            Some(int) => int.to_string(),
            None => "_".into(),
        };
    }
    let modes: Vec<String> = (0..tuple.rank())
        .map(|i| cpp_value(&tuple.mode(i), make))
        .collect();
    format!("{make}({})", modes.join(", "))
}

fn joined(tuple: &IntTuple, leaf: &dyn Fn(Int) -> String) -> String {
    if !tuple.is_tuple() {
        return tuple.as_int().map_or("_".into(), leaf);
    }
    let modes: Vec<String> = (0..tuple.rank())
        .map(|i| joined(&tuple.mode(i), leaf))
        .collect();
    format!("({})", modes.join(", "))
}

fn unwritten(inner: &Inner) -> Refusal {
    Refusal::new(format!(
        "the inner transform is {}, which has no notation in code: write the layout by hand",
        Value::Inner(inner.clone()).kind()
    ))
}
