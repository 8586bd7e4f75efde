//! The store of a C of e4m3: 128 neighbours of a row have a scale together, as A's do where C is the next product's A.
//!
//! A tile has 128 columns, so that its rows are whole blocks. The four lanes that share a row find its largest magnitude
//! by two exchanges.

use core::marker::PhantomData;

use cutlet_device::collective::WorkTile;
use cutlet_device::fp8::F8E4M3;
use cutlet_device::sm90::WarpgroupThreads;
use cutlet_device::tma::TensorMap;
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{DeviceData, GlobalMut, LogicalWarp};
use cutlet_layout_core::{Bound, Coord, RowMajor, Tensor, Tv, each};

use super::config::{AtomFragment, Config, Values};
use super::epilogue_subtiles::SubtileBuffer;
use super::kernel::{Atoms, Params, StoreRole};
use super::mainloop::m_atom;
use super::scaling::Scaling;
use crate::gemm::config::{Consumers, TileShape};
use crate::gemm::epilogue::Epilogue;
use crate::gemm::scheduler::TileScheduler;
use crate::gemm::store::Store;
use crate::quantization::{BLOCK, scale_of};
use crate::rows::narrowed;

/// A C of e4m3 and its scales, of a product that is multiplied by `alpha`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct QuantizedC {
    /// The elements.
    pub elements: GlobalMut<F8E4M3>,
    /// A scale for each block of a row.
    pub scales: GlobalMut<f32>,
    /// Elements from one row to the next.
    pub ld: i64,
    /// From the scales of one row to those of the next, and from one scale of a row to the next.
    pub strides: [i64; 2],
    /// The factor of the product.
    pub alpha: f32,
    /// Not 0 if scales are powers of two.
    pub powers: u32,
}

/// What is quantised.
impl Epilogue for QuantizedC {
    type Acc = f32;
    type Row = ();
    type Columns = ();

    #[inline(always)]
    fn apply(&self, acc: f32, _: Option<f32>, _: Coord) -> f32 {
        self.alpha * acc
    }
}

/// To a [`QuantizedC`]. `c` of the kernel is not used.
///
/// # Safety
/// The output's extent is that of the quantised C, whose rows begin at multiples of two elements and have an even number
/// of them. There is a scale for each block of a row. There are neither splits, nor partial output, nor groups.
#[derive(Debug)]
pub struct ToQuantized;

impl<C> StoreRole<C> for ToQuantized
where
    C: Config<Scaling: Scaling<Acc = f32>>,
{
    type Epilogue = QuantizedC;

    #[inline(always)]
    fn prefetch_map(_: &TensorMap) {}

    #[inline(always)]
    fn store<'a, S: TileScheduler + 'a>(
        params: &'a Params<'a, C::Out, QuantizedC>,
        scheduler: S,
        _: SubtileBuffer<C>,
        (consumer, thread): (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a {
        QuantizedStore::<C, S> {
            to: params.epilogue,
            extent: params.args.output.extent,
            scheduler,
            consumer,
            thread,
            of: PhantomData,
        }
    }
}

/// Stores the work tiles of a consumer as e4m3.
struct QuantizedStore<C, S> {
    to: QuantizedC,
    extent: Coord,
    scheduler: S,
    consumer: WarpgroupIdx,
    thread: WarpgroupThread,
    of: PhantomData<C>,
}

/// Which accumulators of an M atom a thread has: pairs of neighbours, in two rows by turns.
type Pairs<C> = Tv<WarpgroupThreads, Values<C>, 2>;

impl<C: Config<Scaling: Scaling<Acc = f32>>, S: TileScheduler> QuantizedStore<C, S> {
    /// Which of a thread's two rows its value `v` is in.
    #[inline(always)]
    fn row_of(v: usize) -> usize {
        v / 2 % 2
    }

    /// Multiplies an M atom's accumulators by alpha, and returns the largest magnitude of each of the thread's rows.
    #[inline(always)]
    fn amax(&self, accumulators: &mut AtomFragment<C>) -> [f32; 2] {
        let mut largest = [0.0f32; 2];
        each::<Values<C>>(|v| {
            let value = self.to.alpha * accumulators.get(v);
            accumulators.set(v, value);
            let of_row = largest[Self::row_of(v)];
            largest[Self::row_of(v)] = of_row.max(value.abs());
        });
        [
            LogicalWarp::<4>::max(largest[0]),
            LogicalWarp::<4>::max(largest[1]),
        ]
    }
}

impl<C: Config<Scaling: Scaling<Acc = f32>>, S: TileScheduler> Store for QuantizedStore<C, S> {
    type Accumulators = <C::Consumers as Consumers>::Atoms<AtomFragment<C>>;
    type Prepared = ();

    #[inline(always)]
    fn prepare(&self, _: WorkTile) {}

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store(&self, work: WorkTile, mut accumulators: Self::Accumulators, (): ()) {
        const { assert!(C::Tile::N == BLOCK, "a tile's rows are blocks of C") }
        let to = self.to;
        let [to_next_row, to_next_block] = to.strides;
        // SAFETY: the launcher promises that C is there.
        let c = unsafe { Tensor::new(to.elements, RowMajor::new(self.extent, to.ld)) };
        let tile = c.local_tile::<C::UnitC>(self.scheduler.begin(work));
        for (nth, accumulators) in accumulators.as_mut().iter_mut().enumerate() {
            let largest = self.amax(accumulators);
            let (first, second) = (
                scale_of(largest[0], to.powers),
                scale_of(largest[1], to.powers),
            );
            let inverse = [first[1], second[1]];
            let mine = tile
                .local_tile::<C::AtomC>((m_atom::<C>(self.consumer, nth), 0u32))
                .partition::<Pairs<C>>(self.thread);
            let scaled = accumulators.map(|v, it| it * inverse[Self::row_of(v)]);
            mine.store(&narrowed::<F8E4M3, _>(&scaled));
            let [_, begin] = tile.origin();
            let store_scale = |v: usize, scale: f32| {
                let [row, column] = mine.bound().coordinate(v);
                if column == begin && mine.bound().holds(v) {
                    let block = i64::from(work.column);
                    let place = i64::from(row) * to_next_row + block * to_next_block;
                    // SAFETY: the launcher promises a scale for each block.
                    unsafe { to.scales.store(place, scale) };
                }
            };
            store_scale(0, first[0]);
            store_scale(2, second[0]);
        }
    }

    #[inline(always)]
    fn drain(self) {}
}
