//! Loads from and stores to global and shared memory, of every width.

use cutlet_device::{DeviceData, Global, GlobalMut, ReduceAdd, Shared, SharedArray, kernel};
use cutlet_layout_core::EngineMut;

/// Calls `$copy` for each width. Elements of 8 bytes are moved in 64-bit registers, and smaller ones in 32-bit
/// registers.
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
/// `from` has `N` elements, and `to` has `4 N`.
#[inline(always)]
unsafe fn copy_global<T: DeviceData, const N: usize>(from: Global<T>, to: GlobalMut<T>) {
    let at = |nth: usize| (nth * N) as i64;
    // SAFETY: as promised by the caller.
    unsafe {
        to.store_vec(at(0), from.load_vec::<N>(0));
        to.store_vec(at(1), from.load_vec_read_only::<N>(0));
        to.store_vec_streaming(at(2), from.load_vec_once::<N>(0));
        to.store_vec_relaxed(at(3), from.load_vec::<N>(0));
    }
}

/// Loads from global memory and stores to it.
///
/// # Safety
/// `bytes` has 16 elements, and `words` has two. The targets have four times as many.
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

/// A load under a condition of an element of each size.
///
/// # Safety
/// If `condition` holds, the sources have an element. The targets have one in any case.
#[kernel(threads = 32)]
pub unsafe fn conditional_loads(condition: u32, from: [Global<u64>; 4], to: [GlobalMut<u64>; 4]) {
    /// # Safety
    /// As of the kernel.
    unsafe fn load_if<T: DeviceData + Default>(
        from: Global<u64>,
        to: GlobalMut<u64>,
        condition: bool,
    ) {
        let (from, to) = (from.as_ptr().cast::<T>(), to.as_ptr().cast::<T>());
        // SAFETY: as promised by the caller.
        unsafe { GlobalMut::from_ptr(to).store(0, Global::from_ptr(from).load_if(0, condition)) };
    }
    // SAFETY: as promised by the caller.
    unsafe {
        load_if::<u8>(from[0], to[0], condition != 0);
        load_if::<u16>(from[1], to[1], condition != 0);
        load_if::<u32>(from[2], to[2], condition != 0);
        load_if::<u64>(from[3], to[3], condition != 0);
    }
}

/// A load and a store, both with an offset.
///
/// # Safety
/// `shared` has 48 bytes.
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
#[kernel(threads = 32)]
pub fn shared_accesses(#[shared] bytes: SharedArray<u8, 48>, #[shared] words: SharedArray<u64, 6>) {
    let (bytes, words) = (*bytes, *words);
    // SAFETY: each pointer has 48 bytes.
    unsafe {
        every_width!(copy_shared, (bytes), (words));
    }
}

/// Additions to global memory, or stores.
///
/// # Safety
/// `floats` and `integers` have three elements each.
#[kernel(threads = 32, arch = "sm_90a")]
pub unsafe fn additions(floats: GlobalMut<f32>, integers: GlobalMut<i32>, adds: u32) {
    let floats = ReduceAdd::to_if(adds != 0, floats);
    let integers = ReduceAdd::to_if(adds != 0, integers);
    // SAFETY: as promised by the caller.
    unsafe {
        floats.store_vector(0, [1.0, 2.0]);
        floats.store(2, 3.0);
        integers.store_vector(0, [1, 2]);
        integers.store(2, 3);
    }
}
