//! Atoms, compared with the PTX ISA's formulas for the elements of each thread, and their tilings,
//! which must cover every element once.

use std::collections::BTreeSet;

use cutlet_layout_core::{
    CopyAtom, CopyTiling, Counting, Fma, IntTuple, Layout, M8N8K4Bits64, M16N8K8Bits16,
    M16N8K8Bits32, M16N8K8Bits64, M16N8K16Bits8, M16N8K16Bits16, M16N8K16Bits64, M16N8K32Bits8,
    Mma, MmaAtom, MmaTiling, StaticLayout, ThreadValue, Tiler, Tv, ValueTensor, WgmmaA16, WgmmaC,
    covers_exactly, layout, shape, tile,
};

/// Compares a thread-value layout over a matrix of `rows` with the (row, column) of every value.
fn check(tv: &Layout, rows: i64, at: impl Fn(i64, i64) -> (i64, i64)) {
    let (threads, values) = (tv.mode(0).size(), tv.mode(1).size());
    for thread in 0..threads {
        for value in 0..values {
            let position = tv.at(thread + value * threads);
            let found = (position % rows, position / rows);
            assert_eq!(
                found,
                at(thread, value),
                "thread {thread}, value {value} of {tv}"
            );
        }
    }
}

/// C and D of all instructions of a warp and of a warpgroup. The ISA's `groupID` is lane / 4, and
/// its `threadID_in_group` is lane % 4.
fn accumulator(thread: i64, i: i64) -> (i64, i64) {
    let (warp, group, within) = (thread / 32, thread % 32 / 4, thread % 4);
    let row = group + if i % 4 < 2 { 0 } else { 8 };
    (row + 16 * warp, within * 2 + i % 2 + i / 4 * 8)
}

#[test]
fn mma_m16n8k8_of_32_bits() {
    let atom = M16N8K8Bits32::ATOM;
    check(atom.a(), 16, |t, i| {
        let row = if i == 0 || i == 2 { t / 4 } else { t / 4 + 8 };
        (row, if i < 2 { t % 4 } else { t % 4 + 4 })
    });
    check(atom.b(), 8, |t, i| {
        (t / 4, if i == 0 { t % 4 } else { t % 4 + 4 })
    });
    check(atom.c(), 16, accumulator);
    assert_eq!(
        atom.a().to_string(),
        "((_4,_8),(_2,_2)):((_16,_1),(_8,_64))"
    );
    assert_eq!(atom.b().to_string(), "((_4,_8),_2):((_8,_1),_32)");
}

#[test]
fn mma_m8n8k4_of_64_bits() {
    let atom = M8N8K4Bits64::ATOM;
    check(atom.a(), 8, |t, _| (t / 4, t % 4));
    check(atom.b(), 8, |t, _| (t / 4, t % 4));
    check(atom.c(), 8, |t, i| (t / 4, t % 4 * 2 + i));
    assert_eq!(atom.a().to_string(), "((_4,_8),_1):((_8,_1),_0)");
    assert_eq!(atom.c().to_string(), "((_4,_8),_2):((_16,_1),_8)");
}

#[test]
fn mma_m16n8k8_and_m16n8k16_of_64_bits() {
    for atom in [M16N8K8Bits64::ATOM, M16N8K16Bits64::ATOM] {
        check(atom.a(), 16, |t, i| {
            (t / 4 + if i % 2 == 0 { 0 } else { 8 }, t % 4 + i / 2 * 4)
        });
        check(atom.b(), 8, |t, i| (t / 4, t % 4 + i * 4));
        check(atom.c(), 16, accumulator);
    }
    assert_eq!(
        M16N8K16Bits64::ATOM.a().to_string(),
        "((_4,_8),(_2,_4)):((_16,_1),(_8,_64))"
    );
    assert_eq!(
        M16N8K16Bits64::ATOM.b().to_string(),
        "((_4,_8),_4):((_8,_1),_32)"
    );
}

#[test]
fn mma_m16n8k8_of_16_bits() {
    let atom = M16N8K8Bits16::ATOM;
    check(atom.a(), 16, |t, i| {
        (if i < 2 { t / 4 } else { t / 4 + 8 }, t % 4 * 2 + (i & 1))
    });
    check(atom.b(), 8, |t, i| (t / 4, t % 4 * 2 + i));
    check(atom.c(), 16, accumulator);
    assert_eq!(atom.b().to_string(), "((_4,_8),_2):((_16,_1),_8)");
}

#[test]
fn mma_m16n8k16_of_16_bits() {
    let atom = M16N8K16Bits16::ATOM;
    check(atom.a(), 16, |t, i| {
        let row = if i < 2 || (4..6).contains(&i) {
            t / 4
        } else {
            t / 4 + 8
        };
        (row, t % 4 * 2 + (i & 1) + if i < 4 { 0 } else { 8 })
    });
    check(atom.b(), 8, |t, i| {
        (t / 4, t % 4 * 2 + (i & 1) + if i < 2 { 0 } else { 8 })
    });
    check(atom.c(), 16, accumulator);
    assert_eq!(
        atom.b().to_string(),
        "((_4,_8),(_2,_2)):((_16,_1),(_8,_64))"
    );
}

#[test]
fn mma_m16n8k16_of_8_bits() {
    let atom = M16N8K16Bits8::ATOM;
    check(atom.a(), 16, |t, i| {
        (if i < 4 { t / 4 } else { t / 4 + 8 }, t % 4 * 4 + (i & 3))
    });
    check(atom.b(), 8, |t, i| (t / 4, t % 4 * 4 + i));
    check(atom.c(), 16, accumulator);
}

#[test]
fn mma_m16n8k32_of_8_bits() {
    let atom = M16N8K32Bits8::ATOM;
    check(atom.a(), 16, |t, i| {
        let row = if i < 4 || (8..12).contains(&i) {
            t / 4
        } else {
            t / 4 + 8
        };
        (row, t % 4 * 4 + (i & 3) + if i < 8 { 0 } else { 16 })
    });
    check(atom.b(), 8, |t, i| {
        (t / 4, t % 4 * 4 + (i & 3) + if i < 4 { 0 } else { 16 })
    });
    check(atom.c(), 16, accumulator);
    assert_eq!(
        atom.a().to_string(),
        "((_4,_8),(_4,_2,_2)):((_64,_1),(_16,_8,_256))"
    );
    assert_eq!(
        atom.b().to_string(),
        "((_4,_8),(_4,_2)):((_32,_1),(_8,_128))"
    );
}

#[test]
fn wgmma_accumulators_and_operands() {
    for n in (8..=256).step_by(8) {
        let atom = MmaAtom::wgmma(n, 16);
        assert_eq!((atom.threads(), atom.shape()), (128, [64, n, 16]));
        check(atom.c(), 64, accumulator);
        // Each thread sees all of both operands in shared memory.
        check(atom.a(), 64, |_, i| (i % 64, i / 64));
        check(atom.b(), n, |_, i| (i % n, i / n));
    }
    let warps = |t: i64| (t / 32 * 16, t % 32 / 4, t % 4);
    check(MmaAtom::wgmma_from_registers(8, 32).a(), 64, |t, i| {
        let (warp, group, within) = warps(t);
        (warp + group + i % 2 * 8, within + i / 2 * 4)
    });
    check(MmaAtom::wgmma_from_registers(8, 16).a(), 64, |t, i| {
        let (warp, group, within) = warps(t);
        (warp + group + i / 2 % 2 * 8, within * 2 + i % 2 + i / 4 * 8)
    });
    check(MmaAtom::wgmma_from_registers(8, 8).a(), 64, |t, i| {
        let (warp, group, within) = warps(t);
        (
            warp + group + i / 4 % 2 * 8,
            within * 4 + i % 4 + i / 8 * 16,
        )
    });
    assert!(std::panic::catch_unwind(|| MmaAtom::wgmma(12, 16)).is_err());
    assert!(std::panic::catch_unwind(|| MmaAtom::wgmma(8, 4)).is_err());
}

/// Kernels partition tiles by the atoms' thread-value layouts.
#[test]
fn instructions_are_thread_value_types() {
    type A = <M16N8K16Bits16 as Mma>::LayoutA;
    const _: () = assert!(covers_exactly::<A>([16, 16]));
    const _: () = assert!(covers_exactly::<<M16N8K8Bits32 as Mma>::LayoutB>([8, 8]));
    const _: () = assert!(covers_exactly::<WgmmaC<32>>([64, 256]));
    const _: () = assert!(covers_exactly::<WgmmaA16>([64, 16]));
    assert_eq!(
        <<WgmmaC<32> as ThreadValue>::Val as StaticLayout>::SIZE,
        128
    );
    assert_eq!((Fma::ATOM.threads(), Fma::ATOM.shape()), (1, [1, 1, 1]));
}

/// A kernel's tensor, partitioned by an atom's type, reads the same values as a tiled MMA of this
/// atom.
#[test]
fn kernels_and_values_partition_alike() {
    use cutlet_layout_core::{RowMajor, Tensor};

    type A = <M16N8K16Bits16 as Mma>::LayoutA;
    let memory: [i64; 256] = std::array::from_fn(|i| i as i64);
    // SAFETY: the extents and the leading dimension stay inside the array.
    let tensor = unsafe { Tensor::new(memory.as_ptr(), RowMajor::new([16, 16], 16)) };
    let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((1, 1, 1)));
    let values = ValueTensor::new(Counting, layout!((16, 16):(16, 1)));
    for lane in 0..32 {
        let read = tensor.partition::<A>(lane).load(-1);
        let read: Vec<i64> = (0..8).map(|v| read.get(v)).collect();
        assert_eq!(read, positions(&mma.partition_a(values, lane as i64)));
    }
}

#[test]
fn an_atom_that_misses_elements_is_refused() {
    type Half = Tv<cutlet_layout_core::L!((4, 8):(2@1, 1@0)), cutlet_layout_core::L!((2):(1@1))>;
    type C = <M16N8K16Bits16 as Mma>::LayoutC;
    let half = std::panic::catch_unwind(|| MmaAtom::of::<Half, Half, C>("half", [16, 8, 16]));
    assert!(half.is_err());
}

/// The position of matrix `m`, row `r`, column `c`, for consecutive 8×8 matrices of 16-bit
/// elements.
fn element(m: i64, r: i64, c: i64) -> i64 {
    m * 64 + r * 8 + c
}

#[test]
fn ldmatrix_and_stmatrix_move_rows_to_registers() {
    for matrices in [1, 2, 4] {
        let load = CopyAtom::ldmatrix(matrices, 16);
        let store = CopyAtom::stmatrix(matrices, 16);
        let transposed = CopyAtom::ldmatrix_transposed(matrices, 16);
        for t in 0..32 {
            for i in 0..8 {
                // Thread t gives the address of row t % 8 of matrix t / 8.
                let row = t % (8 * matrices);
                assert_eq!(load.source().at(t + i * 32), element(row / 8, row % 8, i));
                assert_eq!(
                    store.destination().at(t + i * 32),
                    element(row / 8, row % 8, i)
                );
            }
            for i in 0..2 * matrices {
                // Thread t holds two elements of row t / 4 of each matrix.
                let (m, r, c) = (i / 2, t / 4, t % 4 * 2 + i % 2);
                assert_eq!(load.destination().at(t + i * 32), element(m, r, c));
                assert_eq!(store.source().at(t + i * 32), element(m, r, c));
                assert_eq!(transposed.destination().at(t + i * 32), element(m, c, r));
            }
        }
    }
    // The same bits as 8-bit elements.
    assert_eq!(
        CopyAtom::ldmatrix(4, 8).destination().to_string(),
        "(_32,(_4,_4)):(_4,(_1,_128))"
    );
    assert!(std::panic::catch_unwind(|| CopyAtom::ldmatrix(3, 16)).is_err());
}

fn positions(tensor: &ValueTensor<Counting>) -> Vec<i64> {
    tensor.iter().map(|index| index.leaf(0).value()).collect()
}

/// Checks that every element of a matrix is held by exactly `shared` threads.
fn covers(size: i64, shared: usize, threads: i64, held: impl Fn(i64) -> Vec<i64>) {
    let mut all: Vec<i64> = (0..threads).flat_map(held).collect();
    all.sort();
    let expected: Vec<i64> = (0..size)
        .flat_map(|e| std::iter::repeat_n(e, shared))
        .collect();
    assert_eq!(all, expected);
}

#[test]
fn tiled_mmas_deal_out_whole_operands() {
    let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((2, 2, 1):(1, 2, 4)));
    assert_eq!((mma.threads(), mma.tile()), (128, [32, 16, 16]));
    let a = ValueTensor::new(Counting, layout!((64, 32):(32, 1)));
    let b = ValueTensor::new(Counting, layout!((32, 32):(1, 32)));
    let c = ValueTensor::new(Counting, layout!((64, 32):(1, 64)));
    covers(64 * 32, 2, 128, |t| positions(&mma.partition_a(a, t)));
    covers(32 * 32, 2, 128, |t| positions(&mma.partition_b(b, t)));
    covers(64 * 32, 1, 128, |t| positions(&mma.partition_c(c, t)));
    assert_eq!(
        mma.partition_a(a, 0).outer().to_string(),
        "((_2,_2,_2),_2,_2):((_1,_256,_8),_1024,_16)"
    );
    // Lane 5 of the warp at (1, 1) has C's row 16 + 1, columns 8 + 2 and 8 + 3.
    let mine = mma.partition_c(c, 96 + 5);
    assert_eq!(positions(&mine)[..2], [17 + 10 * 64, 17 + 11 * 64]);
}

#[test]
fn tiled_mmas_over_k_share_c() {
    let mma = MmaTiling::new(M16N8K8Bits32::ATOM, &layout!((1, 1, 2):(1, 1, 1)));
    let c = ValueTensor::new(Counting, layout!((16, 8):(1, 16)));
    covers(128, 2, 64, |t| positions(&mma.partition_c(c, t)));
    let a = ValueTensor::new(Counting, layout!((16, 16):(1, 16)));
    covers(256, 1, 64, |t| positions(&mma.partition_a(a, t)));
}

#[test]
fn tiled_fmas_are_simt_kernels() {
    let mma = MmaTiling::new(Fma::ATOM, &layout!((16, 16, 1):(16, 1, 1)));
    let c = ValueTensor::new(Counting, layout!((64, 64):(64, 1)));
    let mine = mma.partition_c(c, 17);
    assert_eq!(mine.outer().to_string(), "(_1,_4,_4):(_0,_1024,_16)");
    assert_eq!(
        mine.at(0),
        65.into(),
        "thread 17 is at (1, 1): threads run along N"
    );
    covers(64 * 64, 1, 256, |t| positions(&mma.partition_c(c, t)));
}

#[test]
fn tiled_wgmmas() {
    let mma = MmaTiling::new(MmaAtom::wgmma(128, 16), &layout!((2, 1, 1):(1, 2, 2)));
    assert_eq!((mma.threads(), mma.tile()), (256, [128, 128, 16]));
    let c = ValueTensor::new(Counting, layout!((128, 256):(256, 1)));
    covers(128 * 256, 1, 256, |t| positions(&mma.partition_c(c, t)));
}

#[test]
fn thread_value_layouts_of_tiled_mmas() {
    let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((2, 2, 1):(1, 2, 4)));
    let (a, b, c) = (
        mma.get_layout_a_tv(),
        mma.get_layout_b_tv(),
        mma.get_layout_c_tv(),
    );
    let [m, n, k] = mma.tile();
    let a_tile = ValueTensor::new(Counting, Layout::col_major(&(m, k).into()));
    let b_tile = ValueTensor::new(Counting, Layout::col_major(&(n, k).into()));
    let c_tile = ValueTensor::new(Counting, Layout::col_major(&(m, n).into()));
    for t in 0..128 {
        let row = |tv: &Layout| -> Vec<i64> {
            (0..tv.mode(1).size()).map(|v| tv.at(t + v * 128)).collect()
        };
        assert_eq!(row(&a), positions(&mma.partition_a(a_tile, t)));
        assert_eq!(row(&b), positions(&mma.partition_b(b_tile, t)));
        assert_eq!(row(&c), positions(&mma.partition_c(c_tile, t)));
    }
}

/// A permutation of N that gives a thread four neighbouring columns of C instead of two.
#[test]
fn permutations_make_longer_vectors() {
    let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((1, 1, 1))).permuted([
        Tiler::UNDERSCORE,
        tile!((2, 4, 2):(1, 4, 2)),
        Tiler::UNDERSCORE,
    ]);
    assert_eq!(mma.tile(), [16, 16, 16]);
    let c = ValueTensor::new(Counting, layout!((16, 16):(16, 1)));
    covers(256, 1, 32, |t| positions(&mma.partition_c(c, t)));
    let first: BTreeSet<i64> = positions(&mma.partition_c(c, 0)).into_iter().collect();
    assert!([0, 1, 2, 3].iter().all(|e| first.contains(e)), "{first:?}");
}

#[test]
fn tiled_copies_deal_out_tiles() {
    // 32 threads to a row, 8 rows, four neighbours of a row each.
    let copy = CopyTiling::new(
        CopyAtom::universal(128, 32),
        &layout!((8, 32):(32, 1)),
        &layout!((1, 4)),
    );
    assert_eq!(
        (copy.threads(), copy.tile().to_string().as_str()),
        (256, "(_8,_128)")
    );
    let source = ValueTensor::new(Counting, layout!((16, 256):(256, 1)));
    covers(16 * 256, 1, 256, |t| {
        positions(&copy.partition_s(source, t))
    });
    let mine = copy.partition_s(source, 33);
    assert_eq!(
        mine.outer().to_string(),
        "((_4,_1),_2,_2):((_1,_0),_2048,_128)"
    );
    assert_eq!(positions(&mine)[..4], [260, 261, 262, 263]);
    for t in 0..256 {
        assert_eq!(
            positions(&copy.partition_s(source, t)),
            positions(&copy.partition_d(source, t))
        );
    }
}

#[test]
fn seed_values_may_be_two_dimensional() {
    let copy = CopyTiling::new(
        CopyAtom::universal(64, 32),
        &layout!((4, 8):(8, 1)),
        &layout!((2, 2):(1, 2)),
    );
    assert_eq!(copy.tile(), &shape!((8, 16)));
    let tile = ValueTensor::new(Counting, layout!((8, 16):(16, 1)));
    covers(128, 1, 32, |t| positions(&copy.partition_d(tile, t)));
}

/// `ldmatrix` brings A from shared memory to the registers in which `mma` reads it.
#[test]
fn ldmatrix_loads_what_the_mma_multiplies() {
    let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((2, 1, 1):(1, 2, 2)));
    let copy = CopyTiling::for_a(CopyAtom::ldmatrix(4, 16), &mma);
    assert_eq!(
        (copy.threads(), copy.tile()),
        (64, &IntTuple::fixed(&[32, 16]))
    );
    let tile = ValueTensor::new(Counting, layout!((32, 16):(16, 1)));
    for t in 0..64 {
        // The copy writes the values that the multiplication reads.
        assert_eq!(
            positions(&copy.partition_d(tile, t)),
            positions(&mma.partition_a(tile, t)),
            "thread {t}"
        );
        // Each thread gives the address of eight neighbours of a row.
        let read = positions(&copy.partition_s(tile, t));
        assert!(
            read.windows(2).all(|pair| pair[1] == pair[0] + 1),
            "{read:?}"
        );
    }
    covers(32 * 16, 1, 64, |t| positions(&copy.partition_s(tile, t)));
}

#[test]
fn copies_of_b_and_c_follow_the_mma() {
    let mma = MmaTiling::new(M16N8K16Bits16::ATOM, &layout!((2, 2, 1):(1, 2, 4))).permuted([
        Tiler::UNDERSCORE,
        tile!(32),
        Tiler::UNDERSCORE,
    ]);
    let b = CopyTiling::for_b(CopyAtom::ldmatrix(2, 16), &mma);
    let tile = ValueTensor::new(Counting, layout!((32, 16):(16, 1)));
    for t in 0..128 {
        let held: BTreeSet<i64> = positions(&mma.partition_b(tile, t)).into_iter().collect();
        let copied: BTreeSet<i64> = positions(&b.partition_d(tile, t)).into_iter().collect();
        assert_eq!(held, copied, "thread {t}");
    }
    let c = CopyTiling::for_c(CopyAtom::universal(64, 32), &mma);
    let tile = ValueTensor::new(Counting, layout!((32, 32):(32, 1)));
    covers(32 * 32, 1, 128, |t| positions(&c.partition_d(tile, t)));
}
