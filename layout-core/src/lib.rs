//! CuTe layouts, their algebra, and tensors over them.
//!
//! A [`Layout`] is a `Copy` value without a heap. The whole algebra is `const fn`: the compiler
//! computes a kernel's layouts, and a host calls the same functions at run time. An operation
//! without a layout as its result says why: with a compile error in a `const`, a panic at run time,
//! or a [`LayoutError`] from the function of the same name with `try_`.
#![no_std]
#![allow(
    clippy::wrong_self_convention,
    reason = "a layout is a kilobyte: methods borrow it"
)]

mod access;
mod atom;
mod by_layout;
mod by_tiler;
mod coalesce;
mod complement;
mod composed;
mod composition;
pub mod contraction;
mod coordinate;
mod coordinate_layout;
mod coverage;
mod divide;
mod divisor;
mod engine;
mod entry;
mod error;
mod explain;
mod flat_modes;
mod fragment;
mod identity_tensor;
mod inner;
mod int;
mod int_tuple;
mod inverse;
mod layout;
mod long_vector;
mod major;
mod modes;
mod notation;
mod parse;
mod partition;
pub mod picture;
mod product;
mod profile;
mod raster;
mod recast;
mod relations;
#[cfg(feature = "serde")]
mod serde_text;
mod shape_arithmetic;
mod slice;
mod static_layout;
mod swizzle;
mod tensor;
mod tensor_map;
mod text;
mod tile;
mod tiled;
mod tiler;
mod value_tensor;

pub use access::WarpAccess;
pub use atom::{
    CopyAtom, CopyTiling, Fma, M8N8K4Bits64, M16N8K8Bits16, M16N8K8Bits32, M16N8K8Bits64,
    M16N8K16Bits8, M16N8K16Bits16, M16N8K16Bits64, M16N8K32Bits8, Mma, MmaAtom, MmaTiling, WgmmaA8,
    WgmmaA16, WgmmaA32, WgmmaC,
};
pub use coalesce::{
    coalesce, coalesce_by_mode, filter, filter_by_mode, filter_zeros, try_coalesce_by_mode,
    try_filter_by_mode,
};
pub use complement::{complement, try_complement};
pub use composed::{ComposedLayout, Named, Transform};
pub use composition::{composition, try_composition};
pub use coordinate::{
    Coordinates, coordinates, crd2crd, crd2idx, idx2crd, idx2crd_strided, linear_coordinate,
    try_crd2crd, try_crd2idx, try_idx2crd, try_idx2crd_strided, try_linear_coordinate,
};
pub use divide::{
    composition_by_mode, flat_divide, logical_divide, tiled_divide, try_composition_by_mode,
    try_flat_divide, try_logical_divide, try_tiled_divide, try_zipped_divide, zipped_divide,
};
pub use error::{ErrorKind, LayoutError};
pub use explain::{Explanation, Operation, explain};
pub use int::{Basis, Int};
pub use int_tuple::IntTuple;
pub use inverse::{
    domain_distribute, left_inverse, max_common_layout, max_common_vector, nullspace,
    right_inverse, try_domain_distribute, try_left_inverse, try_max_common_layout,
    try_max_common_vector, try_nullspace, try_right_inverse,
};
pub use layout::Layout;
pub use major::{
    compact_col_major, compact_order, compact_row_major, fragment_like, identity, layout_like,
    ordered_layout, try_compact_col_major, try_compact_order, try_compact_row_major,
    try_fragment_like, try_identity, try_layout_like, try_ordered_layout,
};
pub use product::{
    blocked_product, flat_product, logical_product, raked_product, tile_to_shape, tiled_product,
    try_blocked_product, try_flat_product, try_logical_product, try_raked_product,
    try_tile_to_shape, try_tiled_product, try_zipped_product, zipped_product,
};
pub use profile::{CAPACITY, MAX_DEPTH};
pub use recast::{downcast, recast, try_downcast, try_recast, try_upcast, upcast};
pub use relations::{
    compare_colexicographic, compare_elementwise, compare_lexicographic, compatible, congruent,
    evenly_divides, weakly_congruent,
};
pub use shape_arithmetic::{
    ceil_div, gcd, inner_product, layout_div, prefix_product, product, product_each, round_up,
    safe_div, shape_div, shape_mod, try_ceil_div, try_inner_product, try_layout_div,
    try_prefix_product, try_product, try_product_each, try_round_up, try_safe_div, try_shape_div,
    try_shape_mod,
};
pub use slice::{dice, slice, slice_and_offset, try_dice, try_slice, try_slice_and_offset};
pub use swizzle::Swizzle;
pub use tiler::{Tiler, TilerKind};

pub use coordinate_layout::CoordinateLayout;
pub use coverage::{assert_covers, covers_exactly};
pub use divisor::{Divide, Divisor};
#[cfg(not(target_arch = "nvptx64"))]
pub use engine::Line;
pub use engine::{Engine, EngineMut};
pub use fragment::{Fragment, FragmentLayout, FragmentStorage};
pub use identity_tensor::Identity;
pub use inner::{
    AnyStrides, Bound, BoundGather, ColMajor, Fixed, Gather, Inner, MatrixInner, NoSwizzle,
    RowIndex, RowMajor, StaticSwizzle, Strided, Sw,
};
pub use long_vector::LongVector;
pub use partition::{AccessWidth, ThreadIndex, ThreadValue, Tv, Width};
pub use raster::Raster;
pub use static_layout::{Composition, E, M, StaticLayout, compose_coordinates, each};
pub use tensor::{Partition, Tensor};
pub use tensor_map::{TensorMapFault, TensorMapShape};
pub use tile::{Coord, KnownExtent, TileIndex, Whole, tile_extent, tile_origin, tiles};
pub use tiled::{
    Arrangement, CopyPartition, CopyWidth, Divided, Half, InOrder, Matrices, MatrixRows, OperandA,
    OperandB, OperandC, PartitionA, PartitionB, PartitionC, PartitionRows, PartitionValues,
    Permutation, Repeats, Steps, StoredMatrices, ThreadCopy, ThreadMma, TileShape, Tiled,
    TiledCopy, TiledMma,
};
pub use value_tensor::{Counting, Direct, Memory, MemoryMut, Number, Recast, Source, ValueTensor};

/// The guide to layouts. Its Rust blocks run as tests. The published package does not contain it.
#[cfg(doctest)]
#[doc = include_str!("../../docs/layouts.md")]
struct Guide;
