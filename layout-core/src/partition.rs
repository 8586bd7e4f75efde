//! Thread-value layouts: which thread of a block holds which coordinates of a tile.

use core::marker::PhantomData;

use crate::entry::{entry, set_entry};
use crate::{Engine, EngineMut, FragmentLayout, StaticLayout};

/// A thread-value layout over the coordinates of a tile.
///
/// `Thr` maps a thread index and `Val` a value index to tile coordinates; value `v` of thread `t`
/// is at `Thr(t) + Val(v)`. The halves are separate types because a fragment's storage depends on
/// `Val` alone.
pub trait ThreadValue: Copy + 'static {
    /// From thread index to tile coordinates.
    type Thr: StaticLayout;
    /// From value index to tile coordinates.
    type Val: FragmentLayout;
    /// How many values one memory access moves.
    type Width: AccessWidth;
}

/// The width of a memory access, as a type. Stable Rust does not let generic code pass a type
/// parameter's constant as a const argument; it can call the functions of a type instead.
///
/// [`Width`] alone implements it: tensors rely on it to access no more than [`VALUES`](Self::VALUES).
pub trait AccessWidth: Copy + sealed::Width + 'static {
    /// Values per access: 1, 2, 4, 8 or 16.
    const VALUES: usize;

    /// Reads the values from `index` on in one access, and calls `each(n, value n)`.
    ///
    /// # Safety
    /// As [`Engine::load_vector`].
    unsafe fn load<E: Engine>(engine: E, index: i64, each: impl FnMut(usize, E::Element));

    /// Copies the values from `index` on to those from `to_index` on, with one load and one store.
    ///
    /// # Safety
    /// As [`Engine::load_vector`] and [`EngineMut::store_vector`].
    unsafe fn copy<E: Engine, F: EngineMut<Element = E::Element>>(
        from: E,
        index: i64,
        to: F,
        to_index: i64,
    );

    /// Replaces the values from `index` on by `f(n, value n)`, with one load and one store.
    ///
    /// # Safety
    /// As [`Engine::load_vector`] and [`EngineMut::store_vector`].
    unsafe fn update<E: EngineMut>(
        engine: E,
        index: i64,
        f: impl FnMut(usize, E::Element) -> E::Element,
    );

    /// Writes `value(n)` for each `n` to the elements from `index` on, in one access.
    ///
    /// # Safety
    /// As [`EngineMut::store_vector`].
    unsafe fn store<E: EngineMut>(engine: E, index: i64, value: impl FnMut(usize) -> E::Element);
}

mod sealed {
    pub trait Width {}
}

/// Accesses of `N` values.
#[derive(Clone, Copy, Debug)]
pub struct Width<const N: usize>;

impl<const N: usize> sealed::Width for Width<N> {}

impl<const N: usize> AccessWidth for Width<N> {
    const VALUES: usize = N;

    #[inline(always)]
    unsafe fn load<E: Engine>(engine: E, index: i64, mut each: impl FnMut(usize, E::Element)) {
        // SAFETY: as promised by the caller.
        let vector = unsafe { engine.load_vector::<N>(index) };
        let mut n = 0;
        while n < N {
            each(n, *entry(&vector, n));
            n += 1;
        }
    }

    #[inline(always)]
    unsafe fn copy<E: Engine, F: EngineMut<Element = E::Element>>(
        from: E,
        index: i64,
        to: F,
        to_index: i64,
    ) {
        // SAFETY: as promised by the caller.
        unsafe { to.store_vector::<N>(to_index, from.load_vector::<N>(index)) };
    }

    #[inline(always)]
    unsafe fn update<E: EngineMut>(
        engine: E,
        index: i64,
        mut f: impl FnMut(usize, E::Element) -> E::Element,
    ) {
        // SAFETY: as promised by the caller.
        unsafe {
            let mut vector = engine.load_vector::<N>(index);
            let mut n = 0;
            while n < N {
                let value = f(n, *entry(&vector, n));
                set_entry(&mut vector, n, value);
                n += 1;
            }
            engine.store_vector::<N>(index, vector);
        }
    }

    #[inline(always)]
    unsafe fn store<E: EngineMut>(
        engine: E,
        index: i64,
        mut value: impl FnMut(usize) -> E::Element,
    ) {
        let mut vector = [value(0); N];
        let mut n = 1;
        while n < N {
            set_entry(&mut vector, n, value(n));
            n += 1;
        }
        // SAFETY: as promised by the caller.
        unsafe { engine.store_vector::<N>(index, vector) };
    }
}

/// A thread-value layout whose accesses move `WIDTH` values.
///
/// ```
/// use cutlet_layout_core::{L, StaticLayout, ThreadValue, Tv};
///
/// // 32 threads read a 32×8 tile, four consecutive columns at a time, 16 rows apart.
/// type Copy = Tv<L!((2, 16):(4@1, 1@0)), L!((4, 2):(1@1, 16@0)), 4>;
/// assert_eq!(<Copy as ThreadValue>::Val::SIZE, 8);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Tv<Thr, Val, const WIDTH: usize = 1>(PhantomData<(Thr, Val)>);

impl<Thr: StaticLayout, Val: FragmentLayout, const WIDTH: usize> ThreadValue
    for Tv<Thr, Val, WIDTH>
{
    type Thr = Thr;
    type Val = Val;
    type Width = Width<WIDTH>;
}

/// The index of a thread within the group that shares a tile: a block, a warp, a warpgroup.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the index of a thread that a layout is partitioned for",
    label = "not the index of a thread",
    note = "a number is one, too: the index of a group of your own as `u32`"
)]
pub trait ThreadIndex: Copy {
    /// The number of threads of the group, if the compiler knows it. A partition by a layout of another number of
    /// threads does not compile.
    const THREADS: Option<u32>;

    /// The index as a number.
    fn index(self) -> u32;
}

impl ThreadIndex for u32 {
    const THREADS: Option<u32> = None;

    #[inline(always)]
    fn index(self) -> u32 {
        self
    }
}
