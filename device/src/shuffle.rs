//! Warp shuffles: every lane reads a value of another lane.
//!
//! All 32 lanes of the warp must call a shuffle together. If the block's size is not a multiple of 32, values from
//! missing lanes of the last warp are meaningless.

use core::hint::select_unpredictable;

use half::{bf16, f16};

use crate::lane_idx;

/// A value that lanes can shuffle: a number, or an array or a tuple of such values. Each 32 bits take an instruction.
///
/// A struct shuffles its fields:
///
/// ```
/// use cutlet_device::{Shuffle, ShuffleMode};
///
/// #[derive(Clone, Copy)]
/// struct Best {
///     score: f32,
///     index: u32,
/// }
///
/// impl Shuffle for Best {
///     fn shuffle(self, mode: ShuffleMode) -> Self {
///         Self {
///             score: self.score.shuffle(mode),
///             index: self.index.shuffle(mode),
///         }
///     }
/// }
/// ```
pub trait Shuffle: Copy {
    /// The value of the lane that `mode` names. All lanes of the warp call it with the same kind of mode.
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn shuffle(self, mode: ShuffleMode) -> Self;
}

/// Which lane's value a shuffle reads. [`shfl`] and the other functions make it.
#[derive(Clone, Copy, Debug)]
pub struct ShuffleMode(Mode);

/// The modes of PTX's `shfl`, with their operand.
#[derive(Clone, Copy, Debug)]
enum Mode {
    Idx(u32),
    Xor(u32),
    Up(u32),
    Down(u32),
}

impl ShuffleMode {
    /// Shuffles 32 bits.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn word(self, bits: u32) -> u32 {
        match self.0 {
            Mode::Idx(lane) => imp::idx(bits, lane),
            Mode::Xor(mask) => imp::xor(bits, mask),
            Mode::Up(delta) => imp::up(bits, delta),
            Mode::Down(delta) => imp::down(bits, delta),
        }
    }
}

macro_rules! one_word {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl Shuffle for $type {
            #[inline(always)]
            fn shuffle(self, mode: ShuffleMode) -> Self {
                $from(mode.word($to(self)))
            }
        }
    )*};
}

one_word! {
    u32: |value| value, |bits| bits;
    i32: |value| value as u32, |bits| bits as i32;
    f32: f32::to_bits, f32::from_bits;
    f16: |value: f16| u32::from(value.to_bits()), |bits| f16::from_bits(bits as u16);
    bf16: |value: bf16| u32::from(value.to_bits()), |bits| bf16::from_bits(bits as u16);
}

macro_rules! two_words {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl Shuffle for $type {
            #[inline(always)]
            fn shuffle(self, mode: ShuffleMode) -> Self {
                let bits: u64 = $to(self);
                let (low, high) = (mode.word(bits as u32), mode.word((bits >> 32) as u32));
                $from(u64::from(high) << 32 | u64::from(low))
            }
        }
    )*};
}

two_words! {
    u64: |value| value, |bits| bits;
    i64: |value| value as u64, |bits| bits as i64;
    f64: f64::to_bits, f64::from_bits;
}

impl<T: Shuffle, const N: usize> Shuffle for [T; N] {
    #[inline(always)]
    fn shuffle(mut self, mode: ShuffleMode) -> Self {
        for value in &mut self {
            *value = value.shuffle(mode);
        }
        self
    }
}

macro_rules! tuple {
    ($($name:ident)+) => {
        #[allow(non_snake_case)]
        impl<$($name: Shuffle),+> Shuffle for ($($name,)+) {
            #[inline(always)]
            fn shuffle(self, mode: ShuffleMode) -> Self {
                let ($($name,)+) = self;
                ($($name.shuffle(mode),)+)
            }
        }
    };
}
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);

/// The value of lane `lane` (modulo 32).
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn shfl<T: Shuffle>(value: T, lane: u32) -> T {
    value.shuffle(ShuffleMode(Mode::Idx(lane)))
}

/// `value`, which is the same for all lanes, read from the first lane. The compiler then knows it to be uniform, and
/// keeps and computes it once per warp.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn uniform<T: Shuffle>(value: T) -> T {
    shfl(value, 0)
}

/// The value of the lane whose index is this lane's index xor `mask`, which is below 32.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn shfl_xor<T: Shuffle>(value: T, mask: u32) -> T {
    value.shuffle(ShuffleMode(Mode::Xor(mask)))
}

/// The value of the lane `delta` below this one. If there is none, a lane gets its own value.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn shfl_up<T: Shuffle>(value: T, delta: u32) -> T {
    value.shuffle(ShuffleMode(Mode::Up(delta)))
}

/// The value of the lane `delta` above this one. If there is none, a lane gets its own value.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn shfl_down<T: Shuffle>(value: T, delta: u32) -> T {
    value.shuffle(ShuffleMode(Mode::Down(delta)))
}

/// Transposes the values of each quad of lanes, the four from a multiple of 4 on: value `i` of lane `j` becomes value `j`
/// of lane `i`. It takes four shuffles, where the values have 32 bits.
///
/// The four lanes that have a row of a tensor core's accumulators have pairs of neighbours. Of four such pairs, they make
/// runs of eight neighbours, one a lane.
///
/// ```
/// use cutlet_device::{lane_idx, transpose_quad};
///
/// # let spec = cutlet_simt::LaunchSpec {
/// #     kernel: "example", grid: [1; 3], block: [32, 1, 1], cluster: 1, shared_bytes: 0,
/// #     overlap_previous: false,
/// # };
/// # cutlet_simt::launch(&spec, &|| {
/// // In a kernel:
/// let lane = lane_idx().get() % 4;
/// let row = [0, 1, 2, 3].map(|column| 10 * lane + column);
/// assert_eq!(transpose_quad(row), [0, 1, 2, 3].map(|row| 10 * row + lane));
/// # }).unwrap();
/// ```
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn transpose_quad<T: Shuffle>([a, b, c, d]: [T; 4]) -> [T; 4] {
    let lane = lane_idx().get();
    // Of two values, a lane keeps that of its own side, and gives the other one. The compiler would make two branches of
    // an `if` before and after the shuffle, with a shuffle in each, where lanes wait for each other.
    let exchange = |[low, high]: [T; 2], mask: u32| {
        let is_high = lane & mask != 0;
        let got = shfl_xor(select_unpredictable(is_high, low, high), mask);
        [
            select_unpredictable(is_high, got, low),
            select_unpredictable(is_high, high, got),
        ]
    };
    let ([a, b], [c, d]) = (exchange([a, b], 1), exchange([c, d], 1));
    let ([a, c], [b, d]) = (exchange([a, c], 2), exchange([b, d], 2));
    [a, b, c, d]
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    // The intrinsics are convergent: LLVM does not move them into divergent code. Inline assembly is not.
    unsafe extern "C" {
        #[link_name = "llvm.nvvm.shfl.sync.idx.i32"]
        fn shfl_idx(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.bfly.i32"]
        fn shfl_bfly(mask: u32, value: u32, lane: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.up.i32"]
        fn shfl_up(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
        #[link_name = "llvm.nvvm.shfl.sync.down.i32"]
        fn shfl_down(mask: u32, value: u32, delta: u32, clamp: u32) -> u32;
    }

    const ALL: u32 = u32::MAX;

    #[inline(always)]
    pub fn idx(bits: u32, lane: u32) -> u32 {
        // SAFETY: only exchanges registers.
        unsafe { shfl_idx(ALL, bits, lane, 31) }
    }

    #[inline(always)]
    pub fn xor(bits: u32, mask: u32) -> u32 {
        // SAFETY: only exchanges registers.
        unsafe { shfl_bfly(ALL, bits, mask, 31) }
    }

    #[inline(always)]
    pub fn up(bits: u32, delta: u32) -> u32 {
        // SAFETY: only exchanges registers.
        unsafe { shfl_up(ALL, bits, delta, 0) }
    }

    #[inline(always)]
    pub fn down(bits: u32, delta: u32) -> u32 {
        // SAFETY: only exchanges registers.
        unsafe { shfl_down(ALL, bits, delta, 31) }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    use cutlet_simt::{Lanes, warp_exchange};

    /// The value of missing lanes: a NaN, so that its use shows.
    const MEANINGLESS: u32 = u32::MAX;

    fn read(lanes: Lanes, lane: u32) -> u32 {
        lanes.get(lane).unwrap_or(MEANINGLESS)
    }

    #[track_caller]
    pub fn idx(bits: u32, lane: u32) -> u32 {
        read(warp_exchange("shfl", bits), lane % 32)
    }

    #[track_caller]
    pub fn xor(bits: u32, mask: u32) -> u32 {
        assert!(
            mask < 32,
            "shfl_xor with mask {mask}: the mask must be below 32"
        );
        let lanes = warp_exchange("shfl_xor", bits);
        read(lanes, lanes.lane() ^ mask)
    }

    #[track_caller]
    pub fn up(bits: u32, delta: u32) -> u32 {
        let lanes = warp_exchange("shfl_up", bits);
        lanes
            .lane()
            .checked_sub(delta)
            .map_or(bits, |lane| read(lanes, lane))
    }

    #[track_caller]
    pub fn down(bits: u32, delta: u32) -> u32 {
        let lanes = warp_exchange("shfl_down", bits);
        let lane = lanes.lane().saturating_add(delta);
        if lane < 32 { read(lanes, lane) } else { bits }
    }
}
