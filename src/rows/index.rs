//! Indices: the types that kernels take, and views of them.

use std::ops::Range;

use cutlet_device::DeviceData;
use cutlet_host::{Stream, View};
use cutlet_layout_core::RowIndex;

use crate::Result;
use crate::matrix::{addresses, in_stream};

/// An index type of [`gather`](fn@crate::gather) and its like: `i32` or `i64`.
pub trait Index: DeviceData + RowIndex + sealed::Sealed {}
impl Index for i32 {}
impl Index for i64 {}

mod sealed {
    /// Kernels read indices of 4 or 8 bytes.
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
}

/// A view of indices of either type, as kernels take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexView<'a> {
    words: View<'a, i32>,
    wide: bool,
}

impl<'a> IndexView<'a> {
    /// The view of these indices.
    pub fn new<X: Index>(indices: View<'a, X>) -> Result<Self> {
        Ok(IndexView {
            words: indices.cast()?,
            wide: size_of::<X>() > size_of::<i32>(),
        })
    }

    /// The words of the indices, for a kernel.
    pub fn words(&self) -> View<'a, i32> {
        self.words
    }

    /// Not 0 if an index has 64 bits, for a kernel.
    pub fn wide(&self) -> u32 {
        self.wide.into()
    }
}

/// Returns an error unless work in the stream may use the indices. Returns their addresses.
pub(crate) fn usable<X: Index>(
    operation: &'static str,
    stream: &Stream,
    indices: &View<'_, X>,
) -> Result<Range<u64>> {
    in_stream(operation, stream, "the indices", *indices)?;
    Ok(addresses(indices))
}
