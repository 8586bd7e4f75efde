//! Step 4, vector loads: every access to A and B moves 16 bytes, from global memory and from shared memory.
//!
//! Tiles are K-major in shared memory, too, because vectors run along k. The swizzle moves a row's vectors about, so
//! that the rows which threads read at the same time are in different banks.

use cutlet_device::tile::KMajorTile;
use cutlet_device::{Float, Global, GlobalMut, block_idx, fma, kernel, sync_threads, thread_idx};
use cutlet_layout_core::{Fragment, L, ThreadIndex, Tv, each};
use half::bf16;

use crate::matrices::matrices;

/// A block's tile of C, and tiles of A and of B for 32 k.
pub type TileC = L!((128, 128):(1@0, 1@1));
/// See [`TileC`].
pub type Tile = L!((128, 32):(1@0, 1@1));
/// The same in shared memory: rows of 64 bytes, swizzled.
pub type Stored = KMajorTile<bf16, 128, 32, 64>;
/// A row has 4 vectors of 8 elements, one for each of 4 threads. A thread has two rows.
type Copy = Tv<L!((4, 64):(8@1, 1@0)), L!((8, 2):(1@1, 64@0)), 8>;
/// 16×16 threads, each with 8 rows of A and 8 of B, 16 apart: for 8 k after the other.
type OfA = Tv<L!((16, 16):(0, 1@0)), L!((8, 8, 4):(1@1, 16@0, 8@1)), 8>;
type OfB = Tv<L!((16, 16):(1@0, 0)), L!((8, 8, 4):(1@1, 16@0, 8@1)), 8>;
/// Their 8×8 elements of C.
pub type OfC = Tv<L!((16, 16):(1@1, 1@0)), L!((8, 8):(16@0, 16@1))>;
/// The 8 rows for 8 k, by (k, row), and the numbers of such steps.
type Vectors = L!((8, 8):(1, 8));
type Steps = L!(4:1);
/// Accumulators by (row, column).
pub type Sums = L!((8, 8):(1, 8));

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The matrices must have these extents: m, n and k. Their addresses and k in bytes must be multiples of 16.
#[kernel(threads = 256)]
pub unsafe fn vector_loads(
    extents: [i32; 3],
    a: Global<bf16>,
    b: Global<bf16>,
    c: GlobalMut<bf16>,
    #[shared] tiles: (Stored, Stored),
) {
    // SAFETY: the launcher promises the extents, and barriers order the uses of the tiles.
    let (a, b, c, tile_a, tile_b) = unsafe {
        let (a, b, c) = matrices(extents, a, b, c);
        (a, b, c, tiles.0.tensor(), tiles.1.tensor())
    };
    let (row, column) = (block_idx().y, block_idx().x);
    let thread = thread_idx();

    let mut sums = Fragment::<f32, Sums>::filled(0.0);
    for k_tile in 0..a.tiles::<Tile>()[1] {
        let x = a
            .local_tile::<Tile>((row, k_tile))
            .partition::<Copy>(thread);
        let y = b
            .local_tile::<Tile>((column, k_tile))
            .partition::<Copy>(thread);
        let (x, y) = (x.load(bf16::ZERO), y.load(bf16::ZERO));
        tile_a.partition::<Copy>(thread).store(&x);
        tile_b.partition::<Copy>(thread).store(&y);
        sync_threads();
        // SAFETY: the barriers are around the reads.
        unsafe { multiply(&mut sums, tiles.0, tiles.1, thread) };
        sync_threads();
    }
    c.local_tile::<TileC>((row, column))
        .partition::<OfC>(thread)
        .store_with(|v| Float::from_f32(sums.get(v)));
}

/// Adds the products of a tile of A and one of B to the thread's accumulators.
///
/// # Safety
/// Barriers must order the reads after the tiles' writes, and before those that follow.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn multiply(
    sums: &mut Fragment<f32, Sums>,
    a: Stored,
    b: Stored,
    thread: impl ThreadIndex,
) {
    // SAFETY: as promised by the caller.
    let (a, b) = unsafe { (a.tensor(), b.tensor()) };
    let a = a.partition_broadcast::<OfA>(thread);
    let b = b.partition_broadcast::<OfB>(thread);
    each::<Steps>(|step| {
        let mut x = Fragment::<bf16, Vectors>::filled(bf16::ZERO);
        let mut y = x;
        a.load_into(&mut x, 64 * step);
        b.load_into(&mut y, 64 * step);
        each::<L!(8:1)>(|k| {
            each::<Sums>(|v| {
                let (x, y) = (x.get(8 * (v % 8) + k), y.get(8 * (v / 8) + k));
                sums.set(v, fma(Float::to_f32(x), Float::to_f32(y), sums.get(v)));
            });
        });
    });
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &vector_loads)?;
    let (extents, grid) = (it.extents(), it.grid([128, 128]));
    // SAFETY: the operands have these extents. `Step::gemm` has checked k, and buffers are aligned to 256 bytes.
    unsafe { stream.launch(&function, grid, (extents, it.a, it.b, it.c.reborrow())) }?;
    Ok(())
}
