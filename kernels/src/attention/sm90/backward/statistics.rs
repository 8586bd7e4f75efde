//! What the backward pass needs to know of each query: the logarithm of its sum, and the sum of `dO ∘ O`.

use core::f32::consts::LOG2_E;

use cutlet_device::warpgroup::warpgroup_thread_idx;
use cutlet_device::{Float, Global, LogicalWarp, block_idx, fma};
use cutlet_layout_core::{RowMajor, Tensor, TileShape};

use super::args::{StatisticsArgs, Strides};
use super::config::Config;
use crate::attention::scheduler::Sequence;

/// Threads of a block.
pub const THREADS: u32 = 128;
/// Rows that the threads of a block read at a time.
const ROWS: usize = 16;

/// Writes the statistics of a block of queries: for each, the logarithm to the base 2 of the sum of `e^score`, and then,
/// for each, the sum of `dO ∘ O`. The logarithm is infinite for queries without keys and for those that there are not,
/// so that their weights are 0.
///
/// # Safety
/// The tensors must be those of the arguments. There must be statistics of each block of the grid.
#[inline(always)]
pub unsafe fn statistics<C: Config>(
    output: Global<C::Element>,
    gradient: Global<C::Element>,
    args: StatisticsArgs,
) {
    let thread = warpgroup_thread_idx();
    let block = args.blocks.of_threads(block_idx().x);
    let sequence = Sequence::of(&args.sequences, block.sequence);
    let start = |strides: Strides| sequence.offset(sequence.first_query, block.head, strides);
    let rows = |from: Global<C::Element>, strides: Strides| {
        let rows = RowMajor::new([sequence.queries, args.features], strides[1]);
        // SAFETY: as promised by the caller.
        unsafe { Tensor::new(from.offset(start(strides)), rows) }
            .local_tile::<<C::Block as TileShape>::Extents>((block.of_queries, 0u32))
            .partition::<C::OfStatistics>(thread)
    };
    let output = rows(output, args.output);
    let gradient = rows(gradient, args.output_gradient);
    let (first_query, first_feature) = (output.coordinate(0)[0], output.coordinate(0)[1]);
    let (output, gradient) = (
        output.load(C::Element::default()),
        gradient.load(C::Element::default()),
    );
    let (logarithms, of_query) = (
        args.log_sum_exp.offset(start(args.log_sum_exp_strides)),
        args.log_sum_exp_strides[1],
    );
    let to = args
        .statistics
        .offset(i64::from(block.nth) * 2 * C::QUERIES as i64);
    let place = Tensor::identity([C::QUERIES as i32, C::FEATURES as i32])
        .partition::<C::OfStatistics>(thread)
        .coordinate(0)[0];
    let rows = C::QUERIES / ROWS;
    for row in 0..rows {
        let mut sum = 0.0;
        for v in row * C::FEATURES / 8..(row + 1) * C::FEATURES / 8 {
            sum = fma(output.get(v).to_f32(), gradient.get(v).to_f32(), sum);
        }
        let sum = LogicalWarp::<8>::sum::<f32>(sum);
        let below = (row * ROWS) as i32;
        let query = first_query + below;
        // SAFETY: as promised by the caller.
        unsafe {
            let logarithm =
                logarithms.load_if(i64::from(query) * of_query, query < sequence.queries);
            if first_feature == 0 {
                to.store(
                    i64::from(place + below),
                    shift(logarithm, query < sequence.queries),
                );
                to.store(i64::from(place + below) + C::QUERIES as i64, sum);
            }
        }
    }
}

/// What is subtracted from a query's scores, for powers of 2.
#[inline(always)]
fn shift(logarithm: f32, is_there: bool) -> f32 {
    match is_there && logarithm != f32::NEG_INFINITY {
        true => logarithm * LOG2_E,
        false => f32::INFINITY,
    }
}
