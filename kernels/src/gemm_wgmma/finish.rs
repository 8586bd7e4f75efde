//! The second pass over C, where a GEMM left whole sums: they go through everything that can be fused, to a C of any
//! type and alignment.

use core::array;

use cutlet_device::{DeviceData, Float, Global, GlobalMut, block_idx, instantiate, thread_idx};
use cutlet_layout_core::{
    Coord, Divisor, Fragment, L, Raster, RowMajor, StaticLayout, Tensor, Tv, covers_exactly,
    tile_extent, tiles,
};

use super::{Epilogue, Fused, Pair};

/// The tile of C that a block finishes.
type Tile = L!((32, 128):(1@0, 1@1));
/// A thread's values: four of each of its rows.
type Values = L!((4, 4):(1@1, 8@0));
/// Which thread finishes which of them, so many at a time: a warp has whole rows.
type Threads<const WIDTH: usize> = Tv<L!((32, 8):(4@1, 1@0)), Values, WIDTH>;
/// Threads of a block.
const THREADS: u32 = 256;
/// Pairs of neighbours that a thread has.
const PAIRS: usize = Values::SIZE / 2;

const _: () = assert!(covers_exactly::<Threads<4>>(tile_extent::<Tile>()));

/// Extents of C and of the sums.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Whole {
    /// Elements from one row of C to the next.
    pub ldc: i64,
    /// Elements from one row of sums to the next: a multiple of 4.
    pub ld: i64,
    /// Rows of C.
    pub m: i32,
    /// Columns of C.
    pub n: i32,
    /// Not 0 if C's rows start at multiples of four elements, and have a multiple of four, and what the epilogue reads may
    /// be read in pairs.
    pub in_fours: u32,
    /// Which tile is whose: see [`raster`].
    pub raster: Raster<Divisor>,
}

/// Which tile of a C of so many rows and columns is whose, one for each block of the grid: along rows, as memory lies.
pub fn raster(extents: [i32; 2]) -> Raster<Divisor> {
    Raster::planned(tiles::<Tile>(extents), 1)
}

/// `C = epilogue(sums)`.
///
/// # Safety
/// C and the sums must be as their extents say. Sums that lie in a row, up to a multiple of 4, are read.
#[inline(always)]
unsafe fn finish<T: Float + Default>(
    sums: Global<f32>,
    c: GlobalMut<T>,
    extents: Whole,
    epilogue: Fused<T>,
) {
    let Whole {
        ldc,
        ld,
        m,
        n,
        in_fours,
        raster,
    } = extents;
    let (tile, thread) = (raster.tile(block_idx().x), thread_idx());
    // SAFETY: the launcher promises the extents.
    let (sums, to) = unsafe {
        let sums = Tensor::new(sums, RowMajor::new([m, n], ld)).local_tile::<Tile>(tile);
        let to = Tensor::new(c, RowMajor::new([m, n], ldc)).local_tile::<Tile>(tile);
        (sums.partition::<Threads<4>>(thread).load(0.0), to)
    };
    if in_fours != 0 {
        let to = to.partition::<Threads<4>>(thread);
        let new = apply_pairs(epilogue, &sums, |v| to.bound().coordinate(v));
        to.store(&new.map(|_, value| T::from_f32(value)));
    } else {
        let to = to.partition::<Threads<1>>(thread);
        let at = |v| to.bound().coordinate(v);
        to.store(&sums.map(|v, sum| T::from_f32(epilogue.apply(sum, None, at(v)))));
    }
}

/// What the epilogue makes of the sums, value `v` of which is at `at(v)`: what it reads for them is on its way together.
#[inline(always)]
fn apply_pairs<Epi: Epilogue>(
    epilogue: Epi,
    sums: &Fragment<f32, Values>,
    at: impl Fn(usize) -> Coord,
) -> Fragment<f32, Values> {
    let rows: [_; PAIRS / 2] = array::from_fn(|row| epilogue.row(at(4 * row)[0]));
    let columns: [_; 2] = array::from_fn(|pair| epilogue.columns(at(2 * pair)[1]));
    let mut pairs: [_; PAIRS] = array::from_fn(|pair| [sums.get(2 * pair), sums.get(2 * pair + 1)]);
    epilogue.apply_pairs(&mut pairs, |pair| Pair {
        at: at(2 * pair),
        row: rows[pair / 2],
        columns: columns[pair % 2],
    });
    Fragment::from_fn(|v| pairs[v / 2][v % 2])
}

instantiate! {
    /// To a C of bf16.
    #[kernel(threads = THREADS)]
    pub unsafe fn finish_bf16(
        sums: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: Whole,
        epilogue: Fused<half::bf16>,
    ) = finish::<half::bf16>;

    /// To a C of f16.
    #[kernel(threads = THREADS)]
    pub unsafe fn finish_f16(
        sums: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: Whole,
        epilogue: Fused<half::f16>,
    ) = finish::<half::f16>;

    /// To a C of f32.
    #[kernel(threads = THREADS)]
    pub unsafe fn finish_f32(
        sums: Global<f32>,
        c: GlobalMut<f32>,
        extents: Whole,
        epilogue: Fused<f32>,
    ) = finish::<f32>;
}
