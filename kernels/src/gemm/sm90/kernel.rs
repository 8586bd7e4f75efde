//! The kernel: `C = epilogue(A·B)`, by the roles of a block's warpgroups.
//!
//! One thread of the first warpgroup is the *producer*: it loads k-tiles of A and B by TMA into the stages of a pipeline.
//! The other warpgroups are *consumers*: each multiplies its rows of the block's tile by `wgmma`, applies the epilogue and
//! stores. A block stays for the whole launch, and the tile scheduler deals out its work tiles.

use cutlet_device::collective::{ClusterReduce, Pipeline};
use cutlet_device::sm90::{
    Major, TensorMap, WarpgroupIdx, WarpgroupThread, cluster_arrive_relaxed, cluster_wait,
    decrease_registers, elect_one, grid_dependency_wait, increase_registers, launch_dependents,
    prefetch_tensor_map, tma_store_wait_read, warpgroup_idx, warpgroup_thread_idx,
};
use cutlet_device::{GlobalMut, WarpIdx, cluster_rank, lane_idx, sync_threads, warp_idx_sync};

use super::config::{Acc, Config, Storage, Values, runs_fixup};
use super::loader::TmaLoader;
use super::mainloop::WgmmaMainloop;
use super::store::TileStore;
use crate::gemm::args::Args;
use crate::gemm::config::{AtomFragment, ClusterShape, Consumers, StageCount, TileShape};
use crate::gemm::epilogue::{Epilogue, EpilogueOperands};
use crate::gemm::loader::Loader;
use crate::gemm::mainloop::Mainloop;
use crate::gemm::scheduler::{GroupArgs, Grouped, Persistent, StreamK, TileScheduler};
use crate::gemm::store::Store;

/// All tiles of C that are this block's. Any grid of whole clusters computes all of C.
///
/// # Safety
/// The kernel must have the threads and the cluster of `C`, which a [`kernel!`](cutlet_device::kernel) takes from it.
/// `args` must describe the matrices. The maps must describe A as (m, k), B as (n, k) and, where TMA stores C, C as
/// (m, n), with the boxes [`box_a`](super::box_a), [`box_b`](super::box_b) and [`box_c`](super::box_c). A column-major
/// C must have such a map unless partial output is written. `c` must be the memory of C, or of the partial output. The
/// rows to prefetch must exist. Where the fixup runs, the workspace must have room for the partials, and its counters
/// must be zero.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn gemm<C: Config, Epi: Epilogue<Acc = Acc<C>>>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<C::Element>,
    workspace: GlobalMut<f32>,
    args: Args,
    epilogue: Epi,
    block: Storage<C>,
) {
    let () = C::CHECK;
    let whole = Persistent::<C::Cluster>::new(&args.scheduler, C::TILE_IN_UNITS, block.slot);
    // SAFETY: as promised by the caller.
    unsafe {
        if const { runs_fixup::<C, Epi>() } {
            run::<C, Epi, _>(
                block,
                StreamK(whole),
                map_a,
                map_b,
                map_c,
                c,
                workspace,
                &args,
                epilogue,
            )
        } else {
            run::<C, Epi, _>(
                block, whole, map_a, map_b, map_c, c, workspace, &args, epilogue,
            )
        }
    };
}

/// [`gemm`] of many products of the same n and k: of a batch, or of groups of rows.
///
/// # Safety
/// As [`gemm`]. The maps must have three dimensions. The third one is along the groups, or has one matrix that all groups
/// share, as `groups` says. Consumers of several M atoms need a C that TMA can store, old elements that are not read, and
/// groups without sizes. `args` must have the extents and the k-tiles of each product, but for the rows of groups that
/// lie in one A: `m` is then that of A. There must be neither splits, nor partial output, nor slots. There must be a size
/// for each group, unless there are none.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn grouped_gemm<C: Config, Epi: Epilogue<Acc = Acc<C>>>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<C::Element>,
    workspace: GlobalMut<f32>,
    args: Args,
    epilogue: Epi,
    groups: GroupArgs,
    block: Storage<C>,
) {
    const {
        assert!(C::Cluster::K == 1, "the k-tiles of groups are not shared");
        assert!(
            C::MajorC::IS_K_MAJOR && EpilogueOperands::<Epi>::ARE_NONE,
            "C is row-major, and the epilogue reads nothing of its rows and columns"
        );
    }
    let () = C::CHECK;
    let rows = args.output.extent[0];
    // SAFETY: as promised by the caller.
    unsafe {
        let scheduler = Grouped::<C::Cluster>::new(
            &args.scheduler,
            &groups,
            rows,
            const { C::Tile::M as u32 },
            C::TILE_IN_UNITS,
        );
        run::<C, Epi, _>(
            block, scheduler, map_a, map_b, map_c, c, workspace, &args, epilogue,
        )
    };
}

/// The roles of a block, which computes the scheduler's work tiles.
///
/// # Safety
/// As [`gemm`], or [`grouped_gemm`].
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
unsafe fn run<C: Config, Epi: Epilogue<Acc = Acc<C>>, S: TileScheduler + Copy>(
    block: Storage<C>,
    scheduler: S,
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<C::Element>,
    workspace: GlobalMut<f32>,
    args: &Args,
    epilogue: Epi,
) {
    let (warp, warpgroup) = (warp_idx_sync(), warpgroup_idx());
    let thread = warpgroup_thread_idx();
    block.prepare(
        [map_a, map_b, map_c],
        args,
        &scheduler,
        (warp, warpgroup, thread),
    );

    if warpgroup.is_first() {
        match C::Consumers::WARPGROUPS {
            1 => {}
            2 => decrease_registers::<40>(),
            _ => decrease_registers::<32>(),
        }
        if warp.is_first() && elect_one() {
            let loader = TmaLoader::<C>::new(block.rings, (map_a, map_b), &args.tma);
            produce(block.pipeline, &scheduler, loader);
        }
        return;
    }

    match C::Consumers::WARPGROUPS {
        1 => {}
        2 => increase_registers::<232>(),
        _ => increase_registers::<160>(),
    }
    let consumer = warpgroup.after(1);
    let mainloop =
        WgmmaMainloop::<C>::new(block.rings, block.pipeline.consumer(), consumer, thread);
    let store = TileStore::<C, Epi, _>::new(
        c,
        map_c,
        workspace,
        args,
        epilogue,
        scheduler,
        block.buffers.of(consumer),
        (consumer, thread),
    );
    // SAFETY: where two blocks have the same tile, both consumers of each add the accumulators of every tile.
    let reduce = unsafe { block.dsmem.buffer().cluster_reduce(consumer) };
    consume::<C, _, _, _>(&scheduler, mainloop, reduce, store, thread);
    // The block's memory must stay until TMA has read it.
    if !TileStore::<C, Epi, S>::THREADS_STORE && lane_idx().is_first() {
        tma_store_wait_read::<0>();
    }
}

/// The producer: loads the k-tiles of every work tile.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn produce<St: StageCount, Cl: ClusterShape, S: TileScheduler>(
    pipeline: Pipeline<St, Cl>,
    scheduler: &S,
    mut loader: impl Loader,
) {
    let mut producer = pipeline.producer();
    let k_tiles = scheduler.k_tiles();
    let mut backwards = false;
    for work in scheduler.work_tiles() {
        let group = S::IS_GROUPED.then(|| scheduler.origin(work));
        for k_tile in work.k_tiles(k_tiles, backwards) {
            // A short ring has no stage to spare for pairs.
            let filling = match St::STAGES < 8 {
                true => producer.acquire(loader.bytes()),
                false => producer.acquire_in_pairs(loader.bytes()),
            };
            // SAFETY: the producer waited until the stage is empty.
            unsafe { loader.load(filling, scheduler.begin(work), k_tile, group) };
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
    mut reduce: ClusterReduce<Values<C>>,
    store: St,
    thread: WarpgroupThread,
) where
    C: Config,
    S: TileScheduler,
    M: Mainloop<Accumulators = Atoms<C>>,
    St: Store<Accumulators = Atoms<C>>,
{
    grid_dependency_wait();
    for work in scheduler.work_tiles() {
        let k_tiles = scheduler.k_tile_count(work);
        if !mainloop.takes_next(k_tiles) {
            continue;
        }
        let prepared = store.prepare(work);
        let mut accumulators = mainloop.mma(k_tiles);
        if C::Cluster::K > 1 && !reduce.add(thread, &mut accumulators.as_mut()[0]) {
            continue;
        }
        // SAFETY: these rows of the work tile are this consumer's.
        unsafe { store.store(work, accumulators, prepared) };
    }
    if C::Cluster::K > 1 {
        reduce.drain();
    }
}

/// The accumulators of a consumer's thread.
type Atoms<C> = <<C as Config>::Consumers as Consumers>::Atoms<AtomFragment<<C as Config>::Mma>>;

impl<C: Config> Storage<C> {
    /// Prepares the barriers, lets the cluster meet, and claims its slot. A launch begins while the kernel before it ends:
    /// until `grid_dependency_wait` it may only prefetch.
    #[inline(always)]
    fn prepare(
        &self,
        maps: [&TensorMap; 3],
        args: &Args,
        scheduler: &impl TileScheduler,
        (warp, warpgroup, thread): (WarpIdx, WarpgroupIdx, WarpgroupThread),
    ) {
        let clustered = const { C::Cluster::BLOCKS > 1 };
        // The next kernel may start where this one's blocks have ended. Each of its roles waits before it reads or writes,
        // as the roles here do. Slots are claimed before.
        if !scheduler.claims_slot() {
            launch_dependents();
        }
        // Two warps, so that neither waits for the other one's share.
        if warp.is_first() && elect_one() {
            let [map_a, map_b, map_c] = maps;
            prefetch_tensor_map(map_a);
            prefetch_tensor_map(map_b);
            prefetch_tensor_map(map_c);
        }
        if warp.is(1) && elect_one() {
            self.init_barriers();
        }
        if clustered {
            cluster_arrive_relaxed();
        }
        // The operands' beginnings are on their way to the L2 cache while the kernel before this one ends, and the block
        // meets.
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

    /// Prepares the barriers of the pipeline, of the cluster reduction and of the slot.
    #[inline(always)]
    fn init_barriers(&self) {
        let releases = if C::Consumers::ARE_COOPERATIVE {
            C::Consumers::WARPGROUPS as u32
        } else {
            1
        };
        // SAFETY: no thread uses the barriers before the cluster has met.
        unsafe {
            self.pipeline.init(1, releases);
            if C::Cluster::K > 1 {
                self.dsmem.buffer().init();
            }
            // Whether or not a slot is claimed: the compiler would give a branch that only this thread takes a cluster barrier
            // of its own.
            if C::Cluster::TILES > 1 {
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
                // SAFETY: the launcher promises a slot for each cluster. The next launch begins after `launch_dependents`,
                // which no thread calls before its cluster received the slot.
                unsafe {
                    let slot = args.scheduler.affinity.claim();
                    self.slot.broadcast(slot, C::Cluster::TILES);
                }
            }
        }
        self.slot.wait();
        launch_dependents();
    }
}
