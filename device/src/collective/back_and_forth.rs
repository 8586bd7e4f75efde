//! Numbers that the blocks of a launch take in rows, back and forth.

use crate::{block_idx, grid_dim};

/// The numbers below a count that are the running block's. Of each row of as many numbers as there are blocks, it takes
/// one: its own from the front in the first row, from the back in the second one, and so on.
///
/// It schedules tiles that become shorter from the first one to the last: no block has the longest tile of each row.
///
/// ```
/// use cutlet_device::collective::BackAndForth;
/// use cutlet_device::kernel;
///
/// /// Has a loop over the block's tiles.
/// #[kernel(threads = 32)]
/// pub fn tiles(count: u32) {
///     for _tile in BackAndForth::new(count) {}
/// }
/// assert_eq!(tiles.bounds().threads(), 32);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct BackAndForth {
    count: u32,
    row: u32,
}

impl BackAndForth {
    /// The running block's numbers below `count`.
    #[inline(always)]
    pub const fn new(count: u32) -> Self {
        Self { count, row: 0 }
    }
}

impl Iterator for BackAndForth {
    type Item = u32;

    #[inline(always)]
    fn next(&mut self) -> Option<u32> {
        let (block, blocks) = (block_idx().x.get(), grid_dim().x);
        let in_row = match self.row % 2 {
            0 => block,
            _ => blocks - 1 - block,
        };
        let nth = self.row * blocks + in_row;
        self.row += 1;
        (nth < self.count).then_some(nth)
    }
}
