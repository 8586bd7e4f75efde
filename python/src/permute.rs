//! `permute`: a copy with the dimensions in another order.

use cutlet::{DeviceData, Layout};
use pyo3::prelude::*;

use crate::array::{Array, tuple};
use crate::call::Call;
use crate::error::{Result, wrong_value};

const NAME: &str = "permute";

/// A copy of an array with its dimensions in another order.
///
/// Arguments:
///     source: An array of any type and of strides that are not negative.
///     axes: Dimension `i` of the result is dimension `axes[i]` of `source`. Without it, the order is reversed.
///     out: An array of any strides.
///     stream: As in `gemm`.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError: `out` has another type.
///     ValueError: `axes` is no order of the dimensions, or `out` has another shape or overlaps `source`.
#[pyfunction]
#[pyo3(signature = (source, axes=None, *, out=None, stream=None))]
pub fn permute<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    axes: Option<Vec<i64>>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("source", source)?;
    let axes = order(&from, axes)?;
    let shape: Vec<usize> = axes.iter().map(|axis| from.shape()[*axis]).collect();
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(source, &shape, None)?,
    };
    let to = call.write("out", &out)?;
    to.expect_type(NAME, from.data_type)?;
    if to.shape() != shape {
        return wrong_value(format!(
            "{NAME}: out is {}; give {}",
            tuple(to.shape()),
            tuple(&shape)
        ));
    }
    if shape.contains(&0) {
        return Ok(out);
    }
    let of_from = match axes[..] {
        [] => from.layout(NAME)?,
        _ => from
            .layout(NAME)?
            .try_select(&axes)
            .map_err(|it| pyo3::exceptions::PyValueError::new_err(it.to_string()))?,
    };
    let copy = Copy {
        from: &from,
        of_from,
        to: &to,
        of_to: to.layout(NAME)?,
    };
    match from.data_type.size() {
        1 => copy.enqueue::<u8>(&call),
        2 => copy.enqueue::<u16>(&call),
        4 => copy.enqueue::<u32>(&call),
        _ => copy.enqueue::<u64>(&call),
    }?;
    Ok(out)
}

/// A copy between two layouts.
struct Copy<'a> {
    from: &'a Array,
    of_from: Layout,
    to: &'a Array,
    of_to: Layout,
}

impl Copy<'_> {
    fn enqueue<T: DeviceData>(&self, call: &Call<'_>) -> Result<()> {
        let context = call.context();
        call.run(false, || {
            let from = self.from.tensor::<T>(context, self.of_from)?;
            let to = self.to.tensor_mut::<T>(context, self.of_to)?;
            cutlet::permute(&context.stream, from, to)
        })
    }
}

/// The dimensions of the source in their new order. Without axes, it is the reverse. Negative ones count from the end.
fn order(source: &Array, axes: Option<Vec<i64>>) -> Result<Vec<usize>> {
    let rank = source.rank();
    let Some(axes) = axes else {
        return Ok((0..rank).rev().collect());
    };
    let counted = axes.iter().map(|axis| match axis {
        0.. => usize::try_from(*axis).ok(),
        _ => usize::try_from(*axis + rank as i64).ok(),
    });
    let order: Vec<usize> = counted.flatten().collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    match sorted.iter().copied().eq(0..rank) {
        true => Ok(order),
        false => wrong_value(format!(
            "{NAME}: axes is {axes:?}, and source has {rank} dimensions, {}; name each dimension once",
            tuple(source.shape())
        )),
    }
}
