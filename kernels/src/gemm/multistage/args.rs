//! What a launch passes to a multistage kernel besides matrices and epilogue.

use cutlet_device::DeviceData;
use cutlet_device::collective::Groups;
use cutlet_layout_core::{Divisor, Raster};

use crate::gemm::named_rows::NamedRows;

/// The arguments of a multistage kernel.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct MultistageArgs {
    /// Elements from one row of A to the next, and from one k to the next.
    pub strides_a: [i64; 2],
    /// Elements from one column of B to the next, and from one k to the next.
    pub strides_b: [i64; 2],
    /// Elements from one row of C to the next, and from one column to the next.
    pub strides_c: [i64; 2],
    /// Elements from one row of partials to the next, a multiple of 4. 0 if C is written.
    pub partial_ld: i64,
    /// Elements from the partials of one split to those of the next.
    pub split_stride: i64,
    /// m, n and k.
    pub extents: [i32; 3],
    /// K-tiles of a split. The last split may have fewer.
    pub split_k_tiles: u32,
    /// Not 0 if C is written in vectors of four. Then it is row-major, its rows start at multiples of four elements and
    /// have a multiple of four, and the epilogue may read its operands in pairs.
    pub in_fours: u32,
    /// The order in which blocks visit tiles. The rows of tiles of all splits lie below one another.
    pub raster: Raster<Divisor>,
    /// Rows of tiles of a split.
    pub tile_rows: Divisor,
    /// Not 0 if the epilogue leaves accumulators as they are, so that it need not be called.
    pub is_identity: u32,
    /// The products: the blocks with index y of the grid compute the yth one, with `m` rows or fewer. More than one is
    /// not split.
    pub groups: Groups,
    /// The first of them that this launch computes.
    pub first_group: u32,
    /// Bytes that would else be padding.
    pub _unused: u32,
    /// The tables of a kernel for rows of tables. Other kernels do not read them.
    pub rows: NamedOperands,
}

/// Which rows of tables stand for those of A and of C.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct NamedOperands {
    /// Rows of A.
    pub a: NamedRows,
    /// Rows of C.
    pub c: NamedRows,
}
