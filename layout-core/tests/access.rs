//! Bank conflicts and sectors, compared with a model that counts with sets.

use std::collections::{BTreeMap, BTreeSet};

use cutlet_layout_core::{
    L, Layout, NoSwizzle, StaticSwizzle, Sw, Swizzle, Tv, WarpAccess, layout,
};

/// The costs of a warp's accesses: (worst ways, wavefronts, sectors).
fn model(offsets: &Layout, swizzle: Swizzle, bytes: i64, width: i64) -> (u32, u32, u32) {
    let (threads, values) = (offsets.mode(0).size(), offsets.mode(1).size());
    let at_once = if bytes * width <= 4 {
        32
    } else {
        128 / (bytes * width)
    };
    let (mut worst, mut wavefronts, mut sectors) = (0, 0, 0);
    for access in 0..values / width {
        let lanes: Vec<i64> = (0..threads.min(32))
            .map(|t| swizzle.apply(offsets.at(t + access * width * threads)) * bytes)
            .collect();
        for served in lanes.chunks(at_once as usize) {
            let mut banks: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
            for address in served {
                for byte in *address..address + bytes * width {
                    banks.entry(byte / 4 % 32).or_default().insert(byte / 4);
                }
            }
            let ways = banks.values().map(BTreeSet::len).max().unwrap() as u32;
            worst = worst.max(ways);
            wavefronts += ways;
        }
        let touched: BTreeSet<i64> = lanes
            .iter()
            .flat_map(|a| (*a..a + bytes * width).map(|byte| byte / 32))
            .collect();
        sectors += touched.len() as u32;
    }
    (worst, wavefronts, sectors)
}

#[test]
fn costs_are_those_of_the_model() {
    let swizzles = [
        Swizzle::new(0, 0, 0),
        Swizzle::new(3, 4, 3),
        Swizzle::new(2, 3, 3),
    ];
    let mut checked = 0;
    for stride in [1, 2, 3, 4, 8, 16, 17, 32, 33, 64] {
        for split in [1, 2, 4, 8, 16, 32] {
            for width in [1, 2, 4, 8] {
                for bytes in [1, 2, 4, 8] {
                    if bytes * width > 16 {
                        continue;
                    }
                    let offsets = Layout::from_shape_stride(
                        &((split, 32 / split), 8).into(),
                        &((stride * width, 64 * width), 1).into(),
                    );
                    for swizzle in swizzles {
                        let access = WarpAccess::new(&offsets, bytes, width).swizzled(swizzle);
                        if !access.is_vectorised() {
                            continue;
                        }
                        let found = (
                            access.bank_conflicts(),
                            access.wavefronts(),
                            access.sectors(),
                        );
                        assert_eq!(
                            found,
                            model(&offsets, swizzle, bytes, width),
                            "{offsets} {swizzle} {bytes}×{width}"
                        );
                        assert!(access.least_sectors() <= access.sectors());
                        checked += 1;
                    }
                }
            }
        }
    }
    assert!(checked > 1000, "{checked}");
}

type Tile = L!((32, 32):(32, 1));
type AcrossColumns = Tv<L!(32:1@1), L!(32:1@0)>;
type DownRows = Tv<L!(32:1@0), L!(32:1@1)>;
/// The eight rows of 16 bytes that an `ldmatrix` reads for one matrix, from a tile of 64 columns of
/// 2 bytes.
type HalfTile = L!((8, 64):(64, 1));
type MatrixRows = Tv<L!((8, 4):(1@0, 8@1)), L!(8:1@1), 8>;

const _: () = assert!(WarpAccess::of::<AcrossColumns, Tile, NoSwizzle>(4).bank_conflicts() == 1);
const _: () = assert!(WarpAccess::of::<DownRows, Tile, NoSwizzle>(4).bank_conflicts() == 32);
const _: () = assert!(WarpAccess::of::<DownRows, Tile, Sw<5, 0, 5>>(4).bank_conflicts() == 1);
const _: () = assert!(WarpAccess::of::<MatrixRows, HalfTile, NoSwizzle>(2).bank_conflicts() == 8);
const _: () = assert!(WarpAccess::of::<MatrixRows, HalfTile, Sw<3, 3, 3>>(2).bank_conflicts() == 1);

/// Tiles as large as kernels have them. The compiler refuses constants that take it long, with the lint
/// `long_running_const_eval`.
mod large {
    use super::*;

    type Tile = L!((128, 256):(256, 1));
    type Down = Tv<L!(128:1@0), L!(256:1@1)>;
    type Across = Tv<L!((128, 2):(1@1, 64@0)), L!((64, 2):(1@0, 128@1))>;
    type Eights = Tv<L!((32, 4):(1@0, 32@0)), L!((8, 32):(1@1, 8@1)), 8>;

    const _: () = assert!(WarpAccess::of::<Down, Tile, NoSwizzle>(4).bank_conflicts() == 32);
    const _: () = assert!(WarpAccess::of::<Down, Tile, Sw<5, 0, 8>>(4).bank_conflicts() == 1);
    const _: () = assert!(WarpAccess::of::<Across, Tile, NoSwizzle>(4).sectors() == 128 * 4);
    const _: () = assert!(WarpAccess::of::<Eights, Tile, Sw<3, 3, 5>>(2).bank_conflicts() == 1);
}

#[test]
fn one_word_read_by_all_is_a_broadcast() {
    let access = WarpAccess::new(&layout!((32, 1):(0, 0)), 4, 1);
    assert_eq!(
        (
            access.bank_conflicts(),
            access.sectors(),
            access.least_sectors()
        ),
        (1, 1, 1)
    );
    let bytes = WarpAccess::new(&layout!((32, 1):(1, 0)), 1, 1);
    assert_eq!(bytes.bank_conflicts(), 1, "four threads share a word");
}

#[test]
fn coalesced_and_scattered_reads() {
    let vectors = WarpAccess::new(&layout!((32, 4):(4, 1)), 4, 4);
    assert_eq!(
        (
            vectors.sectors(),
            vectors.least_sectors(),
            vectors.wavefronts()
        ),
        (16, 16, 4)
    );
    let columns = WarpAccess::new(&layout!((32, 1):(100, 0)), 4, 1);
    assert_eq!((columns.sectors(), columns.least_sectors()), (32, 4));
}

#[test]
fn every_warp_has_its_own_costs() {
    // The second warp's threads are two words apart.
    let offsets = layout!(((32, 2), 1):((1, 64), 0));
    let access = WarpAccess::new(&offsets, 4, 1);
    assert_eq!(access.of_warp(1).bank_conflicts(), 1);
    assert!(std::panic::catch_unwind(|| access.of_warp(2)).is_err());
    let few = WarpAccess::new(&layout!((8, 2):(2, 1)), 4, 2);
    assert_eq!(
        (few.accesses(), few.wavefronts()),
        (1, 1),
        "a quarter of a warp"
    );
}

#[test]
fn values_that_are_not_consecutive_are_no_vector() {
    let access = WarpAccess::new(&layout!((32, 4):(1, 32)), 4, 4);
    assert!(!access.is_vectorised());
    let panic = std::panic::catch_unwind(|| access.bank_conflicts()).unwrap_err();
    assert!(
        panic
            .downcast_ref::<String>()
            .unwrap()
            .contains("4 elements that are not consecutive in memory")
    );
    let misaligned = WarpAccess::new(&layout!((32, 4):(2, 1)), 4, 4);
    assert!(!misaligned.is_vectorised());
}

#[test]
fn static_swizzles_are_the_values_of_the_same_name() {
    fn check<W: StaticSwizzle>(value: Swizzle) {
        assert_eq!(W::VALUE, value);
        for index in 0..4096 {
            assert_eq!(
                W::apply(index) as i64,
                value.apply(index as i64),
                "{value} of {index}"
            );
        }
    }
    check::<NoSwizzle>(Swizzle::new(0, 0, 0));
    check::<Sw<3, 4, 3>>(Swizzle::new(3, 4, 3));
    check::<Sw<3, 3, 3>>(Swizzle::new(3, 3, 3));
    check::<Sw<2, 0, 5>>(Swizzle::new(2, 0, 5));
    check::<Sw<5, 0, 6>>(Swizzle::new(5, 0, 6));

    /// A swizzle that is defined by its source bits and its shift.
    #[derive(Clone, Copy)]
    struct Bits;
    impl StaticSwizzle for Bits {
        const SOURCE: u32 = 0b111 << 7;
        const SHIFT: u32 = 3;
    }
    check::<Bits>(Swizzle::new(3, 4, 3));
}
