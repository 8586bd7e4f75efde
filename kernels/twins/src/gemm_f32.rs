//! The f32 GEMM of row-major, aligned operands, indexed by hand.

use core::num::NonZeroU32;

use cutlet_device::{
    DeviceData, Global, GlobalMut, Shared, SharedMemory, block_idx, fma, kernel, sync_threads,
    thread_idx,
};

/// Rows and columns of a block's tile of C.
const TILE: i32 = 128;
/// The k of a k-tile.
const K_TILE: i32 = 8;
/// Elements from one k to the next in shared memory.
const PITCH: i32 = TILE + 4;
/// Elements of a stage of one operand.
const STAGE: i32 = (K_TILE - 1) * PITCH + TILE;
/// Shared memory of a block: two stages of both operands.
const SHARED: u32 = 2 * 2 * STAGE as u32 * size_of::<f32>() as u32;

/// The problem, with the fields of the layout-driven kernel's.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Problem {
    /// Leading dimension of A.
    pub lda: i64,
    /// Leading dimension of B.
    pub ldb: i64,
    /// Leading dimension of C.
    pub ldc: i64,
    /// Rows of A and C.
    pub m: i32,
    /// Columns of B and C.
    pub n: i32,
    /// Columns of A, rows of B.
    pub k: i32,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the old C.
    pub beta: f32,
    /// Rows of tiles that blocks visit together: the group of the raster.
    pub group: u32,
}

/// `C = alpha·A·B + beta·C`, like the layout-driven kernel of the same name.
///
/// # Safety
/// As for the layout-driven kernel.
#[kernel(threads = 256, min_blocks = 2, shared = SHARED)]
pub unsafe fn gemm_f32_row_row_x4(
    a: Global<f32>,
    b: Global<f32>,
    c: GlobalMut<f32>,
    problem: Problem,
) {
    let Problem {
        lda,
        ldb,
        ldc,
        m,
        n,
        k,
        alpha,
        beta,
        group,
    } = problem;
    let mut memory = SharedMemory::new();
    let shared_a: Shared<f32> = memory.take(2 * STAGE as usize);
    let shared_b: Shared<f32> = memory.take(2 * STAGE as usize);
    let thread = thread_idx().get() as i32;

    let (tiles_m, tiles_n) = (
        (m as u32).div_ceil(TILE as u32),
        (n as u32).div_ceil(TILE as u32),
    );
    let block = block_idx().x.get();
    let group_tiles = NonZeroU32::new(group * tiles_n).unwrap_or(NonZeroU32::MIN);
    let first = block / group_tiles * group;
    let height = NonZeroU32::new(group.min(tiles_m - first)).unwrap_or(NonZeroU32::MIN);
    let row = ((first + block % group_tiles % height) * TILE as u32) as i32;
    let column = ((block % group_tiles / height) * TILE as u32) as i32;

    // A thread reads four elements. Two threads read a row of A, along k. 32 threads read a k of B, along n.
    let (a_row, a_k) = (thread / 2, thread % 2 * 4);
    let (b_k, b_column) = (thread / 32, thread % 32 * 4);
    let load = |k_tile: i32| {
        let (k_a, k_b) = (k_tile * K_TILE + a_k, k_tile * K_TILE + b_k);
        let (mut from_a, mut from_b) = ([0.0; 4], [0.0; 4]);
        if row + a_row < m && k_a < k {
            // SAFETY: the vector is inside A.
            from_a = unsafe { a.load_vec::<4>((row + a_row) as i64 * lda + k_a as i64) };
        }
        if column + b_column < n && k_b < k {
            // SAFETY: the vector is inside B.
            from_b = unsafe { b.load_vec::<4>(k_b as i64 * ldb + (column + b_column) as i64) };
        }
        (from_a, from_b)
    };

    // A warp is 4×8 threads, a block 4×2 warps.
    let (lane, warp) = (thread % 32, thread / 32);
    let mine_n = lane % 8 * 4 + warp % 2 * 32;
    let mine_m = lane / 8 * 4 + warp / 2 * 16;

    let mut next = load(0);
    let mut accumulators = [[0.0; 8]; 8];
    let mut k_tile = 0;
    while k_tile < (k as u32).div_ceil(K_TILE as u32) as i32 {
        let stage = k_tile % 2 * STAGE;
        let mut i = 0;
        while i < 4 {
            // SAFETY: the element is inside the stage, and no other thread writes it.
            unsafe {
                shared_a.store(
                    (stage + (a_k + i) * PITCH + a_row) as i64,
                    next.0[i as usize],
                );
            }
            i += 1;
        }
        // SAFETY: as above.
        unsafe { shared_b.store_vec((stage + b_k * PITCH + b_column) as i64, next.1) };
        sync_threads();

        next = load(k_tile + 1);

        let mut k = 0;
        while k < K_TILE {
            let (mut from_a, mut from_b) = ([0.0; 8], [0.0; 8]);
            let mut half = 0;
            while half < 2 {
                let at = stage + k * PITCH + half * 64;
                // SAFETY: the vectors are inside the stage and were written before the barrier.
                let (vector_a, vector_b) = unsafe {
                    (
                        shared_a.load_vec::<4>((at + mine_m) as i64),
                        shared_b.load_vec::<4>((at + mine_n) as i64),
                    )
                };
                let mut i = 0;
                while i < 4 {
                    from_a[half as usize * 4 + i] = vector_a[i];
                    from_b[half as usize * 4 + i] = vector_b[i];
                    i += 1;
                }
                half += 1;
            }
            let mut i = 0;
            while i < 8 {
                let mut j = 0;
                while j < 8 {
                    accumulators[i][j] = fma(from_a[i], from_b[j], accumulators[i][j]);
                    j += 1;
                }
                i += 1;
            }
            k += 1;
        }
        k_tile += 1;
    }

    let mut i = 0;
    while i < 8 {
        let r = row + mine_m + i as i32 / 4 * 64 + i as i32 % 4;
        let mut half = 0;
        while half < 2 {
            let at = column + mine_n + half as i32 * 64;
            if r < m && at < n {
                let index = r as i64 * ldc + at as i64;
                let acc = &accumulators[i][half * 4..half * 4 + 4];
                // SAFETY: the vector is inside C, and no other thread accesses it.
                unsafe {
                    let result = if beta == 0.0 {
                        [
                            alpha * acc[0],
                            alpha * acc[1],
                            alpha * acc[2],
                            alpha * acc[3],
                        ]
                    } else {
                        let old = c.load_vec::<4>(index);
                        [
                            fma(alpha, acc[0], beta * old[0]),
                            fma(alpha, acc[1], beta * old[1]),
                            fma(alpha, acc[2], beta * old[2]),
                            fma(alpha, acc[3], beta * old[3]),
                        ]
                    };
                    c.store_vec(index, result);
                }
            }
            half += 1;
        }
        i += 1;
    }
}
