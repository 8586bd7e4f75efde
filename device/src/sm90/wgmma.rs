//! `wgmma`: matrix products of a warpgroup, of operands in shared memory, into registers. A may be in registers, too.
//!
//! The instructions are asynchronous. [`warpgroup_arrive`] opens a group, [`WgmmaGroup::mma`] adds an instruction to
//! it, and [`WgmmaGroup::commit`] closes it. [`warpgroup_wait`] waits until at most a given number of groups is
//! pending. [`Accumulator::wait`] waits for all groups and returns the accumulators.

use core::marker::PhantomData;

use cutlet_layout_core::{
    E, Fragment, M as Extent, Mma, StaticLayout, StaticSwizzle, ThreadValue, Tv, WgmmaC,
};
use half::{bf16, f16};

use super::{AccumulatorsAsA, RegisterA, RegisterElement};
use crate::fp8::{F8E4M3, F8E5M2};
use crate::operand::{MatrixDescriptor, Operand, OperandA, OperandB};
use crate::tile::{KMajor, Major};
use crate::{MmaInstruction, PartialSum, SharedMma};

/// The instruction `wgmma` with 64 × `N` accumulators, for operands of `TA` and `TB`. `N` is 8 to 256, in steps of 8.
/// Beyond 32, integers have steps of 16.
///
/// | `TA`, `TB` | accumulators | k | majors |
/// |---|---|---|---|
/// | `bf16`, `bf16` or `f16`, `f16` | `f32` | 16 | any |
/// | `f32`, `f32`: rounded towards zero to tf32 | `f32` | 8 | K |
/// | [`F8E4M3`] or [`F8E5M2`] each | `f32` | 32 | K |
/// | `i8`, `i8` | `i32`, which wraps around | 32 | K |
///
/// A comes from shared memory, or [from registers](WgmmaGroup::mma_from_registers). `JA` does not matter for A in
/// registers.
///
/// ```
/// use cutlet_device::sm90::Wgmma;
/// use cutlet_device::tile::{KMajor, MnMajor};
/// use cutlet_device::MmaInstruction;
/// use half::bf16;
///
/// /// B is row-major.
/// type Mma = Wgmma<256, bf16, bf16, KMajor, MnMajor>;
/// assert_eq!((Mma::N, Mma::K), (256, 16));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Wgmma<const N: usize, TA, TB = TA, JA = KMajor, JB = KMajor>(
    PhantomData<(TA, TB, JA, JB)>,
);

/// A matrix instruction: the [`Wgmma`]s that exist.
#[diagnostic::on_unimplemented(
    message = "there is no instruction `{Self}`",
    note = "N is 8 to 256 in steps of 8, or of 16 for integers beyond 32",
    note = "the operands are bf16, f16, f32 (as tf32), 8-bit floats or i8",
    note = "only bf16 and f16 operands may be MN-major"
)]
pub trait WgmmaInstruction: SharedMma<Acc: PartialSum> + imp::Instruction {
    /// One `V` for each k-step of a product whose operand A is made of the accumulators: N / 16.
    type KSteps<V>: AsRef<[V]>;

    /// The values that `f` makes of the indices of the k-steps.
    fn k_steps<V>(f: impl FnMut(usize) -> V) -> Self::KSteps<V>;
}

/// Which accumulator of an instruction is the first of each thread of a warpgroup. A warp has 16 rows. Four lanes share
/// a row, with two neighbouring columns each.
pub type WarpgroupThreads = <WgmmaC<1> as ThreadValue>::Thr;

/// Which thread holds which accumulators of the instruction `I`, for accesses of `WIDTH` values: 1, or 2 along a row.
pub type AccumulatorLayout<I, const WIDTH: usize = 1> =
    Tv<WarpgroupThreads, <I as MmaInstruction>::Values, WIDTH>;

/// A thread's accumulators of the instruction `I`, to which instructions may be pending.
///
/// They cannot be read before [`wait`](Self::wait).
pub struct Accumulator<I: WgmmaInstruction>(imp::Accumulators<I>);

impl<I: WgmmaInstruction> Accumulator<I> {
    /// Accumulators without a value: the first instruction must replace them, not add to them.
    #[inline(always)]
    #[allow(
        clippy::new_without_default,
        reason = "accumulators without a value are no default"
    )]
    pub fn new() -> Self {
        Self(imp::Accumulators::new())
    }

    /// Accumulators that begin with these values.
    #[inline(always)]
    pub fn from_values(values: &Fragment<I::Acc, I::Values>) -> Self {
        Self(imp::Accumulators::from_values(values))
    }

    /// Waits for all groups, and returns the accumulators. Value `v` of thread `t` of the warpgroup is at
    /// [`WarpgroupThreads`]`(t) + `[`Values`](MmaInstruction::Values)`(v)`.
    ///
    /// All threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait(self) -> Fragment<I::Acc, I::Values> {
        warpgroup_wait::<0>();
        self.0.into_values()
    }

    /// As [`wait`](Self::wait), but waits only until at most the latest `PENDING` groups are pending, which must not
    /// have instructions for these accumulators.
    ///
    /// All threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait_but<const PENDING: u32>(self) -> Fragment<I::Acc, I::Values> {
        warpgroup_wait::<PENDING>();
        self.0.into_values()
    }

    /// An array of [`new`](Self::new) accumulators: of neighbouring M atoms, for instance.
    ///
    /// `array::from_fn` would do the same, but takes the compiler long to optimise.
    #[inline(always)]
    pub fn new_array<const COUNT: usize>() -> [Self; COUNT] {
        imp::Accumulators::new_array()
    }

    /// As [`wait`](Self::wait), for an array.
    ///
    /// All threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn wait_array<const COUNT: usize>(
        accumulators: [Self; COUNT],
    ) -> [Fragment<I::Acc, I::Values>; COUNT] {
        warpgroup_wait::<0>();
        imp::Accumulators::array_into_values(accumulators)
    }
}

/// An open group of `wgmma` instructions.
#[derive(Debug)]
#[must_use = "a group cannot be waited for before it is committed"]
pub struct WgmmaGroup(());

/// Opens a group of `wgmma` instructions. All threads of the warpgroup call it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warpgroup_arrive() -> WgmmaGroup {
    imp::fence();
    WgmmaGroup(())
}

impl WgmmaGroup {
    /// Computes `accumulator = A·Bᵀ` of 64 rows of A and N rows of B, and adds the old `accumulator` if `accumulate`.
    ///
    /// All threads of the warpgroup call it with the same descriptors.
    ///
    /// # Safety
    /// The operands must be in the shared memory that the descriptors describe, and visible to the instruction: loaded
    /// by TMA, or written before a [`fence_async_shared`](crate::fence_async_shared). Nothing may overwrite them before
    /// the group was waited for.
    ///
    /// The first instruction must replace [`new`](Accumulator::new) accumulators. Accumulators must not be waited for
    /// or dropped before the group is committed.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn mma<I: WgmmaInstruction>(
        &self,
        accumulator: &mut Accumulator<I>,
        a: MatrixDescriptor<OperandA<I>>,
        b: MatrixDescriptor<OperandB<I>>,
        accumulate: bool,
    ) {
        // SAFETY: as promised by the caller.
        unsafe { accumulator.0.issue(a.bits(), b.bits(), accumulate) };
    }

    /// Four instructions, as four calls of [`mma`](Self::mma) of which the last three accumulate: a k-tile of 64
    /// elements of 16 bits, for instance.
    ///
    /// They are one `asm!`. The compiler passes all accumulators into each `asm!` and out again, so four of them take
    /// four times as long to compile. The machine code is the same.
    ///
    /// # Safety
    /// As [`mma`](Self::mma).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn mma_x4<I: WgmmaInstruction>(
        &self,
        accumulator: &mut Accumulator<I>,
        a: [MatrixDescriptor<OperandA<I>>; 4],
        b: [MatrixDescriptor<OperandB<I>>; 4],
        accumulate: bool,
    ) {
        let a = [a[0].bits(), a[1].bits(), a[2].bits(), a[3].bits()];
        let b = [b[0].bits(), b[1].bits(), b[2].bits(), b[3].bits()];
        // SAFETY: as promised by the caller.
        unsafe { accumulator.0.issue_x4(a, b, accumulate) };
    }

    /// [`mma`](Self::mma) with A in registers: CuTe calls it the RS variant.
    ///
    /// All threads of the warpgroup call it, each with its own elements of A, and with the same descriptor of B.
    ///
    /// # Safety
    /// As [`mma`](Self::mma), for B. `a` must have been made before the group was opened, and must not be dropped
    /// before the group was waited for.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn mma_from_registers<I: WgmmaInstruction<A: RegisterElement>>(
        &self,
        accumulator: &mut Accumulator<I>,
        a: &RegisterA<I::A>,
        b: MatrixDescriptor<OperandB<I>>,
        accumulate: bool,
    ) {
        let accumulator = &mut accumulator.0;
        // SAFETY: as promised by the caller.
        unsafe { accumulator.issue_from_registers(a.registers(), b.bits(), accumulate) };
    }

    /// The instructions of all k-steps of a tile, which add to `accumulator`, with
    /// [accumulators of another product](AccumulatorsAsA) as A.
    ///
    /// # Safety
    /// As [`mma_from_registers`](Self::mma_from_registers).
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn mma_from_accumulators<I, From, L, W>(
        &self,
        accumulator: &mut Accumulator<I>,
        a: &AccumulatorsAsA<From, I::A>,
        b: Operand<OperandB<I>, L, W>,
    ) where
        I: WgmmaInstruction<A: RegisterElement>,
        From: WgmmaInstruction,
        L: StaticLayout,
        W: StaticSwizzle,
    {
        for (k_step, registers) in a.registers().iter().enumerate() {
            let b = b.k_step(k_step).bits();
            let accumulator = &mut accumulator.0;
            // SAFETY: as promised by the caller.
            unsafe { accumulator.issue_from_registers(registers, b, true) };
        }
    }

    /// Closes the group. All threads of the warpgroup call it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn commit(self) {
        imp::commit();
    }
}

/// Waits until at most the latest `PENDING` groups are pending. The operands of earlier groups may then be overwritten.
///
/// All threads of the warpgroup call it.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warpgroup_wait<const PENDING: u32>() {
    const { assert!(PENDING < 8, "at most 7 groups can be left pending") };
    imp::wait::<PENDING>();
}

/// The rows of the table of instructions. Expands `$each!` with its own arguments in braces, and then with the rows. A row
/// is an N, the operands that have it, and the accumulator registers that it has and the N before has not. The operands are `all`, or `floats` alone: beyond 32, integers have every second N.
#[doc(hidden)]
#[macro_export]
macro_rules! __wgmma_n {
    ($each:ident! { $($given:tt)* }) => {
        $each! {
            { $($given)* }
            8: all [0 1 2 3],
            16: all [4 5 6 7],
            24: all [8 9 10 11],
            32: all [12 13 14 15],
            40: floats [16 17 18 19],
            48: all [20 21 22 23],
            56: floats [24 25 26 27],
            64: all [28 29 30 31],
            72: floats [32 33 34 35],
            80: all [36 37 38 39],
            88: floats [40 41 42 43],
            96: all [44 45 46 47],
            104: floats [48 49 50 51],
            112: all [52 53 54 55],
            120: floats [56 57 58 59],
            128: all [60 61 62 63],
            136: floats [64 65 66 67],
            144: all [68 69 70 71],
            152: floats [72 73 74 75],
            160: all [76 77 78 79],
            168: floats [80 81 82 83],
            176: all [84 85 86 87],
            184: floats [88 89 90 91],
            192: all [92 93 94 95],
            200: floats [96 97 98 99],
            208: all [100 101 102 103],
            216: floats [104 105 106 107],
            224: all [108 109 110 111],
            232: floats [112 113 114 115],
            240: all [116 117 118 119],
            248: floats [120 121 122 123],
            256: all [124 125 126 127],
        }
    };
}

/// The columns of the table of instructions. Expands `$each!` with its own arguments in braces, and then with every
/// pair of types: a name, k, the types of A, B and the accumulators, their names in PTX, and the form:
/// the majors that they may have, `any` or `k`, or `integers`, which are K-major and have no factors.
#[doc(hidden)]
#[macro_export]
macro_rules! __wgmma_types {
    ($each:ident! { $($given:tt)* }) => {
        $each! {
            { $($given)* }
            bf16_bf16: 16, bf16, bf16, f32, "f32.bf16.bf16", any;
            f16_f16: 16, f16, f16, f32, "f32.f16.f16", any;
            tf32_tf32: 8, f32, f32, f32, "f32.tf32.tf32", k;
            e4m3_e4m3: 32, F8E4M3, F8E4M3, f32, "f32.e4m3.e4m3", k;
            e4m3_e5m2: 32, F8E4M3, F8E5M2, f32, "f32.e4m3.e5m2", k;
            e5m2_e4m3: 32, F8E5M2, F8E4M3, f32, "f32.e5m2.e4m3", k;
            e5m2_e5m2: 32, F8E5M2, F8E5M2, f32, "f32.e5m2.e5m2", k;
            s8_s8: 32, i8, i8, i32, "s32.s8.s8", integers;
        }
    };
}

/// Expands `instructions!` for every N, with the numbers of its N / 2 accumulator registers. Each row of the table adds
/// four registers to those of the row before.
macro_rules! for_each_n {
    ({ $($registers:literal)* }) => {};
    ({ $($registers:literal)* } $n:literal: $operands:ident [$($more:literal)*], $($rest:tt)*) => {
        __wgmma_types! { instructions! { $operands, $n, [$($registers)* $($more)*] } }
        for_each_n! { { $($registers)* $($more)* } $($rest)* }
    };
}

/// Implements the instructions of one N, for every pair of types that has it.
macro_rules! instructions {
    ({ $operands:ident, $n:literal, $registers:tt }
        $($name:ident: $k:literal, $a:ty, $b:ty, $acc:ty, $types:literal, $form:ident;)*) => {
        $(instruction! { $operands $form $n, $k, $a, $b, $acc, $types, $registers })*
    };
}

macro_rules! instruction {
    (floats integers $($of:tt)*) => {};
    ($operands:ident any $($of:tt)*) => {
        instruction! { @ [JA: Major, JB: Major] JA, JB, any, $($of)* }
    };
    ($operands:ident $form:ident $($of:tt)*) => {
        instruction! { @ [] KMajor, KMajor, $form, $($of)* }
    };
    (@ [$($generics:tt)*] $ja:ty, $jb:ty, $form:ident, $n:literal, $k:literal, $a:ty, $b:ty, $acc:ty,
        $types:literal, $registers:tt) => {
        impl<$($generics)*> MmaInstruction for Wgmma<$n, $a, $b, $ja, $jb> {
            type A = $a;
            type B = $b;
            type Acc = $acc;
            const M: usize = 64;
            const N: usize = $n;
            const K: usize = $k;
            type Values = <WgmmaC<{ $n / 8 }> as ThreadValue>::Val;
        }

        /// All threads of the warpgroup share A and B.
        impl<$($generics)*> Mma for Wgmma<$n, $a, $b, $ja, $jb> {
            type LayoutA = Tv<Extent<128, 0>, (E<64, 1, 0>, E<$k, 1, 1>)>;
            type LayoutB = Tv<Extent<128, 0>, (E<$n, 1, 0>, E<$k, 1, 1>)>;
            type LayoutC = WgmmaC<{ $n / 8 }>;
            type RowsOfC = Extent<2, 1>;
            type M = Extent<64, 1>;
            type N = Extent<$n, 1>;
            type K = Extent<$k, 1>;
            const NAME: &'static str = "wgmma.mma_async.sync.aligned";
        }

        impl<$($generics)*> SharedMma for Wgmma<$n, $a, $b, $ja, $jb> {
            type MajorA = $ja;
            type MajorB = $jb;
        }

        impl<$($generics)*> WgmmaInstruction for Wgmma<$n, $a, $b, $ja, $jb> {
            type KSteps<V> = [V; $n / 16];

            #[inline(always)]
            fn k_steps<V>(f: impl FnMut(usize) -> V) -> [V; $n / 16] {
                core::array::from_fn(f)
            }
        }

        imp::issue!([$($generics)*] $ja, $jb, $n, $k, $a, $b, $acc, $types, $form, $registers);
    };
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;
    use core::mem::MaybeUninit;

    use cutlet_layout_core::Fragment;

    use super::super::register_a::imp::Registers;
    use super::{Accumulator, WgmmaInstruction};

    /// The assembly of an instruction.
    pub trait Instruction {
        /// A thread's accumulator registers.
        type Registers: Copy;

        /// # Safety
        /// As [`WgmmaGroup::mma`](super::WgmmaGroup::mma).
        unsafe fn issue(registers: &mut Self::Registers, a: u64, b: u64, accumulate: bool);

        /// # Safety
        /// As [`WgmmaGroup::mma_x4`](super::WgmmaGroup::mma_x4).
        unsafe fn issue_x4(
            registers: &mut Self::Registers,
            a: [u64; 4],
            b: [u64; 4],
            accumulate: bool,
        );

        /// # Safety
        /// As [`WgmmaGroup::mma_from_registers`](super::WgmmaGroup::mma_from_registers).
        unsafe fn issue_from_registers(
            registers: &mut Self::Registers,
            a: &[u32; 4],
            b: u64,
            accumulate: bool,
        );

        /// Keeps the compiler from reading the registers before this point.
        fn settle(registers: &mut Self::Registers);
    }

    pub struct Accumulators<I: Instruction>(MaybeUninit<I::Registers>);

    impl<I: WgmmaInstruction> Accumulators<I> {
        #[inline(always)]
        pub fn new() -> Self {
            Self(MaybeUninit::uninit())
        }

        #[inline(always)]
        pub fn from_values(values: &Fragment<I::Acc, I::Values>) -> Self {
            let mut registers = MaybeUninit::<I::Registers>::uninit();
            let first = registers.as_mut_ptr().cast::<I::Acc>();
            cutlet_layout_core::each::<I::Values>(|v| {
                // SAFETY: there are as many registers as values.
                unsafe { first.add(v).write(values.get(v)) };
            });
            // Moves the values to the registers before the group begins, not between its instructions.
            // SAFETY: as in `issue`.
            I::settle(unsafe { registers.assume_init_mut() });
            Self(registers)
        }

        #[inline(always)]
        pub unsafe fn issue(&mut self, a: u64, b: u64, accumulate: bool) {
            // SAFETY: registers are arrays of `MaybeUninit`, so they need no initial value. The rest is promised by the
            // caller.
            unsafe { I::issue(self.0.assume_init_mut(), a, b, accumulate) };
        }

        #[inline(always)]
        pub unsafe fn issue_x4(&mut self, a: [u64; 4], b: [u64; 4], accumulate: bool) {
            // SAFETY: as in `issue`.
            unsafe { I::issue_x4(self.0.assume_init_mut(), a, b, accumulate) };
        }

        #[inline(always)]
        pub unsafe fn issue_from_registers(&mut self, a: &Registers, b: u64, accumulate: bool) {
            // SAFETY: as in `issue`.
            unsafe { I::issue_from_registers(self.0.assume_init_mut(), &a.0, b, accumulate) };
        }

        #[inline(always)]
        pub fn into_values(mut self) -> Fragment<I::Acc, I::Values> {
            // SAFETY: as in `issue`.
            I::settle(unsafe { self.0.assume_init_mut() });
            // SAFETY: there are as many registers as values, and the instructions wrote them all.
            unsafe { Fragment::read(self.0.as_ptr().cast()) }
        }

        #[inline(always)]
        pub fn new_array<const COUNT: usize>() -> [Accumulator<I>; COUNT] {
            [const { Accumulator(Self(MaybeUninit::uninit())) }; COUNT]
        }

        #[inline(always)]
        pub fn array_into_values<const COUNT: usize>(
            mut accumulators: [Accumulator<I>; COUNT],
        ) -> [Fragment<I::Acc, I::Values>; COUNT] {
            const { assert!(size_of::<I::Registers>() == size_of::<Fragment<I::Acc, I::Values>>()) };
            let mut nth = 0;
            while nth < COUNT {
                // SAFETY: as in `issue`.
                I::settle(unsafe { accumulators[nth].0.0.assume_init_mut() });
                nth += 1;
            }
            // SAFETY: a fragment is an array of its values. There are as many registers, and the instructions wrote
            // them all.
            unsafe {
                (&raw const accumulators)
                    .cast::<[Fragment<I::Acc, I::Values>; COUNT]>()
                    .read()
            }
        }
    }

    #[inline(always)]
    pub fn fence() {
        // SAFETY: a fence only orders.
        unsafe { asm!("wgmma.fence.sync.aligned;", options(nostack)) };
    }

    #[inline(always)]
    pub fn commit() {
        // SAFETY: the callers of `mma` promised that its operands stay as they are.
        unsafe { asm!("wgmma.commit_group.sync.aligned;", options(nostack)) };
    }

    #[inline(always)]
    pub fn wait<const PENDING: u32>() {
        // SAFETY: waits only.
        unsafe { asm!("wgmma.wait_group.sync.aligned {};", const PENDING, options(nostack)) };
    }

    macro_rules! issue {
        ([$($generics:tt)*] $ja:ty, $jb:ty, $n:literal, $k:literal, $a:ty, $b:ty, $acc:ty, $types:literal,
            any, $registers:tt) => {
            imp::issue!(@ [$($generics)*] Wgmma<$n, $a, $b, $ja, $jb>, $n, $k, $acc, $types, $registers,
                [", 1, 1, {ja}, {jb};"
                ja = const !<$ja as Major>::IS_K_MAJOR as u32,
                jb = const !<$jb as Major>::IS_K_MAJOR as u32,]
                [", 1, 1, {jb};"
                jb = const !<$jb as Major>::IS_K_MAJOR as u32,]);
        };
        ([$($generics:tt)*] $ja:ty, $jb:ty, $n:literal, $k:literal, $a:ty, $b:ty, $acc:ty, $types:literal,
            k, $registers:tt) => {
            imp::issue!(@ [$($generics)*] Wgmma<$n, $a, $b, $ja, $jb>, $n, $k, $acc, $types, $registers,
                [", 1, 1;"] [", 1, 1;"]);
        };
        ([$($generics:tt)*] $ja:ty, $jb:ty, $n:literal, $k:literal, $a:ty, $b:ty, $acc:ty, $types:literal,
            integers, $registers:tt) => {
            imp::issue!(@ [$($generics)*] Wgmma<$n, $a, $b, $ja, $jb>, $n, $k, $acc, $types, $registers,
                [";"] [";"]);
        };
        (@ [$($generics:tt)*] $instruction:ty, $n:literal, $k:literal, $acc:ty, $types:literal,
            [$first:literal $($i:literal)*], [$end:literal $($majors:tt)*]
            [$end_rs:literal $($majors_rs:tt)*]) => {
            impl<$($generics)*> imp::Instruction for $instruction {
                type Registers = [core::mem::MaybeUninit<$acc>; $n / 2];

                #[inline(always)]
                unsafe fn issue(d: &mut Self::Registers, a: u64, b: u64, accumulate: bool) {
                    // SAFETY: the caller of `WgmmaGroup::mma` promises that the operands are there.
                    unsafe {
                        core::arch::asm!(
                            "{{",
                            ".reg .pred p;",
                            "setp.ne.b32 p, {accumulate}, 0;",
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k", $k, ".",
                                $types, " {{{", $first, "}", $(", {", $i, "}",)* "}}, ",
                                "{a}, {b}, p", $end),
                            "}}",
                            inout(reg32) d[$first],
                            $(inout(reg32) d[$i],)*
                            a = in(reg64) a,
                            b = in(reg64) b,
                            accumulate = in(reg32) u32::from(accumulate),
                            $($majors)*
                            options(nostack)
                        );
                    }
                }

                #[inline(always)]
                unsafe fn issue_x4(
                    d: &mut Self::Registers,
                    a: [u64; 4],
                    b: [u64; 4],
                    accumulate: bool,
                ) {
                    // SAFETY: the caller of `WgmmaGroup::mma_x4` promises that the operands are there.
                    unsafe {
                        core::arch::asm!(
                            "{{",
                            ".reg .pred p, always;",
                            "setp.ne.b32 p, {accumulate}, 0;",
                            "setp.eq.b32 always, {accumulate}, {accumulate};",
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k", $k, ".",
                                $types, " {{{", $first, "}", $(", {", $i, "}",)* "}}, ",
                                "{a0}, {b0}, p", $end),
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k", $k, ".",
                                $types, " {{{", $first, "}", $(", {", $i, "}",)* "}}, ",
                                "{a1}, {b1}, always", $end),
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k", $k, ".",
                                $types, " {{{", $first, "}", $(", {", $i, "}",)* "}}, ",
                                "{a2}, {b2}, always", $end),
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k", $k, ".",
                                $types, " {{{", $first, "}", $(", {", $i, "}",)* "}}, ",
                                "{a3}, {b3}, always", $end),
                            "}}",
                            inout(reg32) d[$first],
                            $(inout(reg32) d[$i],)*
                            a0 = in(reg64) a[0],
                            a1 = in(reg64) a[1],
                            a2 = in(reg64) a[2],
                            a3 = in(reg64) a[3],
                            b0 = in(reg64) b[0],
                            b1 = in(reg64) b[1],
                            b2 = in(reg64) b[2],
                            b3 = in(reg64) b[3],
                            accumulate = in(reg32) u32::from(accumulate),
                            $($majors)*
                            options(nostack)
                        );
                    }
                }

                #[inline(always)]
                unsafe fn issue_from_registers(
                    d: &mut Self::Registers,
                    a: &[u32; 4],
                    b: u64,
                    accumulate: bool,
                ) {
                    // SAFETY: the caller of `WgmmaGroup::mma_from_registers` promises that B is there, and that A
                    // stays in its registers.
                    unsafe {
                        core::arch::asm!(
                            "{{",
                            ".reg .pred p;",
                            "setp.ne.b32 p, {accumulate}, 0;",
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k", $k, ".",
                                $types, " {{{", $first, "}", $(", {", $i, "}",)* "}}, ",
                                "{{{a0}, {a1}, {a2}, {a3}}}, {b}, p", $end_rs),
                            "}}",
                            inout(reg32) d[$first],
                            $(inout(reg32) d[$i],)*
                            a0 = in(reg32) a[0],
                            a1 = in(reg32) a[1],
                            a2 = in(reg32) a[2],
                            a3 = in(reg32) a[3],
                            b = in(reg64) b,
                            accumulate = in(reg32) u32::from(accumulate),
                            $($majors_rs)*
                            options(nostack)
                        );
                    }
                }

                #[inline(always)]
                fn settle(d: &mut Self::Registers) {
                    // SAFETY: the text is a comment.
                    unsafe {
                        core::arch::asm!(
                            concat!("// settled: {", $first, "}", $(" {", $i, "}",)*),
                            inout(reg32) d[$first],
                            $(inout(reg32) d[$i],)*
                            options(nostack)
                        );
                    }
                }
            }
        };
    }
    pub(super) use issue;
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use core::array;
    use core::marker::PhantomData;

    use cutlet_layout_core::{Fragment, StaticLayout};
    pub use cutlet_simt::WgmmaArithmetic;
    use cutlet_simt::{WgmmaA, WgmmaOperand, WgmmaRegisters, WgmmaShape, WgmmaSums};
    pub use cutlet_simt::{wgmma_commit as commit, wgmma_fence as fence};
    use half::{bf16, f16};

    use super::{Accumulator, WgmmaInstruction};
    use crate::fp8::{F8E4M3, F8E5M2};
    use crate::tile::Major;
    use crate::{DeviceData, PartialSum};

    /// The CPU model of an instruction.
    pub trait Instruction {
        /// Extents, types and majors.
        const SHAPE: WgmmaShape;
    }

    pub struct Accumulators<I>(WgmmaSums, PhantomData<I>);

    impl<I: WgmmaInstruction> Accumulators<I> {
        pub fn new() -> Self {
            Self(WgmmaSums::new(I::Values::SIZE), PhantomData)
        }

        pub fn from_values(values: &Fragment<I::Acc, I::Values>) -> Self {
            let accumulators = Self::new();
            for v in 0..I::Values::SIZE {
                accumulators.0.set(v, values.get(v).to_bits());
            }
            accumulators
        }

        #[track_caller]
        pub unsafe fn issue(&mut self, a: u64, b: u64, accumulate: bool) {
            let shape = const { &I::SHAPE };
            cutlet_simt::wgmma(&self.0, shape, WgmmaA::Shared(a), b, accumulate);
        }

        #[track_caller]
        pub unsafe fn issue_from_registers(
            &mut self,
            a: &WgmmaRegisters,
            b: u64,
            accumulate: bool,
        ) {
            let shape = const { &I::SHAPE };
            cutlet_simt::wgmma(&self.0, shape, WgmmaA::Registers(a), b, accumulate);
        }

        #[track_caller]
        pub unsafe fn issue_x4(&mut self, a: [u64; 4], b: [u64; 4], accumulate: bool) {
            for k_step in 0..4 {
                // SAFETY: as promised by the caller.
                unsafe { self.issue(a[k_step], b[k_step], accumulate || k_step > 0) };
            }
        }

        pub fn into_values(self) -> Fragment<I::Acc, I::Values> {
            Fragment::from_fn(|v| I::Acc::from_bits(self.0.get(v)))
        }

        pub fn new_array<const COUNT: usize>() -> [Accumulator<I>; COUNT] {
            array::from_fn(|_| Accumulator(Self::new()))
        }

        pub fn array_into_values<const COUNT: usize>(
            accumulators: [Accumulator<I>; COUNT],
        ) -> [Fragment<I::Acc, I::Values>; COUNT] {
            accumulators.map(|accumulator| accumulator.0.into_values())
        }
    }

    #[track_caller]
    pub fn wait<const PENDING: u32>() {
        cutlet_simt::wgmma_wait(PENDING);
    }

    macro_rules! issue {
        ([$($generics:tt)*] $ja:ty, $jb:ty, $n:literal, $k:literal, $a:ty, $b:ty, $acc:ty, $types:literal,
            $form:ident, $registers:tt) => {
            impl<$($generics)*> imp::Instruction for Wgmma<$n, $a, $b, $ja, $jb> {
                const SHAPE: cutlet_simt::WgmmaShape = cutlet_simt::WgmmaShape {
                    n: $n,
                    a: imp::operand::<$a, $ja>(),
                    b: imp::operand::<$b, $jb>(),
                    sums: <$acc as imp::Sums>::ARITHMETIC,
                };
            }
        };
    }

    /// An element of an operand.
    pub trait Element: DeviceData {
        /// Its value, as the instruction reads it.
        fn number(self) -> f32;
    }

    macro_rules! element {
        ($($type:ty: $number:expr;)*) => {$(
            impl Element for $type {
                fn number(self) -> f32 {
                    $number(self)
                }
            }
        )*};
    }
    element! {
        bf16: bf16::to_f32;
        f16: f16::to_f32;
        f32: |value: f32| f32::from_bits(value.to_bits() & !0x1FFF); // tf32 has 10 bits of mantissa
        F8E4M3: F8E4M3::to_f32;
        F8E5M2: F8E5M2::to_f32;
        i8: f32::from;
    }

    /// A type of accumulators.
    pub trait Sums {
        /// How the instruction adds to them.
        const ARITHMETIC: WgmmaArithmetic;
    }

    impl Sums for f32 {
        const ARITHMETIC: WgmmaArithmetic = WgmmaArithmetic::F32;
    }

    impl Sums for i32 {
        const ARITHMETIC: WgmmaArithmetic = WgmmaArithmetic::I32;
    }

    pub const fn operand<T: Element, J: Major>() -> WgmmaOperand {
        WgmmaOperand {
            element_bytes: size_of::<T>(),
            k_major: J::IS_K_MAJOR,
            decode: decode::<T>,
        }
    }

    fn decode<T: Element>(bytes: &[u8; 16], numbers: &mut [f32]) {
        for (i, number) in numbers.iter_mut().enumerate() {
            let element = &bytes[i * size_of::<T>()..][..size_of::<T>()];
            // SAFETY: the slice has the element's bytes, and device data has no invalid bit patterns.
            *number = unsafe { element.as_ptr().cast::<T>().read_unaligned() }.number();
        }
    }

    pub(super) use issue;
}

__wgmma_n! { for_each_n! {} }
