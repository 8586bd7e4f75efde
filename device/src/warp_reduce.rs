//! Reductions over the lanes of a warp, or of equal parts of it: sums, extremes, and operations of one's own. Every
//! lane gets the result.

use crate::{Shuffle, WARP_SIZE, shfl_xor};

/// Part of a warp: `LANES` lanes with consecutive indices, from a multiple of `LANES` on. `LANES` is 1, 2, 4, 8, 16 or
/// 32.
///
/// Its functions reduce the values of its lanes to one, which every lane gets. All lanes of the *warp* call them
/// together. If the block's size is not a multiple of `LANES`, the results of the last part are meaningless.
///
/// The order of the operations does not depend on the run.
///
/// ```
/// use cutlet_device::{LogicalWarp, lane_idx};
///
/// # let spec = cutlet_simt::LaunchSpec {
/// #     kernel: "example", grid: [1; 3], block: [32, 1, 1], cluster: 1, shared_bytes: 0,
/// #     overlap_previous: false,
/// # };
/// # cutlet_simt::launch(&spec, &|| {
/// // In a kernel: four lanes share a row of accumulators.
/// let lane = lane_idx().get();
/// let first = 4 * (lane / 4);
/// assert_eq!(LogicalWarp::<4>::max(lane), first + 3);
/// assert_eq!(LogicalWarp::<4>::sum(0.5), 2.0);
/// let product = LogicalWarp::<2>::reduce(f64::from(lane), |a, b| a * b);
/// # assert_eq!(product, f64::from((lane & !1) * (lane | 1)));
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LogicalWarp<const LANES: u32>;

/// A number that has sums and an order, for reductions: `f32`, `f64`, `i32`, `u32`, `i64` and `u64`.
///
/// Sums of integers wrap around. If a float is NaN, extremes are those of the others.
pub trait ReduceElement: Shuffle {
    #[doc(hidden)]
    fn sum_of(a: Self, b: Self) -> Self;
    #[doc(hidden)]
    fn larger_of(a: Self, b: Self) -> Self;
    #[doc(hidden)]
    fn smaller_of(a: Self, b: Self) -> Self;
    /// The sum of the values of all lanes of the warp, if a single instruction computes it.
    #[doc(hidden)]
    #[inline(always)]
    fn redux_add(self) -> Option<Self> {
        None
    }
    /// The largest one, as above.
    #[doc(hidden)]
    #[inline(always)]
    fn redux_max(self) -> Option<Self> {
        None
    }
    /// The smallest one, as above.
    #[doc(hidden)]
    #[inline(always)]
    fn redux_min(self) -> Option<Self> {
        None
    }
}

impl<const LANES: u32> LogicalWarp<LANES> {
    /// The sum of the lanes' values.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn sum<T: ReduceElement>(value: T) -> T {
        match Self::whole(value, T::redux_add) {
            Some(sum) => sum,
            None => Self::reduce(value, T::sum_of),
        }
    }

    /// The largest of the lanes' values.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn max<T: ReduceElement>(value: T) -> T {
        match Self::whole(value, T::redux_max) {
            Some(max) => max,
            None => Self::reduce(value, T::larger_of),
        }
    }

    /// The smallest of the lanes' values.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn min<T: ReduceElement>(value: T) -> T {
        match Self::whole(value, T::redux_min) {
            Some(min) => min,
            None => Self::reduce(value, T::smaller_of),
        }
    }

    /// The lanes' values, combined by `combine`, which is associative and commutative. If it is not, the lanes get
    /// different results.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn reduce<T: Shuffle>(value: T, combine: impl Fn(T, T) -> T) -> T {
        const {
            assert!(
                LANES.is_power_of_two() && LANES <= WARP_SIZE,
                "a part of a warp has 1, 2, 4, 8, 16 or 32 lanes"
            )
        }
        butterfly(value, LANES, combine)
    }

    /// What an instruction computes of a whole warp.
    #[inline(always)]
    fn whole<T>(value: T, instruction: impl Fn(T) -> Option<T>) -> Option<T> {
        match LANES {
            WARP_SIZE => instruction(value),
            _ => None,
        }
    }
}

/// Combines the values of each `lanes` lanes, a power of two.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) fn butterfly<T: Shuffle>(value: T, lanes: u32, combine: impl Fn(T, T) -> T) -> T {
    let mut combined = value;
    let mut mask = lanes / 2;
    while mask > 0 {
        combined = combine(combined, shfl_xor(combined, mask));
        mask /= 2;
    }
    combined
}

/// The sum of the values of all lanes of the warp: [`LogicalWarp::sum`] of 32 lanes. From sm_80 on, it is one
/// instruction for integers of 32 bits.
///
/// ```
/// use cutlet_device::{lane_idx, warp_max, warp_reduce, warp_sum};
///
/// # let spec = cutlet_simt::LaunchSpec {
/// #     kernel: "example", grid: [1; 3], block: [32, 1, 1], cluster: 1, shared_bytes: 0,
/// #     overlap_previous: false,
/// # };
/// # cutlet_simt::launch(&spec, &|| {
/// // In a kernel:
/// let lane = lane_idx().get();
/// assert_eq!(warp_sum(lane), 496);
/// assert_eq!(warp_max(-(lane as f32)), 0.0);
///
/// // The largest value, and the first lane that has it.
/// let score = (lane % 10) as f32;
/// let best = warp_reduce((score, lane), |a, b| {
///     if b.0 > a.0 || b.0 == a.0 && b.1 < a.1 { b } else { a }
/// });
/// assert_eq!(best, (9.0, 9));
/// # }).unwrap();
/// ```
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warp_sum<T: ReduceElement>(value: T) -> T {
    LogicalWarp::<WARP_SIZE>::sum(value)
}

/// The largest value of the warp's lanes, as [`warp_sum`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warp_max<T: ReduceElement>(value: T) -> T {
    LogicalWarp::<WARP_SIZE>::max(value)
}

/// The smallest value of the warp's lanes, as [`warp_sum`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warp_min<T: ReduceElement>(value: T) -> T {
    LogicalWarp::<WARP_SIZE>::min(value)
}

/// The values of all lanes of the warp, combined by an operation that is associative and commutative:
/// [`LogicalWarp::reduce`] of 32 lanes.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn warp_reduce<T: Shuffle>(value: T, combine: impl Fn(T, T) -> T) -> T {
    LogicalWarp::<WARP_SIZE>::reduce(value, combine)
}

macro_rules! elements {
    ($($type:ty: $sum:expr $(, $add:ident $max:ident $min:ident)?;)*) => {$(
        impl ReduceElement for $type {
            #[inline(always)]
            fn sum_of(a: Self, b: Self) -> Self {
                $sum(a, b)
            }

            #[inline(always)]
            fn larger_of(a: Self, b: Self) -> Self {
                a.max(b)
            }

            #[inline(always)]
            fn smaller_of(a: Self, b: Self) -> Self {
                a.min(b)
            }

            $(
                #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
                #[inline(always)]
                fn redux_add(self) -> Option<Self> {
                    Some(redux::$add(self))
                }

                #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
                #[inline(always)]
                fn redux_max(self) -> Option<Self> {
                    Some(redux::$max(self))
                }

                #[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
                #[inline(always)]
                fn redux_min(self) -> Option<Self> {
                    Some(redux::$min(self))
                }
            )?
        }
    )*};
}

elements! {
    f32: |a, b| a + b;
    f64: |a, b| a + b;
    i32: i32::wrapping_add, add_i32 max_i32 min_i32;
    u32: u32::wrapping_add, add_u32 max_u32 min_u32;
    i64: i64::wrapping_add;
    u64: u64::wrapping_add;
}

/// `redux.sync`, of all lanes of the warp.
#[cfg(all(target_arch = "nvptx64", target_feature = "sm_80"))]
mod redux {
    macro_rules! redux {
        ($($name:ident: $type:ty = $intrinsic:literal;)*) => {$(
            #[inline(always)]
            pub fn $name(value: $type) -> $type {
                // The intrinsic is convergent: LLVM does not move it into divergent code. Inline assembly is not.
                unsafe extern "C" {
                    #[link_name = $intrinsic]
                    fn redux(value: $type, mask: u32) -> $type;
                }
                // SAFETY: only exchanges registers.
                unsafe { redux(value, u32::MAX) }
            }
        )*};
    }

    redux! {
        add_i32: i32 = "llvm.nvvm.redux.sync.add";
        max_i32: i32 = "llvm.nvvm.redux.sync.max";
        min_i32: i32 = "llvm.nvvm.redux.sync.min";
        add_u32: u32 = "llvm.nvvm.redux.sync.add";
        max_u32: u32 = "llvm.nvvm.redux.sync.umax";
        min_u32: u32 = "llvm.nvvm.redux.sync.umin";
    }
}
