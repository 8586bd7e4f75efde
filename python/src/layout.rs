//! Layouts of CuTe: the calculator's values as objects of Python.

mod notation;
mod quiet;

use cutlet_calculator::cells::ColorBy;
use cutlet_calculator::picture::{Holders, Picture, by_tile, colored, holders};
use cutlet_calculator::{Calculator, Options, Refusal, SIGNATURES, Value, analysis, meaning};
use cutlet_layout_core::picture::{Figure, Panel};
use pyo3::create_exception;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PySlice, PyTuple};

use crate::words;
use notation::{object, plain, text_of, texts_of};

create_exception!(
    cutlet,
    LayoutError,
    PyValueError,
    "An operation on layouts has no result, or a text is not in CuTe's notation. The message says why."
);

/// A layout of CuTe: a function from coordinates to indices, by a shape and a stride, or with a swizzle behind them.
///
/// `Layout((4, 6), (6, 1))` and `Layout("(4,6):(6,1)")` are the same. Without a stride, it is column-major. `layout(2, 3)`
/// is an index, `layout(2, None)` a slice, `layout[1]` a mode, and `a @ b` a composition. In a notebook, it is a picture.
///
/// Raises:
///     LayoutError: There is no such layout. The message says why.
#[pyclass(frozen, module = "cutlet", name = "Layout")]
pub struct Layout {
    value: Value,
    /// In CuTe's notation.
    text: String,
    /// The expression that it is the result of.
    expression: String,
}

/// Evaluates an expression. Integers are static, as those in CuTe's types are, so that every operation has its result.
fn evaluated(expression: &str) -> PyResult<Value> {
    let mut calculator = Calculator::new(expression, Options { is_static: true });
    quiet::quietly(|| calculator.evaluate()).map_err(|refusal| refused(&refusal, expression))
}

/// The exception of a refusal. The expression below the message is as it was written, so that the mark is below its
/// place.
fn refused(refusal: &Refusal, expression: &str) -> PyErr {
    let (message, marked) = (refusal.to_string(), refusal.marked(expression));
    let marked = marked.strip_prefix(&message).unwrap_or_default();
    LayoutError::new_err(words::of_python(&plain(&message)) + marked)
}

impl Layout {
    fn of(value: Value, expression: String) -> Layout {
        let text = plain(&value.to_string());
        Layout {
            value,
            text,
            expression,
        }
    }

    /// The result of an expression that is a layout. A shape stands for its column-major layout.
    fn evaluated(expression: String) -> PyResult<Layout> {
        let value = evaluated(&expression)?;
        let value = match value {
            Value::Layout(_) | Value::Composed(_) | Value::Sliced(_) => value,
            other => Value::Layout(other.layout().map_err(|it| refused(&it, &expression))?),
        };
        Ok(Layout::of(value, expression))
    }

    /// Applies a function of the calculator to the layout.
    fn apply<'py>(&self, py: Python<'py>, function: &str) -> PyResult<Bound<'py, PyAny>> {
        evaluate(py, &format!("{function}({})", self.text))
    }

    fn tell<T: ToString>(&self, told: impl FnOnce() -> Result<T, Refusal>) -> PyResult<String> {
        tell(&self.text, told)
    }
}

/// What a function tells. A refusal's columns are those of `expression`.
fn tell<T: ToString>(
    expression: &str,
    told: impl FnOnce() -> Result<T, Refusal>,
) -> PyResult<String> {
    let told = quiet::quietly(told).map_err(|refusal| refused(&refusal, expression))?;
    Ok(plain(&told.to_string()))
}

#[pymethods]
impl Layout {
    #[new]
    #[pyo3(signature = (shape, stride=None))]
    fn new(shape: &Bound<'_, PyAny>, stride: Option<&Bound<'_, PyAny>>) -> PyResult<Layout> {
        if let Ok(layout) = shape.cast::<Layout>() {
            let text = &layout.get().text;
            if let Some(stride) = stride {
                return Err(PyTypeError::new_err(format!(
                    "Layout: the shape is the layout {text}, which has a stride, and the stride {} was given; pass \
                     the layout's `shape`, or leave the stride out",
                    stride.str()?
                )));
            }
            return Layout::evaluated(text.clone());
        }
        let shape = text_of(shape)?;
        Layout::evaluated(match stride {
            Some(stride) => format!("{shape}:{}", text_of(stride)?),
            None => shape,
        })
    }

    /// Integers, and tuples of them.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, "shape")
    }

    /// Integers, and tuples of them, of the shape's profile.
    #[getter]
    fn stride<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, "stride")
    }

    /// The number of coordinates.
    fn size<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, "size")
    }

    /// One more than the largest index.
    fn cosize<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, "cosize")
    }

    /// How deep modes are nested.
    fn depth<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, "depth")
    }

    /// The number of modes.
    fn rank<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.apply(py, "rank")
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.apply(py, "rank")?.extract()
    }

    #[pyo3(signature = (*coordinate))]
    fn __call__<'py>(&self, coordinate: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
        let coordinate_text = texts_of(coordinate)?;
        evaluate(
            coordinate.py(),
            &format!("({})({coordinate_text})", self.text),
        )
    }

    fn __getitem__<'py>(&self, modes: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = modes.py();
        let rank = self.__len__(py)? as isize;
        if let Ok(slice) = modes.cast::<PySlice>() {
            let range = slice.indices(rank)?;
            if range.step != 1 || range.start >= range.stop {
                return Err(PyValueError::new_err(format!(
                    "{} has {rank} modes, and {slice} is no range of them; use select for others",
                    self.text
                )));
            }
            let (begin, end) = (range.start, range.stop);
            return evaluate(py, &format!("take({}, {begin}, {end})", self.text));
        }
        let asked: isize = modes.extract()?;
        let mode = if asked < 0 { asked + rank } else { asked };
        if !(0..rank).contains(&mode) {
            return Err(pyo3::exceptions::PyIndexError::new_err(format!(
                "{} has {rank} modes, and mode {asked} was asked for",
                self.text
            )));
        }
        evaluate(py, &format!("mode({}, {mode})", self.text))
    }

    fn __matmul__(&self, right: &Bound<'_, PyAny>) -> PyResult<Layout> {
        Layout::evaluated(format!("composition({}, {})", self.text, text_of(right)?))
    }

    fn __rmatmul__(&self, left: &Bound<'_, PyAny>) -> PyResult<Layout> {
        Layout::evaluated(format!("composition({}, {})", text_of(left)?, self.text))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        match other.cast::<Layout>() {
            Ok(other) => other.get().text == self.text,
            Err(_) => false,
        }
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.text.hash(&mut hasher);
        hasher.finish()
    }

    fn __str__(&self) -> &str {
        &self.text
    }

    fn __repr__(&self) -> String {
        format!("Layout(\"{}\")", self.text)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (String,)) {
        let class = py.get_type::<Layout>().into_any();
        (class, (self.text.clone(),))
    }

    fn _repr_svg_(&self) -> PyResult<String> {
        self.tell(|| Picture::Svg.draw(&self.value))
    }

    /// The table that CuTe's `print_layout` prints.
    fn table(&self) -> PyResult<String> {
        self.tell(|| Picture::Table.draw(&self.value))
    }

    /// A LaTeX document, as CuTe's `print_latex` prints it.
    fn latex(&self) -> PyResult<String> {
        self.tell(|| Picture::Latex.draw(&self.value))
    }

    /// An SVG document. Cells are coloured by "index", "row", "column" or "bank" of elements of so many bits, or by the
    /// tiles of a tiler.
    #[pyo3(signature = (*, color=None, bits=32, tiler=None))]
    fn svg(
        &self,
        color: Option<&str>,
        bits: i64,
        tiler: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        match (color, tiler) {
            (None, None) => self._repr_svg_(),
            (None, Some(tiler)) => {
                let tiler = text_of(tiler)?;
                tell(&tiler, || by_tile(&self.value, &tiler))
            }
            (Some(color), None) => self.tell(|| colored(&self.value, ColorBy::named(color, bits)?)),
            (Some(_), Some(_)) => Err(PyTypeError::new_err(
                "svg: color and tiler were both given; cells have one colour, so give one of them",
            )),
        }
    }

    /// An SVG document of what each thread holds of a tile, of a layout of threads and values. Cells are coloured by
    /// thread or by value.
    #[pyo3(signature = (tile=None, *, by_value=false))]
    fn thread_values(&self, tile: Option<&Bound<'_, PyAny>>, by_value: bool) -> PyResult<String> {
        let tile = tile.map(text_of).transpose()?.unwrap_or_default();
        tell(&tile, || {
            let all = holders(&self.value, &tile)?;
            let panels: Vec<_> = all.iter().map(|it: &Holders| it.panel(by_value)).collect();
            let panels: Vec<&dyn Panel> = panels.iter().map(|it| it as &dyn Panel).collect();
            Ok(Figure::new(&panels).to_string())
        })
    }

    /// The conflicts of a warp's accesses to shared memory, of elements of so many bits. The first mode is the thread.
    fn bank_conflicts(&self, bits: i64) -> PyResult<String> {
        self.tell(|| analysis::banks(&self.value, bits))
    }

    /// The sectors of global memory that a warp's accesses touch, of elements of so many bits. The first mode is the
    /// thread.
    fn coalescing(&self, bits: i64) -> PyResult<String> {
        self.tell(|| analysis::sectors(&self.value, bits))
    }

    /// Whether each index is reached once.
    fn bijective(&self) -> PyResult<String> {
        self.tell(|| analysis::bijection(&self.value))
    }

    /// The steps of the operation whose result the layout is.
    fn explain(&self) -> PyResult<String> {
        let explained = explain(&self.expression)?;
        match explained.is_empty() {
            false => Ok(explained),
            // It was written, and is no operation's result.
            true => {
                let size = self.tell(|| self.value.size())?;
                let function = self.bijective()?;
                Ok(format!(
                    "{}\n  {size} coordinates\n  {function}\n",
                    self.text
                ))
            }
        }
    }
}

/// The value of an expression: a layout, integers and tuples of them, true or false, or a text.
#[pyfunction]
pub fn evaluate<'py>(py: Python<'py>, expression: &str) -> PyResult<Bound<'py, PyAny>> {
    let value = evaluated(expression)?;
    object(py, &value, expression)
}

/// The value of a function of the calculator.
#[pyfunction]
#[pyo3(signature = (function, *arguments))]
pub fn call<'py>(function: &str, arguments: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyAny>> {
    let expression = format!("{function}({})", texts_of(arguments)?);
    evaluate(arguments.py(), &expression)
}

/// The steps of the operations in an expression.
#[pyfunction]
pub fn explain(expression: &str) -> PyResult<String> {
    let options = Options { is_static: true };
    let mut calculator = Calculator::new(expression, options).explaining();
    quiet::quietly(|| calculator.evaluate()).map_err(|refusal| refused(&refusal, expression))?;
    let steps: Vec<String> = (calculator.explanations().iter())
        .map(|it| plain(&it.to_string()))
        .collect();
    Ok(steps.join("\n"))
}

/// The functions of the calculator, each with its signature and its meaning.
#[pyfunction]
pub fn signatures() -> Vec<(&'static str, &'static str)> {
    let all = SIGNATURES.iter().flat_map(|(_, of_topic)| of_topic.iter());
    all.map(|signature| {
        let name = signature.split('(').next().unwrap_or_default();
        (*signature, meaning(name))
    })
    .collect()
}
