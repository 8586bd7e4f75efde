//! A tile must be a whole number of what a tiled MMA covers.

use cutlet_layout_core::{L, M16N8K16Bits16, RowMajor, Tensor, TiledCopy, TiledMma, Width};

/// Two warps below one another have 32 rows.
type Mma = TiledMma<M16N8K16Bits16, L!((2, 2):(1, 2))>;
/// Three threads side by side.
type Copy = TiledCopy<Width<1>, L!((1, 3):(0, 1)), L!((1, 1):(0, 0))>;

fn main() {
    let memory = [0.0f32; 48 * 32];
    let c = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([48, 32], 32)) };
    Mma::thread_slice(0u32).partition_c(c.local_tile::<L!((48, 32):(1@0, 1@1))>((0, 0)));
    Mma::thread_slice(0u32).partition_c(c);
    Copy::thread_slice(0u32).partition(c.local_tile::<L!((1, 3):(1@0, 1@1))>((0, 0)));
}
