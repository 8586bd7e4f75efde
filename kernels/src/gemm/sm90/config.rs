//! What a kernel's type says: elements, majors, tile, stages, cluster, consumers and epilogue tile; and what follows
//! from them.

use core::marker::PhantomData;

use cutlet_device::collective::{AffinitySlot, DsmemBuffer, Pipeline, TileRing};
use cutlet_device::sm90::{StoredAccumulator, Wgmma, WgmmaInstruction};
use cutlet_device::tile::{Major, OperandLayout, SharedTile, TmaLayout};
use cutlet_device::tma::TmaBox;
use cutlet_device::{LaunchBounds, MmaInstruction, SharedStorage};
use cutlet_layout_core::{E, Fragment, StaticLayout};

use super::element_types::{ElementTypes, OperandElement};
use super::epilogue_subtiles::{self, StoreMajor, SubtileBuffer};
use super::scaling::{ScaleRing, Scaling};
use crate::gemm::config::{
    ClusterShape, Consumers, EpilogueTile, StageCount, Tile, TileShape, epilogue_n,
};
use crate::gemm::epilogue::{ElementC, Epilogue, EpilogueOperands};
use crate::gemm::scheduler::WARP_ROWS;

/// The configuration of a kernel of this family, written by name:
///
/// ```
/// use cutlet_device::tile::KMajor;
/// use cutlet_kernels::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile};
/// use cutlet_kernels::gemm::sm90::{Config, Sm90};
/// use half::bf16;
///
/// type Kernel = Sm90<
///     bf16, KMajor, KMajor, KMajor,
///     Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>, EpilogueTile<64>,
/// >;
/// const { Kernel::CHECK };
/// assert_eq!(Kernel::THREADS, 384);
/// ```
///
/// `T` is the type of A, B and C, or `InOut<bf16, f32>` for a C of another type. `JA` and `JB` say whether A and B (as (n, k)) are K-major. `JC` is `KMajor` for a
/// row-major C, and `MnMajor` for a column-major one, which can only be overwritten, by TMA. `Tl` is the tile, `St` the
/// stages of the pipeline, two at least. `Cl` is the cluster: with a `K` of 2, each of its two blocks multiplies every
/// other k-tile of the same tile, and finishes the rows of one of its two cooperative consumers. `Co` is the consumers,
/// `Ep` the epilogue tile.
///
/// A configuration that cannot work does not compile:
///
/// ```compile_fail,E0080
/// # use cutlet_device::tile::KMajor;
/// # use cutlet_kernels::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile};
/// # use cutlet_kernels::gemm::sm90::{Config, Sm90};
/// # use half::bf16;
/// #
/// // "the epilogue tile is epilogue_n(N) columns wide", which is 64.
/// const { <Sm90<bf16, KMajor, KMajor, KMajor, Tile<128, 256>, Stages<4>, Cluster<2, 1>, Cooperative<2>, EpilogueTile<32>>>::CHECK };
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::tile::KMajor;
/// # use cutlet_kernels::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile};
/// # use cutlet_kernels::gemm::sm90::{Config, Sm90};
/// # use half::bf16;
/// #
/// // "the blocks of a cluster have a tile each, or share one tile".
/// const { <Sm90<bf16, KMajor, KMajor, KMajor, Tile<128, 256>, Stages<4>, Cluster<2, 1, 2>, Cooperative<2>, EpilogueTile<64>>>::CHECK };
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::tile::KMajor;
/// # use cutlet_kernels::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile};
/// # use cutlet_kernels::gemm::sm90::{Config, Sm90};
/// # use half::bf16;
/// #
/// // "a block has registers for 1 to 3 consumers".
/// const { <Sm90<bf16, KMajor, KMajor, KMajor, Tile<256, 128>, Stages<3>, Cluster<2, 1>, Cooperative<4>, EpilogueTile<64>>>::CHECK };
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::tile::KMajor;
/// # use cutlet_kernels::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile};
/// # use cutlet_kernels::gemm::sm90::{Config, Sm90};
/// # use half::bf16;
/// #
/// // "three consumers have registers for 200 columns of accumulators each".
/// const { <Sm90<bf16, KMajor, KMajor, KMajor, Tile<192, 256>, Stages<3>, Cluster<2, 1>, Cooperative<3>, EpilogueTile<64>>>::CHECK };
/// ```
///
/// ```compile_fail,E0080
/// # use cutlet_device::tile::KMajor;
/// # use cutlet_kernels::gemm::config::{Cluster, Cooperative, EpilogueTile, Stages, Tile};
/// # use cutlet_kernels::gemm::sm90::{Config, Sm90};
/// # use half::bf16;
/// #
/// // "a pipeline has two stages or more: one is multiplied while the next one is awaited".
/// const { <Sm90<bf16, KMajor, KMajor, KMajor, Tile<128, 256>, Stages<1>, Cluster<2, 1>, Cooperative<2>, EpilogueTile<64>>>::CHECK };
/// ```
#[derive(Clone, Copy, Debug)]
#[expect(clippy::type_complexity, reason = "a configuration is its parts")]
pub struct Sm90<T, JA, JB, JC, Tl, St, Cl, Co, Ep>(
    PhantomData<(T, JA, JB, JC, Tl, St, Cl, Co, Ep)>,
);

/// A configuration of this family: an [`Sm90`].
pub trait Config: Copy + 'static {
    /// The element types.
    type Types: ElementTypes<In = Self::In, Out = Self::Out, Scaling = Self::Scaling>;
    /// Elements of A and B.
    type In: OperandElement;
    /// Elements of C.
    type Out: StoredAccumulator<Acc = Acc<Self>> + ElementC<Acc = Acc<Self>>;
    /// The scales of A and B.
    type Scaling: Scaling;
    /// Whether A is K-major.
    type MajorA: Major;
    /// Whether B is K-major.
    type MajorB: Major;
    /// Whether C is row-major.
    type MajorC: StoreMajor;
    /// A block's tile.
    type Tile: TileShape;
    /// The stages of the pipeline.
    type Stages: StageCount;
    /// The cluster.
    type Cluster: ClusterShape;
    /// The consumer warpgroups.
    type Consumers: Consumers;
    /// Columns of an epilogue subtile.
    const EPI_N: usize;

    /// The instruction of a consumer.
    type Mma: WgmmaInstruction<
            A = <Self::In as OperandElement>::A,
            B = <Self::In as OperandElement>::B,
            Acc = <Self::Scaling as Scaling>::Sum,
            MajorA = Self::MajorA,
            MajorB = Self::MajorB,
        >;
    /// A stage's tile of A in shared memory.
    type LayoutA: TmaLayout;
    /// A stage's tile of B in shared memory.
    type LayoutB: TmaLayout;

    /// The tile of C, as (m, n).
    type TileC: StaticLayout;
    /// The rows of C whose accumulators one instruction adds to.
    type AtomC: StaticLayout;
    /// An epilogue subtile: columns of an atom.
    type SubtileC: StaticLayout;
    /// The unit in which tiles of C begin: a warp's rows of an epilogue subtile.
    type UnitC: StaticLayout;
    /// The same rows of a k-tile of A, as (m, k).
    type UnitA: StaticLayout;
    /// The same columns of a k-tile of B, as (n, k).
    type UnitB: StaticLayout;

    /// Rows and columns of the tile, in such units.
    const TILE_IN_UNITS: [u32; 2] = [
        (Self::Tile::M / WARP_ROWS) as u32,
        (Self::Tile::N / Self::EPI_N) as u32,
    ];
    /// M atoms of the tile.
    const M_ATOMS: u32 = (Self::Tile::M / Self::Mma::M) as u32;
    /// Threads of a block: a producer warpgroup and the consumers.
    const THREADS: u32 = 128 * (1 + Self::Consumers::WARPGROUPS) as u32;
    /// Columns of a consumer's subtiles that have room in shared memory at a time.
    const STAGED_COLUMNS: usize = {
        let most = LaunchBounds::MOST_SHARED_BYTES as usize;
        let left = most.saturating_sub(bytes_without_subtiles::<Self>());
        epilogue_subtiles::columns_that_fit::<Self>(left)
    };

    /// Proves that the parts of the configuration fit each other.
    const CHECK: () = {
        let (warpgroups, m_atoms) = (Self::Consumers::WARPGROUPS, Self::Consumers::M_ATOMS);
        assert!(
            matches!(warpgroups, 1..=3),
            "a block has registers for 1 to 3 consumers"
        );
        assert!(
            warpgroups < 3 || m_atoms * Self::Tile::N <= 200,
            "three consumers have registers for 200 columns of accumulators each"
        );
        assert!(
            Self::Tile::M == Self::Mma::M * m_atoms * Self::Consumers::AT_A_TILE,
            "the consumers at a tile have 64 of its rows for each of their M atoms"
        );
        assert!(
            Self::Stages::STAGES > 1,
            "a pipeline has two stages or more: one is multiplied while the next one is awaited"
        );
        assert!(
            Self::Tile::K == 4 * Self::Mma::K,
            "a k-tile has the k of four instructions: 128 bytes of a row"
        );
        assert!(
            Self::EPI_N == epilogue_n::<Self::Out>(Self::Tile::N),
            "the epilogue tile is epilogue_n(N) columns wide"
        );
        assert!(
            Self::Cluster::K == 1
                || (Self::Cluster::K == 2
                    && Self::Tile::M == 128
                    && Self::Consumers::AT_A_TILE == 2),
            "two blocks share a tile that each has two cooperative consumers for"
        );
    };
}

impl<T, JA, JB, JC, St, Cl, Co, const M: usize, const N: usize, const K: usize, const EPI_N: usize>
    Config for Sm90<T, JA, JB, JC, Tile<M, N, K>, St, Cl, Co, EpilogueTile<EPI_N>>
where
    T: ElementTypes,
    JA: Major,
    JB: Major,
    JC: StoreMajor,
    St: StageCount,
    Cl: ClusterShape,
    Co: Consumers,
    Wgmma<N, <T::In as OperandElement>::A, <T::In as OperandElement>::B, JA, JB>: WgmmaInstruction<
            A = <T::In as OperandElement>::A,
            B = <T::In as OperandElement>::B,
            Acc = <T::Scaling as Scaling>::Sum,
            MajorA = JA,
            MajorB = JB,
        >,
{
    type Types = T;
    type In = T::In;
    type Out = T::Out;
    type Scaling = T::Scaling;
    type MajorA = JA;
    type MajorB = JB;
    type MajorC = JC;
    type Tile = Tile<M, N, K>;
    type Stages = St;
    type Cluster = Cl;
    type Consumers = Co;
    const EPI_N: usize = EPI_N;
    type Mma = Wgmma<N, <T::In as OperandElement>::A, <T::In as OperandElement>::B, JA, JB>;
    type LayoutA = OperandLayout<T::In, JA, M, K, 128>;
    type LayoutB = OperandLayout<T::In, JB, N, K, 128>;
    type TileC = (E<M, 1, 0>, E<N, 1, 1>);
    type AtomC = (E<64, 1, 0>, E<N, 1, 1>);
    type SubtileC = (E<64, 1, 0>, E<EPI_N, 1, 1>);
    type UnitC = (E<WARP_ROWS, 1, 0>, E<EPI_N, 1, 1>);
    type UnitA = (E<WARP_ROWS, 1, 0>, E<K, 1, 1>);
    type UnitB = (E<EPI_N, 1, 0>, E<K, 1, 1>);
}

/// Elements of A, as the instruction reads them.
pub(super) type ElementA<C> = <<C as Config>::In as OperandElement>::A;
/// Elements of B.
type ElementB<C> = <<C as Config>::In as OperandElement>::B;

/// A stage's tile of A in shared memory.
pub(super) type SharedA<C> =
    SharedTile<ElementA<C>, <C as Config>::LayoutA, <<C as Config>::LayoutA as TmaLayout>::Swizzle>;
/// A stage's tile of B in shared memory.
pub(super) type SharedB<C> =
    SharedTile<ElementB<C>, <C as Config>::LayoutB, <<C as Config>::LayoutB as TmaLayout>::Swizzle>;
/// The stages' tiles of A.
pub(super) type RingA<C> = TileRing<
    ElementA<C>,
    <C as Config>::LayoutA,
    <<C as Config>::LayoutA as TmaLayout>::Swizzle,
    <C as Config>::Stages,
>;
/// The stages' tiles of B.
pub(super) type RingB<C> = TileRing<
    ElementB<C>,
    <C as Config>::LayoutB,
    <<C as Config>::LayoutB as TmaLayout>::Swizzle,
    <C as Config>::Stages,
>;

/// What a block keeps in shared memory.
#[derive(Clone, Copy, SharedStorage)]
pub struct Storage<C: Config> {
    pub(super) rings: (RingA<C>, RingB<C>),
    pub(super) scales: ScaleRing<C>,
    pub(super) buffers: SubtileBuffer<C>,
    pub(super) pipeline: Pipeline<C::Stages, C::Cluster>,
    pub(super) slot: AffinitySlot,
    pub(super) dsmem: ClusterStorage<C>,
}

/// Room for the other block's accumulators, where two blocks have the same tile.
#[derive(Clone, Copy)]
pub(super) struct ClusterStorage<C: Config>(DsmemBuffer<Values<C>, Acc<C>>);

impl<C: Config> SharedStorage for ClusterStorage<C> {
    const BYTES: u32 = match C::Cluster::K {
        1 => 0,
        _ => DsmemBuffer::<Values<C>, Acc<C>>::BYTES,
    };
    const ALIGN: u32 = DsmemBuffer::<Values<C>, Acc<C>>::ALIGN;

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self(SharedStorage::at(address))
    }
}

impl<C: Config> ClusterStorage<C> {
    /// The buffer. It may be used only where two blocks have the same tile.
    #[inline(always)]
    pub fn buffer(self) -> DsmemBuffer<Values<C>, Acc<C>> {
        self.0
    }
}

/// The type of the accumulators that the epilogue gets.
pub type Acc<C> = <<C as Config>::Scaling as Scaling>::Acc;
/// A thread's accumulators of one M atom.
pub(super) type AtomFragment<C> = Fragment<Acc<C>, Values<C>>;
/// Which of an atom's accumulators are a thread's.
pub(super) type Values<C> = <<C as Config>::Mma as MmaInstruction>::Values;

/// Bytes of shared memory without epilogue subtiles.
const fn bytes_without_subtiles<C: Config>() -> usize {
    type Others<C> = (
        (RingA<C>, RingB<C>),
        ScaleRing<C>,
        Pipeline<<C as Config>::Stages, <C as Config>::Cluster>,
        AffinitySlot,
        ClusterStorage<C>,
    );
    Others::<C>::BYTES as usize
}

/// The box of A's tensor map, in clusters of so many rows and columns. The blocks of a row load A together.
pub const fn box_a<C: Config>([_, columns]: [u32; 2]) -> TmaBox {
    SharedA::<C>::multicast_box(columns as usize)
}

/// The box of B's tensor map, in clusters of so many rows and columns. The blocks of a column load B together.
pub const fn box_b<C: Config>([rows, _]: [u32; 2]) -> TmaBox {
    SharedB::<C>::multicast_box(rows as usize)
}

/// The box of C's tensor map: a warp's rows of an epilogue subtile.
pub const fn box_c<C: Config>() -> TmaBox {
    epilogue_subtiles::tma_box::<C>()
}

/// Whether a kernel with this epilogue can write partial output. An epilogue that reads operands leaves no registers
/// for it.
pub const fn writes_partials<Epi: Epilogue>() -> bool {
    EpilogueOperands::<Epi>::ARE_NONE
}

/// Whether the blocks of a kernel with this epilogue can run the fixup. It takes registers for the partials of another
/// split, which consumers of several M atoms or of more than 128 columns do not have. An epilogue that reads operands
/// leaves them only where C is column-major: such tiles have few columns.
pub const fn runs_fixup<C: Config, Epi: Epilogue>() -> bool {
    C::Tile::N <= 128
        && C::Consumers::M_ATOMS == 1
        && C::Cluster::K == 1
        && (writes_partials::<Epi>() || !C::MajorC::IS_K_MAJOR)
}

/// Whether a kernel with this epilogue can stream tiles. Where it does not, that costs up to 1.7 % with 128 columns,
/// and nothing that shows with fewer. Promoted sums of a column-major C are those of few rows, which memory bounds.
pub const fn streams_tiles<C: Config, Epi: Epilogue>() -> bool {
    let is_for_few_rows = C::Scaling::IS_PROMOTED && !C::MajorC::IS_K_MAJOR;
    (C::Tile::N < 128 || is_for_few_rows) && runs_fixup::<C, Epi>()
}
