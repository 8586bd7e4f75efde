//! The functions' signatures, by CuTe's names.

/// The functions' signatures, by topic. CuTe's template arguments are arguments after the first: `take<1,3>(A)` and
/// `take(A, 1, 3)` are the same. Where a signature has one, as `append<N>(A)`, it is another function without it.
pub const SIGNATURES: &[(&str, &[&str])] = &[
    (
        "Algebra",
        &[
            "composition(A, tiler)",
            "complement(A)",
            "complement(A, cotarget)",
            "coalesce(A)",
            "coalesce(A, profile)",
            "filter(A)",
            "filter(A, profile)",
            "filter_zeros(A)",
            "right_inverse(A)",
            "left_inverse(A)",
            "max_common_layout(A, B)",
            "max_common_vector(A, B)",
            "nullspace(A)",
            "domain_distribute(shape, n)",
        ],
    ),
    (
        "Division and product",
        &[
            "logical_divide(A, tiler)",
            "zipped_divide(A, tiler)",
            "tiled_divide(A, tiler)",
            "flat_divide(A, tiler)",
            "logical_product(A, tiler)",
            "zipped_product(A, tiler)",
            "tiled_product(A, tiler)",
            "flat_product(A, tiler)",
            "blocked_product(A, B)",
            "raked_product(A, B)",
            "tile_to_shape(A, shape)",
            "tile_to_shape(A, shape, order)",
        ],
    ),
    (
        "Contractions",
        &[
            "contract(\"ij,jk->ik\", A, B)",
            "contract(\"ij,jk->ik\", A, B, C)",
            "contract(\"ij,jk->ik\", i=m, j=n, …)",
        ],
    ),
    (
        "Making layouts",
        &[
            "make_layout(A, …)",
            "make_layout(shape, stride)",
            "make_layout(shape, LayoutRight)",
            "make_ordered_layout(shape, order)",
            "make_layout_like(A)",
            "make_fragment_like(A)",
            "make_identity_layout(shape)",
            "make_composed_layout(inner, offset, A)",
            "gather([i, …])",
            "make_tile(tiler, …)",
            "make_shape(i, …)",
            "make_stride(i, …)",
            "make_coord(i, …)",
            "make_step(i, …)",
            "make_tuple(i, …)",
        ],
    ),
    (
        "Parts of layouts and tuples",
        &[
            "rank(A, path…)",
            "depth(A, path…)",
            "size(A, path…)",
            "cosize(A, path…)",
            "shape(A, path…)",
            "stride(A, path…)",
            "layout(A, path…)",
            "mode(A, i)",
            "get(A, path…)",
            "select(A, i, …)",
            "take(A, begin, end)",
            "group(A, begin, end)",
            "flatten(A)",
            "unflatten(A, profile)",
            "append(A, B)",
            "append<N>(A)",
            "append<N>(A, B)",
            "prepend(A, B)",
            "prepend<N>(A)",
            "prepend<N>(A, B)",
            "replace(A, i, B)",
            "with_shape(A, shape)",
            "slice(coord, A)",
            "dice(coord, A)",
            "slice_and_offset(coord, A)",
            "slice_(A, coord)",
        ],
    ),
    (
        "Tiles and partitions",
        &[
            "local_tile(A, tiler, coord)",
            "local_tile(A, tiler, coord, projection)",
            "local_partition(A, threads, index)",
            "local_partition(A, threads, index, projection)",
            "inner_partition(A, tiler, coord)",
            "outer_partition(A, tiler, coord)",
            "make_layout_tv(threads, values)",
        ],
    ),
    (
        "Tiled operations",
        &[
            "make_tiled_mma(atom, warps)",
            "make_tiled_mma(atom, warps, permutation)",
            "make_tiled_copy(atom, threads, values)",
            "make_tiled_copy_A(atom, mma)",
            "make_tiled_copy_B(atom, mma)",
            "make_tiled_copy_C(atom, mma)",
            "tile_shape(tiled)",
            "get_layoutA_TV(mma)",
            "get_layoutB_TV(mma)",
            "get_layoutC_TV(mma)",
            "get_layoutS_TV(copy)",
            "get_layoutD_TV(copy)",
            "partition_A(mma, A, thread)",
            "partition_B(mma, B, thread)",
            "partition_C(mma, C, thread)",
            "partition_S(copy, A, thread)",
            "partition_D(copy, A, thread)",
            "wgmma(n, bits)",
            "universal(access_bits, bits)",
            "ldmatrix(matrices, bits)",
            "ldmatrix_transposed(matrices, bits)",
            "stmatrix(matrices, bits)",
            "stmatrix_transposed(matrices, bits)",
        ],
    ),
    (
        "Memory",
        &[
            "tma_box(A, box, bits)",
            "tma_box(A, box, bits, swizzle)",
            "find_swizzle(bits, A, …)",
        ],
    ),
    (
        "Elements of other widths",
        &[
            "upcast(A, n)",
            "downcast(A, n)",
            "recast_layout(A, old_bits, new_bits)",
        ],
    ),
    (
        "Coordinates",
        &[
            "idx2crd(index, shape)",
            "idx2crd(index, A)",
            "idx2crd(index, shape, stride)",
            "crd2idx(coord, A)",
            "crd2idx(coord, shape, stride)",
            "crd2crd(coord, from, to)",
            "get_hier_coord(A, index)",
            "get_flat_coord(A, index)",
            "get_1d_coord(A, index)",
            "coordinates_of(A, index)",
        ],
    ),
    (
        "Integers and int tuples",
        &[
            "product(t)",
            "product_each(t)",
            "prefix_product(t)",
            "inner_product(a, b)",
            "compact_col_major(shape)",
            "compact_col_major(shape, start)",
            "compact_row_major(shape)",
            "compact_row_major(shape, start)",
            "compact_order(shape, order)",
            "shape_div(a, b)",
            "shape_mod(a, b)",
            "layout_div(A, n)",
            "ceil_div(a, b)",
            "round_up(a, b)",
            "safe_div(a, b)",
            "gcd(a, b)",
        ],
    ),
    (
        "Relations",
        &[
            "congruent(a, b)",
            "weakly_congruent(a, b)",
            "compatible(a, b)",
            "evenly_divides(shape, tiler)",
            "lex_less(a, b)",
            "colex_less(a, b)",
            "elem_less(a, b)",
            "is_static(A)",
            "is_integral(a)",
            "is_std_integral(a)",
            "is_constant(a, n)",
        ],
    ),
];

pub(crate) fn name_of(signature: &str) -> &str {
    signature.split('(').next().unwrap_or(signature)
}

/// The signatures of a name.
pub(crate) fn signatures(name: &str) -> impl Iterator<Item = &'static str> {
    let all = SIGNATURES
        .iter()
        .flat_map(|(_, signatures)| signatures.iter().copied());
    all.filter(move |signature| name_of(signature) == name)
}

/// CuTe's name of a function that has another name in Rust.
pub(crate) fn canonical(name: &str) -> &str {
    match name {
        "ordered_layout" => "make_ordered_layout",
        "layout_like" => "make_layout_like",
        "fragment_like" => "make_fragment_like",
        "identity" => "make_identity_layout",
        "recast" => "recast_layout",
        "group_modes" => "group",
        "concat" => "make_layout",
        other => other,
    }
}

/// The name of a function that is called with template arguments.
pub(crate) fn with_template(name: &str) -> &str {
    match name {
        "append" => "append<N>",
        "prepend" => "prepend<N>",
        other => other,
    }
}

/// Whether there is a function of this name.
pub fn is_known(name: &str) -> bool {
    signatures(canonical(name)).next().is_some()
}
