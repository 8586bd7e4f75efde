//! Bytes on their way to shared memory: where they are, and who may use them already.
//!
//! The data of a copy are there, and its bytes are counted at the mbarrier, as soon as it is issued. On a GPU they are
//! there for those that have waited for the barrier's phase, or have met somebody who had: all others may be too
//! early, which is an error here.

use std::cell::{Cell, OnceCell};

use super::{mbarrier, wgmma};
use crate::context::{Block, current};
use crate::knowledge::{Knowledge, Series};
use crate::shared::{Place, shared_place};

/// What is told apart: the least that a copy writes.
const WORD: u32 = 4;

/// What must have ended before a word is used: so many of a series. None where nothing was copied to.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Condition {
    series: Series,
    ended: u32,
}

impl Condition {
    #[inline]
    fn holds_for(self, knows: &Knowledge) -> bool {
        self.ended == 0 || knows.ended(self.series) >= self.ended
    }
}

/// The conditions of a block's words, made when something is first copied there.
#[derive(Default)]
pub(crate) struct InFlight(OnceCell<Box<[Cell<Condition>]>>);

/// Those of the words that have one of these bytes.
#[inline]
fn conditions(block: &Block, offset: u32, bytes: u32) -> &[Cell<Condition>] {
    match block.hopper.in_flight.0.get() {
        None => &[],
        Some(words) => &words[(offset / WORD) as usize..(offset + bytes).div_ceil(WORD) as usize],
    }
}

/// Checks that the running thread may use these bytes of a block's shared memory.
///
/// # Panics
/// If they are on their way there.
#[inline]
#[track_caller]
pub(crate) fn check_arrived(block: &Block, offset: u32, bytes: u32) {
    let conditions = conditions(block, offset, bytes);
    if conditions.iter().all(|word| word.get().ended == 0) {
        return;
    }
    let arrived = {
        let knows = current().knows.borrow();
        conditions.iter().all(|word| word.get().holds_for(&knows))
    };
    if !arrived {
        Users::running("is used too early, or was filled too early").check(block, offset, bytes);
    }
}

/// Threads that use shared memory together, and how.
pub(super) struct Users {
    how: &'static str,
    /// What each of them knew when it asked for that, and which one it is; not those that knew the same as the
    /// one before.
    knew: Vec<(Knowledge, u32)>,
    /// The last condition that held for all.
    held: Cell<Condition>,
}

impl Users {
    /// These threads of the running block.
    pub(super) fn new<'a>(
        how: &'static str,
        threads: impl IntoIterator<Item = (&'a Knowledge, u32)>,
    ) -> Self {
        let mut knew: Vec<(Knowledge, u32)> = Vec::new();
        for (knows, thread) in threads {
            if !knew.last().is_some_and(|(last, _)| last.is(knows)) {
                knew.push((knows.clone(), thread));
            }
        }
        Self {
            how,
            knew,
            held: Cell::default(),
        }
    }

    /// The running thread, now.
    #[track_caller]
    fn running(how: &'static str) -> Self {
        let thread = current();
        Self::new(how, [(&*thread.knows.borrow(), thread.linear)])
    }

    /// Checks that they may use these bytes of a block's shared memory.
    ///
    /// # Panics
    /// If they are on their way there.
    #[inline]
    #[track_caller]
    pub(super) fn check(&self, block: &Block, offset: u32, bytes: u32) {
        for word in conditions(block, offset, bytes) {
            let condition = word.get();
            if condition == self.held.get() {
                continue;
            }
            for (knew, thread) in &self.knew {
                if !condition.holds_for(knew) {
                    self.too_early(condition, Place::of(block, offset), *thread);
                }
            }
            self.held.set(condition);
        }
    }

    #[cold]
    #[track_caller]
    fn too_early(&self, condition: Condition, place: Place, thread: u32) -> ! {
        let Condition { series, ended } = condition;
        let phase = ended - 1;
        panic!(
            "shared memory at address {place} {}: the bytes on their way there count in phase {phase} of \
             the mbarrier at shared address {}, and {} has not waited for the end of that phase (parity {}), nor met \
             a thread that had",
            self.how,
            mbarrier::place_of(series),
            who(thread),
            phase % 2
        )
    }
}

/// A thread of the running block in a message.
fn who(thread: u32) -> String {
    let [x, y, z] = current().block().thread_idx(thread);
    format!("thread ({x}, {y}, {z})")
}

/// A copy to shared memory that the running thread asks for.
pub(super) struct Copy {
    condition: Condition,
    user: Users,
}

impl Copy {
    /// One whose bytes count in the current phase of the mbarrier at `barrier`.
    ///
    /// # Panics
    /// If there is no barrier.
    #[track_caller]
    pub(super) fn begin(barrier: u32) -> Self {
        let (series, phase) = mbarrier::current_phase(barrier);
        Self {
            condition: Condition {
                series,
                ended: phase + 1,
            },
            user: Users::running("is overwritten too early"),
        }
    }

    /// Host address of some bytes that it writes. They are on their way from now on.
    ///
    /// # Panics
    /// As `shared_bytes`, or if what was to be read there may not have been.
    #[track_caller]
    pub(super) fn to(&self, address: u32, bytes: u32, align: u32) -> *mut u8 {
        let (block, offset) = shared_place(address, bytes, align);
        self.user.check(block, offset, bytes);
        let (knows, thread) = &self.user.knew[0];
        if let Some(warpgroup) = wgmma::unknown_reader(block, offset, bytes, knows) {
            panic!(
                "shared memory at address {} is overwritten too early, or was read too early: warpgroup {warpgroup} \
                 of its block has read it by wgmma, and {} has not met a thread since that had waited for these \
                 products; whoever reads a stage waits until it is full, then for the products, then releases it, and \
                 whoever fills it waits for the release",
                Place::of(block, offset),
                who(*thread)
            );
        }
        let words = block.hopper.in_flight.0.get_or_init(|| {
            let words = Box::new_zeroed_slice(block.shared.bytes().div_ceil(WORD) as usize);
            // SAFETY: the fields of a condition are integers.
            unsafe { words.assume_init() }
        });
        for word in &words[(offset / WORD) as usize..((offset + bytes) / WORD) as usize] {
            word.set(self.condition);
        }
        block.shared.at(offset)
    }
}
