//! Words: how the fragments of a warpgroup's threads lie where another warpgroup finds them. The first four values of
//! each thread come first, then the next four, so that threads move 16 bytes each, side by side.

use cutlet_layout_core::{Fragment, StaticLayout};

use super::{WARPGROUP_SIZE, WarpgroupThread};

/// Values of a word: 16 bytes.
pub(super) const WORD: usize = 4;

/// Words that a thread has of a fragment of layout `L`.
pub(super) const fn words<L: StaticLayout>() -> usize {
    assert!(
        L::SIZE.is_multiple_of(WORD),
        "what is sent or left has a multiple of four values for each thread"
    );
    L::SIZE / WORD
}

/// The first value, counted from all threads' first, of a thread's word.
#[inline(always)]
pub(super) fn first_of_word(word: usize, thread: WarpgroupThread) -> i64 {
    let word = word as u32 * WARPGROUP_SIZE + thread.get();
    i64::from(word) * WORD as i64
}

/// A word of these values.
#[inline(always)]
pub(super) fn word_of<L: StaticLayout>(values: &Fragment<f32, L>, word: usize) -> [f32; WORD] {
    let first = WORD * word;
    [
        values.get(first),
        values.get(first + 1),
        values.get(first + 2),
        values.get(first + 3),
    ]
}

/// Puts a word among these values.
#[inline(always)]
pub(super) fn set_word<L: StaticLayout>(
    values: &mut Fragment<f32, L>,
    word: usize,
    four: [f32; WORD],
) {
    for (v, value) in four.iter().enumerate() {
        values.set(WORD * word + v, *value);
    }
}
