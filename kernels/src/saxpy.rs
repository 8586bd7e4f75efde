//! saxpy: `y = a·x + y`, the smallest kernel that is tiled and partitioned by layouts.

use cutlet_device::{Global, GlobalMut, block_idx, fma, kernel, thread_idx};
use cutlet_layout_core::{L, RowMajor, Tensor, Tv};

/// Elements that a block covers: one row of 1024.
pub type Tile = L!((1, 1024):(1@0, 1@1));
/// 256 threads, each with 4 values that lie 256 apart, so that a warp's accesses are contiguous.
type Threads = Tv<L!(256:1@1), L!(4:256@1)>;

/// `y[i] = a·x[i] + y[i]` for `i` in `0 .. n`; one block covers [`Tile`].
///
/// # Safety
/// `x` and `y` must have `n` elements.
#[kernel(threads = 256)]
pub unsafe fn saxpy(n: i32, a: f32, x: Global<f32>, y: GlobalMut<f32>) {
    // SAFETY: the launcher promises n elements behind each pointer.
    let (x, y) = unsafe {
        (
            Tensor::new(x, RowMajor::new([1, n], 0)),
            Tensor::new(y, RowMajor::new([1, n], 0)),
        )
    };
    let tile = (0u32, block_idx().x);
    let x = x
        .local_tile::<Tile>(tile)
        .partition::<Threads>(thread_idx());
    let y = y
        .local_tile::<Tile>(tile)
        .partition::<Threads>(thread_idx());

    let (xs, ys) = (x.load(0.0), y.load(0.0));
    y.store(&ys.map(|v, y| fma(a, xs.get(v), y)));
}
