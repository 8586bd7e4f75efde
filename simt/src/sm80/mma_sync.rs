//! `mma.sync`: matrix products of a warp.
//!
//! The lanes show their registers. The last one to arrive multiplies the matrices, and each takes its accumulators.

use std::cell::{Cell, OnceCell};

use crate::context::{Block, current};
use crate::sync::warp_meet;
use crate::warp::WARP_SIZE;

/// The most rows of A.
const MAX_M: usize = 16;
/// Columns of the accumulators.
const N: usize = 8;
/// The most products that an instruction adds to an accumulator.
const MAX_K: usize = 32;

/// How an instruction reads its operands.
#[derive(Clone, Copy, Debug)]
pub struct MmaOperand {
    /// Bytes of an element: 1, 2, 4 or 8. A register has 8 bytes if the elements have, and 4 otherwise.
    pub element_bytes: usize,
    /// The number that is in the lowest bits of a register. It ignores the other bits.
    pub number: fn(u64) -> f64,
}

/// The type of accumulators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MmaSums {
    /// `f32`.
    F32,
    /// `f64`.
    F64,
    /// `i32`.
    S32,
}

/// An instruction with `m` × 8 accumulators, which adds `k` products to each.
#[derive(Clone, Copy, Debug)]
pub struct MmaShape {
    /// Rows of A: 8 or 16.
    pub m: usize,
    /// Columns of A and of B: 4, 8, 16 or 32.
    pub k: usize,
    /// A and B.
    pub operand: MmaOperand,
    /// The accumulators.
    pub sums: MmaSums,
}

/// The registers of a lane, as bits. An instruction uses the first ones.
#[derive(Clone, Copy, Default)]
struct Registers {
    a: [u64; 8],
    b: [u64; 4],
    sums: [u64; 4],
}

/// The registers that the lanes of a warp show, for even and for odd phases of the warp. A lane can be one phase ahead
/// of the lanes that still read the registers before, never two.
#[derive(Default)]
struct Shown([[Cell<Registers>; WARP_SIZE]; 2]);

/// What the warps of a block show, made at the first instruction.
#[derive(Default)]
struct Warps(OnceCell<Box<[Shown]>>);

impl Warps {
    fn of(block: &Block) -> &[Shown] {
        let Self(all) = block.models.get_or_default();
        all.get_or_init(|| block.warps.iter().map(|_| Shown::default()).collect())
    }
}

/// Adds the product of A and of the transposed B to the accumulators, of which the lane has registers `a`, `b` and
/// `sums`.
///
/// Integer sums wrap around. Other sums are computed in `f64`: the products of `f64` operands by fused multiply-add in
/// the order of k, and sums of `f32` rounded once. On a GPU, sums of `f32` may be rounded otherwise.
///
/// # Panics
/// If not all 32 lanes call it, or outside of a kernel.
#[track_caller]
pub fn mma_sync(shape: &MmaShape, a: &[u64], b: &[u64], sums: &mut [u64]) {
    let thread = current();
    let shown = &Warps::of(thread.block())[thread.linear as usize / WARP_SIZE];
    let lanes = &shown.0[thread.warp().phase() as usize % 2];
    let mut registers = Registers::default();
    registers.a[..a.len()].copy_from_slice(a);
    registers.b[..b.len()].copy_from_slice(b);
    registers.sums[..sums.len()].copy_from_slice(sums);
    let own = &lanes[thread.lane()];
    own.set(registers);
    warp_meet("mma.sync", 0, || multiply(shape, lanes));
    let count = sums.len();
    sums.copy_from_slice(&own.get().sums[..count]);
}

/// The matrices of an instruction. Rows of A and of the sums are rows here; a row of `b` has the elements of one k.
struct Matrices {
    a: [[f64; MAX_K]; MAX_M],
    b: [[f64; N]; MAX_K],
    sums: [[f64; N]; MAX_M],
}

/// Replaces the accumulators that the lanes show.
fn multiply(shape: &MmaShape, lanes: &[Cell<Registers>; WARP_SIZE]) {
    let MmaShape {
        m,
        k,
        operand,
        sums,
    } = *shape;
    let mut matrices = Matrices {
        a: [[0.0; MAX_K]; MAX_M],
        b: [[0.0; N]; MAX_K],
        sums: [[0.0; N]; MAX_M],
    };
    // Elements of a register, and how many registers a lane has along k.
    let elements = if operand.element_bytes == 8 {
        1
    } else {
        4 / operand.element_bytes
    };
    let along_k = k / (4 * elements);
    for (lane, shown) in lanes.iter().enumerate() {
        let (group, within) = (lane / 4, lane % 4);
        let registers = shown.get();
        let number = |register: u64, element: usize| {
            (operand.number)(register >> (8 * operand.element_bytes * element))
        };
        for i in 0..along_k {
            for element in 0..elements {
                let at = (4 * i + within) * elements + element;
                // A has its rows in steps of 8, and then the next registers along k.
                for half in 0..m / 8 {
                    matrices.a[group + 8 * half][at] =
                        number(registers.a[i * (m / 8) + half], element);
                }
                matrices.b[at][group] = number(registers.b[i], element);
            }
        }
        for v in 0..m / 4 {
            matrices.sums[group + v / 2 * 8][2 * within + v % 2] = sums.number(registers.sums[v]);
        }
    }
    add_products(&mut matrices, m, k, sums == MmaSums::F64);
    for (lane, shown) in lanes.iter().enumerate() {
        let (group, within) = (lane / 4, lane % 4);
        let mut registers = shown.get();
        for v in 0..m / 4 {
            registers.sums[v] = sums.bits(matrices.sums[group + v / 2 * 8][2 * within + v % 2]);
        }
        shown.set(registers);
    }
}

impl MmaSums {
    fn number(self, bits: u64) -> f64 {
        match self {
            Self::F32 => f32::from_bits(bits as u32).into(),
            Self::F64 => f64::from_bits(bits),
            Self::S32 => (bits as i32).into(),
        }
    }

    /// The accumulator with this sum. A sum of integers is exact in `f64`.
    fn bits(self, sum: f64) -> u64 {
        match self {
            Self::F32 => (sum as f32).to_bits().into(),
            Self::F64 => sum.to_bits(),
            Self::S32 => (sum as i64 as u32).into(),
        }
    }
}

/// Adds the products of `m` rows and `k` columns. Those of `f64` operands need a `fused` multiply-add; others are
/// exact.
fn add_products(matrices: &mut Matrices, m: usize, k: usize, fused: bool) {
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma") {
        // SAFETY: the processor has AVX2 and fused multiply-add.
        unsafe { add_products_avx2(matrices, m, k) };
        return;
    }
    if fused {
        add_products_by(matrices, m, k, f64::mul_add);
    } else {
        add_products_by(matrices, m, k, |a, b, sum| a * b + sum);
    }
}

/// [`add_products`], compiled for AVX2 and fused multiply-add.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_products_avx2(matrices: &mut Matrices, m: usize, k: usize) {
    add_products_by(matrices, m, k, |a, b, sum| a.mul_add(b, sum));
}

#[inline(always)]
fn add_products_by(
    matrices: &mut Matrices,
    m: usize,
    k: usize,
    add: impl Fn(f64, f64, f64) -> f64,
) {
    let Matrices { a, b, sums } = matrices;
    for (row, sums) in a.iter().zip(sums).take(m) {
        for (a, b) in row.iter().zip(b.iter()).take(k) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = add(*a, *b, *sum);
            }
        }
    }
}
