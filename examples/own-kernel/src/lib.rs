//! Your own kernel: `x = max(x + bias, 0)` on the rows of a matrix.
#![no_std]

use cutlet_device::{Global, GlobalMut, block_idx, kernel, thread_idx};
use cutlet_layout_core::{L, RowMajor, Tensor, Tv};

/// A block's tile of the matrix: 8 rows of 128 columns.
pub type Tile = L!((8, 128):(1@0, 1@1));
/// Thread-value layout of the tile: a warp is along a row, and a thread has four values, 32 columns apart.
type Threads = Tv<L!((32, 8):(1@1, 1@0)), L!(4:32@1)>;

/// Adds `bias[c]` to column `c` of a row-major `rows` × `columns` matrix, and replaces negative sums by 0.
///
/// # Safety
/// `x` must have `rows * columns` elements, and `bias` must have `columns`.
#[kernel(threads = 256)]
pub unsafe fn bias_relu(rows: i32, columns: i32, bias: Global<f32>, x: GlobalMut<f32>) {
    let extent = [rows, columns];
    // SAFETY: the caller promises the extents. The bias is one row, used as a matrix whose rows are
    // 0 elements apart.
    let (bias, x) = unsafe {
        let bias = Tensor::new(bias, RowMajor::new(extent, 0));
        (bias, Tensor::new(x, RowMajor::new(extent, columns as i64)))
    };
    let at = (block_idx().y, block_idx().x);
    let bias = bias
        .local_tile::<Tile>(at)
        .partition::<Threads>(thread_idx());
    let x = x.local_tile::<Tile>(at).partition::<Threads>(thread_idx());

    let bias = bias.load(0.0);
    x.update(|v, x| (x + bias.get(v)).max(0.0));
}

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));
