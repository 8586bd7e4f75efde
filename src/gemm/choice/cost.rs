//! The model: the estimated time of a kernel of the sm_90 family at a problem, and the fastest way to launch the
//! kernel.
//!
//! A k-tile takes as long as the tensor cores need to multiply it, or as the L2 cache needs to bring it. A tile takes
//! the time of its k-tiles and of an epilogue. The kernel takes the time of its busiest block's tiles, and at least the
//! time that memory needs. Then the last tiles are stored. All times are in clocks of a multiprocessor.

mod features;

use std::iter;
use std::num::NonZeroU32;

use cutlet_device::collective::StreamedTiles;
use cutlet_kernels::gemm::sm90::kernel_traits::KernelTraits;
use cutlet_layout_core::Divisor;

use super::decomposition::Decomposition;
use super::device_speed::{DeviceSpeed, overlapped};
pub use features::{FEATURES, Features};

/// Bytes that TMA needs rows to start at a multiple of.
pub const TMA_UNIT: usize = 16;
/// Bytes of a cache line.
pub const CACHE_LINE: usize = 128;

/// What the time of a kernel depends on.
#[derive(Clone, Copy, Debug)]
pub struct CostInput {
    /// Rows of C.
    pub m: usize,
    /// Columns of C.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// Bytes of an element of A and B.
    pub bytes_ab: usize,
    /// Bytes of an element of C, twice if it is added to.
    pub bytes_c: usize,
    /// Whether C itself is the partial output, unless a second kernel makes C.
    pub c_is_partial_output: bool,
    /// What the time depends on of the device.
    pub device: DeviceSpeed,
    /// Cache lines that 128 bytes of a row of A, and of B, lie in: 1, or 2 if rows do not start at cache lines.
    pub lines: [usize; 2],
    /// Whether each k-tile's products have scales.
    pub scales_k_tiles: bool,
    /// Whether a second kernel must make C, even without splits.
    pub needs_second_kernel: bool,
    /// Whether blocks may run the fixup.
    pub allows_fixup: bool,
    /// Whether the fixup may add the shares of streamed tiles.
    pub allows_streams: bool,
    /// Whether a second kernel may add partials.
    pub allows_second_kernel: bool,
    /// The only decomposition, if one was named.
    pub decomposition: Option<Decomposition>,
}

impl CostInput {
    /// The product of packed 16-bit matrices into one of the same type. A is row-major, B column-major.
    pub fn plain([m, n, k]: [usize; 3], device: DeviceSpeed) -> Self {
        // Operands that TMA cannot read are copied to rows that start at cache lines.
        let row = 2 * k;
        let lines = match row.is_multiple_of(TMA_UNIT) && !row.is_multiple_of(CACHE_LINE) {
            true => 2,
            false => 1,
        };
        CostInput {
            m,
            n,
            k,
            bytes_ab: 2,
            bytes_c: 2,
            c_is_partial_output: false,
            device,
            lines: [lines; 2],
            scales_k_tiles: false,
            needs_second_kernel: false,
            allows_fixup: true,
            allows_streams: true,
            allows_second_kernel: true,
            decomposition: None,
        }
    }

    /// The problem as the instance solves it.
    pub fn oriented(&self, instance: &KernelTraits) -> CostInput {
        let [m, n] = instance.oriented([self.m, self.n]);
        CostInput {
            m,
            n,
            lines: instance.oriented(self.lines),
            ..*self
        }
    }

    /// Rows and columns of the instance's clusters that an [oriented](Self::oriented) C has.
    pub fn clusters(&self, instance: &KernelTraits) -> [usize; 2] {
        let [rows, columns] = instance.cluster_tile();
        [self.m.div_ceil(rows), self.n.div_ceil(columns)]
    }

    /// K-tiles of A and B.
    pub fn k_tiles(&self, instance: &KernelTraits) -> usize {
        self.k.div_ceil(instance.tile_k as usize)
    }

    /// Bytes of A, B and C. Bytes of rows that do not start at cache lines count as more, because memory takes longer
    /// for them.
    pub(super) fn bytes(&self) -> f64 {
        let Self {
            m,
            n,
            k,
            bytes_ab,
            bytes_c,
            ..
        } = *self;
        let [longer_a, longer_b] = self.lines.map(|lines| longer(lines, SECOND_LINE_OF_MEMORY));
        real(bytes_ab * m * k) * longer_a
            + real(bytes_ab * n * k) * longer_b
            + real(bytes_c * m * n)
    }

    /// Bytes that memory brings in a clock if all multiprocessors ask.
    pub(super) fn rate(&self) -> f64 {
        self.device.bytes_a_clock()
    }
}

/// How accumulators become C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputPath {
    /// The block that has them writes C.
    Direct,
    /// The last of a tile's blocks to arrive adds the partials of all splits and writes C.
    Fixup,
    /// A second kernel makes C of the partial output.
    SecondKernel,
}

impl OutputPath {
    /// The least clocks that the path adds.
    fn least(self) -> f64 {
        match self {
            Self::Direct => 0.0,
            Self::Fixup => FIXUP,
            Self::SecondKernel => SECOND_KERNEL,
        }
    }
}

/// An instance, and how it is launched.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The instance.
    pub instance: &'static KernelTraits,
    /// How its tiles are dealt out.
    pub decomposition: Decomposition,
    /// Splits of each tile's k-tiles.
    pub splits: u32,
    /// How accumulators become C.
    pub path: OutputPath,
    /// Work tiles: tiles times splits.
    pub work_tiles: usize,
    /// The tiles of clusters that are streamed.
    pub streamed: StreamedTiles,
    /// Blocks of the grid: whole clusters, at most one block a multiprocessor.
    pub blocks: u32,
    /// Whether clusters claim slots by SM affinity. They do if they fill the device, and each has enough tiles for it
    /// to pay.
    pub claims_slots: bool,
    /// The model's estimate, in clocks.
    pub clocks: f64,
}

impl Candidate {
    /// Shares of tiles that the fixup may have to keep.
    pub fn shares(&self) -> usize {
        let clusters = self.blocks / self.instance.blocks_of_cluster();
        match self.streamed.count {
            0 => self.work_tiles,
            _ => (self.streamed.shares(clusters) * self.instance.blocks_of_cluster()) as usize,
        }
    }
}

// The constants are fitted to times of instances at 426 shapes on an H200 and at 72 on an H100, together with a factor
// for each instance, which the table has. ONE_SUBTILE and PING_PONG are fitted to some of the H200's shapes. LAST_STORE,
// FIRST_K_TILE, EPILOGUE, CLUSTER and SHARES_OF_STREAM are those with which choices lose the least at shapes that are
// predicted from others.

/// Clocks of the tensor cores for 32 accumulators of a k-tile.
const MULTIPLY: f64 = 0.9227;
/// Bytes that a multiprocessor gets from the L2 cache in a clock.
const CACHE_RATE: f64 = 93.45;
/// The slowdown of loads whose 128 bytes lie in two cache lines.
const SECOND_LINE: f64 = 0.8127;
/// The slowdown of memory for such loads.
const SECOND_LINE_OF_MEMORY: f64 = 0.2572;
/// Clocks that TMA takes for a row out of bounds.
const OUTSIDE: f64 = 6.03;
/// Clocks from a block's start to its first product: its first k-tile comes from memory.
const FIRST_K_TILE: f64 = 1500.0;
/// Clocks from one k-tile to the next.
const K_TILE: f64 = 79.78;
/// Clocks from a consumer's products to the next ones, if it adds them to sums, besides its additions.
const PROMOTE: f64 = 100.0;
/// Clocks that a k-tile's scales take besides.
const SCALE_K_TILE: f64 = 100.0;
/// Memory time for each byte of A that is read again, if C is column-major and sums are promoted: A is then the weights,
/// which different columns of tiles read at different times.
const CACHED_WEIGHTS: f64 = 0.3;
/// Extra clocks of a k-tile in a cluster that claims no slot: its blocks wait for each other.
const WITHOUT_SLOT: f64 = 9.819;
/// Clocks from a tile's last k-tile to the next tile's first, however small the tile is.
const EPILOGUE: f64 = 300.0;
/// Clocks that the epilogue takes besides, for each 64×64 accumulators of a consumer.
const EPILOGUE_OF_ACCUMULATORS: f64 = 473.2;
/// The slowdown of the epilogue if subtiles have 8 columns.
const EIGHT_COLUMNS: f64 = 0.8306;
/// The slowdown of the epilogue if C is column-major: lines of a subtile are 32 bytes long.
const COLUMN_MAJOR: f64 = 0.6341;
/// The slowdown of the epilogue if there is room for one subtile only: it must be stored before the next one.
const ONE_SUBTILE: f64 = 0.3;
/// The time of a ping-pong consumer's k-tiles after its first tile, relative to the first tile's.
const PING_PONG: f64 = 0.993;
/// Clocks for one ping-pong consumer to hand over to the other one.
const PASS: f64 = 665.5;
/// Clocks that clusters take to start.
const CLUSTER: f64 = 300.0;
/// Clocks that a launch takes to start. They do not count if launches leave multiprocessors free: then one launch
/// starts while the other one ends.
const START: f64 = 1096.0;
/// Memory slowdown, times (1 − active/all multiprocessors)².
const FEW: f64 = 0.4759;
/// Memory time for each byte of B that is read from the L2 cache, relative to a byte read from memory. Reads of A do
/// not count: many blocks read the same rows at a time.
const CACHED: f64 = 0.1419;
/// Bytes of both operands that stay in the L2 cache while streamed tiles read them.
const CACHE: f64 = 30e6;
/// The time to store a block's last tile, relative to the time at its multiprocessor's share of the memory's rate.
/// Nothing is multiplied meanwhile.
const LAST_STORE: f64 = 0.8615;
/// The slowdown of the last store if subtiles have 16 columns: runs are 32 bytes long.
const RUNS: f64 = 1.632;
/// Clocks that a block takes to write its partials and to count its arrival.
const FIXUP: f64 = 2738.0;
/// Shares that a cluster writes of streamed tiles: it begins and ends within tiles.
const SHARES_OF_STREAM: f64 = 2.0;
/// Clocks that the last block takes to read 64×64 partials of a split.
const PARTIAL: f64 = 547.8;
/// Clocks that a second kernel takes at least.
const SECOND_KERNEL: f64 = 5019.0;
/// Memory time to write and read the partials of several splits, relative to other bytes.
const PARTIALS_OF_SPLITS: f64 = 0.7955;
/// Tiles that each cluster must have for slots to pay.
const TILES_FOR_SLOTS: usize = 3;
/// The most splits. With more, adding partials is more work than multiplying.
const MOST_SPLITS: usize = 64;

/// The fastest way to launch an instance, by the model. None if all ways take more clocks than `most`. `memory` is the
/// least time of memory, in clocks.
pub fn by_model(
    instance: &'static KernelTraits,
    input: &CostInput,
    memory: f64,
    most: f64,
) -> Option<Candidate> {
    let tiled = Tiled::new(instance, input.oriented(instance));
    let mut fastest: Option<Candidate> = None;
    for way in tiled.ways() {
        let most = fastest.as_ref().map_or(most, |it| it.clocks);
        if memory + way.path.least() > most {
            continue;
        }
        let faster = candidate(Launch::new(&tiled, way), most);
        fastest = match (fastest, faster) {
            (Some(fastest), Some(faster)) if faster.clocks >= fastest.clocks => Some(fastest),
            (fastest, faster) => faster.or(fastest),
        };
    }
    fastest
}

/// The slowdown of accesses to `lines` cache lines, if a second line adds `second`.
fn longer(lines: usize, second: f64) -> f64 {
    1.0 + second * real(lines - 1)
}

/// The number as a float. From a signed integer, the conversion is one instruction.
fn real(number: usize) -> f64 {
    number as i64 as f64
}

/// The candidate of this launch. None if it takes more clocks than `most`.
fn candidate(launch: Launch<'_>, most: f64) -> Option<Candidate> {
    if PING_PONG * launch.rounds * launch.multiply() + launch.path.least() > most {
        return None;
    }
    let (computing, overhead) = (launch.computing(), launch.overhead());
    if computing + overhead > most {
        return None;
    }
    let memory = launch.memory();
    if memory + overhead > most {
        return None;
    }
    Some(Candidate {
        instance: launch.tiled.instance,
        decomposition: launch.decomposition,
        splits: launch.splits as u32,
        path: launch.path,
        work_tiles: launch.shares * launch.tiled.instance.blocks_of_cluster() as usize,
        streamed: launch.streamed_tiles(),
        blocks: launch.blocks() as u32,
        claims_slots: launch.claims_slots,
        clocks: match launch.estimates_waves() {
            false => overlapped(computing, memory),
            true => launch.wave_by_wave(),
        } + overhead,
    })
}

/// The tiles of clusters from `first` on, which `clusters` clusters stream.
pub fn streamed_tiles(
    first: usize,
    count: usize,
    k_tiles: usize,
    clusters: usize,
) -> StreamedTiles {
    StreamedTiles {
        first: first as u32,
        count: count as u32,
        k_tiles: divisor(k_tiles),
        quantum: divisor(quantum(count, k_tiles, clusters)),
    }
}

/// K-tiles of `count` streamed tiles that each of the clusters has.
fn quantum(count: usize, k_tiles: usize, clusters: usize) -> usize {
    (count * k_tiles).div_ceil(clusters)
}

fn divisor(number: usize) -> Divisor {
    Divisor::new(NonZeroU32::new(number as u32).unwrap_or(NonZeroU32::MIN))
}

/// A way to launch an instance.
struct Way {
    decomposition: Decomposition,
    /// Splits of each tile's k-tiles.
    splits: usize,
    /// How accumulators become C.
    path: OutputPath,
    /// Tiles of clusters that are streamed. There are no splits then.
    streamed: usize,
}

/// A problem as an instance solves it, independent of how the work is dealt out.
struct Tiled {
    instance: &'static KernelTraits,
    /// The problem, oriented for the instance.
    input: CostInput,
    /// Clusters of tiles that C has.
    clusters: usize,
    /// Bytes of a k-tile of A, and of B, that a block reads from the L2 cache. Bytes in two cache lines count as more.
    read: [f64; 2],
    /// Clocks of a k-tile's loads and products, which overlap.
    work: f64,
}

impl Tiled {
    fn new(instance: &'static KernelTraits, input: CostInput) -> Self {
        let [m, n] = instance.tile.map(f64::from);
        let products = m * n / 32.0 * MULTIPLY * f64::from(instance.products);
        let [cluster_rows, cluster_columns] = instance.cluster.map(f64::from);
        let row = real(input.bytes_ab * instance.tile_k as usize);
        let [row_a, row_b] = input.lines.map(|lines| row * longer(lines, SECOND_LINE));
        let multiply = match instance.promotes {
            false => products,
            true => products.max(with_promotion(instance, &input, products)),
        };
        let rows = m.min(real(input.m));
        let read = [rows / cluster_columns * row_a, n / cluster_rows * row_b];
        let load = (read[0] + read[1]) / CACHE_RATE + OUTSIDE * outside(instance, &input);
        let [rows_of_clusters, columns_of_clusters] = input.clusters(instance);
        Self {
            instance,
            input,
            clusters: rows_of_clusters * columns_of_clusters,
            read,
            work: load.max(multiply),
        }
    }

    /// The ways in which the instance can be launched. An instance that computes Cᵀ cannot write the partials of
    /// several splits, which lie below one another.
    fn ways(&self) -> impl Iterator<Item = Way> {
        let Self {
            instance, input, ..
        } = self;
        let multiprocessors = input.device.multiprocessors as usize;
        // The number of splits that makes about as many work tiles as multiprocessors, if tiles are few.
        let blocks = self.clusters * instance.blocks_of_cluster() as usize;
        let most = match 2 * blocks > multiprocessors {
            true => None,
            false => Some((multiprocessors / blocks).min(MOST_SPLITS)),
        };
        let whole = match input.needs_second_kernel {
            false => OutputPath::Direct,
            true => OutputPath::SecondKernel,
        };
        let by_fixup = most.filter(|_| input.allows_fixup && instance.runs_fixup);
        let by_kernel = most.filter(|_| {
            input.allows_second_kernel && instance.writes_partials && !instance.transposed
        });
        let splits = |decomposition, splits, path| Way {
            decomposition,
            splits,
            path,
            streamed: 0,
        };
        let streams = input.allows_fixup && input.allows_streams && instance.streams_tiles;
        let kinds = [Decomposition::StreamKOneTile, Decomposition::StreamKTwoTile];
        let streamed = kinds.into_iter().zip(self.streamed());
        let streamed = streamed.filter_map(move |(decomposition, count)| {
            Some(Way {
                decomposition,
                splits: 1,
                path: OutputPath::Fixup,
                streamed: count.filter(|_| streams)?,
            })
        });
        iter::once(splits(Decomposition::DataParallel, 1, whole))
            .chain(
                by_fixup.map(|most| splits(Decomposition::SplitKSerial, most, OutputPath::Fixup)),
            )
            .chain(by_kernel.map(|most| {
                splits(
                    Decomposition::SplitKParallel,
                    most,
                    OutputPath::SecondKernel,
                )
            }))
            .chain(streamed)
            .filter(|way| {
                input
                    .decomposition
                    .is_none_or(|only| only == way.decomposition)
            })
    }

    /// Clusters that can run at the same time.
    fn most_clusters(&self) -> usize {
        let blocks = self.instance.blocks_of_cluster();
        self.input.device.clusters[blocks.ilog2() as usize].max(1) as usize
    }

    /// How many tiles of clusters to stream, if any: those that do not fill a wave, or these and a wave before.
    fn streamed(&self) -> [Option<usize>; 2] {
        let most = self.most_clusters();
        let left = self.clusters % most;
        let k_tiles = self.input.k_tiles(self.instance);
        [left, left + most].map(|count| {
            let is_counted = (count * k_tiles) >> 31 == 0;
            (left > 0 && count <= self.clusters && is_counted).then_some(count)
        })
    }

    /// Rows and columns of a tile.
    fn tile(&self) -> [f64; 2] {
        self.instance.tile.map(f64::from)
    }

    /// Accumulators of a consumer, in units of 64×64.
    fn accumulators(&self) -> f64 {
        let [m, n] = self.tile();
        m * n / 4096.0 / f64::from(self.instance.consumers_at_a_tile())
    }

    /// Clocks from a tile's last k-tile to the next tile's first.
    fn epilogue(&self) -> f64 {
        EPILOGUE + EPILOGUE_OF_ACCUMULATORS * self.accumulators()
    }
}

/// Clocks of a k-tile whose products are added to sums. Consumers of one tile take turns: one adds while the tensor cores
/// multiply for the other one.
fn with_promotion(instance: &KernelTraits, input: &CostInput, products: f64) -> f64 {
    let [m, n] = instance.tile.map(f64::from);
    let consumers = f64::from(instance.consumers_at_a_tile());
    // A warp adds 32 numbers in a clock, and each scheduler has one warp of each consumer.
    let additions = m * n / 128.0 / consumers;
    let scales = match input.scales_k_tiles {
        false => 0.0,
        true => SCALE_K_TILE,
    };
    products / consumers + additions + PROMOTE + scales
}

/// Rows out of bounds that a block loads of A and B in a k-tile. The blocks of a cluster each load a part of a shared
/// tile, and the last part may be out of bounds as a whole. An A that is not shared counts none: the boxes of a
/// row-major A end at its last row.
fn outside(instance: &KernelTraits, input: &CostInput) -> f64 {
    let [m, n] = instance.tile.map(f64::from);
    let [cluster_rows, cluster_columns] = instance.cluster;
    let outside = |tile: f64, extent: usize, blocks: u32| {
        (tile - real(extent)).clamp(0.0, tile / f64::from(blocks))
    };
    let outside_a = match cluster_columns {
        1 => 0.0,
        _ => outside(m, input.m, cluster_columns),
    };
    outside_a + outside(n, input.n, cluster_rows)
}

/// A problem as an instance solves it, and how the work is dealt out.
struct Launch<'a> {
    tiled: &'a Tiled,
    decomposition: Decomposition,
    /// Splits of each tile's k-tiles.
    splits: usize,
    path: OutputPath,
    /// Tiles of clusters that are streamed.
    streamed: usize,
    /// Shares of the work, which clusters take one after the other: each cluster of tiles once for each split.
    shares: usize,
    /// Clusters that run at the same time.
    clusters: usize,
    /// Whether they claim slots.
    claims_slots: bool,
    /// The most shares of a cluster.
    rounds: f64,
    /// K-tiles of a share.
    k_tiles: f64,
}

impl<'a> Launch<'a> {
    fn new(tiled: &'a Tiled, way: Way) -> Self {
        let Way {
            decomposition,
            splits,
            path,
            streamed,
        } = way;
        let Tiled {
            instance, input, ..
        } = tiled;
        let multiprocessors = input.device.multiprocessors;
        let k_tiles = input.k_tiles(instance);
        // As many as have k-tiles, if all but the last one have equally many.
        let splits = k_tiles.div_ceil(k_tiles.div_ceil(splits).max(1));
        let shares = tiled.clusters * splits;
        let most_clusters = tiled.most_clusters();
        let clusters = match streamed {
            0 => shares.min(most_clusters),
            _ => (tiled.clusters * k_tiles).min(most_clusters),
        };
        let sharing = instance.blocks_of_cluster() as usize;
        let room_for_another = (clusters + 1) * sharing <= multiprocessors as usize;
        Self {
            tiled,
            decomposition,
            splits,
            path,
            streamed,
            shares,
            clusters,
            claims_slots: sharing > 1
                && instance.is_in_line()
                && !room_for_another
                && shares >= TILES_FOR_SLOTS * clusters,
            rounds: match streamed {
                0 => real(shares.div_ceil(clusters)),
                // Of the streamed tiles, each cluster has a part of a round.
                _ => {
                    let quantum = real(quantum(streamed, k_tiles, clusters));
                    real((shares - streamed) / clusters) + quantum / real(k_tiles)
                }
            },
            k_tiles: real(k_tiles.div_ceil(splits)),
        }
    }

    /// The streamed tiles, as the kernel has them.
    fn streamed_tiles(&self) -> StreamedTiles {
        match self.streamed {
            0 => StreamedTiles::NONE,
            count => {
                let k_tiles = self.tiled.input.k_tiles(self.tiled.instance);
                streamed_tiles(self.shares - count, count, k_tiles, self.clusters)
            }
        }
    }

    /// K-tiles of streamed tiles that each cluster has.
    fn quantum(&self) -> usize {
        let k_tiles = self.tiled.input.k_tiles(self.tiled.instance);
        quantum(self.streamed, k_tiles, self.clusters)
    }

    /// Blocks that run at the same time.
    fn blocks(&self) -> usize {
        self.clusters * self.tiled.instance.blocks_of_cluster() as usize
    }

    /// Clocks of a work tile's k-tiles.
    fn multiply(&self) -> f64 {
        let k_tile = match self.tiled.instance.blocks_of_cluster() > 1 && !self.claims_slots {
            true => K_TILE + WITHOUT_SLOT,
            false => K_TILE,
        };
        self.k_tiles * (k_tile + self.tiled.work)
    }

    /// Whether C is stored in subtiles of 16 columns or less.
    fn is_narrow(&self) -> bool {
        self.path != OutputPath::SecondKernel && !self.tiled.instance.tile[1].is_multiple_of(32)
    }

    /// Clocks of the busiest block's loads, products and epilogues.
    fn computing(&self) -> f64 {
        let Tiled { instance, .. } = self.tiled;
        let (multiply, epilogue) = (self.multiply(), self.tiled.epilogue());
        let rounds = self.rounds;
        let computing = if instance.is_pingpong {
            // One consumer's epilogue overlaps the other one's mainloop, if the mainloop takes at least as long.
            let next = (PING_PONG * multiply).max((multiply + epilogue) / 2.0);
            multiply + (rounds - 1.0) * (next + PASS) + epilogue
        } else {
            rounds * (multiply + epilogue)
        };
        FIRST_K_TILE + computing
    }

    /// Whether the last wave is estimated apart from those before. That of promoted sums takes about as long as they do:
    /// its few blocks wait for their k-tiles, where all blocks together wait for memory.
    fn estimates_waves(&self) -> bool {
        self.tiled.instance.promotes && self.streamed == 0 && self.rounds > 1.0
    }

    /// Clocks of computing and memory, of the whole waves and of the last one.
    fn wave_by_wave(&self) -> f64 {
        let blocks = real(self.blocks());
        let before_last = (self.rounds - 1.0) * blocks;
        let last = self.work_tiles() - before_last;
        let of_round = self.multiply() + self.tiled.epilogue();
        let waves = |rounds: f64, tiles: f64, active: f64| {
            let bytes = self.bytes() * tiles / self.work_tiles();
            let memory = bytes / self.tiled.input.rate() * (1.0 + self.longer_if(active));
            overlapped(rounds * of_round, memory)
        };
        FIRST_K_TILE + waves(self.rounds - 1.0, before_last, blocks) + waves(1.0, last, last)
    }

    /// Work tiles of all blocks.
    fn work_tiles(&self) -> f64 {
        real(self.shares * self.tiled.instance.blocks_of_cluster() as usize)
    }

    /// How much longer memory takes if so many multiprocessors ask.
    fn longer_if(&self, active: f64) -> f64 {
        let idle = 1.0 - active / f64::from(self.tiled.input.device.multiprocessors);
        FEW * idle * idle
    }

    /// Bytes that memory brings, with those that the L2 cache brings again, as their time counts.
    fn bytes(&self) -> f64 {
        let Tiled {
            instance, input, ..
        } = self.tiled;
        let all = self.work_tiles();
        let [read_a, read_b] = self.tiled.read;
        let mut bytes = input.bytes() + CACHED * read_b * self.k_tiles * all;
        if instance.promotes && instance.transposed {
            let once = real(input.bytes_ab * input.m * input.k);
            bytes += CACHED_WEIGHTS * (read_a * self.k_tiles * all - once).max(0.0);
        }
        bytes
    }

    /// Clocks that memory takes for A, B and C.
    fn memory(&self) -> f64 {
        let (blocks, all, bytes) = (real(self.blocks()), self.work_tiles(), self.bytes());
        let rate = self.tiled.input.rate();
        if self.streamed > 0 {
            // All blocks ask until the end.
            return (bytes + self.read_again()) / rate * (1.0 + self.longer_if(blocks));
        }
        let before_last = (self.rounds - 1.0) * blocks;
        let last = all - before_last;
        let longer = (before_last * self.longer_if(blocks) + last * self.longer_if(last)) / all;
        bytes / rate * (1.0 + longer)
    }

    /// Bytes that streamed tiles read from memory again. Their clusters are at different k-tiles, so that they find in
    /// the L2 cache only what fits there of both operands.
    fn read_again(&self) -> f64 {
        let Tiled {
            instance, input, ..
        } = self.tiled;
        let [read_a, read_b] = self.tiled.read;
        let blocks = real(self.streamed * instance.blocks_of_cluster() as usize);
        let all = (read_a + read_b) * real(input.k_tiles(instance)) * blocks;
        let operands = real(input.bytes_ab * (input.m + input.n) * input.k);
        (all - operands).max(0.0) * (1.0 - CACHE / operands).max(0.0)
    }

    /// Clocks that overlap neither computing nor memory.
    fn overhead(&self) -> f64 {
        let Tiled {
            instance, input, ..
        } = self.tiled;
        let [m, n] = self.tiled.tile();
        let sharing = instance.blocks_of_cluster() as usize;
        let last_tile = real(input.bytes_c) * m.min(real(input.m)) * n;
        let runs = match self.is_narrow() && !instance.transposed {
            true => RUNS,
            false => 1.0,
        };
        let of_epilogues = |share: f64| self.rounds * self.tiled.epilogue() * share;
        let mut overhead = LAST_STORE * runs * last_tile / input.device.memory_rate;
        if !instance.tile[1].is_multiple_of(16) {
            overhead += of_epilogues(EIGHT_COLUMNS);
        }
        if instance.transposed {
            overhead += of_epilogues(COLUMN_MAJOR);
        }
        if instance.staged_subtiles == 1 {
            overhead += of_epilogues(ONE_SUBTILE);
        }
        if sharing > 1 {
            overhead += CLUSTER;
        }
        if 2 * self.blocks() > input.device.multiprocessors as usize {
            overhead += START;
        }
        overhead
            + match self.path {
                OutputPath::Direct if input.c_is_partial_output => self.partial_output(),
                OutputPath::Direct => 0.0,
                OutputPath::Fixup if self.streamed > 0 => {
                    // A cluster begins and ends within tiles. The last one to arrive at a tile adds the shares.
                    let shares = self.k_tiles / real(self.quantum()) + 1.0;
                    let add = PARTIAL * shares * self.tiled.accumulators();
                    SHARES_OF_STREAM * FIXUP + add + self.tiled.epilogue()
                }
                OutputPath::Fixup => {
                    FIXUP + PARTIAL * real(self.splits) * self.tiled.accumulators()
                }
                OutputPath::SecondKernel => self.second_kernel(),
            }
    }

    /// Clocks by which partial output takes longer than C.
    fn partial_output(&self) -> f64 {
        let instance = self.tiled.instance;
        match !instance.is_pingpong && instance.tile[0] > 64 * instance.consumers {
            // Nothing is multiplied while cooperative consumers write two M atoms each. At 2048×5120×20480 such
            // instances have 0.79 of cuBLASLt's speed, and others 0.96.
            true => f64::INFINITY,
            false => 0.0,
        }
    }

    /// Clocks of partial output and of the second kernel.
    fn second_kernel(&self) -> f64 {
        let input = &self.tiled.input;
        let partials = real(8 * self.splits * input.m * input.n) / input.rate();
        let memory = match self.splits {
            1 => 1.0,
            _ => PARTIALS_OF_SPLITS,
        };
        self.partial_output() + SECOND_KERNEL + memory * partials
    }
}
