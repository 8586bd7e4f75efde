//! gemm_wgmma: `C = alpha·A·B + beta·C` in bf16 and f16 on Hopper's tensor cores.
//!
//! A block has two roles. One thread of the first warpgroup *produces*: it has TMA load tiles of A
//! and B into a ring of shared-memory stages. The other warpgroups *consume*: each multiplies its
//! 64 rows of the block's tile of C with `wgmma`, takes the sums through the *epilogue*, and writes
//! them to shared memory, from where TMA stores them while the next tile is being multiplied. The
//! block stays for the whole launch; a *schedule* says which tiles are its. Two blocks of a cluster
//! have neighbouring tiles of the same columns and load half of each tile of B for both.
//!
//! The tile's extents, the stages, the cluster, the operands' majors, the types and the epilogue are
//! parameters; [`instances`] lists those that the library launches.

mod ahead;
mod epilogue;
#[cfg(not(target_arch = "nvptx64"))]
mod instance;
pub mod instances;
pub mod parts;
mod pieces;

use cutlet_device::hopper::{
    Accumulator, AccumulatorLayout, CacheHint, Float16, LoadOptions, Major, Multicast, OperandTile,
    Pipeline, StageIdx, TensorMap, TileBox, TileRing, Turns, WarpgroupIdx, Wgmma, WgmmaInstruction,
    cluster_sync, decrease_registers, elect_one, grid_dependency_wait, increase_registers,
    launch_dependents, prefetch_tensor_map, tma_store_wait, warpgroup_arrive, warpgroup_idx,
    warpgroup_thread_idx, warpgroup_wait,
};
use cutlet_device::{
    DeviceData, GlobalMut, Schedule, SharedMemory, Work, cluster_rank, lane_idx, warp_idx_sync,
};
use cutlet_layout_core::{Coord, E, RowMajor, Tensor, tile_extent, tile_origin, tiles};

use ahead::Ahead;
pub use epilogue::{
    Activation, AnyActivation, AtLeast, BiasAlong, ColumnBias, Epilogue, Fused, Gelu, Linear, Pair,
    Relu, Residual, RowBias, Scale, Silu, Then, gelu, gelu_exact, relu, silu,
};
#[cfg(not(target_arch = "nvptx64"))]
pub use instance::{Arguments, Instance};
use pieces::{BUFFERS, PieceC, Pieces, SharedC};

/// The tile of C that a block computes: (m, n).
pub type TileC<const M: usize, const N: usize> = (E<M, 1, 0>, E<N, 1, 1>);
/// The rows of it that one consumer computes.
type RowsC<const N: usize> = TileC<64, N>;
/// A step's tile of A, (m, k), or of B, (n, k).
type TileAb<const MN: usize> = (E<MN, 1, 0>, E<K, 1, 1>);

/// The k of a step.
pub const K: usize = 64;
/// The most columns of a tile whose sums can go to the workspace, split or whole: larger ones have
/// enough to do.
pub const LARGEST_SPLIT: usize = 128;

/// The instruction of a kernel: 64×N sums of products of `T`.
type Mma<const N: usize, T, JA, JB> = Wgmma<N, T, T, JA, JB>;
/// A stage's tile of A in shared memory.
type SharedA<T, JA, const M: usize> = OperandTile<T, JA, M, K>;
/// A stage's tile of B in shared memory.
type SharedB<T, JB, const N: usize> = OperandTile<T, JB, N, K>;
/// Bytes of shared memory of a block: the stages, pieces of C, barriers, and room to align.
pub const fn shared_bytes(m: usize, n: usize, stages: usize, consumers: usize) -> u32 {
    let [rows, columns] = tile_extent::<PieceC>();
    let pieces = consumers * BUFFERS * (rows * columns) as usize;
    ((stages * (m + n) * K + pieces) * 2 + 1024) as u32
}

/// The box of A's tensor map.
pub const fn box_a<T: DeviceData, JA: Major, const M: usize>(columns: usize) -> TileBox {
    SharedA::<T, JA, M>::tile_box(columns)
}

/// The box of B's tensor map: each block of a cluster loads its part.
pub const fn box_b<T: DeviceData, JB: Major, const N: usize>(rows: usize) -> TileBox {
    SharedB::<T, JB, N>::tile_box(rows)
}

/// The box of C's tensor map: a piece of a warp's rows.
pub const fn box_c<T: DeviceData>() -> TileBox {
    SharedC::<T>::tile_box(4)
}

/// Extents of `C[m, n] = epilogue(Σₖ A[m, k]·B[k, n])`, and how the work is dealt out; C is row-major.
/// k is at least 1.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Problem {
    /// Elements from one row of C to the next.
    pub ldc: i64,
    /// Elements from one row of the workspace to the next: even, as its address is a multiple of 8
    /// bytes. If it is not 0, the sums go to the workspace, and neither the epilogue nor C is used.
    pub ld_parts: i64,
    /// Rows and columns of the workspace, the latter even: those of C, or whole tiles of it, and
    /// those of each part of the steps below those of the part before.
    pub parts: Coord,
    /// Rows of A and C.
    pub m: i32,
    /// Columns of B and C.
    pub n: i32,
    /// Columns of A, rows of B.
    pub k: i32,
    /// Rows of tiles that blocks visit together.
    pub group: u32,
    /// Parts into which the steps of each tile are split; with more than one, there must be a
    /// workspace.
    pub splits: u32,
    /// Steps of a part; the last one may have fewer, and has at least one.
    pub split_steps: u32,
    /// Bytes of a tile of A that are loaded: all, or only the first rows where C has no others.
    pub bytes_a: u32,
    /// Not 0 if each tile of B is read once, so that nothing is gained by keeping it in the cache.
    pub b_once: u32,
    /// Not 0 if TMA can store C: it starts at, and its rows are, a multiple of 16 bytes apart, and
    /// its columns are a multiple of 16 bytes, too, because TMA writes them in such units. An
    /// epilogue that reads rows or columns ahead needs it.
    pub tma_c: u32,
    /// Makes the size a multiple of the alignment.
    pub padding: u32,
}

impl Problem {
    /// Of A (m, k) and B (k, n), by an instance whose tiles have `tile_rows` rows and whose boxes of
    /// A are whole: no split, and C, whose rows are `ldc` elements apart, is stored without TMA.
    pub const fn new<T>([m, n, k]: [i32; 3], ldc: i64, tile_rows: usize) -> Self {
        Self {
            ldc,
            ld_parts: 0,
            parts: [0, 0],
            m,
            n,
            k,
            group: 8,
            splits: 1,
            split_steps: (k as u32).div_ceil(K as u32),
            bytes_a: (tile_rows * K * size_of::<T>()) as u32,
            b_once: (m as usize <= tile_rows) as u32,
            tma_c: 0,
            padding: 0,
        }
    }
}

/// All tiles of C that are this block's; any grid of whole clusters computes all of C.
///
/// A block has `CONSUMERS` consumers. Either they compute a tile of `M` = 64 · `CONSUMERS` rows
/// together, or there are two, and each has tiles of 64 rows of its own: then they take turns,
/// and one writes its tile while the other multiplies.
///
/// # Safety
/// The maps must describe A as (m, k), B as (n, k) and, with `tma_c`, C as (m, n), with the boxes
/// [`box_a`], [`box_b`] and [`box_c`]; `c` must be C's memory.
#[inline(always)]
pub unsafe fn gemm<
    T,
    JA,
    JB,
    Epi,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const ROWS: usize,
    const COLUMNS: usize,
    const CLUSTER: usize,
    const CONSUMERS: usize,
>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<T>,
    workspace: GlobalMut<f32>,
    problem: Problem,
    epilogue: Epi,
) where
    T: Float16 + Default,
    JA: Major,
    JB: Major,
    Epi: Epilogue,
    Mma<N, T, JA, JB>: WgmmaInstruction<A = T, B = T, MajorA = JA, MajorB = JB>,
{
    let together = const {
        assert!(
            M == 64 * CONSUMERS || (M == 64 && CONSUMERS == 2),
            "a consumer has 64 rows"
        );
        M == 64 * CONSUMERS
    };
    let Problem {
        ldc,
        m,
        n,
        k,
        group,
        ..
    } = problem;
    let [_, steps] = tiles::<TileAb<M>>([m, k]);
    let schedule =
        Schedule::<ROWS, COLUMNS>::new(tiles::<TileC<M, N>>([m, n]), group, problem.splits);
    let steps_of = |work: Work| work.steps(steps, problem.split_steps);

    let mut shared = SharedMemory::new();
    let ring_a = SharedA::<T, JA, M>::take_ring::<STAGES>(&mut shared);
    let ring_b = SharedB::<T, JB, N>::take_ring::<STAGES>(&mut shared);
    let mut buffers = || SharedC::<T>::take_ring::<CONSUMERS>(&mut shared);
    let buffers = [buffers(), buffers(), buffers(), buffers()];
    let pipeline = Pipeline::<STAGES, CLUSTER>::take(&mut shared);
    if warp_idx_sync().is_first() && elect_one() {
        prefetch_tensor_map(map_a);
        prefetch_tensor_map(map_b);
        prefetch_tensor_map(map_c);
        // SAFETY: nobody uses the barriers before the cluster has met.
        unsafe { pipeline.init(1, if together { CONSUMERS as u32 } else { 1 }) };
    }
    cluster_sync();
    // The next kernel may start where this one's blocks have ended; what it reads it waits for, as
    // this one does for the kernel before it.
    launch_dependents();
    grid_dependency_wait();

    if warpgroup_idx().is_first() {
        decrease_registers::<40>();
        if warp_idx_sync().is_first() && elect_one() {
            let bytes = problem.bytes_a + SharedB::<T, JB, N>::BYTES;
            let own = LoadOptions::DEFAULT;
            let all = own.multicast(Multicast::first(CLUSTER as u32));
            let hint_b = match problem.b_once {
                0 => CacheHint::EvictLast,
                _ => CacheHint::EvictFirst,
            };
            let mut producer = pipeline.producer();
            for work in schedule {
                for step in steps_of(work) {
                    let filling = producer.acquire(bytes);
                    let (stage, barrier) = (filling.stage(), filling.barrier());
                    let a = tile_origin::<TileAb<M>>((work.row, step));
                    let b = tile_origin::<TileAb<N>>((work.column, step));
                    // SAFETY: the maps have these tiles' boxes, and the stage is empty.
                    unsafe {
                        let (tile_a, tile_b) = (ring_a.stage(stage), ring_b.stage(stage));
                        if COLUMNS > 1 {
                            let rank = cluster_rank();
                            tile_a.load_part::<COLUMNS, 2>(rank, map_a, a, barrier, all);
                        } else {
                            tile_a.load(map_a, a, barrier, own);
                        }
                        if ROWS > 1 {
                            let rank = cluster_rank();
                            tile_b.load_part::<ROWS, 2>(rank, map_b, b, barrier, all.hint(hint_b));
                        } else {
                            tile_b.load(map_b, b, barrier, own.hint(hint_b));
                        }
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
    let mut consumer = pipeline.consumer();
    // Which 64 rows of the block's tile are this consumer's.
    let rows = if together {
        consumer_idx
    } else {
        WarpgroupIdx::FIRST
    };
    let mut turns = Turns::new(consumer_idx);
    if !together {
        turns.begin();
    }
    for work in schedule {
        let steps = steps_of(work);
        let steps = steps.end - steps.start;
        if !together && !turns.mine() {
            consumer.skip(steps);
            continue;
        }
        // SAFETY: the launcher promises that C is there; these rows are this consumer's.
        let rows_c = unsafe { Tensor::new(c, RowMajor::new([m, n], ldc)) }
            .local_tile::<TileC<M, N>>((work.row, work.column))
            .local_tile::<RowsC<N>>((rows, 0u32));
        // What the epilogue needs of rows and columns arrives while the tile is multiplied.
        let ahead = if Ahead::<Epi>::IS_EMPTY {
            Ahead::nothing()
        } else {
            let places = rows_c.partition::<AccumulatorLayout<Mma<N, T, JA, JB>>>(thread);
            Ahead::read(epilogue, const { N / 8 }, |v| places.bound().coordinate(v))
        };
        let mut sums = Accumulator::<Mma<N, T, JA, JB>>::new();
        let multiply = |sums: &mut Accumulator<Mma<N, T, JA, JB>>, stage: StageIdx, add: bool| {
            let a = ring_a.stage(stage).operand_a().rows(rows);
            let b = ring_b.stage(stage).operand_b();
            let batch = warpgroup_arrive();
            // SAFETY: the stage is full until it is released.
            unsafe {
                let a = [a.k_step(0), a.k_step(1), a.k_step(2), a.k_step(3)];
                let b = [b.k_step(0), b.k_step(1), b.k_step(2), b.k_step(3)];
                batch.mma_four(sums, a, b, add);
            }
            batch.commit();
        };
        if !together {
            turns.wait();
        }
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
        if !together {
            turns.pass();
        }
        let sums = sums.wait();
        consumer.release(under_way, thread);

        if const { N <= LARGEST_SPLIT } && problem.ld_parts > 0 {
            // SAFETY: the launcher promises room for each part's tiles; these rows are this
            // consumer's.
            unsafe { Tensor::new(workspace, RowMajor::new(problem.parts, problem.ld_parts)) }
                .local_tile::<TileC<M, N>>((work.part_row, work.column))
                .local_tile::<RowsC<N>>((rows, 0u32))
                .partition::<AccumulatorLayout<Mma<N, T, JA, JB>, 2>>(thread)
                .store(&sums);
            continue;
        }

        let [a, b, c, d] = buffers;
        let own = |buffer: TileRing<_, _, _, CONSUMERS>| buffer.tile(consumer_idx);
        let pieces = Pieces {
            buffers: [own(a), own(b), own(c), own(d)],
            rows: rows_c,
            map: map_c,
            thread,
        };
        // SAFETY: the launcher promises that the map and C's memory are C; these rows are this
        // consumer's, and so are the buffers.
        unsafe {
            if !Ahead::<Epi>::IS_EMPTY || (problem.tma_c != 0 && !epilogue.reads_old()) {
                pieces.store_by_tma::<Mma<N, T, JA, JB>, _>(sums, epilogue, ahead);
            } else {
                pieces.update::<Mma<N, T, JA, JB>, _>(sums, epilogue, problem.tma_c != 0);
            }
        }
    }
    if lane_idx().is_first() {
        tma_store_wait::<0>();
    }
}
