//! Coordinates: conversion from any form to any other, and to indices.

use crate::error::{ErrorKind, LayoutError, or_panic, tri, twin};
use crate::int_tuple::{TupleBuilder, mismatch};
use crate::profile::Profile;
use crate::{Basis, CAPACITY, Int, IntTuple, Layout, try_prefix_product};

impl Layout {
    /// The result for a coordinate: an index, or a coordinate if strides are in basis directions.
    ///
    /// The coordinate may be 1-D, have an integer per mode, be natural, or anything between. An
    /// integer counts through all modes in its place, and continues in the last of them.
    ///
    /// ```
    /// use cutlet_layout_core::{layout, shape};
    ///
    /// let a = layout!((3, (2, 3)):(3, (12, 1)));
    /// assert_eq!(a.call(&shape!(16)).to_string(), "_17");
    /// assert_eq!(a.call(&shape!((1, 5))).to_string(), "_17");
    /// assert_eq!(a.call(&shape!((1, (1, 2)))).to_string(), "_17");
    /// assert_eq!(layout!((8, 4):(1@0, 1@1)).call(&shape!(11)).to_string(), "(_3,_1)");
    /// ```
    ///
    /// # Panics
    /// If [`try_call`](Self::try_call) returns an error.
    #[track_caller]
    pub const fn call(&self, coord: &IntTuple) -> IntTuple {
        or_panic(self.try_call(coord))
    }

    /// [`call`](Self::call), or the reason why there is no index.
    ///
    /// # Errors
    /// If the coordinate does not fit the shape, an integer that counts through several modes is
    /// negative, the coordinate has underscores, or the index does not fit 64 bits.
    pub const fn try_call(&self, coord: &IntTuple) -> Result<IntTuple, LayoutError> {
        if coord.has_underscore() {
            let why = "a coordinate with `_` has no single index: use slice";
            return Err(mismatch("call", &self.shape(), " at ", coord, why));
        }
        let mut sum = Sum::of(self);
        match sum.add(self, coord) {
            Ok(()) => sum.finish(),
            Err(why) => Err(mismatch("call", &self.shape(), " at ", coord, why)),
        }
    }

    /// The index of a coordinate in any form, as [`call`](Self::call) gives it, from Rust
    /// integers and tuples.
    ///
    /// ```
    /// use cutlet_layout_core::layout;
    ///
    /// let a = layout!((3, (2, 3)):(3, (12, 1)));
    /// assert_eq!(a.index(16), 17);
    /// assert_eq!(a.index((1, 5)), 17);
    /// assert_eq!(a.index((1, (1, 2))), 17);
    /// ```
    ///
    /// # Panics
    /// If [`try_call`](Self::try_call) returns an error, or strides are in basis directions.
    #[track_caller]
    pub fn index(&self, coord: impl Into<IntTuple>) -> i64 {
        match self.call(&coord.into()).as_int() {
            Some(index) => index.value(),
            None => panic!("index: {self} maps to coordinates, not to indices: use call"),
        }
    }

    /// The natural coordinate of an index of a compact layout: [`idx2crd_strided`].
    ///
    /// # Panics
    /// If [`try_idx2crd_strided`] returns an error.
    #[track_caller]
    pub const fn get_hier_coord(&self, index: Int) -> IntTuple {
        idx2crd_strided(&IntTuple::int(index), &self.shape(), &self.stride())
    }

    /// The coordinate, one integer per mode, of an index of a compact layout; an integer for a layout
    /// of a single integer, such as `8:1`.
    ///
    /// # Panics
    /// If [`try_idx2crd_strided`] returns an error.
    #[track_caller]
    pub const fn get_flat_coord(&self, index: Int) -> IntTuple {
        let hier = self.get_hier_coord(index);
        if self.profile().is_leaf() {
            return hier;
        }
        let mut builder = TupleBuilder::new();
        builder.open();
        let mut i = 0;
        while i < self.rank() {
            builder.append(&linear_coordinate(&hier.mode(i), &self.mode(i).shape()));
            i += 1;
        }
        builder.close();
        or_panic(builder.finish())
    }

    /// The 1-D coordinate of an index of a compact layout.
    ///
    /// # Panics
    /// If [`try_idx2crd_strided`] returns an error.
    #[track_caller]
    pub const fn get_1d_coord(&self, index: Int) -> Int {
        match linear_coordinate(&self.get_hier_coord(index), &self.shape()).as_int() {
            Some(coord) => coord,
            None => unreachable!(),
        }
    }
}

/// A sum of strides, which may be in several directions.
pub(crate) struct Sum {
    terms: [Int; CAPACITY],
    len: usize,
}

impl Sum {
    /// The empty sum, with a term for each direction of a layout.
    pub(crate) const fn of(layout: &Layout) -> Sum {
        let mut sum = Sum {
            terms: [Int::ZERO; CAPACITY],
            len: 0,
        };
        let mut i = 0;
        while i < layout.num_leaves() {
            let basis = layout.leaf_stride(i).basis();
            let mut known = 0;
            while known < sum.len && !sum.terms[known].basis().eq(basis) {
                known += 1;
            }
            if known == sum.len {
                sum.terms[known] = Int::ZERO.along(basis);
                sum.len += 1;
            }
            i += 1;
        }
        sum
    }

    const fn step(&mut self, digit: Int, stride: Int) -> Result<(), &'static str> {
        let mut i = 0;
        while !self.terms[i].basis().eq(stride.basis()) {
            i += 1;
        }
        let term = match digit.checked_mul(stride.along(Basis::NONE)) {
            Some(offset) => self.terms[i].along(Basis::NONE).checked_add(offset),
            None => None,
        };
        match term {
            Some(term) => {
                self.terms[i] = term.along(stride.basis());
                Ok(())
            }
            None => Err("the index does not fit 64 bits"),
        }
    }

    /// Adds the result of a layout for a coordinate; `_` adds nothing.
    pub(crate) const fn add(
        &mut self,
        layout: &Layout,
        coord: &IntTuple,
    ) -> Result<(), &'static str> {
        if coord.is_tuple() {
            if layout.profile().is_leaf() || layout.rank() != coord.rank() {
                return Err(
                    "the coordinate does not fit the shape: give each tuple the rank of its mode",
                );
            }
            let mut i = 0;
            while i < layout.rank() {
                tri!(self.add(&layout.mode(i), &coord.mode(i)));
                i += 1;
            }
            return Ok(());
        }
        if coord.has_underscore() {
            return Ok(());
        }
        let mut rest = coord.leaf(0);
        if !rest.basis().is_none() {
            return Err("the coordinate is in a basis direction: give plain integers");
        }
        if layout.profile().is_leaf() {
            return self.step(rest, layout.leaf_stride(0));
        }
        if rest.value() < 0 && layout.num_leaves() > 1 {
            return Err(
                "a negative integer cannot count through several modes: give one for each mode",
            );
        }
        let last = layout.rank() - 1;
        let mut i = 0;
        while i < last {
            let mode = layout.mode(i);
            let extent = mode.size_int();
            let (Some(digit), Some(next)) = (rest.checked_rem(extent), rest.checked_div(extent))
            else {
                unreachable!()
            };
            tri!(self.add(&mode, &IntTuple::int(digit)));
            rest = next;
            i += 1;
        }
        self.add(&layout.mode(last), &IntTuple::int(rest))
    }

    /// The sum as an integer, or as the tuple of its directions.
    pub(crate) const fn finish(&self) -> Result<IntTuple, LayoutError> {
        let mut builder = TupleBuilder::new();
        tri!(self.write(Basis::NONE, &mut builder));
        builder.finish()
    }

    const fn write(&self, at: Basis, builder: &mut TupleBuilder) -> Result<(), LayoutError> {
        let mut children = 0;
        let mut here = Int::ZERO;
        let mut i = 0;
        while i < self.len {
            let basis = self.terms[i].basis();
            if basis.eq(at) {
                here = self.terms[i].along(Basis::NONE);
            } else if basis.is_within(at) && basis.at(at.depth()) + 1 > children {
                children = basis.at(at.depth()) + 1;
            }
            i += 1;
        }
        if children == 0 {
            builder.leaf(here);
            return Ok(());
        }
        if here.value() != 0 {
            return Err(LayoutError::of(
                ErrorKind::Mismatch,
                "call: the layout has strides in a direction and in another within it, so it has no \
                 result here: use separate directions",
            ));
        }
        builder.open();
        let mut child = 0;
        while child < children {
            tri!(self.write(at.then(child), builder));
            child += 1;
        }
        builder.close();
        Ok(())
    }
}

twin! {
    /// The index of a coordinate in any form: [`Layout::call`] of `shape:stride`.
    ///
    /// ```
    /// use cutlet_layout_core::{crd2idx, shape};
    ///
    /// let (s, d) = (shape!((3, (2, 3))), shape!((3, (12, 1))));
    /// assert_eq!(crd2idx(&shape!((1, 5)), &s, &d).to_string(), "_17");
    /// ```
    crd2idx = try_crd2idx(coord: &IntTuple, shape: &IntTuple, stride: &IntTuple) -> IntTuple;

    /// The natural coordinate of a coordinate in any form: every integer is split into the integers
    /// of its mode. An integer beyond the shape continues in the last mode.
    ///
    /// ```
    /// use cutlet_layout_core::{idx2crd, shape};
    ///
    /// let s = shape!((3, (2, 3)));
    /// let five = 5;
    /// assert_eq!(idx2crd(&shape!(16), &s).to_string(), "(_1,(_1,_2))");
    /// assert_eq!(idx2crd(&shape!((1, dyn five)), &s).to_string(), "(_1,(1,2))");
    /// ```
    idx2crd = try_idx2crd(index: &IntTuple, shape: &IntTuple) -> IntTuple;

    /// The natural coordinate of an index of a compact layout `shape:stride`: for each leaf
    /// `(index / stride) % extent`.
    ///
    /// ```
    /// use cutlet_layout_core::{idx2crd_strided, shape};
    ///
    /// let coord = idx2crd_strided(&shape!(5), &shape!((2, 4)), &shape!((4, 1)));
    /// assert_eq!(coord.to_string(), "(_1,_1)");
    /// ```
    idx2crd_strided =
        try_idx2crd_strided(index: &IntTuple, shape: &IntTuple, stride: &IntTuple) -> IntTuple;

    /// The coordinate of `to` that has the same 1-D coordinate as `coord` has in `from`. If all
    /// three are tuples, each mode is converted on its own, so it must be a coordinate of its mode in
    /// both shapes. CuTe presumes this; a coordinate outside is refused here.
    ///
    /// ```
    /// use cutlet_layout_core::{crd2crd, shape};
    ///
    /// let coord = crd2crd(&shape!((3, 2)), &shape!((4, 6)), &shape!(((2, 2), (3, 2))));
    /// assert_eq!(coord.to_string(), "((_1,_1),(_2,_0))");
    /// ```
    crd2crd = try_crd2crd(coord: &IntTuple, from: &IntTuple, to: &IntTuple) -> IntTuple;

    /// The 1-D coordinate of a coordinate in any form.
    ///
    /// ```
    /// use cutlet_layout_core::{linear_coordinate, shape};
    ///
    /// assert_eq!(linear_coordinate(&shape!((1, (1, 2))), &shape!((3, (2, 3)))).to_string(), "_16");
    /// ```
    linear_coordinate = try_linear_coordinate(coord: &IntTuple, shape: &IntTuple) -> IntTuple;
}

/// [`crd2idx`], or the reason why there is no index.
///
/// # Errors
/// If shape and stride are not congruent, or [`Layout::try_call`] returns an error.
pub const fn try_crd2idx(
    coord: &IntTuple,
    shape: &IntTuple,
    stride: &IntTuple,
) -> Result<IntTuple, LayoutError> {
    tri!(Layout::try_from_shape_stride(shape, stride)).try_call(coord)
}

/// [`idx2crd`], or the reason why there is no coordinate.
///
/// # Errors
/// If the index does not fit the shape, is negative where it is split, or has underscores; and for
/// extents below 1.
pub const fn try_idx2crd(index: &IntTuple, shape: &IntTuple) -> Result<IntTuple, LayoutError> {
    tri!(Layout::try_col_major(shape));
    let mut coord = [Int::ZERO; CAPACITY];
    match digits(index, shape, &mut coord, 0) {
        Ok(_) => Ok(IntTuple::from_parts(coord, *shape.profile())),
        Err(why) => Err(mismatch("idx2crd", shape, " at ", index, why)),
    }
}

/// Writes the digits of a shape's leaves from `at` on, and returns where they end.
const fn digits(
    index: &IntTuple,
    shape: &IntTuple,
    coord: &mut [Int; CAPACITY],
    at: usize,
) -> Result<usize, &'static str> {
    if index.is_tuple() {
        if !shape.is_tuple() || shape.rank() != index.rank() {
            return Err("the index does not fit the shape: give each tuple the rank of its mode");
        }
        let mut at = at;
        let mut i = 0;
        while i < shape.rank() {
            at = tri!(digits(&index.mode(i), &shape.mode(i), coord, at));
            i += 1;
        }
        return Ok(at);
    }
    if index.has_underscore() {
        return Err("`_` is not an index: give an integer");
    }
    let mut rest = index.leaf(0);
    if !rest.basis().is_none() {
        return Err("the coordinate is in a basis direction: give plain integers");
    }
    let leaves = shape.num_leaves();
    if leaves == 1 {
        coord[at] = rest;
        return Ok(at + 1);
    }
    if rest.value() < 0 {
        return Err("a negative integer cannot be split: give one of at least 0");
    }
    let last = leaves - 1;
    let mut i = 0;
    while i < last {
        let extent = shape.leaf(i);
        let (Some(digit), Some(next)) = (rest.checked_rem(extent), rest.checked_div(extent)) else {
            unreachable!()
        };
        coord[at + i] = digit;
        rest = next;
        i += 1;
    }
    // Within the shape, a mode of static extent 1 has the coordinate `_0`.
    let is_zero = rest.value() == 0 && shape.leaf(last).is_constant(1);
    coord[at + last] = if is_zero { Int::ZERO } else { rest };
    Ok(at + leaves)
}

/// [`idx2crd_strided`], or the reason why there is no coordinate.
///
/// # Errors
/// If index, shape and stride do not fit each other, or a stride is 0 where the extent is not 1.
pub const fn try_idx2crd_strided(
    index: &IntTuple,
    shape: &IntTuple,
    stride: &IntTuple,
) -> Result<IntTuple, LayoutError> {
    let layout = tri!(Layout::try_from_shape_stride(shape, stride));
    let mut coord = [Int::ZERO; CAPACITY];
    match strided_digits(index, &layout, &mut coord, 0) {
        Ok(_) => Ok(IntTuple::from_parts(coord, *shape.profile())),
        Err(why) => Err(mismatch("idx2crd", shape, " at ", index, why)),
    }
}

/// Writes the digits of a layout's leaves from `at` on, and returns where they end.
const fn strided_digits(
    index: &IntTuple,
    layout: &Layout,
    coord: &mut [Int; CAPACITY],
    at: usize,
) -> Result<usize, &'static str> {
    let mut at = at;
    if index.is_tuple() {
        if layout.profile().is_leaf() || layout.rank() != index.rank() {
            return Err("the index does not fit the shape: give each tuple the rank of its mode");
        }
        let mut i = 0;
        while i < layout.rank() {
            at = tri!(strided_digits(&index.mode(i), &layout.mode(i), coord, at));
            i += 1;
        }
        return Ok(at);
    }
    if index.has_underscore() {
        return Err("`_` is not an index: give an integer");
    }
    if !index.leaf(0).basis().is_none() {
        return Err("an index is a plain integer, not one in a basis direction");
    }
    let mut i = 0;
    while i < layout.num_leaves() {
        let extent = layout.leaf_shape(i);
        if !extent.is_constant(1) {
            let digit = match index.leaf(0).checked_div(layout.leaf_stride(i)) {
                Some(quotient) => quotient.checked_rem(extent),
                None => None,
            };
            coord[at] = match digit {
                Some(digit) => digit,
                None if extent.value() == 1 => Int::dynamic(0),
                None => return Err("a stride is 0 or in a basis direction: give another"),
            };
        }
        at += 1;
        i += 1;
    }
    Ok(at)
}

/// [`crd2crd`], or the reason why there is no coordinate.
///
/// # Errors
/// If the coordinate is not inside `from`, `to` has no such coordinate, or the shapes' ranks differ
/// where all are tuples.
pub const fn try_crd2crd(
    coord: &IntTuple,
    from: &IntTuple,
    to: &IntTuple,
) -> Result<IntTuple, LayoutError> {
    if !(coord.is_tuple() && from.is_tuple() && to.is_tuple()) {
        let linear = tri!(try_linear_coordinate(coord, from));
        let shapes = [
            tri!(Layout::try_col_major(from)),
            tri!(Layout::try_col_major(to)),
        ];
        if !is_inside(coord, &shapes[0]) {
            let why = "the coordinate is not inside this shape, so no other shape has it: give one that is";
            return Err(mismatch("crd2crd", coord, " of ", from, why));
        }
        if !is_inside(&linear, &shapes[1]) {
            let why = "the shape has fewer coordinates: give one of as many in each mode, or a 1-D coordinate";
            return Err(mismatch("crd2crd", coord, " to ", to, why));
        }
        return try_idx2crd(&linear, to);
    }
    if coord.rank() != from.rank() || coord.rank() != to.rank() {
        let why = "coordinate and shapes have different ranks: give all three the same";
        return Err(mismatch("crd2crd", coord, " to ", to, why));
    }
    let mut builder = TupleBuilder::new();
    builder.open();
    let mut i = 0;
    while i < coord.rank() {
        builder.append(&tri!(try_crd2crd(
            &coord.mode(i),
            &from.mode(i),
            &to.mode(i)
        )));
        i += 1;
    }
    builder.close();
    builder.finish()
}

/// Whether each integer of a coordinate, which fits the shape, is below the size of its mode.
const fn is_inside(coord: &IntTuple, shape: &Layout) -> bool {
    if !coord.is_tuple() {
        let value = coord.leaf(0).value();
        return value >= 0 && value < shape.size();
    }
    let mut i = 0;
    while i < coord.rank() {
        if !is_inside(&coord.mode(i), &shape.mode(i)) {
            return false;
        }
        i += 1;
    }
    true
}

/// [`linear_coordinate`], or the reason why there is none.
///
/// # Errors
/// If [`Layout::try_call`] returns an error, or if the shape's size does not fit 64 bits.
pub const fn try_linear_coordinate(
    coord: &IntTuple,
    shape: &IntTuple,
) -> Result<IntTuple, LayoutError> {
    if coord.is_int() {
        return Ok(*coord);
    }
    try_crd2idx(coord, shape, &tri!(try_prefix_product(shape)))
}

/// The natural coordinates of a shape, in colexicographic order.
///
/// ```
/// use cutlet_layout_core::{coordinates, shape};
///
/// let all: Vec<String> = coordinates(&shape!((2, (1, 2)))).map(|c| c.to_string()).collect();
/// assert_eq!(all, ["(0,(0,0))", "(1,(0,0))", "(0,(0,1))", "(1,(0,1))"]);
/// ```
pub const fn coordinates(shape: &IntTuple) -> Coordinates {
    let mut done = shape.has_underscore();
    let mut i = 0;
    while i < shape.num_leaves() && !done {
        done = shape.leaf(i).value() < 1;
        i += 1;
    }
    Coordinates {
        shape: *shape,
        digits: [0; CAPACITY],
        done,
    }
}

/// Iterates over the coordinates of a shape; see [`coordinates`].
#[derive(Clone, Debug)]
pub struct Coordinates {
    shape: IntTuple,
    digits: [i64; CAPACITY],
    done: bool,
}

impl Iterator for Coordinates {
    type Item = IntTuple;

    fn next(&mut self) -> Option<IntTuple> {
        if self.done {
            return None;
        }
        let profile: Profile = *self.shape.profile();
        let coord = IntTuple::from_parts(self.digits.map(Int::dynamic), profile);
        self.done = true;
        for i in 0..self.shape.num_leaves() {
            self.digits[i] += 1;
            if self.digits[i] < self.shape.leaf(i).value() {
                self.done = false;
                break;
            }
            self.digits[i] = 0;
        }
        Some(coord)
    }
}

/// Coordinates from Rust tuples of dynamic integers: `(1, (0, 2)).into()`.
macro_rules! from_rust_tuple {
    ($($name:ident)+) => {
        impl<$($name: Into<IntTuple>),+> From<($($name,)+)> for IntTuple {
            #[expect(non_snake_case, reason = "the type parameters name the values too")]
            fn from(($($name,)+): ($($name,)+)) -> IntTuple {
                IntTuple::tuple(&[$($name.into()),+])
            }
        }
    };
}
from_rust_tuple!(A);
from_rust_tuple!(A B);
from_rust_tuple!(A B C);
from_rust_tuple!(A B C D);
from_rust_tuple!(A B C D E);
from_rust_tuple!(A B C D E F);
