//! The tests of the library's operations, as one program.

mod batches;
mod by_kernel;
mod convert;
mod place;
mod random;
mod reference;
mod rounding;
mod small;

mod checked_indices;
mod contract;
#[cfg(feature = "dlpack")]
mod dlpack;
mod embedding_bag;
mod gather;
mod gemm_batched;
mod gemm_block_scales;
mod gemm_epilogue;
mod gemm_gathered;
mod gemm_simt;
mod gemm_sm80;
mod gemm_sm90;
mod gemm_swiglu;
mod gemv;
mod grouped_cost;
mod kernels;
mod linear;
mod moe;
mod operands;
mod order;
mod owned_graph;
mod permute;
mod plan;
mod precision;
mod ptx;
mod rows_map;
mod rows_norm;
mod rows_quantize;
mod rows_reduce;
mod rows_rope;
mod rows_softmax;
mod scatter;
mod sorting;
mod swiglu;
mod take_along_dim;
mod tensor;
