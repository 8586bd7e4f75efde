//! Splits: equal parts of rows, each of which a block has, where rows are few and long.

use cutlet_device::DeviceData;
use cutlet_host::Stream;

use super::WIDEST;
use crate::Tensor;
use crate::into_tensor::one_stride;

/// Elements of a split, at least: about what a block holds at a time.
const LEAST_COLUMNS: usize = 4000;
/// With fewer splits, one launch with a block for each row is faster.
const LEAST: usize = 4;
/// The most splits of a row: a warp combines them.
const MOST: usize = 64;

/// Into how many splits, at most `most`, blocks divide each row of a matrix, if rows are long, and too few for a block on
/// each multiprocessor.
pub fn splits_of<T: DeviceData>(stream: &Stream, x: &Tensor<'_, T>, most: usize) -> Option<usize> {
    // Rows of one mode, whose elements are contiguous.
    let is_matrix = x.layout.rank() == 2 && x.layout.mode(0).num_leaves() == 1;
    if !is_matrix || one_stride(&x.layout, 1).is_none_or(|(_, stride)| stride != 1) {
        return None;
    }
    let [rows, columns] = [0, 1].map(|mode| x.layout.mode(mode).size() as usize);
    // A multiprocessor runs several blocks at the same time.
    let at_a_time = MOST.max(stream.device().multiprocessors() as usize);
    let most = MOST
        .min(most)
        .min(at_a_time / rows.max(1))
        .min(columns / LEAST_COLUMNS);
    // Splits begin at aligned vectors.
    let divides = |splits: &usize| columns.is_multiple_of(splits * WIDEST / size_of::<T>());
    (LEAST..=most).rev().find(divides)
}
