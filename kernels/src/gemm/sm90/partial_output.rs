//! Partial output: accumulators written as they are, as partials that another kernel adds, or as a C of their type, where
//! they may be added to what is there.

use core::marker::PhantomData;

use cutlet_device::sm90::WarpgroupThreads;
use cutlet_device::warpgroup::WarpgroupThread;
use cutlet_device::{DeviceData, GlobalMut, ReduceAdd, uniform};
use cutlet_layout_core::{
    ColMajor, FragmentLayout, Layout, RowMajor, StaticLayout, Strided, Tensor, Tv, each, tiles,
};

use super::config::{Acc, AtomFragment, Config};
use crate::gemm::args::OutputArgs;
use crate::gemm::config::TileShape;
use crate::gemm::epilogue::Epilogue;
use cutlet_device::tile::Major;

/// Where partial output is written: where C, or the workspace, would be.
#[inline(always)]
pub(super) fn partials_of<T: DeviceData, Acc: DeviceData>(c: GlobalMut<T>) -> GlobalMut<Acc> {
    GlobalMut::from_ptr(c.as_ptr().cast())
}

/// Which accumulators a consumer's thread writes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    /// Where the tile begins in the partial output, in units of a warp's rows and of an epilogue subtile's columns.
    pub tile: (u32, u32),
    /// Which M atom of the tile.
    pub atom: (u32, u32),
    /// The thread.
    pub thread: WarpgroupThread,
}

/// Writes what the epilogue makes, without old elements, of the accumulators of an M atom.
///
/// # Safety
/// The partial output must have their place, and no other thread may write it, unless it writes the same values.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn write_partials<C: Config>(
    accumulators: &mut AtomFragment<C>,
    epilogue: impl Epilogue<Acc = Acc<C>>,
    to: GlobalMut<Acc<C>>,
    output: &OutputArgs,
    place: Place,
) {
    let OutputArgs {
        partial_extent,
        partial,
        ..
    } = *output;
    let (to, ld) = (ReduceAdd::to_if(partial.adds(), to), partial.ld());
    // SAFETY: as promised by the caller.
    unsafe {
        if C::MajorC::IS_K_MAJOR {
            // A thread has pairs of neighbours of a row.
            let to = Tensor::new(to, RowMajor::new(partial_extent, ld));
            write_to::<C, 1, 2>(accumulators, epilogue, to, place);
        } else {
            let to = Tensor::new(to, ColMajor::new(partial_extent, ld));
            write_to::<C, 0, 1>(accumulators, epilogue, to, place);
        }
    }
}

/// Writes them to a matrix, `WIDTH` at a time.
///
/// It is a loop at run time over epilogue subtiles: it is used less than the code around it, and unrolled it would be
/// up to a third of a kernel. Registers have no index at run time, so each turn writes the first ones and then moves
/// the rest up.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn write_to<C: Config, const ORDER: usize, const WIDTH: usize>(
    accumulators: &mut AtomFragment<C>,
    epilogue: impl Epilogue<Acc = Acc<C>>,
    to: Tensor<ReduceAdd<Acc<C>>, Strided<ORDER>>,
    place: Place,
) {
    let rows = to
        .local_tile::<C::UnitC>(place.tile)
        .local_tile::<C::AtomC>(place.atom);
    let [_, inside] = tiles::<C::SubtileC>([64, rows.extent()[1] - rows.origin()[1]]);
    // One lane answers for all, so that the compiler knows no bound of the loop, and unrolls nothing.
    for subtile in 0..uniform(inside.min(const { (C::Tile::N / C::EPI_N) as u32 })) {
        let places = rows
            .local_tile::<C::SubtileC>((0u32, subtile))
            .partition::<Tv<WarpgroupThreads, SubtileValues<C>, WIDTH>>(place.thread);
        let at = |v| places.bound().coordinate(v);
        each::<SubtileValues<C>>(|v| {
            accumulators.set(v, epilogue.apply(accumulators.get(v), None, at(v)));
        });
        places.store_with(|v| accumulators.get(v));
        *accumulators = accumulators.moved_up(SubtileValues::<C>::SIZE);
    }
}

/// Which accumulators of a subtile are a thread's, counted from its first: pairs of two rows, in turns. They are never
/// in a fragment of their own.
#[derive(Clone, Copy)]
struct SubtileValues<C>(PhantomData<C>);

impl<C: Config> StaticLayout for SubtileValues<C> {
    const LAYOUT: Layout = Layout::concat(&[
        Layout::static_basis_mode(2, 1, 1),
        Layout::static_basis_mode(2, 8, 0),
        Layout::static_basis_mode((C::EPI_N / 8) as i64, 8, 1),
    ]);
}

impl<C: Config> FragmentLayout for SubtileValues<C> {
    type Storage = [(); 64];
}
