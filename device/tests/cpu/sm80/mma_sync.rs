//! `mma.sync`, compared with plain products.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::sm80::*;
use cutlet_device::{DeviceData, thread_idx};
use cutlet_layout_core::{Fragment, Layout, StaticLayout};
use half::{bf16, f16};

use crate::fixture::{failure, launch, says, small};

/// Numbers without a pattern, from a seed.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// From −2 to 2.
    fn number(&mut self) -> f64 {
        self.bits() as i64 as f64 * 2f64.powi(-62)
    }
}

/// An element of an operand: its bits in a register, and its value.
type Encoded = (u64, f64);

/// A type of operands.
trait Operand: DeviceData {
    fn random(random: &mut Random) -> Encoded;
}

macro_rules! operand {
    ($($type:ty: |$random:ident| $value:expr, $bits:ident as $word:ty, $number:ident;)*) => {$(
        impl Operand for $type {
            fn random($random: &mut Random) -> Encoded {
                let value: $type = $value;
                (u64::from(value.$bits() as $word), f64::from(value.$number()))
            }
        }
    )*};
}
operand! {
    bf16: |random| bf16::from_f64(random.number()), to_bits as u16, to_f64;
    f16: |random| f16::from_f64(random.number()), to_bits as u16, to_f64;
    i8: |random| random.bits() as i8, cast_unsigned as u8, into_number;
    u8: |random| random.bits() as u8, into_bits as u8, into_number;
    F8E4M3: |random| F8E4M3::from_f32(random.number() as f32), to_bits as u8, to_f32;
    F8E5M2: |random| F8E5M2::from_bits(0x30 | random.bits() as u8 & 0x8F), to_bits as u8, to_f32;
}

/// Names that `operand!` needs of integers.
trait Integer {
    fn into_number(self) -> f64;
    fn into_bits(self) -> u8;
}

impl Integer for i8 {
    fn into_number(self) -> f64 {
        self.into()
    }
    fn into_bits(self) -> u8 {
        self as u8
    }
}

impl Integer for u8 {
    fn into_number(self) -> f64 {
        self.into()
    }
    fn into_bits(self) -> u8 {
        self
    }
}

impl Operand for f32 {
    fn random(random: &mut Random) -> Encoded {
        let bits = to_tf32(random.number() as f32);
        // The instruction ignores the lowest bits.
        let noise = random.bits() as u32 & 0x1FFF;
        ((bits | noise).into(), f32::from_bits(bits).into())
    }
}

impl Operand for f64 {
    fn random(random: &mut Random) -> Encoded {
        let value = random.number();
        (value.to_bits(), value)
    }
}

/// A type of accumulators.
trait Sum: DeviceData {
    fn random(random: &mut Random) -> Self;
    fn to_number(self) -> f64;
    /// Whether the sum is right but for rounding. `terms` is the sum of the terms' absolute values.
    fn is_near(self, sum: f64, terms: f64) -> bool;
}

impl Sum for f32 {
    fn random(random: &mut Random) -> Self {
        random.number() as Self
    }
    fn to_number(self) -> f64 {
        self.into()
    }
    fn is_near(self, sum: f64, terms: f64) -> bool {
        (f64::from(self) - sum).abs() <= terms * 2f64.powi(-24)
    }
}

impl Sum for f64 {
    fn random(random: &mut Random) -> Self {
        random.number()
    }
    fn to_number(self) -> f64 {
        self
    }
    fn is_near(self, sum: f64, terms: f64) -> bool {
        (self - sum).abs() <= terms * 2f64.powi(-50)
    }
}

impl Sum for i32 {
    fn random(random: &mut Random) -> Self {
        // Some sums wrap around.
        random.bits() as Self | 0x7FFF_0000
    }
    fn to_number(self) -> f64 {
        self.into()
    }
    fn is_near(self, sum: f64, _: f64) -> bool {
        self == sum as i64 as i32
    }
}

/// A lane's registers of an operand.
trait Registers: Copy {
    /// Packs elements, the first ones in the lowest bits.
    fn pack<T>(elements: impl Iterator<Item = u64>) -> Self;
}

impl<const N: usize> Registers for [u32; N] {
    fn pack<T>(elements: impl Iterator<Item = u64>) -> Self {
        let mut registers = [0; N];
        let in_register = 4 / size_of::<T>();
        for (i, bits) in elements.enumerate() {
            registers[i / in_register] |= (bits as u32) << (8 * size_of::<T>() * (i % in_register));
        }
        registers
    }
}

impl<const N: usize> Registers for [f64; N] {
    fn pack<T>(elements: impl Iterator<Item = u64>) -> Self {
        let mut registers = [0.0; N];
        for (register, bits) in registers.iter_mut().zip(elements) {
            *register = f64::from_bits(bits);
        }
        registers
    }
}

/// A matrix with its elements down the columns, as atoms count them.
fn random_matrix<T: Operand>(size: usize, random: &mut Random) -> Vec<Encoded> {
    (0..size).map(|_| T::random(random)).collect()
}

/// Compares an instruction with plain sums of products. The atom's layouts say which elements a lane has.
fn check<I>()
where
    I: WarpMma<FragmentA: Registers, FragmentB: Registers>,
    I::A: Operand,
    I::B: Operand,
    I::Acc: Sum + Sync,
{
    let atom = I::ATOM;
    assert_eq!(atom.shape(), [I::M as i64, I::N as i64, I::K as i64]);
    assert_eq!(atom.c().mode(1).size() as usize, I::Values::SIZE);
    for seed in 0..20 {
        let mut random = Random(seed);
        let a = random_matrix::<I::A>(I::M * I::K, &mut random);
        let b = random_matrix::<I::B>(I::N * I::K, &mut random);
        let c: Vec<I::Acc> = (0..I::M * I::N)
            .map(|_| I::Acc::random(&mut random))
            .collect();
        let held = |layout: &Layout, lane: usize| -> Vec<usize> {
            let values = layout.mode(1).size() as usize;
            (0..values)
                .map(|v| layout.at((lane + 32 * v) as i64) as usize)
                .collect()
        };
        launch(64, 1, 1, || {
            let lane = thread_idx().get() as usize % 32;
            let fragment_a = Registers::pack::<I::A>(held(atom.a(), lane).iter().map(|&i| a[i].0));
            let fragment_b = Registers::pack::<I::B>(held(atom.b(), lane).iter().map(|&i| b[i].0));
            let own = held(atom.c(), lane);
            let mut sums = Fragment::<I::Acc, I::Values>::from_fn(|v| c[own[v]]);
            I::mma(&mut sums, fragment_a, fragment_b);
            for (v, &at) in own.iter().enumerate() {
                let (row, column) = (at % I::M, at / I::M);
                let (mut sum, mut terms) = (c[at].to_number(), c[at].to_number().abs());
                for k in 0..I::K {
                    let product = a[row + I::M * k].1 * b[column + I::N * k].1;
                    sum += product;
                    terms += product.abs();
                }
                let found = sums.get(v);
                assert!(
                    found.is_near(sum, terms),
                    "lane {lane}, value {v}: {} instead of {sum}",
                    found.to_number()
                );
            }
        })
        .unwrap();
    }
    // The values are the atom's.
    for v in 0..I::Values::SIZE {
        let at = |d| I::Values::LAYOUT.at_basis(v as i64, d);
        assert_eq!(atom.c().at(32 * v as i64), at(0) + at(1) * I::M as i64);
    }
}

#[test]
fn instructions_multiply() {
    check::<Mma16816<bf16>>();
    check::<Mma16816<f16>>();
    check::<Mma1688Tf32>();
    check::<Mma16832<i8>>();
    check::<Mma16832<u8>>();
    check::<Mma16832<F8E4M3>>();
    check::<Mma16832<F8E5M2>>();
    check::<Mma884F64>();
    check::<Mma1688F64>();
    check::<Mma16816F64>();
}

#[test]
fn sums_of_f32_are_rounded_once_and_those_of_f64_by_each_multiply_add() {
    let [wide, fused] = [const { AtomicU64::new(0) }; 2];
    launch(32, 1, 1, || {
        // Row 0 of A and of B is 1, −1, 2⁻³⁰, … and 2²⁰, 2²⁰, 2⁻³⁰, …
        let first = |bits: [f32; 2]| match thread_idx().get() {
            0 => {
                u32::from(bf16::from_f32(bits[0]).to_bits())
                    | u32::from(bf16::from_f32(bits[1]).to_bits()) << 16
            }
            1 => u32::from(bf16::from_f32(2f32.powi(-15)).to_bits()),
            _ => 0,
        };
        let mut sums = Fragment::filled(0.0);
        Mma16816::<bf16>::mma(
            &mut sums,
            [first([1.0, -1.0]), 0, 0, 0],
            [first([1048576.0, 1048576.0]), 0],
        );
        if thread_idx().get() == 0 {
            wide.store(u64::from(sums.get(0).to_bits()), Relaxed);
        }
        // (1 + ε)² − 1 − 2ε, exactly ε².
        let one = f64::from(thread_idx().get() == 0);
        let epsilon = f64::EPSILON;
        let mut sums = Fragment::filled(-1.0 - 2.0 * epsilon);
        Mma884F64::mma(&mut sums, [one + epsilon * one], [one + epsilon * one]);
        if thread_idx().get() == 0 {
            fused.store(sums.get(0).to_bits(), Relaxed);
        }
    })
    .unwrap();
    assert_eq!(f32::from_bits(wide.into_inner() as u32), 2f32.powi(-30));
    assert_eq!(
        f64::from_bits(fused.into_inner()),
        f64::EPSILON * f64::EPSILON
    );
}

#[test]
fn a_warp_multiplies_as_a_whole() {
    let product = || {
        let mut sums = Fragment::filled(0);
        Mma16832::<i8>::mma(&mut sums, [0; 4], [0; 2]);
    };
    says(
        &failure(launch(48, 1, 1, product)),
        &["mma.sync is called by a warp of 16 threads"],
    );
    let partly = || {
        if thread_idx().get() != 5 {
            product();
        }
    };
    says(
        &failure(launch(32, 1, 1, partly)),
        &["waits in mma.sync for lanes of its warp (mask 0x00000020)"],
    );
}

#[test]
fn to_tf32_rounds_to_nearest_with_ties_away_from_zero() {
    let rounded = |value: f32| f32::from_bits(to_tf32(value));
    let step = 2f32.powi(-10);
    for sign in [1.0, -1.0] {
        assert_eq!(rounded(sign), sign);
        assert_eq!(rounded(sign * (1.0 + step)), sign * (1.0 + step));
        assert_eq!(rounded(sign * (1.0 + 0.5 * step)), sign * (1.0 + step));
        assert_eq!(
            rounded(sign * (1.0 + 1.5 * step)),
            sign * (1.0 + 2.0 * step)
        );
        let below_tie = f32::from_bits((1.0 + 0.5 * step).to_bits() - 1);
        assert_eq!(rounded(sign * below_tie), sign);
        assert_eq!(rounded(sign * f32::INFINITY), sign * f32::INFINITY);
        assert_eq!(rounded(sign * f32::MAX), sign * f32::INFINITY);
        assert_eq!(to_tf32(sign * 0.0), (sign * 0.0).to_bits());
    }
    assert!(rounded(f32::NAN).is_nan());
    // As an H100 does.
    for (bits, as_tf32) in [
        (0x7FFF_FFFF, 0x7FFF_E000),
        (0xFFC1_2345, 0xFFC1_2000),
        (0x7F80_1FFF, 0x7F80_0000),
        (0x7F7F_EFFF, 0x7F7F_E000),
        (0x0000_1000, 0x0000_2000),
        (0x807F_FFFF, 0x8080_0000),
    ] {
        assert_eq!(to_tf32(f32::from_bits(bits)), as_tf32, "{bits:#x}");
    }
    for i in 0..10_000 {
        let value = small(i) as f32 + i as f32 * 1.37e-4;
        let near = rounded(value);
        assert_eq!(near.to_bits() & 0x1FFF, 0);
        assert!((near - value).abs() <= value.abs() * step / 2.0, "{value}");
    }
}
