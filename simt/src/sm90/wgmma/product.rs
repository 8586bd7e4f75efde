//! One `wgmma` instruction: its operands, read through their matrix descriptors, and their product.

use std::cell::Cell;

use crate::access::Access;
use crate::shadow::Readers;
use crate::shared::locate;

/// Rows of A that an instruction reads.
pub(super) const ROWS: usize = 64;
/// Bytes along k that an instruction reads.
pub(super) const K_BYTES: usize = 32;
/// Bytes of a core matrix's line.
pub(super) const UNIT: usize = 16;

/// How an instruction reads one of its operands.
#[derive(Clone, Copy, Debug)]
pub struct WgmmaOperand {
    /// Bytes of an element.
    pub element_bytes: usize,
    /// Whether k is consecutive in memory.
    pub k_major: bool,
    /// Converts the elements in 16 bytes to numbers.
    pub decode: fn(&[u8; 16], &mut [f32]),
}

/// An instruction with 64 × `n` accumulators.
#[derive(Clone, Copy, Debug)]
pub struct WgmmaShape {
    /// Columns of the accumulator.
    pub n: usize,
    /// The left operand.
    pub a: WgmmaOperand,
    /// The right operand.
    pub b: WgmmaOperand,
    /// What the accumulators are.
    pub sums: WgmmaArithmetic,
}

/// The arithmetic of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WgmmaArithmetic {
    /// Products and sums of `f32`.
    F32,
    /// Sums of `i32`, which wrap around. Elements are whole numbers.
    I32,
}

/// Index of accumulator `v` of a thread in the row-major accumulator matrix, which has `n` columns.
pub(super) fn index(n: usize, thread: usize, v: usize) -> usize {
    let (warp, lane) = (thread / 32, thread % 32);
    let row = 16 * warp + lane / 4 + v / 2 % 2 * 8;
    let column = lane % 4 * 2 + v % 2 + v / 4 * 8;
    row * n + column
}

/// Computes `sums = A·Bᵀ`, or `sums += A·Bᵀ` if `accumulate`, of rows of k of A and B. Sums are the bits of numbers.
pub(super) fn multiply(
    shape: &WgmmaShape,
    a: &[f32],
    b: &[f32],
    accumulate: bool,
    sums: &mut [u32],
) {
    let k = K_BYTES / shape.a.element_bytes;
    if !accumulate {
        // 0 has the same bits in both types.
        sums.fill(0);
    }
    let mut columns = vec![0.0; b.len()];
    for (i, value) in b.iter().enumerate() {
        columns[i % k * shape.n + i / k] = *value;
    }
    #[cfg(target_arch = "x86_64")]
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2.
        unsafe { add_products_avx2(a, &columns, sums, k, shape) };
        return;
    }
    add_products(a, &columns, sums, k, shape);
}

/// [`add_products`], compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_products_avx2(a: &[f32], columns: &[f32], sums: &mut [u32], k: usize, shape: &WgmmaShape) {
    add_products(a, columns, sums, k, shape);
}

/// Adds the products of `a` (rows of `k`) and `columns` (`k` rows of `n`) to the sums. Products of the element types
/// are exact in `f32`.
#[inline(always)]
fn add_products(a: &[f32], columns: &[f32], sums: &mut [u32], k: usize, shape: &WgmmaShape) {
    match shape.sums {
        WgmmaArithmetic::F32 => add_with(a, columns, sums, [k, shape.n], |sum, product| {
            (f32::from_bits(sum) + product).to_bits()
        }),
        WgmmaArithmetic::I32 => add_with(a, columns, sums, [k, shape.n], |sum, product| {
            sum.wrapping_add_signed(product as i32)
        }),
    }
}

/// [`add_products`], where `add` adds a product to a sum.
#[inline(always)]
fn add_with(
    a: &[f32],
    columns: &[f32],
    sums: &mut [u32],
    [k, n]: [usize; 2],
    add: impl Fn(u32, f32) -> u32,
) {
    for (row, sums) in a.chunks_exact(k).zip(sums.chunks_exact_mut(n)) {
        for (a, column) in row.iter().zip(columns.chunks_exact(n)) {
            for (sum, b) in sums.iter_mut().zip(column) {
                *sum = add(*sum, a * b);
            }
        }
    }
}

/// Reads an instruction's operands from shared memory, and notes which units it has read.
pub(super) struct Reader<'a> {
    pub(super) access: Access,
    /// Number of the instruction's group, counted from 1.
    pub(super) group: u32,
    /// For each unit of the block's shared memory, the last group that read it.
    pub(super) last_read: &'a [Cell<u32>],
}

impl Reader<'_> {
    /// The unit at an address of a tile whose swizzle has a span of `span` bytes.
    #[track_caller]
    fn unit(&self, address: usize, span: usize) -> [u8; UNIT] {
        // An address in a descriptor has 18 bits.
        let address = address as u32;
        let address = address ^ (address >> 7 & (span as u32 / 16 - 1)) << 4;
        let (block, offset) = locate(address, UNIT as u32, UNIT as u32);
        self.access.check(block, offset, UNIT as u32);
        self.access
            .check_stores(("a wgmma", Readers::Several), block, offset, UNIT as u32);
        self.last_read[offset as usize / UNIT].set(self.group);
        // SAFETY: `locate` checked the range.
        unsafe { block.shared.at(offset).cast::<[u8; UNIT]>().read() }
    }

    /// The `mn` rows of k of an operand that a descriptor describes.
    #[track_caller]
    pub(super) fn operand(&self, descriptor: u64, operand: &WgmmaOperand, mn: usize) -> Vec<f32> {
        let field = |bit: u32| (descriptor >> bit & 0x3FFF) as usize * UNIT;
        let (start, leading, stride) = (field(0), field(16), field(32));
        assert!(
            descriptor >> 49 & 7 == 0,
            "a matrix descriptor has base offset {}: align the tile so that it is 0",
            descriptor >> 49 & 7
        );
        let span = match descriptor >> 62 {
            0 => 16,
            1 => 128,
            2 => 64,
            _ => 32,
        };
        let elements = UNIT / operand.element_bytes;
        let k = K_BYTES / operand.element_bytes;
        let uses_leading = span == UNIT || !operand.k_major && mn > span / operand.element_bytes;
        assert!(
            uses_leading || leading <= UNIT,
            "a matrix descriptor has a leading offset of {leading} bytes, which this operand does not use: bits of an \
             address beyond its lowest 18 get there, such as a block's rank in its cluster; mask the address"
        );
        let mut numbers = vec![0.0; mn * k];
        let mut unit = [0.0; UNIT];
        if operand.k_major {
            for row in 0..mn {
                for u in 0..k / elements {
                    let along_k = if span == 16 { u * leading } else { u * UNIT };
                    let offset = row % 8 * span + row / 8 * stride + along_k;
                    (operand.decode)(&self.unit(start + offset, span), &mut unit[..elements]);
                    let to = row * k + u * elements;
                    numbers[to..to + elements].copy_from_slice(&unit[..elements]);
                }
            }
        } else {
            for column in 0..k {
                for u in 0..mn / elements {
                    let units = span / UNIT;
                    let offset = if span == 16 {
                        u * stride + column % 8 * UNIT + column / 8 * leading
                    } else {
                        u % units * UNIT
                            + u / units * leading
                            + column % 8 * span
                            + column / 8 * stride
                    };
                    (operand.decode)(&self.unit(start + offset, span), &mut unit[..elements]);
                    for (i, value) in unit[..elements].iter().enumerate() {
                        numbers[(u * elements + i) * k + column] = *value;
                    }
                }
            }
        }
        numbers
    }
}
