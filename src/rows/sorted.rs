//! Sorted indices: the rows that indices name in increasing order, and which position each comes from.

use cutlet_host::{Scratch, Stream, View};
use cutlet_kernels::gather::sorting::{
    Chunk, DIGIT_BITS, KeyArgs, SortArgs, sort_count, sort_keys, sort_place, sort_scan,
};
use cutlet_layout_core::{StaticLayout, tiles};

use super::{IndexView, Misses, OutOfRange};
use crate::Result;

/// Indices, sorted on the device. Positions with the same index stay in their order.
///
/// With `n` indices of a table of `rows` rows, a digit of 9 bits at a time is sorted: `⌈log₂(rows + 1) / 9⌉` times
/// three launches, which read and write 8 bytes for each index. The memory is scratch memory: 16 bytes for each index,
/// and a count of 4 bytes for 8 of them.
pub(crate) struct Sorted<'s> {
    /// Rows of the table in increasing order. An index of no row is the number of rows, which comes last.
    keys: Scratch<'s, u32>,
    /// The position of each key.
    order: Scratch<'s, i32>,
    len: usize,
}

impl<'s> Sorted<'s> {
    /// Sorts some indices of a table with this many rows.
    ///
    /// # Errors
    /// If the device fails, or is out of memory.
    pub fn new(
        stream: &'s Stream,
        indices: IndexView<'_>,
        len: usize,
        table_rows: usize,
        out_of_range: OutOfRange,
        misses: &mut Misses,
    ) -> Result<Self> {
        let (mut keys, mut order) = (stream.scratch(len)?, stream.scratch(len)?);
        let blocks = tiles::<Chunk>([1, len as i32])[1];
        let args = KeyArgs {
            table_rows: table_rows as i32,
            indices: len as i32,
            wide_indices: indices.wide(),
            out_of_range: out_of_range.policy(),
        };
        let kernel = stream.device().load(&cutlet_kernels::PTX, &sort_keys)?;
        // SAFETY: there is a key and a position for each index, and the misses have one element. Scratch memory lives
        // until the stream's work is done.
        unsafe {
            let args = (
                indices.words(),
                keys.view_mut(),
                order.view_mut(),
                misses.report(),
                args,
            );
            stream.launch(&kernel, blocks, args)?;
        }
        let mut sorted = Sorted { keys, order, len };
        let mut shift = 0;
        while table_rows >> shift > 0 {
            sorted.sort_digit(stream, shift)?;
            shift += DIGIT_BITS;
        }
        Ok(sorted)
    }

    /// Sorts by the digit from bit `shift` on.
    fn sort_digit(&mut self, stream: &'s Stream, shift: u32) -> Result<()> {
        let args = SortArgs {
            keys: self.len as i32,
            shift,
        };
        let blocks = self.len.div_ceil(Chunk::SIZE);
        let mut counts = stream.scratch::<u32>(blocks << DIGIT_BITS)?;
        let mut totals = stream.scratch::<u32>(1 << DIGIT_BITS)?;
        let (mut keys, mut order) = (stream.scratch(self.len)?, stream.scratch(self.len)?);
        let device = stream.device();
        let count = device.load(&cutlet_kernels::PTX, &sort_count)?;
        let scan = device.load(&cutlet_kernels::PTX, &sort_scan)?;
        let place = device.load(&cutlet_kernels::PTX, &sort_place)?;
        // SAFETY: there are as many keys and positions, before and after, in different memory, a count for each value
        // of a digit and each block, and a total for each value. Scratch memory lives until the stream's work is done.
        unsafe {
            let counted = (self.keys.view(), counts.view_mut(), args);
            stream.launch(&count, blocks as u32, counted)?;
            let scanned = (counts.view_mut(), totals.view_mut(), args);
            stream.launch(&scan, 1 << DIGIT_BITS, scanned)?;
            let placed = (
                self.keys.view(),
                self.order.view(),
                counts.view(),
                totals.view(),
                keys.view_mut(),
                order.view_mut(),
                args,
            );
            stream.launch(&place, blocks as u32, placed)?;
        }
        (self.keys, self.order) = (keys, order);
        Ok(())
    }

    /// The sorted rows.
    pub fn keys(&self) -> View<'_, u32> {
        self.keys.view()
    }

    /// The position that each of the sorted rows comes from.
    pub fn order(&self) -> View<'_, i32> {
        self.order.view()
    }
}
