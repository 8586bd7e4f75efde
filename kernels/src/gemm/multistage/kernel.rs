//! The kernel: `C = epilogue(A·B)`, where a block computes one split of one tile.

use core::marker::PhantomData;

use cutlet_device::collective::Group;
use cutlet_device::cp_async::{cp_async_commit, cp_async_wait};
use cutlet_device::{Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, sync_threads};
use cutlet_layout_core::{Divide, StaticLayout, each, tiles};

use super::args::MultistageArgs;
use super::config::{Acc, Accumulators, Config, Element, Product};
use super::loader::OperandLoader;
use super::staging::{Matrix, Source, Staging, Start, StridedMajor};
use super::storage::Storage;
use super::store::{Place, SubtileStorage, TileOfC, store};
use crate::gemm::config::{StageCount, TileShape};
use crate::gemm::epilogue::{Accumulator, ElementC, Epilogue};

/// The block's split of its tile of C. The grid has one block along x for each split of each tile, and one along y for
/// each group.
///
/// # Safety
/// `args` must describe the matrices, and the operands must be aligned for the copies of the configuration. `partials`
/// must have room for the partials of each split, or C for the tile's elements.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub unsafe fn gemm<C, D, Epi>(
    thread: ThreadIdx<impl ThreadGroup>,
    a: Global<Element<C>>,
    b: Global<Element<C>>,
    c: GlobalMut<D>,
    partials: GlobalMut<Acc<C>>,
    args: MultistageArgs,
    epilogue: Epi,
    storage: Storage<C>,
) where
    C: Config<A: Staging<Source: StridedMajor>>,
    D: ElementC<Acc = Acc<C>>,
    Epi: Epilogue<Acc = Acc<C>>,
{
    // SAFETY: as promised by the caller.
    unsafe { run::<C, D, Epi, _>(thread, a, b, c, partials, args, OwnRows, epilogue, storage) };
}

/// Which rows of memory are those of A and of C.
pub(super) trait RowsOf<C: Config, D: ElementC>: Copy {
    /// Elements from one row of A, and of C, to the next, if a group's rows are found by its first one.
    fn strides(&self, args: &MultistageArgs) -> [i64; 2];

    /// The rows of A that are a group's, as (m, k).
    ///
    /// # Safety
    /// They must exist.
    unsafe fn matrix_a(&self, args: &MultistageArgs, group: Group) -> Matrix<C::A>;

    /// Reports rows of A that do not exist, for a block that computes a tile of this column.
    ///
    /// # Safety
    /// There must be memory for the report.
    unsafe fn report_misses(&self, group: Group, column: u32, start: &Start<C::A>);

    /// Applies the epilogue to the thread's accumulators, and writes C or partials. The group's C begins `to_c`
    /// elements after the first one.
    ///
    /// # Safety
    /// There must be memory for them. No thread may use shared memory for anything else.
    #[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
    unsafe fn store<Epi: Epilogue<Acc = Acc<C>>>(
        &self,
        accumulators: Accumulators<C::Product>,
        c: GlobalMut<D>,
        partials: GlobalMut<Acc<C>>,
        args: &MultistageArgs,
        group: (Group, i64),
        epilogue: Epi,
        storage: SubtileStorage<C::Product>,
        place: Place<C::Product>,
    ) where
        D: ElementC<Acc = Acc<C>>;
}

/// The rows of A and C in their order.
#[derive(Clone, Copy)]
struct OwnRows;

impl<C, D> RowsOf<C, D> for OwnRows
where
    C: Config<A: Staging<Source: StridedMajor>>,
    D: ElementC,
{
    #[inline(always)]
    fn strides(&self, args: &MultistageArgs) -> [i64; 2] {
        [args.strides_a[0], args.strides_c[0]]
    }

    #[inline(always)]
    unsafe fn matrix_a(&self, args: &MultistageArgs, group: Group) -> Matrix<C::A> {
        let [_, _, k] = args.extents;
        Source::<C::A>::matrix([group.rows, k], args.strides_a)
    }

    #[inline(always)]
    unsafe fn report_misses(&self, _: Group, _: u32, _: &Start<C::A>) {}

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store<Epi: Epilogue<Acc = Acc<C>>>(
        &self,
        accumulators: Accumulators<C::Product>,
        c: GlobalMut<D>,
        partials: GlobalMut<Acc<C>>,
        args: &MultistageArgs,
        (group, to_c): (Group, i64),
        epilogue: Epi,
        storage: SubtileStorage<C::Product>,
        place: Place<C::Product>,
    ) where
        D: ElementC<Acc = Acc<C>>,
    {
        let [_, n, _] = args.extents;
        // One of both is written, and begins where the group's C does.
        let (c, partials, extent) = (c.offset(to_c), partials.offset(to_c), [group.rows, n]);
        // SAFETY: as promised by the caller.
        unsafe {
            store::<C, D, Epi>(
                accumulators,
                c,
                partials,
                args,
                extent,
                epilogue,
                storage,
                place,
            )
        };
    }
}

/// [`gemm`] of these rows.
///
/// # Safety
/// As [`gemm`]. The rows must exist.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub(super) unsafe fn run<C, D, Epi, R>(
    thread: ThreadIdx<impl ThreadGroup>,
    a: Global<Element<C>>,
    b: Global<Element<C>>,
    c: GlobalMut<D>,
    partials: GlobalMut<Acc<C>>,
    args: MultistageArgs,
    rows: R,
    epilogue: Epi,
    storage: Storage<C>,
) where
    C: Config,
    D: ElementC<Acc = Acc<C>>,
    Epi: Epilogue<Acc = Acc<C>>,
    R: RowsOf<C, D>,
{
    let thread = thread.of_group::<C::Product>();
    let (row, column) = args.raster.tile(block_idx().x);
    let (split, row) = args.tile_rows.div_rem(row);
    let [m, n, k] = args.extents;
    let row_strides = rows.strides(&args);
    // SAFETY: the launcher promises a size for each group.
    let group = unsafe { args.groups.of_block(args.first_group, m) };
    let m = group.rows;
    if row >= tiles::<TileOfC<C>>([m, n])[0] {
        return;
    }
    let [to_a, to_b, _] = args.groups.offsets(group, row_strides);
    let (a, b) = (a.offset(to_a), b.offset(to_b));

    let (ring_a, ring_b) = storage.first();
    let k_tiles = (k as u32).div_ceil(const { C::Tile::K as u32 });
    let first = split * args.split_k_tiles;
    let end = k_tiles.min(first + args.split_k_tiles);
    let matrix_b = Source::<C::B>::matrix([n, k], args.strides_b);
    // SAFETY: as promised by the caller.
    let operands = unsafe {
        Operands::<C> {
            a: OperandLoader::new(a, rows.matrix_a(&args, group), row, ring_a.first(), thread),
            b: OperandLoader::new(b, matrix_b, column, ring_b.first(), thread),
            thread,
            end,
        }
    };
    // SAFETY: as promised by the caller.
    unsafe { rows.report_misses(group, column, operands.a.start()) };

    // All stages but one are filled, or under way. The last one is filled while the first one is multiplied.
    let ahead = const { C::Stages::STAGES as u32 - 1 };
    // SAFETY: no thread uses the stages.
    unsafe {
        match first {
            0 => operands.put_first(operands.fetch_first(), 0),
            _ => operands.put(operands.fetch(first), first, 0),
        }
        for stage in 1..ahead {
            operands.put(operands.fetch(first + stage), first + stage, stage);
        }
    }
    let mut held = operands.fetch(first + ahead);
    let (mut stage, mut free) = (0, ahead);
    let mut accumulators = Accumulators::<C::Product>::filled(Acc::<C>::ZERO);
    wait_for_next::<C::Stages>();
    sync_threads();
    let mut current = operands.fragments(stage, 0);
    for k_tile in first..end {
        each::<Steps<C>>(|step| {
            // The next step's elements are read while this one is multiplied. After the last step they are the next
            // stage's, which has arrived, and which no thread overwrites before all have read this one.
            if step + 1 == Steps::<C>::SIZE {
                free = stage;
                stage = if stage == ahead { 0 } else { stage + 1 };
                wait_for_next::<C::Stages>();
                sync_threads();
            }
            let next = operands.fragments(stage, (step + 1) % Steps::<C>::SIZE);
            // Away from the barrier, so that the reads after it do not queue behind these writes.
            if step == PutStep::<C>::NTH {
                // SAFETY: all threads have read the stage before the last barrier.
                unsafe { operands.put(held, k_tile + ahead, free) };
                held = operands.fetch(k_tile + ahead + 1);
            }
            C::Product::multiply(&current, &mut accumulators);
            current = next;
        });
    }
    cp_async_wait::<0>();
    sync_threads();

    // The group once more, so that nothing of C and of the epilogue holds registers during the loop.
    //
    // SAFETY: as above.
    let group = unsafe { args.groups.of_block_anew(args.first_group, args.extents[0]) };
    let [_, _, to_c] = args.groups.offsets(group, row_strides);
    let epilogue = epilogue.of_group(group, to_c);
    let place = Place {
        row,
        column,
        split,
        thread,
    };
    // SAFETY: the launcher promises C or the partials. The stages are not used any more.
    unsafe {
        rows.store(
            accumulators,
            c,
            partials,
            &args,
            (group, to_c),
            epilogue,
            storage.second(),
            place,
        )
    };
}

/// The operands, and their stages.
struct Operands<C: Config> {
    a: OperandLoader<C::A, C::Product>,
    b: OperandLoader<C::B, C::Product>,
    thread: ThreadIdx<C::Product>,
    /// The split's end among the k-tiles.
    end: u32,
}

impl<C: Config> Operands<C> {
    /// Reads the thread's part of the first k-tile into registers, of operands that go through them.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn fetch_first(&self) -> Held<C> {
        (self.a.fetch_first(), self.b.fetch_first())
    }

    /// Puts the first k-tile into a stage: what the thread holds, or by asynchronous copies, which are a group.
    ///
    /// # Safety
    /// No thread may use the stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put_first(&self, held: Held<C>, stage: u32) {
        // SAFETY: as promised by the caller.
        unsafe {
            self.a.put_first(held.0, stage);
            self.b.put_first(held.1, stage);
        }
        cp_async_commit();
    }

    /// [`fetch_first`](Self::fetch_first) of a later k-tile. Those beyond the split's last one are zeros.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn fetch(&self, k_tile: u32) -> Held<C> {
        let exists = k_tile < self.end;
        (self.a.fetch(k_tile, exists), self.b.fetch(k_tile, exists))
    }

    /// [`put_first`](Self::put_first) of a later k-tile. Those beyond the split's last one are zeros.
    ///
    /// # Safety
    /// No thread may use the stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn put(&self, held: Held<C>, k_tile: u32, stage: u32) {
        let exists = k_tile < self.end;
        // SAFETY: as promised by the caller.
        unsafe {
            self.a.put(held.0, k_tile, exists, stage);
            self.b.put(held.1, k_tile, exists, stage);
        }
        cp_async_commit();
    }

    /// The thread's elements in a step of a stage.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn fragments(&self, stage: u32, step: usize) -> <C::Product as Product>::Fragments {
        C::Product::load(self.a.stage(stage), self.b.stage(stage), step, self.thread)
    }
}

/// What a thread holds of k-tiles of A and of B.
type Held<C> = (
    <<C as Config>::A as Staging>::Held,
    <<C as Config>::B as Staging>::Held,
);
/// The step in which the next k-tile is put into the free stage: before the last one, which frees another stage.
struct PutStep<C>(PhantomData<C>);

impl<C: Config> PutStep<C> {
    const NTH: usize = {
        assert!(Steps::<C>::SIZE >= 2, "a k-tile has two steps or more");
        (Steps::<C>::SIZE - 1) / 2
    };
}

/// The steps of a k-tile.
type Steps<C> = <<C as Config>::Product as Product>::Steps;

/// Waits for the running thread's copies to the next stage to be multiplied. Those to the stages after it may be under
/// way.
#[inline(always)]
fn wait_for_next<St: StageCount>() {
    match St::STAGES {
        2 => cp_async_wait::<0>(),
        3 => cp_async_wait::<1>(),
        4 => cp_async_wait::<2>(),
        _ => {
            const {
                assert!(
                    St::STAGES >= 2 && St::STAGES <= 4,
                    "a ring has 2 to 4 stages"
                )
            }
        }
    }
}
