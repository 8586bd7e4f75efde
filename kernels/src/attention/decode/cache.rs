//! The cache: keys and values, which lie alike, and the table of their rows, which pages name.

use cutlet_device::cp_async::cp_async;
use cutlet_device::tiled::CopyInstruction;
use cutlet_device::{DeviceData, Global, Shared};
#[cfg(not(target_arch = "nvptx64"))]
use cutlet_layout_core::Line;
use cutlet_layout_core::{CopyWidth, Divide, Engine, Width};

use super::args::CacheArgs;

/// No row.
const NOWHERE: i64 = -1;

/// Keys and values in one kind of memory. They have the same layout, so that one index serves both.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeysAndValues<E> {
    /// The keys.
    pub keys: E,
    /// The values.
    pub values: E,
}

impl<E: Engine> Engine for KeysAndValues<E> {
    type Element = [E::Element; 2];

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self {
            keys: self.keys.offset(index),
            values: self.values.offset(index),
        }
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(self, index: i64) -> [E::Element; 2] {
        // SAFETY: as promised by the caller.
        unsafe { [self.keys.load(index), self.values.load(index)] }
    }
}

/// `cp.async` of eight elements of keys and of values.
#[derive(Clone, Copy, Debug)]
pub(super) struct CpAsyncBoth;

impl CopyWidth for CpAsyncBoth {
    type Width = Width<8>;
}

impl<T: DeviceData> CopyInstruction<KeysAndValues<Global<T>>, KeysAndValues<Shared<T>>>
    for CpAsyncBoth
{
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn copy(from: KeysAndValues<Global<T>>, to: KeysAndValues<Shared<T>>, count: u32) {
        // SAFETY: as promised by the caller.
        unsafe {
            cp_async::<T, 8>(to.keys, from.keys, count);
            cp_async::<T, 8>(to.values, from.values, count);
        }
    }
}

/// Where the rows of a sequence begin, in keys and in values, from some key on.
#[derive(Clone, Copy, Debug)]
pub struct CachedRows {
    cache: CacheArgs,
    sequence: u32,
    first: u32,
}

impl CachedRows {
    /// The rows of a sequence from key `first` on.
    #[inline(always)]
    pub(super) fn new(cache: CacheArgs, sequence: u32, first: i32) -> Self {
        Self {
            cache,
            sequence,
            first: first as u32,
        }
    }
}

impl Engine for CachedRows {
    type Element = i64;

    #[inline(always)]
    fn offset(self, index: i64) -> Self {
        Self {
            first: self.first + index as u32,
            ..self
        }
    }

    #[cfg(not(target_arch = "nvptx64"))]
    fn attribute_to(self, line: Line) -> Line {
        self.cache.table.attribute_to(line)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load(self, index: i64) -> i64 {
        // SAFETY: as promised by the caller.
        unsafe { self.load_if(index, true) }.unwrap_or(NOWHERE)
    }

    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    unsafe fn load_if(self, index: i64, condition: bool) -> Option<i64> {
        let cache = &self.cache;
        let (nth, row) = cache.page.div_rem(self.first + index as u32);
        let is_paged = cache.is_paged != 0;
        let place = i64::from(self.sequence) * cache.table_stride + i64::from(nth);
        // SAFETY: as promised by the caller. The launcher promises a page for each key of the longest sequence.
        let named = unsafe { cache.table.load_if(place, condition && is_paged) };
        let page = if is_paged {
            named
        } else {
            self.sequence as i32
        };
        let exists = condition && page >= 0 && page < cache.pages;
        let [of_page, of_row, _] = cache.strides;
        Some(match exists {
            true => i64::from(page) * of_page + i64::from(row) * of_row,
            false => NOWHERE,
        })
    }
}
