//! gemm_wgmma: `C = alpha·A·B + beta·C` in bf16 and f16 on Hopper's tensor cores.
//!
//! A block has two roles. One thread of the first warpgroup *produces*: it has TMA load tiles of A
//! and B into a ring of shared-memory stages. The other warpgroups *consume*: each multiplies its
//! rows of the block's tile of C with `wgmma`, takes the sums through the *epilogue*, and writes
//! them to shared memory, from where TMA stores them while the next tile is being multiplied; a
//! consumer that is alone in its block has its threads *store* them. The block stays for the whole
//! launch; a *schedule* says which tiles are its. A launch begins while the kernel before it ends:
//! until then it may only have the cache *prefetch* what it will load. The blocks of a cluster have
//! neighbouring tiles: those of a column need the same tile of B, those of a row the same tile of A, and
//! each loads a part of it, or they take turns where parts would not do; or two blocks have the same
//! tile, each multiplies every other step, and they *exchange* sums. Clusters can share a tile's steps, too: whichever block
//! comes last adds all parts of the sums, the *fixup*. Where there are many tiles, a cluster claims a
//! *seat* in the schedule that suits the multiprocessors it runs on. The last tiles have their *place*
//! where C ends, not where the tiles before do: what they have in common is stored once.
//!
//! The tile's extents, the stages, the cluster, the majors of A, B and C, the types and the epilogue are
//! parameters; [`instances`] lists those that the library launches.

mod ahead;
mod epilogue;
pub mod finish;
#[cfg(not(target_arch = "nvptx64"))]
mod instance;
pub mod instances;
mod leave;
pub mod parts;
mod pieces;

use cutlet_device::hopper::{
    Accumulator, AccumulatorLayout, Arrivals, CacheHint, Fixup, Float16, LoadOptions, Mailbox,
    Major, Multicast, OperandTile, Pipeline, Prefetch, Seat, Seats, StageIdx, TensorMap, TileBox,
    Turns, Wgmma, WgmmaInstruction, cluster_arrive_relaxed, cluster_wait, decrease_registers,
    elect_one, grid_dependency_wait, increase_registers, launch_dependents, prefetch_tensor_map,
    tma_store_wait_read, warpgroup_arrive, warpgroup_idx, warpgroup_thread_idx, warpgroup_wait,
};
use cutlet_device::{
    DeviceData, GlobalMut, LaunchBounds, Schedule, SharedMemory, Work, cluster_rank,
    cluster_raster, lane_idx, sync_threads, uniform, warp_idx_sync,
};
use cutlet_layout_core::{Coord, Divisor, E, Raster, RowMajor, Tensor, tile_origin, tiles};

use ahead::Ahead;
pub use epilogue::{
    Activation, AnyActivation, AtLeast, BiasAlong, ColumnBias, Epilogue, Fused, Gelu, GeluForBf16,
    Linear, Pair, Relu, Residual, RowBias, Scale, Silu, Then, gelu, gelu_exact, relu, silu,
};
#[cfg(not(target_arch = "nvptx64"))]
pub use instance::{Arguments, Instance};
pub use leave::{Leave, leaves_sums};
use leave::{Place, leave_sums, sums_of};
use pieces::{Buffer, Pieces, buffer_bytes};
pub use pieces::{MajorC, piece_columns, piece_span};

/// The tile of C that a block computes: (m, n).
pub type TileC<const M: usize, const N: usize> = (E<M, 1, 0>, E<N, 1, 1>);
/// The rows of it whose sums one instruction adds to.
type RowsC<const N: usize> = TileC<64, N>;
/// A step's tile of A, (m, k), or of B, (n, k).
type TileAb<const MN: usize> = (E<MN, 1, 0>, E<K, 1, 1>);

/// The k of a step.
pub const K: usize = 64;

/// The rows that a warp stores, by which tiles may be moved into C.
pub const WARP_ROWS: usize = 16;

/// Rows of tiles that blocks visit together, so that the L2 cache serves them: with 16 rows of 128, a
/// wave of tiles is about as high as it is wide.
const GROUP: u32 = 16;

/// The instruction of a kernel: 64×N sums of products of `T`.
type Mma<const N: usize, T, JA, JB> = Wgmma<N, T, T, JA, JB>;
/// The sums of a consumer's thread for 64 rows.
type Sums<const N: usize, T, JA, JB> = <Mma<N, T, JA, JB> as WgmmaInstruction>::Values;
/// A stage's tile of A in shared memory.
type SharedA<T, JA, const M: usize> = OperandTile<T, JA, M, K>;
/// A stage's tile of B in shared memory.
type SharedB<T, JB, const N: usize> = OperandTile<T, JB, N, K>;

/// Bytes of shared memory of a block: the stages, pieces of C, barriers, room to align, and in a
/// cluster of more than one block at a tile room for the sums of another one's consumer.
pub const fn shared_bytes(
    m: usize,
    n: usize,
    stages: usize,
    consumers: usize,
    depth: usize,
) -> u32 {
    let columns = columns_on_their_way(m, n, stages, consumers, depth);
    (besides_buffers(m, n, stages, depth) + buffer_bytes(consumers, columns)) as u32
}

/// The columns of a consumer's pieces that may be on their way: what else needs shared memory goes first.
const fn columns_on_their_way(
    m: usize,
    n: usize,
    stages: usize,
    consumers: usize,
    depth: usize,
) -> usize {
    let most = LaunchBounds::MOST_SHARED_BYTES as usize;
    let left = most.saturating_sub(besides_buffers(m, n, stages, depth));
    pieces::columns_that_fit(n, consumers, left)
}

/// Bytes of shared memory of a block, without what C's pieces need.
const fn besides_buffers(m: usize, n: usize, stages: usize, depth: usize) -> usize {
    let mailbox = if depth > 1 { 64 * n * 4 } else { 0 };
    2 * stages * (m + n) * K + mailbox + 1024
}

/// The box of A's tensor map, tiles of which so many columns of blocks load together.
pub const fn box_a<T: DeviceData, JA: Major, const M: usize>(columns: usize) -> TileBox {
    SharedA::<T, JA, M>::box_among(columns)
}

/// The box of B's tensor map, tiles of which so many rows of blocks load together.
pub const fn box_b<T: DeviceData, JB: Major, const N: usize>(rows: usize) -> TileBox {
    SharedB::<T, JB, N>::box_among(rows)
}

/// The box of C's tensor map: a warp's rows of a piece.
pub const fn box_c<T: DeviceData, JC: Major, const PIECE: usize, const SPAN: usize>() -> TileBox {
    pieces::tile_box::<T, JC, PIECE, SPAN>()
}

/// Extents of `C[m, n] = epilogue(Σₖ A[m, k]·B[k, n])`, and how the work is dealt out; C is row-major.
/// k is at least 1.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Problem {
    /// Seats that clusters of blocks with neighbouring tiles claim, one for each of them. Where several
    /// multiprocessors share reads of the L2 cache, they should have tiles of the same rows, or columns.
    pub seats: Seats,
    /// Where blocks count themselves that have parts of a tile's sums, which they hand over in the workspace for one of
    /// them to add, by a kernel that [`fixes_up`]. The address of the workspace is a multiple of 16 bytes then.
    pub arrivals: Arrivals,
    /// What is fetched of A, and of B, before they may be read.
    pub prefetch: [Prefetch; 2],
    /// Elements from one row of C to the next.
    pub ldc: i64,
    /// Whether what the epilogue makes of all sums, without old elements, is left in rows of f32 where C would be:
    /// by an instance that [`leaves_sums`].
    pub leave: Leave,
    /// Rows and columns of what is left, those of C, or whole tiles of it; the latter are even where C lies by rows. Where
    /// steps are split and nobody adds the parts, those of each part are below those of the part before.
    pub left: Coord,
    /// Where the last tiles begin at most, in [`WARP_ROWS`] of rows and pieces of columns, so that they lie in C
    /// as far as they can: TMA takes several times as long for a line that there is not. They overlap the tiles
    /// before then, and store only what is theirs, or leave the same sums again. `u32::MAX` if neither C is
    /// overwritten, in units of 16 bytes, nor sums of split steps are left: a tile that has all of its steps takes them in
    /// one order or the other, and its sums may differ from its neighbour's in their last bits.
    pub last: [u32; 2],
    /// Rows of A and C.
    pub m: i32,
    /// Columns of B and C.
    pub n: i32,
    /// Columns of A, rows of B.
    pub k: i32,
    /// In which order clusters' tiles are visited.
    pub raster: Raster<Divisor>,
    /// Parts into which the steps of each tile are split, no more than there are; with more than
    /// one, sums are left, or blocks add them.
    pub splits: u32,
    /// Steps of a part that a block has, at most.
    pub split_steps: u32,
    /// Bytes of a tile of A that are loaded: all, or only the first rows where C has no others.
    pub bytes_a: u32,
    /// Not 0 if each tile of A, and of B, is read once, so that nothing is gained by keeping it in the cache.
    pub once: [u32; 2],
    /// Not 0 if TMA can store C: it starts at, and its rows are, a multiple of 16 bytes apart, and
    /// its columns are a multiple of 16 bytes, too, because TMA, and whoever stores in its place, writes
    /// them in such units. An epilogue that reads rows or columns ahead needs it, and so do consumers with
    /// more than 64 rows, with an epilogue that does not read C; not where sums are left.
    pub tma_c: u32,
}

impl Problem {
    /// Of A (m, k) and B (k, n), by an instance with such tiles, in clusters of so many rows and columns of
    /// them and so many blocks at each, whose boxes of A are whole: no split, and C, whose rows are `ldc` elements
    /// apart, is stored without TMA.
    pub const fn new<T>([m, n, k]: [i32; 3], ldc: i64, tile: [u32; 2], cluster: [u32; 3]) -> Self {
        let tile_rows = tile[0] as usize;
        let [rows, columns, depth] = cluster;
        Self {
            seats: Seats::NONE,
            prefetch: [Prefetch::NOTHING; 2],
            ldc,
            leave: Leave::NOTHING,
            left: [0, 0],
            last: [u32::MAX; 2],
            m,
            n,
            k,
            raster: raster([m as usize, n as usize], tile, [rows, columns]),
            splits: 1,
            arrivals: Arrivals::NONE,
            split_steps: (k as u32).div_ceil(K as u32).div_ceil(depth),
            bytes_a: (tile_rows * K * size_of::<T>()) as u32,
            once: once([m as usize, n as usize], tile),
            tma_c: 0,
        }
    }
}

/// Whether each tile of A, and of B, is read once, where C has these extents: whether C has one column, or row, of
/// tiles.
pub const fn once([m, n]: [usize; 2], tile: [u32; 2]) -> [u32; 2] {
    [
        (n <= tile[1] as usize) as u32,
        (m <= tile[0] as usize) as u32,
    ]
}

/// Whether blocks, `depth` of them at a tile of `n` columns, can add parts by themselves, if a consumer has so many
/// `bands` of 64 rows. Not where these are several, or long: there are no registers for another part then.
pub const fn fixes_up<Epi: Epilogue>(n: usize, bands: usize, depth: usize) -> bool {
    n <= 128 && bands == 1 && depth == 1 && leaves_sums::<Epi>()
}

/// The order in which clusters of so many rows and columns of tiles visit those of a C with these extents.
pub const fn raster(extents: [usize; 2], tile: [u32; 2], cluster: [u32; 2]) -> Raster<Divisor> {
    let rows = extents[0].div_ceil(tile[0] as usize);
    let columns = extents[1].div_ceil(tile[1] as usize);
    cluster_raster([rows as u32, columns as u32], cluster, GROUP)
}

/// All tiles of C that are this block's; any grid of whole clusters computes all of C.
///
/// A block has `CONSUMERS` consumers, each of which has `BANDS` bands of 64 rows. Either these are the
/// rows of one tile of `M`, or there are two consumers, and each has tiles of its own: then they take
/// turns, and one writes its tile while the other multiplies.
///
/// What else is a number: `N` columns of a tile, `STAGES` steps that can be under way, two at least,
/// `ROWS` × `COLUMNS` = `CLUSTER` tiles whose blocks share what they load, `DEPTH` blocks of a cluster
/// that share a tile's steps, and pieces of `PIECE` columns, [`piece_columns`] of `N`, in lines of
/// `SPAN` bytes, [`piece_span`] of `PIECE`. With a `DEPTH` of 2 there are two consumers together: each
/// block finishes the rows of one of them, with the sums that the other block's consumer of these rows
/// sends.
///
/// `JA`, `JB` and `JC` say whether rows of A, B (as (n, k)) and C lie in lines, or columns do. A C whose
/// columns do can only be overwritten, by TMA.
///
/// Numbers that fit each other, of `M` = 128 to `SPAN` = 128:
///
/// ```
/// use cutlet_device::hopper::KMajor;
/// use cutlet_kernels::gemm_wgmma::{Scale, gemm};
/// use half::bf16;
///
/// // 4 stages, clusters of 2×1×1, two consumers of one band each, pieces of 64 columns.
/// gemm::<bf16, KMajor, KMajor, KMajor, Scale, 128, 256, 4, 2, 1, 2, 1, 2, 1, 64, 128>
///     as unsafe fn(_, _, _, _, _, _, _);
/// ```
///
/// Others do not compile:
///
/// ```compile_fail,E0080
/// # use cutlet_device::hopper::KMajor;
/// # use cutlet_kernels::gemm_wgmma::{Scale, gemm};
/// # use half::bf16;
/// #
/// // "PIECE is piece_columns(N)", which is 64.
/// gemm::<bf16, KMajor, KMajor, KMajor, Scale, 128, 256, 4, 2, 1, 2, 1, 2, 1, 128, 128>
///     as unsafe fn(_, _, _, _, _, _, _);
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::hopper::KMajor;
/// # use cutlet_kernels::gemm_wgmma::{Scale, gemm};
/// # use half::bf16;
/// #
/// // "SPAN is piece_span::<JC>(PIECE)", which is 128.
/// gemm::<bf16, KMajor, KMajor, KMajor, Scale, 128, 256, 4, 2, 1, 2, 1, 2, 1, 64, 64>
///     as unsafe fn(_, _, _, _, _, _, _);
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::hopper::KMajor;
/// # use cutlet_kernels::gemm_wgmma::{Scale, gemm};
/// # use half::bf16;
/// #
/// // "CLUSTER is ROWS * COLUMNS, whatever DEPTH is".
/// gemm::<bf16, KMajor, KMajor, KMajor, Scale, 128, 256, 4, 2, 1, 1, 1, 2, 1, 64, 128>
///     as unsafe fn(_, _, _, _, _, _, _);
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::hopper::KMajor;
/// # use cutlet_kernels::gemm_wgmma::{Scale, gemm};
/// # use half::bf16;
/// #
/// // "CONSUMERS is 1 to 3: a block has no registers for more".
/// gemm::<bf16, KMajor, KMajor, KMajor, Scale, 256, 128, 3, 2, 1, 2, 1, 4, 1, 64, 128>
///     as unsafe fn(_, _, _, _, _, _, _);
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::hopper::KMajor;
/// # use cutlet_kernels::gemm_wgmma::{Scale, gemm};
/// # use half::bf16;
/// #
/// // "three CONSUMERS have registers for the sums of 200 columns each".
/// gemm::<bf16, KMajor, KMajor, KMajor, Scale, 192, 256, 3, 2, 1, 2, 1, 3, 1, 64, 128>
///     as unsafe fn(_, _, _, _, _, _, _);
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::hopper::KMajor;
/// # use cutlet_kernels::gemm_wgmma::{Scale, gemm};
/// # use half::bf16;
/// #
/// // "STAGES is 2 or more: a step is multiplied while the next one is awaited".
/// gemm::<bf16, KMajor, KMajor, KMajor, Scale, 128, 256, 1, 2, 1, 2, 1, 2, 1, 64, 128>
///     as unsafe fn(_, _, _, _, _, _, _);
/// ```
///
/// # Safety
/// The kernel must have 128 · (1 + `CONSUMERS`) threads, clusters of `CLUSTER` · `DEPTH` blocks, and the shared memory
/// of [`shared_bytes`]. The maps must describe A as (m, k), B as (n, k) and, with `tma_c`, C as (m, n), with the boxes
/// [`box_a`], [`box_b`] and [`box_c`]; a C whose columns lie in lines must have such a map, if it is not
/// its sums that are left. `c` must be C's memory, or, where sums are left, that of these, and the rows to prefetch must
/// be there. Where blocks add parts, the workspace must have room for them, and the arrivals must be there, all zero.
#[inline(always)]
pub unsafe fn gemm<
    T,
    JA,
    JB,
    JC,
    Epi,
    const M: usize,
    const N: usize,
    const STAGES: usize,
    const ROWS: usize,
    const COLUMNS: usize,
    const CLUSTER: usize,
    const DEPTH: usize,
    const CONSUMERS: usize,
    const BANDS: usize,
    const PIECE: usize,
    const SPAN: usize,
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
    JC: MajorC,
    Epi: Epilogue,
    Mma<N, T, JA, JB>: WgmmaInstruction<A = T, B = T, MajorA = JA, MajorB = JB>,
{
    let together = const {
        let rows = 64 * BANDS;
        assert!(
            matches!(CONSUMERS, 1..=3),
            "CONSUMERS is 1 to 3: a block has no registers for more"
        );
        assert!(
            CONSUMERS < 3 || BANDS * N <= 200,
            "three CONSUMERS have registers for the sums of 200 columns each"
        );
        assert!(
            M == rows * CONSUMERS || (M == rows && CONSUMERS == 2),
            "a consumer has 64 rows for each of its bands"
        );
        assert!(
            STAGES > 1,
            "STAGES is 2 or more: a step is multiplied while the next one is awaited"
        );
        assert!(
            CLUSTER == ROWS * COLUMNS,
            "CLUSTER is ROWS * COLUMNS, whatever DEPTH is"
        );
        assert!(PIECE == piece_columns(N), "PIECE is piece_columns(N)");
        assert!(
            SPAN == piece_span::<JC>(PIECE),
            "SPAN is piece_span::<JC>(PIECE)"
        );
        assert!(
            DEPTH == 1 || (DEPTH == 2 && M == 128 && CONSUMERS == 2 && BANDS == 1),
            "two blocks share a tile that each has two consumers for"
        );
        M == rows * CONSUMERS
    };
    let stores_itself = const { CONSUMERS == 1 && JC::K_IS_CONSECUTIVE && Ahead::<Epi>::IS_EMPTY };
    let clustered = const { CLUSTER > 1 || DEPTH > 1 };
    let Problem { ldc, m, n, k, .. } = problem;
    let mut shared = SharedMemory::new();
    let ring_a = SharedA::<T, JA, M>::take_ring::<STAGES>(&mut shared);
    let ring_b = SharedB::<T, JB, N>::take_ring::<STAGES>(&mut shared);
    let columns = const { columns_on_their_way(M, N, STAGES, CONSUMERS, DEPTH) };
    let buffers = Buffer::<T>::take(&mut shared, CONSUMERS, columns);
    let pipeline = Pipeline::<STAGES, CLUSTER>::take(&mut shared);
    let seat = Seat::take(&mut shared);
    let claims_seat = CLUSTER > 1 && !problem.seats.is_none();
    let mailbox = Mailbox::<Sums<N, T, JA, JB>>::take(&mut shared);
    let (warp, warpgroup) = (warp_idx_sync(), warpgroup_idx());
    let thread = warpgroup_thread_idx();
    // The next kernel may start where this one's blocks have ended. What it reads or writes it waits for, as
    // this one does for the kernel before it: each role where it comes to that. Seats are claimed before.
    if !claims_seat {
        launch_dependents();
    }
    // Two warps, so that neither waits for the other one's share.
    if warp.is_first() && elect_one() {
        prefetch_tensor_map(map_a);
        prefetch_tensor_map(map_b);
        prefetch_tensor_map(map_c);
    }
    if warp.is(1) && elect_one() {
        // SAFETY: nobody uses the barriers before the cluster has met.
        unsafe {
            pipeline.init(1, if together { CONSUMERS as u32 } else { 1 });
            if DEPTH > 1 {
                mailbox.init();
            }
            // Whether or not a seat is claimed: the compiler would give a branch that only this thread
            // takes a cluster barrier of its own.
            if CLUSTER > 1 {
                seat.init();
            }
        }
    }
    if clustered {
        cluster_arrive_relaxed();
    }
    // The operands' beginnings are on their way to the cache while the kernel before this one ends, and the block
    // meets.
    let [beginnings_a, beginnings_b] = problem.prefetch;
    // SAFETY: the launcher promises that these rows are there.
    unsafe {
        if warpgroup.is(1) {
            beginnings_a.begin(thread);
        }
        if warpgroup.is(CONSUMERS as u32) {
            beginnings_b.begin(thread);
        }
    }
    if clustered {
        cluster_wait();
    } else {
        sync_threads();
    }
    if claims_seat {
        if warp.is_first() && elect_one() {
            seat.expect();
            if cluster_rank().is_first() {
                // SAFETY: the launcher promises a seat for each cluster. The next launch begins after
                // `launch_dependents`, which no thread gets to before its cluster was told.
                unsafe { seat.tell::<CLUSTER>(problem.seats.claim()) };
            }
        }
        seat.wait();
        launch_dependents();
    }
    // Each role computes these for itself: what it were given would cost it registers all the time.
    let schedule = || {
        let mut schedule = Schedule::<ROWS, COLUMNS, DEPTH>::new(problem.raster, problem.splits);
        if claims_seat {
            schedule.take_seat(seat.which());
        }
        schedule
    };
    let place = |work: Work| {
        let [last_row, last_column] = problem.last;
        let row = work.row * const { (M / WARP_ROWS) as u32 };
        let column = work.column * const { (N / PIECE) as u32 };
        (row.min(last_row), column.min(last_column))
    };
    let tile_steps = || {
        let [_, steps] = tiles::<TileAb<M>>([m, k]);
        steps
    };

    if warpgroup.is_first() {
        match CONSUMERS {
            1 => {}
            2 => decrease_registers::<40>(),
            _ => decrease_registers::<32>(),
        }
        if warp.is_first() && elect_one() {
            let bytes = problem.bytes_a + SharedB::<T, JB, N>::BYTES;
            let own = LoadOptions::DEFAULT;
            let among = |blocks: usize, whom: Multicast| match blocks {
                1 => own,
                _ => own.multicast(whom),
            };
            let rank = cluster_rank();
            let (below, beside) = (rank.row(ROWS, COLUMNS), rank.column(ROWS, COLUMNS));
            let of_row = Multicast::every(below * COLUMNS as u32, 1, COLUMNS as u32);
            let of_column = Multicast::every(beside, COLUMNS as u32, ROWS as u32);
            let (options_a, options_b) = (among(COLUMNS, of_row), among(ROWS, of_column));
            let [once_a, once_b] = problem.once;
            // Where C lies by columns, A is the weights. Elsewhere there is no register for a hint.
            let options_a = match !JC::K_IS_CONSECUTIVE && once_a != 0 {
                false => options_a,
                true => options_a.hint(CacheHint::EvictFirst),
            };
            let options_b = options_b.hint(match once_b {
                0 => CacheHint::EvictLast,
                _ => CacheHint::EvictFirst,
            });
            let origins = |work: Work, step: u32| {
                let (row, column) = place(work);
                let a = tile_origin::<TileAb<WARP_ROWS>>((row, step));
                let b = tile_origin::<TileAb<PIECE>>((column, step));
                (a, b)
            };
            let mut producer = pipeline.producer();
            let steps = tile_steps();
            let mut back = false;
            let mut nth = 0;
            for work in schedule() {
                for step in work.steps(steps, back) {
                    // A short ring has no stage to spare for pairs.
                    let filling = match STAGES < 8 {
                        true => producer.acquire(bytes),
                        false => producer.acquire_in_pairs(bytes),
                    };
                    let (stage, barrier) = (filling.stage(), filling.barrier());
                    let (a, b) = origins(work, step);
                    // Nothing is read before; all but the first call return at once.
                    grid_dependency_wait();
                    // SAFETY: the maps have these tiles' boxes, and the stage is empty.
                    unsafe {
                        let (tile_a, tile_b) = (ring_a.stage(stage), ring_b.stage(stage));
                        tile_a.load_among::<COLUMNS, 2>(beside, nth, map_a, a, barrier, options_a);
                        tile_b.load_among::<ROWS, 2>(below, nth, map_b, b, barrier, options_b);
                    }
                    nth += 1;
                }
                back = !back;
            }
            producer.drain();
        }
        return;
    }

    match CONSUMERS {
        1 => {}
        2 => increase_registers::<232>(),
        _ => increase_registers::<160>(),
    }
    let consumer_idx = warpgroup.after(1);
    let mut consumer = pipeline.consumer();
    let buffer = buffers.of(consumer_idx);
    // Which of the tile's bands this consumer's are.
    let band_idx = |band: usize| match together {
        true => consumer_idx.own(BANDS, band),
        false => band as u32,
    };
    let mut turns = Turns::new(consumer_idx);
    if !together {
        turns.begin();
    }
    // Asked after the last product, it would be a constant that has to be read again.
    let is_identity = stores_itself && uniform(u32::from(epilogue.is_identity())) != 0;
    // SAFETY: where two blocks share steps, both consumers of each exchange sums of every tile.
    let mut exchange = unsafe { mailbox.exchange(consumer_idx) };
    let places = const { (M / 64) as u32 };
    let fixup = Fixup::new(workspace, problem.arrivals, places, problem.splits);
    grid_dependency_wait();
    for work in schedule() {
        let steps = work.step_count(tile_steps(), problem.split_steps);
        if !together && !turns.mine() {
            consumer.skip(steps);
            continue;
        }
        // SAFETY: the launcher promises that C is there; these rows are this consumer's.
        let tile_c = unsafe { Tensor::new(c, RowMajor::new([m, n], ldc)) }
            .local_tile::<TileC<WARP_ROWS, PIECE>>(place(work));
        let rows_c = |band: usize| tile_c.local_tile::<RowsC<N>>((band_idx(band), 0u32));
        let read_ahead = |band: usize| {
            if Ahead::<Epi>::IS_EMPTY {
                return Ahead::nothing();
            }
            let places = rows_c(band).partition::<AccumulatorLayout<Mma<N, T, JA, JB>>>(thread);
            Ahead::read(epilogue, const { N / 8 }, |v| places.bound().coordinate(v))
        };
        // What the epilogue needs of rows and columns arrives while the tile is multiplied.
        let ahead = read_ahead(0);
        let mut sums: [_; BANDS] = Accumulator::<Mma<N, T, JA, JB>>::several();
        let multiply = |sums: &mut [_; BANDS], stage: StageIdx, add: bool| {
            let tile_a = ring_a.operand_a(stage);
            let b = ring_b.operand_b(stage);
            let b = [b.k_step(0), b.k_step(1), b.k_step(2), b.k_step(3)];
            let batch = warpgroup_arrive();
            for (band, sums) in sums.iter_mut().enumerate() {
                let a = tile_a.rows(band_idx(band));
                let a = [a.k_step(0), a.k_step(1), a.k_step(2), a.k_step(3)];
                // SAFETY: the stage is full until it is released.
                unsafe { batch.mma_four(sums, a, b, add) };
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
        let mut sums = Accumulator::wait_several(sums);
        consumer.release(under_way, thread);
        if const { DEPTH > 1 } && !exchange.add(thread, &mut sums[0]) {
            continue;
        }

        for (band, sums) in sums.iter_mut().enumerate() {
            let fixes_up = const { fixes_up::<Epi>(N, BANDS, DEPTH) };
            // One question for both: most launches do neither, and wait for the answer.
            if const { leaves_sums::<Epi>() }
                && ((fixes_up && problem.splits > 1) || problem.leave.is_asked())
            {
                if problem.leave.is_asked() {
                    let (row, column) = place(work);
                    let place = Place {
                        tile: (
                            work.part_row * const { (M / WARP_ROWS) as u32 } + row,
                            column,
                        ),
                        rows: (band_idx(band), 0),
                        thread,
                    };
                    // SAFETY: the launcher promises that there are such rows; these are this consumer's, or another tile's
                    // whose sums are the same.
                    unsafe {
                        leave_sums::<Mma<N, T, JA, JB>, JC, PIECE, N>(
                            sums,
                            epilogue,
                            sums_of(c),
                            &problem,
                            place,
                        );
                    }
                    continue;
                }
                if fixes_up {
                    let place = (work.tile, band_idx(band));
                    // SAFETY: the launcher promises room for each part of each tile's bands.
                    if !unsafe { fixup.add(place, work.part, thread, sums) } {
                        continue;
                    }
                }
            }
            let own = tile_origin::<TileC<M, N>>((work.row, work.column));
            let pieces =
                Pieces::<T, JC, PIECE, SPAN>::new(buffer, rows_c(band), own, map_c, thread);
            // SAFETY: the launcher promises that the map and C's memory are C; the tile's own of these
            // rows are this consumer's, and so is the buffer.
            unsafe {
                if BANDS > 1
                    || !JC::K_IS_CONSECUTIVE
                    || !Ahead::<Epi>::IS_EMPTY
                    || (problem.tma_c != 0 && !epilogue.reads_old())
                {
                    let ahead = match band {
                        0 => ahead,
                        _ => read_ahead(band),
                    };
                    if stores_itself {
                        if !is_identity {
                            pieces.apply::<Mma<N, T, JA, JB>, _>(sums, epilogue);
                        }
                        JC::store::<Mma<N, T, JA, JB>, _, _, _>(&pieces, sums);
                    } else {
                        pieces.store_by_tma::<Mma<N, T, JA, JB>, _>(sums, epilogue, ahead);
                    }
                } else {
                    pieces.update::<Mma<N, T, JA, JB>, _>(sums, epilogue);
                }
            }
        }
    }
    if DEPTH > 1 {
        exchange.drain();
    }
    // The block's memory must stay until TMA has read it.
    if !stores_itself && lane_idx().is_first() {
        tma_store_wait_read::<0>();
    }
}
