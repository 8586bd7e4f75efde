//! Engines: the memory behind a tensor's indices, from a plain pointer to a GPU's shared memory.

/// A line of a caller, or none.
#[cfg(not(target_arch = "nvptx64"))]
pub type Line = Option<&'static core::panic::Location<'static>>;

/// Memory that is read by element index.
pub trait Engine: Copy {
    /// The type of an element.
    type Element: Copy;

    /// The engine whose element 0 is this one's element `index`.
    fn offset(self, index: i64) -> Self;

    /// Says on behalf of which line the next accesses are made, for engines that report wrong ones. Returns the line
    /// before.
    #[cfg(not(target_arch = "nvptx64"))]
    #[inline(always)]
    fn attribute_to(self, _line: Line) -> Line {
        None
    }

    /// Reads element `index`.
    ///
    /// # Safety
    /// The element must exist and be initialised, and no other thread may write it at the same
    /// time.
    unsafe fn load(self, index: i64) -> Self::Element;

    /// Reads element `index` if `condition` holds.
    ///
    /// An engine implements it if it can do so without a branch, so that several such loads are under way at the same
    /// time.
    ///
    /// # Safety
    /// As [`load`](Self::load), if `condition` holds.
    #[inline(always)]
    unsafe fn load_if(self, index: i64, condition: bool) -> Option<Self::Element> {
        match condition {
            // SAFETY: as promised by the caller.
            true => Some(unsafe { self.load(index) }),
            false => None,
        }
    }

    /// Reads elements `index .. index + N` in one access.
    ///
    /// # Safety
    /// As [`load`](Self::load) for each element. The address must be a multiple of the size of all
    /// N.
    #[inline(always)]
    unsafe fn load_vector<const N: usize>(self, index: i64) -> [Self::Element; N] {
        // SAFETY: the caller promises that all N elements can be read.
        core::array::from_fn(|n| unsafe { self.load(index + n as i64) })
    }
}

/// Memory that is also written by element index.
pub trait EngineMut: Engine {
    /// Writes element `index`.
    ///
    /// # Safety
    /// The element must exist, and no other thread may access it at the same time.
    unsafe fn store(self, index: i64, value: Self::Element);

    /// Writes elements `index .. index + N` in one access.
    ///
    /// # Safety
    /// As [`store`](Self::store) for each element. The address must be a multiple of the size of
    /// all N.
    #[inline(always)]
    unsafe fn store_vector<const N: usize>(self, index: i64, values: [Self::Element; N]) {
        let mut n = 0;
        while n < N {
            // SAFETY: the caller promises that all N elements can be written.
            unsafe { self.store(index + n as i64, values[n]) };
            n += 1;
        }
    }
}

macro_rules! pointer_engine {
    ($pointer:ty) => {
        impl<T: Copy> Engine for $pointer {
            type Element = T;

            #[inline(always)]
            fn offset(self, index: i64) -> Self {
                self.wrapping_offset(index as isize)
            }

            #[inline(always)]
            unsafe fn load(self, index: i64) -> T {
                // SAFETY: the caller promises that the element can be read.
                unsafe { self.offset(index as isize).read() }
            }
        }
    };
}
pointer_engine!(*const T);
pointer_engine!(*mut T);

impl<T: Copy> EngineMut for *mut T {
    #[inline(always)]
    unsafe fn store(self, index: i64, value: T) {
        // SAFETY: the caller promises that the element can be written.
        unsafe { self.offset(index as isize).write(value) }
    }
}
