//! Boxes of TMA: whether a tensor map can be made for them, and how a box lies in shared memory.

use std::fmt;

use cutlet_layout_core::{IntTuple, Layout, Swizzle, TensorMapShape, TilerKind};

use crate::composed::{Composed, Inner};
use crate::refusal::Refusal;
use crate::value::Value;

const MAX_RANK: usize = TensorMapShape::MAX_RANK;

/// Boxes by which TMA moves a tensor.
///
/// ```
/// use cutlet_calculator::{Value, evaluate};
///
/// let Value::TmaBox(boxes) = evaluate("tma_box((64,127):(127,1), (8,64), 16, 128)").unwrap() else {
///     panic!()
/// };
/// assert_eq!(boxes.reasons()[0].found, "its rows are 254 bytes apart");
/// assert_eq!(boxes.shared().to_string(), "Sw<3,3,3> o 0 o (_8,_64):(_64,_1)");
/// ```
#[derive(Clone, Debug)]
pub struct TmaBox {
    shape: TensorMapShape,
    reasons: Vec<Reason>,
    shared: Value,
}

/// Why TMA cannot move a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// What was found.
    pub found: String,
    /// What to do about it.
    pub fix: &'static str,
}

impl TmaBox {
    /// Boxes of the extents `tile`, mode by mode as `tensor` has them. An element has `bits` bits.
    ///
    /// The tensor's offset is taken as its distance from an aligned address.
    pub(crate) fn new(
        tensor: &Value,
        tile: &Value,
        bits: i64,
        swizzle: Option<&Value>,
    ) -> Result<TmaBox, Refusal> {
        let sliced = tensor.sliced()?;
        let layout = sliced.layout.flatten();
        if layout.has_basis() || sliced.offset.as_int().is_none() {
            return Err(tensor.not("a layout of indices in memory"));
        }
        if !matches!(bits, 8 | 16 | 32 | 64) {
            return Err(Refusal::new(format!(
                "TMA moves elements of 8, 16, 32 or 64 bits, not {bits}: give one of these"
            )));
        }
        let span = swizzle.map_or(Ok(16), |swizzle| span(swizzle, bits))?;
        let tile = Extents::of(tile)?;
        let dimensions = innermost_first(&layout);
        let shape = shape(&layout, &tile, &dimensions, bits / 8, span)?;
        let address = sliced
            .offset
            .as_int()
            .map_or(0, |offset| offset.value() * (bits / 8));
        let mut reasons = Vec::new();
        if layout.leaf_stride(dimensions[0]).value() != 1 {
            reasons.push(Reason {
                found: format!(
                    "no dimension of {} has consecutive elements",
                    layout.to_dynamic()
                ),
                fix: "TMA moves lines of consecutive elements: give one dimension the stride 1",
            });
        }
        reasons.extend(shape.faults(address as u64, u64::MAX).map(|fault| Reason {
            found: fault.to_string(),
            fix: fault.fix(),
        }));
        let shared = in_shared_memory(&tile, &dimensions, bits, span)?;
        Ok(TmaBox {
            shape,
            reasons,
            shared,
        })
    }

    /// Why TMA cannot move these boxes; none if it can.
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// How the elements of a box lie in shared memory: a layout with the box's coordinates, swizzled if the box is.
    pub fn shared(&self) -> &Value {
        &self.shared
    }

    /// The tensor and the boxes in words.
    pub fn asked(&self) -> String {
        match self.shape.swizzle_bytes {
            16 => self.shape.to_string(),
            span => format!("{} with a swizzle of {span} bytes", self.shape),
        }
    }
}

impl fmt::Display for TmaBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.reasons.is_empty() {
            "legal"
        } else {
            "not legal"
        };
        write!(f, "{verdict}: {}", self.asked())?;
        for Reason { found, fix } in &self.reasons {
            write!(f, "\n- {found}; {fix}")?;
        }
        write!(f, "\na box in shared memory: {}", self.shared)
    }
}

/// A box: its extents, and the steps between the elements that it takes.
struct Extents {
    extents: Vec<i64>,
    steps: Vec<i64>,
}

impl Extents {
    fn of(tile: &Value) -> Result<Extents, Refusal> {
        let modes: Vec<Layout> = match tile {
            Value::Tiler(tiler) => {
                let modes = (0..tiler.rank()).map(|i| match tiler.mode(i).kind() {
                    TilerKind::Layout(layout) => Ok(layout),
                    _ => Err(tile.not("a box with an extent for each mode")),
                });
                modes.collect::<Result<_, _>>()?
            }
            other => {
                let shape = other.tuple()?.flatten();
                let extents = (0..shape.num_leaves()).map(|i| shape.leaf(i).value());
                extents
                    .map(|extent| Layout::static_mode(extent, 1))
                    .collect()
            }
        };
        Ok(Extents {
            extents: modes.iter().map(Layout::size).collect(),
            steps: modes
                .iter()
                .map(|mode| mode.flatten().leaf_stride(0).value())
                .collect(),
        })
    }
}

/// The modes of a flat layout in the order of a map's dimensions: first the one with consecutive elements.
fn innermost_first(layout: &Layout) -> Vec<usize> {
    let modes = 0..layout.num_leaves();
    let is_consecutive = |&mode: &usize| layout.leaf_stride(mode).value() == 1;
    let innermost = (modes.clone().filter(is_consecutive))
        .find(|&mode| layout.leaf_shape(mode).value() > 1)
        .or_else(|| modes.clone().find(is_consecutive))
        .unwrap_or(0);
    [innermost]
        .into_iter()
        .chain(modes.filter(|&mode| mode != innermost))
        .collect()
}

fn shape(
    layout: &Layout,
    tile: &Extents,
    dimensions: &[usize],
    element_bytes: i64,
    swizzle_bytes: u32,
) -> Result<TensorMapShape, Refusal> {
    let mut shape = TensorMapShape {
        rank: dimensions.len(),
        extent: [1; MAX_RANK],
        stride: [0; MAX_RANK - 1],
        element_bytes: element_bytes as u64,
        box_rank: tile.extents.len(),
        box_extent: [1; MAX_RANK],
        element_stride: [1; MAX_RANK],
        swizzle_bytes,
    };
    for (dimension, &mode) in dimensions.iter().enumerate().take(MAX_RANK) {
        shape.extent[dimension] = unsigned(layout.leaf_shape(mode).value(), "an extent")?;
        if dimension > 0 {
            let stride = unsigned(layout.leaf_stride(mode).value(), "a stride")?;
            shape.stride[dimension - 1] = stride;
        }
        if let Some(&extent) = tile.extents.get(mode) {
            let extent = unsigned(extent, "an extent")?;
            shape.box_extent[dimension] = u32::try_from(extent).unwrap_or(u32::MAX);
        }
        if let Some(&step) = tile.steps.get(mode) {
            let step = unsigned(step, "an element stride")?;
            shape.element_stride[dimension] = u32::try_from(step).unwrap_or(u32::MAX);
        }
    }
    Ok(shape)
}

fn unsigned(number: i64, what: &str) -> Result<u64, Refusal> {
    let message = || {
        Refusal::new(format!(
            "{what} of a tensor map is not negative, but here is {number}"
        ))
    };
    u64::try_from(number).map_err(|_| message())
}

/// The span of a swizzle in bytes: an integer, or that of a swizzle of elements.
fn span(swizzle: &Value, bits: i64) -> Result<u32, Refusal> {
    if let Value::Inner(Inner::Swizzle(swizzle)) = swizzle {
        let of_bytes = swizzle.try_recast(bits, 8)?;
        let is_tmas = of_bytes.bits() <= 3 && of_bytes.base() == 4 && of_bytes.shift() == 3;
        return match (of_bytes.bits(), is_tmas) {
            (0, _) => Ok(16),
            (bits, true) => Ok(16 << bits),
            _ => Err(Refusal::new(format!(
                "TMA has no swizzle {swizzle} of elements of {bits} bits: give its span, 32, 64 or 128 bytes"
            ))),
        };
    }
    let bytes = swizzle.int()?.value();
    u32::try_from(bytes).map_err(|_| swizzle.not("a swizzle's span in bytes"))
}

/// The layout of a box in shared memory: dimension after dimension, the innermost first.
fn in_shared_memory(
    tile: &Extents,
    dimensions: &[usize],
    bits: i64,
    span: u32,
) -> Result<Value, Refusal> {
    let mut strides = vec![0; tile.extents.len()];
    let mut next: i64 = 1;
    for &mode in dimensions {
        if let Some(&extent) = tile.extents.get(mode) {
            strides[mode] = next;
            next = next.saturating_mul(extent.max(1));
        }
    }
    let layout =
        Layout::try_from_shape_stride(&IntTuple::fixed(&tile.extents), &IntTuple::fixed(&strides))?;
    Ok(match span {
        32 | 64 | 128 => {
            let of_bytes = Swizzle::new(i64::from(span.ilog2()) - 4, 4, 3);
            let inner = Inner::Swizzle(of_bytes.try_recast(8, bits)?);
            Composed::new(inner, IntTuple::from(0), layout)?.into()
        }
        _ => Value::Layout(layout),
    })
}
