//! Functional composition of layouts: `R(c) = A(B(c))`, found whenever a layout computes it.
//!
//! Each leaf `s:d` of `B` is walked by digits. `d` is written in the mixed radix of `A`'s coalesced
//! shape, whose last mode has no end, also if its extent is 1. The walk is straight until a digit leaves its extent;
//! there `A` turns, and the result has a mode boundary. It has no other boundaries. The modes of `B` must
//! not carry into each other: the sums of their digits must stay inside `A`'s extents. If `A` maps
//! to an index more than once, a turn or a carry may cancel out. Therefore the values are compared
//! before a composition is refused.

use crate::error::{ErrorKind, LayoutError, or_panic, tri};
use crate::flat_modes::{Knowledge, Modes};
use crate::layout::LayoutBuilder;
use crate::text::Text;
use crate::{Basis, CAPACITY, Int, Layout};

/// The size up to which all values of a composition are compared before it is refused.
const ENUMERATED: i64 = 4096;

/// The number of values that the message of a refused composition shows.
const SHOWN: i64 = 12;

/// The layout `R`, compatible with `b`, with `R(c) = a(b(c))` for every coordinate `c` of `b`.
///
/// If such an `R` would need more than [`CAPACITY`] leaves, those inside a mode of `b` are merged. `R`
/// then has `b`'s modes, and is the same function of coordinates with an integer for each mode.
///
/// `a` is defined beyond its size: its last mode continues, also if its extent is 1. If `b` has strides in basis
/// directions, each direction steps through the mode of `a` that it names.
///
/// ```
/// use cutlet_layout_core::{composition, layout};
///
/// let r = composition(&layout!((6, 2):(8, 2)), &layout!((4, 3):(3, 1)));
/// assert_eq!(r.to_string(), "((_2,_2),_3):((_24,_2),_8)");
/// assert_eq!(composition(&layout!(1:8), &layout!(4:1)).to_string(), "_4:_8");
/// ```
///
/// # Panics
/// If [`try_composition`] returns an error; in a `const`, its message is a compile error.
#[track_caller]
pub const fn composition(a: &Layout, b: &Layout) -> Layout {
    or_panic(try_composition(a, b))
}

/// [`composition`], or the reason why there is none.
///
/// ```
/// use cutlet_layout_core::{layout, try_composition};
///
/// let refused = try_composition(&layout!((4, 6, 8):(2, 3, 5)), &layout!(6:3)).unwrap_err();
/// assert!(refused.message().ends_with("takes 0, 6, 7, 8, 9, 15: no layout does"));
/// ```
///
/// # Errors
/// If no layout computes the composition, a stride does not fit 64 bits, or the result needs more
/// than [`CAPACITY`] leaves even if those inside a mode are merged. An `a` that maps to an index more than once may
/// have strides that cancel out. A composition of more than 4096 coordinates is also refused if it is a layout only for
/// this reason.
pub const fn try_composition(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let composed = compose(a, b);
    let Err(error) = &composed else {
        return composed;
    };
    if !matches!(error.kind(), ErrorKind::Capacity) {
        return composed;
    }
    // Chains of compositions gather leaves of dynamic extent 1, and leaves that continue each other.
    match merged_inside(b) {
        Some(merged) => compose(a, &merged),
        None => composed,
    }
}

const fn compose(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
    let mut forms = Forms {
        fewest: Parts::EMPTY,
        as_cute: if a.is_static() && b.is_static() {
            None
        } else {
            Some(Parts::EMPTY)
        },
    };
    let mut i = 0;
    while i < b.num_leaves() {
        if is_group_leader(b, i) {
            tri!(compose_group(a, b, i, &mut forms));
        }
        i += 1;
    }
    let mut builder = LayoutBuilder::new();
    if let Some(parts) = &forms.as_cute {
        match parts.write(b, &mut builder) {
            Ok(()) => return Ok(*builder.written()),
            Err(error) if !matches!(error.kind(), ErrorKind::Capacity) => return Err(error),
            Err(_) => builder = LayoutBuilder::new(),
        }
    }
    tri!(forms.fewest.write(b, &mut builder));
    Ok(*builder.written())
}

/// The layout with as few leaves in each of its modes as their values allow; `None` if these are all
/// of its leaves. Its modes are the same functions.
const fn merged_inside(layout: &Layout) -> Option<Layout> {
    let mut builder = LayoutBuilder::new();
    let is_leaf = layout.profile().is_leaf();
    if !is_leaf {
        builder.open();
    }
    let mut i = 0;
    while i < layout.rank() {
        match Modes::coalesced(&layout.mode(i), Knowledge::Values).to_layout() {
            Ok(mode) => builder.append(&mode),
            Err(_) => return None,
        }
        i += 1;
    }
    if !is_leaf {
        builder.close();
    }
    match builder.finish() {
        Ok(merged) if merged.num_leaves() < layout.num_leaves() => Some(merged),
        _ => None,
    }
}

/// The two forms of a composition.
struct Forms {
    /// With the fewest modes.
    fewest: Parts,
    /// As CuTe writes it: modes of dynamic extent 1 are kept. `None` if all integers are static,
    /// and if there is no room for these modes.
    as_cute: Option<Parts>,
}

/// The modes that the leaves of `b` become.
#[derive(Clone, Copy)]
struct Parts {
    modes: Modes,
    of_leaf: [(u8, u8); CAPACITY],
}

impl Parts {
    const EMPTY: Parts = Parts {
        modes: Modes::EMPTY,
        of_leaf: [(0, 0); CAPACITY],
    };

    const fn range(&self, leaf: usize) -> (usize, usize) {
        let (start, end) = self.of_leaf[leaf];
        (start as usize, end as usize)
    }

    /// Records the modes from `start` on as those of a leaf.
    const fn set_range(&mut self, leaf: usize, start: usize) {
        self.of_leaf[leaf] = (start as u8, self.modes.len as u8);
    }

    /// Adds modes `start..end` of a list as those of a leaf; `false` if there is no room.
    const fn add(&mut self, leaf: usize, modes: &Modes, start: usize, end: usize) -> bool {
        let begin = self.modes.len;
        if end - start > CAPACITY - begin {
            return false;
        }
        let mut i = start;
        while i < end {
            self.modes.push(modes.shape[i], modes.stride[i]);
            i += 1;
        }
        self.set_range(leaf, begin);
        true
    }

    /// Writes and checks the layout.
    const fn write(&self, b: &Layout, builder: &mut LayoutBuilder) -> Result<(), LayoutError> {
        let mut i = 0;
        while i < b.num_leaves() {
            let (start, end) = self.range(i);
            builder.append_range(b.profile(), i, &self.modes, start, end);
            i += 1;
        }
        builder.check()
    }

    /// The value of a leaf's modes at one of its coordinates. The value may wrap; the layout of
    /// these modes is then refused when it is built.
    const fn value(&self, leaf: usize, coordinate: i64) -> i64 {
        let (mut i, end) = self.range(leaf);
        let mut rest = coordinate;
        let mut value: i64 = 0;
        while i < end {
            let digit = rest % self.modes.shape[i].value();
            value = value.wrapping_add(digit.wrapping_mul(self.modes.stride[i].value()));
            rest /= self.modes.shape[i].value();
            i += 1;
        }
        value
    }
}

/// Whether a leaf is the first of its group: the leaves of `b` with the same direction, which step
/// through the same mode of `a`.
const fn is_group_leader(b: &Layout, leaf: usize) -> bool {
    let mut i = 0;
    while i < leaf {
        if b.leaf_stride(i).basis().eq(b.leaf_stride(leaf).basis()) {
            return false;
        }
        i += 1;
    }
    true
}

const fn compose_group(
    a: &Layout,
    b: &Layout,
    leader: usize,
    forms: &mut Forms,
) -> Result<(), LayoutError> {
    let basis = b.leaf_stride(leader).basis();
    tri!(check_directions(a, b, basis));
    if basis.is_none() {
        compose_group_through(a, a, b, leader, forms)
    } else {
        let mode = tri!(mode_in_direction(a, b, basis));
        compose_group_through(&mode, a, b, leader, forms)
    }
}

/// Composes a group with `mode`, which is the mode of `a` that its leaves step through.
const fn compose_group_through(
    mode: &Layout,
    a: &Layout,
    b: &Layout,
    leader: usize,
    forms: &mut Forms,
) -> Result<(), LayoutError> {
    let mut walker = Walker {
        values: &unbounded(mode, Knowledge::Values),
        statics: None,
        is_static: mode.is_static(),
    };
    if walker.is_static && b.is_static() {
        return walk_or_enumerate(&walker, a, b, leader, forms);
    }
    let statics = unbounded(mode, Knowledge::Static);
    walker.statics = Some(&statics);
    walk_or_enumerate(&walker, a, b, leader, forms)
}

const fn walk_or_enumerate(
    walker: &Walker,
    a: &Layout,
    b: &Layout,
    leader: usize,
    forms: &mut Forms,
) -> Result<(), LayoutError> {
    let begin = forms.fewest.modes.len;
    let begin_as_cute = match &forms.as_cute {
        Some(parts) => parts.modes.len,
        None => 0,
    };
    let Err((leaf, refusal)) = walk_group(walker, b, leader, forms) else {
        return Ok(());
    };
    let may_cancel = matches!(refusal, Refusal::Turn { .. } | Refusal::Carry { .. });
    forms.fewest.modes.len = begin;
    if !may_cancel || !enumerate_group(walker, b, leader, &mut forms.fewest) {
        return Err(refused(a, b, leaf, refusal));
    }
    if let Some(parts) = &mut forms.as_cute {
        parts.modes.len = begin_as_cute;
        let basis = b.leaf_stride(leader).basis();
        let mut has_room = true;
        let mut i = leader;
        while i < b.num_leaves() {
            if b.leaf_stride(i).basis().eq(basis) {
                let (start, end) = forms.fewest.range(i);
                has_room = has_room && parts.add(i, &forms.fewest.modes, start, end);
            }
            i += 1;
        }
        if !has_room {
            forms.as_cute = None;
        }
    }
    Ok(())
}

/// Walks the leaves of a group. An error names the leaf at which it occurs.
const fn walk_group(
    walker: &Walker,
    b: &Layout,
    leader: usize,
    forms: &mut Forms,
) -> Result<(), (usize, Refusal)> {
    let basis = b.leaf_stride(leader).basis();
    let mut room = Room {
        reach: [0; CAPACITY],
        digits: [0; CAPACITY],
        written: Modes::EMPTY,
    };
    let mut i = leader;
    while i < b.num_leaves() {
        let stride = b.leaf_stride(i);
        if stride.basis().eq(basis) {
            let (shape, step) = (b.leaf_shape(i), stride.along(Basis::NONE));
            if let Err(refusal) = walker.walk(i, shape, step, &mut room, forms) {
                return Err((i, refusal));
            }
        }
        i += 1;
    }
    let mut k = 0;
    while k + 1 < walker.values.len {
        let extent = walker.values.shape[k];
        let reach = room.reach[k];
        if reach >= extent.value() {
            return Err((leader, Refusal::Carry { extent, reach }));
        }
        k += 1;
    }
    Ok(())
}

/// Compares every value of a small group, and returns whether a layout was found. The strides of
/// `a` may cancel a turn or a carry: `(2,2,2):(0,50,50) o 3:3` takes 0, 50, 100, which is `3:50`.
const fn enumerate_group(walker: &Walker, b: &Layout, leader: usize, parts: &mut Parts) -> bool {
    let basis = b.leaf_stride(leader).basis();
    let mut size: i64 = 1;
    let mut is_static = walker.is_static;
    let mut i = leader;
    while i < b.num_leaves() {
        let (shape, stride) = (b.leaf_shape(i), b.leaf_stride(i));
        if stride.basis().eq(basis) {
            if stride.value() < 0 || shape.value() > ENUMERATED {
                return false;
            }
            size *= shape.value();
            if size > ENUMERATED {
                return false;
            }
            is_static = is_static && shape.is_static() && stride.is_static();
        }
        i += 1;
    }
    i = leader;
    while i < b.num_leaves() {
        if b.leaf_stride(i).basis().eq(basis) {
            let start = parts.modes.len;
            let (extent, step) = (b.leaf_shape(i).value(), b.leaf_stride(i).value());
            if !walker.by_values(extent, step, is_static, &mut parts.modes) {
                return false;
            }
            parts.set_range(i, start);
        }
        i += 1;
    }
    let mut c = 0;
    while c < size {
        let mut rest = c;
        let mut index = 0;
        let mut sum: i64 = 0;
        i = leader;
        while i < b.num_leaves() {
            if b.leaf_stride(i).basis().eq(basis) {
                let digit = rest % b.leaf_shape(i).value();
                rest /= b.leaf_shape(i).value();
                index += digit * b.leaf_stride(i).value();
                sum = sum.wrapping_add(parts.value(i, digit));
            }
            i += 1;
        }
        match walker.value(index) {
            Some(value) if value == sum => {}
            _ => return false,
        }
        c += 1;
    }
    true
}

/// Refuses two directions of which one lies within the other. They would step through the same mode
/// of `a` in different groups, and carries between them would be missed.
const fn check_directions(a: &Layout, b: &Layout, basis: Basis) -> Result<(), LayoutError> {
    let mut i = 0;
    while i < b.num_leaves() {
        let stride = b.leaf_stride(i);
        let moves = stride.value() != 0 && b.leaf_shape(i).value() > 1;
        if moves && basis.is_within(stride.basis()) && !basis.eq(stride.basis()) {
            let mut text = Text::new();
            text.str("composition: ").layout(a).str(" o ").layout(b);
            text.str(": the right side steps in a direction and in another within it: use separate directions");
            return Err(LayoutError::new(ErrorKind::Mismatch, &text));
        }
        i += 1;
    }
    Ok(())
}

const fn mode_in_direction(a: &Layout, b: &Layout, basis: Basis) -> Result<Layout, LayoutError> {
    let mut mode = *a;
    let mut level = 0;
    while level < basis.depth() {
        mode = match mode.try_mode(basis.at(level)) {
            Ok(mode) => mode,
            Err(_) => {
                let mut text = Text::new();
                text.str("composition: ").layout(a).str(" o ").layout(b);
                text.str(": the left side has no mode for the right side's direction ");
                text.int(Int::ONE.along(basis));
                return Err(LayoutError::new(ErrorKind::Mismatch, &text));
            }
        };
        level += 1;
    }
    Ok(mode)
}

/// Why a mode of `b` cannot be walked.
#[derive(Clone, Copy)]
enum Refusal {
    /// The walk turns after a number of steps that does not divide the extent.
    Turn { steps: i64 },
    /// A negative stride leads below 0, where an `a` of several modes is not defined.
    Negative,
    /// One step moves in two basis directions.
    Diagonal,
    /// The modes of `b` together leave an extent of `a`.
    Carry { extent: Int, reach: i64 },
    /// A stride does not fit 64 bits.
    Overflow,
    /// No room for another mode.
    Capacity,
}

/// The counters of a group's walk, and buffers that its leaves share.
struct Room {
    /// The largest sum of the leaves' digits in each mode.
    reach: [i64; CAPACITY],
    digits: [i64; CAPACITY],
    written: Modes,
}

/// Walks modes `s:d` through a layout.
#[derive(Clone, Copy)]
struct Walker<'a> {
    /// The layout, simplified by all values.
    values: &'a Modes,
    /// The layout, simplified by static integers only, if that decides the form of the result.
    statics: Option<&'a Modes>,
    is_static: bool,
}

impl Walker<'_> {
    /// Adds the modes that a leaf `s:d` becomes.
    const fn walk(
        &self,
        leaf: usize,
        s: Int,
        d: Int,
        room: &mut Room,
        forms: &mut Forms,
    ) -> Result<(), Refusal> {
        let fewest = &mut forms.fewest;
        let start = fewest.modes.len;
        let repeats = d.value() == 0;
        if repeats {
            tri!(push(&mut fewest.modes, s, d));
        } else {
            tri!(self.by_digits(s, d, room, &mut fewest.modes));
        }
        fewest.set_range(leaf, start);
        let Some(as_cute) = &mut forms.as_cute else {
            return Ok(());
        };
        let written = &mut room.written;
        let has_room = if !repeats
            && let Some(statics) = self.statics
            && by_division(statics, s, d, written).is_ok()
            && written.computes_the_same(&fewest.modes, start)
        {
            as_cute.add(leaf, written, 0, written.len)
        } else {
            as_cute.add(leaf, &fewest.modes, start, fewest.modes.len)
        };
        if !has_room {
            forms.as_cute = None;
        }
        Ok(())
    }

    /// Adds a mode to `out` for each straight run of `s:d`.
    const fn by_digits(
        &self,
        s: Int,
        d: Int,
        room: &mut Room,
        out: &mut Modes,
    ) -> Result<(), Refusal> {
        let a = self.values;
        let last = a.len - 1;
        let is_static = self.is_static && s.is_static() && d.is_static();
        if last == 0 {
            return match d.checked_mul(a.stride[0]) {
                Some(stride) => push(out, s, stride),
                None => Err(Refusal::Overflow),
            };
        }
        if s.value() == 1 {
            // The stride of an extent of 1 has no effect. This one is what CuTe prints.
            let written = &mut room.written;
            let kept = by_division(a, s, d, written).is_ok() && written.len == 1;
            let stride = if kept { written.stride[0] } else { Int::ZERO };
            return push(out, s, stride);
        }
        if d.value() < 0 {
            return Err(Refusal::Negative);
        }
        let mut rest = s.value();
        let mut step = d.value();
        loop {
            let run = tri!(run(a, rest, step, &mut room.digits));
            if run.steps < rest && rest % run.steps != 0 {
                return Err(Refusal::Turn { steps: run.steps });
            }
            let mut k = 0;
            while k < run.end {
                room.reach[k] = match room.digits[k].checked_mul(run.steps - 1) {
                    Some(reached) => room.reach[k].saturating_add(reached),
                    None => i64::MAX,
                };
                k += 1;
            }
            let steps = Int::fixed(run.steps).with_static(is_static);
            tri!(push(out, steps, run.stride.with_static(is_static)));
            if run.steps == rest {
                return Ok(());
            }
            rest /= run.steps;
            step = match step.checked_mul(run.steps) {
                Some(step) => step,
                None => return Err(Refusal::Overflow),
            };
        }
    }

    /// The index of a 1-D coordinate; `None` in basis directions and beyond 64 bits.
    const fn value(&self, coordinate: i64) -> Option<i64> {
        let mut rest = coordinate;
        let mut value: i64 = 0;
        let mut k = 0;
        while k < self.values.len {
            let extent = self.values.shape[k].value();
            let stride = self.values.stride[k];
            let digit = if k + 1 == self.values.len {
                rest
            } else {
                rest % extent
            };
            rest /= extent;
            let term = match digit.checked_mul(stride.value()) {
                Some(term) if stride.basis().is_none() => value.checked_add(term),
                _ => None,
            };
            value = match term {
                Some(value) => value,
                None => return None,
            };
            k += 1;
        }
        Some(value)
    }

    /// Adds the modes of `extent:step`, found by comparing every value; `false` if the values turn
    /// after a number of steps that does not divide the extent.
    const fn by_values(&self, extent: i64, step: i64, is_static: bool, out: &mut Modes) -> bool {
        let mut rest = extent;
        let mut step = step;
        while rest > 1 {
            let Some(stride) = self.value(step) else {
                return false;
            };
            let mut steps = 2;
            while steps < rest {
                let straight = match (steps.checked_mul(step), steps.checked_mul(stride)) {
                    (Some(index), Some(value)) => match self.value(index) {
                        Some(found) => found == value,
                        None => return false,
                    },
                    _ => return false,
                };
                if !straight {
                    break;
                }
                steps += 1;
            }
            if rest % steps != 0 || out.len == CAPACITY {
                return false;
            }
            out.push(
                Int::fixed(steps).with_static(is_static),
                Int::fixed(stride).with_static(is_static),
            );
            rest /= steps;
            step = match step.checked_mul(steps) {
                Some(step) => step,
                None => return false,
            };
        }
        if extent == 1 && out.len < CAPACITY {
            out.push(Int::fixed(1).with_static(is_static), Int::ZERO);
        }
        true
    }
}

/// A run of steps with the same stride.
struct Run {
    /// The step has digits in modes `0..end` only; the last mode does not count.
    end: usize,
    steps: i64,
    stride: Int,
}

/// The first straight run of steps of `step` through a layout, at most `limit` steps long. Writes
/// the step's digits up to the run's `end` to `digits`.
const fn run(
    a: &Modes,
    limit: i64,
    step: i64,
    digits: &mut [i64; CAPACITY],
) -> Result<Run, Refusal> {
    let last = a.len - 1;
    let mut run = Run {
        end: 0,
        steps: limit,
        stride: Int::ZERO,
    };
    let mut high = step;
    let mut k = 0;
    while k < last && high > 0 {
        let extent = a.shape[k].value();
        let digit = if high < extent { high } else { high % extent };
        high = if high < extent { 0 } else { high / extent };
        digits[k] = digit;
        if digit > 0 {
            run.stride = tri!(plus(run.stride, digit, a.stride[k]));
            let until_turn = if digit == 1 {
                extent
            } else {
                (extent - 1) / digit + 1
            };
            if until_turn < run.steps {
                run.steps = until_turn;
            }
        }
        k += 1;
    }
    run.end = k;
    if high > 0 {
        run.stride = tri!(plus(run.stride, high, a.stride[last]));
    }
    Ok(run)
}

/// CuTe's algorithm, which divides the extents one after the other. It is right only if every
/// division is exact. It gives the form in which CuTe writes a result with dynamic integers: which
/// modes are kept and which integers stay static. Overwrites `out`.
const fn by_division(a: &Modes, s: Int, d: Int, out: &mut Modes) -> Result<(), Refusal> {
    out.len = 0;
    let last = a.len - 1;
    let mut rest_shape = s;
    let mut rest_stride = d;
    let mut k = 0;
    while k < last {
        let extent = a.shape[k];
        let next_shape = tri!(whole(extent.checked_ceil_div(rest_stride)));
        let next_stride = tri!(whole(rest_stride.checked_ceil_div(extent)));
        if !next_shape.is_constant(1) && !rest_shape.is_constant(1) {
            let new_shape = next_shape.min(rest_shape);
            let stride = tri!(whole(rest_stride.checked_mul(a.stride[k])));
            tri!(push(out, new_shape, stride));
            rest_shape = tri!(whole(rest_shape.checked_div(new_shape)));
        }
        rest_stride = next_stride;
        k += 1;
    }
    if out.len == 0 || !rest_shape.is_constant(1) {
        let stride = tri!(whole(rest_stride.checked_mul(a.stride[last])));
        tri!(push(out, rest_shape, stride));
    }
    Ok(())
}

/// The number of leading coordinates among `extent` coordinates `0, step, 2·step, …` that a layout
/// maps to multiples of one stride, and this stride. `None` if steps are negative or diagonal.
pub(crate) const fn first_run(a: &Layout, extent: Int, step: Int) -> Option<(i64, Int)> {
    if step.value() < 0 {
        return None;
    }
    let modes = unbounded(a, Knowledge::Values);
    match run(&modes, extent.value(), step.value(), &mut [0; CAPACITY]) {
        Ok(run) => Some((run.steps, run.stride)),
        Err(_) => None,
    }
}

/// A layout's modes as a function of every coordinate: the last mode continues beyond the size,
/// also if its extent is 1. Other modes of extent 1 are ignored, as far as `knowledge` tells.
const fn unbounded(a: &Layout, knowledge: Knowledge) -> Modes {
    let mut modes = a.modes();
    let last = modes.len - 1;
    if modes.shape[last].value() == 1 {
        modes.shape[last] = Int::fixed(2).with_static(modes.shape[last].is_static());
    }
    modes.coalesce(knowledge);
    modes
}

const fn push(out: &mut Modes, shape: Int, stride: Int) -> Result<(), Refusal> {
    if out.len == CAPACITY {
        return Err(Refusal::Capacity);
    }
    out.push(shape, stride);
    Ok(())
}

const fn whole(int: Option<Int>) -> Result<Int, Refusal> {
    match int {
        Some(int) => Ok(int),
        None => Err(Refusal::Overflow),
    }
}

const fn plus(sum: Int, digit: i64, stride: Int) -> Result<Int, Refusal> {
    if stride.value() == 0 {
        return Ok(sum);
    }
    if sum.value() != 0 && !sum.same_direction(stride) {
        return Err(Refusal::Diagonal);
    }
    let term = tri!(whole(Int::fixed(digit).checked_mul(stride)));
    whole(if sum.value() == 0 {
        Some(term)
    } else {
        sum.checked_add(term)
    })
}

const fn refused(a: &Layout, b: &Layout, leaf: usize, refusal: Refusal) -> LayoutError {
    let mut text = Text::new();
    text.str("composition: ");
    if let Refusal::Capacity = refusal {
        // The reason comes first: operands of this length do not leave room for it.
        text.str("the result needs more than ")
            .number(CAPACITY as i64);
        text.str(if a.is_static() && b.is_static() {
            " leaves (CAPACITY), so compose layouts of fewer modes: "
        } else {
            " leaves (CAPACITY), so give static integers, of which extents of 1 are dropped: "
        });
    }
    text.layout(a).str(" o ").layout(b);
    let kind = match refusal {
        Refusal::Turn { .. } | Refusal::Carry { .. } => {
            let complete = takes(a, b, &mut text);
            text.str(": no layout does");
            if !complete {
                because(b, leaf, &refusal, &mut text);
            }
            ErrorKind::NotRepresentable
        }
        Refusal::Negative => {
            text.str(": the stride ").int(b.leaf_stride(leaf));
            text.str(
                " leads below 0, where the left side is not defined: use strides of at least 0",
            );
            ErrorKind::NotRepresentable
        }
        Refusal::Diagonal => {
            text.str(": a step of ").int(b.leaf_stride(leaf));
            text.str(" moves in two directions at once, but a stride has one: step along each mode separately");
            ErrorKind::NotRepresentable
        }
        Refusal::Overflow => {
            text.str(": a stride of the result does not fit 64 bits");
            ErrorKind::Overflow
        }
        Refusal::Capacity => ErrorKind::Capacity,
    };
    LayoutError::new(kind, &text)
}

/// Writes the first values of the composition, and returns whether these are all of them.
const fn takes(a: &Layout, b: &Layout, text: &mut Text) -> bool {
    if a.has_basis() || b.has_basis() {
        return false;
    }
    let mut c = 0;
    while c < b.size() && c < SHOWN {
        let index = match b.try_at(c) {
            Some(index) => a.try_at(index),
            None => None,
        };
        let Some(value) = index else {
            return false;
        };
        text.str(if c == 0 { " takes " } else { ", " })
            .number(value);
        c += 1;
    }
    if c < b.size() {
        text.str(", …");
    }
    c == b.size()
}

const fn because(b: &Layout, leaf: usize, refusal: &Refusal, text: &mut Text) {
    match refusal {
        Refusal::Turn { steps } => {
            text.str(", because the left side turns after ")
                .number(*steps);
            text.str(" of the steps ")
                .int(b.leaf_shape(leaf))
                .str(":")
                .int(b.leaf_stride(leaf));
        }
        Refusal::Carry { extent, reach } => {
            text.str(", because the modes of the right side together reach ")
                .number(*reach);
            text.str(" in an extent of ").int(*extent).str(" and carry");
        }
        _ => {}
    }
}
