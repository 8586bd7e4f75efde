//! Rows of tables by their numbers: `gather`, `scatter`, `scatter_add` and `embedding_bag`, and the `check` of calls
//! that do not wait.

mod indices;
mod kept;

use cutlet::{
    AddElement, Bags, DeviceData, EmbeddingBag, Gather, Matrix, MatrixMut, PooledElement, Pooling,
    Scatter, ScatterAdd,
};
use pyo3::prelude::*;

use crate::array::{Array, Shaped, expect_shape, tuple};
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::options::{self, Policy};
use crate::stream::Context;
use indices::{Indices, for_indices};
pub use kept::Kept;

/// Calls a function with a type of as many bytes as the elements have: rows are moved, whatever they are.
macro_rules! for_size {
    ($array:expr, $function:ident($($argument:expr),*)) => {
        match $array.data_type.size() {
            1 => $function::<u8>($($argument),*),
            2 => $function::<u16>($($argument),*),
            4 => $function::<u32>($($argument),*),
            _ => $function::<u64>($($argument),*),
        }
    };
}

/// Calls a function with the type of numbers that are added.
macro_rules! for_sums {
    ($operation:expr, $array:expr, $function:ident($($argument:expr),*)) => {
        match $array.data_type {
            DataType::F32 => $function::<f32>($($argument),*),
            DataType::F16 => $function::<cutlet::f16>($($argument),*),
            DataType::Bf16 => $function::<cutlet::bf16>($($argument),*),
            other => wrong_type(format!(
                "{}: {} is {}; give float32, float16 or bfloat16",
                $operation,
                $array.name,
                other.name()
            )),
        }
    };
}
pub(crate) use for_sums;

/// A matrix whose rows are moved, a matrix whose rows they become, and which ones.
struct Moved<'a> {
    from: &'a Array,
    of_from: Shaped,
    to: &'a Array,
    of_to: Shaped,
    indices: Indices<'a>,
    policy: Policy,
}

impl Moved<'_> {
    fn matrices<T: DeviceData>(
        &self,
        context: &'static Context,
    ) -> cutlet::Result<(Matrix<'_, T>, MatrixMut<'_, T>)> {
        let from = self.of_from.of(self.from, context)?;
        Ok((from, self.of_to.of_mut(self.to, context)?))
    }
}

/// The rows of a table that indices name: `table[indices]`.
///
/// Arguments:
///     table: (rows, width), of any type.
///     indices: int32 or int64, contiguous, of any shape.
///     out: (*indices.shape, width).
///     out_of_range: What becomes of an index that is no row. "deferred" does not wait, writes zeros, and `check` raises
///         the error. "checked" waits and raises `IndexError`. "clamp" takes the first or the last row. "skip" leaves
///         the output's row as it is.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     IndexError: With "checked", an index is no row of the table. Its row of `out` is zero.
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps an operand. Nothing is written.
#[pyfunction]
#[pyo3(signature = (table, indices, *, out=None, out_of_range="deferred", stream=None))]
pub fn gather<'py>(
    py: Python<'py>,
    table: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    out: Option<&Bound<'py, PyAny>>,
    out_of_range: &str,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "gather";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("table", table)?;
    from.expect_rank(NAME, 2)?;
    let named = call.read("indices", indices)?;
    let shape = [named.shape(), &from.shape()[1..]].concat();
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(table, &shape, None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, from.data_type)?;
    expect_shape(NAME, &to, &shape)?;
    let moved = Moved {
        from: &from,
        of_from: from.matrix(NAME)?,
        to: &to,
        of_to: to.rows(NAME)?,
        indices: Indices::of(NAME, &named)?,
        policy: options::out_of_range(NAME, out_of_range)?,
    };
    for_size!(from, enqueue_move(&call, &moved, Direction::FromTable))?;
    Ok(out)
}

/// Writes rows to the rows of a table that indices name: `table[indices] = source`.
///
/// Arguments:
///     source: (*indices.shape, width), of any type.
///     indices: int32 or int64, contiguous. If two are the same, one of their rows is written.
///     table: (rows, width).
///     out_of_range: As in `gather`. Rows of indices that are no rows are left out.
///     stream: As in `gemm`.
///
/// Returns:
///     `table`.
///
/// Raises:
///     IndexError: With "checked", an index is no row of the table. The other rows are written.
///     TypeError, ValueError: Types or shapes do not fit, or `table` overlaps an operand. Nothing is written.
#[pyfunction]
#[pyo3(signature = (source, indices, table, *, out_of_range="deferred", stream=None))]
pub fn scatter<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
    out_of_range: &str,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "scatter";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("source", source)?;
    let named = call.read("indices", indices)?;
    let to = call.write("table", table)?;
    to.expect_rank(NAME, 2)?;
    to.expect_type(NAME, from.data_type)?;
    expect_shape(NAME, &from, &[named.shape(), &to.shape()[1..]].concat())?;
    let moved = Moved {
        from: &from,
        of_from: from.rows(NAME)?,
        to: &to,
        of_to: to.matrix(NAME)?,
        indices: Indices::of(NAME, &named)?,
        policy: options::out_of_range(NAME, out_of_range)?,
    };
    for_size!(from, enqueue_move(&call, &moved, Direction::ToTable))?;
    Ok(table.clone())
}

/// Where the table of a movement is.
#[derive(Clone, Copy)]
enum Direction {
    /// A gather.
    FromTable,
    /// A scatter.
    ToTable,
}

fn enqueue_move<T: DeviceData>(
    call: &Call<'_>,
    moved: &Moved<'_>,
    direction: Direction,
) -> Result<()> {
    let context = call.context();
    let stream = &context.stream;
    let policy = moved.policy;
    if policy == Policy::Checked {
        return call.run(true, || {
            let (from, to) = moved.matrices::<T>(context)?;
            for_indices!(moved.indices, context, |indices| match direction {
                Direction::FromTable => cutlet::gather_checked(stream, from, indices, to),
                Direction::ToTable => cutlet::scatter_checked(stream, from, indices, to),
            })
        });
    }
    let (device, out_of_range) = (stream.device(), policy.out_of_range());
    call.run_kept(false, |kept| {
        let (from, to) = moved.matrices::<T>(context)?;
        for_indices!(moved.indices, context, |indices| match direction {
            Direction::FromTable => kept.gather.with(
                stream,
                policy,
                || Ok(Gather::new(device)?.out_of_range(out_of_range)),
                |gather| gather.enqueue(stream, from, indices, to),
            ),
            Direction::ToTable => kept.scatter.with(
                stream,
                policy,
                || Ok(Scatter::new(device)?.out_of_range(out_of_range)),
                |scatter| scatter.enqueue(stream, from, indices, to),
            ),
        })
    })
}

/// Adds rows to the rows of a table that indices name: `table.index_add_(0, indices, source)` in PyTorch.
///
/// Arguments:
///     source: (*indices.shape, width), float32, float16 or bfloat16.
///     indices: int32 or int64, contiguous.
///     table: (rows, width).
///     ordered: Whether rows of the same index are added in their order, so that every run has the same bits.
///     out_of_range: As in `gather`. Rows of indices that are no rows are left out.
///     stream: As in `gemm`.
///
/// Returns:
///     `table`.
///
/// Raises:
///     IndexError: With "checked", an index is no row of the table. The other rows are added.
///     TypeError, ValueError: Types or shapes do not fit, or `table` overlaps an operand. Nothing is written.
#[pyfunction]
#[pyo3(signature = (source, indices, table, *, ordered=false, out_of_range="deferred", stream=None))]
pub fn scatter_add<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    table: &Bound<'py, PyAny>,
    ordered: bool,
    out_of_range: &str,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "scatter_add";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("source", source)?;
    let named = call.read("indices", indices)?;
    let to = call.write("table", table)?;
    to.expect_rank(NAME, 2)?;
    to.expect_type(NAME, from.data_type)?;
    expect_shape(NAME, &from, &[named.shape(), &to.shape()[1..]].concat())?;
    let moved = Moved {
        from: &from,
        of_from: from.rows(NAME)?,
        to: &to,
        of_to: to.matrix(NAME)?,
        indices: Indices::of(NAME, &named)?,
        policy: options::out_of_range(NAME, out_of_range)?,
    };
    for_sums!(NAME, from, enqueue_scatter_add(&call, &moved, ordered))?;
    Ok(table.clone())
}

fn enqueue_scatter_add<T: AddElement>(
    call: &Call<'_>,
    moved: &Moved<'_>,
    ordered: bool,
) -> Result<()> {
    let context = call.context();
    let stream = &context.stream;
    let policy = moved.policy;
    if policy == Policy::Checked && !ordered {
        return call.run(true, || {
            let (source, table) = moved.matrices::<T>(context)?;
            for_indices!(moved.indices, context, |indices| {
                cutlet::scatter_add_checked(stream, source, indices, table)
            })
        });
    }
    let make = || {
        let add = ScatterAdd::new(stream.device())?.out_of_range(policy.out_of_range());
        Ok(if ordered { add.in_order() } else { add })
    };
    call.run_kept(policy == Policy::Checked, |kept| {
        let (source, table) = moved.matrices::<T>(context)?;
        let of = (policy, ordered);
        for_indices!(moved.indices, context, |indices| {
            kept.scatter_add.with(stream, of, make, |add| {
                add.enqueue(stream, source, indices, table)?;
                match policy {
                    Policy::Checked => add.check(stream),
                    _ => Ok(()),
                }
            })
        })
    })
}

/// The bags of an embedding.
struct Bagged<'a> {
    moved: Moved<'a>,
    bags: Spread<'a>,
    weights: Option<&'a Array>,
    pooling: Pooling,
}

/// Which indices a bag has.
#[derive(Clone, Copy)]
enum Spread<'a> {
    /// As many as all others.
    Len(usize),
    /// Those between two offsets.
    Offsets(Indices<'a>),
}

/// Rows of a table, summed, averaged or maximised by bags of indices, in float32.
///
/// Arguments:
///     table: (rows, width), float32, float16 or bfloat16.
///     indices: int32 or int64, contiguous: (bags, indices of each), or (indices,) with `offsets`.
///     offsets: (bags + 1,), int32 or int64. Bag `b` has the indices from `offsets[b]` to `offsets[b + 1]`.
///     weights: A factor for each index, float32, with `pooling="sum"`.
///     pooling: "sum", "mean" or "max".
///     out: (bags, width).
///     out_of_range: As in `gather`. Indices that are no rows count in no bag.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     IndexError: With "checked", an index is no row of the table.
///     TypeError, ValueError: Types or shapes do not fit, or `out` overlaps an operand. Nothing is written.
#[pyfunction]
#[pyo3(signature = (table, indices, *, offsets=None, weights=None, pooling="sum", out=None, out_of_range="deferred",
    stream=None))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn embedding_bag<'py>(
    py: Python<'py>,
    table: &Bound<'py, PyAny>,
    indices: &Bound<'py, PyAny>,
    offsets: Option<&Bound<'py, PyAny>>,
    weights: Option<&Bound<'py, PyAny>>,
    pooling: &str,
    out: Option<&Bound<'py, PyAny>>,
    out_of_range: &str,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    const NAME: &str = "embedding_bag";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("table", table)?;
    from.expect_rank(NAME, 2)?;
    let named = call.read("indices", indices)?;
    let offsets = match offsets {
        Some(offsets) => Some(call.read("offsets", offsets)?),
        None => None,
    };
    let (count, bags) = bags(&named, offsets.as_deref())?;
    let weights = match weights {
        Some(weights) => Some(call.read("weights", weights)?),
        None => None,
    };
    let word = pooling;
    let pooling = options::pooling(NAME, word)?;
    if weights.is_some() && pooling != Pooling::Sum {
        return wrong_value(format!(
            "{NAME}: weights were given, and pooling is \"{word}\"; give \"sum\", or leave the weights out"
        ));
    }
    if let Some(weights) = &weights {
        weights.expect_type(NAME, DataType::F32)?;
        weights.expect_contiguous(NAME)?;
        expect_shape(NAME, weights, named.shape())?;
    }
    let shape = [count, from.shape()[1]];
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(table, &shape, None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, from.data_type)?;
    expect_shape(NAME, &to, &shape)?;
    let bagged = Bagged {
        moved: Moved {
            from: &from,
            of_from: from.matrix(NAME)?,
            to: &to,
            of_to: to.matrix(NAME)?,
            indices: Indices::of(NAME, &named)?,
            policy: options::out_of_range(NAME, out_of_range)?,
        },
        bags,
        weights: weights.as_deref(),
        pooling,
    };
    for_sums!(NAME, from, enqueue_bags(&call, &bagged))?;
    Ok(out)
}

/// How many bags there are, and which indices each has.
fn bags<'a>(indices: &Array, offsets: Option<&'a Array>) -> Result<(usize, Spread<'a>)> {
    match (offsets, indices.shape()) {
        (None, [count, len]) => Ok((*count, Spread::Len(*len))),
        (Some(offsets), [_]) => {
            offsets.expect_rank("embedding_bag", 1)?;
            let count = offsets.shape()[0];
            if count == 0 {
                return wrong_value(
                    "embedding_bag: there are no offsets; give one for each bag, and the number of indices".to_string(),
                );
            }
            let offsets = Indices::of("embedding_bag", offsets)?;
            Ok((count - 1, Spread::Offsets(offsets)))
        }
        (_, shape) => wrong_value(format!(
            "embedding_bag: indices is {}; give (bags, indices of each), or (indices,) with offsets",
            tuple(shape)
        )),
    }
}

fn enqueue_bags<T: PooledElement>(call: &Call<'_>, bagged: &Bagged<'_>) -> Result<()> {
    let context = call.context();
    let (stream, moved) = (&context.stream, &bagged.moved);
    let (policy, pooling) = (moved.policy, bagged.pooling);
    let operands = || -> cutlet::Result<_> {
        let (table, sums) = moved.matrices::<T>(context)?;
        let bags = match bagged.bags {
            Spread::Len(len) => Bags::of_len(len),
            Spread::Offsets(offsets) => {
                for_indices!(offsets, context, |offsets| Bags::from_offsets(offsets))?
            }
        };
        Ok((table, sums, bags))
    };
    if policy == Policy::Checked && bagged.weights.is_none() {
        return call.run(true, || {
            let (table, sums, bags) = operands()?;
            for_indices!(moved.indices, context, |indices| {
                cutlet::embedding_bag_checked(stream, pooling, table, indices, bags, sums)
            })
        });
    }
    let make = || {
        let bag = EmbeddingBag::new(stream.device(), pooling)?;
        Ok(bag.out_of_range(policy.out_of_range()))
    };
    call.run_kept(policy == Policy::Checked, |kept| {
        let (table, sums, bags) = operands()?;
        let of = (policy, pooling);
        for_indices!(moved.indices, context, |indices| {
            kept.embedding_bag.with(stream, of, make, |bag| {
                match bagged.weights {
                    Some(weights) => {
                        let weights = weights.memory::<f32>(context)?;
                        bag.enqueue_weighted(stream, table, indices, weights, bags, sums)?;
                    }
                    None => bag.enqueue(stream, table, indices, bags, sums)?,
                }
                match policy {
                    Policy::Checked => bag.check(stream),
                    _ => Ok(()),
                }
            })
        })
    })
}

/// Waits for the work of an array's stream, and reports a bad index of a call with `out_of_range="deferred"`.
///
/// Arguments:
///     array: An array that such a call had.
///     stream: The stream that the call had, as in `gemm`.
///
/// Raises:
///     IndexError: An index was no row of its table since the last check.
#[pyfunction]
#[pyo3(signature = (array, *, stream=None))]
pub fn check<'py>(
    py: Python<'py>,
    array: &Bound<'py, PyAny>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<()> {
    let mut call = Call::new(py, "check", stream);
    call.read("array", array)?;
    let context = call.context();
    call.run_kept(true, |kept| kept.check(&context.stream))
}
