//! The prefetch: which parts of the operands a launch has the L2 cache fetch while the kernel before it ends, before
//! the launch may read them.

use cutlet_device::DeviceData;
use cutlet_device::collective::Prefetch;

use crate::Matrix;
use crate::gemm::choice::cost::{Candidate, CostInput};
use crate::matrix::pointer;

/// Bytes of A and B to fetch if several blocks read each tile.
const SHARED: usize = 3 << 19;
/// Bytes to fetch if tiles have splits as well: then more k-tiles are read at a time.
const SPLIT: usize = 4 << 20;
/// Bytes to fetch if each tile of A, or of B, is read once. Then memory is the bottleneck, and the cache fetches longer
/// runs of a row than a k-tile has.
const ONCE: usize = 8 << 20;
/// Bytes to fetch if, in addition, a block has one tile and is a cluster of its own.
const ALONE: usize = 24 << 20;
/// K-tiles of a block to fetch if tiles are read once, plus one for every eight that the block has.
const FIRST_K_TILES: usize = 3;
/// The most k-tiles of a block to fetch. With more, a launch takes longer: a third longer at 1×8192×1024.
const MOST_K_TILES: usize = 12;

/// What a candidate has fetched of A and B. Its clusters visit groups of `group` rows of clusters.
pub fn prefetch<T: DeviceData>(
    operands: [Matrix<'_, T>; 2],
    input: &CostInput,
    candidate: &Candidate,
    group: u32,
) -> [Prefetch; 2] {
    let rows = first_rows(input, candidate, group);
    let bytes = bytes_of_row(rows, input, candidate);
    [0, 1].map(|operand| {
        let matrix = &operands[operand];
        let (run, count) = matrix.extents.run_and_count();
        // Only rows along k are fetched. The zeros that replace an operand without elements have other extents.
        let is_whole = [count, run] == [[input.m, input.n][operand], input.k];
        if !candidate.instance.k_major[operand] || !is_whole {
            return Prefetch::NOTHING;
        }
        Prefetch::new(
            pointer(matrix.view),
            (matrix.ld() * size_of::<T>()) as i64,
            [rows[operand], bytes],
            candidate.blocks,
        )
    })
}

/// Rows of A, and rows of B along k, that the first tiles of all blocks are made of.
fn first_rows(input: &CostInput, candidate: &Candidate, group: u32) -> [usize; 2] {
    let at_once = (candidate.blocks / candidate.instance.blocks_of_cluster()) as usize;
    let [rows, columns] = input.clusters(candidate.instance);
    let most_columns = at_once.div_ceil(group as usize);
    let columns = columns.min(most_columns);
    // If C is narrower, blocks begin with rows of several groups.
    let rows = rows.min(at_once.div_ceil(columns));
    let [rows_of_cluster, columns_of_cluster] = candidate.instance.cluster_tile();
    [
        input.m.min(rows * rows_of_cluster),
        input.n.min(columns * columns_of_cluster),
    ]
}

/// Bytes to fetch of each row of A and B. `rows` are the rows to fetch.
fn bytes_of_row(rows: [usize; 2], input: &CostInput, candidate: &Candidate) -> usize {
    let instance = candidate.instance;
    // Splits of a tile share its k-tiles.
    let sharing = candidate.splits as usize;
    let k_tile = instance.tile_k as usize * input.bytes_ab * sharing;
    let k_tiles_in = |bytes: usize| bytes / (k_tile * (rows[0] + rows[1]));
    let clusters = input.clusters(instance);
    let tiles_of_block = candidate.work_tiles.div_ceil(candidate.blocks as usize);
    let is_alone = instance.blocks_of_cluster() == 1 && tiles_of_block == 1;
    let k_tiles = match clusters.contains(&1) {
        false if candidate.splits > 1 => k_tiles_in(SPLIT),
        false => k_tiles_in(SHARED),
        true => {
            let all = input.k_tiles(instance).div_ceil(sharing) * tiles_of_block;
            let in_time = k_tiles_in_time(all, candidate.blocks, input.device.multiprocessors);
            k_tiles_in(if is_alone { ALONE } else { ONCE }).min(in_time)
        }
    };
    (k_tiles * k_tile).min(input.k * input.bytes_ab)
}

/// How many of a block's `all` k-tiles, of tiles that are read once, are fetched before it may load them.
fn k_tiles_in_time(all: usize, blocks: u32, multiprocessors: u32) -> usize {
    let most = MOST_K_TILES.min(FIRST_K_TILES + all / 8);
    // On multiprocessors without a block of this launch, the next launch begins while this one still loads.
    match 8 * blocks < 7 * multiprocessors {
        true => most.div_ceil(2),
        false => most,
    }
}

#[cfg(test)]
mod tests {
    use cutlet_kernels::gemm::args::raster;
    use cutlet_kernels::gemm::sm90::instances::BF16;

    use super::*;
    use crate::gemm::choice;
    use crate::gemm::choice::measured::H200;

    /// The k of a k-tile.
    const K: usize = 64;

    /// Rows of A and B to fetch, and bytes of each row, for the K-major instance that is chosen for m, n and k.
    fn fetched([m, n, k]: [usize; 3]) -> ([usize; 2], usize) {
        let input = CostInput::plain([m, n, k], H200);
        let k_major = BF16.iter().map(|it| &it.traits);
        let k_major = k_major.filter(|it| it.k_major == [true, true]);
        let k_major: Vec<_> = k_major.collect();
        let candidate = choice::fastest(&k_major, &input).unwrap();
        let raster = raster([m, n], candidate.instance.tile, candidate.instance.cluster);
        let rows = first_rows(&input, &candidate, raster.group());
        (rows, bytes_of_row(rows, &input, &candidate))
    }

    #[test]
    fn nothing_is_fetched_out_of_bounds() {
        for shape in [[1, 1, 1], [7, 9, 33], [512, 512, 512], [64, 64, 65_536]] {
            let ([a, b], bytes) = fetched(shape);
            assert!(a <= shape[0] && b <= shape[1] && bytes <= 2 * shape[2]);
        }
        assert_eq!(fetched([512, 512, 512]), ([512, 512], 1024));
    }

    #[test]
    fn shared_operands_are_fetched_for_the_first_tiles() {
        let ([a, b], bytes) = fetched([8192, 8192, 8192]);
        assert!((1024..=2048).contains(&a) && (1024..=2048).contains(&b));
        assert!((a + b) * bytes <= SHARED && bytes >= 128);
    }

    /// If C has few columns of tiles, blocks begin with rows of several groups.
    #[test]
    fn a_narrow_c_fetches_rows_of_several_groups() {
        let ([a, b], _) = fetched([16_384, 256, 8192]);
        assert!((8192..=16_384).contains(&a) && b == 256);
    }

    #[test]
    fn more_is_fetched_of_weights_that_are_read_once() {
        assert_eq!(fetched([1, 8192, 8192]), ([1, 8192], 2 * MOST_K_TILES * K));
        let ([_, b], bytes) = fetched([16, 57_344, 8192]);
        assert!(b < 57_344 && (ONCE / 2..=ONCE).contains(&(b * bytes)));
    }

    #[test]
    fn less_is_fetched_where_a_block_has_few_k_tiles_or_the_next_launch_begins_early() {
        assert_eq!(k_tiles_in_time(128, 128, 132), MOST_K_TILES);
        assert_eq!(k_tiles_in_time(16, 128, 132), 5);
        assert_eq!(k_tiles_in_time(16, 112, 132), 3);
        let split = fetched([64, 64, 65_536]);
        assert_eq!(split.0, [64, 64]);
        assert!(split.1 > 2 * 16 * K, "{split:?}");
    }
}
