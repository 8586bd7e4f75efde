//! The end of a tile: a consumer divides its output by the sums of the weights, and stores it.

use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};
use cutlet_device::{Float16, GlobalMut, MmaInstruction, transpose_quad};
use cutlet_layout_core::{Fragment, L, RowMajor, Tensor, ThreadValue, TileShape, each};

use super::config::{CONSUMERS, Config, ROWS};
use crate::attention::args::{Args, OutputArgs};
use crate::attention::scheduler::{Sequence, WorkTile};
use crate::attention::softmax::{PerRow, normalised};

pub(super) use crate::attention::rows::Rows;

/// A thread's part of a consumer's output.
pub(super) type Output<C> = Fragment<f32, <<C as Config>::Output as MmaInstruction>::Values>;

impl Rows {
    /// The rows of a consumer in a work tile.
    #[inline(always)]
    pub(super) fn of(args: &Args, work: u32, consumer: WarpgroupIdx) -> Self {
        let tile = WorkTile::of(&args.tiles, work);
        let block = tile.of_queries * CONSUMERS as u32 + consumer.own(1, 0);
        Self {
            sequence: Sequence::of(&args.sequences, tile.sequence),
            tile,
            first_query: block as i32 * ROWS as i32,
        }
    }
}

/// Multiplies the rows by their factors, and stores them. The four threads of a row exchange their values, so that each
/// one stores eight neighbours an access.
///
/// # Safety
/// The output must have these rows.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) unsafe fn store<C: Config>(
    output: GlobalMut<C::Element>,
    args: &OutputArgs,
    rows: Rows,
    (values, factors): (&Output<C>, PerRow),
    thread: WarpgroupThread,
) {
    let values = normalised(values, factors);
    let extent = [rows.sequence.queries, args.features];
    // SAFETY: as promised by the caller.
    let to = unsafe {
        let to = output.offset(rows.offset(args.strides));
        Tensor::new(to, RowMajor::new(extent, args.strides[1]))
    };
    to.local_tile::<<C::Queries as TileShape>::Extents>((rows.first_query as u32 / ROWS as u32, 0))
        .partition::<C::Stores>(thread)
        .store(&neighbours::<C>(&values));
}

/// A thread's runs of eight neighbours of a row, as [`Config::Stores`] has them. The threads of a quad have pairs of each
/// run: of four runs, a thread gives its pairs of three for those of its own.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn neighbours<C: Config>(
    values: &Output<C>,
) -> Fragment<C::Element, <C::Stores as ThreadValue>::Val> {
    let mut runs = Fragment::filled(C::Element::default());
    each::<<C::Stores as ThreadValue>::Val>(|v| {
        if v % 8 == 0 {
            // Accumulators are (pair, row, run of a quad's four, four runs), and these are (run, row, four runs).
            let first = v / 8 % 2 * 2 + v / 16 * 16;
            let pair = |run| C::Element::pack_f32([run, run + 1].map(|at| values.get(first + at)));
            let pairs = transpose_quad([pair(0), pair(4), pair(8), pair(12)]);
            let [a, b, c, d] = pairs.map(C::Element::unpack);
            let run = [a[0], a[1], b[0], b[1], c[0], c[1], d[0], d[1]];
            each::<L!(8:1)>(|at| runs.set(v + at, run[at]));
        }
    });
    runs
}
