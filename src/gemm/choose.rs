//! Which instance of gemm_wgmma a problem gets, and into how many parts its steps are split: a model
//! of its time.
//!
//! A block's step takes as long as the tensor cores need for its tile, or as the second-level cache
//! needs to bring it; a tile takes its steps and an epilogue; the kernel takes as many tiles as its busiest
//! block has, at least as long as memory needs, and then the last tiles are stored. All in clocks of a
//! multiprocessor.

use std::iter;

use cutlet_kernels::gemm_wgmma::{Instance, K};

/// What the time depends on.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// Multiprocessors of the device.
    pub processors: u32,
    /// Lines of the cache that 128 bytes of A, and of B, lie in: 1, or 2 where rows start anywhere.
    pub lines: [usize; 2],
    /// Whether all sums are left to another kernel, not only those of split steps.
    pub leaves_sums: bool,
}

impl Shape {
    /// That of the problem as the instance solves it.
    pub fn oriented<T, Epi>(&self, instance: &Instance<T, Epi>) -> Shape {
        let [m, n] = instance.oriented([self.m, self.n]);
        Shape {
            m,
            n,
            lines: instance.oriented(self.lines),
            ..*self
        }
    }

    /// Rows and columns of the instance's clusters that C has, as the instance has it.
    pub fn clusters<T, Epi>(&self, instance: &Instance<T, Epi>) -> [usize; 2] {
        let [rows, columns] = instance.cluster_tile();
        [self.m.div_ceil(rows), self.n.div_ceil(columns)]
    }
}

/// An instance, and how it is to be launched.
#[derive(Debug)]
pub struct Choice<T: 'static, Epi: 'static> {
    /// The instance.
    pub instance: &'static Instance<T, Epi>,
    /// Parts that the steps of each tile are split into.
    pub splits: u32,
    /// Blocks: whole clusters, one block a multiprocessor at most.
    pub blocks: u32,
    /// Whether clusters claim seats: they fill the device, and each has tiles enough for it to be worth it.
    pub seated: bool,
    /// What the model says that it takes, in clocks.
    pub clocks: f64,
}

// The constants are fitted to times of every instance at 197 shapes on an H200.

/// Clocks of the tensor cores for 32 sums of products of a step.
const MULTIPLY: f64 = 1.15;
/// Bytes that a multiprocessor asks of the second-level cache and gets in a clock, …
const CACHE_RATE: f64 = 82.53;
/// … how much longer loads take where each 128 bytes of a row lie in two lines of the cache, …
const SECOND_LINE: f64 = 1.849;
/// … and clocks that TMA takes for a row that there is not.
const OUTSIDE: f64 = 5.803;
/// Clocks from one step to the next.
const STEP: f64 = 97.66;
/// Clocks from a tile's last step to the next tile's first, for each 64 rows and columns that a consumer
/// has.
const EPILOGUE: f64 = 612.6;
/// How much longer that takes where pieces of a tile are only 16 columns.
const NARROW: f64 = 1.859;
/// The share of that time that it takes longer where pieces are 8 columns, …
const EIGHT: f64 = 1.558;
/// … and where C lies by columns, whose pieces are stored in runs of 32 bytes.
const BY_COLUMNS: f64 = 0.686;
/// How much time two consumers that take turns need for a tile's steps, …
const TURNS: f64 = 0.9795;
/// … and clocks that it takes to pass the turn on.
const PASS: f64 = 638.9;
/// How much time steps take where clusters claim seats.
const SEATED: f64 = 0.9828;
/// Clocks that clusters take to start.
const CLUSTER: f64 = 2117.0;
/// Clocks that a launch takes to start, unless it leaves multiprocessors for the blocks of the next one: then
/// one launch starts while the other ends.
const START: f64 = 871.4;
/// Clocks in which two blocks exchange 64×64 sums each.
const EXCHANGE: f64 = 2106.0;
/// Bytes that memory brings each multiprocessor in a clock, …
const MEMORY_RATE: f64 = 30.47;
/// … the share of its time that it takes longer for each 64 rows of B that a block reads at a time, …
const ROWS: f64 = 0.1746;
/// … and the share of a byte's time that memory loses for each byte that the cache is asked for.
const ASKED: f64 = 0.1021;
/// How much computing and memory get into each other's way: the less, the higher.
const OVERLAP: f64 = 2.468;
/// How much of memory's time the tiles take that all blocks store last, under which nothing is multiplied any
/// more.
const LAST_STORE: f64 = 1.584;
/// Clocks that the kernel which adds parts takes at least, …
const SUM: f64 = 8039.0;
/// … and how much of memory's time it takes to write and read them, where there are several.
const SUM_MEMORY: f64 = 0.9509;
/// Times that each cluster has tiles from which on it is worth it to claim seats.
const ROUNDS_FOR_SEATS: usize = 3;
/// The most parts: more are more work to add than to multiply.
const MOST_SPLITS: usize = 64;

/// The choice among instances that the model holds to be the fastest, the first of several; none among none.
pub fn fastest<T, Epi>(
    instances: Vec<&'static Instance<T, Epi>>,
    shape: &Shape,
) -> Option<Choice<T, Epi>> {
    let mut fastest: Option<Choice<T, Epi>> = None;
    for instance in instances {
        let shape = &shape.oriented(instance);
        for splits in iter::once(1).chain(most_splits(instance, shape)) {
            let most = fastest.as_ref().map_or(f64::INFINITY, |it| it.clocks);
            let faster = choice(instance, shape, splits, most);
            fastest = match (fastest, faster) {
                (Some(fastest), Some(faster)) if faster.clocks >= fastest.clocks => Some(fastest),
                (fastest, faster) => faster.or(fastest),
            };
        }
    }
    fastest
}

/// The split that makes as many tiles as there are multiprocessors, if any does. Parts lie one below the
/// other, for which what computes Cᵀ has no place.
fn most_splits<T, Epi>(instance: &'static Instance<T, Epi>, shape: &Shape) -> Option<usize> {
    let blocks = tiles(instance, shape) * instance.depth as usize;
    let most = (shape.processors as usize / blocks).min(MOST_SPLITS);
    (most > 1 && !instance.transposed).then_some(most)
}

/// Tiles of C, those included that only keep a cluster company.
fn tiles<T, Epi>(instance: &Instance<T, Epi>, shape: &Shape) -> usize {
    let [rows, columns] = shape.clusters(instance);
    let tiles_of_cluster = instance.cluster[0] * instance.cluster[1];
    rows * columns * tiles_of_cluster as usize
}

/// Clusters of `blocks` blocks that run at the same time, one block a multiprocessor: not all GPCs have
/// multiprocessors for whole clusters of more than two.
fn clustered(processors: u32, blocks: usize) -> u32 {
    match blocks {
        0..=2 => processors / blocks as u32,
        _ => processors * 10 / 11 / blocks as u32,
    }
}

/// The choice of this instance for the shape as it has it; none if it is sure to take more clocks than `most`.
fn choice<T, Epi>(
    instance: &'static Instance<T, Epi>,
    shape: &Shape,
    splits: usize,
    most: f64,
) -> Option<Choice<T, Epi>> {
    let steps = shape.k.div_ceil(K);
    let splits = splits.min(steps);
    let pieces = tiles(instance, shape) * splits;
    let [cluster_rows, cluster_columns] = instance.cluster.map(|blocks| blocks as usize);
    let (sharing, depth) = (cluster_rows * cluster_columns, instance.depth as usize);
    let most_clusters = (clustered(shape.processors, sharing * depth) as usize).max(1);
    let clusters = (pieces / sharing).min(most_clusters);
    let rounds = pieces.div_ceil(clusters * sharing) as f64;
    let steps_of_block = steps.div_ceil(splits * depth) as f64;
    let [m, n] = instance.tile.map(f64::from);
    let products = m * n / 32.0 * MULTIPLY;
    if TURNS * SEATED * rounds * steps_of_block * products > most {
        return None;
    }

    let [lines_a, lines_b] = shape
        .lines
        .map(|lines| 1.0 + SECOND_LINE * (lines - 1) as f64);
    let asked = (m.min(shape.m as f64) / cluster_columns as f64 * lines_a
        + n / cluster_rows as f64 * lines_b)
        * (2 * K) as f64;
    // The blocks of a cluster load parts of what they share, and the last ones may have nothing but rows that
    // there are not. Boxes of an A that is not shared have no such rows.
    let outside = |tile: f64, extent: usize, blocks: usize| {
        let most = tile / blocks as f64;
        (tile - extent as f64).clamp(0.0, most)
    };
    let outside_a = match cluster_columns {
        1 => 0.0,
        _ => outside(m, shape.m, cluster_columns),
    };
    let outside = outside_a + outside(n, shape.n, cluster_rows);
    let load = asked / CACHE_RATE + OUTSIDE * outside;
    let step = STEP + load.max(products);
    let seated = sharing > 1
        && clusters == shape.processors as usize / sharing
        && pieces / sharing >= ROUNDS_FOR_SEATS * clusters;
    let multiply = steps_of_block * step * if seated { SEATED } else { 1.0 };
    let narrow = if instance.tile[1].is_multiple_of(32) {
        1.0
    } else {
        NARROW
    };
    let blocks_of_sums = m * n / 4096.0 / f64::from(instance.consumers_of_a_tile());
    let epilogue = EPILOGUE * narrow * blocks_of_sums;
    let mut computing = if instance.alternate {
        // One consumer's epilogue lies under the other one's multiplication, if it is no longer.
        let tile = (TURNS * multiply).max((multiply + epilogue) / 2.0);
        rounds * tile + (rounds - 1.0) * PASS + epilogue
    } else {
        rounds * (multiply + epilogue)
    };
    if depth > 1 {
        computing += rounds * EXCHANGE * n / 64.0;
    }
    let rate = MEMORY_RATE * f64::from(shape.processors);
    let operands = (2 * (shape.m * shape.k + shape.n * shape.k)) as f64;
    let rows_at_a_time = n / 64.0 / cluster_rows as f64;
    let stored = (2 * shape.m * shape.n) as f64;
    let asked_in_all = asked * steps_of_block * (pieces * depth) as f64;
    let bytes = operands * (1.0 + ROWS * rows_at_a_time) + stored + ASKED * asked_in_all;
    let memory = bytes / rate;
    let last_tiles = pieces.min(clusters * sharing) as f64;
    let last_bytes = last_tiles * 2.0 * m.min(shape.m as f64) * n;
    let mut besides = LAST_STORE * last_bytes / rate;
    if !instance.tile[1].is_multiple_of(16) {
        besides += rounds * epilogue * EIGHT;
    }
    if instance.transposed {
        besides += rounds * epilogue * BY_COLUMNS;
    }
    if sharing > 1 {
        besides += CLUSTER;
    }
    let blocks = (clusters * sharing * depth) as u32;
    if 2 * blocks > shape.processors {
        besides += START;
    }
    if splits > 1 || shape.leaves_sums {
        let parts = (8 * splits * shape.m * shape.n) as f64 / rate;
        let memory = if splits > 1 { SUM_MEMORY } else { 1.0 };
        besides += SUM + memory * parts;
        if !instance.alternate && instance.tile[0] > 64 * instance.consumers {
            // Nobody multiplies while each consumer leaves the sums of 128 rows. It is known only that
            // others do better: 0.96 of cuBLASLt's speed at 2048×5120×20480, where this has 0.79.
            besides = f64::INFINITY;
        }
    }
    if computing.max(memory) + besides > most {
        return None;
    }
    let overlapped = (computing.powf(OVERLAP) + memory.powf(OVERLAP)).powf(1.0 / OVERLAP);
    Some(Choice {
        instance,
        splits: splits as u32,
        blocks,
        seated,
        clocks: overlapped + besides,
    })
}

#[cfg(test)]
mod tests {
    use cutlet_kernels::gemm_wgmma::instances::BF16;

    use super::*;

    #[test]
    fn none_of_all_is_faster_than_the_one_that_is_chosen() {
        for [m, n, k] in [
            [1, 8192, 8192],
            [64, 64, 65_536],
            [257, 8192, 8192],
            [512, 512, 512],
            [4095, 4095, 4096],
        ] {
            let shape = Shape {
                m,
                n,
                k,
                processors: 132,
                lines: [1, 1],
                leaves_sums: false,
            };
            let clocks = |instances| fastest(instances, &shape).unwrap().clocks;
            let one_by_one = BF16.iter().map(|instance| clocks(vec![instance]));
            let least = one_by_one.reduce(f64::min).unwrap();
            assert_eq!(clocks(BF16.iter().collect()), least);
        }
    }
}
