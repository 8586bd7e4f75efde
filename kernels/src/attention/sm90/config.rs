//! What a kernel's type says: the element type, the features of a head, the block of keys and the stages; and what
//! follows.

use core::marker::PhantomData;

use cutlet_device::collective::{Pipeline, StageCount, Stages, TileRing};
use cutlet_device::sm90::{RegisterElement, Wgmma, WgmmaInstruction};
use cutlet_device::tile::{KMajor, MnMajor, OperandLayout, SharedTile, TmaLayout};
use cutlet_device::tma::TmaBox;
use cutlet_device::{Float16, SharedStorage};
use cutlet_layout_core::{L, ThreadValue, TileShape, Tv};

/// Queries of a consumer: the rows of an instruction.
pub const ROWS: usize = 64;
/// Consumers of a block.
pub const CONSUMERS: usize = 2;

/// The configuration of a kernel: elements of `T`, heads of up to `FEATURES` features, blocks of `KEYS` keys, and
/// `STAGES` stages of keys and of values. A tile has 128 queries, 64 for each of two consumers.
///
/// ```
/// use cutlet_kernels::attention::sm90::config::{Config, Sm90};
/// use half::bf16;
///
/// type Kernel = Sm90<bf16, 128, 128, 2>;
/// const { Kernel::CHECK };
/// assert_eq!(Kernel::THREADS, 384);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sm90<T, const FEATURES: usize, const KEYS: usize, const STAGES: usize>(PhantomData<T>);

/// A configuration: a [`Sm90`].
pub trait Config: Copy + 'static {
    /// Elements of all tensors.
    type Element: Default + Float16 + RegisterElement;
    /// The most features of a head.
    const FEATURES: usize;
    /// Keys of a block of keys.
    const KEYS: usize;
    /// Stages of keys, and of values.
    type Stages: StageCount;

    /// Scores = queries · keysᵀ.
    type Scores: WgmmaInstruction<A = Self::Element, B = Self::Element, Acc = f32>;
    /// Output = weights · values.
    type Output: WgmmaInstruction<A = Self::Element, B = Self::Element, Acc = f32>;
    /// A consumer's queries, (query, feature).
    type Queries: TmaLayout + TileShape;
    /// A block's keys, (key, feature).
    type Keys: TmaLayout;
    /// A block's values, (feature, key).
    type Values: TmaLayout;
    /// Which elements of a consumer's output a thread stores.
    type Stores: ThreadValue;

    /// Threads of a block.
    const THREADS: u32 = 128 * (1 + CONSUMERS as u32);
    /// Queries of a tile.
    const QUERIES: u32 = (ROWS * CONSUMERS) as u32;

    /// Proves that the parts of the configuration fit each other.
    const CHECK: () = {
        assert!(
            Self::KEYS.is_multiple_of(16),
            "a block has a multiple of 16 keys, which is the k of an instruction"
        );
        assert!(
            Self::Stages::STAGES > 1,
            "there are two stages or more: one is multiplied while the next one is loaded"
        );
    };
}

impl<T, const FEATURES: usize, const KEYS: usize, const STAGES: usize> Config
    for Sm90<T, FEATURES, KEYS, STAGES>
where
    T: Default + Float16 + RegisterElement,
    Wgmma<KEYS, T>: WgmmaInstruction<A = T, B = T, Acc = f32>,
    Wgmma<FEATURES, T, T, KMajor, MnMajor>: WgmmaInstruction<A = T, B = T, Acc = f32>,
    Features<FEATURES>: StoredFeatures,
{
    type Element = T;
    const FEATURES: usize = FEATURES;
    const KEYS: usize = KEYS;
    type Stages = Stages<STAGES>;
    type Scores = Wgmma<KEYS, T>;
    type Output = Wgmma<FEATURES, T, T, KMajor, MnMajor>;
    type Queries = OperandLayout<T, KMajor, ROWS, FEATURES, 128>;
    type Keys = OperandLayout<T, KMajor, KEYS, FEATURES, 128>;
    type Values = OperandLayout<T, MnMajor, FEATURES, KEYS, 128>;
    type Stores = <Features<FEATURES> as StoredFeatures>::Stores;
}

/// Features of a head.
#[derive(Clone, Copy, Debug)]
pub struct Features<const FEATURES: usize>;

/// How a warpgroup stores 64 rows of so many features: eight neighbours a thread and access. A thread stores the rows
/// whose accumulators it has.
pub trait StoredFeatures {
    /// Which elements a thread stores.
    type Stores: ThreadValue;
}

macro_rules! stored {
    ($($features:literal: $values:ty;)+) => {$(
        impl StoredFeatures for Features<$features> {
            type Stores = Tv<L!((4, 8, 4):(8@1, 1@0, 16@0)), $values, 8>;
        }
    )+};
}
stored! {
    64: L!((8, 2, 2):(1@1, 8@0, 32@1));
    128: L!((8, 2, 4):(1@1, 8@0, 32@1));
    256: L!((8, 2, 8):(1@1, 8@0, 32@1));
}

/// The consumers' queries, one tile each.
pub(super) type RingOfQueries<C> = Ring<C, <C as Config>::Queries, Stages<CONSUMERS>>;
/// The stages of keys.
pub(super) type RingOfKeys<C> = Ring<C, <C as Config>::Keys, <C as Config>::Stages>;
/// The stages of values.
pub(super) type RingOfValues<C> = Ring<C, <C as Config>::Values, <C as Config>::Stages>;
/// Tiles of layout `L`.
type Ring<C, L, S> = TileRing<<C as Config>::Element, L, <L as TmaLayout>::Swizzle, S>;
/// A tile of layout `L`.
pub(super) type Tile<C, L> = SharedTile<<C as Config>::Element, L, <L as TmaLayout>::Swizzle>;

/// What a block keeps in shared memory.
#[derive(Clone, Copy, SharedStorage)]
pub struct Storage<C: Config> {
    pub(super) queries: (RingOfQueries<C>, Pipeline<Stages<CONSUMERS>>),
    pub(super) keys: (RingOfKeys<C>, Pipeline<C::Stages>),
    pub(super) values: (RingOfValues<C>, Pipeline<C::Stages>),
}

/// The boxes of the maps of queries, keys and values, whose dimensions are features, rows, heads and sequences.
pub const fn boxes<C: Config>() -> [TmaBox; 3] {
    [
        Tile::<C, C::Queries>::tile_box(1),
        Tile::<C, C::Keys>::tile_box(1),
        Tile::<C, C::Values>::tile_box(1),
    ]
}
