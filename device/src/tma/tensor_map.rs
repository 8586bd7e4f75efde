//! Tensor maps: descriptions of tensors in global memory that TMA reads, in 128 opaque bytes.

use core::fmt;

use crate::{DeviceData, Global};

/// A description of a tensor in global memory, and of the boxes that TMA copies.
///
/// The host makes it (`cutlet-host`'s `TensorMap`). A kernel takes it as `#[grid_constant] map: &TensorMap`, so that
/// TMA reads the kernel parameter itself.
///
/// ```
/// use cutlet_device::tma::{TensorMap, prefetch_tensor_map};
/// use cutlet_device::kernel;
///
/// #[kernel(threads = 32, arch = "sm_90a")]
/// pub fn prefetches(#[grid_constant] map: &TensorMap) {
///     prefetch_tensor_map(map);
/// }
/// assert_eq!(prefetches.bounds().threads(), 32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(C, align(16))]
pub struct TensorMap([u64; 16]);

// SAFETY: 128 opaque bytes on both sides.
#[diagnostic::do_not_recommend]
unsafe impl DeviceData for TensorMap {
    const PARAM_ALIGN: usize = 64;
    const IN_PLACE: bool = true;
}

impl TensorMap {
    /// The map in these words, which the driver has encoded, or the model of the CPU backend.
    pub const fn from_words(words: [u64; 16]) -> Self {
        Self(words)
    }

    /// The words.
    pub const fn words(&self) -> &[u64; 16] {
        &self.0
    }

    /// A map in global memory, 64-byte aligned: one of an array, for instance.
    ///
    /// All threads that use the map call it after the map was written: its fence makes the map visible to TMA. The
    /// fence needs PTX version 8.3, which drivers support since CUDA 12.3.
    ///
    /// # Safety
    /// The map must exist, and must not change while the kernel runs.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn in_global<'a>(map: Global<TensorMap>) -> &'a TensorMap {
        imp::fence(map.as_ptr().cast());
        #[cfg(not(target_arch = "nvptx64"))]
        cutlet_simt::global_bytes(
            map.checked_ptr().cast(),
            size_of::<TensorMap>(),
            align_of::<TensorMap>(),
            cutlet_simt::MemoryAccess::Load,
        );
        // SAFETY: as promised by the caller.
        unsafe { &*map.as_ptr() }
    }
}

impl fmt::Debug for TensorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TensorMap(address {:#x})", self.0[0])
    }
}

/// Fetches a map into the cache of TMA before its first use. One thread is enough. The map must be in the place where
/// [`tma_load`](super::tma_load) reads it: fetching a copy has no effect.
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
        // SAFETY: a hint, about memory that exists.
        unsafe {
            asm!("prefetch.tensormap [{}];", in(reg64) core::ptr::from_ref(map),
                options(readonly, nostack));
        }
    }

    /// The comment tells the PTX builder which version of PTX the instruction needs.
    #[inline(always)]
    pub fn fence(map: *const u8) {
        // SAFETY: a fence only orders.
        unsafe {
            asm!(
                "// cutlet-isa 8.3",
                "fence.proxy.tensormap::generic.acquire.gpu [{}], 128;",
                in(reg64) map,
                options(nostack)
            );
        }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub fn prefetch(_: &super::TensorMap) {}

    pub fn fence(_: *const u8) {}
}
