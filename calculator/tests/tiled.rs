//! Tiled operations, boxes of TMA and the choice of a swizzle, as expressions.

use crate::check::{check, check_static};
use cutlet_calculator::{Calculator, Options, Tiled, Value, evaluate};
use cutlet_layout_core::{
    CopyAtom, CopyTiling, IntTuple, Layout, M16N8K16Bits16, Mma, MmaTiling, layout,
};

fn tiled(text: &str) -> Tiled {
    match evaluate(text) {
        Ok(Value::Tiled(tiled)) => tiled,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn instructions_have_their_names_in_rust_and_in_cute() {
    let mma = "TiledMMA(mma.sync.aligned.m16n8k16, ThrLayoutVMNK (_32,_1,_1,_1):(_1,_0,_0,_0), tile (_16,_8,_16))";
    check(&[
        ("Mma16816<bf16>", mma),
        ("Mma16816<half::f16>", mma),
        ("SM80_16x8x16_F32BF16BF16F32_TN{}", mma),
        ("MMA_Atom<SM80_16x8x16_F16F16F16F16_TN>{}", mma),
        ("tile_shape(Mma16832<i8>)", "(_16,_8,_32)"),
        ("tile_shape(SM80_16x8x32_S32S8S8S32_TN)", "(_16,_8,_32)"),
        ("tile_shape(SM80_8x8x4_F64F64F64F64_TN)", "(_8,_8,_4)"),
        ("tile_shape(SM80_16x8x8_F32TF32TF32F32_TN)", "(_16,_8,_8)"),
        ("tile_shape(UniversalFma<f32>)", "(_1,_1,_1)"),
        ("tile_shape(Wgmma<128, bf16>)", "(_64,_128,_16)"),
        (
            "tile_shape(SM90_64x128x16_F32BF16BF16_SS<GMMA::Major::K, GMMA::Major::K>{})",
            "(_64,_128,_16)",
        ),
        ("tile_shape(MmaAtom::wgmma(8, 8))", "(_64,_8,_32)"),
        (
            "Copy_Atom<UniversalCopy<uint128_t>, half_t>{}",
            "TiledCopy(universal copy of 8 values, LayoutCopy_TV (_1,_8):(_0,_1), tile (_1,_8))",
        ),
        (
            "get_layoutS_TV(Copy_Atom<SM75_U32x4_LDSM_N, half_t>{})",
            "(_32,(_8,_1)):(_8,(_1,_0))",
        ),
        (
            "CopyAtom::ldmatrix(4, 16).get_layoutD_TV()",
            "(_32,((_2,_4),_1)):(_2,((_1,_64),_0))",
        ),
        (
            "Mma16816<f32>",
            "error: column 1: `Mma16816` takes an element type of 16 bits in angle brackets",
        ),
        (
            "SM80_16x8x4_F32BF16BF16F32_TN",
            "error: column 1: there is no instruction `SM80_16x8x4_F32BF16BF16F32_TN`: use one such as \
             Mma16816<bf16> or SM80_16x8x16_F32BF16BF16F32_TN",
        ),
        (
            "Wgmma<12, bf16>",
            "error: column 1: there is no wgmma with N = 12 for elements of 16 bits: N is a multiple of 8 up to 256, \
             and elements have 8, 16 or 32 bits",
        ),
        (
            "Mma16816<bf16",
            "error: column 10: expected `>` behind the template's arguments, found `bf16`",
        ),
    ]);
}

#[test]
fn a_tiled_mma_has_the_layouts_of_layout_core() {
    let own = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((2, 2, 1):(1, 2, 0)));
    for text in [
        "make_tiled_mma(Mma16816<bf16>, (2,2):(1,2))",
        "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>",
        "make_tiled_mma(SM80_16x8x16_F32BF16BF16F32_TN{}, Layout<Shape<_2,_2,_1>>{})",
    ] {
        let operands = tiled(text).operands(None).unwrap();
        let names: Vec<_> = operands.iter().map(|it| it.name).collect();
        assert_eq!(names, ["A", "B", "C"], "{text}");
        let layouts = [
            own.get_layout_a_tv(),
            own.get_layout_b_tv(),
            own.get_layout_c_tv(),
        ];
        for (operand, own) in operands.iter().zip(layouts) {
            assert_eq!(operand.layout, own, "{text}");
        }
        // The two warps side by side share A, those below one another share B, and none share C.
        let first_of_70 = operands.iter().map(|it| it.first_holders()[70]);
        assert_eq!(first_of_70.collect::<Vec<_>>(), [6, 70, 70]);
    }
    // Columns of neighbouring atoms become neighbours.
    check(&[(
        "tile_shape(TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2)), (L!(32:1), L!((2, 4, 4):(1, 8, 2)))>)",
        "(_32,_32,_16)",
    )]);
    check_static(&[(
        "make_tiled_mma(Mma16816<bf16>, (2,2)).partition_C((64,32):(32,1), 33)",
        "(((_2,_2),_2,_2):((_1,_256),_1024,_16), 514)",
    )]);
}

#[test]
fn types_of_rust_are_layouts() {
    check(&[
        ("L!((2, 4):(1@0, 1@1))", "(_2,_4):(_1@0,_1@1)"),
        (
            "Tv<L!((32, 4):(1@1, 1@0)), L!(8:32@1)>",
            "((_32,_4),_8):((_1@1,_1@0),_32@1)",
        ),
        ("Tv<L!(256:8@1), L!(8:1@1), 8>", "(_256,_8):(_8@1,_1@1)"),
        (
            "L!(4:1",
            "error: column 7: expected `)`, but the expression ends",
        ),
        ("L!(_8{})", "_8:_1"),
        (
            "Tv<8:1>",
            "error: column 1: `Tv` takes a layout of threads and one of values; here are 1 arguments",
        ),
    ]);
}

#[test]
fn a_tile_is_covered_by_repetitions() {
    let mma = tiled("make_tiled_mma(Mma16816<bf16>, (2,2))");
    let operands = mma.operands(Some(&IntTuple::from((64, 32, 32)))).unwrap();
    let extents: Vec<_> = operands.iter().map(|it| it.tile.to_string()).collect();
    assert_eq!(extents, ["(_64,_32)", "(_32,_32)", "(_64,_32)"]);
    for operand in &operands {
        let mut elements: Vec<i64> = (0..operand.layout.size())
            .map(|c| operand.layout.at(c))
            .collect();
        elements.sort_unstable();
        elements.dedup();
        assert!((0..operand.tile.size()).eq(elements), "{}", operand.name);
    }
    let error = mma
        .operands(Some(&IntTuple::from((48, 32, 32))))
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the threads cover (32,16,16) at once, so they do not divide a tile (48,32,32): give multiples"
    );
    assert!(mma.operands(Some(&IntTuple::from((64, 32)))).is_err());
}

#[test]
fn a_tiled_copy_has_the_layouts_of_layout_core() {
    let copy = "TiledCopy<CpAsync<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>";
    let own = CopyTiling::new(
        CopyAtom::universal(64, 8),
        &layout!((32, 4):(4, 1)),
        &layout!((1, 8):(0, 1)),
    );
    let operands = tiled(copy).operands(None).unwrap();
    assert_eq!(operands.len(), 1);
    assert_eq!(operands[0].layout.mode(0), own.get_layout_s_tv().mode(0));
    // Twice as many rows: each thread has the same 8 values, and 8 more 32 rows below.
    let operands = tiled(copy)
        .operands(Some(&IntTuple::from((64, 32))))
        .unwrap();
    assert_eq!(operands[0].layout.mode(1).to_string(), "(_8,_2):(_64,_32)");

    let load = tiled("make_tiled_copy_A(ldmatrix(4, 16), make_tiled_mma(Mma16816<bf16>, (2,2)))");
    let operands = load.operands(None).unwrap();
    assert_eq!(
        operands.iter().map(|it| it.name).collect::<Vec<_>>(),
        ["source", "destination"]
    );
    let multiplied = tiled("make_tiled_mma(Mma16816<bf16>, (2,2))")
        .operands(None)
        .unwrap();
    let elements =
        |layout: &Layout| -> Vec<i64> { (0..layout.size()).map(|c| layout.at(c)).collect() };
    assert_eq!(
        elements(&operands[1].layout),
        elements(&multiplied[0].layout)
    );
}

#[test]
fn threads_of_a_warpgroup_share_operands_in_shared_memory() {
    let operands = tiled("Wgmma<64, bf16>").operands(None).unwrap();
    let shared = operands.iter().map(|it| it.is_shared_by_all());
    assert_eq!(shared.collect::<Vec<_>>(), [true, true, false]);
    assert!(
        operands[0]
            .first_holders()
            .iter()
            .all(|&thread| thread == 0)
    );
    let in_registers = tiled("SM90_64x64x16_F32BF16BF16_RS")
        .operands(None)
        .unwrap();
    assert!(!in_registers[0].is_shared_by_all());
}

#[test]
fn boxes_of_tma_are_legal_or_say_why_not() {
    check(&[
        (
            "tma_box((64,128):(128,1), (64,64), 16, 128)",
            "legal: a tensor map of 64 × 128 elements of 2 bytes in boxes of 64 × 64 with a swizzle of 128 bytes\n\
             a box in shared memory: Sw<3,3,3> o 0 o (_64,_64):(_64,_1)",
        ),
        // The same tensor by columns, and a swizzle of elements.
        (
            "tma_box((128,64):(1,128), (64,64), 16, Sw<3,3,3>)",
            "legal: a tensor map of 64 × 128 elements of 2 bytes in boxes of 64 × 64 with a swizzle of 128 bytes\n\
             a box in shared memory: Sw<3,3,3> o 0 o (_64,_64):(_1,_64)",
        ),
        (
            "tma_box((64,127):(127,1), (64,257), 16, 128)",
            "not legal: a tensor map of 64 × 127 elements of 2 bytes in boxes of 64 × 257 with a swizzle of 128 bytes\n\
             - its rows are 254 bytes apart; TMA needs multiples of 16 bytes: use a kernel that loads without TMA, \
             or copy the tensor to aligned rows\n\
             - the box has 257 elements along dimension 0; \
             use boxes of 1 to 256 elements in each direction, several for a larger tile\n\
             - a line of the box has 514 bytes, and the swizzle spans 128; \
             use lines of a multiple of 16 bytes, or of 32, 64 or 128 with a swizzle of that span\n\
             a box in shared memory: Sw<3,3,3> o 0 o (_64,_257):(_257,_1)",
        ),
        // A part of a tensor that begins at an address that is not aligned.
        (
            "tma_box(local_tile((64,128):(128,1), (64,4), (0,1)), (64,4), 16)",
            "not legal: a tensor map of 64 × 4 elements of 2 bytes in boxes of 64 × 4\n\
             - its address is 0x8; TMA needs multiples of 16 bytes: use a kernel that loads without TMA, \
             or copy the tensor to aligned rows\n\
             - a line of the box has 8 bytes; \
             use lines of a multiple of 16 bytes, or of 32, 64 or 128 with a swizzle of that span\n\
             a box in shared memory: (_64,_4):(_4,_1)",
        ),
        (
            "tma_box((64,64):(128,2), <32:2,8>, 32)",
            "not legal: a tensor map of 64 × 64 elements of 4 bytes in boxes of 8 × 32 with element strides of 1 × 2\n\
             - no dimension of (64,64):(128,2) has consecutive elements; \
             TMA moves lines of consecutive elements: give one dimension the stride 1\n\
             - its rows are 8 bytes apart; TMA needs multiples of 16 bytes: use a kernel that loads without TMA, \
             or copy the tensor to aligned rows\n\
             - the box has an element stride of 2 along dimension 0; \
             use element strides of 1 to 8, and of 1 along dimension 0, or a tensor with larger strides\n\
             a box in shared memory: (_32,_8):(_1,_32)",
        ),
        // Every second row.
        (
            "tma_box((64,64):(64,1), <32:2,32>, 32)",
            "legal: a tensor map of 64 × 64 elements of 4 bytes in boxes of 32 × 32 with element strides of 2 × 1\n\
             a box in shared memory: (_32,_32):(_32,_1)",
        ),
        (
            "tma_box((2,2,2,2,2,32):(512,256,128,64,32,1), (1,1,1,1,1,32), 32)",
            "not legal: a tensor map of 2 × 2 × 2 × 2 × 32 elements of 4 bytes in boxes of 1 × 1 × 1 × 1 × 32\n\
             - the tensor has 6 dimensions; TMA moves tensors of up to 5: merge dimensions, or make a map of each part\n\
             a box in shared memory: (_1,_1,_1,_1,_1,_32):(_32,_32,_32,_32,_32,_1)",
        ),
        (
            "tma_box((64,64):(64,1), (64,64), 12)",
            "error: column 34: TMA moves elements of 8, 16, 32 or 64 bits, not 12: give one of these",
        ),
        (
            "tma_box((64,64):(64,1), (64,64), 16, Sw<3,0,3>)",
            "error: column 38: TMA has no swizzle Sw<3,0,3> of elements of 16 bits: give its span, 32, 64 or 128 bytes",
        ),
        (
            "tma_box(make_identity_layout((8,8)), (8,8), 32)",
            "error: column 9: a layout of indices in memory is needed, but `(8,8):(_1@0,_1@1)` is a layout",
        ),
        (
            "tma_box((64,64):(-64,1), (64,64), 16)",
            "error: column 35: a stride of a tensor map is not negative, but here is -64",
        ),
    ]);
}

#[test]
fn the_swizzle_of_accesses_is_found() {
    check(&[
        ("find_swizzle(32, 32:32)", "Sw<5,0,5>"),
        // `ldmatrix` reads eight rows of 16 bytes: CuTe's swizzle of 128 bytes.
        ("find_swizzle(16, (8,8):(64,1))", "Sw<3,3,3>"),
        // A product reads 32 rows of one k of (32,32):(1,32), and a copy writes 32 k of one row.
        ("find_swizzle(16, 32:1, 32:32)", "Sw<4,1,5>"),
        // If a thread has 32 rows of its k, it writes eight of them at once.
        (
            "find_swizzle(16, (32,32):(1,32), (32,32):(32,1))",
            "Sw<2,3,3>",
        ),
        // Nothing to gain.
        ("find_swizzle(32, 32:1)", "Sw<0,0,0>"),
        ("find_swizzle(32, 32:0)", "Sw<0,0,0>"),
        (
            "find_swizzle(12, 32:32)",
            "error: column 18: an element has 1, 2, 4, 8, 16, 32, 64 or 128 bits, not 12: give one of these",
        ),
    ]);
    let mut calculator =
        Calculator::new("find_swizzle(32, 32:32)", Options::default()).explaining();
    calculator.evaluate().unwrap();
    assert_eq!(
        calculator.explanations()[0].lines()[2..],
        [
            "  32:32: 32-way bank conflicts: 1 access of 1 value a thread, 32 wavefronts",
            "  Sw<5,0,5> o _0 o 32:32: no bank conflicts: 1 access of 1 value a thread, 1 wavefront",
            "= Sw<5,0,5>",
        ]
    );
}

/// Every swizzle that is found has no more conflicts than any other.
#[test]
fn no_other_swizzle_is_better() {
    use cutlet_calculator::analysis::{banks, find_swizzle};
    for (text, bits) in [
        ("(8,8):(32,1)", 32),
        ("(16,2,4):(48,1,2)", 16),
        ("(32,4):(36,1)", 8),
    ] {
        let wavefronts = |text: &str| banks(&evaluate(text).unwrap(), bits).unwrap().wavefronts;
        let found = find_swizzle(&[evaluate(text).unwrap()], bits).unwrap();
        let least = wavefronts(&format!("{found} o {text}"));
        for (b, m, s) in
            (1..=5).flat_map(|b| (0..6).flat_map(move |m| (b..8).map(move |s| (b, m, s))))
        {
            let other = format!("Sw<{b},{m},{s}> o {text}");
            assert!(least <= wavefronts(&other), "{text}: {found}, but {other}");
        }
    }
}
