//! Which instance of gemm_wgmma a problem gets, and into how many parts its steps are split: a model
//! of its time, corrected by times that were [`measured`].
//!
//! A block's step takes as long as the tensor cores need for its tile, or as the second-level cache
//! needs to bring it; a tile takes its steps and an epilogue; the kernel takes as many tiles as its busiest
//! block has, at least as long as memory needs, and then the last tiles are stored. All in clocks of a
//! multiprocessor.

mod measured;

use std::{iter, ptr};

use cutlet_kernels::gemm_wgmma::{Instance, K};

use super::operand::{LINE, UNIT};
use measured::Around;

/// What the time depends on.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// Bytes of an element of C, twice if it is added to.
    pub bytes_c: usize,
    /// Whether C is the sums themselves, if nothing else makes it of them.
    pub c_is_sums: bool,
    /// Multiprocessors of the device.
    pub processors: u32,
    /// Lines of the cache that 128 bytes of A, and of B, lie in: 1, or 2 where rows start anywhere.
    pub lines: [usize; 2],
    /// Whether all sums are left to another kernel, not only those of split steps.
    pub leaves_sums: bool,
    /// Whether blocks can add parts by themselves, if they do not leave all sums.
    pub fixes_up: bool,
}

impl Shape {
    /// That of a product of 16-bit matrices into one of the same type, which lie without gaps, A by rows and B by columns.
    pub fn plain([m, n, k]: [usize; 3], processors: u32) -> Self {
        // What TMA cannot read is copied to rows that start lines.
        let row = 2 * k;
        let lines = match row.is_multiple_of(UNIT) && !row.is_multiple_of(LINE) {
            true => 2,
            false => 1,
        };
        Shape {
            m,
            n,
            k,
            bytes_c: 2,
            c_is_sums: false,
            processors,
            lines: [lines; 2],
            leaves_sums: false,
            fixes_up: true,
        }
    }

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

    /// Bytes of A, B and C, those counted as more that take memory longer.
    fn bytes(&self) -> f64 {
        let Self {
            m, n, k, bytes_c, ..
        } = *self;
        let [longer_a, longer_b] = self.lines.map(|lines| longer(lines, SECOND_LINE_OF_MEMORY));
        real(2 * m * k) * longer_a + real(2 * n * k) * longer_b + real(bytes_c * m * n)
    }

    /// Bytes that memory brings in a clock if all multiprocessors ask.
    fn rate(&self) -> f64 {
        MEMORY_RATE * f64::from(self.processors)
    }
}

/// Who makes C of sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// The block that has them.
    Block,
    /// The last of the blocks that have parts of them.
    LastBlock,
    /// Another kernel, to which they are left.
    Kernel,
}

impl Finish {
    /// Clocks that it takes at least.
    fn least(self) -> f64 {
        match self {
            Self::Block => 0.0,
            Self::LastBlock => FIXUP,
            Self::Kernel => SUM,
        }
    }
}

/// An instance, and how it is to be launched.
#[derive(Debug)]
pub struct Choice<T: 'static, Epi: 'static> {
    /// The instance.
    pub instance: &'static Instance<T, Epi>,
    /// Parts that the steps of each tile are split into.
    pub splits: u32,
    /// Who makes C of their sums.
    pub finish: Finish,
    /// Tiles, each as often as it has parts.
    pub pieces: usize,
    /// Blocks: whole clusters, one block a multiprocessor at most.
    pub blocks: u32,
    /// Whether clusters claim seats: they fill the device, and each has tiles enough for it to be worth it.
    pub seated: bool,
    /// What the model says that it takes, in clocks.
    pub clocks: f64,
}

// The constants are fitted to times of instances at 249 shapes on an H200, START and ALONE to those of some more, what
// a second line costs to those of 426.

/// Clocks of the tensor cores for 32 sums of products of a step.
const MULTIPLY: f64 = 1.13;
/// Bytes that a multiprocessor asks of the second-level cache and gets in a clock, …
const CACHE_RATE: f64 = 104.7;
/// … how much longer loads take where each 128 bytes of a row lie in two lines of the cache, …
const SECOND_LINE: f64 = 1.65;
/// … how much longer memory takes for them, …
const SECOND_LINE_OF_MEMORY: f64 = 0.8;
/// … and clocks that TMA takes for a row that there is not.
const OUTSIDE: f64 = 17.47;
/// Clocks from one step to the next, …
const STEP: f64 = 87.81;
/// … and how many more of them blocks of a cluster take, which wait for each other, if it claims no seat.
const UNSEATED: f64 = 22.93;
/// Clocks from a tile's last step to the next tile's first, for each 64 rows and columns that a consumer
/// has.
const EPILOGUE: f64 = 843.2;
/// The share of that time that it takes longer where pieces are 8 columns, …
const EIGHT: f64 = 1.872;
/// … where C lies by columns, whose pieces are stored in runs of 32 bytes, …
const BY_COLUMNS: f64 = 0.5321;
/// … and where a consumer has room for one piece alone, which has to be gone before the next one.
const ALONE: f64 = 0.3;
/// How much time two consumers that take turns need for the steps of a tile that is not the first, …
const TURNS: f64 = 0.993;
/// … and clocks that it takes to pass the turn on.
const PASS: f64 = 1017.0;
/// Clocks that clusters take to start.
const CLUSTER: f64 = 102.2;
/// Clocks that a launch takes to start, unless it leaves multiprocessors for the blocks of the next one: then
/// one launch starts while the other ends.
const START: f64 = 1000.0;
/// Clocks in which two blocks exchange 64×64 sums each.
const EXCHANGE: f64 = 2574.0;
/// Bytes that memory brings each multiprocessor in a clock if all of them ask, …
const MEMORY_RATE: f64 = 19.82;
/// … how much longer it takes for what few of them ask, times the square of the share that does not, …
const FEW: f64 = 2.979;
/// … and the share of a byte's time that memory loses for each byte of B that the cache is asked for: not of
/// A, for whose rows many ask at a time.
const ASKED: f64 = 0.212;
/// How much of memory's time the tiles take that all blocks store last, under which nothing is multiplied any
/// more, …
const LAST_STORE: f64 = 0.6841;
/// … and how much longer that takes where rows are stored in pieces of 16 columns: runs of 32 bytes.
const RUNS: f64 = 2.418;
/// Clocks that it takes a block to leave its part of the sums and to see whether it is the last, …
const FIXUP: f64 = 2759.0;
/// … and to read each 64×64 sums of each part, if it is.
const PART: f64 = 566.5;
/// Clocks that the kernel which takes sums to C takes at least, …
const SUM: f64 = 6891.0;
/// … and how much of memory's time it takes to write and read them, where there are several.
const SUM_MEMORY: f64 = 0.3373;
/// Times that each cluster has tiles from which on it is worth it to claim seats.
const ROUNDS_FOR_SEATS: usize = 3;
/// The most parts: more are more work to add than to multiply.
const MOST_SPLITS: usize = 64;

/// How many times as long as the fastest an instance may take by the model to be among those that what was measured
/// decides between.
const REACH: f64 = 1.15;

/// The choice among instances that seems to be the fastest; none among none.
pub fn fastest<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    shape: &Shape,
) -> Option<Choice<T, Epi>> {
    match measured::fastest(instances, shape) {
        Some(instance) => by_model(instance, shape, 0.0, f64::INFINITY),
        None => by_model_and_around(instances, shape, &Around::new(shape)),
    }
}

/// The choice among instances that the model, and what was measured around the shape, hold to be the fastest.
fn by_model_and_around<T, Epi>(
    instances: &[&'static Instance<T, Epi>],
    shape: &Shape,
    around: &Around,
) -> Option<Choice<T, Epi>> {
    let memory = shape.bytes() / shape.rate();
    // One that is likely to be among the best is first, so that few others need a close look.
    let likely = around.likely(instances);
    let others = instances.iter().copied();
    let others = others.filter(|it| likely.is_none_or(|likely| !ptr::eq(likely, *it)));
    let mut least = f64::INFINITY;
    let mut choices = Vec::with_capacity(instances.len());
    for instance in likely.into_iter().chain(others) {
        if let Some(choice) = by_model(instance, shape, memory, REACH * least) {
            least = least.min(choice.clocks);
            choices.push(choice);
        }
    }
    let within_reach = choices.into_iter().filter(|it| it.clocks <= REACH * least);
    let clocks = within_reach.map(|it| (it.clocks * around.factor(it.instance), it));
    let fastest = clocks.min_by(|(a, _), (b, _)| a.total_cmp(b));
    fastest.map(|(_, choice)| choice)
}

/// The choice among the ways to launch an instance that the model holds to be the fastest; none if all are sure to take
/// more clocks than `most`. `memory` is what memory takes at least.
fn by_model<T, Epi>(
    instance: &'static Instance<T, Epi>,
    shape: &Shape,
    memory: f64,
    most: f64,
) -> Option<Choice<T, Epi>> {
    let tiled = Tiled::new(instance, shape.oriented(instance));
    let mut fastest: Option<Choice<T, Epi>> = None;
    for (splits, finish) in tiled.ways() {
        let most = fastest.as_ref().map_or(most, |it| it.clocks);
        if memory + finish.least() > most {
            continue;
        }
        let faster = choice(Launch::new(&tiled, splits, finish), most);
        fastest = match (fastest, faster) {
            (Some(fastest), Some(faster)) if faster.clocks >= fastest.clocks => Some(fastest),
            (fastest, faster) => faster.or(fastest),
        };
    }
    fastest
}

/// How many times as long what lies in so many lines takes, if a second line takes so much longer.
fn longer(lines: usize, second: f64) -> f64 {
    1.0 + second * real(lines - 1)
}

/// The number as one that the model calculates with: as a signed one, which takes a processor one instruction.
fn real(number: usize) -> f64 {
    number as i64 as f64
}

/// Clusters of `blocks` blocks that run at the same time, one block a multiprocessor: not all GPCs have
/// multiprocessors for whole clusters of more than two.
fn clustered(processors: u32, blocks: u32) -> u32 {
    match blocks {
        0..=2 => processors / blocks,
        _ => processors * 10 / 11 / blocks,
    }
}

/// The choice of this launch; none if it is sure to take more clocks than `most`.
fn choice<T, Epi>(launch: Launch<'_, T, Epi>, most: f64) -> Option<Choice<T, Epi>> {
    if TURNS * launch.rounds * launch.multiply() + launch.finish.least() > most {
        return None;
    }
    let (computing, besides) = (launch.computing(), launch.besides());
    if computing + besides > most {
        return None;
    }
    let memory = launch.memory();
    if memory + besides > most {
        return None;
    }
    // They get into each other's way where they take about the same: the fourth power says how much.
    let overlapped = (computing.powi(4) + memory.powi(4)).sqrt().sqrt();
    Some(Choice {
        instance: launch.tiled.instance,
        splits: launch.splits as u32,
        finish: launch.finish,
        pieces: launch.shares * launch.tiled.instance.tiles_of_cluster() as usize,
        blocks: launch.blocks() as u32,
        seated: launch.seated,
        clocks: overlapped + besides,
    })
}

/// A problem as an instance solves it, however the work is dealt out.
struct Tiled<T: 'static, Epi: 'static> {
    instance: &'static Instance<T, Epi>,
    /// The problem's shape as the instance has it.
    shape: Shape,
    /// Clusters of tiles that C has.
    clusters: usize,
    /// Bytes of A, and of B, that a block asks the second-level cache for in a step, those counted as more that
    /// lie in two lines.
    asked: [f64; 2],
    /// Clocks that loads and products of a step take, which go on at the same time.
    work: f64,
}

impl<T, Epi> Tiled<T, Epi> {
    fn new(instance: &'static Instance<T, Epi>, shape: Shape) -> Self {
        let [m, n] = instance.tile.map(f64::from);
        let products = m * n / 32.0 * MULTIPLY;
        let [cluster_rows, cluster_columns] = instance.cluster.map(f64::from);
        let [row_a, row_b] = shape
            .lines
            .map(|lines| real(2 * K) * longer(lines, SECOND_LINE));
        let rows = m.min(real(shape.m));
        let asked = [rows / cluster_columns * row_a, n / cluster_rows * row_b];
        let load = (asked[0] + asked[1]) / CACHE_RATE + OUTSIDE * outside(instance, &shape);
        let [clusters_below, clusters_beside] = shape.clusters(instance);
        Self {
            instance,
            shape,
            clusters: clusters_below * clusters_beside,
            asked,
            work: load.max(products),
        }
    }

    /// The ways in which the instance can be launched: into how many parts steps are split, and who adds them. Parts lie
    /// one below the other for another kernel, for which what computes Cᵀ has no place.
    fn ways(&self) -> impl Iterator<Item = (usize, Finish)> {
        let Self {
            instance, shape, ..
        } = self;
        // The split that makes as many tiles as there are multiprocessors, if any does.
        let blocks = self.clusters * instance.blocks_of_cluster() as usize;
        let most = match 2 * blocks > shape.processors as usize {
            true => None,
            false => Some((shape.processors as usize / blocks).min(MOST_SPLITS)),
        };
        let whole = match shape.leaves_sums {
            false => Finish::Block,
            true => Finish::Kernel,
        };
        let by_last_block = most.filter(|_| shape.fixes_up && instance.fixes_up);
        let by_kernel = most.filter(|_| instance.leaves_sums && !instance.transposed);
        iter::once((1, whole))
            .chain(by_last_block.map(|most| (most, Finish::LastBlock)))
            .chain(by_kernel.map(|most| (most, Finish::Kernel)))
    }

    /// Rows and columns of a tile.
    fn tile(&self) -> [f64; 2] {
        self.instance.tile.map(f64::from)
    }

    /// How many times 64×64 sums a consumer has.
    fn sums(&self) -> f64 {
        let [m, n] = self.tile();
        m * n / 4096.0 / f64::from(self.instance.consumers_of_a_tile())
    }

    /// Clocks from a tile's last step to the next tile's first.
    fn epilogue(&self) -> f64 {
        EPILOGUE * self.sums()
    }
}

/// Rows of A and B that a block loads in a step, and that there are not. The blocks of a cluster load parts of
/// what they share, and the last ones may have nothing else. Boxes of an A that is not shared are taken to have none, as
/// is so where it lies by rows.
fn outside<T, Epi>(instance: &Instance<T, Epi>, shape: &Shape) -> f64 {
    let [m, n] = instance.tile.map(f64::from);
    let [cluster_rows, cluster_columns] = instance.cluster;
    let outside = |tile: f64, extent: usize, blocks: u32| {
        (tile - real(extent)).clamp(0.0, tile / f64::from(blocks))
    };
    let outside_a = match cluster_columns {
        1 => 0.0,
        _ => outside(m, shape.m, cluster_columns),
    };
    outside_a + outside(n, shape.n, cluster_rows)
}

/// A problem as an instance solves it, and how the work is dealt out.
struct Launch<'a, T: 'static, Epi: 'static> {
    tiled: &'a Tiled<T, Epi>,
    /// Parts that the steps of each tile are split into.
    splits: usize,
    finish: Finish,
    /// What clusters get one after the other: clusters of tiles, each as often as its tiles have parts.
    shares: usize,
    /// Clusters that run at the same time.
    clusters: usize,
    /// Whether they claim seats.
    seated: bool,
    /// Shares that a cluster gets, at most.
    rounds: f64,
    /// Steps that it has of each.
    steps: f64,
}

impl<'a, T, Epi> Launch<'a, T, Epi> {
    fn new(tiled: &'a Tiled<T, Epi>, splits: usize, finish: Finish) -> Self {
        let Tiled {
            instance, shape, ..
        } = tiled;
        let steps = shape.k.div_ceil(K);
        let splits = splits.min(steps);
        let shares = tiled.clusters * splits;
        let most_clusters = clustered(shape.processors, instance.blocks_of_cluster()).max(1);
        let clusters = shares.min(most_clusters as usize);
        let sharing = instance.tiles_of_cluster() as usize;
        let room_for_another = (clusters + 1) * sharing <= shape.processors as usize;
        Self {
            tiled,
            splits,
            finish,
            shares,
            clusters,
            seated: sharing > 1
                && instance.is_in_line()
                && !room_for_another
                && shares >= ROUNDS_FOR_SEATS * clusters,
            rounds: real(shares.div_ceil(clusters)),
            steps: real(match splits * instance.depth as usize {
                1 => steps,
                shares => steps.div_ceil(shares),
            }),
        }
    }

    /// Blocks that run at the same time.
    fn blocks(&self) -> usize {
        self.clusters * self.tiled.instance.blocks_of_cluster() as usize
    }

    /// Clocks that a block's steps of a piece take.
    fn multiply(&self) -> f64 {
        let step = match self.tiled.instance.tiles_of_cluster() > 1 && !self.seated {
            true => STEP + UNSEATED,
            false => STEP,
        };
        self.steps * (step + self.tiled.work)
    }

    /// Whether C is stored in pieces of 16 columns or less.
    fn is_narrow(&self) -> bool {
        self.finish != Finish::Kernel && !self.tiled.instance.tile[1].is_multiple_of(32)
    }

    /// Clocks that the busiest block computes, its loads included.
    fn computing(&self) -> f64 {
        let Tiled { instance, .. } = self.tiled;
        let (multiply, epilogue) = (self.multiply(), self.tiled.epilogue());
        let rounds = self.rounds;
        let computing = if instance.alternate {
            // One consumer's epilogue lies under the other one's multiplication, if it is no longer.
            let next = (TURNS * multiply).max((multiply + epilogue) / 2.0);
            multiply + (rounds - 1.0) * (next + PASS) + epilogue
        } else {
            rounds * (multiply + epilogue)
        };
        let exchanged = match instance.depth {
            1 => 0.0,
            _ => rounds * EXCHANGE * self.tiled.tile()[1] / 64.0,
        };
        computing + exchanged
    }

    /// Clocks that memory takes for A, B and C.
    fn memory(&self) -> f64 {
        let Tiled {
            instance, shape, ..
        } = self.tiled;
        let blocks = real(self.blocks());
        let all = real(self.shares * instance.blocks_of_cluster() as usize);
        let [_, asked_b] = self.tiled.asked;
        let bytes = shape.bytes() + ASKED * asked_b * self.steps * all;
        let longer_if = |asking: f64| {
            let idle = 1.0 - asking / f64::from(shape.processors);
            FEW * idle * idle
        };
        let before_last = (self.rounds - 1.0) * blocks;
        let last = all - before_last;
        let longer = (before_last * longer_if(blocks) + last * longer_if(last)) / all;
        bytes / shape.rate() * (1.0 + longer)
    }

    /// Clocks in which neither computing nor memory has anything else to do.
    fn besides(&self) -> f64 {
        let Tiled {
            instance, shape, ..
        } = self.tiled;
        let [m, n] = self.tiled.tile();
        let sharing = instance.tiles_of_cluster() as usize;
        let last_tiles = real(self.clusters * sharing);
        let last_bytes = last_tiles * real(shape.bytes_c) * m.min(real(shape.m)) * n;
        let runs = match self.is_narrow() && !instance.transposed {
            true => RUNS,
            false => 1.0,
        };
        let of_epilogues = |share: f64| self.rounds * self.tiled.epilogue() * share;
        let mut besides = LAST_STORE * runs * last_bytes / shape.rate();
        if !instance.tile[1].is_multiple_of(16) {
            besides += of_epilogues(EIGHT);
        }
        if instance.transposed {
            besides += of_epilogues(BY_COLUMNS);
        }
        if instance.pieces_under_way == 1 {
            besides += of_epilogues(ALONE);
        }
        if sharing > 1 {
            besides += CLUSTER;
        }
        if 2 * self.blocks() > shape.processors as usize {
            besides += START;
        }
        besides
            + match self.finish {
                Finish::Block if shape.c_is_sums => self.leaving(),
                Finish::Block => 0.0,
                Finish::LastBlock => FIXUP + PART * real(self.splits) * self.tiled.sums(),
                Finish::Kernel => self.kernel(),
            }
    }

    /// Clocks that it takes to leave sums instead of C.
    fn leaving(&self) -> f64 {
        let instance = self.tiled.instance;
        match !instance.alternate && instance.tile[0] > 64 * instance.consumers {
            // Nobody multiplies while each consumer leaves the sums of 128 rows. It is known only that
            // others do better: 0.96 of cuBLASLt's speed at 2048×5120×20480, where this has 0.79.
            true => f64::INFINITY,
            false => 0.0,
        }
    }

    /// Clocks that it takes to leave sums to the other kernel, and that kernel takes.
    fn kernel(&self) -> f64 {
        let shape = &self.tiled.shape;
        let parts = real(8 * self.splits * shape.m * shape.n) / shape.rate();
        let memory = if self.splits > 1 { SUM_MEMORY } else { 1.0 };
        self.leaving() + SUM + memory * parts
    }
}

#[cfg(test)]
mod tests {
    use cutlet_kernels::gemm_wgmma::instances::BF16;

    use super::*;

    #[test]
    fn none_of_all_is_faster_than_the_one_that_is_chosen() {
        for extents in [
            [1, 8192, 8192],
            [64, 64, 65_536],
            [257, 8192, 8192],
            [512, 512, 512],
            [4095, 4095, 4096],
        ] {
            // Nothing was measured on such a device: the model chooses.
            let shape = Shape::plain(extents, 131);
            let clocks = |instances: &[_]| fastest(instances, &shape).unwrap().clocks;
            let one_by_one = BF16.iter().map(|instance| clocks(&[instance]));
            let least = one_by_one.reduce(f64::min).unwrap();
            let all: Vec<_> = BF16.iter().collect();
            assert_eq!(clocks(&all), least);
        }
    }
}
