//! Numbers of rows, as tensors of any integer type that has kernels.

use candle_core::backend::BackendStorage;
use candle_core::{DType, Error, Result};
use cutlet::{Stream, View};

use crate::operation::Operand;
use crate::place::{Elements, Place};

/// Numbers of rows that are borrowed for work in a stream.
pub(crate) enum Ids<'a, P: Place> {
    U32(P::Elements<'a, u32>),
    I32(P::Elements<'a, i32>),
    I64(P::Elements<'a, i64>),
}

/// Numbers of rows as kernels take them.
pub(crate) enum IdView<'a> {
    Narrow(View<'a, i32>),
    Wide(View<'a, i64>),
}

impl<'a, P: Place> Ids<'a, P> {
    /// The elements of a contiguous tensor.
    pub fn read(stream: &'a Stream, ids: Operand<'a, P>, operation: &'static str) -> Result<Self> {
        Ok(match ids.storage.dtype() {
            DType::U32 => Ids::U32(P::read(stream, ids.storage)?),
            DType::I32 => Ids::I32(P::read(stream, ids.storage)?),
            DType::I64 => Ids::I64(P::read(stream, ids.storage)?),
            found => {
                return Err(Error::Msg(format!(
                    "{operation}: the ids are {found:?}; give u32, i32 or i64"
                ))
                .bt());
            }
        })
    }

    /// `count` of them from the element `first` on. A `u32` of 2³¹ or more becomes negative, which is no row either.
    pub fn view(&self, first: usize, count: usize) -> cutlet::Result<IdView<'_>> {
        let range = first..first + count;
        Ok(match self {
            Ids::U32(it) => IdView::Narrow(it.view().slice(range)?.cast()?),
            Ids::I32(it) => IdView::Narrow(it.view().slice(range)?),
            Ids::I64(it) => IdView::Wide(it.view().slice(range)?),
        })
    }
}

/// What a bad id is called in an error of candle's.
pub(crate) fn bad_id(operation: &str, of: &str, error: cutlet::Error) -> Error {
    match error {
        cutlet::Error::IndexMissed { position, .. } => Error::Msg(format!(
            "{operation}: the id at position {position} is none of {of}; give ids below their number"
        ))
        .bt(),
        error => Error::wrap(error),
    }
}

/// Calls a function with numbers of rows of either width.
macro_rules! with_ids {
    ($view:expr, |$ids:ident| $call:expr) => {
        match $view {
            $crate::ids::IdView::Narrow($ids) => $call,
            $crate::ids::IdView::Wide($ids) => $call,
        }
    };
}
pub(crate) use with_ids;
