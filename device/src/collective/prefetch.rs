//! Prefetch: a launch fetches the beginnings of its operands into the L2 cache before it may read them.

use crate::warpgroup::{WARPGROUP_SIZE, WarpgroupThread};
use crate::{DeviceData, Global, block_idx};

/// Bytes of a cache line.
const LINE: usize = 128;
/// The most rows that a block fetches.
const MOST_ROWS: usize = 64;
/// The most lines of a row that a block fetches. Each is fetched by another thread of a warpgroup.
const MOST_LINES: usize = 16;
/// Rows that a warpgroup fetches at a time.
const ROWS: usize = WARPGROUP_SIZE as usize / MOST_LINES;

/// The beginnings of a matrix's rows, which the blocks of a launch fetch into the L2 cache together.
///
/// A kernel that begins while the kernel before it ends may not read that kernel's output yet. But it may prefetch it,
/// because later writes go through the same cache. So it calls [`begin`](Self::begin) before
/// [`grid_dependency_wait`](crate::grid_dependency_wait).
///
/// ```
/// use cutlet_device::Global;
/// use cutlet_device::collective::Prefetch;
///
/// let matrix = [0u8; 4 << 10]; // 4 rows of 1 KiB
/// let beginnings = Prefetch::new(Global::from_ptr(matrix.as_ptr()), 1 << 10, [4, 256], 2);
/// # let _ = beginnings; // an argument of a kernel, which calls `begin`
/// ```
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Prefetch {
    start: Global<u8>,
    /// Bytes from one row to the next.
    distance: i64,
    /// Consecutive rows that a group of blocks fetches.
    rows: i32,
    /// Bytes of each row that a block fetches. The blocks of a group fetch different bytes of the same rows.
    bytes: u16,
    /// The binary logarithm of the number of blocks of a group.
    log_group: u16,
}

// SAFETY: a `repr(C)` struct of a pointer and numbers, without padding.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for Prefetch {}

impl Prefetch {
    /// Fetches nothing.
    pub const NOTHING: Self = Self::new(Global::from_ptr(core::ptr::null()), 0, [0, 0], 1);

    /// Fetches the first `bytes` bytes of `rows` rows, which are `distance` bytes apart, by `blocks` blocks. A block
    /// fetches at most 2 KiB of at most 64 rows. If rows are longer, or there are fewer rows than blocks, 2, 4, 8 …
    /// blocks share a row. A remainder that does not divide among the blocks is not fetched.
    ///
    /// # Panics
    /// If there are no blocks.
    pub const fn new(
        start: Global<u8>,
        distance: i64,
        [rows, bytes]: [usize; 2],
        blocks: u32,
    ) -> Self {
        assert!(blocks > 0, "a prefetch has at least one block");
        let lines = bytes.div_ceil(LINE);
        let mut log_group = 0;
        // Groups grow while rows are too long for a block, or too few for all groups.
        while groups(blocks, log_group) > 1
            && (lines >> log_group > MOST_LINES
                || (rows < groups(blocks, log_group) as usize && lines >> log_group > 1))
        {
            log_group += 1;
        }
        let rows = rows / groups(blocks, log_group) as usize;
        let lines = lines >> log_group;
        let lines = if lines < MOST_LINES {
            lines
        } else {
            MOST_LINES
        };
        Self {
            start,
            distance,
            rows: if rows < MOST_ROWS { rows } else { MOST_ROWS } as i32,
            bytes: (lines * LINE) as u16,
            log_group: log_group as u16,
        }
    }

    /// Fetches the running block's share, by a warpgroup.
    ///
    /// # Safety
    /// The rows must exist.
    #[inline(always)]
    pub unsafe fn begin(&self, thread: WarpgroupThread) {
        self.lines(thread.get(), block_idx().x.get(), |at| {
            // SAFETY: as promised by the caller.
            unsafe { self.start.prefetch(at) };
        });
    }

    /// Calls `each` with the offset of each line that thread `thread` of block `block` fetches.
    #[inline(always)]
    fn lines(&self, thread: u32, block: u32, mut each: impl FnMut(i64)) {
        let (bytes, log_group) = (i32::from(self.bytes), u32::from(self.log_group));
        let group = block >> log_group;
        let nth_block = (block - (group << log_group)) as i32;
        let row = (thread / MOST_LINES as u32) as i32;
        let byte = (thread % MOST_LINES as u32) as i32 * LINE as i32;
        let rows_left = match byte < bytes {
            true => self.rows - row,
            false => 0,
        };
        let first = i64::from(group as i32 * self.rows + row) * self.distance
            + i64::from(nth_block * bytes + byte);
        for nth in 0..MOST_ROWS / ROWS {
            if ((nth * ROWS) as i32) < rows_left {
                each(first + (nth * ROWS) as i64 * self.distance);
            }
        }
    }
}

/// The number of groups of `2^log_group` blocks. The last group may be smaller.
const fn groups(blocks: u32, log_group: u32) -> u32 {
    ((blocks - 1) >> log_group) + 1
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// The offsets that all threads of all blocks fetch, sorted.
    fn fetched(prefetch: Prefetch, blocks: u32) -> Vec<i64> {
        let mut offsets = Vec::new();
        for block in 0..blocks {
            for thread in 0..WARPGROUP_SIZE {
                prefetch.lines(thread, block, |at| offsets.push(at));
            }
        }
        offsets.sort_unstable();
        offsets
    }

    /// The lines of the first `bytes` bytes of each of `rows` rows.
    fn lines(rows: i64, distance: i64, bytes: i64) -> Vec<i64> {
        let line = |row: i64| move |line: i64| row * distance + 128 * line;
        (0..rows)
            .flat_map(|row| (0..(bytes + 127) / 128).map(line(row)))
            .collect()
    }

    #[test]
    fn blocks_fetch_each_line_once() {
        let start = Prefetch::NOTHING.start;
        for (rows, distance, bytes, blocks) in [
            (512, 1024, 1024, 64),
            (96, 2000, 2000, 3),
            (8, 10_000, 200, 8),
            (64, 4096, 1, 1),
            (40, 1 << 14, 6 * 1024, 80),
            (16, 1 << 14, 1024, 64),
            (2, 1 << 16, 1 << 16, 64),
        ] {
            let prefetch = Prefetch::new(start, distance, [rows, bytes], blocks);
            let expected = lines(rows as i64, distance, bytes as i64);
            assert_eq!(fetched(prefetch, blocks), expected, "{prefetch:?}");
        }
    }

    #[test]
    fn blocks_fetch_no_more_than_their_limits_and_the_rows() {
        let start = Prefetch::NOTHING.start;
        let prefetch = Prefetch::new(start, 1 << 14, [1000, 1 << 14], 2);
        assert_eq!(fetched(prefetch, 2), lines(64, 1 << 14, 4096));
        let uneven = Prefetch::new(start, 256, [11, 256], 4);
        assert_eq!(fetched(uneven, 4), lines(8, 256, 256));
        assert_eq!(fetched(Prefetch::new(start, 256, [1, 256], 4), 4), []);
        assert_eq!(fetched(Prefetch::NOTHING, 4), []);
    }

    #[test]
    fn a_smaller_last_group_fetches_its_part() {
        let (rows, distance, bytes) = (128, 1 << 14, 100 * 128);
        let prefetch = Prefetch::new(Prefetch::NOTHING.start, distance, [rows, bytes], 132);
        let offsets = fetched(prefetch, 132);
        let all = lines(rows as i64, distance, bytes as i64);
        assert!(offsets.is_sorted_by(|a, b| a < b), "a line is fetched once");
        assert!(offsets.iter().all(|line| all.binary_search(line).is_ok()));
        assert!(8 * offsets.len() > 6 * all.len(), "{} lines", offsets.len());
    }
}
