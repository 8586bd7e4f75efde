//! Inverses of layouts, and what two layouts have in common.

use crate::composition::{first_run, try_composition};
use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::flat_modes::{Knowledge, Modes};
use crate::text::Text;
use crate::{CAPACITY, Int, IntTuple, Layout, compact_col_major, gcd};

twin! {
    /// The longest layout `R` with `layout(R(i)) = i` for every `i` below its size; `_1:_0` when
    /// nothing maps to 1.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, right_inverse};
    ///
    /// assert_eq!(right_inverse(&layout!((4, 8):(8, 1))).to_string(), "(_8,_4):(_4,_1)");
    /// assert_eq!(right_inverse(&layout!((4, 8):(2, 16))).to_string(), "_1:_0");
    /// ```
    right_inverse = try_right_inverse(layout: &Layout) -> Layout;

    /// A layout `L` with `L(layout(i)) = i` for every coordinate `i`.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, left_inverse};
    ///
    /// assert_eq!(left_inverse(&layout!((6, 2):(1, 7))).to_string(), "(_7,_2):(_1,_6)");
    /// ```
    left_inverse = try_left_inverse(layout: &Layout) -> Layout;

    /// The longest vector that two layouts agree on: the greatest `R` with `a(R(i)) = i` and
    /// `b(R(i)) = i`.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, max_common_layout};
    ///
    /// let r = max_common_layout(&layout!((4, 8):(8, 1)), &layout!((4, (2, 4)):(2, (1, 8))));
    /// assert_eq!(r.to_string(), "_2:_4");
    /// ```
    max_common_layout = try_max_common_layout(a: &Layout, b: &Layout) -> Layout;

    /// How many elements, from the first on, two layouts both keep contiguous in the same order:
    /// the size of [`max_common_layout`].
    ///
    /// ```
    /// use cutlet_layout_core::{layout, max_common_vector};
    ///
    /// assert_eq!(max_common_vector(&layout!((4, 8):(1, 4)), &layout!((4, 8):(1, 8))).value(), 4);
    /// ```
    max_common_vector = try_max_common_vector(a: &Layout, b: &Layout) -> Int;

    /// Spreads `n` elements over a shape as far as divisors allow: a layout of at most `n`
    /// elements, ordered, that [`logical_divide`](crate::logical_divide) takes.
    ///
    /// ```
    /// use cutlet_layout_core::{Int, domain_distribute, shape};
    ///
    /// assert_eq!(domain_distribute(&shape!((15, 14)), Int::fixed(6)).to_string(), "(_3,_2):(_1,_15)");
    /// ```
    domain_distribute = try_domain_distribute(shape: &IntTuple, n: Int) -> Layout;

    /// The layout of everything that a layout maps to 0 because of its strides of 0.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, nullspace};
    ///
    /// assert_eq!(nullspace(&layout!((2, 3, 4):(1, 0, 2))).to_string(), "_3:_2");
    /// ```
    nullspace = try_nullspace(layout: &Layout) -> Layout;
}

/// The flat modes of a layout with the 1-D coordinate that each steps through.
struct Steps {
    modes: Modes,
    step: [Int; CAPACITY],
}

impl Steps {
    const fn of(layout: &Layout) -> Steps {
        let modes = Modes::coalesced(layout, Knowledge::Values);
        let mut step = [Int::ONE; CAPACITY];
        let mut i = 1;
        while i < modes.len {
            step[i] = match step[i - 1].checked_mul(modes.shape[i - 1]) {
                Some(step) => step,
                None => unreachable!(),
            };
            i += 1;
        }
        Steps { modes, step }
    }

    /// The modes by increasing stride.
    const fn sorted(&self) -> [usize; CAPACITY] {
        let mut order = [0; CAPACITY];
        let mut i = 0;
        while i < self.modes.len {
            let mut j = i;
            while j > 0 && self.stride(order[j - 1]) > self.stride(i) {
                order[j] = order[j - 1];
                j -= 1;
            }
            order[j] = i;
            i += 1;
        }
        order
    }

    const fn stride(&self, mode: usize) -> i64 {
        self.modes.stride[mode].value()
    }

    const fn extent(&self, mode: usize) -> i64 {
        self.modes.shape[mode].value()
    }
}

/// [`right_inverse`], or the reason why there is none.
///
/// # Errors
/// If strides are in basis directions.
pub const fn try_right_inverse(layout: &Layout) -> Result<Layout, LayoutError> {
    if layout.has_basis() {
        return Err(refused(
            "right_inverse",
            layout,
            "strides in basis directions have no order",
        ));
    }
    let steps = Steps::of(layout);
    let order = steps.sorted();
    // A mode continues another whose steps lead exactly to its stride; the longest chain from
    // stride 1 wins. Where a layout maps to an index twice, a part of a mode may be enough.
    const NOT_REACHED: usize = CAPACITY + 1;
    const FIRST: usize = CAPACITY;
    let mut before = [NOT_REACHED; CAPACITY];
    let mut best = NOT_REACHED;
    let mut i = 0;
    while i < steps.modes.len {
        let this = order[i];
        if steps.stride(this) == 1 {
            before[this] = FIRST;
        }
        let mut j = 0;
        while j < i && before[this] != FIRST {
            let other = order[j];
            let (from, to) = (steps.stride(other), steps.stride(this));
            if before[other] != NOT_REACHED && from < to && to % from == 0 {
                let count = to / from;
                if count == steps.extent(other) {
                    before[this] = other;
                    break;
                }
                if count < steps.extent(other) && before[this] == NOT_REACHED {
                    before[this] = other;
                }
            }
            j += 1;
        }
        let reached = before[this] != NOT_REACHED;
        if reached && (best == NOT_REACHED || reach(&steps, this) > reach(&steps, best)) {
            best = this;
        }
        i += 1;
    }
    let mut chain = Modes::EMPTY;
    let mut mode = best;
    let mut end = steps_end(&steps, best, NOT_REACHED);
    while mode < CAPACITY {
        let full = end / steps.stride(mode) == steps.extent(mode);
        let count = Int::dynamic(end / steps.stride(mode)).with_static(layout.is_static());
        chain.push(
            if full { steps.modes.shape[mode] } else { count },
            steps.step[mode],
        );
        end = steps.stride(mode);
        mode = before[mode];
    }
    chain.reverse();
    chain.to_coalesced()
}

const fn reach(steps: &Steps, mode: usize) -> i64 {
    steps.stride(mode).saturating_mul(steps.extent(mode))
}

const fn steps_end(steps: &Steps, mode: usize, none: usize) -> i64 {
    if mode == none { 1 } else { reach(steps, mode) }
}

/// [`left_inverse`], or the reason why there is none.
///
/// The inverse counts in a mixed radix with a place for each stride: the stride itself where
/// strides divide each other, or the multiple of the places before it that it contains. What lies
/// below a place is made up for by its stride. A layout whose strides do not divide each other may
/// have an inverse in some other radix; those are not searched for.
///
/// # Errors
/// If the layout maps two coordinates to one index, or to negative ones, or if its inverse does
/// not count in that radix.
pub const fn try_left_inverse(layout: &Layout) -> Result<Layout, LayoutError> {
    if layout.has_basis() {
        return Err(refused(
            "left_inverse",
            layout,
            "strides in basis directions have no order",
        ));
    }
    let steps = Steps::of(layout);
    let order = steps.sorted();
    // Place 0 counts what no stride reaches; a place's stride is what one of it is worth.
    let mut place = [1i64; CAPACITY];
    let mut worth = [0i64; CAPACITY];
    let mut places = 1;
    let mut i = 0;
    while i < steps.modes.len {
        let mode = order[i];
        let stride = steps.stride(mode);
        if stride < 0 {
            return Err(refused(
                "left_inverse",
                layout,
                "it maps to negative indices",
            ));
        }
        let last = place[places - 1];
        let next = stride / last * last;
        if stride == 0 || (i > 0 && next == last) {
            return Err(refused(
                "left_inverse",
                layout,
                "it maps two coordinates to one index",
            ));
        }
        if next == 1 {
            worth[0] = steps.step[mode].value();
        } else if places == CAPACITY {
            return Err(refused(
                "left_inverse",
                layout,
                "it needs more leaves than a layout holds",
            ));
        } else {
            let Some(below) = value_of(stride - next, &place, &worth, places) else {
                return Err(refused(
                    "left_inverse",
                    layout,
                    "a stride does not fit 64 bits",
                ));
            };
            place[places] = next;
            worth[places] = steps.step[mode].value() - below;
            places += 1;
        }
        i += 1;
    }
    let mut inverse = Modes::EMPTY;
    let mut j = 0;
    while j < places {
        let extent = if j + 1 < places {
            place[j + 1] / place[j]
        } else if steps.modes.len > 0 {
            steps.extent(order[steps.modes.len - 1])
        } else {
            1
        };
        let is_static = layout.is_static();
        inverse.push(
            Int::dynamic(extent).with_static(is_static),
            Int::dynamic(worth[j]).with_static(is_static),
        );
        j += 1;
    }
    let inverse = tri!(inverse.to_coalesced());
    if undoes(&inverse, layout) {
        return Ok(inverse);
    }
    let why =
        "it maps two coordinates to one index, or its strides' radix does not tell them apart";
    Err(refused("left_inverse", layout, why))
}

/// What an index below the last place is worth.
const fn value_of(
    index: i64,
    place: &[i64; CAPACITY],
    worth: &[i64; CAPACITY],
    places: usize,
) -> Option<i64> {
    let mut rest = index;
    let mut value: i64 = 0;
    let mut j = places;
    while j > 0 {
        j -= 1;
        let term = match (rest / place[j]).checked_mul(worth[j]) {
            Some(term) => value.checked_add(term),
            None => None,
        };
        value = match term {
            Some(value) => value,
            None => return None,
        };
        rest %= place[j];
    }
    Some(value)
}

/// Whether `inverse(layout(i)) = i` for all coordinates.
const fn undoes(inverse: &Layout, layout: &Layout) -> bool {
    match try_composition(inverse, layout) {
        Ok(identity) => {
            let modes = Modes::coalesced(&identity, Knowledge::Values);
            modes.len == 0 || (modes.len == 1 && modes.stride[0].value() == 1)
        }
        Err(_) => false,
    }
}

const fn refused(operation: &str, layout: &Layout, why: &str) -> LayoutError {
    let mut text = Text::new();
    text.str(operation)
        .str(": ")
        .layout(layout)
        .str(": ")
        .str(why);
    LayoutError::new(ErrorKind::NotRepresentable, &text)
}

/// [`max_common_layout`], or the reason why there is none.
///
/// # Errors
/// If strides are in basis directions.
pub const fn try_max_common_layout(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let inverse = tri!(try_right_inverse(b));
    if a.has_basis() {
        return Err(refused(
            "max_common_layout",
            a,
            "strides in basis directions have no order",
        ));
    }
    let modes = Modes::coalesced(&inverse, Knowledge::Values);
    let mut common = Modes::EMPTY;
    let mut size: i64 = 1;
    let mut i = 0;
    while i < modes.len {
        let Some((steps, stride)) = first_run(a, modes.shape[i], modes.stride[i]) else {
            break;
        };
        if stride.value() != size || steps == 1 {
            break;
        }
        let full = steps == modes.shape[i].value();
        let part = Int::dynamic(steps).with_static(a.is_static() && b.is_static());
        common.push(if full { modes.shape[i] } else { part }, modes.stride[i]);
        size *= steps;
        if !is_contiguous(a, &common) {
            common.len -= 1;
            break;
        }
        if !full {
            break;
        }
        i += 1;
    }
    common.to_layout()
}

/// Whether a layout maps what some modes step through to `0, 1, 2, …`.
const fn is_contiguous(a: &Layout, modes: &Modes) -> bool {
    let Ok(layout) = modes.to_layout() else {
        return false;
    };
    match try_composition(a, &layout) {
        Ok(composed) => {
            let composed = Modes::coalesced(&composed, Knowledge::Values);
            composed.len == 1 && composed.stride[0].value() == 1
        }
        Err(_) => false,
    }
}

/// [`max_common_vector`], or the reason why there is none.
///
/// # Errors
/// If strides are in basis directions.
pub const fn try_max_common_vector(a: &Layout, b: &Layout) -> Result<Int, LayoutError> {
    Ok(tri!(try_max_common_layout(a, b)).size_int())
}

/// [`domain_distribute`], or the reason why there is none.
///
/// # Errors
/// If an extent or `n` is below 1.
pub const fn try_domain_distribute(shape: &IntTuple, n: Int) -> Result<Layout, LayoutError> {
    let domain = tri!(Layout::try_col_major(shape));
    if n.value() < 1 {
        return Err(refused(
            "domain_distribute",
            &domain,
            "it distributes at least 1 element",
        ));
    }
    let strides = compact_col_major(shape, Int::ONE);
    let mut modes = Modes::EMPTY;
    let mut rest = n;
    let mut i = 0;
    while i < shape.num_leaves() {
        let part = gcd(shape.leaf(i), rest);
        modes.push(part, strides.leaf(i));
        rest = match rest.checked_div(part) {
            Some(rest) => rest,
            None => unreachable!(),
        };
        i += 1;
    }
    modes.to_coalesced()
}

/// [`nullspace`], or the reason why there is none.
///
/// # Errors
/// None: every layout has one. A `Result` like its siblings.
pub const fn try_nullspace(layout: &Layout) -> Result<Layout, LayoutError> {
    let strides = compact_col_major(&layout.shape(), Int::ONE);
    let mut modes = Modes::EMPTY;
    let mut i = 0;
    while i < layout.num_leaves() {
        if layout.leaf_stride(i).is_constant(0) {
            modes.push(layout.leaf_shape(i), strides.leaf(i));
        }
        i += 1;
    }
    modes.to_layout()
}
