//! Tensor maps: what TMA needs to know about a tensor in global memory, in 128 opaque bytes.

use core::fmt;

use crate::{DeviceData, Global};

use super::proxy;

/// A description of a tensor in global memory, and of the boxes of it that TMA moves.
///
/// The host makes it (`cutlet-host`'s `TensorMap`); a kernel takes it as `#[grid_constant] map:
/// &TensorMap`, which leaves it where the launch put it: TMA reads it from there.
///
/// ```
/// use cutlet_device::sm90::{TensorMap, prefetch_tensor_map};
/// use cutlet_device::kernel;
///
/// #[kernel(threads = 32, arch = "sm_90a")]
/// pub fn prefetches(#[grid_constant] map: &TensorMap) {
///     prefetch_tensor_map(map);
/// }
/// assert_eq!(prefetches.bounds().threads, 32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct TensorMap([u64; 16]);

// SAFETY: 128 bytes on both sides, of which kernels make no sense themselves.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for TensorMap {
    const PARAM_ALIGN: usize = 64;
    const IN_PLACE: bool = true;
}

impl TensorMap {
    /// The map in these words: those that the driver encoded, or, for the CPU backend, the model.
    pub const fn from_words(words: [u64; 16]) -> Self {
        Self(words)
    }

    /// The words.
    pub const fn words(&self) -> &[u64; 16] {
        &self.0
    }

    /// A map in global memory, which is 64-byte aligned there, for instance one of an array of
    /// them.
    ///
    /// All threads that use it call this, after whoever wrote it: the fence makes it visible to
    /// TMA. It makes the kernel's PTX one of version 8.3, which drivers know since CUDA 12.3.
    ///
    /// # Safety
    /// The map must be there, and stay as it is while the kernel runs.
    #[inline(always)]
    pub unsafe fn in_global<'a>(map: Global<TensorMap>) -> &'a TensorMap {
        proxy::fence_tensor_map(map.as_ptr().cast());
        // SAFETY: as promised by the caller.
        unsafe { &*map.as_ptr() }
    }
}

impl fmt::Debug for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorMap(address {:#x})", self.0[0])
    }
}

/// Fetches a map into the cache that TMA reads it from, ahead of its first use. One thread is
/// enough. The map is where [`tma_load`](super::tma_load) needs it: to fetch a copy is of no use.
#[inline(always)]
pub fn prefetch_tensor_map(map: &TensorMap) {
    imp::prefetch(map);
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::asm;

    use super::TensorMap;

    #[inline(always)]
    pub fn prefetch(map: &TensorMap) {
        // SAFETY: a hint about memory that is there.
        unsafe {
            asm!("prefetch.tensormap [{}];", in(reg64) core::ptr::from_ref(map),
                options(readonly, nostack));
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub fn prefetch(_: &super::TensorMap) {}
}
