//! Your own kernel: the root mean square norm of each row of a matrix.
#![cfg_attr(target_arch = "nvptx64", no_std)]

use cutlet_device::{
    Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, fma, instantiate, rsqrt_approx,
    thread_idx, warp_sum,
};
use cutlet_layout_core::{L, RowMajor, Tensor, Tv};

/// A block's tile: 8 rows of 32 · `VALUES` columns. The block moves it along its rows.
type Tile<const VALUES: usize> = L!((8, (32, {VALUES})):(1@0, (1@1, 32@1)));
/// Thread-value layout of the tile: a warp is along a row, and a thread has `VALUES` values, 32 columns apart.
type Threads<const VALUES: usize> = Tv<L!((32, 8):(1@1, 1@0)), L!({VALUES}:32@1)>;

/// `y = x / sqrt(mean(x²) + epsilon) · weight` for each row of a row-major `rows` × `columns` matrix. A block has 8 rows.
///
/// # Safety
/// `x` and `y` must have `rows * columns` elements, and `weight` must have `columns`.
#[inline(always)]
unsafe fn rms_norm<const VALUES: usize>(
    thread: ThreadIdx<impl ThreadGroup>,
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
    let [_, tiles] = x.tiles::<Tile<VALUES>>();

    let mut squares = 0.0;
    for tile in 0..tiles {
        let x = x.local_tile::<Tile<VALUES>>((block_idx().x, tile));
        let x = x.partition::<Threads<VALUES>>(thread);
        x.for_each(|_, x| squares = fma(x, x, squares));
    }
    let scale = rsqrt_approx(warp_sum(squares) / columns as f32 + epsilon);

    for tile in 0..tiles {
        let at = (block_idx().x, tile);
        let weight = weight
            .local_tile::<Tile<VALUES>>(at)
            .partition::<Threads<VALUES>>(thread);
        let x = x
            .local_tile::<Tile<VALUES>>(at)
            .partition::<Threads<VALUES>>(thread);
        let y = y
            .local_tile::<Tile<VALUES>>(at)
            .partition::<Threads<VALUES>>(thread);
        let weight = weight.load(0.0);
        y.store(&x.load(0.0).map(|v, x| x * scale * weight.get(v)));
    }
}

// Instances of the kernel. The autotuner measures which one is the fastest for a matrix.
instantiate! {
    /// The norm in tiles of 128 columns.
    #[kernel(threads = 256)]
    pub unsafe fn rms_norm_128(
        rows: i32, columns: i32, epsilon: f32, weight: Global<f32>, x: Global<f32>, y: GlobalMut<f32>,
    ) = rms_norm::<4>(thread_idx(), ..);

    /// The norm in tiles of 256 columns.
    #[kernel(threads = 256)]
    pub unsafe fn rms_norm_256(
        rows: i32, columns: i32, epsilon: f32, weight: Global<f32>, x: Global<f32>, y: GlobalMut<f32>,
    ) = rms_norm::<8>(thread_idx(), ..);

    /// The norm in tiles of 512 columns.
    #[kernel(threads = 256)]
    pub unsafe fn rms_norm_512(
        rows: i32, columns: i32, epsilon: f32, weight: Global<f32>, x: Global<f32>, y: GlobalMut<f32>,
    ) = rms_norm::<16>(thread_idx(), ..);
}

#[cfg(not(target_arch = "nvptx64"))]
include!(concat!(env!("OUT_DIR"), "/ptx.rs"));

#[cfg(not(target_arch = "nvptx64"))]
mod host;
#[cfg(not(target_arch = "nvptx64"))]
pub use host::{INSTANCES, Operands, RmsNorm, candidates};
