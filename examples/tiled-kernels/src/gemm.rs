//! A GEMM of bf16 matrices of any extents: `cp.async` fills a ring of stages, and warps multiply them by `mma.sync`.

use cutlet_device::collective::{Stages, TileRing};
use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
use cutlet_device::sm80::Mma16816;
use cutlet_device::tile::{KMajor, OperandLayout, SwizzleSpan};
use cutlet_device::tiled::{CpAsync, LdMatrix, copy, gemm, load_a, load_b};
use cutlet_device::{Global, GlobalMut, block_idx, kernel, sync_threads, thread_idx};
use cutlet_layout_core::{L, RowMajor, Steps, Tensor, TiledCopy, TiledMma, each};
use half::bf16;

/// 2×2 warps.
type Mma = TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>;
/// Each thread copies eight neighbours along k at a time.
type Copy = TiledCopy<CpAsync<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>;

/// A block's tile of C.
pub type TileOfC = L!((64, 64):(1@0, 1@1));
/// A tile of A or of B: 32 of its k.
type TileOfK = L!((64, 32):(1@0, 1@1));
/// The stages of A, or of B.
type Ring =
    TileRing<bf16, OperandLayout<bf16, KMajor, 64, 32, 64>, SwizzleSpan<bf16, 64>, Stages<3>>;

/// `C = A·Bᵀ` for a row-major A (m×k), B (n×k) and C (m×n). The grid has a block for each tile of C.
///
/// # Safety
/// The matrices must have these extents. A and B begin at multiples of 16 bytes, and k is a multiple of 8.
#[kernel(threads = 128)]
pub unsafe fn gemm_bf16(
    [m, n, k]: [i32; 3],
    a: Global<bf16>,
    b: Global<bf16>,
    c: GlobalMut<f32>,
    #[shared] (ring_a, ring_b): (Ring, Ring),
) {
    // SAFETY: the launcher promises the matrices. Barriers order the reads and writes of stages.
    let (a, b, c, stage) = unsafe {
        (
            Tensor::new(a, RowMajor::new([m, k], k as i64)),
            Tensor::new(b, RowMajor::new([n, k], k as i64)),
            Tensor::new(c, RowMajor::new([m, n], n as i64)),
            |nth: u32| (ring_a.tile(nth % 3).tensor(), ring_b.tile(nth % 3).tensor()),
        )
    };
    let (row, column) = (block_idx().y, block_idx().x);
    let mma = Mma::thread_slice(thread_idx());
    let copier = Copy::thread_slice(thread_idx());

    // Tiles beyond the last one are outside of A and B, and become zeros.
    let fill = |k_tile: u32| {
        let (stage_a, stage_b) = stage(k_tile);
        copy(
            &copier.partition(a.local_tile::<TileOfK>((row, k_tile))),
            &copier.partition(stage_a),
        );
        copy(
            &copier.partition(b.local_tile::<TileOfK>((column, k_tile))),
            &copier.partition(stage_b),
        );
        cp_async_commit();
    };
    fill(0);
    fill(1);
    let mut sums = mma.fragment_c::<TileOfC, f32>(0.0);
    for k_tile in 0..a.tiles::<TileOfK>()[1] {
        cp_async_wait::<1>();
        // The tile has arrived, and no thread reads the stage of the tile before any more.
        sync_threads();
        fill(k_tile + 2);
        let (stage_a, stage_b) = stage(k_tile);
        each::<Steps<Mma, TileOfK>>(|step| {
            let a = load_a(LdMatrix, mma, stage_a, step);
            let b = load_b(LdMatrix, mma, stage_b, step);
            gemm(mma, &a, &b, &mut sums);
        });
    }
    cp_async_wait::<0>();
    mma.partition_c(c.local_tile::<TileOfC>((row, column)))
        .store(&sums);
}
