//! What kernels assert of the accesses of tiled operations, and what they cost as the CPU backend counts it.

use cutlet_device::sm80::*;
use cutlet_device::sm90::Wgmma;
use cutlet_device::tile::{KMajorTile, MnMajorTile, SharedTile};
use cutlet_device::tiled::*;
use cutlet_layout_core::{L, NoSwizzle, TiledCopy, TiledMma, Width};
use half::bf16;

type Product = TiledMma<Mma16816<bf16>, L!((2, 4):(1, 2))>;
type Wgmmas = TiledMma<Wgmma<256, bf16>, L!((2, 1):(1, 0))>;
type Load = TiledCopy<CpAsync<8>, L!((32, 8):(8, 1)), L!((1, 8):(0, 1))>;
type Rows = SharedTile<bf16, L!((128, 64):(64, 1)), NoSwizzle>;
/// Rows that are 16 bytes longer than what they hold.
type Padded = SharedTile<bf16, L!((128, 64):(72, 1)), NoSwizzle>;

/// Tiles of the extents that kernels have: the compiler computes their costs before it warns that it takes long.
const _: () = {
    assert_conflict_free::<CopyAccess<Load, KMajorTile<bf16, 128, 64>>>();
    assert_conflict_free::<LoadAAccess<LdMatrix, Product, KMajorTile<bf16, 128, 64>>>();
    assert_conflict_free::<LoadBAccess<LdMatrix, Product, KMajorTile<bf16, 256, 64>>>();
    assert_conflict_free::<LoadAAccess<LdMatrixTransposed, Product, MnMajorTile<bf16, 128, 64>>>();
    assert_conflict_free::<LoadBAccess<LdMatrixTransposed, Product, MnMajorTile<bf16, 128, 32>>>();
    assert_conflict_free::<LoadAAccess<LdMatrix, Product, Padded>>();
    assert_conflict_free::<StoreCAccess<StMatrix, Product, KMajorTile<bf16, 128, 128>>>();
    assert_conflict_free::<StoreCAccess<StMatrix, Wgmmas, KMajorTile<bf16, 128, 256>>>();
    assert_conflict_free::<StoreCAccess<StMatrixTransposed, Wgmmas, MnMajorTile<bf16, 128, 256>>>();
    assert_conflict_free::<StoreCAccess<Width<2>, Product, KMajorTile<bf16, 64, 64>>>();
    assert_conflict_free::<LoadAAccess<VectorsAlongK<2>, Doubles, KMajorTile<f64, 64, 16>>>();
    assert_vectorised::<CopyAccess<Load, Padded>>();
};

/// f64 whose k are neighbours in pairs, and whose rows are loaded four apart.
type Doubles =
    TiledMma<Mma1688F64, L!((1, 1):(0, 0)), (L!((2, 4, 2):(4, 1, 8)), L!(8:1), L!((4, 2):(2, 1)))>;

#[test]
#[should_panic(expected = "bank conflict: 2 threads of a quarter warp access bank 0 at once")]
fn vectors_of_rows_that_begin_in_one_bank() {
    type Plain = SharedTile<f64, L!((64, 16):(16, 1)), NoSwizzle>;
    assert_conflict_free::<LoadAAccess<VectorsAlongK<2>, Doubles, Plain>>();
}

#[test]
#[should_panic(
    expected = "bank conflict: 8 threads of a quarter warp access bank 0 at once, in different words: threads 0, 1, 2, 3, … \
                in access 0"
)]
fn ldmatrix_of_rows_that_begin_in_one_bank() {
    assert_conflict_free::<LoadAAccess<LdMatrix, Product, Rows>>();
}

#[test]
#[should_panic(expected = "bank conflict: 8 threads of a quarter warp access bank 0 at once")]
fn stmatrix_to_rows_that_begin_in_one_bank() {
    assert_conflict_free::<StoreCAccess<StMatrix, Product, Rows>>();
}

#[test]
#[should_panic(
    expected = "bank conflict: 8 threads of a warp access bank 0 at once, in different words: threads 0, 4, 8, 12, …"
)]
fn pairs_of_rows_that_begin_in_one_bank() {
    assert_conflict_free::<StoreCAccess<Width<2>, Product, Rows>>();
}

#[test]
#[should_panic(
    expected = "bank conflict: 2 threads of a quarter warp access bank 0 at once, in different words: threads 0, 4 in"
)]
fn a_copy_of_narrow_rows() {
    type Narrow = TiledCopy<Width<8>, L!((32, 4):(4, 1)), L!((1, 8):(0, 1))>;
    assert_conflict_free::<CopyAccess<Narrow, Rows>>();
}

#[test]
#[should_panic(
    expected = "alignment: access 0 of thread 0 has 8 elements that are not consecutive in memory"
)]
fn a_copy_across_the_lines_of_a_tile() {
    assert_vectorised::<CopyAccess<Load, MnMajorTile<bf16, 64, 64>>>();
}
