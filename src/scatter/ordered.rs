//! Additions in order: a few launches over sorted indices.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Stream, View, ViewMut};
use cutlet_kernels::gather::ordered_add::OrderedAddArgs;

use crate::Result;
use crate::rows::{Owners, Sorted};

/// The binary logarithm of the rows of a piece, which are added one after the other: a power of two, at most 32 KiB of
/// rows, but from 64 to 256 of them. A long piece keeps few threads busy, and short pieces have more sums.
pub fn piece_bits(row_bytes: usize) -> u32 {
    (PIECE_BYTES / row_bytes).clamp(64, 256).ilog2()
}

/// Bytes of the rows of a piece.
const PIECE_BYTES: usize = 32 << 10;

/// An addition in order whose operands were checked.
pub struct OrderedAdd<'a, T: DeviceData> {
    pub stream: &'a Stream,
    pub kernels: OrderedKernels<T>,
    pub owners: Owners,
    pub source: View<'a, T>,
    pub sorted: &'a Sorted<'a>,
    pub table: ViewMut<'a, T>,
    pub args: OrderedAddArgs,
}

impl<T: DeviceData> OrderedAdd<'_, T> {
    /// Enqueues the additions of keys that have several pieces, if there can be such, and then those of other keys.
    pub fn enqueue(mut self) -> Result<()> {
        let (rows, columns) = (self.args.rows as usize, self.args.columns as usize);
        if rows > self.piece() {
            self.enqueue_pieces()?;
        }
        let device = self.stream.device();
        let add = device.load(&cutlet_kernels::PTX, self.kernels.add)?;
        let grid = self.owners.grid::<T>(rows, columns);
        let (keys, order) = (self.sorted.keys(), self.sorted.order());
        let args = (self.source, keys, order, self.table.reborrow(), self.args);
        // SAFETY: the matrices were checked against their memory, and there is a sorted key and a position for each row
        // of the source. The table is borrowed mutably and overlaps nothing else.
        Ok(unsafe { self.stream.launch(&add, grid, args) }?)
    }

    /// Rows of a piece.
    fn piece(&self) -> usize {
        1 << self.args.piece_bits
    }

    /// Enqueues the additions of keys that have several pieces.
    fn enqueue_pieces(&mut self) -> Result<()> {
        let (rows, columns) = (self.args.rows as usize, self.args.columns as usize);
        let chunks = rows.div_ceil(self.piece());
        let device = self.stream.device();
        let sum = device.load(&cutlet_kernels::PTX, self.kernels.sum)?;
        let fold = device.load(&cutlet_kernels::PTX, self.kernels.fold)?;
        let grid = self.owners.grid::<T>(chunks, columns);
        let mut partials = self.stream.scratch::<f32>(chunks * columns)?;
        let (keys, order) = (self.sorted.keys(), self.sorted.order());
        // SAFETY: as for the other rows. There is a row of partial sums for each chunk, and scratch memory lives until
        // the stream's work is done.
        unsafe {
            let args = (self.source, keys, order, partials.view_mut(), self.args);
            self.stream.launch(&sum, grid, args)?;
            let (partials, table) = (partials.view(), self.table.reborrow());
            let args = (self.source, keys, order, partials, table, self.args);
            self.stream.launch(&fold, grid, args)?;
        }
        Ok(())
    }
}

/// The kernels that add rows in order.
#[derive(Clone, Copy)]
pub struct OrderedKernels<T: DeviceData> {
    /// Adds the rows of keys of a single piece.
    pub add: &'static AddKernel<T>,
    /// Sums later pieces.
    pub sum: &'static SumKernel<T>,
    /// Adds first pieces and the sums of later ones.
    pub fold: &'static FoldKernel<T>,
}

type AddKernel<T> = Kernel<(
    Global<T>,
    Global<u32>,
    Global<i32>,
    GlobalMut<T>,
    OrderedAddArgs,
)>;
type SumKernel<T> = Kernel<(
    Global<T>,
    Global<u32>,
    Global<i32>,
    GlobalMut<f32>,
    OrderedAddArgs,
)>;
type FoldKernel<T> = Kernel<(
    Global<T>,
    Global<u32>,
    Global<i32>,
    Global<f32>,
    GlobalMut<T>,
    OrderedAddArgs,
)>;
