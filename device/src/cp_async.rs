//! `cp.async`: copies from global to shared memory that a thread issues and waits for later.
//!
//! [`cp_async`] issues a copy. [`cp_async_commit`] makes a group of the thread's copies since the last commit.
//! [`cp_async_wait`] waits until at most a given number of groups is pending. The groups of a thread complete in order.

use crate::{DeviceData, Global, Shared};

/// Copies the first `count` of `N` elements to shared memory, and writes zeros for the rest.
///
/// `N` elements have 4, 8 or 16 bytes, and `count` is at most `N`. With a `count` of 0, nothing is read, and `from` may
/// be any address. A constant `count`, or a choice between `N` and 0, costs nothing; others take address arithmetic.
/// Copies of 16 bytes do not go through the L1 cache.
///
/// The thread sees the elements after [`cp_async_wait`]. Other threads see them after a barrier that follows the wait.
/// The CPU backend reports an access before that.
///
/// # Safety
/// The first `count` elements must exist, and nothing may write them before the copy was waited for. There must be room
/// for `N` elements in the block's shared memory, which nothing accesses before the copy was waited for. Both addresses
/// must be multiples of the bytes of `N` elements.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn cp_async<T: DeviceData, const N: usize>(to: Shared<T>, from: Global<T>, count: u32) {
    let filled = imp::bytes::<T>(count);
    // SAFETY: as promised by the caller.
    unsafe { imp::copy::<T, N>(to.address(), from.checked_ptr(), filled) };
}

/// Copies `N` elements to shared memory if `condition` holds. If not, it reads nothing and writes zeros.
///
/// A [`cp_async`] with a `count` of `N` or 0 does the same by more instructions. It needs PTX 7.5.
///
/// # Safety
/// As of [`cp_async`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn cp_async_zfill<T: DeviceData, const N: usize>(
    to: Shared<T>,
    from: Global<T>,
    condition: bool,
) {
    // SAFETY: as promised by the caller.
    unsafe { imp::copy_if::<T, N>(to.address(), from.checked_ptr(), condition) };
}

/// Closes the group of the copies that the thread has issued since its last commit. A group may be empty.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cp_async_commit() {
    imp::commit();
}

/// Waits until at most the latest `PENDING` groups of the thread are pending.
///
/// The copies of earlier groups have arrived then, for this thread alone. A barrier must follow before other threads
/// read what they brought.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub fn cp_async_wait<const PENDING: u32>() {
    imp::wait::<PENDING>();
}

/// Bytes of a copy of `N` elements.
const fn copy_bytes<T, const N: usize>() -> u32 {
    let bytes = size_of::<[T; N]>();
    assert!(
        matches!(bytes, 4 | 8 | 16),
        "cp_async copies 4, 8 or 16 bytes: choose the element type and the number of elements accordingly"
    );
    bytes as u32
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    /// Issues a copy of `N` elements. The copies of 16 bytes do not go through the L1 cache. `$last` ends the
    /// instruction, `$operand` is what it adds to the operands.
    macro_rules! copy {
        ($t:ty, $n:ident, $to:ident, $from:ident, $before:literal, $last:literal, $operand:ident) => {
            match const { super::copy_bytes::<$t, $n>() } {
                4 => asm!(concat!($before, "cp.async.ca.shared.global [{0}], [{1}], 4, ", $last),
                    in(reg32) $to, in(reg64) $from, in(reg32) $operand, options(nostack)),
                8 => asm!(concat!($before, "cp.async.ca.shared.global [{0}], [{1}], 8, ", $last),
                    in(reg32) $to, in(reg64) $from, in(reg32) $operand, options(nostack)),
                _ => asm!(concat!($before, "cp.async.cg.shared.global [{0}], [{1}], 16, ", $last),
                    in(reg32) $to, in(reg64) $from, in(reg32) $operand, options(nostack)),
            }
        };
    }

    /// Bytes of `count` elements.
    #[inline(always)]
    pub fn bytes<T>(count: u32) -> u32 {
        count * const { size_of::<T>() as u32 }
    }

    #[inline(always)]
    pub unsafe fn copy<T, const N: usize>(to: u32, from: *const T, filled: u32) {
        // SAFETY: as promised by the caller.
        unsafe { copy!(T, N, to, from, "", "{2};", filled) }
    }

    #[inline(always)]
    pub unsafe fn copy_if<T, const N: usize>(to: u32, from: *const T, condition: bool) {
        let condition = condition as u32;
        // SAFETY: as promised by the caller.
        unsafe {
            copy!(
                T,
                N,
                to,
                from,
                "// cutlet-isa 7.5\n{{ .reg .pred ignore; setp.eq.u32 ignore, {2}, 0; ",
                "ignore; }}",
                condition
            )
        }
    }

    #[inline(always)]
    pub fn commit() {
        // SAFETY: the callers of `copy` promised that the memory stays as it is.
        unsafe { asm!("cp.async.commit_group;", options(nostack)) };
    }

    #[inline(always)]
    pub fn wait<const PENDING: u32>() {
        // SAFETY: waits only.
        unsafe { asm!("cp.async.wait_group {};", const PENDING, options(nostack)) };
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub use cutlet_simt::cp_async_commit as commit;

    /// Bytes of `count` elements. A count whose bytes do not fit is too large for a copy, and must not become a small
    /// one.
    pub fn bytes<T>(count: u32) -> u32 {
        count.saturating_mul(const { size_of::<T>() as u32 })
    }

    #[track_caller]
    pub unsafe fn copy<T, const N: usize>(to: u32, from: *const T, filled: u32) {
        // SAFETY: as promised by the caller.
        unsafe {
            cutlet_simt::cp_async(
                to,
                from.cast(),
                const { super::copy_bytes::<T, N>() },
                filled,
            );
        }
    }

    #[track_caller]
    pub unsafe fn copy_if<T, const N: usize>(to: u32, from: *const T, condition: bool) {
        let filled = if condition {
            const { super::copy_bytes::<T, N>() }
        } else {
            0
        };
        // SAFETY: as promised by the caller.
        unsafe { copy::<T, N>(to, from, filled) };
    }

    #[track_caller]
    pub fn wait<const PENDING: u32>() {
        cutlet_simt::cp_async_wait(PENDING);
    }
}
