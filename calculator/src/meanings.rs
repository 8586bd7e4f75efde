//! What each function does, in one sentence.

/// The meaning of a function, by CuTe's name.
pub fn meaning(name: &str) -> &'static str {
    match name {
        "composition" => "R(c) = A(B(c)): B picks coordinates of A",
        "complement" => {
            "the layout of the places at which repetitions of A begin, up to the cotarget"
        }
        "coalesce" => "the simplest layout that is the same function of 1-D coordinates",
        "filter" => "A without modes of stride _0 and extent _1, coalesced",
        "filter_zeros" => "A with extent 1 in each mode of stride _0",
        "right_inverse" => "the longest R with A(R(i)) = i",
        "left_inverse" => "R with R(A(c)) = c",
        "max_common_layout" => "the longest layout whose elements are consecutive in both A and B",
        "max_common_vector" => "the number of elements that are consecutive in both A and B",
        "nullspace" => "the modes of stride 0: coordinates that A maps to 0",
        "domain_distribute" => "the shape's coordinates, shared out to n",
        "logical_divide" => "A o (B, B*): the tile that B points to, and the layout of such tiles",
        "zipped_divide" => "logical_divide with tiles in the first mode and rests in the second",
        "tiled_divide" => "logical_divide with tiles in the first mode and each rest in a mode",
        "flat_divide" => "logical_divide with each tile and each rest in a mode",
        "logical_product" => "(A, A* o B): the block A, repeated in the order of B",
        "zipped_product" => {
            "logical_product with blocks in the first mode and repetitions in the second"
        }
        "tiled_product" => {
            "logical_product with blocks in the first mode and each repetition in a mode"
        }
        "flat_product" => "logical_product with each block and each repetition in a mode",
        "blocked_product" => "each element of B becomes a block A, mode by mode",
        "raked_product" => "each element of A becomes a block B, mode by mode",
        "tile_to_shape" => "A repeated until it has the shape",
        "contract" => {
            "einsum as products of matrices: the layouts of A as (M,K,L), B as (N,K,L) and C as (M,N,L)"
        }
        "make_layout" => "a layout of shape and stride, or of layouts as its modes",
        "make_ordered_layout" => {
            "the compact layout whose strides grow in the order of the numbers; if some are static, these come first"
        }
        "make_layout_like" => "a compact layout whose strides are in the order of A's",
        "make_fragment_like" => "a compact layout like A whose first mode is innermost",
        "make_identity_layout" => "the layout that maps each coordinate to itself",
        "make_composed_layout" => "R(c) = inner(offset + A(c))",
        "gather" => "an index table, to be the inner of a composed layout",
        "make_tile" => "a tiler for each mode",
        "make_shape" | "make_stride" | "make_coord" | "make_step" | "make_tuple" => "a tuple",
        "rank" => "the number of modes",
        "depth" => "the number of levels of parentheses",
        "size" | "product" => "the product of all extents",
        "cosize" => {
            "the number of indices from the least or 0 to the greatest; CuTe's leaves a swizzle out"
        }
        "shape" => "the extents",
        "stride" => "the steps between neighbours",
        "layout" | "get" | "mode" => "the part at a path",
        "select" => "the modes of these numbers, in this order",
        "take" => "the modes from begin to before end",
        "group" => "A with the modes from begin to before end as one mode",
        "flatten" => "A without parentheses inside",
        "unflatten" => "A with the parentheses of the profile",
        "append" => "A with B as its last mode",
        "append<N>" => "A with B, or _1:_0, as its last modes up to rank N",
        "prepend" => "A with B as its first mode",
        "prepend<N>" => "A with B, or _1:_0, as its first modes up to rank N",
        "replace" => "A with B in place of mode i",
        "with_shape" => "the same function with another shape",
        "slice" | "slice_" => "the modes of A that the coordinate marks with `_`",
        "dice" => "the modes of A that the coordinate does not mark with `_`",
        "slice_and_offset" => {
            "the modes that the coordinate marks with `_`, and the index of the others"
        }
        "apply" => "the index of a coordinate: the sum of its integers, each times its stride",
        "local_tile" | "inner_partition" => {
            "the tile at a coordinate of tiles, and its offset: a projection picks the tiler's modes without `_`"
        }
        "local_partition" => {
            "the elements of a thread, if a layout of threads tiles A, and their offset"
        }
        "outer_partition" => "the elements at one coordinate inside of all tiles, and their offset",
        "make_layout_tv" => {
            "the tile of threads with values each, and the layout (thread, value) of its elements"
        }
        "make_tiled_mma" => {
            "a matrix instruction by the warps of a layout (m, n), whose tile a permutation reorders first"
        }
        "make_tiled_copy" => {
            "a copy instruction by threads in rows and columns, each with neighbouring values"
        }
        "make_tiled_copy_A" | "make_tiled_copy_B" | "make_tiled_copy_C" => {
            "the copy of an operand's tile to or from the registers in which the MMA's threads hold it"
        }
        "tile_shape" => "the extents of the tile on which all threads work at once",
        "get_layoutA_TV" | "get_layoutB_TV" | "get_layoutC_TV" => {
            "(thread, value) to the position in the operand's tile"
        }
        "get_layoutS_TV" | "get_layoutD_TV" => {
            "(thread, value) to the position in the tile, as threads read it and write it"
        }
        "partition_A" | "partition_B" | "partition_C" | "partition_S" | "partition_D" => {
            "the elements that a thread has of a tensor, as (value, RestM, …), and their offset"
        }
        "wgmma" => "the instruction m64nNk of a warpgroup, with A and B in shared memory",
        "universal" => "each thread copies so many bits for itself: loads, stores and `cp.async`",
        "ldmatrix" | "ldmatrix_transposed" => {
            "the instruction that loads 1, 2 or 4 matrices of 8×8 elements of 16 bits"
        }
        "stmatrix" | "stmatrix_transposed" => {
            "the instruction that stores 1, 2 or 4 matrices of 8×8 elements of 16 bits"
        }
        "tma_box" => {
            "whether TMA moves boxes of A, mode by mode; the swizzle is its span in bytes, or one of elements"
        }
        "find_swizzle" => {
            "the swizzle with the fewest bank conflicts for accesses (thread, value) to elements of so many bits"
        }
        "upcast" => "the layout of the same memory in elements that are n times as wide",
        "downcast" => "the layout of the same memory in elements of which n are as wide as one",
        "recast_layout" => "the layout of the same memory in elements of another width",
        "idx2crd" => {
            "the coordinate of an index: in a shape its digits from the left, in a layout where it is"
        }
        "crd2idx" => "the index of a coordinate: the sum of its integers, each times its stride",
        "crd2crd" => "the coordinate of another shape with the same 1-D coordinate",
        "get_hier_coord" => "the natural coordinate that has an index",
        "get_flat_coord" => "the coordinate that has an index, with an integer for each mode",
        "get_1d_coord" => "the 1-D coordinate that has an index",
        "coordinates_of" => "all coordinates that A maps to the index, in all forms",
        "product_each" => "the size of each mode",
        "prefix_product" => "the compact column-major strides",
        "inner_product" => "the sum of products of the integers at the same place",
        "compact_col_major" => "strides of which the leftmost is 1",
        "compact_row_major" => "strides of which the rightmost is 1",
        "compact_order" => {
            "compact strides that grow in the order of the numbers; if some are static, these come first"
        }
        "shape_div" => "the shape of every b-th element",
        "shape_mod" => "the shape of the first b elements",
        "layout_div" => "the layout of every n-th element of A",
        "ceil_div" => "a / b, rounded up",
        "round_up" => "a, rounded up to a multiple of b",
        "safe_div" => "a / b, where b divides a",
        "gcd" => "the greatest common divisor",
        "congruent" => "whether both have the same parentheses",
        "weakly_congruent" => "whether b has at least the parentheses of a",
        "compatible" => "whether each coordinate of a is one of b",
        "evenly_divides" => "whether the tiles fill the shape",
        "lex_less" => "whether a is before b, compared from the left",
        "colex_less" => "whether a is before b, compared from the right",
        "elem_less" => "whether each integer of a is less than that of b",
        "is_static" => "whether all integers are static",
        "is_integral" => "whether it is an integer, static or dynamic",
        "is_std_integral" => "whether it is a dynamic integer",
        "is_constant" => "whether it is static and equal to n",
        _ => "",
    }
}
