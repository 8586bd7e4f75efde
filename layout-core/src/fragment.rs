//! Fragments: a thread's values of a tile, held in registers.

use core::mem::MaybeUninit;

use crate::{StaticLayout, each};

/// One `T` for each element of `L`, indexed by value index.
///
/// Storage is exactly `L::SIZE` values, so that a fragment whose indices are constants (use
/// [`each`]) lives in registers.
///
/// ```
/// use cutlet_layout_core::{Fragment, L};
///
/// let mut sums = Fragment::<f32, L!((2, 2):(1, 2))>::filled(0.0);
/// sums.set(3, 1.5);
/// assert_eq!(sums.get(3), 1.5);
/// ```
#[derive(Clone, Copy)]
pub struct Fragment<T: Copy, L: StaticLayout> {
    /// All values are initialised. They are written one by one, without a copy of the whole.
    values: MaybeUninit<L::Storage<T>>,
}

impl<T: Copy, L: StaticLayout> Fragment<T, L> {
    const EXACT: () = assert!(
        size_of::<L::Storage<T>>() == L::SIZE * size_of::<T>(),
        "a layout's Storage must hold exactly one value for each of its elements"
    );

    /// A fragment in which every value is `value`.
    #[inline(always)]
    pub fn filled(value: T) -> Self {
        Self::from_fn(|_| value)
    }

    /// A fragment whose value `v` is `f(v)`.
    #[inline(always)]
    pub fn from_fn(mut f: impl FnMut(usize) -> T) -> Self {
        const { Self::EXACT }
        let mut fragment = Self {
            values: MaybeUninit::uninit(),
        };
        let first = fragment.values.as_mut_ptr().cast::<T>();
        // SAFETY: the storage holds exactly L::SIZE values (EXACT), and `each` visits 0..L::SIZE,
        // so every write is inside it and all of it is written.
        each::<L>(|v| unsafe { first.add(v).write(f(v)) });
        fragment
    }

    /// The fragment of the values in memory from `first` on.
    ///
    /// # Safety
    /// `first` must point to `L::SIZE` values.
    #[inline(always)]
    pub unsafe fn read(first: *const T) -> Self {
        const { Self::EXACT }
        let mut fragment = Self {
            values: MaybeUninit::uninit(),
        };
        let to = fragment.values.as_mut_ptr().cast::<T>();
        // SAFETY: the storage holds exactly L::SIZE values (EXACT); the caller promises the others.
        unsafe { to.copy_from_nonoverlapping(first, L::SIZE) };
        fragment
    }

    /// Value `v`.
    ///
    /// # Panics
    /// If `v` is not below `L::SIZE`; with a constant `v` the check costs nothing.
    #[inline(always)]
    pub fn get(&self, v: usize) -> T {
        assert!(v < L::SIZE);
        // SAFETY: the storage holds exactly L::SIZE values (EXACT) and v is below that.
        unsafe { (&raw const self.values).cast::<T>().add(v).read() }
    }

    /// Sets value `v`.
    ///
    /// # Panics
    /// If `v` is not below `L::SIZE`; with a constant `v` the check costs nothing.
    #[inline(always)]
    pub fn set(&mut self, v: usize, value: T) {
        assert!(v < L::SIZE);
        // SAFETY: as in `get`.
        unsafe { (&raw mut self.values).cast::<T>().add(v).write(value) }
    }

    /// The fragment whose value `v` is `f(v, value v of this one)`.
    #[inline(always)]
    pub fn map<U: Copy>(&self, mut f: impl FnMut(usize, T) -> U) -> Fragment<U, L> {
        Fragment::from_fn(|v| f(v, self.get(v)))
    }

    /// The fragment whose value `v` is value `v + by` of this one. The last `by` values stay the
    /// same.
    ///
    /// With it, a loop that is not unrolled can go through a fragment in equal parts: each
    /// iteration works on the first values, whose registers the compiler knows, and then moves the
    /// next ones there.
    ///
    /// ```
    /// use cutlet_layout_core::{Fragment, M};
    ///
    /// let sums = Fragment::<i32, M<6, 1>>::from_fn(|v| v as i32);
    /// let moved = sums.moved_up(2);
    /// assert_eq!([moved.get(0), moved.get(3), moved.get(4), moved.get(5)], [2, 5, 4, 5]);
    /// ```
    ///
    /// # Panics
    /// If `by` is more than `L::SIZE`; with a constant `by` the check costs nothing.
    #[inline(always)]
    pub fn moved_up(&self, by: usize) -> Self {
        assert!(by <= L::SIZE);
        let mut fragment = Self {
            values: MaybeUninit::uninit(),
        };
        let from = self.values.as_ptr().cast::<T>();
        let to = fragment.values.as_mut_ptr().cast::<T>();
        let rest = L::SIZE - by;
        // SAFETY: both storages hold exactly L::SIZE values (EXACT), and `rest + by` is that
        // number, so all values are written.
        unsafe {
            to.copy_from_nonoverlapping(from.add(by), rest);
            to.add(rest).copy_from_nonoverlapping(from.add(rest), by);
        }
        fragment
    }
}
