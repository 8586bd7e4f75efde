//! The kernel: `C = epilogue(A·B)`, by the roles of a block's warpgroups.
//!
//! One thread of the first warpgroup is the *producer*: it loads k-tiles of A and B by TMA into the stages of a
//! pipeline. If the rows of A are those of a table that indices name, all threads of that warpgroup copy them. The
//! other warpgroups are *consumers*: each multiplies its rows of the block's tile by `wgmma`, applies the epilogue and
//! stores. A block stays for the whole launch, and the tile scheduler deals out its work tiles.

use cutlet_device::cluster::{cluster_arrive_relaxed, cluster_wait};
use cutlet_device::collective::{ClusterReduce, WorkTile};
use cutlet_device::tile::Major;
use cutlet_device::tma::{TensorMap, prefetch_tensor_map};
use cutlet_device::warpgroup::{
    WarpgroupIdx, WarpgroupThread, warpgroup_idx, warpgroup_thread_idx,
};
use cutlet_device::{
    GlobalMut, WarpIdx, cluster_rank, elect_one, grid_dependency_wait, launch_dependents,
    sync_threads, uniform, warp_idx_sync,
};

use super::block_scales::{BlockScaleOperands, BlockScaling, ScalesOfBlocks};
use super::config::{Acc, AtomFragment, Config, Storage, Values, streams_tiles};
use super::epilogue_subtiles::SubtileBuffer;
use super::loader::ByTma;
use super::mainloop::m_atom;
use super::scaling::{ScaleOperands, Scaling};
use crate::gemm::args::Args;
use crate::gemm::config::{ClusterShape, Consumers, TileShape};
use crate::gemm::epilogue::Epilogue;
use crate::gemm::loader::{Loader, StageFiller};
use crate::gemm::mainloop::{Mainloop, MainloopTile};
use crate::gemm::scheduler::{Grouped, Persistent, StreamK, TileScheduler, WARP_ROWS};
use crate::gemm::store::Store;

/// All tiles of C that are this block's. Any grid of whole clusters computes all of C.
///
/// `C` says the tile, the stages, the cluster and the consumers, `P` whether there is one product or several, `L` how A
/// is loaded, and `W` where accumulators go.
///
/// # Safety
/// The kernel must have the threads and the cluster of `C`, which a [`kernel!`](cutlet_device::kernel) takes from it.
/// `args` must describe the matrices. The maps must describe A as (m, k), B as (n, k) and, where TMA stores C, C as
/// (m, n), with the boxes [`box_a`](super::box_a), [`box_b`](super::box_b) and [`box_c`](super::box_c). A column-major
/// C must have such a map unless partial output is written. `c` must be the memory of C, or of the partial output. The
/// rows to prefetch must exist. Where the fixup runs, the workspace must have room for the partials, and its counters
/// must be zero. [`Groups`], [`ByRows`](super::ByRows), [`ToRows`](super::ToRows) and [`ToSwiglu`](super::ToSwiglu) say
/// what else they need.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn gemm<C, P, L, W>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<C::Out>,
    workspace: GlobalMut<f32>,
    args: Args,
    epilogue: W::Epilogue,
    block: Storage<C>,
) where
    C: Config,
    C::Scaling: for<'a> Scaling<Operands<'a> = ()>,
    P: Products<C>,
    L: ProducerRole<C>,
    W: StoreRole<C>,
{
    let () = C::CHECK;
    let params = Params {
        map_a,
        map_b,
        map_c,
        c,
        workspace,
        args: &args,
        epilogue,
    };
    // SAFETY: as promised by the caller.
    unsafe { P::run::<L, W>(&params, (), block) };
}

/// [`gemm`] of A and B with scales of blocks, whose A is loaded by TMA.
///
/// # Safety
/// As [`gemm`]. The scales must be those of A and B, and `args` must not let edge tiles shift. For [`Groups`], the map of
/// A's scales has a third dimension, the inner mode of the batch, and there is no outer mode of the batch or of k. The
/// scales are then [`BlockScales<4>`](super::BlockScales).
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn gemm_with_block_scales<C, P, W>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    map_scales: &TensorMap,
    scales_of_blocks: ScalesOfBlocks,
    c: GlobalMut<C::Out>,
    workspace: GlobalMut<f32>,
    args: Args,
    epilogue: W::Epilogue,
    block: Storage<C>,
) where
    C: Config<Scaling: BlockScaling>,
    P: Products<C>,
    W: StoreRole<C>,
{
    let () = C::CHECK;
    let params = Params {
        map_a,
        map_b,
        map_c,
        c,
        workspace,
        args: &args,
        epilogue,
    };
    let scales = BlockScaleOperands {
        map_lines: map_scales,
        blocks: scales_of_blocks,
    };
    // SAFETY: as promised by the caller.
    unsafe { P::run::<ByTma, W>(&params, scales, block) };
}

/// What a launch passes to a kernel.
#[derive(Clone, Copy)]
pub struct Params<'a, T, Epi> {
    pub(super) map_a: &'a TensorMap,
    pub(super) map_b: &'a TensorMap,
    pub(super) map_c: &'a TensorMap,
    pub(super) c: GlobalMut<T>,
    pub(super) workspace: GlobalMut<f32>,
    pub(super) args: &'a Args,
    pub(super) epilogue: Epi,
}

/// The parameters of a kernel with the store `W`.
type ParamsOf<'a, C, W> = Params<'a, <C as Config>::Out, <W as StoreRole<C>>::Epilogue>;

/// Whether a launch computes one product or several: the choice of the tile scheduler.
pub trait Products<C: Config> {
    /// Computes the block's tiles.
    ///
    /// # Safety
    /// As [`gemm`].
    unsafe fn run<L: ProducerRole<C>, W: StoreRole<C>>(
        params: &ParamsOf<'_, C, W>,
        scales: ScaleOperands<'_, C>,
        block: Storage<C>,
    );
}

/// One product. A tile's k-tiles may be split among blocks.
#[derive(Debug)]
pub struct OneProduct;

impl<C: Config> Products<C> for OneProduct {
    #[inline(always)]
    unsafe fn run<L: ProducerRole<C>, W: StoreRole<C>>(
        params: &ParamsOf<'_, C, W>,
        scales: ScaleOperands<'_, C>,
        block: Storage<C>,
    ) {
        let scheduler = &params.args.scheduler;
        let whole = Persistent::<C::Cluster>::new(scheduler, C::TILE_IN_UNITS, block.slot);
        // SAFETY: as promised by the caller.
        unsafe {
            if const { streams_tiles::<C, W::Epilogue>() } {
                run::<C, _, L, W>(block, StreamK(whole), params, scales)
            } else {
                run::<C, _, L, W>(block, whole, params, scales)
            }
        }
    }
}

/// Many products of the same n and k: of a batch, or of groups of rows.
///
/// # Safety
/// The maps of A and B must have five dimensions: the matrix, the outer mode of k, and the inner and the outer mode of
/// the batch. That of C must have these but for k. Along a mode of the batch, there is a matrix for each group, or one
/// that all groups share, as `args.groups` says. Consumers of several M atoms need a C that TMA can store, old elements that are not read, and
/// groups without sizes. `args` must have the extents and the k-tiles of each product, of all of k's outer mode, but for the rows of groups that
/// lie in one A: `m` is then that of A. There must be neither splits, nor partial output, nor slots. There must be a
/// size for each group, unless there are none.
#[derive(Debug)]
pub struct Groups;

impl<C: Config> Products<C> for Groups {
    #[inline(always)]
    unsafe fn run<L: ProducerRole<C>, W: StoreRole<C>>(
        params: &ParamsOf<'_, C, W>,
        scales: ScaleOperands<'_, C>,
        block: Storage<C>,
    ) {
        const {
            assert!(C::Cluster::K == 1, "the k-tiles of groups are not shared");
            assert!(C::MajorC::IS_K_MAJOR, "C is row-major");
        }
        let Args {
            scheduler,
            groups,
            output,
            ..
        } = params.args;
        let [rows, _] = output.extent;
        let tile_rows = const { C::Tile::M as u32 };
        // SAFETY: as promised by the caller.
        unsafe {
            let scheduler =
                Grouped::<C::Cluster>::new(scheduler, groups, rows, tile_rows, C::TILE_IN_UNITS);
            run::<C, _, L, W>(block, scheduler, params, scales)
        }
    }
}

/// The roles of a block, which computes the scheduler's work tiles.
///
/// # Safety
/// As [`gemm`].
#[inline(always)]
unsafe fn run<C, S, L, W>(
    block: Storage<C>,
    scheduler: S,
    params: &ParamsOf<'_, C, W>,
    scales: ScaleOperands<'_, C>,
) where
    C: Config,
    S: TileScheduler + Copy,
    L: ProducerRole<C>,
    W: StoreRole<C>,
{
    let args = params.args;
    let (warp, warpgroup) = (warp_idx_sync(), warpgroup_idx());
    let thread = warpgroup_thread_idx();
    let cluster = C::Cluster::of_launch(args.scheduler.cluster);
    let block = Storage {
        pipeline: block.pipeline.in_cluster(cluster),
        ..block
    };
    block.prepare(
        || {
            L::prefetch_map(params.map_a);
            prefetch_tensor_map(params.map_b);
            W::prefetch_map(params.map_c);
        },
        L::ARRIVALS,
        args,
        &scheduler,
        (warp, warpgroup, thread),
    );

    if warpgroup.is_first() {
        L::release_registers();
        L::produce(block, &scheduler, params, scales, (warp, thread));
        return;
    }

    L::request_registers();
    let consumer = warpgroup.after(1);
    let who = (consumer, thread);
    let mainloop =
        C::Scaling::mainloop::<C>(block.rings, block.scales, scales, block.pipeline, who);
    let buffer = block.buffers.of(consumer);
    let store = W::store(params, scheduler, buffer, who);
    // The library launches no such clusters, but ptxas spills a register of `128x192x64_pingpong` without this.
    // SAFETY: where two blocks have the same tile, both consumers of each add the accumulators of every tile.
    let reduce = unsafe { block.dsmem.buffer().cluster_reduce(consumer) };
    consume::<C, _, _, _>(&scheduler, mainloop, reduce, store, who);
}

/// The producer: loads the k-tiles of every work tile.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) fn produce<S: TileScheduler>(
    mut producer: impl StageFiller,
    scheduler: &S,
    mut loader: impl Loader,
) {
    let k_tiles = scheduler.k_tiles();
    let mut backwards = false;
    for work in scheduler.work_tiles() {
        let group = S::IS_GROUPED.then(|| scheduler.origin(work));
        let tile = loader.tile(scheduler.begin(work), group);
        for k_tile in work.k_tiles(k_tiles, backwards) {
            let filling = producer.acquire(loader.bytes());
            let k_tile = match S::IS_GROUPED {
                false => (k_tile, 0),
                true => scheduler.along_k(k_tile),
            };
            // SAFETY: the producer waited until the stage is empty.
            unsafe { loader.load(filling, &tile, scheduler.begin(work), k_tile, group) };
            producer.commit();
        }
        backwards = !backwards;
    }
    producer.drain();
}

/// A consumer: multiplies its rows of every work tile that it takes, and stores them.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn consume<C, S, M, St>(
    scheduler: &S,
    mut mainloop: M,
    mut reduce: ClusterReduce<Values<C>, Acc<C>>,
    store: St,
    (consumer, thread): (WarpgroupIdx, WarpgroupThread),
) where
    C: Config,
    S: TileScheduler,
    M: Mainloop<Accumulators = Atoms<C>>,
    St: Store<Accumulators = Atoms<C>>,
{
    grid_dependency_wait();
    for (nth, work) in scheduler.work_tiles().enumerate() {
        let k_tiles = k_tiles_of_all_lanes::<C>(scheduler.k_tile_count(work));
        if !mainloop.takes_next(k_tiles) {
            continue;
        }
        if !has_rows::<C, S>(scheduler, work, consumer) {
            mainloop.pass_over(k_tiles);
            continue;
        }
        let prepared = store.prepare(work);
        let mut accumulators = mainloop.mma(MainloopTile {
            begin: scheduler.begin(work),
            // The producer goes backwards at every other tile.
            k_tiles: work.k_tiles(scheduler.k_tiles(), nth % 2 == 1),
            count: k_tiles,
            group: match S::IS_GROUPED {
                false => (0, 0),
                true => {
                    let group = scheduler.origin(work);
                    (group.first_row, group.nth[1][0])
                }
            },
        });
        if C::Cluster::K > 1 && !reduce.add(thread, &mut accumulators.as_mut()[0]) {
            continue;
        }
        // SAFETY: these rows of the work tile are this consumer's.
        unsafe { store.store(work, accumulators, prepared) };
    }
    if C::Cluster::K > 1 {
        reduce.drain();
    }
    store.drain();
}

/// Whether the group has rows for this consumer in a work tile. In a group's last tile, often only the first of two
/// consumers has rows. The other one then multiplies nothing.
#[inline(always)]
fn has_rows<C: Config, S: TileScheduler>(
    scheduler: &S,
    work: WorkTile,
    consumer: WarpgroupIdx,
) -> bool {
    if const { !S::IS_GROUPED || C::Consumers::AT_A_TILE == 1 || C::Consumers::M_ATOMS > 1 } {
        return true;
    }
    let (begin, _) = scheduler.begin(work);
    let first = begin * WARP_ROWS as u32 + 64 * m_atom::<C>(consumer, 0);
    uniform(u32::from((first as i32) < scheduler.origin(work).rows)) != 0
}

/// How A reaches the stages: what the producing warpgroup does.
pub trait ProducerRole<C: Config> {
    /// Arrivals at a stage's barrier.
    const ARRIVALS: u32;

    /// Fetches the map of A into a cache, if there is one.
    fn prefetch_map(map_a: &TensorMap);

    /// Releases the registers that the producing warpgroup does not need.
    fn release_registers();

    /// Requests them for the consumers.
    fn request_registers();

    /// Loads the k-tiles of all work tiles. All threads of the warpgroup call it.
    fn produce<S: TileScheduler, Epi: Copy>(
        block: Storage<C>,
        scheduler: &S,
        params: &Params<'_, C::Out, Epi>,
        scales: ScaleOperands<'_, C>,
        who: (WarpIdx, WarpgroupThread),
    );
}

/// Where accumulators go: how a consumer stores.
pub trait StoreRole<C: Config> {
    /// What is applied to accumulators.
    type Epilogue: Epilogue<Acc = Acc<C>>;

    /// Fetches the map of C into a cache, if there is one.
    fn prefetch_map(map_c: &TensorMap);

    /// The store of a consumer.
    fn store<'a, S: TileScheduler + 'a>(
        params: &'a Params<'a, C::Out, Self::Epilogue>,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a;
}

/// The number of k-tiles, which is the same for all lanes. In a cluster it depends on the slot that was claimed. ptxas
/// does not see that all lanes have the same slot, and puts a `YIELD` into the mainloop of a block with one consumer. It
/// does not if the number is read from the first lane.
#[inline(always)]
fn k_tiles_of_all_lanes<C: Config>(k_tiles: u32) -> u32 {
    match C::Cluster::MAY_HAVE_TILES && C::Consumers::WARPGROUPS == 1 {
        true => uniform(k_tiles),
        false => k_tiles,
    }
}

/// The accumulators of a consumer's thread.
pub type Atoms<C> = <<C as Config>::Consumers as Consumers>::Atoms<AtomFragment<C>>;

impl<C: Config> Storage<C> {
    /// Prepares the barriers, lets the cluster meet, and claims its slot. A launch begins while the kernel before it
    /// ends: until `grid_dependency_wait` it may only prefetch.
    #[inline(always)]
    fn prepare(
        &self,
        prefetch_maps: impl FnOnce(),
        arrivals: u32,
        args: &Args,
        scheduler: &impl TileScheduler,
        (warp, warpgroup, thread): (WarpIdx, WarpgroupIdx, WarpgroupThread),
    ) {
        let clustered = const { C::Cluster::LAUNCH_BOUND != 1 };
        // The next kernel may start where this one's blocks have ended. Each of its roles waits before it reads or
        // writes, as the roles here do. Slots are claimed before.
        if !scheduler.claims_slot() {
            launch_dependents();
        }
        // Two warps, so that neither waits for the other one's share.
        if warp.is_first() && elect_one() {
            prefetch_maps();
        }
        if warp.is(1) && elect_one() {
            self.init_barriers(arrivals);
        }
        if clustered {
            cluster_arrive_relaxed();
        }
        // The operands' beginnings are on their way to the L2 cache while the kernel before this one ends, and the
        // block meets.
        let [beginnings_a, beginnings_b] = args.prefetch;
        // SAFETY: the launcher promises that these rows exist.
        unsafe {
            if warpgroup.is(1) {
                beginnings_a.begin(thread);
            }
            if warpgroup.is(C::Consumers::WARPGROUPS as u32) {
                beginnings_b.begin(thread);
            }
        }
        if clustered {
            cluster_wait();
        } else {
            sync_threads();
        }
        if scheduler.claims_slot() {
            self.claim_slot(args, warp);
        }
    }

    /// Prepares the barriers of the pipeline, whose stages are full after `arrivals` arrivals, of the cluster reduction
    /// and of the slot.
    #[inline(always)]
    fn init_barriers(&self, arrivals: u32) {
        let releases = if C::Consumers::ARE_COOPERATIVE {
            C::Consumers::WARPGROUPS as u32
        } else {
            1
        };
        // SAFETY: no thread uses the barriers before the cluster has met.
        unsafe {
            self.pipeline.init(arrivals, releases);
            C::Scaling::init::<C>(self.scales);
            if C::Cluster::K > 1 {
                self.dsmem.buffer().init();
            }
            // Whether or not a slot is claimed: the compiler would give a branch that only this thread takes a cluster
            // barrier of its own.
            if C::Cluster::MAY_HAVE_TILES {
                self.slot.init();
            }
        }
    }

    /// Claims a slot for the cluster and broadcasts it.
    #[inline(always)]
    fn claim_slot(&self, args: &Args, warp: WarpIdx) {
        if warp.is_first() && elect_one() {
            self.slot.expect();
            if cluster_rank().is_first() {
                // SAFETY: the launcher promises a slot for each cluster. The next launch begins after
                // `launch_dependents`, which no thread calls before its cluster received the slot.
                unsafe {
                    let slot = args.scheduler.affinity.claim();
                    let cluster = C::Cluster::of_launch(args.scheduler.cluster);
                    self.slot.broadcast(slot, cluster.tiles());
                }
            }
        }
        self.slot.wait();
        launch_dependents();
    }
}
