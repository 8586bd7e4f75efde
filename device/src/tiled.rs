//! Tiled operations in kernels: copies by a [`TiledCopy`], operands and products of a [`TiledMma`].
//!
//! | what | by |
//! |---|---|
//! | copy a tile, also in part | [`copy`], [`copy_if`], with [`CpAsync`] or [`Width`] as the copy's atom |
//! | copy a tile by TMA | [`copy_tile`], by [`TmaLoad`] or [`TmaStore`]; of a [`TmaMatrix`], or of a [`TmaTensor`] of several modes |
//! | read operands from shared memory | [`load_a`], [`load_b`], by [`LdMatrix`], [`LdMatrixTransposed`], [`VectorsAlongK`], [`VectorsAlongMn`] or [`ByElement`] |
//! | multiply | [`gemm`], with the instructions of [`sm80`](crate::sm80) or [`UniversalFma`] as the atom |
//! | multiply what a product left in registers | [`accumulators_as_a`] |
//! | multiply tiles in shared memory | [`gemm_shared`], with [`Wgmma`](crate::sm90::Wgmma) as the atom |
//! | multiply the tiles of a pipeline's stages | [`gemm_stages`] |
//! | multiply an A in registers by a tile in shared memory | [`gemm_from_registers`], of [`load_registers_a`] or [`accumulators_as_registers_a`] |
//! | store accumulators | [`store_c`], by [`StMatrix`], [`StMatrixTransposed`], [`Width`] or [`ByElement`] |
//! | store accumulators through shared memory by TMA | [`store_c_tile`] |
//! | assert what accesses cost | [`assert_conflict_free`], [`assert_vectorised`] |
//!
//! [`TiledCopy`]: cutlet_layout_core::TiledCopy
//! [`TiledMma`]: cutlet_layout_core::TiledMma
//! [`Width`]: cutlet_layout_core::Width

mod accumulators_as_a;
mod checks;
mod copy;
mod gemm;
mod gemm_from_registers;
mod gemm_shared;
mod gemm_stages;
mod load;
mod load_registers_a;
mod store;
mod store_tile;
mod tma;
mod tma_tensor;
mod universal_fma;
mod vectors;

pub use accumulators_as_a::accumulators_as_a;
pub use checks::{
    CopyAccess, LoadAAccess, LoadBAccess, SharedAccess, StoreCAccess, assert_conflict_free,
    assert_vectorised,
};
pub use copy::{CopyInstruction, CpAsync, copy, copy_if};
pub use gemm::{FragmentC, gemm};
pub use gemm_from_registers::{accumulators_as_registers_a, gemm_from_registers};
pub use gemm_shared::{gemm_shared, wait_c};
pub use gemm_stages::gemm_stages;
pub use load::{
    ByElement, FragmentA, FragmentB, LdMatrix, LdMatrixTransposed, LoadOperands, TileOfA, TileOfB,
    load_a, load_b,
};
pub use load_registers_a::{LoadRegistersA, TileOfRegistersA, load_registers_a};
pub use store::{PackedAs, StMatrix, StMatrixTransposed, StoreC, StoredAs, TileOfC, store_c};
pub use store_tile::store_c_tile;
pub use tma::{TmaCopy, TmaLoad, TmaMatrix, TmaStore, TmaStorePart, TmaTile, copy_tile};
pub use tma_tensor::{TmaTensor, TmaTensorTile};
pub use universal_fma::UniversalFma;
pub use vectors::{Vectors, VectorsAlongK, VectorsAlongMn};
