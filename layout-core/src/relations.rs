//! How int tuples relate: congruent, compatible, dividing, and in order.

use core::cmp::Ordering;

use crate::complement::try_complement;
use crate::{IntTuple, Layout, Tiler};

/// Whether two int tuples have the same parentheses.
///
/// ```
/// use cutlet_layout_core::{congruent, shape};
///
/// assert!(congruent(&shape!((2, (3, 4))), &shape!((1, (0, 7)))));
/// assert!(!congruent(&shape!((2, 3)), &shape!((2, (3, 1)))));
/// ```
pub const fn congruent(a: &IntTuple, b: &IntTuple) -> bool {
    a.profile().eq(b.profile())
}

/// Whether `a` has the parentheses of `b` down to `a`'s leaves: a partial order on profiles.
///
/// ```
/// use cutlet_layout_core::{shape, weakly_congruent};
///
/// assert!(weakly_congruent(&shape!((4, 6)), &shape!(((2, 2), 6))));
/// assert!(!weakly_congruent(&shape!(((2, 2), 6)), &shape!((4, 6))));
/// ```
pub const fn weakly_congruent(a: &IntTuple, b: &IntTuple) -> bool {
    refines(a, b, false)
}

/// Whether every coordinate of shape `a` is one of shape `b`: `b` has the parentheses of `a` and
/// the same size at each of `a`'s leaves. A partial order on shapes.
///
/// ```
/// use cutlet_layout_core::{compatible, shape};
///
/// assert!(compatible(&shape!((4, 6)), &shape!(((2, 2), 6))));
/// assert!(!compatible(&shape!(((2, 3), 4)), &shape!(((2, 2), (3, 2)))));
/// assert!(compatible(&shape!(24), &shape!((24))));
/// assert!(!compatible(&shape!((24)), &shape!(24)));
/// ```
pub const fn compatible(a: &IntTuple, b: &IntTuple) -> bool {
    refines(a, b, true)
}

const fn refines(a: &IntTuple, b: &IntTuple, with_sizes: bool) -> bool {
    if !a.is_tuple() {
        return match (a.checked_size(), b.checked_size()) {
            _ if !with_sizes => true,
            (Some(a), Some(b)) => a == b,
            // A size beyond 64 bits is not that of a single integer.
            _ => false,
        };
    }
    if !b.is_tuple() || a.rank() != b.rank() {
        return false;
    }
    let mut i = 0;
    while i < a.rank() {
        if !refines(&a.mode(i), &b.mode(i), with_sizes) {
            return false;
        }
        i += 1;
    }
    true
}

/// Whether dividing a shape by a tiler leaves no partial tiles: `size(a)` is the size of
/// `logical_divide(a, tiler)`.
///
/// ```
/// use cutlet_layout_core::{evenly_divides, shape, tile};
///
/// assert!(evenly_divides(&shape!((8, 6)), &tile!(<4, 3>)));
/// assert!(!evenly_divides(&shape!((8, 6)), &tile!(<4, 4>)));
/// ```
pub const fn evenly_divides(shape: &IntTuple, tiler: &Tiler) -> bool {
    use crate::tiler::TilerKind;
    match tiler.kind() {
        TilerKind::Underscore => true,
        TilerKind::Layout(tile) => match try_complement(&tile, shape) {
            Ok(rest) => match tile.size().checked_mul(rest.size()) {
                Some(size) => size == shape.size(),
                None => false,
            },
            Err(_) => false,
        },
        TilerKind::Tuple => {
            if tiler.rank() > shape.rank() {
                return false;
            }
            let mut i = 0;
            while i < tiler.rank() {
                if !evenly_divides(&shape.mode(i), &tiler.mode(i)) {
                    return false;
                }
                i += 1;
            }
            true
        }
    }
}

/// Compares int tuples lexicographically: the leftmost difference decides. `None` for tuples of
/// different rank, at any level.
///
/// ```
/// use core::cmp::Ordering;
/// use cutlet_layout_core::{compare_colexicographic, compare_lexicographic, shape};
///
/// let (a, b) = (shape!((1, 5)), shape!((2, 4)));
/// assert_eq!(compare_lexicographic(&a, &b), Some(Ordering::Less));
/// assert_eq!(compare_colexicographic(&a, &b), Some(Ordering::Greater));
/// ```
pub const fn compare_lexicographic(a: &IntTuple, b: &IntTuple) -> Option<Ordering> {
    if !congruent(a, b) {
        return None;
    }
    let mut i = 0;
    while i < a.num_leaves() {
        let (x, y) = (a.leaf(i).value(), b.leaf(i).value());
        if x != y {
            return Some(if x < y {
                Ordering::Less
            } else {
                Ordering::Greater
            });
        }
        i += 1;
    }
    Some(Ordering::Equal)
}

/// Compares int tuples colexicographically: the rightmost difference decides, which is the order
/// of 1-D coordinates. `None` for tuples of different rank, at any level.
pub const fn compare_colexicographic(a: &IntTuple, b: &IntTuple) -> Option<Ordering> {
    if !congruent(a, b) {
        return None;
    }
    let mut i = a.num_leaves();
    while i > 0 {
        i -= 1;
        let (x, y) = (a.leaf(i).value(), b.leaf(i).value());
        if x != y {
            return Some(if x < y {
                Ordering::Less
            } else {
                Ordering::Greater
            });
        }
    }
    Some(Ordering::Equal)
}

/// Compares int tuples element by element: `Less` when every element is less, and so on; `None`
/// when elements disagree, or the tuples are of different rank at any level.
///
/// This is the comparison of coordinates with extents: `crd` lies in `shape` when it is `Less`.
///
/// ```
/// use core::cmp::Ordering;
/// use cutlet_layout_core::{compare_elementwise, shape};
///
/// assert_eq!(compare_elementwise(&shape!((1, 3)), &shape!((2, 4))), Some(Ordering::Less));
/// assert_eq!(compare_elementwise(&shape!((1, 4)), &shape!((2, 4))), None);
/// ```
pub const fn compare_elementwise(a: &IntTuple, b: &IntTuple) -> Option<Ordering> {
    if !congruent(a, b) {
        return None;
    }
    let (mut less, mut equal, mut greater) = (true, true, true);
    let mut i = 0;
    while i < a.num_leaves() {
        let (x, y) = (a.leaf(i).value(), b.leaf(i).value());
        less = less && x < y;
        equal = equal && x == y;
        greater = greater && x > y;
        i += 1;
    }
    if equal {
        Some(Ordering::Equal)
    } else if less {
        Some(Ordering::Less)
    } else if greater {
        Some(Ordering::Greater)
    } else {
        None
    }
}

impl Layout {
    /// Whether every coordinate of this layout is one of `other`'s: [`compatible`] shapes.
    pub const fn is_compatible_with(&self, other: &Layout) -> bool {
        compatible(&self.shape(), &other.shape())
    }
}
