//! What a launch has the second-level cache fetch before it may read it: the beginnings of the operands,
//! while the kernel before it ends.

use cutlet_device::DeviceData;
use cutlet_device::collective::Prefetch;
use cutlet_kernels::gemm_wgmma::K;

use super::choose::{Choice, Shape};
use crate::Matrix;
use crate::matrix::pointer;

/// Bytes of A and B that are fetched where blocks share what they load, …
const SHARED: usize = 3 << 19;
/// … and where they share a tile's steps as well, so that there are more of them at a time.
const SPLIT: usize = 4 << 20;
/// Bytes where each tile of A, or of B, is loaded once. Memory decides then, and the cache fetches rows in longer
/// pieces than steps are.
const ONCE: usize = 8 << 20;
/// Bytes where a block has one such tile, for itself.
const ALONE: usize = 24 << 20;
/// Steps of a block that are fetched of such tiles, and one more for every eight that it has, …
const FIRST_STEPS: usize = 3;
/// … up to so many: with more, a launch takes longer, a third at 1×8192×1024.
const MOST_STEPS: usize = 12;

/// What is fetched of A and B, by an instance whose clusters visit groups of so many rows of clusters.
pub fn prefetch<T: DeviceData, Epi>(
    operands: [Matrix<'_, T>; 2],
    shape: &Shape,
    choice: &Choice<T, Epi>,
    group: u32,
) -> [Prefetch; 2] {
    let rows = first_rows(shape, choice, group);
    let bytes = bytes_of_row::<T, Epi>(rows, shape, choice);
    [0, 1].map(|operand| {
        let matrix = &operands[operand];
        let (run, count) = matrix.extents.run_and_count();
        // Rows along k, and all that the problem has: an operand without elements has others.
        let is_whole = [count, run] == [[shape.m, shape.n][operand], shape.k];
        if !choice.instance.k_major[operand] || !is_whole {
            return Prefetch::NOTHING;
        }
        Prefetch::new(
            pointer(matrix.view),
            (matrix.ld() * size_of::<T>()) as i64,
            [rows[operand], bytes],
            choice.blocks,
        )
    })
}

/// Rows of A, and rows of B along k, that the first tiles of all blocks are made of.
fn first_rows<T, Epi>(shape: &Shape, choice: &Choice<T, Epi>, group: u32) -> [usize; 2] {
    let at_once = (choice.blocks / choice.instance.blocks_of_cluster()) as usize;
    let [rows, columns] = shape.clusters(choice.instance);
    let most_columns = at_once.div_ceil(group as usize);
    let columns = columns.min(most_columns);
    // Where C is not as wide as that, several groups' rows are begun with.
    let rows = rows.min(at_once.div_ceil(columns));
    let [rows_of_cluster, columns_of_cluster] = choice.instance.cluster_tile();
    [
        shape.m.min(rows * rows_of_cluster),
        shape.n.min(columns * columns_of_cluster),
    ]
}

/// Bytes of each of so many rows of A and B: as many steps of each block.
fn bytes_of_row<T, Epi>(rows: [usize; 2], shape: &Shape, choice: &Choice<T, Epi>) -> usize {
    let instance = choice.instance;
    // Blocks at the same tile have every so many of its steps.
    let sharing_steps = (choice.splits * instance.depth) as usize;
    let step = K * size_of::<T>() * sharing_steps;
    let steps_in = |bytes: usize| bytes / (step * (rows[0] + rows[1]));
    let clusters = shape.clusters(instance);
    let tiles_of_block = (choice.pieces * instance.depth as usize).div_ceil(choice.blocks as usize);
    let is_alone = instance.blocks_of_cluster() == 1 && tiles_of_block == 1;
    let steps = match clusters.contains(&1) {
        false if choice.splits > 1 => steps_in(SPLIT),
        false => steps_in(SHARED),
        true => {
            let all = shape.k.div_ceil(K * sharing_steps) * tiles_of_block;
            let in_time = steps_in_time(all, choice.blocks, shape.processors);
            steps_in(if is_alone { ALONE } else { ONCE }).min(in_time)
        }
    };
    (steps * step).min(shape.k * size_of::<T>())
}

/// Of all steps that a block has, of tiles that are read once, those that are fetched before it may load them.
fn steps_in_time(all: usize, blocks: u32, processors: u32) -> usize {
    let most = MOST_STEPS.min(FIRST_STEPS + all / 8);
    // On multiprocessors that have none of a launch's blocks, the next one's begin while others still load.
    match 8 * blocks < 7 * processors {
        true => most.div_ceil(2),
        false => most,
    }
}

#[cfg(test)]
mod tests {
    use cutlet_kernels::gemm_wgmma::{instances::BF16, raster};
    use half::bf16;

    use super::*;
    use crate::gemm::choose;

    /// Rows of A and B, and bytes of each, for the K-major instance that is chosen for m, n and k.
    fn fetched([m, n, k]: [usize; 3]) -> ([usize; 2], usize) {
        let shape = Shape::plain([m, n, k], 132);
        let k_major = BF16.iter().filter(|it| it.k_major == [true, true]);
        let k_major: Vec<_> = k_major.collect();
        let choice = choose::fastest(&k_major, &shape).unwrap();
        let raster = raster([m, n], choice.instance.tile, choice.instance.cluster);
        let rows = first_rows(&shape, &choice, raster.group());
        (rows, bytes_of_row::<bf16, _>(rows, &shape, &choice))
    }

    #[test]
    fn no_more_is_fetched_than_there_is() {
        for shape in [[1, 1, 1], [7, 9, 33], [512, 512, 512], [64, 64, 65_536]] {
            let ([a, b], bytes) = fetched(shape);
            assert!(a <= shape[0] && b <= shape[1] && bytes <= 2 * shape[2]);
        }
        assert_eq!(fetched([512, 512, 512]), ([512, 512], 1024));
    }

    #[test]
    fn what_blocks_share_is_fetched_for_the_first_tiles() {
        let ([a, b], bytes) = fetched([8192, 8192, 8192]);
        assert!((1024..=2048).contains(&a) && (1024..=2048).contains(&b));
        assert!((a + b) * bytes <= SHARED && bytes >= 128);
    }

    /// Where C has fewer columns of tiles than a group has, blocks begin with rows of several groups.
    #[test]
    fn all_that_a_narrow_c_begins_with_is_fetched() {
        let ([a, b], _) = fetched([16_384, 256, 8192]);
        assert!((8192..=16_384).contains(&a) && b == 256);
    }

    #[test]
    fn weights_that_are_read_once_are_fetched_further() {
        assert_eq!(fetched([1, 8192, 8192]), ([1, 8192], 2 * MOST_STEPS * K));
        let ([_, b], bytes) = fetched([16, 57_344, 8192]);
        assert!(b < 57_344 && (ONCE / 2..=ONCE).contains(&(b * bytes)));
    }

    #[test]
    fn less_is_fetched_where_a_block_has_few_steps_or_the_next_launch_begins_early() {
        assert_eq!(steps_in_time(128, 128, 132), MOST_STEPS);
        assert_eq!(steps_in_time(16, 128, 132), 5);
        assert_eq!(steps_in_time(16, 112, 132), 3);
        let split = fetched([64, 64, 65_536]);
        assert_eq!(split.0, [64, 64]);
        assert!(split.1 > 2 * 16 * K, "{split:?}");
    }
}
