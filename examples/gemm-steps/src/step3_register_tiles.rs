//! Step 3, register tiles: a thread computes 8×8 elements of C, so each element that it reads from shared memory takes
//! part in 8 products.

use cutlet_device::tile::SharedTile;
use cutlet_device::{Float, Global, GlobalMut, block_idx, fma, kernel, sync_threads, thread_idx};
use cutlet_layout_core::{Fragment, L, Sw, Tv, each};
use half::bf16;

use crate::matrices::matrices;

/// A block's tile of C, and tiles of A and of B for 16 k.
type TileC = L!((128, 128):(1@0, 1@1));
type Tile = L!((128, 16):(1@0, 1@1));
/// The same in shared memory: k is the outer mode, and four bits of k are XORed into the bits that choose a bank.
type Stored = SharedTile<bf16, L!((128, 16):(1, 128)), Sw<4, 1, 6>>;
/// 16 threads copy the 16 k of a row. A thread has 8 rows.
type Copy = Tv<L!((16, 16):(1@1, 1@0)), L!(8:16@0)>;
/// 16×16 threads, each with 8 rows of A and 8 of B, 16 apart: for one k after the other.
type OfA = Tv<L!((16, 16):(0, 1@0)), L!((8, 16):(16@0, 1@1))>;
type OfB = Tv<L!((16, 16):(1@0, 0)), L!((8, 16):(16@0, 1@1))>;
/// Their 8×8 elements of C.
type OfC = Tv<L!((16, 16):(1@1, 1@0)), L!((8, 8):(16@0, 16@1))>;
/// The 8 rows for one k, and the numbers of the k.
type Rows = L!(8:1);
type Ks = L!(16:1);
/// Accumulators by (row, column).
type Sums = L!((8, 8):(1, 8));

/// `C = A·B`, a block for each tile of C.
///
/// # Safety
/// The matrices must have these extents: m, n and k.
#[kernel(threads = 256)]
pub unsafe fn register_tiles(
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

        let (of_a, of_b) = (
            tile_a.partition_broadcast::<OfA>(thread),
            tile_b.partition_broadcast::<OfB>(thread),
        );
        each::<Ks>(|k| {
            let mut x = Fragment::<bf16, Rows>::filled(bf16::ZERO);
            let mut y = x;
            of_a.load_into(&mut x, 8 * k);
            of_b.load_into(&mut y, 8 * k);
            let (x, y) = (
                x.map(|_, x| Float::to_f32(x)),
                y.map(|_, y| Float::to_f32(y)),
            );
            each::<Sums>(|v| sums.set(v, fma(x.get(v % 8), y.get(v / 8), sums.get(v))));
        });
        sync_threads();
    }
    c.local_tile::<TileC>((row, column))
        .partition::<OfC>(thread)
        .store_with(|v| Float::from_f32(sums.get(v)));
}

#[cfg(not(target_arch = "nvptx64"))]
pub(crate) fn gemm(stream: &cutlet_host::Stream, mut it: crate::Operands<'_>) -> crate::Result<()> {
    let function = stream.device().load(&crate::PTX, &register_tiles)?;
    let (extents, grid) = (it.extents(), it.grid([128, 128]));
    // SAFETY: the operands have these extents.
    unsafe { stream.launch(&function, grid, (extents, it.a, it.b, it.c.reborrow())) }?;
    Ok(())
}
