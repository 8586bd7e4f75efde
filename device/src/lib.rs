//! The vocabulary of a kernel body: everything that a Rust function needs to be a GPU kernel.
//!
//! The API has two implementations. On `nvptx64`, a function is one or a few PTX instructions. Elsewhere it runs on
//! `cutlet-simt`, which executes every GPU thread as a coroutine on the CPU.
//!
//! | topic | functions and types |
//! |---|---|
//! | indices and extents | [`thread_idx`], [`lane_idx`], [`warp_idx`], [`block_idx`], [`block_dim`], [`grid_dim`], [`cluster_rank`] |
//! | barriers | [`sync_threads`], [`sync_warp`], [`barrier_sync`], [`barrier_arrive`] |
//! | warp collectives | [`shfl`], [`shfl_xor`], [`shfl_up`], [`shfl_down`], [`uniform`], [`any`], [`all`], [`ballot`], [`elect_one`] |
//! | reductions | [`warp_sum`], [`warp_max`], [`warp_min`], [`warp_reduce`], [`LogicalWarp`], [`collective::BlockReduce`] |
//! | memory | [`Global`], [`GlobalMut`], [`SharedStorage`], [`Shared`] |
//! | atomics | [`atomic_add`], [`atomic_min`], [`atomic_max`], [`atomic_exchange`], [`atomic_cas`], [`atomic_count`] |
//! | stores of several threads to one element | [`RedAdd`], [`ReduceAdd`], [`Relaxed`] |
//! | signals between blocks | [`atomic_load`], [`atomic_store`], [`wait_until`], [`thread_fence`] |
//! | dependent launches | [`grid_dependency_wait`], [`launch_dependents`] |
//! | arithmetic | [`fma`], [`Float`], [`max_nan`] |
//! | approximate functions | [`exp_approx`], [`exp2_approx`], [`ln_approx`], [`log2_approx`], [`sqrt_approx`], [`rsqrt_approx`], [`rcp_approx`], [`sin_approx`], [`cos_approx`], [`tanh_approx`] |
//! | 8-bit floats | [`fp8`] |
//! | tiles in shared memory, their layouts and swizzles | [`tile`] |
//! | 8×8 matrices between shared memory and registers | [`ldmatrix`], [`stmatrix`] |
//! | copies from global to shared memory by threads: `cp.async` | [`cp_async`] |
//! | mbarriers | [`mbarrier`] |
//! | TMA: tensor maps, loads and stores of boxes | [`tma`], [`fence_async_shared`] |
//! | warpgroups: indices, barriers, numbers of registers | [`warpgroup`] |
//! | barriers of clusters, distributed shared memory | [`cluster`] |
//! | matrix instructions of Ampere and newer: `mma.sync` | [`sm80`] |
//! | matrix instructions of Hopper: `wgmma` | [`sm90`] |
//! | matrix instructions of every architecture, and their operands in shared memory | [`MmaInstruction`], [`SharedMma`], [`operand`] |
//! | tiled copies and tiled matrix products | [`tiled`] |
//! | parts of kernels: schedulers, pipelines, reductions | [`collective`] |
//! | debugging | [`debug::print!`], [`debug::assert!`] |
//!
//! What Hopper introduced needs a kernel with `arch = "sm_90a"`: [`tma`], [`cluster`], [`mbarrier`], [`stmatrix`],
//! [`elect_one`], [`fence_async_shared`], [`ReduceAdd`], and the registers of [`warpgroup`].
#![no_std]
#![cfg_attr(
    target_arch = "nvptx64",
    feature(
        allow_internal_unstable,
        asm_experimental_arch,
        link_llvm_intrinsics,
        stdarch_nvptx
    ),
    allow(internal_features)
)]

#[cfg(not(target_arch = "nvptx64"))]
extern crate std;

mod approximate;
mod atomic;
pub mod cluster;
pub mod collective;
mod convert;
pub mod cp_async;
#[cfg(not(target_arch = "nvptx64"))]
mod cpu;
pub mod debug;
mod dependent_launch;
mod device_data;
mod elect;
mod engine;
#[cfg(target_arch = "nvptx64")]
mod entry;
pub mod fp8;
mod global;
mod index;
mod kernel;
mod kernel_param;
mod ldmatrix;
mod math;
pub mod mbarrier;
mod mma;
pub mod operand;
#[cfg(target_arch = "nvptx64")]
mod panic;
mod partial_sum;
mod ptx_library;
mod red;
mod reduce_add;
mod relaxed;
mod shared;
mod shared_storage;
mod shuffle;
mod since_sm_90;
pub mod sm80;
pub mod sm90;
mod stmatrix;
mod sync;
pub mod tile;
pub mod tiled;
pub mod tma;
mod vector;
mod vote;
mod warp_reduce;
pub mod warpgroup;

pub use approximate::{
    cos_approx, exp_approx, exp2_approx, ln_approx, log2_approx, rcp_approx, rsqrt_approx,
    sin_approx, sqrt_approx, tanh_approx, tanh_approx_f16,
};
pub use atomic::{
    AtomicAdd, AtomicCas, AtomicCell, AtomicExchange, AtomicMax, AtomicMemory, AtomicMin,
    atomic_add, atomic_cas, atomic_count, atomic_exchange, atomic_load, atomic_max, atomic_min,
    atomic_store,
};
pub use convert::{Float, Float16};
#[doc(hidden)]
#[cfg(target_arch = "x86_64")]
pub use cpu::__has_avx2_and_fma;
pub use cutlet_device_macros::{DeviceData, SharedStorage, instantiate, kernel};
pub use dependent_launch::{grid_dependency_wait, launch_dependents};
pub use device_data::DeviceData;
pub use elect::elect_one;
pub use global::{Global, GlobalMut};
pub use index::{
    AnyThreads, BlockCoord, BlockIdx, ClusterRank, Dim3, LaneIdx, ThreadGroup, ThreadIdx, Threads,
    ThreadsOf, WARP_SIZE, WarpIdx, block_dim, block_idx, cluster_rank, cluster_size, grid_dim,
    lane_idx, multiprocessor_idx, thread_idx, warp_idx, warp_idx_sync,
};
pub use kernel::{CpuBody, Kernel, KernelArgs, LaunchBounds, MAX_ARGS};
#[doc(hidden)]
pub use kernel_param::__check_argument;
pub use kernel_param::KernelParam;
pub use ldmatrix::{ldmatrix, ldmatrix_transposed};
pub use math::{Fma, fma, funnel_shift_right, max_nan};
pub use mma::{MmaInstruction, SharedMma};
pub use partial_sum::PartialSum;
pub use ptx_library::{PtxFamily, PtxLibrary, PtxModule, PtxText, PtxWord};
pub use red::{RedAdd, RedAddElement};
pub use reduce_add::{ReduceAdd, ReduceAddElement};
pub use relaxed::Relaxed;
pub use shared::{Shared, SharedMemory};
pub use shared_storage::{SharedArray, SharedStorage, SharedUnion};
pub use shuffle::{
    Shuffle, ShuffleMode, shfl, shfl_down, shfl_up, shfl_xor, transpose_quad, uniform,
};
#[doc(hidden)]
pub use since_sm_90::for_sm_90;
pub use stmatrix::{stmatrix, stmatrix_transposed};
pub use sync::{
    barrier_arrive, barrier_sync, fence_async_shared, sync_threads, sync_warp, thread_fence,
    thread_fence_block, wait_until,
};
pub use vote::{all, any, ballot};
pub use warp_reduce::{LogicalWarp, ReduceElement, warp_max, warp_min, warp_reduce, warp_sum};

/// The guide to tiled operations. Its Rust blocks run as tests. The published package does not contain it.
#[cfg(doctest)]
#[doc = include_str!("../../docs/tiled.md")]
struct Tiled;
