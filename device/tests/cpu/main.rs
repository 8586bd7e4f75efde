//! Instructions, collectives and a small GEMM on the CPU backend, compared with plain loops.

mod fixture;

mod cluster;
mod cp_async;
mod dependent_launch;
mod ldmatrix;
mod mbarrier;
mod reduce_add;
mod stmatrix;
mod tiled;
mod tiled_checks;
mod tiled_registers;
mod tiled_store;
mod tiled_tma;
mod tma;
mod tma_tensor;
mod too_early;

mod sm80 {
    mod accumulators_to_a;
    mod mma_sync;
}

mod sm90 {
    mod wgmma;
}

mod collective {
    mod block_reduce;
    mod cluster_reduce;
    mod cp_async_pipeline;
    mod fixup;
    mod pipeline;
    mod sm_affinity;
    mod splits;
    mod stream_k;
}

mod gemm;
mod races;
mod shared_elements;
