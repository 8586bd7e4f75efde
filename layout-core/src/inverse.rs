//! Inverses of layouts, and what two layouts have in common.

use crate::composition::{first_run, try_composition};
use crate::error::{ErrorKind, LayoutError, tri, twin};
use crate::flat_modes::{Knowledge, Modes};
use crate::text::Text;
use crate::{CAPACITY, Int, IntTuple, Layout, compact_col_major, gcd};

twin! {
    /// A layout `R` with `layout(R(i)) = i` for every `i` below its size; `_1:_0` when no stride is
    /// 1.
    ///
    /// It is the longest one if `layout` is injective and maps to no negative index. For other
    /// layouts it is a chain of modes, or of parts of modes, each of which begins where the one
    /// before ends; there may be a longer one.
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

    /// A vector that two layouts agree on: an `R` with `a(R(i)) = i` and `b(R(i)) = i`, at least as
    /// long as CuTe's.
    ///
    /// It is made of the modes of a right inverse of `b`. If `b` is not injective or maps to
    /// negative indices, it has several inverses, and another one may give a longer vector.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, max_common_layout};
    ///
    /// let r = max_common_layout(&layout!((4, 8):(8, 1)), &layout!((4, (2, 4)):(2, (1, 8))));
    /// assert_eq!(r.to_string(), "_2:_4");
    /// ```
    max_common_layout = try_max_common_layout(a: &Layout, b: &Layout) -> Layout;

    /// The number of elements, from the first on, that both layouts keep contiguous in the same
    /// order: the size of [`max_common_layout`].
    ///
    /// ```
    /// use cutlet_layout_core::{layout, max_common_vector};
    ///
    /// assert_eq!(max_common_vector(&layout!((4, 8):(1, 4)), &layout!((4, 8):(1, 8))).value(), 4);
    /// ```
    max_common_vector = try_max_common_vector(a: &Layout, b: &Layout) -> Int;

    /// Spreads `n` elements over a shape as far as common divisors allow: an ordered layout of at
    /// most `n` elements, which serves as a tiler for [`logical_divide`](crate::logical_divide).
    ///
    /// ```
    /// use cutlet_layout_core::{Int, domain_distribute, shape};
    ///
    /// assert_eq!(domain_distribute(&shape!((15, 14)), Int::fixed(6)).to_string(), "(_3,_2):(_1,_15)");
    /// ```
    domain_distribute = try_domain_distribute(shape: &IntTuple, n: Int) -> Layout;

    /// The layout of the coordinates that a layout maps to 0 because of its strides of 0, static or
    /// dynamic. CuTe looks at static ones only, so it misses the coordinates of the others.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, nullspace};
    ///
    /// assert_eq!(nullspace(&layout!((2, 3, 4):(1, 0, 2))).to_string(), "_3:_2");
    /// ```
    nullspace = try_nullspace(layout: &Layout) -> Layout;
}

/// The flat modes of a layout, each with its step in 1-D coordinates.
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
            "strides in basis directions have no order: give plain ones",
        ));
    }
    let steps = Steps::of(layout);
    let order = steps.sorted();
    // A mode continues another one whose steps lead exactly to its stride. The longest chain from
    // stride 1 wins. If the layout maps to an index twice, a part of a mode may be enough.
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
/// The inverse counts in a mixed radix with a place for each stride. If strides divide each other,
/// the place is the stride. Otherwise it is a multiple of the last place: the largest one up to the
/// stride, or the smallest one that the stride divides. The weights of the places account for the
/// digits that a stride has at other places.
///
/// Not every injective layout has an inverse that is a layout: `(3,4,4):(8,2,26)` has none, in any
/// radix. If strides do not divide each other, an inverse may also be missed: at most 729 choices
/// of places are tried, and the inverse of a layout of more than 4096 elements cannot always be
/// verified.
///
/// # Errors
/// If the layout maps two coordinates to one index, maps to a negative index, or no inverse is
/// found.
pub const fn try_left_inverse(layout: &Layout) -> Result<Layout, LayoutError> {
    if layout.has_basis() {
        return Err(refused(
            "left_inverse",
            layout,
            "strides in basis directions have no order: give plain ones",
        ));
    }
    let steps = Steps::of(layout);
    let order = steps.sorted();
    let mut ways = 1;
    let mut i = 0;
    while i < steps.modes.len {
        let stride = steps.stride(order[i]);
        if stride < 0 {
            let why = "it maps to negative indices: use strides of at least 0";
            return Err(refused("left_inverse", layout, why));
        }
        if stride == 0 || (i > 0 && stride == steps.stride(order[i - 1])) {
            let why = "it maps two coordinates to one index, so no inverse can tell them apart";
            return Err(refused("left_inverse", layout, why));
        }
        if ways < WAYS {
            ways *= 3;
        }
        i += 1;
    }
    let mut way = 0;
    while way < ways {
        if let Some(radix) = Radix::new(&steps, &order, way)
            && let Ok(inverse) = radix.to_layout(&steps, layout.is_static())
            && undoes(&inverse, layout)
        {
            return Ok(inverse);
        }
        way += 1;
    }
    let why =
        "it maps two coordinates to one index, or has no inverse in the radices that are tried";
    Err(refused("left_inverse", layout, why))
}

/// The number of radices that are tried: a power of the three ways to choose a place.
const WAYS: usize = 729;

/// A mixed radix, with the weights of its places.
struct Radix {
    place: [i64; CAPACITY],
    weight: [i64; CAPACITY],
    /// Places whose weight no stride has determined yet.
    is_free: [bool; CAPACITY],
    len: usize,
}

impl Radix {
    /// The radix that has a place for each stride, from the smallest on. The ternary digits of
    /// `way` choose the places: 0 for the largest multiple of the last place up to the stride, 1
    /// for the smallest one that the stride divides, 2 for none. The weights follow from the value
    /// that each stride must have.
    const fn new(steps: &Steps, order: &[usize; CAPACITY], way: usize) -> Option<Radix> {
        let mut radix = Radix {
            place: [1; CAPACITY],
            weight: [0; CAPACITY],
            is_free: [true; CAPACITY],
            len: 1,
        };
        let mut choices = way;
        let mut i = 0;
        while i < steps.modes.len {
            let (stride, step) = (steps.stride(order[i]), steps.step[order[i]].value());
            let last = radix.place[radix.len - 1];
            match choices % 3 {
                0 => {
                    let place = stride / last * last;
                    if place > last {
                        if way > 0 && i > 0 {
                            radix.fill_gap(steps.extent(order[i - 1]), place);
                        }
                        if !radix.push(place, 0) {
                            return None;
                        }
                    } else if place < last || !radix.is_free[radix.len - 1] {
                        return None;
                    }
                }
                1 => {
                    let times = last / gcd(Int::fixed(stride), Int::fixed(last)).value();
                    let (Some(place), Some(weight)) =
                        (stride.checked_mul(times), step.checked_mul(times))
                    else {
                        return None;
                    };
                    if times == 1 || !radix.push(place, weight) {
                        return None;
                    }
                    radix.is_free[radix.len - 1] = false;
                }
                _ => {}
            }
            if !radix.settle(stride, step) {
                return None;
            }
            choices /= 3;
            i += 1;
        }
        Some(radix)
    }

    const fn push(&mut self, place: i64, weight: i64) -> bool {
        if self.len == CAPACITY {
            return false;
        }
        self.place[self.len] = place;
        self.weight[self.len] = weight;
        self.len += 1;
        true
    }

    /// Adds a place of free weight at the end of the last mode, if that is before the next place.
    const fn fill_gap(&mut self, extent: i64, next: i64) {
        if let Some(end) = self.place[self.len - 1].checked_mul(extent)
            && end < next
            && next % end == 0
        {
            self.push(end, 0);
        }
    }

    /// Sets the weight of the highest free place so that the digits of `index` have the value
    /// `value`.
    const fn settle(&mut self, index: i64, value: i64) -> bool {
        let mut free = self.len;
        let mut free_digit = 0;
        let mut missing = value;
        let mut rest = index;
        let mut j = self.len;
        while j > 0 {
            j -= 1;
            let digit = rest / self.place[j];
            rest %= self.place[j];
            if digit == 0 {
                continue;
            }
            if self.is_free[j] {
                self.is_free[j] = false;
                self.weight[j] = 0;
                if free == self.len {
                    (free, free_digit) = (j, digit);
                }
                continue;
            }
            missing = match digit.checked_mul(self.weight[j]) {
                Some(weight) => match missing.checked_sub(weight) {
                    Some(missing) => missing,
                    None => return false,
                },
                None => return false,
            };
        }
        if free == self.len {
            return missing == 0;
        }
        self.weight[free] = missing / free_digit;
        missing % free_digit == 0
    }

    const fn to_layout(&self, steps: &Steps, is_static: bool) -> Result<Layout, LayoutError> {
        let mut inverse = Modes::EMPTY;
        let mut end: i64 = 1;
        let mut i = 0;
        while i < steps.modes.len {
            end += (steps.extent(i) - 1) * steps.stride(i);
            i += 1;
        }
        let mut j = 0;
        while j < self.len {
            let extent = if j + 1 < self.len {
                self.place[j + 1] / self.place[j]
            } else {
                (end - 1) / self.place[j] + 1
            };
            inverse.push(
                Int::dynamic(extent).with_static(is_static),
                Int::dynamic(self.weight[j]).with_static(is_static),
            );
            j += 1;
        }
        inverse.to_coalesced()
    }
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
            "strides in basis directions have no order: give plain ones",
        ));
    }
    let common = tri!(common_along(a, b, &inverse));
    // The longest inverse may take only a part of a mode that `a` agrees with as a whole.
    let whole = tri!(common_along(a, b, &tri!(inverse_of_whole_modes(b))));
    Ok(if whole.size() > common.size() {
        whole
    } else {
        common
    })
}

/// CuTe's right inverse: it takes a mode as a whole or not at all, and always the first one that
/// continues those before it.
const fn inverse_of_whole_modes(layout: &Layout) -> Result<Layout, LayoutError> {
    let steps = Steps::of(layout);
    let mut chain = Modes::EMPTY;
    let mut next = 1;
    let mut i = 0;
    while i < steps.modes.len {
        if steps.stride(i) == next {
            chain.push(steps.modes.shape[i], steps.step[i]);
            next *= steps.extent(i);
            i = 0;
        } else {
            i += 1;
        }
    }
    chain.to_coalesced()
}

/// The part of an inverse of `b` along which `a` agrees with `b`.
const fn common_along(a: &Layout, b: &Layout, inverse: &Layout) -> Result<Layout, LayoutError> {
    let modes = Modes::coalesced(inverse, Knowledge::Values);
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

/// Whether `a` maps the coordinates of `modes` to `0, 1, 2, …`.
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
            "there are no elements to distribute: give at least 1",
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
/// Never: every layout has a nullspace. The signature is that of the other `try_` functions.
pub const fn try_nullspace(layout: &Layout) -> Result<Layout, LayoutError> {
    let strides = compact_col_major(&layout.shape(), Int::ONE);
    let mut modes = Modes::EMPTY;
    let mut i = 0;
    while i < layout.num_leaves() {
        if layout.leaf_stride(i).value() == 0 {
            modes.push(layout.leaf_shape(i), strides.leaf(i));
        }
        i += 1;
    }
    modes.to_layout()
}
