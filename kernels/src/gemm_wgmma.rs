//! gemm_wgmma: `C = alpha·A·B + beta·C` in bf16 and f16 on Hopper's tensor cores.
//!
//! A block has three roles. One thread of the first warpgroup *produces*: it has TMA load tiles of A
//! and B into a ring of shared-memory stages. Two warpgroups *consume*: each multiplies its 64 rows
//! of a 128×256 tile of C with `wgmma`, and then stores them through shared memory, which TMA
//! writes out while the next tile is being multiplied. The block stays for the whole launch; a
//! *schedule* says which tiles are its. Two blocks of a cluster have neighbouring tiles of the same
//! columns and load half of each tile of B for both.

use cutlet_device::hopper::{
    Accumulator, AccumulatorLayout, CacheHint, Float16, KMajor, KMajorTile, LoadOptions, Major,
    MnMajor, Multicast, OperandTile, Pipeline, StageIdx, TensorMap, TileBox, Wgmma,
    WgmmaInstruction, cluster_sync, decrease_registers, elect_one, fence_async_shared,
    increase_registers, prefetch_tensor_map, store_accumulator, tma_store_commit, tma_store_wait,
    tma_store_wait_read, warpgroup_arrive, warpgroup_idx, warpgroup_sync, warpgroup_thread_idx,
    warpgroup_wait,
};
use cutlet_device::{
    DeviceData, GlobalMut, Schedule, SharedMemory, cluster_rank, fma, instantiate, warp_idx_sync,
};
use cutlet_layout_core::{L, RowMajor, Tensor, tile_origin, tiles};

/// The tile of C that a block computes: (m, n).
pub type TileC = L!((128, 256):(1@0, 1@1));
/// The rows of it that one consumer computes.
type RowsC = L!((64, 256):(1@0, 1@1));
/// A step's tile of A: (m, k).
pub type TileA = L!((128, 64):(1@0, 1@1));
/// A step's tile of B: (n, k).
pub type TileB = L!((256, 64):(1@0, 1@1));

/// Blocks of a cluster.
pub const CLUSTER: u32 = 2;
/// Stages of the ring that the producer fills.
const STAGES: usize = 3;
/// Warpgroups that consume.
const CONSUMERS: u32 = 2;

/// The instruction of a kernel: 64×256 sums of products of `T`.
type Mma<T, JA, JB> = Wgmma<256, T, T, JA, JB>;
/// A stage's tile of A in shared memory.
type SharedA<T, JA> = OperandTile<T, JA, 128, 64>;
/// A stage's tile of B in shared memory.
type SharedB<T, JB> = OperandTile<T, JB, 256, 64>;
/// The tile of C in shared memory, on its way out.
type SharedC<T> = KMajorTile<T, 128, 256>;

/// Bytes of shared memory of a block: the stages, the tile of C, barriers, and room to align.
const SHARED: u32 = {
    let stage = SharedA::<half::bf16, KMajor>::BYTES + SharedB::<half::bf16, KMajor>::BYTES;
    STAGES as u32 * stage + SharedC::<half::bf16>::BYTES + 1024
};

/// The box of A's tensor map.
pub const fn box_a<T: DeviceData, JA: Major>() -> TileBox {
    SharedA::<T, JA>::tile_box(1)
}

/// The box of B's tensor map: each block of a cluster loads its part.
pub const fn box_b<T: DeviceData, JB: Major>() -> TileBox {
    SharedB::<T, JB>::tile_box(CLUSTER as usize)
}

/// The box of C's tensor map: each consumer stores its rows.
pub const fn box_c<T: DeviceData>() -> TileBox {
    SharedC::<T>::tile_box(CONSUMERS as usize)
}

/// Extents and factors of `C[m, n] = alpha · Σₖ A[m, k]·B[k, n] + beta · C[m, n]`; C is row-major, and
/// not read where `beta` is 0. k is at least 1.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Problem {
    /// Elements from one row of C to the next.
    pub ldc: i64,
    /// Rows of A and C.
    pub m: i32,
    /// Columns of B and C.
    pub n: i32,
    /// Columns of A, rows of B.
    pub k: i32,
    /// Rows of tiles that blocks visit together.
    pub group: u32,
    /// Factor of the product.
    pub alpha: f32,
    /// Factor of the old C.
    pub beta: f32,
}

/// All tiles of C that are this block's; any grid of whole clusters computes all of C.
///
/// # Safety
/// The maps must describe A as (m, k), B as (n, k) and C as (m, n), with the boxes [`box_a`],
/// [`box_b`] and [`box_c`]; `c` must be C's memory.
#[inline(always)]
unsafe fn gemm<T, JA, JB>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<T>,
    problem: Problem,
) where
    T: Float16 + Default,
    JA: Major,
    JB: Major,
    Mma<T, JA, JB>: WgmmaInstruction<A = T, B = T, MajorA = JA, MajorB = JB>,
{
    let Problem {
        ldc,
        m,
        n,
        k,
        group,
        alpha,
        beta,
    } = problem;
    let [_, steps] = tiles::<TileA>([m, k]);
    let schedule = Schedule::<CLUSTER>::new(tiles::<TileC>([m, n]), group);

    let mut shared = SharedMemory::new();
    let ring_a = SharedA::<T, JA>::take_ring::<STAGES>(&mut shared);
    let ring_b = SharedB::<T, JB>::take_ring::<STAGES>(&mut shared);
    let tile_c = SharedC::<T>::take(&mut shared);
    let pipeline = Pipeline::<STAGES, { CLUSTER as usize }>::take(&mut shared);
    if warp_idx_sync().is_first() && elect_one() {
        prefetch_tensor_map(map_a);
        prefetch_tensor_map(map_b);
        prefetch_tensor_map(map_c);
        // SAFETY: nobody uses the barriers before the cluster has met.
        unsafe { pipeline.init(1, CONSUMERS) };
    }
    cluster_sync();

    if warpgroup_idx().is_first() {
        decrease_registers::<40>();
        if warp_idx_sync().is_first() && elect_one() {
            let bytes = SharedA::<T, JA>::BYTES + SharedB::<T, JB>::BYTES;
            let both = LoadOptions::DEFAULT
                .hint(CacheHint::EvictLast)
                .multicast(Multicast::first(CLUSTER));
            let mut producer = pipeline.producer();
            for (row, column) in schedule {
                for step in 0..steps {
                    let filling = producer.acquire(bytes);
                    let (stage, barrier) = (filling.stage(), filling.barrier());
                    let a = tile_origin::<TileA>((row, step));
                    let b = tile_origin::<TileB>((column, step));
                    // SAFETY: the maps have these tiles' boxes, and the stage is empty.
                    unsafe {
                        ring_a
                            .stage(stage)
                            .load(map_a, a, barrier, LoadOptions::DEFAULT);
                        ring_b.stage(stage).load_part::<{ CLUSTER as usize }, 2>(
                            cluster_rank(),
                            map_b,
                            b,
                            barrier,
                            both,
                        );
                    }
                }
            }
            producer.drain();
        }
        return;
    }

    increase_registers::<232>();
    let consumer_idx = warpgroup_idx().after(1);
    let thread = warpgroup_thread_idx();
    // TMA writes rows of C in units of 16 bytes: where they end within one, threads write them.
    let by_tma = n % (16 / size_of::<T>() as i32) == 0;
    let mut consumer = pipeline.consumer();
    for (row, column) in schedule {
        let mut sums = Accumulator::<Mma<T, JA, JB>>::new();
        let multiply = |sums: &mut Accumulator<Mma<T, JA, JB>>, stage: StageIdx, add: bool| {
            let a = ring_a.stage(stage).operand_a().rows(consumer_idx);
            let b = ring_b.stage(stage).operand_b();
            let batch = warpgroup_arrive();
            // SAFETY: the stage is full until it is released.
            unsafe {
                batch.mma(sums, a.k_step(0), b.k_step(0), add);
                batch.mma(sums, a.k_step(1), b.k_step(1), true);
                batch.mma(sums, a.k_step(2), b.k_step(2), true);
                batch.mma(sums, a.k_step(3), b.k_step(3), true);
            }
            batch.commit();
        };
        let mut under_way = consumer.wait();
        multiply(&mut sums, under_way.stage(), false);
        for _ in 1..steps {
            let filled = consumer.wait();
            multiply(&mut sums, filled.stage(), true);
            // The batch before is done: its stage may be filled again.
            warpgroup_wait::<1>();
            consumer.release(under_way, thread);
            under_way = filled;
        }
        let mut sums = sums.wait();
        consumer.release(under_way, thread);

        if alpha != 1.0 || beta != 0.0 {
            sums = sums.map(|_, sum| alpha * sum);
        }
        if beta != 0.0 {
            // SAFETY: the launcher promises that C is there; these rows are this consumer's.
            let old = unsafe { Tensor::new(c, RowMajor::new([m, n], ldc)) };
            let old = old
                .local_tile::<TileC>((row, column))
                .local_tile::<RowsC>((consumer_idx, 0u32))
                .partition::<AccumulatorLayout<Mma<T, JA, JB>>>(thread);
            sums = sums.map(|v, sum| fma(beta, T::to_f32(old.value(v, T::default())), sum));
        }
        if !by_tma {
            // SAFETY: the launcher promises that C is there; these rows are this consumer's.
            let c = unsafe { Tensor::new(c, RowMajor::new([m, n], ldc)) };
            c.local_tile::<TileC>((row, column))
                .local_tile::<RowsC>((consumer_idx, 0u32))
                .partition::<AccumulatorLayout<Mma<T, JA, JB>>>(thread)
                .store(&sums.map(|_, sum| T::from_f32(sum)));
            continue;
        }
        // The tile of C is free once the store before has read it.
        if thread.is_first() {
            tma_store_wait_read::<0>();
        }
        warpgroup_sync(consumer_idx);
        // SAFETY: these rows of the tile are this consumer's.
        unsafe {
            store_accumulator::<Mma<T, JA, JB>, _, _, _>(tile_c, consumer_idx, thread, &sums)
        };
        fence_async_shared();
        warpgroup_sync(consumer_idx);
        if thread.is_first() {
            let at = tile_origin::<TileC>((row, column));
            // SAFETY: the map has this tile's box, and the rows are written.
            unsafe { tile_c.store_part::<{ CONSUMERS as usize }, 2>(consumer_idx, map_c, at) };
            tma_store_commit();
        }
    }
    if thread.is_first() {
        tma_store_wait::<0>();
    }
}

/// Threads of a block: the producer's warpgroup and the consumers'.
const THREADS: u32 = 128 * (1 + CONSUMERS);

macro_rules! instances {
    ($element:ty: $($(#[$doc:meta])* $name:ident = $a:ty, $b:ty;)+) => {
        instantiate! {$(
            $(#[$doc])*
            #[kernel(threads = THREADS, min_blocks = 1, cluster = CLUSTER, shared = SHARED, arch = "sm_90a")]
            pub unsafe fn $name(
                #[grid_constant] map_a: &TensorMap,
                #[grid_constant] map_b: &TensorMap,
                #[grid_constant] map_c: &TensorMap,
                c: GlobalMut<$element>,
                problem: Problem,
            ) = gemm::<$element, $a, $b>;
        )+}
    };
}

/// Instances for bf16.
pub mod bf16 {
    use super::*;

    instances! { half::bf16:
        /// A and B row-major.
        gemm_bf16_row_row = KMajor, MnMajor;
        /// A row-major, B column-major.
        gemm_bf16_row_col = KMajor, KMajor;
        /// A column-major, B row-major.
        gemm_bf16_col_row = MnMajor, MnMajor;
        /// A and B column-major.
        gemm_bf16_col_col = MnMajor, KMajor;
    }
}

/// Instances for f16.
pub mod f16 {
    use super::*;

    instances! { half::f16:
        /// A and B row-major.
        gemm_f16_row_row = KMajor, MnMajor;
        /// A row-major, B column-major.
        gemm_f16_row_col = KMajor, KMajor;
        /// A column-major, B row-major.
        gemm_f16_col_row = MnMajor, MnMajor;
        /// A and B column-major.
        gemm_f16_col_col = MnMajor, KMajor;
    }
}
