//! Coverage: whether a thread-value layout holds each element of a tile once, and which one it does not.

use crate::static_layout::DIRECTIONS;
use crate::text::Text;
use crate::tile::{Extents, matrix_extents, reach};
use crate::{CAPACITY, Coord, Layout, StaticLayout, ThreadValue};

/// Whether every coordinate of a tile of `extent` is held by exactly one value of one thread.
///
/// [`Tensor::partition`](crate::Tensor::partition) asserts it.
///
/// ```
/// use cutlet_layout_core::{L, Tv, covers_exactly};
///
/// type Copy = Tv<L!((2, 16):(4@1, 1@0)), L!((4, 2):(1@1, 16@0)), 4>;
/// const _: () = assert!(covers_exactly::<Copy>([32, 8]));
/// ```
pub const fn covers_exactly<C: ThreadValue>(extent: Coord) -> bool {
    let layout = <(C::Thr, C::Val)>::LAYOUT;
    Leaves::new::<C>(&layout)
        .first_fault(&matrix_extents(extent))
        .is_none()
}

/// Panics unless every coordinate of a tile of `extent` is held by exactly one value of one thread, and names an
/// element and its owners.
///
/// [`Tensor::partition`](crate::Tensor::partition) asserts it, where a tile is partitioned. A kernel's configuration
/// can assert it where it is declared:
///
/// ```
/// use cutlet_layout_core::{CopyPartition, L, TiledCopy, Width, assert_covers};
///
/// type Copy = TiledCopy<Width<4>, L!((8, 8):(8, 1)), L!((1, 4):(0, 1))>;
/// const _: () = assert_covers::<CopyPartition<Copy, L!((16, 32):(1@0, 1@1))>>([16, 32]);
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_layout_core::{L, Tv, assert_covers};
/// // "element (0,2) of a tile of 2×4 has no owner"
/// const _: () = assert_covers::<Tv<L!(2:1@1), L!(2:1@0)>>([2, 4]);
/// ```
#[track_caller]
pub const fn assert_covers<C: ThreadValue>(extent: Coord) {
    assert_exact::<C>(Some(matrix_extents(extent)));
}

/// Panics unless `C` holds each element of a tile of `extents` once. Without extents, the tile is what `C` reaches
/// over.
#[track_caller]
pub(crate) const fn assert_exact<C: ThreadValue>(extents: Option<Extents>) {
    let layout = <(C::Thr, C::Val)>::LAYOUT;
    let extents = match extents {
        Some(extents) => extents,
        None => reached(&layout),
    };
    if let Some(fault) = Leaves::new::<C>(&layout).first_fault(&extents) {
        panic!("{}", fault.message(&extents).as_str());
    }
}

/// Panics if `C` holds an element more than once. Only strides are compared: if they leave gaps and interleave, such an
/// element may not be found.
#[track_caller]
pub(crate) const fn assert_at_most_once<C: ThreadValue>() {
    let layout = <(C::Thr, C::Val)>::LAYOUT;
    if let Some(fault) = Leaves::new::<C>(&layout).first_shared() {
        panic!("{}", fault.message(&reached(&layout)).as_str());
    }
}

/// Panics if `C` reaches beyond a tensor of these extents, if they are known.
#[track_caller]
pub(crate) const fn assert_within<C: ThreadValue>(extents: Option<Extents>) {
    let Some(extents) = extents else { return };
    let reached = reached(&<(C::Thr, C::Val)>::LAYOUT);
    let mut direction = 0;
    while direction < DIRECTIONS {
        if reached[direction] > extents[direction] {
            let mut text = Text::new();
            text.str("partition: the thread-value layout reaches over ")
                .number(reached[direction]);
            text.str(match direction {
                0 => " rows",
                1 => " columns",
                _ => " places along another direction",
            });
            text.str(" of a tile that has ").number(extents[direction]);
            text.str(": use fewer threads or values, or smaller strides");
            panic!("{}", text.as_str());
        }
        direction += 1;
    }
}

/// Panics unless a thread layout of so many threads is that of the `counted` threads, if their number is known.
#[track_caller]
pub(crate) const fn assert_threads(of_layout: usize, counted: Option<u32>) {
    let Some(counted) = counted else { return };
    if counted as usize != of_layout {
        let mut text = Text::new();
        text.str("partition: the thread-value layout has ")
            .number(of_layout as i64);
        text.str(" threads, and the index is one of ")
            .number(counted as i64);
        text.str(if counted as usize > of_layout {
            ": lay out as many threads as the kernel has, or give it the index among the first ones (`among_first`)"
        } else {
            ": lay out as many threads as the kernel has, or give the kernel as many as the layout has"
        });
        panic!("{}", text.as_str());
    }
}

/// The extents of the tile that a layout reaches over.
const fn reached(layout: &Layout) -> Extents {
    let mut extents = [1; DIRECTIONS];
    let mut direction = 0;
    while direction < DIRECTIONS {
        extents[direction] = reach(layout, direction) + 1;
        direction += 1;
    }
    extents
}

/// A value of a thread.
#[derive(Clone, Copy)]
struct Owner {
    thread: i64,
    value: i64,
}

/// An element that a thread-value layout does not hold exactly once.
#[derive(Clone, Copy)]
enum Fault {
    /// Two values are at the element.
    Shared(Extents, [Owner; 2]),
    /// No value is at the element.
    Left(Extents),
    /// A value is outside the tile.
    Outside(Extents, Owner),
}

impl Fault {
    const fn message(&self, tile: &Extents) -> Text {
        let mut text = Text::new();
        text.str("partition: ");
        match self {
            Fault::Shared(element, [first, second]) => {
                text.str("element ").coordinate(element, tile);
                text.str(" of a tile of ").extents(tile);
                text.str(" has two owners, ").owner(*first).str(" and ");
                text.owner(*second).str(
                    ": correct the thread-value layout, or call partition_broadcast if threads share elements",
                )
            }
            Fault::Left(element) => {
                text.str("element ").coordinate(element, tile);
                text.str(" of a tile of ").extents(tile);
                text.str(
                    " has no owner: use more threads or values, or call partition_partial if elements are left out",
                )
            }
            Fault::Outside(element, owner) => {
                text.owner(*owner).str(" is at ").coordinate(element, tile);
                text.str(", outside a tile of ").extents(tile);
                text.str(": use fewer threads or values, smaller strides, or a larger tile")
            }
        };
        text
    }
}

impl Text {
    /// A value of a thread: `value 1 of thread 3`.
    const fn owner(&mut self, owner: Owner) -> &mut Text {
        self.str("value ").number(owner.value);
        self.str(" of thread ").number(owner.thread)
    }

    /// The extents of a tile: `4×8`.
    const fn extents(&mut self, tile: &Extents) -> &mut Text {
        self.components(tile, rank(tile), "×")
    }

    /// An element of a tile: `(0,4)`.
    const fn coordinate(&mut self, element: &Extents, tile: &Extents) -> &mut Text {
        let (of_element, of_tile) = (rank(element), rank(tile));
        let rank = if of_element > of_tile {
            of_element
        } else {
            of_tile
        };
        self.str("(").components(element, rank, ",").str(")")
    }

    const fn components(&mut self, components: &Extents, rank: usize, between: &str) -> &mut Text {
        let mut direction = 0;
        while direction < rank {
            if direction > 0 {
                self.str(between);
            }
            self.number(components[direction]);
            direction += 1;
        }
        self
    }
}

/// How many directions a message shows: two, or up to the last that is not trivial.
const fn rank(components: &Extents) -> usize {
    let mut rank = DIRECTIONS;
    while rank > 2 && components[rank - 1] <= 1 {
        rank -= 1;
    }
    rank
}

/// The leaves of a thread layout, followed by those of a value layout. They are taken apart once: the compiler's
/// interpreter takes long for calls, and a search asks each leaf many times.
struct Leaves {
    extents: [i64; CAPACITY],
    steps: [i64; CAPACITY],
    /// The direction in which each leaf steps.
    directions: [usize; CAPACITY],
    of_threads: usize,
    count: usize,
}

impl Leaves {
    /// `layout` is that of `(C::Thr, C::Val)`.
    const fn new<C: ThreadValue>(layout: &Layout) -> Self {
        Leaves::of(layout, C::Thr::LAYOUT.num_leaves())
    }

    const fn of(layout: &Layout, of_threads: usize) -> Self {
        let mut leaves = Leaves {
            extents: [0; CAPACITY],
            steps: [0; CAPACITY],
            directions: [0; CAPACITY],
            of_threads,
            count: layout.num_leaves(),
        };
        let mut n = 0;
        while n < leaves.count {
            let stride = layout.leaf_stride(n);
            leaves.extents[n] = layout.leaf_shape(n).value();
            leaves.steps[n] = stride.value();
            leaves.directions[n] = stride.direction();
            n += 1;
        }
        leaves
    }

    const fn step(&self, n: usize, direction: usize) -> i64 {
        if self.directions[n] == direction {
            self.steps[n]
        } else {
            0
        }
    }

    /// The first element of a tile that is not held once, or the first value outside.
    ///
    /// A leaf steps in one direction. In each one, values cover `0 .. reached` once if each leaf, in the order of their
    /// strides, continues where those before it end.
    const fn first_fault(&self, extents: &Extents) -> Option<Fault> {
        if let Some(fault) = self.first_in_place() {
            return Some(fault);
        }
        let mut direction = 0;
        while direction < DIRECTIONS {
            let extent = extents[direction];
            let mut chain = Chain::new(direction);
            while let Some(leaf) = self.next(&chain) {
                let step = self.step(leaf, direction);
                if step < chain.reached {
                    return self.shared(&chain, leaf);
                }
                if step > chain.reached && chain.reached < extent {
                    return Some(Fault::Left(at(direction, chain.reached)));
                }
                chain = self.longer(&chain, leaf);
                if chain.reached > extent {
                    let outside = if step > extent { step } else { extent };
                    return match self.owner(&chain, outside) {
                        Some(owner) => Some(Fault::Outside(at(direction, outside), owner)),
                        None => None,
                    };
                }
            }
            if chain.reached < extent {
                return Some(Fault::Left(at(direction, chain.reached)));
            }
            direction += 1;
        }
        None
    }

    /// The first element that is held twice. Gaps between leaves count as elements.
    const fn first_shared(&self) -> Option<Fault> {
        if let Some(fault) = self.first_in_place() {
            return Some(fault);
        }
        let mut direction = 0;
        while direction < DIRECTIONS {
            let mut chain = Chain::new(direction);
            while let Some(leaf) = self.next(&chain) {
                if self.step(leaf, direction) < chain.reached {
                    if let Some(fault) = self.shared(&chain, leaf) {
                        return Some(fault);
                    }
                    break;
                }
                chain = self.longer(&chain, leaf);
            }
            direction += 1;
        }
        None
    }

    /// The fault of a leaf that steps nowhere: the first element has two owners.
    const fn first_in_place(&self) -> Option<Fault> {
        let mut n = 0;
        while n < self.count {
            if self.extents[n] > 1 && self.steps[n] == 0 {
                let first = Owner {
                    thread: 0,
                    value: 0,
                };
                return Some(Fault::Shared(
                    [0; DIRECTIONS],
                    [first, self.moved(first, n, 1)],
                ));
            }
            n += 1;
        }
        None
    }

    /// The leaf that steps least in the chain's direction among those that are not in it.
    const fn next(&self, chain: &Chain) -> Option<usize> {
        let mut least = None;
        let mut n = 0;
        while n < self.count {
            let step = self.step(n, chain.direction);
            let is_less = match least {
                Some(other) => step < self.step(other, chain.direction),
                None => true,
            };
            if self.extents[n] > 1 && step > 0 && chain.leaves & 1 << n == 0 && is_less {
                least = Some(n);
            }
            n += 1;
        }
        least
    }

    /// The chain and this leaf.
    const fn longer(&self, chain: &Chain, leaf: usize) -> Chain {
        Chain {
            leaves: chain.leaves | 1 << leaf,
            reached: self.step(leaf, chain.direction) * self.extents[leaf],
            ..*chain
        }
    }

    /// The fault of a leaf whose first step leads to an element that the chain holds, if it does.
    const fn shared(&self, chain: &Chain, leaf: usize) -> Option<Fault> {
        let step = self.step(leaf, chain.direction);
        let first = Owner {
            thread: 0,
            value: 0,
        };
        match self.owner(chain, step) {
            Some(owner) => Some(Fault::Shared(
                at(chain.direction, step),
                [owner, self.moved(first, leaf, 1)],
            )),
            None => None,
        }
    }

    /// The value that is `distance` elements from the first one, by the chain's leaves alone.
    const fn owner(&self, chain: &Chain, distance: i64) -> Option<Owner> {
        let (mut chain, mut rest) = (*chain, distance);
        let mut owner = Owner {
            thread: 0,
            value: 0,
        };
        // The longest steps first.
        while let Some(leaf) = self.last(&chain) {
            let step = self.step(leaf, chain.direction);
            let most = self.extents[leaf] - 1;
            let steps = if rest / step < most {
                rest / step
            } else {
                most
            };
            owner = self.moved(owner, leaf, steps);
            rest -= steps * step;
            chain.leaves &= !(1 << leaf);
        }
        if rest == 0 { Some(owner) } else { None }
    }

    /// The leaf of the chain that steps farthest.
    const fn last(&self, chain: &Chain) -> Option<usize> {
        let mut last = None;
        let mut n = 0;
        while n < self.count {
            let is_more = match last {
                Some(other) => self.step(n, chain.direction) > self.step(other, chain.direction),
                None => true,
            };
            if chain.leaves & 1 << n != 0 && is_more {
                last = Some(n);
            }
            n += 1;
        }
        last
    }

    /// The value `steps` further along a leaf.
    const fn moved(&self, owner: Owner, leaf: usize, steps: i64) -> Owner {
        let is_thread = leaf < self.of_threads;
        let mut n = if is_thread { 0 } else { self.of_threads };
        let mut by = steps;
        while n < leaf {
            by *= self.extents[n];
            n += 1;
        }
        if is_thread {
            Owner {
                thread: owner.thread + by,
                ..owner
            }
        } else {
            Owner {
                value: owner.value + by,
                ..owner
            }
        }
    }
}

/// Leaves that follow one another in a direction, as bits, and the first element after them.
#[derive(Clone, Copy)]
struct Chain {
    direction: usize,
    leaves: u32,
    reached: i64,
}

impl Chain {
    const fn new(direction: usize) -> Self {
        Chain {
            direction,
            leaves: 0,
            reached: 1,
        }
    }
}

/// The element `distance` from the first one.
const fn at(direction: usize, distance: i64) -> Extents {
    let mut element = [0; DIRECTIONS];
    element[direction] = distance;
    element
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use proptest::prelude::*;
    use std::string::String;
    use std::vec::Vec;

    /// A leaf: its extent, its stride, and the direction of the stride.
    type Leaf = (i64, i64, usize);

    fn layout(threads: &[Leaf], values: &[Leaf]) -> Layout {
        let mode = |&(extent, stride, direction): &Leaf| {
            Layout::static_basis_mode(extent, stride, direction)
        };
        let modes: Vec<Layout> = threads.iter().chain(values).map(mode).collect();
        Layout::concat(&modes)
    }

    /// Every value with the element that it is at.
    fn values_of(layout: &Layout, of_threads: usize) -> Vec<(Owner, Extents)> {
        let extent = |n| layout.leaf_shape(n).value();
        let threads: i64 = (0..of_threads).map(extent).product();
        let element = |i: i64| [layout.at_basis(i, 0), layout.at_basis(i, 1), 0, 0];
        let owner = |i: i64| Owner {
            thread: i % threads,
            value: i / threads,
        };
        (0..layout.size()).map(|i| (owner(i), element(i))).collect()
    }

    fn owners_at(values: &[(Owner, Extents)], element: Extents) -> Vec<(i64, i64)> {
        let at = values.iter().filter(|(_, at)| *at == element);
        at.map(|(owner, _)| (owner.thread, owner.value)).collect()
    }

    fn in_tile([row, column, ..]: Extents, tile: Extents) -> bool {
        row < tile[0] && column < tile[1]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn faults_are_those_of_counting(
            threads in leaves(), values in leaves(), rows in 1..13i64, columns in 1..9i64
        ) {
            let layout = layout(&threads, &values);
            let leaves = Leaves::of(&layout, threads.len());
            let all = values_of(&layout, threads.len());
            let tile = [rows, columns, 1, 1];
            let elements = (0..rows).flat_map(|r| (0..columns).map(move |c| [r, c, 0, 0]));
            let is_exact = all.iter().all(|(_, at)| in_tile(*at, tile))
                && elements.clone().all(|element| owners_at(&all, element).len() == 1);
            let fault = leaves.first_fault(&tile);
            prop_assert_eq!(fault.is_none(), is_exact);
            match fault {
                None => {}
                Some(Fault::Left(at)) => {
                    prop_assert!(in_tile(at, tile) && owners_at(&all, at).is_empty());
                }
                Some(Fault::Outside(at, owner)) => {
                    prop_assert!(!in_tile(at, tile));
                    prop_assert!(owners_at(&all, at).contains(&(owner.thread, owner.value)));
                }
                Some(Fault::Shared(at, [first, second])) => {
                    let owners = owners_at(&all, at);
                    let named = [first, second].map(|owner| (owner.thread, owner.value));
                    prop_assert!(named[0] != named[1]);
                    prop_assert!(named.iter().all(|owner| owners.contains(owner)));
                }
            }
            if let Some(Fault::Shared(at, _)) = leaves.first_shared() {
                prop_assert!(owners_at(&all, at).len() > 1);
            }
        }
    }

    fn leaves() -> impl Strategy<Value = Vec<Leaf>> {
        let leaf = (
            1..5i64,
            prop_oneof![Just(1), Just(2), Just(4), 0..7i64],
            0..2usize,
        );
        prop::collection::vec(leaf, 1..3)
    }

    fn message(threads: &[Leaf], values: &[Leaf], [rows, columns]: [i64; 2]) -> String {
        let layout = layout(threads, values);
        let leaves = Leaves::of(&layout, threads.len());
        let tile = [rows, columns, 1, 1];
        let fault = leaves.first_fault(&tile).expect("the tile is not covered");
        String::from(fault.message(&tile).as_str())
    }

    #[test]
    fn a_message_names_the_element_and_its_owners() {
        assert_eq!(
            message(&[(4, 1, 1)], &[(2, 1, 0), (2, 1, 1)], [2, 4]),
            "partition: element (0,1) of a tile of 2×4 has two owners, value 0 of thread 1 and value 2 of thread 0: \
             correct the thread-value layout, or call partition_broadcast if threads share elements"
        );
        assert_eq!(
            message(&[(2, 1, 1)], &[(2, 1, 0)], [2, 4]),
            "partition: element (0,2) of a tile of 2×4 has no owner: use more threads or values, or call \
             partition_partial if elements are left out"
        );
        assert_eq!(
            message(&[(4, 1, 1)], &[(2, 1, 0)], [2, 3]),
            "partition: value 0 of thread 3 is at (0,3), outside a tile of 2×3: use fewer threads or values, smaller \
             strides, or a larger tile"
        );
    }

    #[test]
    #[should_panic(
        expected = "partition: the thread-value layout reaches over 4 columns of a tile that has 2: use fewer threads or \
                    values, or smaller strides"
    )]
    fn a_layout_beyond_a_tile_is_refused_in_words() {
        super::assert_within::<crate::Tv<crate::L!(2:1@0), crate::L!(4:1@1)>>(Some([2, 2, 1, 1]));
    }

    #[test]
    #[should_panic(
        expected = "partition: the thread-value layout has 256 threads, and the index is one of 128: lay out as many threads \
                    as the kernel has, or give the kernel as many as the layout has"
    )]
    fn a_layout_of_more_threads_is_refused_in_words() {
        super::assert_threads(256, Some(128));
    }

    #[test]
    #[should_panic(
        expected = "partition: the thread-value layout has 256 threads, and the index is one of 512: lay out as many threads \
                    as the kernel has, or give it the index among the first ones (`among_first`)"
    )]
    fn a_layout_of_fewer_threads_is_refused_in_words() {
        super::assert_threads(256, Some(512));
    }

    #[test]
    fn a_layout_of_the_same_threads_or_of_a_plain_number_is_accepted() {
        super::assert_threads(256, Some(256));
        super::assert_threads(256, None);
    }
}
