//! What a kernel's type says: the element type, the features of a head, and the block of queries; and what follows.

use core::marker::PhantomData;

use cutlet_device::collective::{self, Pipeline, StageIdx, TileRing, VectorRing};
use cutlet_device::sm90::{RegisterElement, StoredAccumulator, Wgmma, WgmmaInstruction};
use cutlet_device::tile::{KMajor, MnMajor, OperandLayout, SharedTile, TmaLayout};
use cutlet_device::tma::TmaBox;
use cutlet_device::{Float16, SharedStorage};
use cutlet_layout_core::{L, M, StaticLayout, ThreadValue, TileShape, Tv};

use crate::attention::sm90::config::{CONSUMERS, Features, ROWS, StoredFeatures};

/// Keys of a tile: [`ROWS`] for each consumer.
pub const KEYS: usize = ROWS * CONSUMERS;
/// Stages of queries and of the output's gradient.
pub(super) type Stages = collective::Stages<2>;
/// Queries of a part of a block: the columns of a consumer's scores, which registers hold at a time.
pub const PART: usize = 64;
/// Columns of a consumer's accumulators of dQ.
const COLUMNS_OF_QUERIES: usize = 64;

/// The configuration of a kernel: elements of `T`, heads of up to `FEATURES` features, and blocks of `QUERIES` queries.
/// A tile has 128 keys, 64 for each of two consumers. The consumers also divide each block's dQ: its features, or its
/// queries.
///
/// ```
/// use cutlet_kernels::attention::sm90::backward::config::{Config, Sm90Backward};
/// use half::bf16;
///
/// type Kernel = Sm90Backward<bf16, 128, 64>;
/// const { Kernel::CHECK };
/// assert_eq!(Kernel::THREADS, 384);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sm90Backward<T, const FEATURES: usize, const QUERIES: usize>(PhantomData<T>);

/// A configuration: a [`Sm90Backward`].
pub trait Config: Copy + 'static {
    /// Elements of all tensors.
    type Element: Default + Float16 + RegisterElement + StoredAccumulator<Acc = f32>;
    /// The most features of a head.
    const FEATURES: usize;
    /// Queries of a block.
    const QUERIES: usize;

    /// Sᵀ = keys · queriesᵀ, and dPᵀ = values · gradientsᵀ.
    type Scores: WgmmaInstruction<A = Self::Element, B = Self::Element, Acc = f32>;
    /// dV = Pᵀ · gradients, and dK = dSᵀ · queries.
    type OfKeys: WgmmaInstruction<A = Self::Element, B = Self::Element, Acc = f32>;
    /// A consumer's part of dQ = dS · keys.
    type OfQueries: WgmmaInstruction<A = Self::Element, B = Self::Element, Acc = f32>;
    /// A tile's keys, (key, feature).
    type Keys: TmaLayout;
    /// The same memory as (feature, key).
    type KeysByFeature: TmaLayout;
    /// A consumer's values, (key, feature). Its dV and dK leave by the same memory.
    type Values: TmaLayout + TileShape;
    /// A part of a block's queries or gradients, (query, feature).
    type Queries: TmaLayout + TileShape;
    /// The same memory as (feature, query).
    type QueriesByFeature: TmaLayout;
    /// A part of a consumer's dS, (key, query).
    type ScoresByKey: TmaLayout;
    /// The dS of all consumers, (query, key).
    type ScoresByQuery: TmaLayout;
    /// A number for each query of a block.
    type PerQuery: StaticLayout;
    /// A block's queries or gradients, (query, feature): its parts, one after the other.
    type Block: TmaLayout + TileShape;
    /// Which elements of 64 rows of dK or dV a thread stores.
    type StoresOfKeys: ThreadValue;
    /// Which elements of the output and its gradient a thread reads for [`statistics`](super::statistics): those of
    /// every 16th row. Eight lanes share a row.
    type OfStatistics: ThreadValue;

    /// Threads of a block.
    const THREADS: u32 = 128 * (1 + CONSUMERS as u32);
    /// Parts of a block.
    const PARTS: usize = Self::QUERIES / PART;
    /// Whether consumers divide the features of dQ, not its queries.
    const DIVIDES_FEATURES: bool = Self::FEATURES > COLUMNS_OF_QUERIES;

    /// Proves that the parts of the configuration fit each other.
    const CHECK: () = {
        assert!(
            Self::FEATURES * Self::QUERIES == CONSUMERS * ROWS * COLUMNS_OF_QUERIES,
            "each consumer has 64 × 64 elements of a block's dQ"
        );
        assert!(
            Self::PARTS == 1 || Self::FEATURES * size_of::<Self::Element>() == 128,
            "the parts of a block lie one after the other if a row has one swizzle span"
        );
    };
}

macro_rules! configurations {
    ($($features:literal, $queries:literal: $statistics:ty;)+) => {$(
        impl<T> Config for Sm90Backward<T, $features, $queries>
        where
            T: Default + Float16 + RegisterElement + StoredAccumulator<Acc = f32>,
            Wgmma<PART, T>: WgmmaInstruction<A = T, B = T, Acc = f32>,
            Wgmma<$features, T, T, KMajor, MnMajor>: WgmmaInstruction<A = T, B = T, Acc = f32>,
            Wgmma<COLUMNS_OF_QUERIES, T, T, KMajor, MnMajor>: WgmmaInstruction<A = T, B = T, Acc = f32>,
        {
            type Element = T;
            const FEATURES: usize = $features;
            const QUERIES: usize = $queries;
            type Scores = Wgmma<PART, T>;
            type OfKeys = Wgmma<$features, T, T, KMajor, MnMajor>;
            type OfQueries = Wgmma<COLUMNS_OF_QUERIES, T, T, KMajor, MnMajor>;
            type Keys = OperandLayout<T, KMajor, KEYS, $features, 128>;
            type KeysByFeature = OperandLayout<T, MnMajor, $features, KEYS, 128>;
            type Values = OperandLayout<T, KMajor, ROWS, $features, 128>;
            type Queries = OperandLayout<T, KMajor, PART, $features, 128>;
            type QueriesByFeature = OperandLayout<T, MnMajor, $features, PART, 128>;
            type ScoresByKey = OperandLayout<T, MnMajor, ROWS, PART, 128>;
            type ScoresByQuery = OperandLayout<T, KMajor, $queries, KEYS, 128>;
            type PerQuery = M<$queries, 1>;
            type Block = OperandLayout<T, KMajor, $queries, $features, 128>;
            type StoresOfKeys = <Features<$features> as StoredFeatures>::Stores;
            type OfStatistics = Tv<L!((8, 16):(8@1, 1@0)), $statistics, 8>;
        }
    )+};
}
configurations! {
    64, 128: L!((8, 8):(1@1, 16@0));
    128, 64: L!((8, 2, 4):(1@1, 64@1, 16@0));
}

/// The numbers of a part's queries, of a thread's columns of scores.
pub(super) type Columns = Tv<L!((4, 8, 4):(2, 0, 0)), L!((2, 8):(1, 8)), 2>;

/// The place of a consumer's part of a block's dQ in the sums: vectors of four accumulators of each thread, one after
/// the other.
pub(super) type SumsOfBlock = L!((8, 512):(512, 1));
/// A thread's vectors in it.
pub(super) type SumsOfThread = Tv<L!(128:4@1), L!((4, 8):(1@1, 1@0)), 4>;

/// A consumer's tile of dQ.
pub(super) type TileOfQueries<T> = OperandLayout<T, KMajor, ROWS, COLUMNS_OF_QUERIES, 128>;
/// One for each consumer.
pub(super) type TilesOfQueries<C> =
    Ring<C, TileOfQueries<<C as Config>::Element>, collective::Stages<CONSUMERS>>;
/// Which elements of it a thread stores.
pub(super) type StoresOfQueries = <Features<COLUMNS_OF_QUERIES> as StoredFeatures>::Stores;

/// The stages of queries, or of gradients.
pub(super) type RingOfQueries<C> = Ring<C, <C as Config>::Block, Stages>;
/// Numbers for the queries of each stage.
pub(super) type RingOfNumbers<C> = VectorRing<f32, <C as Config>::PerQuery, Stages>;
/// The stages of dS.
pub(super) type RingOfScores<C> = Ring<C, <C as Config>::ScoresByQuery, Stages>;
/// Tiles of layout `L`.
type Ring<C, L, S> = TileRing<<C as Config>::Element, L, <L as TmaLayout>::Swizzle, S>;
/// A tile of layout `L`.
pub(super) type Tile<C, L> = SharedTile<<C as Config>::Element, L, <L as TmaLayout>::Swizzle>;

/// What a block keeps in shared memory.
#[derive(Clone, Copy, SharedStorage)]
pub struct Storage<C: Config> {
    pub(super) keys: (Tile<C, C::Keys>, Pipeline<collective::Stages<1>>),
    pub(super) values: (
        Ring<C, C::Values, collective::Stages<CONSUMERS>>,
        Pipeline<collective::Stages<1>>,
    ),
    pub(super) queries: RingOfQueries<C>,
    pub(super) gradients: RingOfQueries<C>,
    pub(super) log_sums: RingOfNumbers<C>,
    pub(super) row_sums: RingOfNumbers<C>,
    pub(super) scores: RingOfScores<C>,
    /// The stages of queries, gradients and their numbers.
    pub(super) full: Pipeline<Stages>,
}

/// The boxes of the maps of queries and gradients, of keys, of values, and of the statistics. The first three have the
/// dimensions features, rows, heads and sequences. That of the statistics has the queries of a block, and then `log_sums`
/// and `row_sums` of all blocks by turns.
pub const fn boxes<C: Config>() -> [TmaBox; 4] {
    [
        Tile::<C, C::Queries>::tile_box(1),
        Tile::<C, C::Keys>::tile_box(1),
        Tile::<C, C::Values>::tile_box(1),
        TmaBox {
            extent: [C::QUERIES as u32, 1],
            swizzle_bytes: 16,
        },
    ]
}

/// A part of a stage.
#[inline(always)]
pub(super) fn part_of<C: Config>(
    ring: RingOfQueries<C>,
    stage: StageIdx,
    part: usize,
) -> Tile<C, C::Queries> {
    let first = (part * C::Queries::SIZE) as i64;
    Tile::<C, C::Queries>::from_shared(ring.stage(stage).start().offset(first))
}
