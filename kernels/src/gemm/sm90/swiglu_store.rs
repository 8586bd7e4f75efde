//! The store of a product whose columns are interleaved gates and ups: `silu(gate) · up` goes to a C of half as many
//! columns.
//!
//! A thread has accumulators of neighbouring columns in pairs, so each gate meets its up in registers. The results of a
//! row then lie in the lanes of a quad one by one. Two exchanges bring neighbours together, as a `wgmma` of half the
//! columns would leave them, and the store of a tile of half the columns takes over.

use core::marker::PhantomData;

use cutlet_device::collective::WorkTile;
use cutlet_device::tma::{TensorMap, prefetch_tensor_map};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{lane_idx, shfl_xor};
use cutlet_layout_core::{Fragment, each};

use super::config::{AtomFragment, Config, Values};
use super::epilogue_subtiles::SubtileBuffer;
use super::kernel::{Atoms, Params, StoreRole};
use super::scaling::Unscaled;
use super::store::TileStore;
use crate::gemm::config::{Consumers, TileShape};
use crate::gemm::epilogue::{Scale, silu};
use crate::gemm::scheduler::{HalfColumns, TileScheduler};
use crate::gemm::store::Store;

/// To C, after gates have met ups: C is `silu(alpha·gate) · (alpha·up)`, and has half as many columns. `H` is the
/// configuration of the kernel with half the columns.
///
/// # Safety
/// The map of C, `c` and the output's extent are those of the C with half as many columns.
#[derive(Debug)]
pub struct ToSwiglu<H>(PhantomData<H>);

impl<C, H> StoreRole<C> for ToSwiglu<H>
where
    C: Config<Scaling = Unscaled>,
    H: Config<Out = C::Out, Scaling = Unscaled>,
{
    type Epilogue = Scale;

    #[inline(always)]
    fn prefetch_map(map_c: &TensorMap) {
        prefetch_tensor_map(map_c);
    }

    #[inline(always)]
    fn store<'a, S: TileScheduler + 'a>(
        params: &'a Params<'a, C::Out, Scale>,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> impl Store<Accumulators = Atoms<C>> + 'a {
        SwigluStore::<C, H, S>::new(params, scheduler, buffer, who)
    }
}

/// Stores the work tiles of a consumer of configuration `C` by the store of `H`, which is `C` with half the columns.
struct SwigluStore<'a, C, H: Config, S> {
    halves: TileStore<'a, H, Scale, HalfColumns<S>>,
    /// The factor of gates and ups.
    alpha: f32,
    of: PhantomData<C>,
}

impl<'a, C, H, S> SwigluStore<'a, C, H, S>
where
    C: Config<Scaling = Unscaled>,
    H: Config<Out = C::Out, Scaling = Unscaled>,
    S: TileScheduler,
{
    const CHECK: () = {
        assert!(
            C::Tile::N == 2 * H::Tile::N && C::Tile::M == H::Tile::M && C::EPI_N == H::EPI_N,
            "the tile of gates and ups is twice as wide as the tile of C, and their epilogue subtiles are alike"
        );
        assert!(
            C::STAGED_COLUMNS == H::STAGED_COLUMNS,
            "the buffers of epilogue subtiles are alike"
        );
    };

    /// The store of a consumer.
    #[inline(always)]
    pub fn new(
        params: &Params<'a, C::Out, Scale>,
        scheduler: S,
        buffer: SubtileBuffer<C>,
        who: (WarpgroupIdx, WarpgroupThread),
    ) -> Self {
        const { Self::CHECK };
        let (scheduler, buffer) = (HalfColumns(scheduler), buffer.as_half());
        let of_halves = Params {
            epilogue: Scale::ONE,
            ..*params
        };
        Self {
            halves: TileStore::new(of_halves, scheduler, buffer, who),
            alpha: params.epilogue.alpha,
            of: PhantomData,
        }
    }

    /// The results of an M atom's accumulators.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn results(&self, accumulators: &AtomFragment<C>) -> AtomFragment<H> {
        let (is_odd, is_upper) = (lane_idx().has_bit(0), lane_idx().has_bit(1));
        let result = |v: usize| {
            let (gate, up) = (accumulators.get(v), accumulators.get(v + 1));
            silu(self.alpha * gate) * (self.alpha * up)
        };
        let mut results = Fragment::filled(0.0);
        each::<Values<H>>(|v| {
            // A pair of a row, in a group of 8 columns.
            let (group, row) = (v / 4, v % 4);
            if row % 2 != 0 {
                return;
            }
            // Lane `q` of a quad has columns `q` and `4 + q` of the group. Lanes 0 and 1 keep the lower columns.
            let (lower, upper) = (result(8 * group + row), result(8 * group + 4 + row));
            let (kept, sent) = swapped_if(is_upper, lower, upper);
            let received = shfl_xor(sent, 2);
            // Lane 0 now has columns 0 and 2, lane 1 has 1 and 3, and so on. An even lane keeps the first one.
            let (first, second) = swapped_if(is_upper, kept, received);
            let (kept, sent) = swapped_if(is_odd, first, second);
            let received = shfl_xor(sent, 1);
            let (first, second) = swapped_if(is_odd, kept, received);
            results.set(v, first);
            results.set(v + 1, second);
        });
        results
    }
}

/// The two numbers, swapped if `swaps` is true.
#[inline(always)]
fn swapped_if(swaps: bool, first: f32, second: f32) -> (f32, f32) {
    match swaps {
        false => (first, second),
        true => (second, first),
    }
}

impl<C, H, S> Store for SwigluStore<'_, C, H, S>
where
    C: Config<Scaling = Unscaled>,
    H: Config<Out = C::Out, Scaling = Unscaled>,
    S: TileScheduler,
{
    type Accumulators = <C::Consumers as Consumers>::Atoms<AtomFragment<C>>;
    type Prepared = <TileStore<'static, H, Scale, HalfColumns<S>> as Store>::Prepared;

    #[inline(always)]
    fn prepare(&self, work: WorkTile) -> Self::Prepared {
        self.halves.prepare(work)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn store(
        &self,
        work: WorkTile,
        mut accumulators: Self::Accumulators,
        prepared: Self::Prepared,
    ) {
        for (nth, accumulators) in accumulators.as_mut().iter().enumerate() {
            let mut results = self.results(accumulators);
            // SAFETY: as promised by the caller.
            unsafe { self.halves.store_atom(work, nth, &mut results, prepared) };
        }
    }

    #[inline(always)]
    fn drain(self) {
        self.halves.drain();
    }
}
