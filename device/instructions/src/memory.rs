//! Accesses to global and shared memory, of every width.

use cutlet_device::sm90::ReduceAdd;
use cutlet_device::{DeviceData, Global, GlobalMut, Shared, SharedMemory, kernel};
use cutlet_layout_core::EngineMut;

/// Expands `$copy!` for each access that has an instruction of its own: by its bytes, which lie in 32-bit
/// registers, or in 64-bit ones if the elements are so large.
macro_rules! every_width {
    ($copy:ident, $bytes:tt, $words:tt) => {
        $copy::<u8, 1> $bytes;
        $copy::<u8, 2> $bytes;
        $copy::<u8, 4> $bytes;
        $copy::<u8, 8> $bytes;
        $copy::<u8, 16> $bytes;
        $copy::<u64, 1> $words;
        $copy::<u64, 2> $words;
    };
}

/// Each kind of load and of store.
///
/// # Safety
/// There are `N` elements at `from`, and places for three times as many at `to`.
#[inline(always)]
unsafe fn copy_global<T: DeviceData, const N: usize>(from: Global<T>, to: GlobalMut<T>) {
    let place = |nth: usize| (nth * N) as i64;
    // SAFETY: as promised by the caller.
    unsafe {
        to.store_vec(place(0), from.load_vec::<N>(0));
        to.store_vec(place(1), from.load_vec_read_only::<N>(0));
        to.store_vec_streaming(place(2), from.load_vec_once::<N>(0));
    }
}

/// Loads from global memory and stores to it.
///
/// # Safety
/// There are 16 bytes, and two words; and places for three times as many.
#[kernel(threads = 32)]
pub unsafe fn global_accesses(
    bytes: Global<u8>,
    words: Global<u64>,
    to_bytes: GlobalMut<u8>,
    to_words: GlobalMut<u64>,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        every_width!(copy_global, (bytes, to_bytes), (words, to_words));
    }
}

/// A load and a store, both with an offset.
///
/// # Safety
/// There are three times 16 bytes at `shared`.
#[inline(always)]
unsafe fn copy_shared<T: DeviceData, const N: usize>(shared: Shared<T>) {
    // SAFETY: as promised by the caller.
    unsafe {
        let values = shared.load_vec_at::<N, 16>();
        shared.store_vec(0, values);
        shared.store_vec_at::<N, 32>(values);
    }
}

/// Loads from shared memory and stores to it.
#[kernel(threads = 32, shared = 96)]
pub fn shared_accesses() {
    let mut shared = SharedMemory::new();
    let (bytes, words) = (shared.take::<u8>(48), shared.take::<u64>(6));
    // SAFETY: there is so much.
    unsafe {
        every_width!(copy_shared, (bytes), (words));
    }
}

/// Additions to global memory, or stores.
///
/// # Safety
/// There are three elements.
#[kernel(threads = 32, arch = "sm_90a")]
pub unsafe fn additions(to: GlobalMut<f32>, adds: u32) {
    let to = ReduceAdd::to_if(adds != 0, to);
    // SAFETY: as promised by the caller.
    unsafe {
        to.store_vector(0, [1.0, 2.0]);
        to.store(2, 3.0);
    }
}
