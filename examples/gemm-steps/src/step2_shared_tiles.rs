//! Step 2, shared tiles: a block copies tiles of A and B to shared memory, where 32 threads read each element.
//!
//! The copies run along k, as the matrices do, and the product runs along m and n. The swizzle serves both without bank
//! conflicts: it XORs four bits of k into the bits of mn that choose a bank.

use cutlet_device::tile::SharedTile;
use cutlet_device::{Float, Global, GlobalMut, block_idx, fma, kernel, sync_threads, thread_idx};
use cutlet_layout_core::{L, Sw, Tv, each};
use half::bf16;

use crate::matrices::matrices;

/// A block's tile of C, and tiles of A and of B for 32 k.
type Tile = L!((32, 32):(1@0, 1@1));
/// The same in shared memory: k is the outer mode.
type Stored = SharedTile<bf16, L!((32, 32):(1, 32)), Sw<4, 1, 5>>;
/// A warp copies a row of a tile, and computes a row of C.
type AlongRows = Tv<L!((32, 32):(1@1, 1@0)), L!(1:0)>;
/// A thread's row of A, and of B, over all k of a tile.
type OfA = Tv<L!((32, 32):(0, 1@0)), L!(32:1@1)>;
type OfB = Tv<L!((32, 32):(1@0, 0)), L!(32:1@1)>;

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The matrices must have these extents: m, n and k.
#[kernel(threads = 1024)]
pub unsafe fn shared_tiles(
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

    let mut sum = 0.0;
    for k_tile in 0..a.tiles::<Tile>()[1] {
        let x = a
            .local_tile::<Tile>((row, k_tile))
            .partition::<AlongRows>(thread);
        let y = b
            .local_tile::<Tile>((column, k_tile))
            .partition::<AlongRows>(thread);
        // Elements outside of a matrix are zeros in shared memory, and add nothing.
        tile_a
            .partition::<AlongRows>(thread)
            .store(&x.load(bf16::ZERO));
        tile_b
            .partition::<AlongRows>(thread)
            .store(&y.load(bf16::ZERO));
        sync_threads();

        let x = tile_a.partition_broadcast::<OfA>(thread);
        let y = tile_b.partition_broadcast::<OfB>(thread);
        each::<L!(32:1)>(|k| {
            let (x, y) = (x.value(k, bf16::ZERO), y.value(k, bf16::ZERO));
            sum = fma(Float::to_f32(x), Float::to_f32(y), sum);
        });
        // The tiles are overwritten after all threads have read them.
        sync_threads();
    }
    c.local_tile::<Tile>((row, column))
        .partition::<AlongRows>(thread)
        .store_with(|_| Float::from_f32(sum));
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &shared_tiles)?;
    let (extents, grid) = (it.extents(), it.grid([32, 32]));
    // SAFETY: the operands have these extents.
    unsafe { stream.launch(&function, grid, (extents, it.a, it.b, it.c.reborrow())) }?;
    Ok(())
}
