//! Atomic operations on global and shared memory, and flags for signals between blocks.
//!
//! The operations are relaxed: they do not order other accesses. [`atomic_load`], [`atomic_store`] and [`atomic_count`]
//! order the accesses around them, so that one block can pass data to another.

use crate::{DeviceData, GlobalMut, Shared};

/// Memory that atomic operations act on: [`GlobalMut`] and [`Shared`].
pub trait AtomicMemory: Copy + sealed::Place {}

impl<T: DeviceData> AtomicMemory for GlobalMut<T> {}
impl<T: DeviceData> AtomicMemory for Shared<T> {}

mod sealed {
    use crate::{DeviceData, GlobalMut, Shared};

    /// The address of an element.
    pub enum Address<T> {
        /// In global memory, or in host memory that models global or shared memory.
        Generic(*mut T),
        /// In shared memory.
        #[cfg(target_arch = "nvptx64")]
        Shared(u32),
    }

    pub trait Place {
        type Element;

        fn at(self, index: i64) -> Address<Self::Element>;
    }

    impl<T: DeviceData> Place for GlobalMut<T> {
        type Element = T;

        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        fn at(self, index: i64) -> Address<T> {
            #[cfg(not(target_arch = "nvptx64"))]
            cutlet_simt::check_dependency();
            early(self, index)
        }
    }

    /// The address of an element, for a thread that may not have waited for the kernels before.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn early<T: DeviceData>(memory: GlobalMut<T>, index: i64) -> Address<T> {
        let ptr = memory.offset(index).checked_ptr();
        #[cfg(not(target_arch = "nvptx64"))]
        let ptr = cutlet_simt::global_bytes(
            ptr.cast(),
            size_of::<T>(),
            size_of::<T>(),
            cutlet_simt::MemoryAccess::Atomic,
        )
        .cast();
        Address::Generic(ptr)
    }

    impl<T: DeviceData> Place for Shared<T> {
        type Element = T;

        #[cfg(target_arch = "nvptx64")]
        #[inline(always)]
        fn at(self, index: i64) -> Address<T> {
            Address::Shared(self.offset(index).address())
        }

        #[cfg(not(target_arch = "nvptx64"))]
        #[track_caller]
        fn at(self, index: i64) -> Address<T> {
            let bytes = size_of::<T>() as u32;
            let address = self.offset(index).address();
            let kind = cutlet_simt::MemoryAccess::Atomic;
            Address::Generic(cutlet_simt::access_shared(address, bytes, bytes, kind).cast())
        }
    }
}

use sealed::{Address, Place};

macro_rules! operation {
    (
        $(#[$docs:meta])*
        $function:ident($($value:ident),*), $(#[$trait_docs:meta])* $trait:ident::$method:ident
    ) => {
        $(#[$docs])*
        ///
        /// # Safety
        /// The element must exist. Other threads may access it at the same time only by atomic operations.
        #[inline(always)]
        #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
        pub unsafe fn $function<M: AtomicMemory>(memory: M, index: i64, $($value: M::Element),*) -> M::Element
        where
            M::Element: $trait,
        {
            // SAFETY: as promised by the caller.
            unsafe { M::Element::$method(Place::at(memory, index), $($value),*) }
        }

        $(#[$trait_docs])*
        pub trait $trait: Copy {
            #[doc(hidden)]
            #[allow(clippy::missing_safety_doc, private_interfaces)]
            unsafe fn $method(at: Address<Self>, $($value: Self),*) -> Self;
        }
    };
}

operation! {
    /// Adds `value` to element `index`, and returns the old value.
    atomic_add(value),
    /// A type that [`atomic_add`] can add: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
    AtomicAdd::add
}
operation! {
    /// Replaces element `index` by the minimum of it and `value`, and returns the old value.
    atomic_min(value),
    /// A type that [`atomic_min`] can compare: `u32`, `i32`, `u64`, `i64`.
    AtomicMin::min
}
operation! {
    /// Replaces element `index` by the maximum of it and `value`, and returns the old value.
    atomic_max(value),
    /// A type that [`atomic_max`] can compare: `u32`, `i32`, `u64`, `i64`.
    AtomicMax::max
}
operation! {
    /// Replaces element `index` by `value`, and returns the old value.
    atomic_exchange(value),
    /// A type that [`atomic_exchange`] can exchange: `u32`, `i32`, `u64`, `i64`, `f32`, `f64`.
    AtomicExchange::exchange
}
operation! {
    /// Replaces element `index` by `value` if it is `expected`, and returns the old value.
    atomic_cas(expected, value),
    /// A type that [`atomic_cas`] can compare bit by bit: `u32`, `i32`, `u64`, `i64`.
    AtomicCas::compare_and_swap
}

/// [`atomic_add`] by a thread that may not have waited for the kernels before, to memory that they do not use.
///
/// # Safety
/// As [`atomic_add`].
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) unsafe fn atomic_add_early<T>(memory: GlobalMut<T>, index: i64, value: T) -> T
where
    T: DeviceData + AtomicAdd,
{
    // SAFETY: as promised by the caller.
    unsafe { T::add(sealed::early(memory, index), value) }
}

/// Reads element `index` with acquire ordering: this thread then sees the writes before the [`atomic_store`] that it
/// reads.
///
/// # Safety
/// The element must exist. Other threads may write it at the same time only by atomic operations.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn atomic_load<T: AtomicCell>(memory: GlobalMut<T>, index: i64) -> T {
    // SAFETY: as promised by the caller.
    unsafe { T::load(Place::at(memory, index)) }
}

/// Writes element `index` with release ordering: a thread that reads it by [`atomic_load`] sees this thread's earlier
/// writes.
///
/// # Safety
/// The element must exist. Other threads may access it at the same time only by atomic operations.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn atomic_store<T: AtomicCell>(memory: GlobalMut<T>, index: i64, value: T) {
    // SAFETY: as promised by the caller.
    unsafe { T::store(Place::at(memory, index), value) };
}

/// Adds 1 to element `index`, or resets it to 0 if it is `last`, and returns the old value. A thread that counts sees
/// the writes of other threads before their counts.
///
/// # Safety
/// The element must exist. Other threads may access it at the same time only by atomic operations.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub unsafe fn atomic_count(memory: GlobalMut<u32>, index: i64, last: u32) -> u32 {
    // SAFETY: as promised by the caller.
    unsafe { imp::count(Place::at(memory, index), last) }
}

/// A type that [`atomic_load`] and [`atomic_store`] can access: `u32`, `i32`, `u64`, `i64`.
pub trait AtomicCell: DeviceData {
    #[doc(hidden)]
    #[allow(clippy::missing_safety_doc, private_interfaces)]
    unsafe fn load(at: Address<Self>) -> Self;
    #[doc(hidden)]
    #[allow(clippy::missing_safety_doc, private_interfaces)]
    unsafe fn store(at: Address<Self>, value: Self);
}

#[cfg(not(target_arch = "nvptx64"))]
use cpu as imp;
#[cfg(target_arch = "nvptx64")]
use ptx as imp;

#[cfg(target_arch = "nvptx64")]
mod ptx {
    use core::arch::asm;

    use super::*;

    #[inline(always)]
    pub unsafe fn count(at: Address<u32>, last: u32) -> u32 {
        let Address::Generic(ptr) = at else {
            unreachable()
        };
        let old;
        // SAFETY: the caller promises that the element exists.
        unsafe {
            asm!("atom.acq_rel.gpu.global.inc.u32 {}, [{}], {};",
                out(reg32) old, in(reg64) ptr, in(reg32) last, options(nostack));
        }
        old
    }

    macro_rules! atom {
        ($trait:ident::$method:ident $values:tt = $op:literal: $($type:ty: $ptx:literal $reg:ident;)*) => {
            $(atom! { @one $trait $method $values $op $type, $ptx $reg })*
        };
        (
            @one $trait:ident $method:ident ($($value:ident),*) $op:literal
            $type:ty, $ptx:literal $reg:ident
        ) => {
            impl $trait for $type {
                #[inline(always)]
                unsafe fn $method(at: Address<Self>, $($value: Self),*) -> Self {
                    let old;
                    // SAFETY: the caller promises that the element exists.
                    unsafe {
                        match at {
                            Address::Generic(ptr) => asm!(
                                concat!("atom.global.", $op, ".", $ptx, " {}, [{}]",
                                    $(atom!(@operand $value),)* ";"),
                                out($reg) old, in(reg64) ptr, $(in($reg) $value,)* options(nostack)
                            ),
                            Address::Shared(address) => asm!(
                                concat!("atom.shared.", $op, ".", $ptx, " {}, [{}]",
                                    $(atom!(@operand $value),)* ";"),
                                out($reg) old, in(reg32) address, $(in($reg) $value,)*
                                options(nostack)
                            ),
                        }
                    }
                    old
                }
            }
        };
        (@operand $value:ident) => { ", {}" };
    }

    atom! { AtomicAdd::add(value) = "add":
        u32: "u32" reg32; i32: "s32" reg32; u64: "u64" reg64; i64: "u64" reg64; f32: "f32" reg32; f64: "f64" reg64;
    }
    atom! { AtomicMin::min(value) = "min":
        u32: "u32" reg32; i32: "s32" reg32; u64: "u64" reg64; i64: "s64" reg64;
    }
    atom! { AtomicMax::max(value) = "max":
        u32: "u32" reg32; i32: "s32" reg32; u64: "u64" reg64; i64: "s64" reg64;
    }
    atom! { AtomicExchange::exchange(value) = "exch":
        u32: "b32" reg32; i32: "b32" reg32; u64: "b64" reg64; i64: "b64" reg64; f32: "b32" reg32; f64: "b64" reg64;
    }
    atom! { AtomicCas::compare_and_swap(expected, value) = "cas":
        u32: "b32" reg32; i32: "b32" reg32; u64: "b64" reg64; i64: "b64" reg64;
    }

    macro_rules! cell {
        ($($type:ty: $ptx:literal $reg:ident;)*) => {$(
            impl AtomicCell for $type {
                #[inline(always)]
                unsafe fn load(at: Address<Self>) -> Self {
                    let Address::Generic(ptr) = at else { unreachable() };
                    let value;
                    // SAFETY: the caller promises that the element exists.
                    unsafe {
                        asm!(concat!("ld.acquire.gpu.global.", $ptx, " {}, [{}];"),
                            out($reg) value, in(reg64) ptr, options(nostack));
                    }
                    value
                }

                #[inline(always)]
                unsafe fn store(at: Address<Self>, value: Self) {
                    let Address::Generic(ptr) = at else { unreachable() };
                    // SAFETY: the caller promises that the element exists.
                    unsafe {
                        asm!(concat!("st.release.gpu.global.", $ptx, " [{}], {};"),
                            in(reg64) ptr, in($reg) value, options(nostack));
                    }
                }
            }
        )*};
    }

    cell! { u32: "b32" reg32; i32: "b32" reg32; u64: "b64" reg64; i64: "b64" reg64; }

    /// The operations on flags act on global memory only.
    #[inline(always)]
    fn unreachable() -> ! {
        // SAFETY: the operations on flags take a `GlobalMut`.
        unsafe { core::hint::unreachable_unchecked() }
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod cpu {
    use core::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

    use cutlet_simt::AtomicOrder::{Acquire, AcquireRelease, Relaxed, Release};
    use cutlet_simt::{AtomicOrder, after_atomic, before_atomic, polled};

    use super::*;

    /// A type with an atomic of the host.
    trait Cell {
        /// The host's atomic of the same size.
        type Atomic;
    }

    /// The element as an atomic.
    ///
    /// # Safety
    /// The element must exist.
    unsafe fn cell<'a, T: Cell>(at: Address<T>) -> &'a T::Atomic {
        let Address::Generic(ptr) = at;
        // SAFETY: the caller promises that the element exists. It was checked to be aligned, and has the size of the
        // atomic.
        unsafe { &*ptr.cast() }
    }

    /// An atomic operation that orders the accesses around it as `order` says.
    fn ordered<R>(order: AtomicOrder, address: usize, operation: impl FnOnce() -> R) -> R {
        before_atomic(address, order);
        let result = operation();
        after_atomic(address, order);
        result
    }

    pub unsafe fn count(at: Address<u32>, last: u32) -> u32 {
        // SAFETY: as promised by the caller.
        let cell = unsafe { cell(at) };
        let next = |old: u32| Some(if old >= last { 0 } else { old + 1 });
        let (Ok(old) | Err(old)) = ordered(AcquireRelease, cell.as_ptr().addr(), || {
            cell.try_update(Ordering::AcqRel, Ordering::Relaxed, next)
        });
        old
    }

    macro_rules! integers {
        ($($type:ty: $atomic:ty;)*) => {$(
            impl Cell for $type {
                type Atomic = $atomic;
            }

            integers! { @operations $type;
                AtomicAdd::add = fetch_add; AtomicMin::min = fetch_min; AtomicMax::max = fetch_max;
                AtomicExchange::exchange = swap;
            }

            impl AtomicCas for $type {
                #[track_caller]
                unsafe fn compare_and_swap(at: Address<Self>, expected: Self, value: Self) -> Self {
                    // SAFETY: as promised by the caller.
                    let cell = unsafe { cell(at) };
                    let exchanged = ordered(Relaxed, cell.as_ptr().addr(), || {
                        cell.compare_exchange(expected, value, Ordering::Relaxed, Ordering::Relaxed)
                    });
                    match exchanged {
                        Ok(old) => old,
                        Err(old) => {
                            polled(cell.as_ptr().addr(), old as u64, || cell.load(Ordering::Relaxed) != old);
                            old
                        }
                    }
                }
            }

            impl AtomicCell for $type {
                #[track_caller]
                unsafe fn load(at: Address<Self>) -> Self {
                    // SAFETY: as promised by the caller.
                    let cell = unsafe { cell(at) };
                    let value = ordered(Acquire, cell.as_ptr().addr(), || cell.load(Ordering::Acquire));
                    polled(cell.as_ptr().addr(), value as u64, || cell.load(Ordering::Relaxed) != value);
                    value
                }

                #[track_caller]
                unsafe fn store(at: Address<Self>, value: Self) {
                    // SAFETY: as promised by the caller.
                    let cell = unsafe { cell(at) };
                    ordered(Release, cell.as_ptr().addr(), || cell.store(value, Ordering::Release));
                }
            }
        )*};
        (@operations $type:ty; $($trait:ident::$method:ident = $call:ident;)*) => {$(
            impl $trait for $type {
                unsafe fn $method(at: Address<Self>, value: Self) -> Self {
                    // SAFETY: as promised by the caller.
                    let cell = unsafe { cell(at) };
                    ordered(Relaxed, cell.as_ptr().addr(), || cell.$call(value, Ordering::Relaxed))
                }
            }
        )*};
    }

    integers! { u32: AtomicU32; i32: AtomicI32; u64: AtomicU64; i64: AtomicI64; }

    macro_rules! floats {
        ($($type:ty: $atomic:ty;)*) => {$(
            impl Cell for $type {
                type Atomic = $atomic;
            }

            impl AtomicAdd for $type {
                unsafe fn add(at: Address<Self>, value: Self) -> Self {
                    // SAFETY: as promised by the caller.
                    let cell = unsafe { cell(at) };
                    let add = |old| Some((<$type>::from_bits(old) + value).to_bits());
                    let (Ok(old) | Err(old)) = ordered(Relaxed, cell.as_ptr().addr(), || {
                        cell.try_update(Ordering::Relaxed, Ordering::Relaxed, add)
                    });
                    <$type>::from_bits(old)
                }
            }

            impl AtomicExchange for $type {
                unsafe fn exchange(at: Address<Self>, value: Self) -> Self {
                    // SAFETY: as promised by the caller.
                    let cell = unsafe { cell(at) };
                    let swap = || cell.swap(value.to_bits(), Ordering::Relaxed);
                    <$type>::from_bits(ordered(Relaxed, cell.as_ptr().addr(), swap))
                }
            }
        )*};
    }

    floats! { f32: AtomicU32; f64: AtomicU64; }
}
