//! The store: accumulators go through shared memory, so that each thread gets neighbours in a row of C, whichever
//! accumulators the multiplication left it. Then the epilogue is applied, and C is written.

use core::marker::PhantomData;

use cutlet_device::{GlobalMut, Shared, SharedStorage, ThreadIdx, sync_warp, uniform};
use cutlet_layout_core::{
    AccessWidth, AnyStrides, Coord, Fixed, Fragment, FragmentLayout, Layout, RowMajor,
    StaticLayout, Tensor, ThreadValue, Width,
};

use super::args::MultistageArgs;
use super::config::{Acc, Accumulators, Config, Product};
use crate::gemm::config::TileShape;
use crate::gemm::epilogue::{Accumulator, ElementC, Epilogue, apply_fours};

/// Which split of which tile a thread stores.
#[derive(Clone, Copy)]
pub(super) struct Place<P> {
    /// The tile's row.
    pub row: u32,
    /// The tile's column.
    pub column: u32,
    /// The split.
    pub split: u32,
    /// The thread.
    pub thread: ThreadIdx<P>,
}

/// Elements of padding after a row in shared memory: rows begin at different banks.
const PADDING: usize = 8;
/// Neighbours in a row that a thread stores together.
const FOUR: usize = 4;
/// Accesses to such neighbours.
pub(super) type Fours<P> = <<P as Product>::Acc as Accumulator>::Fours;
/// Rows of which a thread stores such neighbours in one pass.
const ROWS: usize = 4;

/// The warps' epilogue subtiles in shared memory.
pub struct SubtileStorage<P: Product>(Shared<P::Acc>);

impl<P: Product> SharedStorage for SubtileStorage<P> {
    const BYTES: u32 = {
        let [rows, columns] = P::SUBTILE;
        (P::WARPS[0] * P::WARPS[1] * rows * (columns + PADDING) * size_of::<P::Acc>()) as u32
    };
    const ALIGN: u32 = 16;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self(Shared::from_address(address))
    }
}

/// Applies the epilogue to the thread's accumulators and writes C, of `extent` = (rows, columns), or writes the
/// partials of a split.
///
/// # Safety
/// There must be memory for them. No thread may use shared memory for anything else.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
#[expect(clippy::too_many_arguments, reason = "they are a kernel's")]
pub(super) unsafe fn store<C, D, Epi>(
    accumulators: Accumulators<C::Product>,
    c: GlobalMut<D>,
    partials: GlobalMut<Acc<C>>,
    args: &MultistageArgs,
    extent: Coord,
    epilogue: Epi,
    storage: SubtileStorage<C::Product>,
    place: Place<C::Product>,
) where
    C: Config,
    D: ElementC<Acc = Acc<C>>,
    Epi: Epilogue<Acc = Acc<C>>,
{
    let Place {
        row,
        column,
        split,
        thread,
    } = place;
    // SAFETY: the launcher promises the partials or C. Rows of partials have a multiple of four elements.
    let (partials, c) = unsafe {
        let partials = partials.offset(i64::from(split) * args.split_stride);
        (
            Tensor::new(partials, RowMajor::new(extent, args.partial_ld)),
            (
                Tensor::new(c, RowMajor::new(extent, args.strides_c[0])),
                Tensor::new(c, AnyStrides::new(extent, args.strides_c)),
            ),
        )
    };
    let tile = (row, column);
    let partials = partials.local_tile::<TileOfC<C>>(tile);
    let (c_in_fours, c) = (
        c.0.local_tile::<TileOfC<C>>(tile),
        c.1.local_tile::<TileOfC<C>>(tile),
    );
    // SAFETY: as promised by the caller.
    unsafe {
        each_pass::<C::Product>(accumulators, storage, thread, |rows, values| {
            if args.partial_ld > 0 {
                let to = partials.local_tile::<RowsOfPass<C>>(rows);
                to.partition_partial::<ToGlobal<C::Product, Fours<C::Product>>>(thread)
                    .store(&values);
            } else if args.in_fours != 0 {
                let to = c_in_fours.local_tile::<RowsOfPass<C>>(rows);
                let to = to.partition_partial::<ToGlobal<C::Product, Fours<C::Product>>>(thread);
                let new = apply_fours(epilogue, &values, |v| to.bound().coordinate(v));
                to.store(&new.map(|_, value| D::narrow(value)));
            } else {
                let to = c.local_tile::<RowsOfPass<C>>(rows);
                let to = to.partition_partial::<ToGlobal<C::Product, Width<1>>>(thread);
                let at = |v| to.bound().coordinate(v);
                if args.is_identity != 0 {
                    to.store(&values.map(|_, acc| D::narrow(acc)));
                } else {
                    to.store(&values.map(|v, acc| D::narrow(epilogue.apply(acc, None, at(v)))));
                }
            }
        });
    }
}

/// Calls `store(rows, values)` for each pass: with the tile of C's rows that it has, in units of [`RowsOfPass`], and
/// the thread's accumulators of them, which are neighbours in rows.
///
/// # Safety
/// The block's shared memory must have room for a subtile of each warp, and no thread may use it for anything else.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn each_pass<P: Product>(
    accumulators: Accumulators<P>,
    SubtileStorage(subtiles): SubtileStorage<P>,
    thread: ThreadIdx<P>,
    store: impl Fn((u32, u32), Fragment<P::Acc, PassValues<P>>),
) {
    let mut accumulators = P::by_rows(&accumulators);
    // Loops at run time: unrolled, they would be most of the kernel. One lane answers for all, so that the compiler
    // does not know how often they run.
    for subtile in 0..uniform(P::SUBTILES as u32) {
        // SAFETY: as promised by the caller.
        let to = unsafe { Tensor::new(subtiles, Fixed::<Subtiles<P>>::new()) };
        to.partition::<ToShared<P>>(thread)
            .store_with(|v| accumulators.get(v));
        accumulators = accumulators.moved_up(ToShared::<P>::VALUES);
        sync_warp();
        for pass in 0..uniform(const { Pass::<P>::COUNT as u32 }) {
            let first = i64::from(pass) * const { Pass::<P>::ELEMENTS as i64 };
            // SAFETY: as above. The last pass ends with the subtile.
            let from =
                unsafe { Tensor::new(subtiles.offset(first), Fixed::<PassOfSubtiles<P>>::new()) };
            let values = from
                .partition_partial::<FromShared<P>>(thread)
                .load(P::Acc::ZERO);
            let rows = subtile * const { Pass::<P>::COUNT as u32 } + pass;
            store((rows, 0u32), values);
        }
        sync_warp();
    }
}

/// The tile of C.
#[derive(Clone, Copy)]
pub(super) struct TileOfC<C>(PhantomData<C>);

impl<C: Config> StaticLayout for TileOfC<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(C::Tile::M as i64, 1, 0),
        Layout::static_basis_mode(C::Tile::N as i64, 1, 1),
    ]);
}

/// A pass: the rows of an epilogue subtile that a warp stores at a time.
struct Pass<P>(PhantomData<P>);

impl<P: Product> Pass<P> {
    /// Rows that the lanes' first neighbours have.
    const STEP: usize = 32 * FOUR / P::SUBTILE[1];
    /// Rows of a pass.
    const ROWS: usize = ROWS * Self::STEP;
    /// Passes of a subtile.
    const COUNT: usize = {
        assert!(
            P::SUBTILE[0].is_multiple_of(Self::ROWS) && (32 * FOUR).is_multiple_of(P::SUBTILE[1]),
            "a warp stores whole rows of an epilogue subtile at a time: at most 128 columns, and 512 elements or more"
        );
        P::SUBTILE[0] / Self::ROWS
    };
    /// Elements from a pass to the next in shared memory.
    const ELEMENTS: usize = Self::ROWS * (P::SUBTILE[1] + PADDING);
}

/// The epilogue subtiles of all warps in shared memory, below one another.
#[derive(Clone, Copy)]
struct Subtiles<P>(PhantomData<P>);

impl<P: Product> StaticLayout for Subtiles<P> {
    const LAYOUT: Layout = subtiles::<P>(P::SUBTILE[0] * P::WARPS[0] * P::WARPS[1]);
}

/// The same from a pass on.
#[derive(Clone, Copy)]
struct PassOfSubtiles<P>(PhantomData<P>);

impl<P: Product> StaticLayout for PassOfSubtiles<P> {
    const LAYOUT: Layout =
        subtiles::<P>(P::SUBTILE[0] * (P::WARPS[0] * P::WARPS[1] - 1) + Pass::<P>::ROWS);
}

const fn subtiles<P: Product>(rows: usize) -> Layout {
    let columns = P::SUBTILE[1];
    Layout::concat(&[
        Layout::static_mode(rows as i64, (columns + PADDING) as i64),
        Layout::static_mode(columns as i64, 1),
    ])
}

/// Thread-value layout of the warps' subtiles in shared memory, by accumulators.
#[derive(Clone, Copy)]
struct ToShared<P>(PhantomData<P>);

impl<P: Product> ToShared<P> {
    /// Accumulators of a subtile.
    const VALUES: usize = <P::Subtile as ThreadValue>::Val::SIZE;
}

impl<P: Product> ThreadValue for ToShared<P> {
    type Thr = ToSharedThreads<P>;
    type Val = <P::Subtile as ThreadValue>::Val;
    type Width = <P::Subtile as ThreadValue>::Width;
}

#[derive(Clone, Copy)]
struct ToSharedThreads<P>(PhantomData<P>);

impl<P: Product> StaticLayout for ToSharedThreads<P> {
    const LAYOUT: Layout =
        Layout::concat(&[<P::Subtile as ThreadValue>::Thr::LAYOUT, warps_below::<P>()]);
}

/// The warps' subtiles, below one another.
const fn warps_below<P: Product>() -> Layout {
    Layout::static_basis_mode((P::WARPS[0] * P::WARPS[1]) as i64, P::SUBTILE[0] as i64, 0)
}

/// The lanes of a warp over the rows of a pass.
const fn lanes<P: Product>() -> Layout {
    Layout::concat(&[
        Layout::static_basis_mode((P::SUBTILE[1] / FOUR) as i64, FOUR as i64, 1),
        Layout::static_basis_mode(Pass::<P>::STEP as i64, 1, 0),
    ])
}

/// Thread-value layout of a pass in shared memory: four neighbours in each of a thread's rows.
#[derive(Clone, Copy)]
struct FromShared<P>(PhantomData<P>);

impl<P: Product> ThreadValue for FromShared<P> {
    type Thr = FromSharedThreads<P>;
    type Val = PassValues<P>;
    type Width = Fours<P>;
}

#[derive(Clone, Copy)]
struct FromSharedThreads<P>(PhantomData<P>);

impl<P: Product> StaticLayout for FromSharedThreads<P> {
    const LAYOUT: Layout = Layout::concat(&[lanes::<P>(), warps_below::<P>()]);
}

/// A thread's values of a pass.
#[derive(Clone, Copy)]
pub struct PassValues<P>(PhantomData<P>);

impl<P: Product> StaticLayout for PassValues<P> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(FOUR as i64, 1, 1),
        Layout::static_basis_mode(ROWS as i64, Pass::<P>::STEP as i64, 0),
    ]);
}

impl<P: Product> FragmentLayout for PassValues<P> {
    type Storage = [[(); FOUR]; ROWS];
}

/// The rows of a pass over all of the tile's columns.
#[derive(Clone, Copy)]
pub(super) struct RowsOfPass<C>(PhantomData<C>);

impl<C: Config> StaticLayout for RowsOfPass<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(Pass::<C::Product>::ROWS as i64, 1, 0),
        Layout::static_basis_mode(C::Tile::N as i64, 1, 1),
    ]);
}

/// Thread-value layout of a pass in C, where each warp has a rectangle.
#[derive(Clone, Copy)]
pub(super) struct ToGlobal<P, W>(PhantomData<(P, W)>);

impl<P: Product, W: AccessWidth> ThreadValue for ToGlobal<P, W> {
    type Thr = ToGlobalThreads<P>;
    type Val = PassValues<P>;
    type Width = W;
}

#[derive(Clone, Copy)]
pub(super) struct ToGlobalThreads<P>(PhantomData<P>);

impl<P: Product> StaticLayout for ToGlobalThreads<P> {
    const LAYOUT: Layout = Layout::concat(&[
        lanes::<P>(),
        Layout::static_basis_mode(P::WARPS[1] as i64, P::SUBTILE[1] as i64, 1),
        Layout::static_basis_mode(P::WARPS[0] as i64, (P::SUBTILE[0] * P::SUBTILES) as i64, 0),
    ]);
}
