//! What a launch passes to a kernel besides matrices and epilogue.

use cutlet_device::collective::{
    ArrivalCounters, DynamicCluster, Prefetch, SmAffinity, Splits, StreamedTiles, cluster_raster,
};
use cutlet_device::{DeviceData, Global};
use cutlet_layout_core::{Coord, Divisor, Raster};

use super::named_rows::NamedRows;
use super::scheduler::GroupArgs;
use super::store::PartialOutput;

/// The arguments of a GEMM kernel.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Args {
    /// Which tiles and k-tiles each block has.
    pub scheduler: SchedulerArgs,
    /// What the L2 cache fetches of A, and of B, before the kernel may read them.
    pub prefetch: [Prefetch; 2],
    /// Where C, or partial output, goes.
    pub output: OutputArgs,
    /// How TMA loads the operands, and whether it stores C.
    pub tma: TmaArgs,
    /// The products of a kernel of several. Other kernels do not read them.
    pub groups: GroupArgs,
    /// The table of a kernel whose rows of A, or of C, are those of a table. Other kernels do not read it.
    pub table: TableArgs,
}

/// A table whose rows are those of A, or of C.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct TableArgs {
    /// The elements of A's table. C's table stands in the place of C.
    pub elements: Global<u8>,
    /// Which rows.
    pub rows: NamedRows,
    /// Columns of A's table, which are k.
    pub columns: i64,
}

impl TableArgs {
    /// No table.
    pub const NONE: Self = Self {
        elements: Global::from_ptr(core::ptr::null()),
        rows: NamedRows::NONE,
        columns: 0,
    };
}

/// How the work is dealt out to blocks.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct SchedulerArgs {
    /// The slots that clusters claim, one for each cluster; or none.
    pub affinity: SmAffinity,
    /// Rows and columns of a cluster. A kernel that was compiled for a cluster does not read them.
    pub cluster: DynamicCluster,
    /// The order in which clusters visit their tiles.
    pub raster: Raster<Divisor>,
    /// How each tile's k-tiles are split. With more than one split, the kernel writes partial output or runs the fixup.
    pub splits: Splits,
    /// K-tiles of A and B.
    pub k_tiles: u32,
    /// The tiles of clusters that are streamed. Only some kernels stream tiles, as `streams_tiles` says, and only if
    /// there are no splits.
    pub streamed: StreamedTiles,
    /// Where edge tiles begin at most, in units of 16 rows and of an epilogue subtile's columns: edge tiles shift back
    /// to end at C's edge, because TMA is several times slower on rows out of bounds. The overlap is stored once, or
    /// twice with the same values.
    ///
    /// `u32::MAX` if tiles do not shift. They shift where TMA overwrites C, and where the partials of splits are
    /// written. A partial output of whole tiles does not shift: neighbouring tiles may go through their k-tiles in
    /// opposite directions, and their accumulators differ in the last bits. So do those of a streamed tile and of a
    /// whole one.
    pub last: [u32; 2],
}

/// Where accumulators go.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct OutputArgs {
    /// Counters for the fixup. The workspace of a launch with splits that has them must be 16-byte aligned.
    pub arrivals: ArrivalCounters,
    /// Elements from one row of C to the next.
    pub ldc: i64,
    /// Whether, and how, accumulators are written in f32 where C would be.
    pub partial: PartialOutput,
    /// Extent of the partial output: C's, or rounded up to whole tiles. Its columns are even where C is row-major.
    /// Splits lie below one another.
    pub partial_extent: Coord,
    /// Rows and columns of C.
    pub extent: Coord,
}

/// What TMA does.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct TmaArgs {
    /// Bytes that a load of a tile of A brings: all of it, or its first rows where C has no others.
    pub bytes_a: u32,
    /// Not 0 if each tile of A, and of B, is read once. Then the L2 cache need not keep it.
    pub read_once: [u32; 2],
    /// Not 0 if TMA can store C: C starts at a multiple of 16 bytes, its rows are multiples of 16 bytes apart, and a
    /// row has a multiple of 16 bytes. TMA, and the threads that store in its place, write such units.
    ///
    /// Epilogues that read operands of rows or columns need it. So do consumers of several M atoms whose epilogue does
    /// not read C. Partial output does not.
    pub stores_c: u32,
}

/// Rows of tiles that blocks visit together, so that the L2 cache serves them: with 16 rows of 128, a wave of tiles is
/// about as high as it is wide.
const GROUP: u32 = 16;

/// The order in which clusters of `[rows, columns]` of tiles visit those of a C with these extents.
pub const fn raster(extents: [usize; 2], tile: [u32; 2], cluster: [u32; 2]) -> Raster<Divisor> {
    let rows = extents[0].div_ceil(tile[0] as usize);
    let columns = extents[1].div_ceil(tile[1] as usize);
    cluster_raster([rows as u32, columns as u32], cluster, GROUP)
}

/// Whether each tile of A, and of B, is read once: whether C has one column, or row, of tiles.
pub const fn read_once([m, n]: [usize; 2], tile: [u32; 2]) -> [u32; 2] {
    [
        (n <= tile[1] as usize) as u32,
        (m <= tile[0] as usize) as u32,
    ]
}
