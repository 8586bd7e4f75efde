//! Your own kernel: the root mean square norm of each row of a matrix.
#![no_std]

use cutlet_device::{
    Global, GlobalMut, block_idx, fma, kernel, rsqrt_approx, thread_idx, warp_sum,
};
use cutlet_layout_core::{L, RowMajor, Tensor, Tv, tile_extent};

/// A block's tile: 8 rows of 128 columns. The block moves it along its rows.
type Tile = L!((8, 128):(1@0, 1@1));
/// Thread-value layout of the tile: a warp is along a row, and a thread has four values, 32 columns apart.
type Threads = Tv<L!((32, 8):(1@1, 1@0)), L!(4:32@1)>;

/// `y = x / sqrt(mean(x²) + epsilon) · weight` for each row of a row-major `rows` × `columns` matrix, in [`blocks`]
/// blocks.
///
/// # Safety
/// `x` and `y` must have `rows * columns` elements, and `weight` must have `columns`.
#[kernel(threads = 256)]
pub unsafe fn rms_norm(
    rows: i32,
    columns: i32,
    epsilon: f32,
    weight: Global<f32>,
    x: Global<f32>,
    y: GlobalMut<f32>,
) {
    let extent = [rows, columns];
    let matrix = RowMajor::new(extent, i64::from(columns));
    // SAFETY: the caller promises the extents. The weights are one row, used as a matrix whose rows are 0 elements
    // apart.
    let (weight, x, y) = unsafe {
        (
            Tensor::new(weight, RowMajor::new(extent, 0)),
            Tensor::new(x, matrix),
            Tensor::new(y, matrix),
        )
    };
    let [_, tiles] = x.tiles::<Tile>();

    let mut squares = 0.0;
    for tile in 0..tiles {
        let x = x.local_tile::<Tile>((block_idx().x, tile));
        let x = x.partition::<Threads>(thread_idx());
        x.for_each(|_, x| squares = fma(x, x, squares));
    }
    let scale = rsqrt_approx(warp_sum(squares) / columns as f32 + epsilon);

    for tile in 0..tiles {
        let at = (block_idx().x, tile);
        let weight = weight
            .local_tile::<Tile>(at)
            .partition::<Threads>(thread_idx());
        let x = x.local_tile::<Tile>(at).partition::<Threads>(thread_idx());
        let y = y.local_tile::<Tile>(at).partition::<Threads>(thread_idx());
        let weight = weight.load(0.0);
        y.store(&x.load(0.0).map(|v, x| x * scale * weight.get(v)));
    }
}

/// Blocks of a launch for so many rows.
pub fn blocks(rows: usize) -> u32 {
    let [of_tile, _] = tile_extent::<Tile>();
    rows.div_ceil(of_tile as usize) as u32
}

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
