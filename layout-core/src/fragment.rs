//! Fragments: a thread's values of a tile, held in registers.

mod grid;

use core::mem::MaybeUninit;

use crate::text::Text;
use crate::{StaticLayout, each};

/// A static layout of a thread's values, for which a [`Fragment`] has registers.
///
/// The modes that [`L!`](crate::L) writes are such layouts, and so are tuples and compositions of them. A layout of your
/// own says how many values it has, as an array of as many places:
///
/// ```
/// use cutlet_layout_core::{Fragment, FragmentLayout, Layout, StaticLayout, layout};
///
/// #[derive(Clone, Copy)]
/// struct Rows;
///
/// impl StaticLayout for Rows {
///     const LAYOUT: Layout = layout!((2, 4):(8, 1));
/// }
/// impl FragmentLayout for Rows {
///     type Storage = [(); 8]; // or [[(); 4]; 2]
/// }
/// assert_eq!(Fragment::<f32, Rows>::filled(1.5).get(7), 1.5);
/// ```
///
/// Storage of another size does not compile when a fragment is made:
///
/// ```compile_fail,E0080
/// # use cutlet_layout_core::{Fragment, FragmentLayout, Layout, StaticLayout, layout};
/// # #[derive(Clone, Copy)]
/// # struct Rows;
/// # impl StaticLayout for Rows {
/// #     const LAYOUT: Layout = layout!((2, 4):(8, 1));
/// # }
/// impl FragmentLayout for Rows {
///     type Storage = [(); 6];
/// }
/// Fragment::<f32, Rows>::filled(1.5);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say how many registers its values take",
    label = "a fragment needs a layout with storage",
    note = "implement `FragmentLayout` for the layout: `type Storage = [(); N];`, where N is its number of elements"
)]
pub trait FragmentLayout: StaticLayout {
    /// A place for each element of the layout's domain: `[(); 8]`, or arrays in one another.
    type Storage: FragmentStorage;
}

/// The places of a fragment's values: `()` is one place, and `[S; N]` is N times those of `S`. A tuple has the product
/// of its parts.
///
/// No other type can be storage. So storage of `T` consists of values of `T` alone: it is aligned for `T`, and threads
/// may share it exactly if they may share `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no storage of a fragment",
    label = "storage is an array of places",
    note = "write `[(); N]` for a layout of N elements"
)]
pub trait FragmentStorage: sealed::Places {}

mod sealed {
    /// What a type of storage is for values of any type.
    pub trait Places: 'static {
        /// How many values there are.
        const COUNT: usize;
        /// The values.
        type Of<T: Copy>: Copy;
    }
}
use sealed::Places;

impl FragmentStorage for () {}
impl Places for () {
    const COUNT: usize = 1;
    type Of<T: Copy> = T;
}

impl<S: FragmentStorage, const N: usize> FragmentStorage for [S; N] {}
impl<S: Places, const N: usize> Places for [S; N] {
    const COUNT: usize = N * S::COUNT;
    type Of<T: Copy> = [S::Of<T>; N];
}

macro_rules! product {
    ($($part:ident)+ => $values:ty) => {
        impl<$($part: FragmentStorage),+> FragmentStorage for ($($part,)+) {}
        impl<$($part: Places),+> Places for ($($part,)+) {
            const COUNT: usize = 1 $(* $part::COUNT)+;
            type Of<T: Copy> = $values;
        }
    };
}
product!(A => A::Of<T>);
product!(A B => B::Of<A::Of<T>>);
product!(A B C => C::Of<B::Of<A::Of<T>>>);
product!(A B C D => D::Of<C::Of<B::Of<A::Of<T>>>>);
product!(A B C D E => E::Of<D::Of<C::Of<B::Of<A::Of<T>>>>>);
product!(A B C D E F => F::Of<E::Of<D::Of<C::Of<B::Of<A::Of<T>>>>>>);
product!(A B C D E F G => G::Of<F::Of<E::Of<D::Of<C::Of<B::Of<A::Of<T>>>>>>>);
product!(A B C D E F G H => H::Of<G::Of<F::Of<E::Of<D::Of<C::Of<B::Of<A::Of<T>>>>>>>>);

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
///
/// A fragment goes to another thread if its values may:
///
/// ```compile_fail,E0277
/// use std::cell::Cell;
/// use cutlet_layout_core::{Fragment, L};
///
/// let cell = Cell::new(0);
/// let cells = Fragment::<&Cell<i32>, L!(2:1)>::filled(&cell);
/// std::thread::scope(|scope| {
///     scope.spawn(|| cells.get(0).set(1));
/// });
/// ```
#[derive(Clone, Copy)]
pub struct Fragment<T: Copy, L: FragmentLayout> {
    /// All values are initialised. They are written one by one, without a copy of the whole.
    values: MaybeUninit<Values<T, L>>,
}

/// The values of a fragment in memory: nothing but [`Places::COUNT`] values of `T` in a row.
type Values<T, L> = <<L as FragmentLayout>::Storage as Places>::Of<T>;

impl<T: Copy, L: FragmentLayout> Fragment<T, L> {
    /// Every constructor asserts it.
    const EXACT: () = assert_exact(<L::Storage as Places>::COUNT, L::SIZE);

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

    /// The fragment whose value `v` is `f(v, value v of this one, value v of the other one)`.
    ///
    /// ```
    /// use cutlet_layout_core::{Fragment, L};
    ///
    /// let prices = Fragment::<f32, L!(3:1)>::from_fn(|v| v as f32 + 0.5);
    /// let counts = Fragment::<i32, L!(3:1)>::from_fn(|v| 2 * v as i32);
    /// let costs = prices.zip(&counts, |_, price, count| price * count as f32);
    /// assert_eq!(costs.fold(0.0, |sum, cost| sum + cost), 13.0);
    /// ```
    #[inline(always)]
    pub fn zip<U: Copy, V: Copy>(
        &self,
        other: &Fragment<U, L>,
        mut f: impl FnMut(usize, T, U) -> V,
    ) -> Fragment<V, L> {
        Fragment::from_fn(|v| f(v, self.get(v), other.get(v)))
    }

    /// Combines all values, in the order of their indices: `f(… f(f(init, value 0), value 1) …)`.
    #[inline(always)]
    pub fn fold<A>(&self, init: A, mut f: impl FnMut(A, T) -> A) -> A {
        let mut folded = init;
        for v in 0..L::SIZE {
            folded = f(folded, self.get(v));
        }
        folded
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

/// Panics unless there is a place for each element.
const fn assert_exact(places: usize, elements: usize) {
    if places != elements {
        let mut text = Text::new();
        text.str("a fragment's storage has ").number(places as i64);
        text.str(" places, and its layout has ")
            .number(elements as i64);
        text.str(" elements: correct the layout's `type Storage`");
        panic!("{}", text.as_str());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    #[should_panic(
        expected = "a fragment's storage has 6 places, and its layout has 8 elements: correct the layout's `type Storage`"
    )]
    fn storage_of_another_size_is_refused_in_words() {
        super::assert_exact(6, 8);
    }
}
