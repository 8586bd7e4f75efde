//! Costs of accesses, and what layouts are as functions.

use cutlet_calculator::analysis::{banks, bijection, sectors};
use cutlet_calculator::evaluate;
use cutlet_layout_core::{Layout, Swizzle, WarpAccess};

fn banks_of(text: &str, bits: i64) -> String {
    banks(&evaluate(text).unwrap(), bits)
        .map_or_else(|refusal| refusal.to_string(), |banks| banks.to_string())
}

fn sectors_of(text: &str, bits: i64) -> String {
    sectors(&evaluate(text).unwrap(), bits)
        .map_or_else(|refusal| refusal.to_string(), |sectors| sectors.to_string())
}

#[test]
fn columns_conflict_and_swizzled_columns_do_not() {
    assert_eq!(
        banks_of("32:1", 32),
        "no bank conflicts: 1 access of 1 value a thread, 1 wavefront"
    );
    assert_eq!(
        banks_of("32:32", 32),
        "32-way bank conflicts: 1 access of 1 value a thread, 32 wavefronts"
    );
    assert_eq!(
        banks_of("32:0", 32),
        "no bank conflicts: 1 access of 1 value a thread, 1 wavefront"
    );
    assert_eq!(
        banks_of("Sw<5,0,5> o 0 o 32:32", 32),
        "no bank conflicts: 1 access of 1 value a thread, 1 wavefront"
    );
    // A stride of 64 bytes reaches two banks.
    assert_eq!(
        banks_of("32:32", 16),
        "16-way bank conflicts: 1 access of 1 value a thread, 16 wavefronts"
    );
    assert_eq!(
        banks_of("32:1", 24),
        "an element has 1, 2, 4, 8, 16, 32, 64 or 128 bits, not 24: give one of these"
    );
    assert_eq!(
        banks_of("32:1@0", 32),
        "0@0 at 0 is not an index in memory: give a layout (thread, value) with plain strides"
            .replace("0@0", "(0)")
    );
}

#[test]
fn sectors_are_counted() {
    assert_eq!(
        sectors_of("32:1", 32),
        "coalesced: 4 sectors in 1 request of 1 value a thread, where 4 hold the bytes"
    );
    assert_eq!(
        sectors_of("32:8", 32),
        "not coalesced: 32 sectors in 1 request of 1 value a thread, where 4 hold the bytes"
    );
    assert_eq!(
        sectors_of("(32,4):(4,1)", 32),
        "coalesced: 16 sectors in 1 request of 4 values a thread, where 16 hold the bytes"
    );
}

/// The counts are those of `WarpAccess`, which kernels assert.
#[test]
fn costs_are_those_that_kernels_assert() {
    for text in [
        "(_32,_8):(_8,_1)",
        "(_32,_4):(_1,_32)",
        "((_4,_8),(_2,_2)):((_32,_1),(_16,_8))",
        "(_32,_2):(_33,_1)",
        "(_32,_8):(_16,_1)",
    ] {
        let layout: Layout = text.parse().unwrap();
        for swizzle in [
            Swizzle::new(0, 0, 0),
            Swizzle::new(3, 3, 3),
            Swizzle::new(2, 2, 4),
        ] {
            for bytes in [1, 2, 4, 8] {
                let value = evaluate(&format!("{swizzle} o 0 o {text}")).unwrap();
                let (banks, sectors) = (
                    banks(&value, 8 * bytes).unwrap(),
                    sectors(&value, 8 * bytes).unwrap(),
                );
                let expected = WarpAccess::new(&layout, bytes, banks.width).swizzled(swizzle);
                let case = format!("{swizzle} o {text}, {bytes} bytes");
                assert_eq!(banks.worst(), expected.bank_conflicts(), "{case}");
                assert_eq!(banks.wavefronts, expected.wavefronts(), "{case}");
                assert_eq!(
                    sectors.sectors.iter().sum::<u32>(),
                    expected.sectors(),
                    "{case}"
                );
            }
        }
    }
}

#[test]
fn bijections_are_told() {
    let told = |text: &str| bijection(&evaluate(text).unwrap()).unwrap().to_string();
    assert_eq!(
        told("(4,2):(2,1)"),
        "bijective: it reaches each index from 0 to 7 once"
    );
    assert_eq!(
        told("Sw<2,0,2> o 0 o (4,4):(4,1)"),
        "bijective: it reaches each index from 0 to 15 once"
    );
    assert_eq!(
        told("(4,2):(2,8)"),
        "injective, not bijective: it reaches no index twice, but 1 never"
    );
    assert_eq!(
        told("(4,2):(1,2)"),
        "not injective: coordinates 2 and 4 both have index 2"
    );
    assert_eq!(
        told("(4,2):(8,8)"),
        "not injective: coordinates 1 and 4 both have index 8"
    );
    assert_eq!(
        told("2:1@0"),
        "injective, not bijective: it reaches no index twice, but 0 never"
    );
}
