//! Assertions about the accesses of warps, whose messages name the threads and the bank.

use super::{BANK_BYTES, BANKS, LANES, Numbers, WarpAccess, ways};
use crate::text::Text;

/// The most threads that a message names.
const NAMED: i64 = 4;

/// How many classes of accesses a search remembers.
const MOST_CHECKED: usize = 64;

const fn contains(numbers: &[i64], number: i64) -> bool {
    let mut i = 0;
    while i < numbers.len() {
        if numbers[i] == number {
            return true;
        }
        i += 1;
    }
    false
}

/// All bits that any of the numbers has.
const fn union(numbers: &[i64]) -> i64 {
    let (mut union, mut i) = (0, 0);
    while i < numbers.len() {
        union |= numbers[i];
        i += 1;
    }
    union
}

/// An access to shared memory that a bank serves more than once.
#[derive(Clone, Copy)]
struct BankConflict {
    warp: i64,
    access: i64,
    /// How many threads are served at once.
    at_once: usize,
    /// The first of them, in the warp.
    first: usize,
    ways: u32,
    bank: i64,
}

impl WarpAccess {
    /// Panics if a warp's access to shared memory has a bank conflict, and says which one. Warps from this one on are
    /// checked. The panic of a constant is an error of the compiler:
    ///
    /// ```
    /// use cutlet_layout_core::{CopyPartition, L, NoSwizzle, TiledCopy, WarpAccess, Width};
    ///
    /// type Tile = L!((64, 64):(1@0, 1@1));
    /// type Rows = L!((64, 64):(64, 1)); // 2 bytes an element
    /// /// Eight threads have a row, each with 16 bytes at a time.
    /// type Copy = TiledCopy<Width<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
    /// const _: () =
    ///     WarpAccess::of::<CopyPartition<Copy, Tile>, Rows, NoSwizzle>(2).assert_conflict_free();
    /// ```
    ///
    /// ```compile_fail,E0080
    /// # use cutlet_layout_core::{CopyPartition, L, NoSwizzle, TiledCopy, WarpAccess, Width};
    /// # type Tile = L!((64, 64):(1@0, 1@1));
    /// # type Rows = L!((64, 64):(64, 1));
    /// /// Four threads have half of a row: "2 threads of a quarter warp access bank 0 at once".
    /// type Copy = TiledCopy<Width<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>;
    /// const _: () =
    ///     WarpAccess::of::<CopyPartition<Copy, Tile>, Rows, NoSwizzle>(2).assert_conflict_free();
    /// ```
    #[track_caller]
    pub const fn assert_conflict_free(self) {
        if let Some(conflict) = self.first_conflict() {
            panic!("{}", self.conflict_in_words(&conflict).as_str());
        }
    }

    /// Panics unless every access of a warp is one instruction, and says which access is not: its values are
    /// consecutive in memory and begin at a multiple of its width. Warps from this one on are checked.
    ///
    /// ```compile_fail,E0080
    /// use cutlet_layout_core::{L, NoSwizzle, Tv, WarpAccess};
    ///
    /// type Rows = L!((8, 12):(12, 1)); // four threads a row, of three elements each
    /// type Pairs = Tv<L!((4, 8):(3@1, 1@0)), L!(2:1@1), 2>;
    /// // "access 0 of thread 1 begins at element 3, which is no multiple of its 2 elements"
    /// const _: () = WarpAccess::of::<Pairs, Rows, NoSwizzle>(4).assert_vectorised();
    /// ```
    #[track_caller]
    pub const fn assert_vectorised(self) {
        if self.has_aligned_runs() {
            return;
        }
        let mut warp = self.first_thread / LANES as i64;
        while warp * (LANES as i64) < self.threads.size() {
            self.of_warp(warp).assert_warp_vectorised();
            warp += 1;
        }
    }

    /// [`assert_vectorised`](Self::assert_vectorised) of this warp alone.
    #[track_caller]
    pub(super) const fn assert_warp_vectorised(&self) {
        if !self.is_vectorised() {
            panic!("{}", self.misaligned_in_words().as_str());
        }
    }

    /// The first access with a bank conflict. Accesses are left out that differ from an earlier one by a multiple of
    /// [`period`](Self::period) for all lanes, because they are in the same banks, or by bits that no lane has, because
    /// lanes that meet in the one meet in the other.
    const fn first_conflict(&self) -> Option<BankConflict> {
        self.assert_vectorised();
        let first_lanes = self.lane_offsets();
        let mut warp = self.first_thread / LANES as i64;
        while warp * (LANES as i64) < self.threads.size() {
            let of_warp = self.of_warp(warp);
            let is_first = of_warp.first_thread == self.first_thread;
            if is_first || !of_warp.repeats(&first_lanes) {
                let conflict = of_warp.first_conflict_of_warp(warp);
                if conflict.is_some() {
                    return conflict;
                }
            }
            warp += 1;
        }
        None
    }

    /// Whether this warp's lanes are those of `others`, all moved by one multiple of the period.
    const fn repeats(&self, others: &[i64; LANES]) -> bool {
        let lanes = self.lane_offsets();
        let by = lanes[0] - others[0];
        let mut lane = 0;
        while lane < self.lanes() {
            if lanes[lane] - others[lane] != by {
                return false;
            }
            lane += 1;
        }
        by % self.period() == 0
    }

    /// Elements after which banks and swizzle repeat.
    const fn period(&self) -> i64 {
        let mut period = BANKS as i64 * BANK_BYTES / self.element_bytes;
        while period <= self.swizzle.source_mask() {
            period *= 2;
        }
        period
    }

    const fn first_conflict_of_warp(&self, warp: i64) -> Option<BankConflict> {
        let (lanes, count) = (self.lane_offsets(), self.lanes());
        let (at_once, period) = (self.lanes_at_once(), self.period());
        let bits_of_lanes = union(lanes.split_at(count).0);
        let mut checked = [0; MOST_CHECKED];
        let mut checked_count = 0;
        let (mut access, accesses) = (0, self.accesses());
        while access < accesses {
            let first = self.value_offset(access * self.width);
            // Bits that no lane has are the same change of bank for all lanes, swizzled or not.
            let class = if first & bits_of_lanes == 0 {
                0
            } else {
                first.rem_euclid(period)
            };
            if contains(checked.split_at(checked_count).0, class) {
                access += 1;
                continue;
            }
            if checked_count < MOST_CHECKED {
                checked[checked_count] = class;
                checked_count += 1;
            }
            let addresses = self.addresses(access, lanes.split_at(count).0);
            let mut first = 0;
            while first < count {
                let end = if count - first < at_once {
                    count
                } else {
                    first + at_once
                };
                let served = addresses.split_at(end).0.split_at(first).1;
                let ways = ways(served, self.bytes());
                if ways > 1 {
                    let bank = busiest_bank(served, self.bytes(), ways);
                    return Some(BankConflict {
                        warp,
                        access,
                        at_once,
                        first,
                        ways,
                        bank,
                    });
                }
                first = end;
            }
            access += 1;
        }
        None
    }

    const fn conflict_in_words(&self, conflict: &BankConflict) -> Text {
        let of_warp = self.of_warp(conflict.warp);
        let (lanes, count) = (of_warp.lane_offsets(), of_warp.lanes());
        let addresses = of_warp.addresses(conflict.access, lanes.split_at(count).0);
        let mut text = Text::new();
        text.str("bank conflict: ")
            .number(conflict.ways as i64)
            .str(" threads of ")
            .str(match conflict.at_once {
                LANES => "a warp",
                16 => "half a warp",
                _ => "a quarter warp",
            });
        text.str(" access bank ")
            .number(conflict.bank)
            .str(" at once, in different words: threads ");
        let (mut named, mut lane) = (0, conflict.first);
        // One thread for each word.
        let mut words = Numbers::new();
        while lane < count && lane < conflict.first + conflict.at_once {
            let before = words.count;
            if let Some(word) = word_in_bank(addresses[lane], self.bytes(), conflict.bank) {
                words.insert(word);
            }
            if words.count > before && named < NAMED {
                text.str(if named == 0 { "" } else { ", " })
                    .number(conflict.warp * LANES as i64 + lane as i64);
                named += 1;
            }
            lane += 1;
        }
        if conflict.ways as i64 > NAMED {
            text.str(", …");
        }
        text.str(" in access ")
            .number(conflict.access)
            .str(". It takes ");
        text.number(conflict.ways as i64)
            .str(" times as long: swizzle the tile, pad its rows, or give neighbouring threads neighbouring words");
        text
    }

    /// The first access that is not one instruction.
    const fn misaligned_in_words(&self) -> Text {
        let (lanes, count) = (self.lane_offsets(), self.lanes());
        let mut text = Text::new();
        let mut access = 0;
        while access < self.accesses() {
            let first = self.value_offset(access * self.width);
            let mut lane = 0;
            while lane < count {
                let start = self.swizzle.apply(lanes[lane] + first);
                let is_aligned = start % self.width == 0;
                if !is_aligned || !self.is_run(lanes[lane], access) {
                    text.str("alignment: access ")
                        .number(access)
                        .str(" of thread ");
                    text.number(self.first_thread + lane as i64);
                    if is_aligned {
                        text.str(" has ")
                            .number(self.width)
                            .str(" elements that are not consecutive in memory");
                    } else {
                        text.str(" begins at element ").number(start);
                        text.str(", which is no multiple of its ")
                            .number(self.width)
                            .str(" elements");
                    }
                    text.str(": use a smaller width, or a layout whose values lie side by side");
                    return text;
                }
                lane += 1;
            }
            access += 1;
        }
        text
    }

    /// Whether the values of an access are consecutive, for a lane that adds `lane`.
    const fn is_run(&self, lane: i64, access: i64) -> bool {
        let start = self
            .swizzle
            .apply(lane + self.value_offset(access * self.width));
        let mut n = 1;
        while n < self.width {
            let value = self.value_offset(access * self.width + n);
            if self.swizzle.apply(lane + value) != start + n {
                return false;
            }
            n += 1;
        }
        true
    }
}

/// The word of an access that is in a bank, if there is one.
const fn word_in_bank(address: i64, bytes: i64, bank: i64) -> Option<i64> {
    let first = address.div_euclid(BANK_BYTES);
    let mut word = first;
    while word < first + (bytes + BANK_BYTES - 1) / BANK_BYTES {
        if word.rem_euclid(BANKS as i64) == bank {
            return Some(word);
        }
        word += 1;
    }
    None
}

/// The first bank of which `ways` different words are accessed.
const fn busiest_bank(addresses: &[i64], bytes: i64, ways: u32) -> i64 {
    let mut bank = 0;
    while bank < BANKS as i64 {
        let mut words = Numbers::new();
        let mut lane = 0;
        while lane < addresses.len() {
            if let Some(word) = word_in_bank(addresses[lane], bytes, bank) {
                words.insert(word);
            }
            lane += 1;
        }
        if words.count == ways as usize {
            return bank;
        }
        bank += 1;
    }
    bank
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::super::{begins_with_run, divides_at, steps_by};
    use super::{BANK_BYTES, ways};
    use crate::{L, Layout, NoSwizzle, Sw, Swizzle, Tv, WarpAccess, layout};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::vec::Vec;

    type Tile = L!((64, 32):(32, 1));
    /// A thread has a row.
    type Rows = Tv<L!(64:1@0), L!(32:1@1)>;
    type Eights = Tv<L!((8, 8):(1@0, 8@0)), L!((8, 4):(1@1, 8@1)), 8>;

    #[test]
    #[should_panic(
        expected = "bank conflict: 32 threads of a warp access bank 0 at once, in different words: threads 0, 1, 2, 3, … in \
                    access 0. It takes 32 times as long: swizzle the tile, pad its rows, or give neighbouring threads \
                    neighbouring words"
    )]
    fn rows_of_a_warp_meet_in_a_bank() {
        WarpAccess::of::<Rows, Tile, NoSwizzle>(4).assert_conflict_free();
    }

    #[test]
    #[should_panic(
        expected = "bank conflict: 4 threads of a quarter warp access bank 0 at once, in different words: threads 0, 2, 4, 6 in \
                    access 0"
    )]
    fn the_threads_of_a_conflict_are_those_with_different_words() {
        WarpAccess::of::<Eights, Tile, NoSwizzle>(2).assert_conflict_free();
    }

    #[test]
    #[should_panic(
        expected = "2 threads of a warp access bank 0 at once, in different words: threads 32, 63 in access 0."
    )]
    fn warps_after_the_first_are_checked() {
        // The first warp has 32 neighbours. Thread 32 has word 32, and thread 63 has word 64.
        WarpAccess::new(&layout!(((40, 2), 1):((1, 41), 0)), 4, 1).assert_conflict_free();
    }

    #[test]
    fn swizzled_tiles_have_no_conflict() {
        WarpAccess::of::<Rows, Tile, Sw<5, 0, 5>>(4).assert_conflict_free();
    }

    #[test]
    #[should_panic(
        expected = "alignment: access 0 of thread 1 begins at element 3, which is no multiple of its 2 elements: use a smaller \
                    width, or a layout whose values lie side by side"
    )]
    fn an_access_between_vectors_is_named() {
        WarpAccess::new(&layout!((4, 2):(3, 1)), 4, 2).assert_vectorised();
    }

    #[test]
    #[should_panic(
        expected = "alignment: access 0 of thread 0 has 2 elements that are not consecutive in memory"
    )]
    fn an_access_with_gaps_is_named() {
        WarpAccess::new(&layout!((4, 2):(4, 2)), 4, 2).assert_vectorised();
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn ways_are_the_different_words_of_the_busiest_bank(
            numbers in prop::collection::vec(-40..200i64, 1..=32), log_bytes in 0..5u32
        ) {
            let bytes = 1 << log_bytes;
            let addresses: Vec<i64> = numbers.iter().map(|number| number * bytes).collect();
            let words_of = |address: &i64| {
                let first = address.div_euclid(BANK_BYTES);
                first..first + (bytes / BANK_BYTES).max(1)
            };
            let words: BTreeSet<i64> = addresses.iter().flat_map(words_of).collect();
            let in_bank = |bank| words.iter().filter(|word| word.rem_euclid(32) == bank).count();
            let most = (0..32).map(in_bank).max();
            prop_assert_eq!(Some(ways(&addresses, bytes) as usize), most);
        }

        /// What is concluded from a layout's leaves holds for its indices.
        #[test]
        fn runs_steps_and_repetitions_are_those_of_the_indices(
            leaves in prop::collection::vec((1..9i64, -4..9i64), 1..5), log_run in 0..4u32
        ) {
            let modes: Vec<Layout> = leaves.iter().map(|leaf| Layout::static_mode(leaf.0, leaf.1)).collect();
            let (layout, run) = (Layout::concat(&modes), 1 << log_run);
            let indices: Vec<i64> = (0..layout.size()).map(|c| layout.at(c)).collect();
            if steps_by(&layout, run) {
                prop_assert!(indices.iter().all(|index| index % run == 0));
            }
            if begins_with_run(&layout, run) && layout.size() % run == 0 {
                let mut runs = indices.chunks(run as usize);
                prop_assert!(runs.all(|it| it[0] % run == 0 && it.iter().zip(it[0]..).all(|(a, b)| *a == b)));
            }
            if divides_at(&layout, run) {
                let mut parts = indices.chunks(run as usize);
                prop_assert!(parts.all(|it| it.iter().zip(&indices).all(|(a, b)| a - it[0] == b - indices[0])));
            }
        }
    }

    /// The search leaves out accesses and warps, and finds a conflict exactly if a warp has one.
    #[test]
    fn a_conflict_is_found_if_there_is_one() {
        let swizzles = [(0, 0, 0), (3, 3, 3), (2, 3, 3), (1, 0, 5), (5, 0, 5)];
        let (mut free, mut conflicts) = (0, 0);
        for stride in [1, 2, 3, 5, 8, 16, 17, 32, 36, 40, 64] {
            for lanes in [8, 16, 20, 40] {
                for (bits, base, shift) in swizzles {
                    for (bytes, width) in [(4, 1), (2, 2), (2, 8), (8, 1), (8, 2)] {
                        let offsets = Layout::from_shape_stride(
                            &((lanes, 160 / lanes), (width, 4)).into(),
                            &((width, stride * width), (1, 24 * stride)).into(),
                        );
                        let swizzle = Swizzle::new(bits, base, shift);
                        let access = WarpAccess::new(&offsets, bytes, width).swizzled(swizzle);
                        let warps = [0, 1, 2, 3, 4].map(|warp| access.of_warp(warp));
                        if !warps.iter().all(WarpAccess::is_vectorised) {
                            continue;
                        }
                        let has_one = warps.iter().any(|warp| warp.bank_conflicts() > 1);
                        let found = access.first_conflict();
                        assert_eq!(
                            found.is_some(),
                            has_one,
                            "{offsets} {swizzle} {bytes}x{width}"
                        );
                        conflicts += i32::from(has_one);
                        free += i32::from(!has_one);
                    }
                }
            }
        }
        assert!(free > 20 && conflicts > 100, "{free} {conflicts}");
    }
}
