//! Step 1, naive: a thread computes one element of C, and reads a row of A and a row of B for it.
//!
//! Neighbouring threads read different rows of B, so a warp's load touches 32 sectors for 64 bytes.

use cutlet_device::{Float, Global, GlobalMut, block_idx, fma, kernel, thread_idx};
use cutlet_layout_core::{L, Tv};
use half::bf16;

use crate::matrices::matrices;

/// A block's tile of C, and the elements of A and of B that it needs for one k.
type TileC = L!((8, 32):(1@0, 1@1));
type TileA = L!((8, 1):(1@0, 1@1));
type TileB = L!((32, 1):(1@0, 1@1));
/// A warp has a row of the tile of C. Its threads share an element of A, and have different ones of B.
type OfC = Tv<L!((32, 8):(1@1, 1@0)), L!(1:0)>;
type OfA = Tv<L!((32, 8):(0, 1@0)), L!(1:0)>;
type OfB = Tv<L!((32, 8):(1@0, 0)), L!(1:0)>;

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The matrices must have these extents: m, n and k.
#[kernel(threads = 256)]
pub unsafe fn naive(extents: [i32; 3], a: Global<bf16>, b: Global<bf16>, c: GlobalMut<bf16>) {
    // SAFETY: the launcher promises the extents.
    let (a, b, c) = unsafe { matrices(extents, a, b, c) };
    let (row, column) = (block_idx().y, block_idx().x);
    let thread = thread_idx();

    let mut sum = 0.0;
    for k in 0..a.tiles::<TileA>()[1] {
        let x = a
            .local_tile::<TileA>((row, k))
            .partition_broadcast::<OfA>(thread);
        let y = b
            .local_tile::<TileB>((column, k))
            .partition_broadcast::<OfB>(thread);
        let (x, y) = (x.value(0, bf16::ZERO), y.value(0, bf16::ZERO));
        sum = fma(Float::to_f32(x), Float::to_f32(y), sum);
    }
    c.local_tile::<TileC>((row, column))
        .partition::<OfC>(thread)
        .store_with(|_| Float::from_f32(sum));
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &naive)?;
    let (extents, grid) = (it.extents(), it.grid([8, 32]));
    // SAFETY: the operands have these extents.
    unsafe { stream.launch(&function, grid, (extents, it.a, it.b, it.c.reborrow())) }?;
    Ok(())
}
