//! Tiles and partitions, as CuTe takes them of tensors: here of layouts, whose offset is a part of the result.

use cutlet_layout_core::{
    ComposedLayout, IntTuple, Layout, LayoutError, Tiler, linear_coordinate, try_composition,
    try_idx2crd_strided, try_product_each, try_raked_product, try_right_inverse,
};

use crate::composed::Made;
use crate::refusal::Refusal;
use crate::value::{Sliced, Value};

/// `local_tile`, `local_partition`, `inner_partition` and `outer_partition`.
pub(super) fn call(name: &str, arguments: &[Value]) -> Result<Option<Value>, Refusal> {
    Ok(Some(match (name, arguments) {
        ("local_tile" | "inner_partition", [a, tiler, coord]) => {
            of(a, &tiler.tiler()?, &coord.tuple()?, Side::Tile)?
        }
        ("local_tile", [a, tiler, coord, projection]) => {
            let projection = projection.tuple()?;
            let coord = projected(&projection, &coord.tuple()?)?;
            of(a, &projected_tiler(&projection, tiler)?, &coord, Side::Tile)?
        }
        ("outer_partition", [a, tiler, coord]) => {
            of(a, &tiler.tiler()?, &coord.tuple()?, Side::Rest)?
        }
        ("local_partition", [a, threads, index]) => local_partition(a, &threads.layout()?, index)?,
        ("local_partition", [a, threads, index, projection]) => {
            let threads = threads.layout()?;
            let modes = projected_modes(&projection.tuple()?, threads.rank())?;
            local_partition(a, &threads.try_select(&modes)?, index)?
        }
        ("make_layout_tv", [threads, values]) => {
            thread_values(&threads.layout()?, &values.layout()?)?
        }
        _ => return Ok(None),
    }))
}

/// The half of a zipped division that a partition keeps.
#[derive(Clone, Copy)]
enum Side {
    /// The tile at a coordinate of tiles.
    Tile,
    /// The elements of all tiles at a coordinate inside a tile.
    Rest,
}

fn of(a: &Value, tiler: &Tiler, coord: &IntTuple, side: Side) -> Result<Value, Refusal> {
    if let Value::Composed(a) = a {
        let part = a.after(|a| part(a, tiler, coord, side).map(Made::from))?;
        return Ok(part.into());
    }
    let a = a.sliced()?;
    let part = part(
        &ComposedLayout::new((), a.offset, a.layout),
        tiler,
        coord,
        side,
    )?;
    Ok(Value::Sliced(Box::new(Sliced {
        layout: *part.outer(),
        offset: *part.offset(),
    })))
}

/// One half of the zipped division, at a coordinate of the other half. Modes that the coordinate does not reach are
/// kept.
fn part<I: Copy>(
    a: &ComposedLayout<I>,
    tiler: &Tiler,
    coord: &IntTuple,
    side: Side,
) -> Result<ComposedLayout<I>, LayoutError> {
    let zipped = a.try_zipped_divide(tiler)?;
    let [tile, rest] = [0, 1].map(|half| zipped.outer().mode(half));
    let both = match side {
        Side::Tile => [all_of(&tile), padded(coord, &rest)?],
        Side::Rest => [padded(coord, &tile)?, all_of(&rest)],
    };
    zipped.try_slice(&IntTuple::tuple(&both))
}

/// `_` for each mode.
fn all_of(layout: &Layout) -> IntTuple {
    match layout.rank() {
        1 => IntTuple::UNDERSCORE,
        rank => IntTuple::tuple(&vec![IntTuple::UNDERSCORE; rank]),
    }
}

/// A coordinate with `_` for the modes that it does not reach.
fn padded(coord: &IntTuple, layout: &Layout) -> Result<IntTuple, LayoutError> {
    if !coord.is_tuple() || layout.shape().is_int() {
        return Ok(if coord.rank() == 1 && coord.is_tuple() {
            coord.mode(0)
        } else {
            *coord
        });
    }
    let mut padded = *coord;
    while padded.rank() < layout.rank() {
        padded = padded.try_append(&IntTuple::UNDERSCORE)?;
    }
    Ok(padded)
}

/// The elements that a thread gets if a layout of threads tiles the elements.
fn local_partition(a: &Value, threads: &Layout, index: &Value) -> Result<Value, Refusal> {
    let index = IntTuple::int(index.int()?);
    let tiler = Tiler::try_shape(&try_product_each(&threads.shape())?)?;
    let coord = try_idx2crd_strided(&index, &threads.shape(), &threads.stride())?;
    let flat =
        (0..threads.rank()).map(|i| linear_coordinate(&coord.mode(i), &threads.mode(i).shape()));
    let coord = IntTuple::tuple(&flat.collect::<Vec<_>>());
    of(a, &tiler, &coord, Side::Rest)
}

/// The modes that a projection such as `Step<_1,X,_1>` keeps: those without `_`.
fn projected_modes(projection: &IntTuple, rank: usize) -> Result<Vec<usize>, Refusal> {
    if !projection.is_tuple() {
        return Ok((0..rank).collect());
    }
    if projection.rank() != rank {
        return Err(Refusal::new(format!(
            "the projection {projection} has {} modes, but {rank} are projected: give `_` or an integer for each",
            projection.rank()
        )));
    }
    Ok((0..rank)
        .filter(|&i| !projection.mode(i).has_underscore())
        .collect())
}

fn projected(projection: &IntTuple, tuple: &IntTuple) -> Result<IntTuple, Refusal> {
    let modes = projected_modes(projection, tuple.rank())?;
    Ok(tuple.try_select(&modes)?)
}

fn projected_tiler(projection: &IntTuple, tiler: &Value) -> Result<Tiler, Refusal> {
    let tiler = tiler.tiler()?;
    let modes = projected_modes(projection, tiler.rank())?;
    let kept: Result<Vec<Tiler>, LayoutError> =
        modes.into_iter().map(|i| tiler.try_mode(i)).collect();
    Ok(Tiler::try_tuple(&kept?)?)
}

/// The tile that a layout of threads and one of each thread's values cover together, and the layout (thread, value) of
/// its elements.
fn thread_values(threads: &Layout, values: &Layout) -> Result<Value, Refusal> {
    let to_thread_value = try_raked_product(threads, values)?;
    let to_element = try_right_inverse(&to_thread_value)?;
    if to_element.size() != to_thread_value.size() {
        return Err(Refusal::new(format!(
            "make_layout_tv: threads {threads} and values {values} leave gaps: give compact layouts"
        )));
    }
    let sizes = [threads, values].map(|layout| IntTuple::int(layout.size_int()));
    let by_thread = Layout::try_col_major(&IntTuple::tuple(&sizes))?;
    Ok(Value::Several(vec![
        Value::Tuple(try_product_each(&to_thread_value.shape())?),
        Value::Layout(try_composition(&to_element, &by_thread)?),
    ]))
}
