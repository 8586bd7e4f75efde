//! What a multistage kernel does at a problem.

use crate::gemm::choice::device_speed::{DeviceSpeed, Work};
use crate::gemm::problem::{Groups, Sizes};

/// What the time of a launch depends on.
pub struct Estimate<'a> {
    pub tile: [usize; 3],
    /// Blocks that a multiprocessor runs at the same time.
    pub blocks: usize,
    /// m, n and k.
    pub extents: [usize; 3],
    /// The products.
    pub groups: Groups<'a>,
    /// Whether k may be split: the partials of one product, whose rows are in order, can be added.
    pub is_split: bool,
    pub device: DeviceSpeed,
    /// Bytes of an element of A and B.
    pub bytes: usize,
    /// Whether C is written down its columns.
    pub strided: bool,
    /// Products that a multiprocessor adds in a clock.
    pub speed: f64,
}

/// The share of the memory's stated rate that kernels reach.
const OF_MEMORY_RATE: f64 = 0.8;
/// Clocks that a block takes besides its k-tiles.
const BLOCK: f64 = 2500.0;
/// Clocks of a second kernel.
pub const SECOND_KERNEL: f64 = 4000.0;
/// Bytes that an element of C takes to write if its neighbours in memory are other threads': a sector of the L2 cache.
const SECTOR: f64 = 32.0;
/// The most splits.
const MOST_SPLITS: usize = 128;
/// The fewest k-tiles of a split: a block needs some to fill its ring.
const LEAST_K_TILES: usize = 4;

impl Estimate<'_> {
    fn k_tiles(&self) -> usize {
        self.extents[2].div_ceil(self.tile[2])
    }

    fn tiles(&self) -> usize {
        let columns = self.extents[1].div_ceil(self.tile[1]);
        let rows = match self.groups.sizes {
            // As many as if all groups had as many rows.
            Sizes::Ends(_) => self.extents[0].div_ceil(self.groups.count()),
            _ => self.extents[0],
        };
        rows.div_ceil(self.tile[0]) * columns * self.groups.count()
    }

    pub fn splits(&self, split_k_tiles: usize) -> usize {
        self.k_tiles().div_ceil(split_k_tiles).max(1)
    }

    /// The k-tiles of a split in each way to split: in one to eight, or in so many that blocks fill the device once or
    /// several times.
    pub fn all_split_k_tiles(&self) -> impl Iterator<Item = usize> {
        let (tiles, k_tiles) = (self.tiles(), self.k_tiles());
        let at_a_time = self.device.multiprocessors as usize * self.blocks;
        let is_split = self.is_split;
        let few = 1..=if is_split { 8 } else { 1 };
        let filling = (1..=6).map(move |rounds| rounds * at_a_time / 2 / tiles);
        let splits = few.chain(filling.filter(move |&splits| splits > 8 && is_split));
        splits
            .map(move |splits| k_tiles.div_ceil(splits.min(MOST_SPLITS)).max(1))
            .take_while(move |&split_k_tiles| split_k_tiles >= LEAST_K_TILES.min(k_tiles).max(1))
    }

    /// The estimated time in microseconds.
    pub fn time(&self, split_k_tiles: usize) -> f64 {
        self.device.time_of(self.work(split_k_tiles))
    }

    /// What a launch does.
    fn work(&self, split_k_tiles: usize) -> Work {
        let [m, n, k] = self.tile.map(|it| it as f64);
        let [rows, columns, length] = self.extents.map(|it| it as f64);
        let splits = self.splits(split_k_tiles);
        let blocks = (self.tiles() * splits).div_ceil(self.device.multiprocessors as usize);
        // One block does not keep a multiprocessor busy if there is room for more.
        let at_a_time = blocks.min(self.blocks) as f64;
        let busy = (0.5 + 0.5 * at_a_time / self.blocks as f64).min(1.0);
        let rounds = blocks.div_ceil(self.blocks) as f64;
        let k_tile = m * n * k / self.speed / busy;
        let of_element = match self.strided && splits == 1 {
            true => SECTOR,
            false => 4.0,
        };
        let bytes = (rows + columns) * length * self.bytes as f64 + rows * columns * of_element;
        let second = match splits {
            1 => 0.0,
            _ => {
                let partials = rows * columns * splits as f64 * 8.0;
                let rate = OF_MEMORY_RATE * self.device.bytes_a_clock();
                SECOND_KERNEL + partials / (2.0 * rate)
            }
        };
        let strided = if self.strided { 0.1 * BLOCK } else { 0.0 };
        Work {
            computing: blocks as f64 * split_k_tiles as f64 * k_tile + rounds * BLOCK,
            bytes: bytes * self.groups.count() as f64,
            of_memory_rate: OF_MEMORY_RATE,
            latency: BLOCK,
            overhead: second + strided,
        }
    }
}
