//! A product by `mma.sync`: by a `TiledMma` and a `TiledCopy`, and indexed by hand.

use cutlet_device::cp_async::{cp_async, cp_async_commit, cp_async_wait};
use cutlet_device::sm80::{Mma16816, WarpMma};
use cutlet_device::tile::KMajorTile;
use cutlet_device::tiled::{CpAsync, LdMatrix, copy, gemm, load_a, load_b};
use cutlet_device::{
    Global, GlobalMut, MmaInstruction, Shared, block_idx, kernel, ldmatrix, sync_threads,
    thread_idx,
};
use cutlet_layout_core::{Fragment, L, RowMajor, Steps, Tensor, TiledCopy, TiledMma, each};
use half::bf16;

/// 2×2 warps.
type Mma = TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>;
/// 16 bytes of a row a thread.
type Load = TiledCopy<CpAsync<8>, L!((16, 8):(8, 1)), L!((1, 8):(0, 1))>;
/// A block's tile of C, and tiles of A and B for 64 k.
type Tile = L!((64, 64):(1@0, 1@1));
/// Lines of 128 bytes, whose units of 16 bytes are swizzled.
type Stored = KMajorTile<bf16, 64, 64>;

/// `C = A·Bᵀ`, a block for each tile of 64×64. A has m rows of k elements, B n rows, and C m rows of n elements.
///
/// # Safety
/// The matrices have these extents. A and B begin at multiples of 16 bytes, and k is a multiple of 8.
#[kernel(threads = 128)]
pub unsafe fn product_by_layout(
    [m, n, k]: [i32; 3],
    a: Global<bf16>,
    b: Global<bf16>,
    c: GlobalMut<f32>,
    #[shared] (tile_a, tile_b): (Stored, Stored),
) {
    // SAFETY: the launcher promises the matrices. Barriers order the accesses to the tiles.
    let (a, b, c, tile_a, tile_b) = unsafe {
        (
            Tensor::new(a, RowMajor::new([m, k], k as i64)),
            Tensor::new(b, RowMajor::new([n, k], k as i64)),
            Tensor::new(c, RowMajor::new([m, n], n as i64)),
            tile_a.tensor(),
            tile_b.tensor(),
        )
    };
    let (row, column) = (block_idx().y, block_idx().x);
    let (mma, load) = (
        Mma::thread_slice(thread_idx()),
        Load::thread_slice(thread_idx()),
    );
    let mut sums = mma.fragment_c::<Tile, f32>(0.0);
    for k_tile in 0..a.tiles::<Tile>()[1] {
        copy(
            &load.partition(a.local_tile::<Tile>((row, k_tile))),
            &load.partition(tile_a),
        );
        copy(
            &load.partition(b.local_tile::<Tile>((column, k_tile))),
            &load.partition(tile_b),
        );
        cp_async_commit();
        cp_async_wait::<0>();
        sync_threads();
        each::<Steps<Mma, Tile>>(|step| {
            let a = load_a(LdMatrix, mma, tile_a, step);
            let b = load_b(LdMatrix, mma, tile_b, step);
            gemm(mma, &a, &b, &mut sums);
        });
        sync_threads();
    }
    mma.partition_c(c.local_tile::<Tile>((row, column)))
        .store(&sums);
}

/// Accumulators of an instruction.
type Sums = Fragment<f32, <Mma16816<bf16> as MmaInstruction>::Values>;

/// [`product_by_layout`], indexed by hand.
///
/// # Safety
/// As [`product_by_layout`].
#[kernel(threads = 128)]
pub unsafe fn product_by_hand(
    [m, n, k]: [i32; 3],
    a: Global<bf16>,
    b: Global<bf16>,
    c: GlobalMut<f32>,
    #[shared] (tile_a, tile_b): (Stored, Stored),
) {
    let thread = thread_idx().get() as i32;
    let (tile_a, tile_b) = (tile_a.start(), tile_b.start());
    let (first_row, first_column) = (
        block_idx().y.get() as i32 * 64,
        block_idx().x.get() as i32 * 64,
    );
    // Warps below one another have 16 rows in turns, and warps side by side 8 columns.
    let (lane, below, aside) = (thread % 32, thread / 32 % 2, thread / 64);
    // Where a lane's row begins for `ldmatrix`: 16 rows of A for two units of k, two times 8 rows of B likewise.
    let line_a = 64 * (16 * below + lane % 16);
    let line_b = 64 * (16 * (lane / 16) + 8 * aside + lane % 8);
    let (unit_a, unit_b) = (lane / 16, lane / 8 % 2);

    let mut sums = [[Sums::filled(0.0); 2]; 4];
    let mut first_k = 0;
    while first_k < k {
        // SAFETY: the launcher promises A and B.
        unsafe {
            fill(a, [m, k], [first_row, first_k], tile_a, thread);
            fill(b, [n, k], [first_column, first_k], tile_b, thread);
        }
        cp_async_commit();
        cp_async_wait::<0>();
        sync_threads();
        let mut step = 0;
        while step < 4 {
            let place_a = line_a + 8 * ((2 * step + unit_a) ^ (lane % 8));
            let place_b = line_b + 8 * ((2 * step + unit_b) ^ (lane % 8));
            // SAFETY: the tiles are written, and the lines lie in them.
            unsafe {
                let of_a: [[u32; 4]; 2] = [
                    ldmatrix(tile_a.offset(place_a as i64)),
                    ldmatrix(tile_a.offset((place_a + 32 * 64) as i64)),
                ];
                let mut pair = 0;
                while pair < 2 {
                    let [b0, b1, b2, b3] =
                        ldmatrix(tile_b.offset((place_b + 32 * 64 * pair as i32) as i64));
                    let mut atom = 0;
                    while atom < 2 {
                        Mma16816::<bf16>::mma(&mut sums[2 * pair][atom], of_a[atom], [b0, b1]);
                        Mma16816::<bf16>::mma(&mut sums[2 * pair + 1][atom], of_a[atom], [b2, b3]);
                        atom += 1;
                    }
                    pair += 1;
                }
            }
            step += 1;
        }
        sync_threads();
        first_k += 64;
    }

    let (row, column) = (
        first_row + 16 * below + lane / 4,
        first_column + 8 * aside + 2 * (lane % 4),
    );
    let (first, eight_rows) = (row as i64 * n as i64 + column as i64, 8 * n as i64);
    // How many are left.
    let (rows, columns) = (m - row, n - column);
    let mut block = 0;
    while block < 4 {
        let mut atom = 0;
        while atom < 2 {
            let mut v = 0;
            while v < 4 {
                let below = 32 * atom as i32 + 8 * (v as i32 / 2);
                let aside = 16 * block as i32 + v as i32 % 2;
                if below < rows && aside < columns {
                    let at = first + (below / 8) as i64 * eight_rows + aside as i64;
                    // SAFETY: the element is inside C, and no other thread writes it.
                    unsafe { c.store(at, sums[block][atom].get(v)) };
                }
                v += 1;
            }
            atom += 1;
        }
        block += 1;
    }
}

/// Copies a tile of 64×64 elements of a matrix.
///
/// # Safety
/// The matrix has these extents.
#[inline(always)]
unsafe fn fill(
    from: Global<bf16>,
    [rows, columns]: [i32; 2],
    [first_row, first_column]: [i32; 2],
    to: Shared<bf16>,
    thread: i32,
) {
    let (line, unit) = (thread / 8, thread % 8);
    let (row, column) = (first_row + line, first_column + 8 * unit);
    // How many rows are left, and elements of a row.
    let (rest, inside) = (rows - row, (columns - column).clamp(0, 8) as u32);
    let (first, step) = (
        row as i64 * columns as i64 + column as i64,
        16 * columns as i64,
    );
    let place = 64 * line + 8 * (unit ^ (line % 8));
    let mut i = 0;
    while i < 4 {
        let count = if 16 * i < rest { inside } else { 0 };
        // SAFETY: the first `count` elements are inside the matrix, and the others are not read.
        unsafe {
            cp_async::<bf16, 8>(
                to.offset((place + 16 * 64 * i) as i64),
                from.offset(first + i as i64 * step),
                count,
            );
        }
        i += 1;
    }
}
