//! The last accesses to each word of memory, and whether the next access races with one of them.

use std::ops::Range;

use crate::site::Site;
use crate::vector_clock::VectorClock;

/// Bytes of a word. Accesses to different bytes of a word are told apart by masks.
pub(crate) const WORD: usize = 4;

/// How a thread accesses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAccess {
    /// A load.
    Load,
    /// A store.
    Store,
    /// A load that does not race with atomic operations.
    AtomicLoad,
    /// An atomic operation that writes.
    Atomic,
    /// A store that does not race with atomic operations.
    AtomicStore,
    /// A load whose value may not be used: of global memory if it races, of shared memory if nothing has written it.
    Unordered,
}

impl MemoryAccess {
    pub(crate) fn writes(self) -> bool {
        matches!(self, Self::Store | Self::Atomic | Self::AtomicStore)
    }

    pub(crate) fn is_atomic(self) -> bool {
        matches!(self, Self::AtomicLoad | Self::Atomic | Self::AtomicStore)
    }

    /// The access in a message.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Load | Self::Unordered => "a load",
            Self::Store => "a store",
            Self::AtomicLoad => "an atomic load",
            Self::Atomic => "an atomic operation",
            Self::AtomicStore => "an atomic store",
        }
    }
}

/// Who reads memory with a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// The thread of the clock.
    One,
    /// Several threads together, which all know what the clock says.
    Several,
}

/// A thread that accesses memory, at some time.
#[derive(Clone, Copy)]
pub(crate) struct Accessor<'a> {
    pub(crate) cluster: u64,
    /// The thread's number in its cluster.
    pub(crate) thread: u32,
    pub(crate) epoch: u32,
    pub(crate) clock: &'a VectorClock,
    pub(crate) site: Site,
}

impl<'a> Accessor<'a> {
    /// The thread with a clock, at the time of the clock; `None` if accesses are not followed.
    #[inline]
    pub(crate) fn new(cluster: u64, clock: &'a VectorClock, site: Site) -> Option<Self> {
        let (thread, epoch) = clock.epoch()?;
        Some(Self {
            cluster,
            thread,
            epoch,
            clock,
            site,
        })
    }

    /// Whether an earlier access is ordered before what the thread does now.
    #[inline]
    fn knows(&self, slot: &Slot) -> bool {
        if slot.cluster == self.cluster as u32 {
            slot.thread == self.thread as u16
                || self.clock.known().has(slot.thread.into(), slot.epoch)
        } else {
            let cluster = slot.cluster.into();
            self.clock
                .known()
                .has_other(cluster, slot.thread.into(), slot.epoch)
        }
    }

    #[inline]
    fn is_thread_of(&self, slot: &Slot) -> bool {
        (slot.cluster, slot.thread) == (self.cluster as u32, self.thread as u16)
    }
}

/// An access that was made to some bytes of a word. Its epoch is 0 if there was none.
///
/// The number of a cluster keeps its lower 32 bits, and a thread's number is below 2¹⁴.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Slot {
    pub(crate) cluster: u32,
    epoch: u32,
    site: Site,
    pub(crate) thread: u16,
    /// A bit for each byte.
    mask: u8,
    is_atomic: bool,
}

impl Slot {
    /// Whether the access was to some of these bytes.
    #[inline]
    fn touches(&self, mask: u8) -> bool {
        self.epoch != 0 && self.mask & mask != 0
    }
}

/// The last accesses to a word. Those that make room for others are forgotten: a race with them is not seen.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Word {
    writes: [Slot; 2],
    reads: [Slot; 2],
}

/// Two accesses to the same bytes that nothing orders.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race {
    pub(crate) earlier: MemoryAccess,
    pub(crate) cluster: u32,
    pub(crate) thread: u16,
    pub(crate) site: Site,
}

impl Word {
    /// The word with the accesses of a cluster alone. Shared memory serves one cluster after the other.
    #[inline]
    pub(crate) fn of_cluster(&mut self, cluster: u64) -> &mut Self {
        for slot in self.writes.iter_mut().chain(&mut self.reads) {
            if slot.cluster != cluster as u32 {
                *slot = Slot::default();
            }
        }
        self
    }

    /// Notes an access to the bytes of a mask. Returns the race if there is one. A store that repeats what is there
    /// does not race with other stores.
    #[inline]
    pub(crate) fn access(
        &mut self,
        by: &Accessor<'_>,
        kind: MemoryAccess,
        mask: u8,
        repeats: bool,
    ) -> Result<(), Race> {
        match self.check(by, kind, mask) {
            Err(race) if repeats && race.earlier == MemoryAccess::Store => {}
            checked => checked?,
        }
        let slot = Slot {
            cluster: by.cluster as u32,
            epoch: by.epoch,
            site: by.site,
            thread: by.thread as u16,
            mask,
            is_atomic: kind.is_atomic(),
        };
        if kind.writes() {
            keep(&mut self.writes, slot, by);
            // The reads are ordered before this write. What races with them races with it, too.
            if !kind.is_atomic() {
                for read in &mut self.reads {
                    if read.mask & !mask == 0 {
                        *read = Slot::default();
                    }
                }
            }
        } else {
            keep(&mut self.reads, slot, by);
        }
        Ok(())
    }

    /// Whether an access to the bytes of a mask races with one before.
    #[inline]
    pub(crate) fn check(
        &self,
        by: &Accessor<'_>,
        kind: MemoryAccess,
        mask: u8,
    ) -> Result<(), Race> {
        let races = |slot: &Slot| {
            slot.touches(mask) && !(slot.is_atomic && kind.is_atomic()) && !by.knows(slot)
        };
        if let Some(slot) = self.writes.iter().find(|slot| races(slot)) {
            return Err(race(slot, [MemoryAccess::Store, MemoryAccess::Atomic]));
        }
        if kind.writes()
            && let Some(slot) = self.reads.iter().find(|slot| races(slot))
        {
            return Err(race(slot, [MemoryAccess::Load, MemoryAccess::AtomicLoad]));
        }
        Ok(())
    }

    /// A store to some of these bytes by a thread of the cluster that the readers with a clock do not know.
    #[inline]
    pub(crate) fn unknown_store(
        &self,
        cluster: u64,
        mask: u8,
        clock: &VectorClock,
        readers: Readers,
    ) -> Option<Race> {
        let own = clock.epoch().filter(|_| readers == Readers::One);
        let is_own = |slot: &Slot| {
            own.is_some_and(|(thread, epoch)| slot.thread == thread as u16 && slot.epoch <= epoch)
        };
        let is_unknown = |slot: &&Slot| {
            slot.touches(mask)
                && slot.cluster == cluster as u32
                && !clock.known().has(slot.thread.into(), slot.epoch)
                && !is_own(slot)
        };
        let slot = self.writes.iter().find(is_unknown)?;
        Some(race(slot, [MemoryAccess::Store, MemoryAccess::Atomic]))
    }
}

#[cold]
fn race(slot: &Slot, [plain, atomic]: [MemoryAccess; 2]) -> Race {
    Race {
        earlier: if slot.is_atomic { atomic } else { plain },
        cluster: slot.cluster,
        thread: slot.thread,
        site: slot.site,
    }
}

/// Puts an access into one of two slots: that of the same thread, an empty one, or one that is ordered before it.
#[inline]
fn keep(slots: &mut [Slot; 2], new: Slot, by: &Accessor<'_>) {
    if by.is_thread_of(&slots[0]) {
        slots[0] = with_same_epoch(slots[0], new);
    } else if by.is_thread_of(&slots[1]) {
        slots[1] = with_same_epoch(slots[1], new);
    } else if slots[0].epoch == 0 || slots[0].mask & !new.mask == 0 && by.knows(&slots[0]) {
        slots[0] = new;
    } else {
        slots[1] = new;
    }
}

/// Two accesses of a thread in one slot. In the same epoch, others know both or neither.
#[inline]
fn with_same_epoch(old: Slot, new: Slot) -> Slot {
    let mask = if (old.epoch, old.is_atomic) == (new.epoch, new.is_atomic) {
        old.mask | new.mask
    } else {
        new.mask
    };
    Slot { mask, ..new }
}

/// The words that have bytes of a range, each with the mask of these bytes.
#[inline]
pub(crate) fn words(bytes: Range<usize>) -> impl Iterator<Item = (usize, u8)> {
    let Range { start, end } = bytes;
    (start / WORD..end.div_ceil(WORD)).map(move |word| {
        let first = start.max(word * WORD) - word * WORD;
        let last = end.min((word + 1) * WORD) - word * WORD;
        // Both are at most 4.
        (word, (0xFu8 >> (WORD - last)) & (0xFu8 << first))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vector_clock::SyncClock;
    use MemoryAccess::{Atomic, AtomicLoad, Load, Store};

    struct Threads {
        clocks: Vec<VectorClock>,
        word: Word,
    }

    impl Threads {
        fn new(count: u32) -> Self {
            Self {
                clocks: (0..count).map(VectorClock::of_thread).collect(),
                word: Word::default(),
            }
        }

        fn races(&mut self, thread: usize, kind: MemoryAccess, mask: u8) -> bool {
            let by = Accessor::new(0, &self.clocks[thread], Site::default()).unwrap();
            self.word.access(&by, kind, mask, false).is_err()
        }

        fn barrier(&mut self) {
            let clock = SyncClock::default();
            self.clocks.iter().for_each(|thread| clock.release(thread));
            clock.publish(None);
            self.clocks
                .iter_mut()
                .for_each(|thread| clock.acquire(thread));
        }
    }

    #[test]
    fn stores_and_loads_race_without_a_barrier() {
        let mut of = Threads::new(2);
        assert!(!of.races(0, Store, 0xF) && !of.races(0, Load, 0xF));
        assert!(of.races(1, Load, 1));
        of.barrier();
        assert!(!of.races(1, Load, 0xF));
        assert!(of.races(0, Store, 8));
        of.barrier();
        assert!(!of.races(0, Store, 0xF));
        assert!(of.races(1, Store, 0xF));
    }

    #[test]
    fn different_bytes_do_not_race() {
        let mut of = Threads::new(3);
        assert!(!of.races(0, Store, 0b0011) && !of.races(1, Store, 0b1100));
        assert!(of.races(2, Load, 0b0001) && of.races(2, Load, 0b1000));
        of.barrier();
        assert!(!of.races(2, Load, 0xF));
    }

    #[test]
    fn a_store_races_with_one_of_many_readers() {
        let mut of = Threads::new(5);
        of.barrier();
        for reader in 0..5 {
            assert!(!of.races(reader, Load, 0xF));
        }
        for writer in 0..5 {
            assert!(of.races(writer, Store, 0xF));
        }
    }

    #[test]
    fn atomic_operations_race_with_plain_accesses_only() {
        let mut of = Threads::new(3);
        assert!(!of.races(0, Atomic, 0xF) && !of.races(1, Atomic, 0xF));
        assert!(!of.races(2, AtomicLoad, 0xF));
        assert!(of.races(2, Load, 0xF) && of.races(2, Store, 0xF));
        of.barrier();
        assert!(!of.races(2, Store, 0xF));
        assert!(of.races(0, AtomicLoad, 0xF));
    }

    #[test]
    fn a_range_has_words_with_masks() {
        let all = |range| words(range).collect::<Vec<_>>();
        assert_eq!(all(4..12), [(1, 0xF), (2, 0xF)]);
        assert_eq!(all(2..4), [(0, 0b1100)]);
        assert_eq!(all(5..6), [(1, 0b0010)]);
        assert_eq!(all(3..9), [(0, 0b1000), (1, 0xF), (2, 0b0001)]);
        assert!(all(8..8).is_empty());
    }
}
