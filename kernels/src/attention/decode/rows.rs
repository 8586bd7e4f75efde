//! Where the rows of a tile are in the queries and the output. Their table is computed instead of read, so that they
//! are a [`Gather`].

use cutlet_device::DeviceData;
use cutlet_layout_core::{Coord, Divide, Divisor, Engine, Gather, Tensor};

use super::args::{ROWS, Work, WorkArgs};

/// A matrix whose row `r` begins at the element `table[r]`, or does not exist if that is negative.
///
/// # Safety
/// Rows that exist must have the columns.
#[inline(always)]
pub(super) unsafe fn matrix<E: Engine, X: Engine<Element = i64>>(
    elements: E,
    table: X,
    extent: Coord,
) -> Tensor<E, Gather<X>> {
    // SAFETY: as promised by the caller.
    unsafe { Tensor::new(elements, Gather::new(table, extent, i64::MAX, 1)) }
}

/// Where the rows of a tile begin in the queries, or in the output.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackedRows {
    /// Heads of queries for each head of keys.
    group: Divisor,
    /// Elements from a query and from a head to the next.
    strides: [i64; 2],
    /// The first head of the group.
    head: u32,
    first: u32,
}

impl PackedRows {
    /// The rows of a block's tile as a matrix. Its rows end with those of the head of keys.
    ///
    /// # Safety
    /// The elements must be those of a tensor with these strides of sequences, queries and heads.
    #[inline(always)]
    pub(super) unsafe fn of_tile<T: DeviceData, E: Engine<Element = T>>(
        elements: E,
        strides: [i64; 3],
        args: WorkArgs,
        work: Work,
        features: i32,
    ) -> Tensor<E, Gather<Self>> {
        let [sequence, query, head] = strides;
        let first = work.tile * ROWS;
        let rows = Self {
            group: args.group,
            strides: [query, head],
            head: work.head * args.group.divisor(),
            first,
        };
        let of_sequence = elements.offset(i64::from(work.sequence) * sequence);
        let extent = [(args.rows.divisor() - first) as i32, features];
        // SAFETY: as promised by the caller.
        unsafe { matrix(of_sequence, rows, extent) }
    }
}

impl Engine for PackedRows {
    type Element = i64;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self {
            first: self.first + index as u32,
            ..self
        }
    }

    #[inline(always)]
    unsafe fn load(self, index: i64) -> i64 {
        let (query, in_group) = self.group.div_rem(self.first + index as u32);
        let [of_query, of_head] = self.strides;
        i64::from(query) * of_query + i64::from(self.head + in_group) * of_head
    }
}
