//! The kernel: `C = epilogue(A·B)`, by the roles of a block's warpgroups.
//!
//! One thread of the first warpgroup is the *producer*: it loads k-tiles of A and B by TMA into the stages of a
//! pipeline. If the rows of A are those of a table that indices name, all threads of that warpgroup copy them. The
//! other warpgroups are *consumers*: each multiplies its rows of the block's tile by `wgmma`, applies the epilogue and
//! stores. A block stays for the whole launch, and the tile scheduler deals out its work tiles.

use core::marker::PhantomData;

use cutlet_device::cluster::{cluster_arrive_relaxed, cluster_wait};
use cutlet_device::collective::{ClusterReduce, CopyProducer, WorkTile};
use cutlet_device::tile::Major;
use cutlet_device::tma::{TensorMap, prefetch_tensor_map};
use cutlet_device::warpgroup::{
    WarpgroupIdx, WarpgroupThread, decrease_registers, increase_registers, warpgroup_idx,
    warpgroup_thread_idx,
};
use cutlet_device::{
    Global, GlobalMut, WarpIdx, cluster_rank, elect_one, grid_dependency_wait, launch_dependents,
    sync_threads, uniform, warp_idx_sync,
};

use super::config::{Acc, Config, Storage, Values, streams_tiles};
use super::epilogue_subtiles::SubtileBuffer;
use super::loader::TmaLoader;
use super::mainloop::{WgmmaMainloop, m_atom};
use super::row_loader::{RowLoader, TableOfA};
use super::row_store::RowStore;
use super::store::TileStore;
use super::swiglu_store::SwigluStore;
use crate::gemm::args::Args;
use crate::gemm::config::{AtomFragment, ClusterShape, Consumers, TileShape};
use crate::gemm::epilogue::{Epilogue, EpilogueOperands};
use crate::gemm::loader::{Loader, StageFiller};
use crate::gemm::mainloop::Mainloop;
use crate::gemm::named_rows::NamedRows;
use crate::gemm::scheduler::{GroupArgs, Grouped, Persistent, StreamK, TileScheduler, WARP_ROWS};
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
        let store = ToMatrix {
            c,
            map_c,
            workspace,
            epilogue,
        };
        if const { streams_tiles::<C, Epi>() } {
            let scheduler = StreamK(whole);
            run::<C, _, _, _>(block, scheduler, ByTma { map_a }, map_b, store, &args)
        } else {
            run::<C, _, _, _>(block, whole, ByTma { map_a }, map_b, store, &args)
        }
    };
}

/// [`gemm`] of many products of the same n and k: of a batch, or of groups of rows.
///
/// # Safety
/// As [`gemm`]. The maps must have three dimensions. The third one is along the groups, or has one matrix that all
/// groups share, as `groups` says. Consumers of several M atoms need a C that TMA can store, old elements that are not
/// read, and groups without sizes. `args` must have the extents and the k-tiles of each product, but for the rows of
/// groups that lie in one A: `m` is then that of A. There must be neither splits, nor partial output, nor slots. There
/// must be a size for each group, unless there are none.
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
    // SAFETY: as promised by the caller.
    unsafe {
        let scheduler = grouped::<C>(&args, &groups);
        let store = ToMatrix {
            c,
            map_c,
            workspace,
            epilogue,
        };
        run::<C, _, _, _>(block, scheduler, ByTma { map_a }, map_b, store, &args)
    };
}

/// [`grouped_gemm`] whose row `r` of A is the row of a table that the index number `r` names.
///
/// # Safety
/// As [`grouped_gemm`]. The table must have the columns of A, and rows that begin at multiples of 16 bytes. There must
/// be an index for each row of A, and an element for the report.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn gathered_gemm<C: Config, Epi: Epilogue<Acc = Acc<C>>>(
    table: Global<C::Element>,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<C::Element>,
    args: Args,
    epilogue: Epi,
    groups: GroupArgs,
    rows: NamedRows,
    k: i32,
    block: Storage<C>,
) {
    let () = C::CHECK;
    let [count, _] = args.output.extent;
    let load = ByRows {
        table: TableOfA {
            elements: table,
            rows,
            count,
            k,
        },
    };
    let store = ToMatrix {
        c,
        map_c,
        workspace: GlobalMut::from_ptr(core::ptr::null_mut()),
        epilogue,
    };
    // SAFETY: as promised by the caller.
    unsafe {
        let scheduler = grouped::<C>(&args, &groups);
        run::<C, _, _, _>(block, scheduler, load, map_b, store, &args)
    };
}

/// [`grouped_gemm`] that writes row `r` of the product to the row of a table that the index number `r` names.
///
/// # Safety
/// As [`grouped_gemm`]. The table must have the columns of C. TMA could store it if `args` says so. There must be an
/// index for each row of the product, and an element for the report.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn scattered_gemm<C: Config, Epi: Epilogue<Acc = Acc<C>>>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    table: GlobalMut<C::Element>,
    args: Args,
    epilogue: Epi,
    groups: GroupArgs,
    rows: NamedRows,
    block: Storage<C>,
) {
    let () = C::CHECK;
    let store = ToRows {
        table,
        rows,
        epilogue,
    };
    // SAFETY: as promised by the caller.
    unsafe {
        let scheduler = grouped::<C>(&args, &groups);
        run::<C, _, _, _>(block, scheduler, ByTma { map_a }, map_b, store, &args)
    };
}

/// [`grouped_gemm`] whose columns are gates and ups by turns: C is `silu(alpha·gate) · (alpha·up)`, and has half as
/// many columns. `H` is the configuration `C` with half the columns.
///
/// # Safety
/// As [`grouped_gemm`]. The map of C, `c` and the output's extent are those of the C with half as many columns.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn swiglu_gemm<C: Config, H: Config<Element = C::Element>>(
    map_a: &TensorMap,
    map_b: &TensorMap,
    map_c: &TensorMap,
    c: GlobalMut<C::Element>,
    args: Args,
    alpha: f32,
    groups: GroupArgs,
    block: Storage<C>,
) {
    let () = C::CHECK;
    let store = ToSwiglu::<_, H> {
        c,
        map_c,
        alpha,
        half: PhantomData,
    };
    // SAFETY: as promised by the caller.
    unsafe {
        let scheduler = grouped::<C>(&args, &groups);
        run::<C, _, _, _>(block, scheduler, ByTma { map_a }, map_b, store, &args)
    };
}

/// The scheduler of groups.
///
/// # Safety
/// As [`grouped_gemm`].
#[inline(always)]
unsafe fn grouped<'a, C: Config>(args: &'a Args, groups: &'a GroupArgs) -> Grouped<'a, C::Cluster> {
    let [rows, _] = args.output.extent;
    let tile_rows = const { C::Tile::M as u32 };
    // SAFETY: as promised by the caller.
    unsafe {
        Grouped::<C::Cluster>::new(&args.scheduler, groups, rows, tile_rows, C::TILE_IN_UNITS)
    }
}

/// The roles of a block, which computes the scheduler's work tiles.
///
/// # Safety
/// As [`gemm`], or [`grouped_gemm`].
#[inline(always)]
unsafe fn run<C, S, P, W>(
    block: Storage<C>,
    scheduler: S,
    load: P,
    map_b: &TensorMap,
    store: W,
    args: &Args,
) where
    C: Config,
    S: TileScheduler + Copy,
    P: ProducerRole<C>,
    W: StoreRole<C>,
{
    let (warp, warpgroup) = (warp_idx_sync(), warpgroup_idx());
    let thread = warpgroup_thread_idx();
    let cluster = C::Cluster::of_launch(args.scheduler.cluster);
    let block = Storage {
        pipeline: block.pipeline.in_cluster(cluster),
        ..block
    };
    block.prepare(
        || {
            load.prefetch_map();
            prefetch_tensor_map(map_b);
            store.prefetch_map();
        },
        P::ARRIVALS,
        args,
        &scheduler,
        (warp, warpgroup, thread),
    );

    if warpgroup.is_first() {
        P::release_registers();
        load.produce(block, &scheduler, map_b, args, (warp, thread));
        return;
    }

    P::request_registers();
    let consumer = warpgroup.after(1);
    let mainloop =
        WgmmaMainloop::<C>::new(block.rings, block.pipeline.consumer(), consumer, thread);
    let buffer = block.buffers.of(consumer);
    let store = store.store(args, scheduler, buffer, (consumer, thread));
    // The library launches no such clusters, but ptxas spills a register of `128x192x64_pingpong` without this.
    // SAFETY: where two blocks have the same tile, both consumers of each add the accumulators of every tile.
    let reduce = unsafe { block.dsmem.buffer().cluster_reduce(consumer) };
    consume::<C, _, _, _>(&scheduler, mainloop, reduce, store, (consumer, thread));
}

/// The producer: loads the k-tiles of every work tile.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn produce<S: TileScheduler>(
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
    mut reduce: ClusterReduce<Values<C>>,
    store: St,
    (consumer, thread): (WarpgroupIdx, WarpgroupThread),
) where
    C: Config,
    S: TileScheduler,
    M: Mainloop<Accumulators = Atoms<C>>,
    St: Store<Accumulators = Atoms<C>>,
{
    grid_dependency_wait();
    for work in scheduler.work_tiles() {
        let k_tiles = k_tiles_of_all_lanes::<C>(scheduler.k_tile_count(work));
        if !mainloop.takes_next(k_tiles) {
            continue;
        }
        if !has_rows::<C, S>(scheduler, work, consumer) {
            mainloop.pass_over(k_tiles);
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
trait ProducerRole<C: Config> {
    /// Arrivals at a stage's barrier.
    const ARRIVALS: u32;

    /// Fetches the map of A into a cache, if there is one.
    fn prefetch_map(&self);

    /// Releases the registers that the producing warpgroup does not need.
    fn release_registers();

    /// Requests them for the consumers.
    fn request_registers();

    /// Loads the k-tiles of all work tiles. All threads of the warpgroup call it.
    fn produce<S: TileScheduler>(
        self,
        block: Storage<C>,
        scheduler: &S,
        map_b: &TensorMap,
        args: &Args,
        who: (WarpIdx, WarpgroupThread),
    );
}

/// TMA loads A, for one thread.
struct ByTma<'a> {
    map_a: &'a TensorMap,
}

impl<C: Config> ProducerRole<C> for ByTma<'_> {
    const ARRIVALS: u32 = 1;

    #[inline(always)]
    fn prefetch_map(&self) {
        prefetch_tensor_map(self.map_a);
    }

    #[inline(always)]
    fn release_registers() {
        match C::Consumers::WARPGROUPS {
            1 => {}
            2 => decrease_registers::<40>(),
            _ => decrease_registers::<32>(),
        }
    }

    #[inline(always)]
    fn request_registers() {
        match C::Consumers::WARPGROUPS {
            1 => {}
            2 => increase_registers::<232>(),
            _ => increase_registers::<160>(),
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn produce<S: TileScheduler>(
        self,
        block: Storage<C>,
        scheduler: &S,
        map_b: &TensorMap,
        args: &Args,
        (warp, _): (WarpIdx, WarpgroupThread),
    ) {
        if warp.is_first() && elect_one() {
            let cluster = C::Cluster::of_launch(args.scheduler.cluster);
            let maps = (self.map_a, map_b);
            let loader = TmaLoader::<C>::new(block.rings, maps, cluster, &args.tma);
            produce(block.pipeline.producer(), scheduler, loader);
        }
    }
}

/// All threads of the warpgroup copy named rows of A.
struct ByRows<T> {
    table: TableOfA<T>,
}

impl<C: Config> ProducerRole<C> for ByRows<C::Element> {
    const ARRIVALS: u32 = CopyProducer::<C::Stages, C::Cluster>::ARRIVALS;

    #[inline(always)]
    fn prefetch_map(&self) {}

    #[inline(always)]
    fn release_registers() {
        const {
            assert!(
                C::Consumers::WARPGROUPS <= 2,
                "the producer has 56 registers"
            )
        };
        if C::Consumers::WARPGROUPS == 2 {
            decrease_registers::<56>();
        }
    }

    #[inline(always)]
    fn request_registers() {
        if C::Consumers::WARPGROUPS == 2 {
            increase_registers::<224>();
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn produce<S: TileScheduler>(
        self,
        block: Storage<C>,
        scheduler: &S,
        map_b: &TensorMap,
        args: &Args,
        (_, thread): (WarpIdx, WarpgroupThread),
    ) {
        let cluster = C::Cluster::of_launch(args.scheduler.cluster);
        let loader =
            RowLoader::<C>::new(block.rings, self.table, map_b, cluster, &args.tma, thread);
        let producer = CopyProducer::new(block.pipeline, thread);
        produce(producer, scheduler, loader);
    }
}

/// Where accumulators go: how a consumer stores.
trait StoreRole<C: Config> {
    /// Fetches the map of C into a cache, if there is one.
    fn prefetch_map(&self);

    /// The store of a consumer.
    fn store<'a, S: TileScheduler + 'a>(
        &'a self,
        args: &'a Args,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a;
}

/// To C.
struct ToMatrix<'m, T, Epi> {
    c: GlobalMut<T>,
    map_c: &'m TensorMap,
    workspace: GlobalMut<f32>,
    epilogue: Epi,
}

impl<C: Config, Epi: Epilogue<Acc = Acc<C>>> StoreRole<C> for ToMatrix<'_, C::Element, Epi> {
    #[inline(always)]
    fn prefetch_map(&self) {
        prefetch_tensor_map(self.map_c);
    }

    #[inline(always)]
    fn store<'a, S: TileScheduler + 'a>(
        &'a self,
        args: &'a Args,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a {
        let Self {
            c,
            map_c,
            workspace,
            epilogue,
        } = *self;
        TileStore::<C, Epi, S>::new(c, map_c, workspace, args, epilogue, scheduler, buffer, who)
    }
}

/// To rows of a table that indices name.
struct ToRows<T, Epi> {
    table: GlobalMut<T>,
    rows: NamedRows,
    epilogue: Epi,
}

impl<C: Config, Epi: Epilogue<Acc = Acc<C>>> StoreRole<C> for ToRows<C::Element, Epi> {
    #[inline(always)]
    fn prefetch_map(&self) {}

    #[inline(always)]
    fn store<'a, S: TileScheduler + 'a>(
        &'a self,
        args: &'a Args,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a {
        let table = (self.table, self.rows);
        RowStore::<C, Epi, S>::new(table, args, self.epilogue, scheduler, buffer, who)
    }
}

/// To C, after gates have met ups.
struct ToSwiglu<'m, T, H> {
    c: GlobalMut<T>,
    map_c: &'m TensorMap,
    alpha: f32,
    half: PhantomData<H>,
}

impl<C: Config, H: Config<Element = C::Element>> StoreRole<C> for ToSwiglu<'_, C::Element, H> {
    #[inline(always)]
    fn prefetch_map(&self) {
        prefetch_tensor_map(self.map_c);
    }

    #[inline(always)]
    fn store<'a, S: TileScheduler + 'a>(
        &'a self,
        args: &'a Args,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a {
        let c = (self.c, self.map_c);
        SwigluStore::<C, H, S>::new(c, args, self.alpha, scheduler, buffer, who)
    }
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
type Atoms<C> = <<C as Config>::Consumers as Consumers>::Atoms<AtomFragment<<C as Config>::Mma>>;

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
