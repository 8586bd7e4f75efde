//! The GEMM family for Hopper's tensor cores: TMA, `wgmma`, clusters.
//!
//! | file | subject |
//! |---|---|
//! | `config`, `element_types` | what a kernel's type says |
//! | `kernel` | the roles of a block's warpgroups |
//! | `loader` | TMA loads with multicast |
//! | `row_loader` | copies of named rows of A, beside TMA loads of B |
//! | `mainloop` | `wgmma` over the pipeline's stages |
//! | `scaling`, `block_scales`, `transposed_block_scales` | scales of A and B, in a ring of their own |
//! | `promotion` | the mainloop that adds k-tiles' products in f32, scaled or not |
//! | `tf32x3` | the mainloop that multiplies f32 by three products of tf32, and the transform warps |
//! | `store` | from accumulators to C, to partial output, or to the fixup |
//! | `epilogue_subtiles` | the way of a consumer's accumulators to C |
//! | `partial_output` | accumulators in f32 |
//! | `row_store` | from accumulators to named rows of C |
//! | `quantized_store` | from accumulators to a C of e4m3 with scales of blocks |
//! | `swiglu_store` | from accumulators of gates and ups to a C of half as many columns |
//! | [`kernel_traits`], [`instance`] | what the host chooses a kernel by, and how it launches it |
//! | [`instances`], [`k_major_instances`], [`i8_instances`], [`block_scaled_instances`], [`grouped_instances`], [`fp8_group_instances`] | the kernels that the library launches |
//! | `fp8_formats` | those for 8-bit floats of two formats, out of those for e4m3 |

pub mod block_scaled_instances;
mod block_scales;
mod config;
mod element_types;
mod epilogue_subtiles;
mod fp8_formats;
pub mod fp8_group_instances;
pub mod grouped_instances;
pub mod i8_instances;
#[cfg(not(target_arch = "nvptx64"))]
pub mod instance;
#[cfg(not(target_arch = "nvptx64"))]
mod instance_name;
pub mod instances;
pub mod k_major_instances;
mod kernel;
#[cfg(not(target_arch = "nvptx64"))]
pub mod kernel_traits;
mod loader;
mod mainloop;
mod partial_output;
mod promotion;
mod quantized_store;
mod row_loader;
mod row_store;
mod scaling;
mod store;
mod swiglu_store;
mod tf32x3;
mod transposed_block_scales;

pub use block_scales::{BlockScaleOperands, BlockScales, BlockScaling, ScalesOfBlocks, box_scales};
pub use config::{Acc, Config, Sm90, Storage, box_a, box_b, box_c, runs_fixup, writes_partials};
pub use element_types::{
    AccOf, BlockScaled, ElementTypes, InOut, OfI8, OfTf32x3, OperandElement, PromotedInOut,
    StoredF32, TransposedBlockScaled,
};
pub use epilogue_subtiles::{EpilogueSubtiles, StoreMajor};
pub use kernel::{Groups, OneProduct, gemm, gemm_with_block_scales};
pub use loader::ByTma;
pub use promotion::Promoted;
pub use quantized_store::{QuantizedC, ToQuantized};
pub use row_loader::ByRows;
pub use row_store::ToRows;
pub use scaling::{Scaling, Unscaled};
pub use store::ToMatrix;
pub use swiglu_store::ToSwiglu;
pub use tf32x3::Tf32x3;
pub use transposed_block_scales::TransposedBlockScales;
