//! RMSNorm of the rows of a matrix, of any length: `y = x / √(mean of x² + ε) · weight`.

use cutlet_device::collective::BlockReduce;
use cutlet_device::{
    Float, Global, GlobalMut, Threads, block_idx, fma, instantiate, rsqrt_approx, thread_idx,
};
use cutlet_layout_core::{
    CopyPartition, L, RowMajor, Tensor, ThreadCopy, ThreadValue, TiledCopy, Width,
};
use half::bf16;

/// A part of a row.
type Tile = L!((1, 8192):(1@0, 1@1));
/// Eight neighbours a thread, for rows that begin at multiples of 16 bytes.
type ByVector = TiledCopy<Width<8>, L!((1, 256):(0, 1)), L!((1, 8):(0, 1))>;
/// One element a thread.
type ByElement = TiledCopy<Width<1>, L!((1, 256):(0, 1)), L!((1, 1):(0, 0))>;

/// A block normalises a row. It reads the row twice, the second time from a cache.
///
/// # Safety
/// `x` and `y` have `rows` × `columns` elements, and `weight` has `columns`. They are aligned for `C`'s accesses.
#[inline(always)]
unsafe fn rms_norm<C: Copy + 'static>(
    [rows, columns]: [i32; 2],
    epsilon: f32,
    x: Global<bf16>,
    weight: Global<bf16>,
    y: GlobalMut<bf16>,
    mut squares: BlockReduce<f32, Threads<256>>,
) where
    CopyPartition<C, Tile>: ThreadValue,
{
    let (extent, thread) = ([rows, columns], thread_idx().of_block());
    // SAFETY: as promised by the caller. The weights are a matrix whose rows are 0 elements apart.
    let (x, weight, y) = unsafe {
        (
            Tensor::new(x, RowMajor::new(extent, columns as i64)),
            Tensor::new(weight, RowMajor::new(extent, 0)),
            Tensor::new(y, RowMajor::new(extent, columns as i64)),
        )
    };
    let (row, parts) = (block_idx().x, x.tiles::<Tile>()[1]);
    let copy = ThreadCopy::<C, _>::new(thread);

    let mut sum = 0.0;
    for part in 0..parts {
        let x = copy.partition(x.local_tile::<Tile>((row, part)));
        x.for_each(|_, x| {
            let x = Float::to_f32(x);
            sum = fma(x, x, sum);
        });
    }
    let scale = rsqrt_approx(squares.sum(thread, sum) / columns as f32 + epsilon);
    for part in 0..parts {
        let at = (row, part);
        let x = copy.partition(x.local_tile::<Tile>(at)).load(bf16::ZERO);
        let weight = copy
            .partition(weight.local_tile::<Tile>(at))
            .load(bf16::ZERO);
        let normal =
            |v| Float::from_f32(Float::to_f32(x.get(v)) * scale * Float::to_f32(weight.get(v)));
        copy.partition(y.local_tile::<Tile>(at)).store_with(normal);
    }
}

instantiate! {
    /// [`rms_norm`] of rows that begin at multiples of 16 bytes, as the weights do.
    #[kernel(threads = 256)]
    pub unsafe fn rms_norm_by_vector(
        extent: [i32; 2],
        epsilon: f32,
        x: Global<bf16>,
        weight: Global<bf16>,
        y: GlobalMut<bf16>,
        #[shared] squares: BlockReduce<f32, Threads<256>>,
    ) = rms_norm::<ByVector>(..);

    /// [`rms_norm`] of any rows.
    #[kernel(threads = 256)]
    pub unsafe fn rms_norm_by_element(
        extent: [i32; 2],
        epsilon: f32,
        x: Global<bf16>,
        weight: Global<bf16>,
        y: GlobalMut<bf16>,
        #[shared] squares: BlockReduce<f32, Threads<256>>,
    ) = rms_norm::<ByElement>(..);
}
