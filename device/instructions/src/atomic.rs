//! Atomic operations on global and shared memory, of every type.

use cutlet_device::{
    AtomicAdd, AtomicCas, AtomicCell, AtomicExchange, AtomicMax, AtomicMemory, AtomicMin,
    DeviceData, GlobalMut, SharedArray, atomic_add, atomic_cas, atomic_count, atomic_exchange,
    atomic_load, atomic_max, atomic_min, atomic_store, kernel, wait_until,
};

/// A pointer to one element of each type.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Cells {
    u32: GlobalMut<u32>,
    i32: GlobalMut<i32>,
    u64: GlobalMut<u64>,
    i64: GlobalMut<i64>,
    f32: GlobalMut<f32>,
    f64: GlobalMut<f64>,
}

/// The operations of all numbers.
///
/// # Safety
/// `memory` has an element.
#[inline(always)]
unsafe fn of_numbers<M: AtomicMemory>(memory: M, value: M::Element)
where
    M::Element: AtomicAdd + AtomicExchange,
{
    // SAFETY: as promised by the caller.
    unsafe {
        atomic_add(memory, 0, value);
        atomic_exchange(memory, 0, value);
    }
}

/// The operations of integers.
///
/// # Safety
/// `memory` has an element.
#[inline(always)]
unsafe fn of_integers<M: AtomicMemory>(memory: M, value: M::Element)
where
    M::Element: AtomicAdd + AtomicExchange + AtomicMin + AtomicMax + AtomicCas,
{
    // SAFETY: as promised by the caller.
    unsafe {
        of_numbers(memory, value);
        atomic_min(memory, 0, value);
        atomic_max(memory, 0, value);
        atomic_cas(memory, 0, value, value);
    }
}

/// Waits for a flag, and sets it.
///
/// # Safety
/// `flag` has an element.
#[inline(always)]
unsafe fn signal<T: AtomicCell + PartialEq>(flag: GlobalMut<T>, value: T) {
    // SAFETY: as promised by the caller.
    unsafe {
        wait_until(|| atomic_load(flag, 0) == value);
        atomic_store(flag, 0, value);
    }
}

/// Operations on global memory.
///
/// # Safety
/// Each pointer has an element.
#[kernel(threads = 32)]
pub unsafe fn atomic_in_global(cells: Cells) {
    // SAFETY: as promised by the caller.
    unsafe {
        of_integers(cells.u32, 1);
        of_integers(cells.i32, 1);
        of_integers(cells.u64, 1);
        of_integers(cells.i64, 1);
        of_numbers(cells.f32, 1.0);
        of_numbers(cells.f64, 1.0);
    }
}

/// An element in shared memory.
type Cell<T> = SharedArray<T, 1>;

/// Operations on shared memory.
#[kernel(threads = 32)]
pub fn atomic_in_shared(
    #[shared] (u32s, i32s, u64s, i64s): (Cell<u32>, Cell<i32>, Cell<u64>, Cell<i64>),
    #[shared] (f32s, f64s): (Cell<f32>, Cell<f64>),
) {
    // SAFETY: each pointer has an element.
    unsafe {
        of_integers(*u32s, 1);
        of_integers(*i32s, 1);
        of_integers(*u64s, 1);
        of_integers(*i64s, 1);
        of_numbers(*f32s, 1.0);
        of_numbers(*f64s, 1.0);
    }
}

/// Signals between blocks.
///
/// # Safety
/// Each pointer has an element.
#[kernel(threads = 32)]
pub unsafe fn atomic_signals(cells: Cells) {
    // SAFETY: as promised by the caller.
    unsafe {
        signal(cells.u32, 1);
        signal(cells.i32, 1);
        signal(cells.u64, 1);
        signal(cells.i64, 1);
        atomic_count(cells.u32, 0, 7);
    }
}
