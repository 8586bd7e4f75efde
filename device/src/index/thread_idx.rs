//! The index of a thread in its block, whose type says how many threads the block has.
//!
//! [`Tensor::partition`](cutlet_layout_core::Tensor::partition) compares this number with the threads of its layout, so
//! a layout of 256 threads in a kernel of 128 does not compile.

use core::fmt;
use core::marker::PhantomData;

use cutlet_layout_core::{StaticLayout, ThreadIndex, ThreadValue};

use super::imp;

/// The threads that a [`ThreadIdx`] counts, as a type: those of a block, or the first ones of them.
///
/// [`Threads`] is a group of a given number. The configuration of a kernel can be one, too.
#[diagnostic::on_unimplemented(
    message = "the index does not say how many threads there are",
    label = "the index of a thread of `{Self}`",
    note = "a function that kernels call takes the index as an argument: `thread: ThreadIdx<impl ThreadGroup>`; \
            `instantiate!` passes it: `= function::<…>(thread_idx(), ..)`",
    note = "or the function names the threads of its kernels: `thread_idx().of_block::<Threads<256>>()`, which the CPU \
            backend checks"
)]
pub trait ThreadGroup: Copy + 'static {
    /// The number of threads.
    const THREADS: u32;
}

/// A group of `N` threads.
#[derive(Clone, Copy, Debug)]
pub struct Threads<const N: u32>;

impl<const N: u32> ThreadGroup for Threads<N> {
    const THREADS: u32 = N;
}

/// The threads of the thread-value layout `C`: those that a tensor is partitioned for.
#[derive(Clone, Copy, Debug)]
pub struct ThreadsOf<C>(PhantomData<C>);

impl<C: ThreadValue> ThreadGroup for ThreadsOf<C> {
    const THREADS: u32 = C::Thr::SIZE as u32;
}

/// Threads of which the compiler does not know how many there are.
#[derive(Clone, Copy, Debug)]
pub struct AnyThreads;

/// Index of a thread in its block, or among the first threads of it. `G` says how many there are.
///
/// It has no arithmetic: layouts take it as a coordinate.
///
/// In the body of a `#[kernel]`, [`thread_idx()`](thread_idx) has the kernel's number of threads:
///
/// ```
/// use cutlet_device::{GlobalMut, ThreadGroup, ThreadIdx, instantiate, kernel, thread_idx};
/// use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
///
/// /// 128 threads, with two values each.
/// type Pairs = Tv<L!(128:2@1), L!(2:1@1)>;
///
/// /// # Safety
/// /// `to` has 256 elements.
/// #[kernel(threads = 128)]
/// unsafe fn ones(to: GlobalMut<f32>) {
///     // SAFETY: the launcher promises the elements.
///     let to = unsafe { Tensor::new(to, RowMajor::new([1, 256], 0)) };
///     to.partition::<Pairs>(thread_idx()).store_with(|_| 1.0);
/// }
///
/// /// A function gets the index from its kernel.
/// ///
/// /// # Safety
/// /// `to` has 256 elements.
/// unsafe fn fill<const VALUE: i32>(thread: ThreadIdx<impl ThreadGroup>, to: GlobalMut<i32>) {
///     // SAFETY: the launcher promises the elements.
///     let to = unsafe { Tensor::new(to, RowMajor::new([1, 256], 0)) };
///     to.partition::<Pairs>(thread).store_with(|_| VALUE);
/// }
///
/// instantiate! {
///     #[kernel(threads = 128)]
///     unsafe fn twos(to: GlobalMut<i32>) = fill::<2>(thread_idx(), ..);
/// }
/// ```
///
/// A layout of another number of threads does not compile:
///
/// ```compile_fail,E0080
/// # use cutlet_device::{GlobalMut, kernel, thread_idx};
/// # use cutlet_layout_core::{L, RowMajor, Tensor, Tv};
/// # type Pairs = Tv<L!(128:2@1), L!(2:1@1)>;
/// #[kernel(threads = 64)] // the layout has 128
/// unsafe fn ones(to: GlobalMut<f32>) {
///     let to = unsafe { Tensor::new(to, RowMajor::new([1, 256], 0)) };
///     to.partition::<Pairs>(thread_idx()).store_with(|_| 1.0);
/// }
/// # fn main() { ones.body(); }
/// ```
pub struct ThreadIdx<G = AnyThreads> {
    index: u32,
    group: PhantomData<G>,
}

/// The running thread's index in its block. Blocks are one-dimensional.
///
/// In the body of a `#[kernel]`, the macro adds how many threads the block has, so that the result is a
/// `ThreadIdx<Threads<N>>`. Elsewhere, [`ThreadIdx::of_block`] says it.
#[inline(always)]
pub fn thread_idx() -> ThreadIdx {
    ThreadIdx::new(imp::thread_idx())
}

impl<G> ThreadIdx<G> {
    #[inline(always)]
    const fn new(index: u32) -> Self {
        Self {
            index,
            group: PhantomData,
        }
    }

    /// The index as a number, for code below layouts.
    #[inline(always)]
    pub const fn get(self) -> u32 {
        self.index
    }

    /// Whether the index is 0, for work that one of them does.
    #[inline(always)]
    pub const fn is_first(self) -> bool {
        self.index == 0
    }

    /// Whether the index is below `count`, for work that the first ones do.
    #[inline(always)]
    pub const fn is_below(self, count: u32) -> bool {
        self.index < count
    }

    /// Whether the index is `number`, for work that one of them does, and not the first.
    #[inline(always)]
    pub const fn is(self, number: u32) -> bool {
        self.index == number
    }

    /// The index among the first threads alone, if the thread is one of them: for work that is laid out over fewer
    /// threads than the block has.
    ///
    /// ```no_run
    /// use cutlet_device::{SharedMemory, ThreadsOf, thread_idx};
    /// use cutlet_layout_core::{Fixed, L, Tensor, Tv};
    ///
    /// type OneEach = Tv<L!(32:1@0), L!(1:1@0)>;
    ///
    /// let memory = SharedMemory::new().take::<u32>(32);
    /// // SAFETY: there are 32 elements.
    /// let sums = unsafe { Tensor::new(memory, Fixed::<L!(32:1)>::new()) };
    /// if let Some(thread) = thread_idx().among_first::<ThreadsOf<OneEach>>() {
    ///     sums.partition::<OneEach>(thread).store_with(|_| 0);
    /// }
    /// ```
    #[inline(always)]
    pub const fn among_first<H: ThreadGroup>(self) -> Option<ThreadIdx<H>> {
        match self.index < H::THREADS {
            true => Some(ThreadIdx::new(self.index)),
            false => None,
        }
    }
}

impl ThreadIdx {
    /// The index in a block of as many threads as `G` says, for functions that are called by kernels of this number of
    /// threads alone.
    ///
    /// # Panics
    /// On the CPU, if the block has another number of threads. On a GPU nothing checks it.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn of_block<G: ThreadGroup>(self) -> ThreadIdx<G> {
        #[cfg(not(target_arch = "nvptx64"))]
        {
            let [x, y, z] = imp::block_dim();
            let threads = x * y * z;
            assert!(
                threads == G::THREADS,
                "thread_idx().of_block: the block has {threads} threads, and the code names {}: name those of the \
                 kernel",
                G::THREADS
            );
        }
        ThreadIdx::new(self.index)
    }
}

impl<G: ThreadGroup> ThreadIdx<G> {
    /// The index as that of a thread of another group of as many threads: of a kernel's configuration, for instance.
    ///
    /// ```
    /// use cutlet_device::{ThreadGroup, ThreadIdx, Threads};
    ///
    /// #[derive(Clone, Copy)]
    /// struct Config;
    /// impl ThreadGroup for Config {
    ///     const THREADS: u32 = 64;
    /// }
    ///
    /// fn of_config(thread: ThreadIdx<Threads<64>>) -> ThreadIdx<Config> {
    ///     thread.of_group()
    /// }
    /// ```
    ///
    /// A group of another number of threads does not compile.
    #[inline(always)]
    pub const fn of_group<H: ThreadGroup>(self) -> ThreadIdx<H> {
        const {
            assert!(
                G::THREADS == H::THREADS,
                "of_group: the groups have different numbers of threads: make the kernel's `threads` of its \
                 configuration"
            )
        }
        ThreadIdx::new(self.index)
    }
}

impl<G: ThreadGroup> ThreadIndex for ThreadIdx<G> {
    const THREADS: Option<u32> = Some(G::THREADS);

    #[inline(always)]
    fn index(self) -> u32 {
        self.index
    }
}

impl<G> Clone for ThreadIdx<G> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}

impl<G> Copy for ThreadIdx<G> {}

impl<G> PartialEq for ThreadIdx<G> {
    #[inline(always)]
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index
    }
}

impl<G> Eq for ThreadIdx<G> {}

impl<G> fmt::Debug for ThreadIdx<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ThreadIdx").field(&self.index).finish()
    }
}
