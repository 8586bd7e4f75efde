//! What NVIDIA's Hopper adds to the vocabulary: kernels that use it say `arch = "sm_90a"`.
//!
//! | topic | functions and types |
//! |---|---|
//! | tiles in shared memory | [`SharedTile`], [`KMajorTile`], [`MnMajorTile`], [`TileRing`] |
//! | tensor memory access | [`TensorMap`], [`SharedTile::load`], [`SharedTile::store`], [`tma_load`], [`tma_store`], [`tma_store_commit`], [`tma_store_wait_read`] |
//! | barriers in shared memory | [`Mbarrier`]; [`Pipeline`] pairs them to a ring of stages |
//! | matrix instructions | [`Wgmma`], [`Accumulator`], [`warpgroup_arrive`], [`warpgroup_wait`] |
//! | from registers to shared memory | [`stmatrix`], [`store_accumulator`] |
//! | clusters | [`cluster_arrive`], [`cluster_arrive_relaxed`], [`cluster_wait`], [`cluster_sync`], [`map_shared`], [`store_async`], [`Mailbox`], [`Exchange`], [`Multicast`], [`Seats`] |
//! | sums of several blocks | [`Fixup`], [`Arrivals`] |
//! | sums added to what is there | [`Adding`] |
//! | fences | [`fence_async_shared`], [`fence_mbarrier_init`] |
//! | registers, launches, election | [`increase_registers`], [`decrease_registers`], [`grid_dependency_wait`], [`launch_dependents`], [`Prefetch`], [`elect_one`] |

mod adding;
mod cluster;
mod dependent_launch;
mod descriptor;
mod elect;
mod fixup;
mod float8;
mod mailbox;
mod mbarrier;
mod pipeline;
mod prefetch;
mod proxy;
mod registers;
mod seats;
mod shared_tile;
mod stmatrix;
mod tensor_map;
mod tma;
mod turns;
mod warpgroup;
mod wgmma;
mod words;

pub use adding::Adding;
pub use cluster::{
    Multicast, cluster_arrive, cluster_arrive_relaxed, cluster_sync, cluster_wait, load_cluster,
    map_shared, store_async, store_cluster,
};
pub use dependent_launch::{grid_dependency_wait, launch_dependents};
pub use descriptor::{MatrixDescriptor, Operand, OperandA, OperandB, OperandKind};
pub use elect::elect_one;
pub use fixup::{Arrivals, Fixup};
pub use float8::{F8E4M3, F8E5M2};
pub use mailbox::{Exchange, Mailbox, Receiver, Sender};
pub use mbarrier::Mbarrier;
pub use pipeline::{Consumer, Filled, Filling, Pipeline, Producer, StageIdx};
pub use prefetch::Prefetch;
pub use proxy::{fence_async_shared, fence_mbarrier_init};
pub use registers::{decrease_registers, increase_registers};
pub use seats::{Seat, Seats};
pub use shared_tile::{
    Blocks, KMajor, KMajorTile, Major, MnMajor, MnMajorTile, OperandTile, SharedTile, Span,
    TileRing,
};
pub use stmatrix::{Float16, stmatrix, stmatrix_transposed, store_accumulator};
pub use tensor_map::{TensorMap, prefetch_tensor_map};
pub use tma::{
    CacheHint, LoadOptions, TileBox, tma_load, tma_store, tma_store_commit, tma_store_wait,
    tma_store_wait_read,
};
pub use turns::Turns;
pub use warpgroup::{
    WARPGROUP_SIZE, WarpgroupIdx, WarpgroupThread, warpgroup_idx, warpgroup_sync,
    warpgroup_thread_idx,
};
pub use wgmma::{
    Accumulator, AccumulatorLayout, Batch, WarpgroupThreads, Wgmma, WgmmaInstruction,
    warpgroup_arrive, warpgroup_wait,
};
