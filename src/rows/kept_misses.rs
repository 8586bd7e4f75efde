//! The reports of bad indices that a stream keeps, for calls that enqueue and have no report of their own.

use std::sync::{Mutex, MutexGuard, PoisonError};

use cutlet_host::Stream;

use super::Misses;
use crate::{Error, Result};

/// A stream's reports that no call has at the moment.
#[derive(Default)]
struct KeptMisses(Mutex<Vec<Misses>>);

impl KeptMisses {
    fn lock(&self) -> MutexGuard<'_, Vec<Misses>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Enqueues an operation whose report the stream keeps: `enqueue` gets the report, and returns it. A thread that enqueues
/// at the same time gets another one.
///
/// # Errors
/// Those of the operation. If a library captures the stream, whose graph would write to a report that it does not own.
pub(crate) fn with_kept_misses(
    stream: &Stream,
    operation: &'static str,
    outcome: &'static str,
    enqueue: impl FnOnce(Misses) -> (Misses, Result<()>),
) -> Result<()> {
    if stream.is_captured_elsewhere()? {
        return Err(Error::Host(cutlet_host::Error::Capture {
            found: format!(
                "a library captures it, and the stream keeps the report of bad indices of {operation}"
            ),
            fix: "use the type that owns its report, and that outlives the graph: `Gather` for `gather`, and so on",
        }));
    }
    let kept = stream.state::<KeptMisses>();
    let taken = {
        let mut kept = kept.lock();
        let of_operation = kept.iter().position(|it| it.operation() == operation);
        of_operation.map(|at| kept.swap_remove(at))
    };
    let misses = match taken {
        Some(misses) => misses,
        None => Misses::in_stream(stream, operation, outcome)?,
    };
    let (misses, enqueued) = enqueue(misses);
    kept.lock().push(misses);
    enqueued
}

/// Waits for the stream's work, and reports an index that was not a row of its table in a call that enqueued: of
/// [`gather`](fn@crate::gather), [`scatter`](fn@crate::scatter), [`scatter_add`](fn@crate::scatter_add),
/// [`embedding_bag`](fn@crate::embedding_bag) and [`take_along_dim`](fn@crate::take_along_dim) in this stream.
///
/// Of several such indices of an operation since the last check, it reports one with the lowest position. If there are
/// some of several operations, it reports those of one of them, and the next check those of another.
///
/// # Errors
/// [`Error::IndexMissed`] if there was such an index; an error if earlier work failed, or the stream is being captured.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Error, check_indices, gather};
///
/// let stream = Device::auto().stream()?;
/// let table = DeviceTensor::upload(&stream, &[0.0f32, 0.5, 1.0, 1.5], [2, 2])?;
/// let indices = stream.upload(&[1i32, 2])?;
/// let mut rows = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// gather(&stream, &table, &indices, &mut rows)?;
/// assert!(matches!(check_indices(&stream), Err(Error::IndexMissed { position: 1, .. })));
/// check_indices(&stream)?;
/// assert_eq!(rows.download(&stream)?, [1.0, 1.5, 0.0, 0.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn check_indices(stream: &Stream) -> Result<()> {
    stream.synchronize()?;
    let kept = stream.state::<KeptMisses>();
    let mut kept = kept.lock();
    kept.iter_mut().try_for_each(|misses| misses.check(stream))
}
