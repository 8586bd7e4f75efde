//! Warp shuffles: every lane reads a value of another lane.
//!
//! All 32 lanes of the warp must call a shuffle together. If the block's size is not a multiple of 32, values from
//! missing lanes of the last warp are meaningless.

use half::{bf16, f16};

/// A type of at most 32 bits that lanes can shuffle.
pub trait Shuffle: Copy {
    /// The value as bits, in the lower part of a register.
    fn to_bits(self) -> u32;
    /// The value with these bits.
    fn from_bits(bits: u32) -> Self;
}

macro_rules! shuffle {
    ($($type:ty: $to:expr, $from:expr;)*) => {$(
        impl Shuffle for $type {
            #[inline(always)]
            fn to_bits(self) -> u32 {
                $to(self)
            }

            #[inline(always)]
            fn from_bits(bits: u32) -> Self {
                $from(bits)
            }
        }
    )*};
}

shuffle! {
    u32: |value| value, |bits| bits;
    i32: |value| value as u32, |bits| bits as i32;
    f32: f32::to_bits, f32::from_bits;
    f16: |value: f16| u32::from(value.to_bits()), |bits| f16::from_bits(bits as u16);
    bf16: |value: bf16| u32::from(value.to_bits()), |bits| bf16::from_bits(bits as u16);
}

/// The value of lane `lane` (modulo 32).
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn shfl<T: Shuffle>(value: T, lane: u32) -> T {
    T::from_bits(imp::idx(value.to_bits(), lane))
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
    T::from_bits(imp::xor(value.to_bits(), mask))
}

/// Returns the sum of all lanes' values to every lane. The order of additions does not depend on the run.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warp_sum(value: f32) -> f32 {
    let mut sum = value;
    let mut mask = crate::WARP_SIZE / 2;
    while mask > 0 {
        sum += shfl_xor(sum, mask);
        mask /= 2;
    }
    sum
}

/// The value of the lane `delta` below this one. If there is none, a lane gets its own value.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn shfl_up<T: Shuffle>(value: T, delta: u32) -> T {
    T::from_bits(imp::up(value.to_bits(), delta))
}

/// The value of the lane `delta` above this one. If there is none, a lane gets its own value.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn shfl_down<T: Shuffle>(value: T, delta: u32) -> T {
    T::from_bits(imp::down(value.to_bits(), delta))
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
