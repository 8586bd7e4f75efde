//! Examples worth looking at: the guide's operations, and the thread-value layouts of instructions.

use cutlet_layout_core::{
    CopyAtom, M8N8K4Bits64, M16N8K8Bits16, M16N8K8Bits32, M16N8K16Bits8, M16N8K16Bits16,
    M16N8K32Bits8, Mma, MmaAtom,
};

/// An example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The group that it belongs to.
    pub topic: &'static str,
    /// What it shows.
    pub title: String,
    /// The expression.
    pub expression: String,
    /// The tile of a thread-value layout, if it is one.
    pub tile: Option<String>,
}

/// The examples of operations: topic, title and expression.
const OPERATIONS: &[(&str, &str, &str)] = &[
    ("Layouts", "Column-major and row-major", "(_4,_8):(_8,_1)"),
    ("Layouts", "Rows that are pairs", "((2,2),2):((4,2),1)"),
    (
        "Layouts",
        "Coordinates in all forms",
        "(3,(2,3)):(3,(12,1))",
    ),
    (
        "Layouts",
        "A symbolic leading dimension",
        "(_8,_4):(ldm,_1)",
    ),
    (
        "Layouts",
        "Columns that are two pairs",
        "(8,(2,2)):(2,(1,16))",
    ),
    (
        "Layouts",
        "Strides that are directions",
        "make_identity_layout((_8,_6))",
    ),
    (
        "Algebra",
        "A vector seen as a matrix",
        "_20:_2 o (_5,_4):(_4,_1)",
    ),
    (
        "Algebra",
        "Composition, value by value",
        "(_6,_2):(_8,_2) o (_4,_3):(_3,_1)",
    ),
    (
        "Algebra",
        "Composition splits a mode",
        "(_10,_2):(_16,_4) o (_5,_4):(_1,_5)",
    ),
    (
        "Algebra",
        "A part of a matrix",
        "composition((_12,(_4,_8)):(_59,(_13,_1)), <_3:_4,_8:_2>)",
    ),
    (
        "Algebra",
        "Coalescing",
        "coalesce((_2,(_1,_6)):(_1,(_6,_2)))",
    ),
    (
        "Algebra",
        "The gaps of a layout",
        "complement((_2,_2):(_1,_6), _24)",
    ),
    (
        "Algebra",
        "A right inverse",
        "right_inverse((_4,_8):(_8,_1))",
    ),
    ("Algebra", "The same function", "(2,3):(1,2) == 6:1"),
    (
        "Division",
        "A vector in tiles",
        "logical_divide((_4,_2,_3):(_2,_1,_8), _4:_2)",
    ),
    (
        "Division",
        "A matrix, one tile in each column",
        "zipped_divide((_9,(_4,_8)):(_59,(_13,_1)), <_3:_3,(_2,_4):(_1,_8)>)",
    ),
    (
        "Division",
        "A matrix in blocks",
        "zipped_divide((_8,_6):(_1,_8), <_4,_2>)",
    ),
    (
        "Division",
        "A layout divided by a number",
        "(3,6,2,8):(w,x,y,z) / 72",
    ),
    (
        "Division",
        "A matrix of any size in tiles",
        "zipped_divide((M,K):(K,_1), <_128,_64>)",
    ),
    (
        "Product",
        "A block, repeated",
        "logical_product((_2,_2):(_4,_1), _6:_1)",
    ),
    (
        "Product",
        "A blocked product",
        "blocked_product((_2,_5):(_5,_1), (_3,_4):(_1,_3))",
    ),
    (
        "Product",
        "A raked product",
        "raked_product((_2,_5):(_5,_1), (_3,_4):(_1,_3))",
    ),
    (
        "Contractions",
        "A product of matrices",
        "contract(\"mk,nk->mn\", m=8, n=6, k=4)",
    ),
    (
        "Contractions",
        "Scores of attention",
        "contract(\"bshd,bthd->bhst\", b=2, s=4, h=2, d=4, t=3)",
    ),
    (
        "Contractions",
        "Modes that become one",
        "contract(\"bij,bkj->ik\", (3,4,5):(5,15,1), (3,6,5):(5,15,1))",
    ),
    (
        "Contractions",
        "Matrices of any size",
        "contract(\"mk,nk->mn\", (M,K):(lda,1), (N,K):(1,ldb))",
    ),
    (
        "Swizzles",
        "Eight rows of eight",
        "Sw<3,0,3> o 0 o (_8,_8):(_8,_1)",
    ),
    (
        "Swizzles",
        "128 bytes of halves",
        "Sw<3,3,3> o 0 o (_8,_64):(_64,_1)",
    ),
    (
        "Swizzles",
        "A tile of an atom",
        "tile_to_shape(Sw<2,0,2> o 0 o (_4,_4):(_4,_1), (_8,_8))",
    ),
    (
        "Swizzles",
        "Rows by an index table",
        "gather([3,0,2,1]) o 0 o 4:1",
    ),
    (
        "Swizzles",
        "The swizzle for an access, found",
        "find_swizzle(16, (8,8):(64,1)) o 0 o (8,64):(64,1)",
    ),
];

/// The examples of tiled operations and of TMA: topic, title, expression and tile.
const TILED: &[(&str, &str, &str, &str)] = &[
    (
        "Tiled operations",
        "A copy by 32×4 threads",
        "TiledCopy<CpAsync<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>",
        "",
    ),
    (
        "Tiled operations",
        "The same copy, of a larger tile",
        "TiledCopy<CpAsync<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>",
        "(64,64)",
    ),
    (
        "Tiled operations",
        "mma.sync by 2×2 warps",
        "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>",
        "",
    ),
    (
        "Tiled operations",
        "The same product, of a larger tile",
        "TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>",
        "(64,32,32)",
    ),
    (
        "Tiled operations",
        "A permutation: wider rows of C",
        "TiledMma<Mma16816<bf16>, L!((2, 1):(1, 0)), (L!(32:1), L!((2, 4, 2):(1, 4, 2)))>",
        "",
    ),
    (
        "Tiled operations",
        "wgmma by a warpgroup",
        "Wgmma<16, bf16>",
        "",
    ),
    (
        "Tiled operations",
        "ldmatrix for A of a product",
        "make_tiled_copy_A(ldmatrix(4, 16), TiledMma<Mma16816<bf16>, L!((2, 2):(1, 2))>)",
        "",
    ),
    (
        "TMA",
        "Boxes with a swizzle of 128 bytes",
        "tma_box((256,128):(128,1), (8,64), 16, 128)",
        "",
    ),
    (
        "TMA",
        "A box that is not legal",
        "tma_box((64,127):(127,1), (8,80), 16, 128)",
        "",
    ),
];

/// All examples.
pub fn examples() -> Vec<Example> {
    let operations = OPERATIONS
        .iter()
        .map(|&(topic, title, expression)| Example {
            topic,
            title: title.into(),
            expression: expression.into(),
            tile: None,
        });
    let tiled = TILED
        .iter()
        .map(|&(topic, title, expression, tile)| Example {
            topic,
            title: title.into(),
            expression: expression.into(),
            tile: (!tile.is_empty()).then(|| tile.into()),
        });
    (operations.chain(tiled))
        .chain(mma_atoms())
        .chain(copy_atoms())
        .collect()
}

/// The operands of instructions of the tensor cores.
fn mma_atoms() -> Vec<Example> {
    let atoms: [MmaAtom; 8] = [
        M16N8K16Bits16::ATOM,
        M16N8K8Bits16::ATOM,
        M16N8K8Bits32::ATOM,
        M16N8K16Bits8::ATOM,
        M16N8K32Bits8::ATOM,
        M8N8K4Bits64::ATOM,
        MmaAtom::wgmma(8, 16),
        MmaAtom::wgmma(64, 16),
    ];
    let mut examples = Vec::new();
    for atom in atoms {
        let [m, n, k] = atom.shape();
        for (operand, layout, tile) in [
            ("A", atom.a(), (m, k)),
            ("B", atom.b(), (n, k)),
            ("C", atom.c(), (m, n)),
        ] {
            // wgmma reads A and B from shared memory, where all threads share them.
            if operand != "C" && atom.name().starts_with("wgmma") {
                continue;
            }
            let shape = if atom.name().starts_with("wgmma") {
                format!(" m{m}n{n}k{k}")
            } else {
                String::new()
            };
            examples.push(Example {
                topic: "MMA atoms",
                title: format!("{}{shape}, {operand}", atom.name()),
                expression: layout.to_string(),
                tile: Some(format!("({},{})", tile.0, tile.1)),
            });
        }
    }
    examples
}

/// The two sides of copy instructions.
fn copy_atoms() -> Vec<Example> {
    let mut examples = Vec::new();
    for matrices in [1, 2, 4] {
        let atom = CopyAtom::ldmatrix(matrices, 16);
        for (side, layout) in [
            ("source", atom.source()),
            ("destination", atom.destination()),
        ] {
            let rows = layout.cosize() / 8;
            examples.push(Example {
                topic: "Copy atoms",
                title: format!("{} x{matrices}, {side}", atom.name()),
                expression: layout.to_string(),
                tile: Some(format!("(8,{rows})")),
            });
        }
    }
    examples
}
