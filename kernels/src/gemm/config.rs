//! The types that a kernel's configuration is made of. Each says one thing, and its name is how it is written:
//! `Tile<128, 256>`, `Stages<4>`, `Cluster<2, 1>`, `Cooperative<2>`, `EpilogueTile<64>`.

pub use cutlet_device::collective::{Cluster, ClusterShape, DynamicCluster, StageCount, Stages};
use cutlet_device::sm90::{Accumulator, WgmmaInstruction};
use cutlet_layout_core::Fragment;

use super::epilogue::FromSums;

/// A block's tile: `M × N` of C, and k-tiles of `K`.
#[derive(Clone, Copy, Debug)]
pub struct Tile<const M: usize, const N: usize, const K: usize = 64>;

/// The extents of a block's tile: a [`Tile`].
pub trait TileShape: Copy + 'static {
    /// Rows of C.
    const M: usize;
    /// Columns of C.
    const N: usize;
    /// The k of a k-tile.
    const K: usize;
}

impl<const M: usize, const N: usize, const K: usize> TileShape for Tile<M, N, K> {
    const M: usize = M;
    const N: usize = N;
    const K: usize = K;
}

/// The columns of C that leave a block at a time: an epilogue subtile has 64 rows and `N` columns.
#[derive(Clone, Copy, Debug)]
pub struct EpilogueTile<const N: usize>;

/// The columns of the widest epilogue subtile of a tile with `n` columns of `Out`: wider subtiles have longer lines for
/// TMA to write, of at most 128 bytes.
///
/// # Panics
/// If `n` is no multiple of 8.
pub const fn epilogue_n<Out>(n: usize) -> usize {
    let mut columns = 128 / size_of::<Out>();
    while !n.is_multiple_of(columns) {
        columns /= 2;
    }
    assert!(columns >= 8, "a tile has a multiple of 8 columns");
    columns
}

/// `WARPGROUPS` consumer warpgroups that multiply one tile together. Each has `M_ATOMS` times the rows of one
/// instruction.
#[derive(Clone, Copy, Debug)]
pub struct Cooperative<const WARPGROUPS: usize, const M_ATOMS: usize = 1>;

/// Two consumer warpgroups that have a tile each: one multiplies while the other one stores.
#[derive(Clone, Copy, Debug)]
pub struct PingPong<const M_ATOMS: usize = 1>;

/// How the consumer warpgroups of a block share its work: [`Cooperative`] or [`PingPong`].
pub trait Consumers: Copy + 'static {
    /// Consumer warpgroups of a block.
    const WARPGROUPS: usize;
    /// Whether all of them work at the same tile.
    const ARE_COOPERATIVE: bool;
    /// How many times the rows of one instruction a warpgroup has.
    const M_ATOMS: usize;
    /// Consumer warpgroups at a tile.
    const AT_A_TILE: usize = if Self::ARE_COOPERATIVE {
        Self::WARPGROUPS
    } else {
        1
    };
    /// One `V` for each M atom.
    type Atoms<V>: AsMut<[V]>;

    /// The same value for each M atom.
    fn atoms<V: Copy>(value: V) -> Self::Atoms<V>;

    /// Accumulators without a value.
    fn accumulators<I: WgmmaInstruction>() -> Self::Atoms<Accumulator<I>>;

    /// Waits for the sums, and converts them to `F`. All threads of the warpgroup call it.
    fn wait<I: WgmmaInstruction, F: FromSums<I::Acc>>(
        accumulators: Self::Atoms<Accumulator<I>>,
    ) -> Self::Atoms<Fragment<F, I::Values>>;
}

macro_rules! consumers {
    ([$($generics:tt)*] $type:ty: $warpgroups:expr, cooperative $cooperative:literal) => {
        impl<$($generics)*> Consumers for $type {
            const WARPGROUPS: usize = $warpgroups;
            const ARE_COOPERATIVE: bool = $cooperative;
            const M_ATOMS: usize = M_ATOMS;
            type Atoms<V> = [V; M_ATOMS];

            #[inline(always)]
            fn atoms<V: Copy>(value: V) -> [V; M_ATOMS] {
                [value; M_ATOMS]
            }

            #[inline(always)]
            fn accumulators<I: WgmmaInstruction>() -> [Accumulator<I>; M_ATOMS] {
                Accumulator::new_array()
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn wait<I: WgmmaInstruction, F: FromSums<I::Acc>>(
                accumulators: [Accumulator<I>; M_ATOMS],
            ) -> [Fragment<F, I::Values>; M_ATOMS] {
                F::from_sums(Accumulator::wait_array(accumulators))
            }
        }
    };
}
consumers!([const WARPGROUPS: usize, const M_ATOMS: usize] Cooperative<WARPGROUPS, M_ATOMS>: WARPGROUPS, cooperative true);
consumers!([const M_ATOMS: usize] PingPong<M_ATOMS>: 2, cooperative false);
