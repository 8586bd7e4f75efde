//! `mma.sync`: matrix products of a warp, whose operands and accumulators are in registers.

use core::marker::PhantomData;

use cutlet_layout_core::{
    Fragment, M8N8K4Bits64, M16N8K8Bits32, M16N8K16Bits16, M16N8K32Bits8, Mma, ThreadValue,
};
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
use cutlet_layout_core::{M16N8K8Bits64, M16N8K16Bits64};
use half::{bf16, f16};

use crate::MmaInstruction;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_89"))]
use crate::fp8::{F8E4M3, F8E5M2};

/// A matrix instruction of a warp.
///
/// A register of 32 bits holds neighbours along k, the first one in its lowest bits: two elements of 16 bits or four of
/// 8 bits.
#[diagnostic::on_unimplemented(
    message = "there is no instruction `{Self}` on the GPUs that the kernel is for",
    note = "`Mma16816` is of bf16 or f16; `Mma16832` is of i8 or u8, and from sm_89 on of 8-bit floats",
    note = "`Mma1688F64` and `Mma16816F64` need sm_90"
)]
pub trait WarpMma: MmaInstruction + Mma {
    /// A thread's registers of A.
    type FragmentA: Copy;
    /// A thread's registers of B.
    type FragmentB: Copy;

    /// The registers of a thread's elements of A.
    fn registers_a(element: impl Fn(usize) -> <Self as MmaInstruction>::A) -> Self::FragmentA;

    /// The registers of a thread's elements of B.
    fn registers_b(element: impl Fn(usize) -> <Self as MmaInstruction>::B) -> Self::FragmentB;

    /// Computes `acc += A·Bᵀ` of the M rows of A and the N rows of B. All lanes of the warp call it.
    fn mma(acc: &mut Fragment<Self::Acc, Self::Values>, a: Self::FragmentA, b: Self::FragmentB);
}

/// `mma.m16n8k16` of `bf16` or `f16`, with `f32` accumulators.
///
/// ```
/// use cutlet_device::MmaInstruction;
/// use cutlet_device::sm80::{Mma16816, WarpMma};
/// use half::bf16;
///
/// type Mma = Mma16816<bf16>;
/// assert_eq!((Mma::M, Mma::N, Mma::K), (16, 8, 16));
/// assert_eq!(size_of::<<Mma as WarpMma>::FragmentA>(), 8 * size_of::<bf16>());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Mma16816<T>(PhantomData<T>);

/// `mma.m16n8k8` of tf32, with `f32` accumulators.
///
/// A register holds an `f32`, of which the instruction ignores the lowest 13 bits. [`to_tf32`] rounds to such a number.
#[derive(Clone, Copy, Debug)]
pub struct Mma1688Tf32;

/// `mma.m16n8k32` of `i8` or `u8`, with `i32` accumulators that wrap around. From sm_89 on, also of [`F8E4M3`] or
/// [`F8E5M2`], with `f32` accumulators.
#[derive(Clone, Copy, Debug)]
pub struct Mma16832<T>(PhantomData<T>);

/// `mma.m8n8k4` of `f64`.
#[derive(Clone, Copy, Debug)]
pub struct Mma884F64;

/// `mma.m16n8k8` of `f64`. It needs sm_90.
#[derive(Clone, Copy, Debug)]
pub struct Mma1688F64;

/// `mma.m16n8k16` of `f64`. It needs sm_90.
#[derive(Clone, Copy, Debug)]
pub struct Mma16816F64;

/// The nearest tf32 number, ties away from zero: an `f32` whose lowest 13 bits are zeros.
///
/// ```
/// use cutlet_device::sm80::to_tf32;
///
/// assert_eq!(f32::from_bits(to_tf32(1.0 + 1.0 / 2048.0)), 1.0 + 1.0 / 1024.0);
/// ```
#[inline(always)]
pub fn to_tf32(value: f32) -> u32 {
    imp::to_tf32(value)
}

/// Elements of an operand that have registers `R`.
trait InRegister<R>: Sized {
    /// Elements of a register.
    const COUNT: usize;

    /// The register of the elements from `first` on.
    fn register(first: usize, element: &impl Fn(usize) -> Self) -> R;
}

/// As many registers as there are, with elements in their order.
#[inline(always)]
fn registers<T: InRegister<R>, R, const N: usize>(element: impl Fn(usize) -> T) -> [R; N] {
    core::array::from_fn(|nth| T::register(T::COUNT * nth, &element))
}

macro_rules! in_register {
    ($($count:literal of $element:ty: $bits:expr, bits $width:literal;)*) => {$(
        impl InRegister<u32> for $element {
            const COUNT: usize = $count;

            #[inline(always)]
            fn register(first: usize, element: &impl Fn(usize) -> Self) -> u32 {
                let mut register = 0;
                let mut nth = 0;
                while nth < $count {
                    register |= u32::from($bits(element(first + nth))) << ($width * nth);
                    nth += 1;
                }
                register
            }
        }
    )*};
}
in_register! {
    2 of bf16: bf16::to_bits, bits 16;
    2 of f16: f16::to_bits, bits 16;
    4 of u8: u8::from, bits 8;
    4 of i8: i8::cast_unsigned, bits 8;
    1 of f32: to_tf32, bits 32;
}

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_89"))]
in_register! {
    4 of F8E4M3: F8E4M3::to_bits, bits 8;
    4 of F8E5M2: F8E5M2::to_bits, bits 8;
}

impl InRegister<f64> for f64 {
    const COUNT: usize = 1;

    #[inline(always)]
    fn register(first: usize, element: &impl Fn(usize) -> Self) -> f64 {
        element(first)
    }
}

/// Implements an instruction: its M, N and K, the types of its elements and accumulators, and its atom. The second line
/// names a thread's registers of A, B and the accumulators. The third is its name in PTX, with the version of PTX if
/// the instruction needs a later one than its target.
macro_rules! instruction {
    (
        $instruction:ty: [$m:literal, $n:literal, $k:literal] $element:ty => $acc:ty, $atom:ty,
        A: $fragment_a:ty, [$($a:ident)*], B: $fragment_b:ty, [$($b:ident)*], C: [$($c:literal)*],
        $class:ident $ptx:literal $($isa:literal)?
    ) => {
        impl MmaInstruction for $instruction {
            type A = $element;
            type B = $element;
            type Acc = $acc;
            const M: usize = $m;
            const N: usize = $n;
            const K: usize = $k;
            type Values = <<$atom as Mma>::LayoutC as ThreadValue>::Val;
        }

        impl Mma for $instruction {
            type LayoutA = <$atom as Mma>::LayoutA;
            type LayoutB = <$atom as Mma>::LayoutB;
            type LayoutC = <$atom as Mma>::LayoutC;
            type RowsOfC = <$atom as Mma>::RowsOfC;
            type M = <$atom as Mma>::M;
            type N = <$atom as Mma>::N;
            type K = <$atom as Mma>::K;
            const NAME: &'static str = <$atom as Mma>::NAME;
        }

        impl WarpMma for $instruction {
            type FragmentA = $fragment_a;
            type FragmentB = $fragment_b;

            #[inline(always)]
            fn registers_a(element: impl Fn(usize) -> $element) -> $fragment_a {
                registers(element)
            }

            #[inline(always)]
            fn registers_b(element: impl Fn(usize) -> $element) -> $fragment_b {
                registers(element)
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            fn mma(
                acc: &mut Fragment<$acc, Self::Values>,
                a: $fragment_a,
                b: $fragment_b,
            ) {
                imp::mma!($element, $acc, $m, $k, acc, a [$($a)*], b [$($b)*], [$($c)*],
                    $class $ptx $($isa)?);
            }
        }
    };
}

/// [`instruction!`] with 16×8 accumulators and operands in four and two registers of 32 bits.
macro_rules! words {
    ($($instruction:ty: $k:literal, $element:ty => $acc:ty, $atom:ty, $ptx:literal $($isa:literal)?;)*) => {$(
        instruction! {
            $instruction: [16, 8, $k] $element => $acc, $atom,
            A: [u32; 4], [a0 a1 a2 a3], B: [u32; 2], [b0 b1], C: [0 1 2 3], reg32 $ptx $($isa)?
        }
    )*};
}

words! {
    Mma16816<bf16>: 16, bf16 => f32, M16N8K16Bits16, "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32";
    Mma16816<f16>: 16, f16 => f32, M16N8K16Bits16, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";
    Mma1688Tf32: 8, f32 => f32, M16N8K8Bits32, "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32";
    Mma16832<i8>: 32, i8 => i32, M16N8K32Bits8, "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32";
    Mma16832<u8>: 32, u8 => i32, M16N8K32Bits8, "mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32";
}

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_89"))]
words! {
    Mma16832<F8E4M3>: 32, F8E4M3 => f32, M16N8K32Bits8,
        "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32" "8.4";
    Mma16832<F8E5M2>: 32, F8E5M2 => f32, M16N8K32Bits8,
        "mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32" "8.4";
}

instruction! {
    Mma884F64: [8, 8, 4] f64 => f64, M8N8K4Bits64,
    A: [f64; 1], [a0], B: [f64; 1], [b0], C: [0 1],
    reg64 "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
}

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
instruction! {
    Mma1688F64: [16, 8, 8] f64 => f64, M16N8K8Bits64,
    A: [f64; 4], [a0 a1 a2 a3], B: [f64; 2], [b0 b1], C: [0 1 2 3],
    reg64 "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64"
}

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
instruction! {
    Mma16816F64: [16, 8, 16] f64 => f64, M16N8K16Bits64,
    A: [f64; 8], [a0 a1 a2 a3 a4 a5 a6 a7], B: [f64; 4], [b0 b1 b2 b3], C: [0 1 2 3],
    reg64 "mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64"
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    /// Issues an instruction. The assembly is not `pure`: the compiler would move it to where its results are used,
    /// which not all lanes of the warp may reach.
    macro_rules! mma {
        ($element:ty, $acc_type:ty, $m:literal, $k:literal, $acc:ident, $a:ident [$($an:ident)*],
            $b:ident [$($bn:ident)*], [$first:literal $($c:literal)*], $class:ident $ptx:literal $($isa:literal)?) => {{
            let [$($an),*] = $a;
            let [$($bn),*] = $b;
            let mut d = [$acc.get($first), $($acc.get($c)),*];
            // SAFETY: arithmetic.
            unsafe {
                core::arch::asm!(
                    $(concat!("// cutlet-isa ", $isa),)?
                    concat!($ptx, " {{{", $first, "}", $(", {", $c, "}",)* "}}, {{",
                        imp::list!($($an)*), "}}, {{", imp::list!($($bn)*), "}}, {{{",
                        $first, "}", $(", {", $c, "}",)* "}};"),
                    inout($class) d[$first],
                    $(inout($class) d[$c],)*
                    $($an = in($class) $an,)*
                    $($bn = in($class) $bn,)*
                    options(nomem, nostack)
                );
            }
            $acc.set($first, d[$first]);
            $($acc.set($c, d[$c]);)*
        }};
    }
    pub(super) use mma;

    /// The operands of a vector, separated by commas.
    macro_rules! list {
        ($first:ident $($name:ident)*) => {
            concat!("{", stringify!($first), "}", $(", {", stringify!($name), "}",)*)
        };
    }
    pub(super) use list;

    #[inline(always)]
    pub fn to_tf32(value: f32) -> u32 {
        let bits;
        // SAFETY: arithmetic.
        unsafe {
            asm!("cvt.rna.tf32.f32 {}, {};", out(reg32) bits, in(reg32) value,
                options(pure, nomem, nostack));
        }
        bits
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use cutlet_simt::MmaOperand;
    use half::{bf16, f16};

    use crate::Float;
    use crate::fp8::{F8E4M3, F8E5M2};

    /// The bits of a 32-bit float that tf32 lacks.
    const BELOW_TF32: u32 = 0x1FFF;

    macro_rules! mma {
        ($element:ty, $acc_type:ty, $m:literal, $k:literal, $acc:ident, $a:ident [$($an:ident)*],
            $b:ident [$($bn:ident)*], [$($c:literal)*], $class:ident $ptx:literal $($isa:literal)?) => {{
            const SHAPE: cutlet_simt::MmaShape = cutlet_simt::MmaShape {
                m: $m,
                k: $k,
                operand: imp::operand::<$element>(),
                sums: <$acc_type as imp::Sum>::SUMS,
            };
            let mut sums = [$(imp::Sum::to_bits($acc.get($c))),*];
            cutlet_simt::mma_sync(
                &SHAPE,
                &$a.map(imp::Register::bits),
                &$b.map(imp::Register::bits),
                &mut sums,
            );
            $($acc.set($c, imp::Sum::from_bits(sums[$c]));)*
        }};
    }
    pub(super) use mma;

    /// A register of an operand.
    pub trait Register {
        /// Its bits.
        fn bits(self) -> u64;
    }

    impl Register for u32 {
        fn bits(self) -> u64 {
            self.into()
        }
    }

    impl Register for f64 {
        fn bits(self) -> u64 {
            self.to_bits()
        }
    }

    /// An accumulator.
    pub trait Sum {
        /// Its type.
        const SUMS: cutlet_simt::MmaSums;
        /// Its bits.
        fn to_bits(self) -> u64;
        /// The accumulator with these bits.
        fn from_bits(bits: u64) -> Self;
    }

    impl Sum for f32 {
        const SUMS: cutlet_simt::MmaSums = cutlet_simt::MmaSums::F32;

        fn to_bits(self) -> u64 {
            self.to_bits().into()
        }

        fn from_bits(bits: u64) -> Self {
            Self::from_bits(bits as u32)
        }
    }

    impl Sum for i32 {
        const SUMS: cutlet_simt::MmaSums = cutlet_simt::MmaSums::S32;

        fn to_bits(self) -> u64 {
            (self as u32).into()
        }

        fn from_bits(bits: u64) -> Self {
            bits as Self
        }
    }

    impl Sum for f64 {
        const SUMS: cutlet_simt::MmaSums = cutlet_simt::MmaSums::F64;

        fn to_bits(self) -> u64 {
            self.to_bits()
        }

        fn from_bits(bits: u64) -> Self {
            Self::from_bits(bits)
        }
    }

    /// An element of an operand.
    pub trait Element {
        /// Its value, as an instruction reads it from a register's bits. Higher bits are ignored.
        fn number(bits: u64) -> f64;
    }

    macro_rules! element {
        ($($type:ty: $number:expr;)*) => {$(
            impl Element for $type {
                fn number(bits: u64) -> f64 {
                    $number(bits)
                }
            }
        )*};
    }
    element! {
        bf16: |bits| f64::from(Float::to_f32(bf16::from_bits(bits as u16)));
        f16: |bits| f64::from(Float::to_f32(f16::from_bits(bits as u16)));
        f32: |bits| f64::from(f32::from_bits(bits as u32 & !BELOW_TF32));
        i8: |bits| f64::from(bits as i8);
        u8: |bits| f64::from(bits as u8);
        F8E4M3: |bits| f64::from(F8E4M3::from_bits(bits as u8).to_f32());
        F8E5M2: |bits| f64::from(F8E5M2::from_bits(bits as u8).to_f32());
        f64: f64::from_bits;
    }

    pub const fn operand<T: Element>() -> MmaOperand {
        MmaOperand {
            element_bytes: size_of::<T>(),
            number: T::number,
        }
    }

    /// An infinity stays as it is. Of a NaN, the lowest bits are dropped, as on the GPU.
    pub fn to_tf32(value: f32) -> u32 {
        let bits = value.to_bits();
        if value.is_finite() {
            (bits + BELOW_TF32.div_ceil(2)) & !BELOW_TF32
        } else {
            bits & !BELOW_TF32
        }
    }
}
