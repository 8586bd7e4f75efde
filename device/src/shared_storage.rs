//! Shared storage: what a kernel keeps in shared memory, as a type.

use core::fmt;
use core::marker::PhantomData;
use core::ops::Deref;

use crate::{DeviceData, Shared};

/// What a kernel keeps in shared memory. The launch gets as many bytes as the type has.
///
/// A kernel declares it as a parameter. Parts of a tuple, of an array, or of a struct that derives
/// [`SharedStorage`](macro@crate::SharedStorage), lie one after the other, each aligned as it needs.
///
/// ```
/// use cutlet_device::mbarrier::Mbarrier;
/// use cutlet_device::{GlobalMut, SharedArray, SharedStorage, kernel, sync_threads, thread_idx};
///
/// #[derive(Clone, Copy, SharedStorage)]
/// struct Storage {
///     numbers: SharedArray<f32, 65>,
///     full: Mbarrier,
/// }
/// assert_eq!(Storage::BYTES, 272 + 8); // 260 bytes, and the next multiple of 16
/// assert_eq!(<[Storage; 2]>::BYTES, 2 * 288);
///
/// /// Reverses 64 elements.
/// ///
/// /// # Safety
/// /// `x` must have 64 elements.
/// #[kernel(threads = 64)]
/// pub unsafe fn reverse(x: GlobalMut<f32>, #[shared] Storage { numbers, .. }: Storage) {
///     let i = i64::from(thread_idx().get());
///     // SAFETY: the caller promises the elements.
///     unsafe {
///         numbers.store(i, x.load(i));
///         sync_threads();
///         x.store(i, numbers.load(63 - i));
///     }
/// }
///
/// assert_eq!(reverse.bounds().shared_bytes(), 280);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be in shared memory",
    label = "not shared storage",
    note = "declare elements as a `SharedArray<T, N>` or a `SharedTile`",
    note = "declare several parts as a tuple, or as a struct that derives `SharedStorage`"
)]
pub trait SharedStorage: Sized {
    /// Bytes.
    const BYTES: u32;
    /// The power of two that its address is a multiple of: 1024 at most.
    const ALIGN: u32;

    /// The storage whose first byte has this address in shared memory, a multiple of [`ALIGN`](Self::ALIGN).
    fn at(address: u32) -> Self;
}

/// `N` elements in shared memory, whose address is a multiple of `ALIGN` bytes. It derefs to the [`Shared`] pointer to
/// the first one.
pub struct SharedArray<T, const N: usize, const ALIGN: u32 = 16>(Shared<T>);

impl<T, const N: usize, const ALIGN: u32> Clone for SharedArray<T, N, ALIGN> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, const N: usize, const ALIGN: u32> Copy for SharedArray<T, N, ALIGN> {}

impl<T: DeviceData, const N: usize, const ALIGN: u32> fmt::Debug for SharedArray<T, N, ALIGN> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedArray({:#x}; {N})", self.0.address())
    }
}

impl<T, const N: usize, const ALIGN: u32> Deref for SharedArray<T, N, ALIGN> {
    type Target = Shared<T>;

    #[inline(always)]
    fn deref(&self) -> &Shared<T> {
        &self.0
    }
}

impl<T: DeviceData, const N: usize, const ALIGN: u32> SharedStorage for SharedArray<T, N, ALIGN> {
    const BYTES: u32 = bytes_of::<T>(N);
    const ALIGN: u32 = {
        assert!(
            ALIGN.is_power_of_two() && ALIGN >= 16 && ALIGN <= 1024,
            "shared memory can be aligned to 16, 32, 64, 128, 256, 512 or 1024 bytes"
        );
        ALIGN
    };

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self(Shared::from_address(address))
    }
}

/// Storage that is `A` first, and `B` afterwards, in the same bytes.
///
/// All threads must be done with `A` before one writes `B`.
#[derive(Clone, Copy, Debug)]
pub struct SharedUnion<A, B> {
    start: u32,
    parts: PhantomData<(A, B)>,
}

impl<A: SharedStorage, B: SharedStorage> SharedUnion<A, B> {
    /// The storage as it is first.
    #[inline(always)]
    pub fn first(&self) -> A {
        A::at(self.start)
    }

    /// The storage as it is afterwards.
    #[inline(always)]
    pub fn second(&self) -> B {
        B::at(self.start)
    }
}

impl<A: SharedStorage, B: SharedStorage> SharedStorage for SharedUnion<A, B> {
    const BYTES: u32 = larger(A::BYTES, B::BYTES);
    const ALIGN: u32 = larger(A::ALIGN, B::ALIGN);

    #[inline(always)]
    fn at(address: u32) -> Self {
        Self {
            start: address,
            parts: PhantomData,
        }
    }
}

/// `N` parts of a type, one after the other, each aligned as it needs.
impl<S: SharedStorage, const N: usize> SharedStorage for [S; N] {
    const BYTES: u32 = N as u32 * S::BYTES.next_multiple_of(S::ALIGN);
    const ALIGN: u32 = S::ALIGN;

    #[inline(always)]
    fn at(address: u32) -> Self {
        let bytes = const { S::BYTES.next_multiple_of(S::ALIGN) };
        core::array::from_fn(|nth| S::at(address + nth as u32 * bytes))
    }
}

macro_rules! one_after_the_other {
    ($($part:ident)+) => {
        #[diagnostic::do_not_recommend]
        impl<$($part: SharedStorage),+> SharedStorage for ($($part,)+) {
            const BYTES: u32 = {
                let end = 0u32;
                $(let end = end.next_multiple_of($part::ALIGN) + $part::BYTES;)+
                end
            };
            const ALIGN: u32 = {
                let align = 1;
                $(let align = larger(align, $part::ALIGN);)+
                align
            };

            #[inline(always)]
            #[allow(unused_assignments, reason = "the last part's end")]
            fn at(address: u32) -> Self {
                let mut end = 0u32;
                ($({
                    let start = end.next_multiple_of($part::ALIGN);
                    end = start + $part::BYTES;
                    $part::at(address + start)
                },)+)
            }
        }
    };
}
one_after_the_other!(A);
one_after_the_other!(A B);
one_after_the_other!(A B C);
one_after_the_other!(A B C D);
one_after_the_other!(A B C D E);
one_after_the_other!(A B C D E F);
one_after_the_other!(A B C D E F G);
one_after_the_other!(A B C D E F G H);

const fn larger(a: u32, b: u32) -> u32 {
    if a > b { a } else { b }
}

/// Bytes of `count` elements.
///
/// # Panics
/// If they do not fit 32 bits.
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(crate) const fn bytes_of<T>(count: usize) -> u32 {
    let bytes = count as u64 * size_of::<T>() as u64;
    assert!(
        bytes <= u32::MAX as u64,
        "shared memory has no room for so many elements: a block has at most 227 KiB"
    );
    bytes as u32
}
