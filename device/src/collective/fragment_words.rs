//! The memory layout of a warpgroup's fragments that another warpgroup reads: the first four values of each thread,
//! then the next four. So neighbouring threads access neighbouring words of 16 bytes.

use cutlet_layout_core::{Fragment, FragmentLayout, StaticLayout};

use crate::PartialSum;
use crate::warpgroup::{WARPGROUP_SIZE, WarpgroupThread};

/// Values of a word: 16 bytes.
pub(super) const WORD: usize = 4;

/// The words of a fragment of layout `L`.
pub(super) const fn words<L: StaticLayout>() -> usize {
    assert!(
        L::SIZE.is_multiple_of(WORD),
        "a fragment of partials has a multiple of four values"
    );
    L::SIZE / WORD
}

/// The index of the first value of a thread's word `word` in memory.
#[inline(always)]
pub(super) fn first_of_word(word: usize, thread: WarpgroupThread) -> i64 {
    let word = word as u32 * WARPGROUP_SIZE + thread.get();
    i64::from(word) * WORD as i64
}

/// Word `word` of a fragment.
#[inline(always)]
pub(super) fn word_of<T: PartialSum, L: FragmentLayout>(
    values: &Fragment<T, L>,
    word: usize,
) -> [T; WORD] {
    let first = WORD * word;
    [
        values.get(first),
        values.get(first + 1),
        values.get(first + 2),
        values.get(first + 3),
    ]
}

/// Replaces word `word` of a fragment.
#[inline(always)]
pub(super) fn set_word<T: PartialSum, L: FragmentLayout>(
    values: &mut Fragment<T, L>,
    word: usize,
    four: [T; WORD],
) {
    for (v, value) in four.iter().enumerate() {
        values.set(WORD * word + v, *value);
    }
}
