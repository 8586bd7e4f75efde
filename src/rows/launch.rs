//! Launches of row operations: a block for each tile, in several launches if there are more than a grid has.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Stream};
use cutlet_kernels::gather::RowArgs;
use cutlet_layout_core::Raster;

use super::{Access, IndexView, OutOfRange, Reach, Report, Unit, to_next_row};
use crate::{MAX_EXTENT, Matrix, MatrixMut, Result};

/// A kernel of a row operation, for rows of units `U`.
pub(crate) type RowKernel<U> = Kernel<(
    Global<U>,
    Global<i32>,
    GlobalMut<U>,
    GlobalMut<u64>,
    RowArgs,
)>;

/// The kernels of a row operation: one for each access.
#[derive(Debug)]
pub(crate) struct RowKernels {
    pub long16: &'static RowKernel<u32>,
    pub medium16: &'static RowKernel<u32>,
    pub short16: &'static RowKernel<u32>,
    /// Words of 4 bytes: the kernel for long rows, and the one for short rows. `halves` and `bytes` likewise.
    pub words: [&'static RowKernel<u32>; 2],
    pub halves: [&'static RowKernel<u16>; 2],
    pub bytes: [&'static RowKernel<u8>; 2],
}

/// A row operation whose operands were checked.
#[derive(Debug)]
pub(crate) struct RowOperation<'a, T: DeviceData> {
    /// The matrix that is read.
    pub from: Matrix<'a, T>,
    pub indices: IndexView<'a>,
    /// The matrix that is written.
    pub to: MatrixMut<'a, T>,
    /// Rows of the matrix that the indices name.
    pub table_rows: usize,
    /// Rows of the matrix that has a row for each index.
    pub rows: usize,
    pub out_of_range: OutOfRange,
}

impl<T: DeviceData> RowOperation<'_, T> {
    /// Launches the kernel for this access to the rows.
    pub fn launch_for(
        self,
        stream: &Stream,
        Access { unit, reach }: Access,
        kernels: &RowKernels,
        report: &mut impl Report,
    ) -> Result<()> {
        let tile = reach.tile();
        match (unit, reach) {
            (_, Reach::Long16) => self.launch(stream, kernels.long16, tile, report),
            (_, Reach::Medium16) => self.launch(stream, kernels.medium16, tile, report),
            (_, Reach::Short16) => self.launch(stream, kernels.short16, tile, report),
            (Unit::Words, Reach::Long) => self.launch(stream, kernels.words[0], tile, report),
            (Unit::Words, Reach::Short) => self.launch(stream, kernels.words[1], tile, report),
            (Unit::Halves, Reach::Long) => self.launch(stream, kernels.halves[0], tile, report),
            (Unit::Halves, Reach::Short) => self.launch(stream, kernels.halves[1], tile, report),
            (Unit::Bytes, Reach::Long) => self.launch(stream, kernels.bytes[0], tile, report),
            (Unit::Bytes, Reach::Short) => self.launch(stream, kernels.bytes[1], tile, report),
        }
    }

    /// Launches a kernel whose blocks have this tile, in rows and units.
    pub fn launch<U: DeviceData>(
        mut self,
        stream: &Stream,
        kernel: &'static RowKernel<U>,
        tile: [usize; 2],
        report: &mut impl Report,
    ) -> Result<()> {
        let units = |elements: usize| elements * size_of::<T>() / size_of::<U>();
        let columns = units(self.to.columns());
        let function = stream.device().load(&cutlet_kernels::PTX, kernel)?;
        let tile_rows = self.rows.div_ceil(tile[0]);
        let most = stream.device().limits().grid[0] as usize;
        // A launch counts its columns in 31 bits.
        let most_tiles = MAX_EXTENT / tile[1];
        let at_once = tile[1] * (most / tile_rows.max(1)).clamp(1, most_tiles);
        for first in (0..columns).step_by(at_once) {
            let columns = at_once.min(columns - first);
            let tiles = [tile_rows, columns.div_ceil(tile[1])].map(|count| count as u32);
            let tiles = Raster::planned(tiles, 1);
            let args = RowArgs {
                table_rows: self.table_rows as i64,
                ld_from: units(to_next_row(self.from.rows(), self.from.ld())) as i64,
                ld_to: units(to_next_row(self.to.rows(), self.to.ld())) as i64,
                tiles,
                rows: self.rows as i32,
                columns: columns as i32,
                wide_indices: self.indices.wide(),
                out_of_range: self.out_of_range.policy(),
                padding: 0,
            };
            // A table without rows has no elements to skip.
            let from = self.from.view.cast::<U>()?;
            let from = from.slice(first.min(from.len())..)?;
            let mut to = self.to.view.reborrow().cast::<U>()?;
            let to = to.slice_mut(first.min(to.len())..)?;
            // SAFETY: each view covers the rest of its matrix's view, from the first column of this launch on. The
            // matrices were checked against their memory, and the kernel checks the indices. What is written is
            // borrowed mutably and overlaps neither what is read nor the indices.
            unsafe {
                let args = (from, self.indices.words(), to, report.of_launch(), args);
                stream.launch(&function, LaunchConfig::dependent(tiles.size()), args)?;
            }
        }
        Ok(())
    }
}
