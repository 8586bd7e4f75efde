//! The loader of a gathered A: the threads of the producer warpgroup copy rows of a table that indices name, and TMA
//! loads B.

use core::marker::PhantomData;

use cutlet_device::collective::{CopyProducer, Filling};
use cutlet_device::cp_async::cp_async;
use cutlet_device::tile::Major;
use cutlet_device::tma::{LoadOptions, TensorMap};
use cutlet_device::warpgroup::{WarpgroupThread, decrease_registers, increase_registers};
use cutlet_device::{Global, WarpIdx, grid_dependency_wait};
use cutlet_layout_core::{
    Coord, FragmentLayout, Gather, Layout, Partition, StaticLayout, Tensor, ThreadValue, Width,
    tile_origin,
};

use super::config::{Config, ElementA, RingA, RingB, SharedB, Storage};
use super::kernel::{Params, ProducerRole, produce};
use super::loader::options;
use super::scaling::ScaleOperands;
use crate::gather::Indices;
use crate::gemm::args::TmaArgs;
use crate::gemm::config::{ClusterShape, Consumers, TileShape};
use crate::gemm::loader::Loader;
use crate::gemm::named_rows::NamedRows;
use crate::gemm::scheduler::{GroupOrigin, TileScheduler};

/// All threads of the warpgroup copy A, whose row `r` is the row of a table that the index number `r` names.
///
/// # Safety
/// The table must have the columns of A, and rows that begin at multiples of 16 bytes. There must be an index for each
/// row of A, and an element for the report.
#[derive(Debug)]
pub struct ByRows;

impl<C: Config> ProducerRole<C> for ByRows {
    const ARRIVALS: u32 = CopyProducer::<C::Stages, C::Cluster>::ARRIVALS;

    #[inline(always)]
    fn prefetch_map(_: &TensorMap) {}

    #[inline(always)]
    fn release_registers() {
        const {
            assert!(
                C::Consumers::WARPGROUPS <= 2,
                "the producer has 56 registers"
            );
            assert!(
                size_of::<ScaleOperands<'_, C>>() == 0,
                "scales are loaded with an A that TMA loads"
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
    fn produce<S: TileScheduler, Epi: Copy>(
        block: Storage<C>,
        scheduler: &S,
        params: &Params<'_, C::Out, Epi>,
        _: ScaleOperands<'_, C>,
        (_, thread): (WarpIdx, WarpgroupThread),
    ) {
        let args = params.args;
        let [count, _] = args.output.extent;
        let table = TableOfA {
            elements: Global::from_ptr(args.table.elements.as_ptr().cast()),
            rows: args.table.rows,
            count,
            k: args.table.columns as i32,
        };
        let cluster = C::Cluster::of_launch(args.scheduler.cluster);
        let (map_b, args) = (params.map_b, &args.tma);
        let loader = RowLoader::<C>::new(block.rings, table, map_b, cluster, args, thread);
        let producer = CopyProducer::new(block.pipeline, thread);
        produce(producer, scheduler, loader);
    }
}

/// A table whose named rows are those of A.
#[derive(Clone, Copy, Debug)]
struct TableOfA<T> {
    /// Its elements.
    elements: Global<T>,
    /// Which rows.
    rows: NamedRows,
    /// Rows of A, of all groups together.
    count: i32,
    /// Columns of the table, which are k.
    k: i32,
}

/// Loads k-tiles: of A by the copies of a warpgroup's threads, of B by TMA.
struct RowLoader<'a, C: Config> {
    rings: (RingA<C>, RingB<C>),
    table: TableOfA<ElementA<C>>,
    map_b: &'a TensorMap,
    options_b: LoadOptions,
    cluster: C::Cluster,
    /// The block's row in its cluster.
    in_cluster: u32,
    thread: WarpgroupThread,
    /// K-tiles so far.
    nth: u32,
}

impl<'a, C: Config> RowLoader<'a, C> {
    /// The running thread's loader into these stages, by this map of B.
    #[inline(always)]
    pub fn new(
        rings: (RingA<C>, RingB<C>),
        table: TableOfA<ElementA<C>>,
        map_b: &'a TensorMap,
        cluster: C::Cluster,
        args: &TmaArgs,
        thread: WarpgroupThread,
    ) -> Self {
        const {
            assert!(
                C::MajorA::IS_K_MAJOR
                    && matches!(C::Cluster::STATIC, Some([_, 1]))
                    && C::Cluster::K == 1,
                "rows of a table are K-major, and each block copies its own"
            );
        }
        let ((_, options_b), (in_cluster, _)) = options::<C>(cluster, args);
        Self {
            rings,
            table,
            map_b,
            options_b,
            cluster,
            in_cluster,
            thread,
            nth: 0,
        }
    }
}

impl<C: Config> RowLoader<'_, C> {
    /// Starts to load the block's share of a k-tile of B, which begins at `from`, or there in its group's B.
    ///
    /// # Safety
    /// As [`Loader::load`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_b(&self, filling: Filling, from: Coord, group: Option<GroupOrigin>) {
        let (tile, barrier) = (self.rings.1.stage(filling.stage()), filling.barrier());
        let blocks = self.cluster.rows() as usize;
        let (block, nth) = (self.in_cluster, self.nth);
        let (map, options) = (self.map_b, self.options_b);
        // SAFETY: as promised by the caller.
        unsafe {
            match group {
                None => tile.load_multicast(blocks, block, nth, map, from, barrier, options),
                Some(group) => {
                    let [inner, outer] = group.nth[1];
                    let from = [from[0], from[1], 0, inner, outer];
                    tile.load_multicast(blocks, block, nth, map, from, barrier, options);
                }
            }
        }
    }
}

/// A thread's accesses to a k-tile of named rows. They know where the rows begin.
type RowAccesses<C> = Partition<Global<ElementA<C>>, Gather<Indices>, RowCopy<C>>;

impl<C: Config> Loader for RowLoader<'_, C> {
    /// The accesses to the k-tile at k = 0, so that a work tile reads each index once.
    type OfTile = RowAccesses<C>;

    #[inline(always)]
    fn bytes(&self) -> u32 {
        SharedB::<C>::BYTES
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn tile(&self, (row, _): (u32, u32), group: Option<GroupOrigin>) -> RowAccesses<C> {
        let TableOfA {
            elements,
            rows,
            count,
            k,
        } = self.table;
        let (first, count) = match group {
            None => (0, count),
            Some(group) => (group.first_row, group.rows),
        };
        // The kernel before this one may write the indices.
        grid_dependency_wait();
        // SAFETY: the launcher promises an index for each row, rows that are aligned for the copies, and the report.
        unsafe {
            let a = Tensor::new(elements, rows.matrix(first, [count, k]));
            let accesses = a
                .local_tile::<C::UnitA>((row, 0u32))
                .local_tile::<TileA<C>>((0u32, 0u32))
                .partition::<RowCopy<C>>(self.thread);
            rows.report_misses(first, accesses.bound());
            accesses
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(
        &mut self,
        filling: Filling,
        rows: &RowAccesses<C>,
        (_, column): (u32, u32),
        (k_tile, _): (u32, i32),
        group: Option<GroupOrigin>,
    ) {
        let stage = filling.stage();
        // SAFETY: the map has the tile's boxes, and the caller promises that the stage is empty. A bad index is of a
        // row that does not exist, of which nothing is read.
        unsafe {
            if CopyProducer::<C::Stages, C::Cluster>::loads_by_tma(self.thread) {
                self.load_b(filling, tile_origin::<C::UnitB>((column, k_tile)), group);
            }
            let [_, k] = tile_origin::<C::UnitA>((0u32, k_tile));
            let tile = self.rings.0.stage(stage).tensor();
            let to = tile.partition::<RowCopy<C>>(self.thread);
            rows.moved_along_rows(k)
                .each_access(&to, |from, to, count| {
                    cp_async::<_, VECTOR>(to, from, count);
                });
        }
        self.nth += 1;
    }
}

/// Elements of a copy: 16 bytes.
const VECTOR: usize = 8;

/// The coordinates of a k-tile of A: (m, k).
#[derive(Clone, Copy)]
pub(super) struct TileA<C>(PhantomData<C>);

impl<C: Config> StaticLayout for TileA<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(C::Tile::M as i64, 1, 0),
        Layout::static_basis_mode(C::Tile::K as i64, 1, 1),
    ]);
}

/// Which thread copies what of a k-tile of A: neighbours go along a line of 128 bytes, then to the next row.
#[derive(Clone, Copy)]
pub(super) struct RowCopy<C>(PhantomData<C>);

impl<C: Config> RowCopy<C> {
    /// Copies of a line.
    const ALONG: usize = C::Tile::K / VECTOR;
    /// Rows that the threads copy at a time.
    const ROWS: usize = 128 / Self::ALONG;
}

impl<C: Config> ThreadValue for RowCopy<C> {
    type Thr = RowCopyThreads<C>;
    type Val = RowCopyValues<C>;
    type Width = Width<VECTOR>;
}

/// The threads of a [`RowCopy`].
#[derive(Clone, Copy)]
pub(super) struct RowCopyThreads<C>(PhantomData<C>);

impl<C: Config> StaticLayout for RowCopyThreads<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(RowCopy::<C>::ALONG as i64, VECTOR as i64, 1),
        Layout::static_basis_mode(RowCopy::<C>::ROWS as i64, 1, 0),
    ]);
}

/// The values of a [`RowCopy`].
#[derive(Clone, Copy)]
pub(super) struct RowCopyValues<C>(PhantomData<C>);

impl<C: Config> StaticLayout for RowCopyValues<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(VECTOR as i64, 1, 1),
        Layout::static_basis_mode(
            (C::Tile::M / RowCopy::<C>::ROWS) as i64,
            RowCopy::<C>::ROWS as i64,
            0,
        ),
    ]);
}

impl<C: Config> FragmentLayout for RowCopyValues<C> {
    type Storage = [(); 64];
}
