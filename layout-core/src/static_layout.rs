//! Layouts as types: the compiler computes a kernel's layouts and leaves only immediates in its
//! code.
//!
//! A [`StaticLayout`] is a zero-sized type with a [`Layout`] as its associated constant. Modes are
//! written as types ([`M`] for a plain stride, [`E`] for a stride in a basis direction), tuples
//! concatenate, and [`L!`](crate::L) turns CuTe's notation into such types:
//!
//! ```
//! use cutlet_layout_core::{L, StaticLayout};
//!
//! type RowMajor = L!((4, 8):(8, 1));
//! assert_eq!(RowMajor::LAYOUT.at(5), 9); // (1, 1) is 8 + 1
//! assert_eq!(RowMajor::SIZE, 32);
//! ```

use core::marker::PhantomData;

#[cfg(target_arch = "nvptx64")]
use crate::entry::entry;
use crate::error::or_panic;
use crate::layout::LayoutBuilder;
use crate::{Basis, FragmentLayout, Int, Layout, composition};

/// A layout that is known to the compiler.
///
/// A layout of your own is a type that names one:
///
/// ```
/// use cutlet_layout_core::{Layout, StaticLayout, composition, layout};
///
/// #[derive(Clone, Copy)]
/// struct EveryOther;
///
/// impl StaticLayout for EveryOther {
///     const LAYOUT: Layout = composition(&layout!((4, 8):(8, 1)), &layout!(16:2));
/// }
/// assert_eq!(EveryOther::SIZE, 16);
/// ```
///
/// A layout of a thread's values is a [`FragmentLayout`], too.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no layout that the compiler knows",
    note = "`L!` writes one, with up to eight modes side by side: `((A, B), (C, D))` has more",
    note = "a type of your own is one with `impl StaticLayout`, and a `LAYOUT`"
)]
pub trait StaticLayout: Copy + 'static {
    /// The layout.
    const LAYOUT: Layout;
    /// The number of elements in the layout's domain.
    const SIZE: usize = Self::LAYOUT.size() as usize;
}

/// The mode `S:D`.
#[derive(Clone, Copy, Debug)]
pub struct M<const S: usize, const D: i64>;

/// The mode `S:D@B`: `D` steps in the direction of coordinate `B`.
#[derive(Clone, Copy, Debug)]
pub struct E<const S: usize, const D: i64, const B: usize>;

impl<const S: usize, const D: i64> StaticLayout for M<S, D> {
    const LAYOUT: Layout = Layout::static_mode(S as i64, D);
}

impl<const S: usize, const D: i64> FragmentLayout for M<S, D> {
    type Storage = [(); S];
}

impl<const S: usize, const D: i64, const B: usize> StaticLayout for E<S, D, B> {
    const LAYOUT: Layout = Layout::static_basis_mode(S as i64, D, B);
}

impl<const S: usize, const D: i64, const B: usize> FragmentLayout for E<S, D, B> {
    type Storage = [(); S];
}

macro_rules! concatenation {
    ($($name:ident)+) => {
        impl<$($name: StaticLayout),+> StaticLayout for ($($name,)+) {
            const LAYOUT: Layout = Layout::concat(&[$($name::LAYOUT),+]);
        }

        impl<$($name: FragmentLayout),+> FragmentLayout for ($($name,)+) {
            type Storage = ($($name::Storage,)+);
        }
    };
}
concatenation!(A0);
concatenation!(A0 A1);
concatenation!(A0 A1 A2);
concatenation!(A0 A1 A2 A3);
concatenation!(A0 A1 A2 A3 A4);
concatenation!(A0 A1 A2 A3 A4 A5);
concatenation!(A0 A1 A2 A3 A4 A5 A6);
concatenation!(A0 A1 A2 A3 A4 A5 A6 A7);

/// `A ∘ B`, as a type: the [`composition`] of their layouts.
#[derive(Clone, Copy, Debug)]
pub struct Composition<A, B>(PhantomData<(A, B)>);

impl<A: StaticLayout, B: StaticLayout> StaticLayout for Composition<A, B> {
    const LAYOUT: Layout = composition(&A::LAYOUT, &B::LAYOUT);
}

impl<A: StaticLayout, B: FragmentLayout> FragmentLayout for Composition<A, B> {
    type Storage = B::Storage;
}

/// The layout that maps the coordinates of `outer` through `inner`: a step along coordinate `b` of
/// `outer` is a step through mode `b` of `inner`. The result is flat.
///
/// # Panics
/// If no layout does that, in particular if modes of `outer` carry into each other within `inner`.
/// Also if `outer` steps in a direction within another, such as `1@0@1`, which [`composition`]
/// accepts.
///
/// ```
/// use cutlet_layout_core::{L, StaticLayout, compose_coordinates};
///
/// type RowMajor = L!((4, 8):(8, 1));
/// type Outer = L!((4, 2, 4):(1@0, 4@1, 1@1)); // down a column, then to column 4, …
/// let through = compose_coordinates(&RowMajor::LAYOUT, &Outer::LAYOUT);
/// assert_eq!(through.at(4 + 1), 4 + 8); // (1, 4)
/// ```
pub const fn compose_coordinates(inner: &Layout, outer: &Layout) -> Layout {
    outer.assert_components(
        "compose_coordinates: the outer layout steps in a direction within another: use composition",
    );
    let mut builder = LayoutBuilder::new();
    builder.open();
    let mut n = 0;
    while n < outer.num_leaves() {
        let stride = outer.leaf_stride(n);
        // A plain stride counts in coordinate 0. Composition would count it through all of `inner`.
        let basis = if stride.value() != 0 && stride.basis().is_none() {
            Basis::new(0)
        } else {
            stride.basis()
        };
        builder.leaf(
            Int::fixed(outer.leaf_shape(n).value()),
            Int::fixed(stride.value()).along(basis),
        );
        n += 1;
    }
    builder.close();
    composition(inner, &or_panic(builder.finish())).flatten()
}

/// Writes a layout type in CuTe's notation: `L!((4,(2,3)):(8,(1,4)))`; a stride `1@0` steps in
/// the direction of coordinate 0. Extents and strides are literals or `{CONST}`s.
#[macro_export]
macro_rules! L {
    (($($s:tt),+ $(,)?) : ($($d:tt $(@ $b:tt)?),+ $(,)?)) => {
        $crate::__modes!([] [$($s)+] [$([$d $(@ $b)?])+])
    };
    ($s:literal : ($($d:tt)*)) => {
        compile_error!(concat!(
            "L!: the stride of the extent `", stringify!($s), "` is `(", stringify!($($d)*), ")`: shape and stride have the \
             same parentheses"
        ))
    };
    (($($s:tt)*) : $d:tt $(@ $b:tt)?) => {
        compile_error!(concat!(
            "L!: the stride of `(", stringify!($($s)*), ")` is `", stringify!($d), "`: shape and stride have the same \
             parentheses"
        ))
    };
    ($s:tt : $d:tt @ $b:tt) => { $crate::E<$s, $d, $b> };
    ($s:tt : $d:tt) => { $crate::M<$s, $d> };
}

/// The tuple of the modes with these extents and strides, one after the other.
#[doc(hidden)]
#[macro_export]
macro_rules! __modes {
    ([$($modes:tt)*] [$s:tt $($shape:tt)*] [[$($d:tt)+] $($stride:tt)*]) => {
        $crate::__modes!([$($modes)* { $s : $($d)+ }] [$($shape)*] [$($stride)*])
    };
    ([$({ $($mode:tt)+ })+] [] []) => { ($($crate::L!($($mode)+),)+) };
    ([$($modes:tt)*] [$($shape:tt)+] []) => {
        compile_error!(concat!(
            "L!: there is no stride for `", stringify!($($shape),+), "`: shape and stride have as many modes, each with \
             the same parentheses"
        ))
    };
    ([$($modes:tt)*] [] [$([$($stride:tt)+])+]) => {
        compile_error!(concat!(
            "L!: there is no extent for `", stringify!($($($stride)+),+), "`: shape and stride have as many modes, each \
             with the same parentheses"
        ))
    };
}

/// Calls `f(v)` for every index `v` of `L`'s domain. On a GPU the loop is fully unrolled.
///
/// Every `v` is then a constant: offsets computed from it are immediates, and register arrays
/// indexed by it stay in registers. The compiler unrolls the loop like any other, at the threshold
/// that the build of the kernels sets.
///
/// # Panics
/// Does not compile for layouts of more than 256 elements.
///
/// ```
/// use cutlet_layout_core::{L, each};
///
/// let mut sum = 0;
/// each::<L!((2, 3):(3, 1))>(|v| sum += v);
/// assert_eq!(sum, 15);
/// ```
#[inline(always)]
pub fn each<L: StaticLayout>(mut f: impl FnMut(usize)) {
    const {
        assert!(
            L::SIZE <= 256,
            "each: the layout has more than 256 elements, too many to unroll: use a smaller one"
        )
    }
    // A range would be a quarter more code for the compiler, in each of thousands of loops.
    let mut v = 0;
    while v < L::SIZE {
        f(v);
        v += 1;
    }
}

/// Component `b` of `L(i)` for an index known only at run time. If the extents are powers of two,
/// it costs only a few shifts and masks.
///
/// A plain stride counts in component 0. The last mode continues beyond its extent, as in
/// [`Layout::at`].
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
pub(crate) fn evaluate<L: StaticLayout>(i: u32, b: usize) -> i32 {
    const { assert_leaves::<L>() }
    let mut rest = i;
    let mut sum = 0;
    macro_rules! leaves {
        ($($n:literal)+) => {$(
            if const { $n < L::LAYOUT.num_leaves() } {
                sum += digit::<L, $n>(&mut rest) as i32
                    * *entry(const { &leaf_strides::<L>($n) }, b);
            }
        )+};
    }
    leaves!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
    sum
}

/// Component `b` of `L(i)`. Code of its own for each layout would be a tenth of what is compiled for the CPU.
#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn evaluate<L: StaticLayout>(i: u32, b: usize) -> i32 {
    sum_of_leaves(const { &all_leaves::<L>() }, i, b)
}

/// The extents of a layout's leaves, and what a step along each is.
#[cfg(not(target_arch = "nvptx64"))]
struct Leaves {
    extents: [u32; MOST_LEAVES],
    strides: [[i32; DIRECTIONS]; MOST_LEAVES],
    count: usize,
}

#[cfg(not(target_arch = "nvptx64"))]
const fn all_leaves<L: StaticLayout>() -> Leaves {
    assert_leaves::<L>();
    let mut leaves = Leaves {
        extents: [1; MOST_LEAVES],
        strides: [[0; DIRECTIONS]; MOST_LEAVES],
        count: L::LAYOUT.num_leaves(),
    };
    let mut n = 0;
    while n < leaves.count {
        leaves.extents[n] = leaf_extent::<L>(n);
        leaves.strides[n] = leaf_strides::<L>(n);
        n += 1;
    }
    leaves
}

#[cfg(not(target_arch = "nvptx64"))]
#[inline]
fn sum_of_leaves(leaves: &Leaves, i: u32, b: usize) -> i32 {
    let (mut rest, mut sum) = (i, 0);
    for n in 0..leaves.count {
        let extent = leaves.extents[n];
        let is_last = n + 1 == leaves.count;
        let digit = if is_last { rest } else { rest % extent };
        sum += digit as i32 * leaves.strides[n][b];
        rest /= extent;
    }
    sum
}

/// The most leaves of a layout whose index is known only at run time.
const MOST_LEAVES: usize = 16;

const fn assert_leaves<L: StaticLayout>() {
    assert!(
        L::LAYOUT.num_leaves() <= MOST_LEAVES,
        "a thread layout has more than 16 leaves: coalesce it"
    );
}

/// The coordinate of leaf `N`. `rest` counts from this leaf on, and afterwards from the next one
/// on.
#[cfg(target_arch = "nvptx64")]
#[inline(always)]
fn digit<L: StaticLayout, const N: usize>(rest: &mut u32) -> u32 {
    let extent = const { leaf_extent::<L>(N) };
    let index = *rest;
    *rest = index / extent;
    if const { N + 1 == L::LAYOUT.num_leaves() } {
        index
    } else {
        index % extent
    }
}

/// The number of directions that a static layout's strides may have.
pub(crate) const DIRECTIONS: usize = 4;

const fn leaf_extent<L: StaticLayout>(n: usize) -> u32 {
    if n < L::LAYOUT.num_leaves() {
        L::LAYOUT.leaf_shape(n).value() as u32
    } else {
        1
    }
}

const fn leaf_strides<L: StaticLayout>(n: usize) -> [i32; DIRECTIONS] {
    let mut strides = [0; DIRECTIONS];
    let mut b = 0;
    while n < L::LAYOUT.num_leaves() && b < DIRECTIONS {
        strides[b] = narrow(L::LAYOUT.leaf_stride(n).component(b));
        b += 1;
    }
    strides
}

/// The coordinates of a layout's first 256 elements, computed by the compiler. An entry at a
/// constant index is an immediate.
pub(crate) struct Coordinates<L>(PhantomData<L>);

impl<L: StaticLayout> Coordinates<L> {
    /// Entry `v` holds the [`DIRECTIONS`] components of `L(v)`.
    pub(crate) const TABLE: [[i32; DIRECTIONS]; 256] = {
        let mut table = [[0; DIRECTIONS]; 256];
        let count = if L::SIZE < 256 { L::SIZE } else { 256 };
        let mut b = 0;
        while b < DIRECTIONS {
            // Most layouts step in two directions. The others are skipped, because the compiler
            // takes long for a loop.
            if L::LAYOUT.steps_along(b) {
                let indices: [i64; 256] = L::LAYOUT.first_indices(count, b);
                let mut v = 0;
                while v < count {
                    table[v][b] = narrow(indices[v]);
                    v += 1;
                }
            }
            b += 1;
        }
        table
    };
}

const fn narrow(value: i64) -> i32 {
    assert!(
        value >= i32::MIN as i64 && value <= i32::MAX as i64,
        "a kernel's static layout reaches beyond 32 bits, which its offsets have: use smaller tiles"
    );
    value as i32
}
