//! Reads of shared memory that nothing has written.
//!
//! A GPU reads there what an earlier block left. Here the bytes are NaN in every float format, and the launch fails. It
//! does not for `wgmma`: a kernel may leave rows of an operand unwritten that lie beyond the matrix, and store no sum of
//! theirs. Such sums are NaN. A load whose value is not used does not count either ([`MemoryAccess::Unordered`]).
//!
//! It fails when the cluster has ended, or when another error ends it. Until then another thread or a copy may write the
//! bytes without a barrier in between. The message of that error names both lines.

use std::panic::Location;

use crate::context::{Block, Thread};
use crate::panic::PanicReport;
use crate::races;
use crate::shadow::MemoryAccess;

/// The first such read by a thread of a block.
pub(crate) struct UnwrittenRead {
    /// Index of the thread in its block.
    pub(crate) thread: u32,
    pub(crate) report: PanicReport,
}

/// Notes that the running thread reads bytes of the shared memory of a block of its cluster. `what` reads them, in a
/// message, on behalf of a line.
#[inline]
pub(crate) fn note_read(
    thread: &Thread,
    block: &Block,
    (offset, bytes): (u32, u32),
    what: Reader,
    line: &'static Location<'static>,
) {
    if !block.shared.written().all(offset as usize, bytes as usize) {
        note_unwritten(thread, block, (offset, bytes), what, line);
    }
}

/// What reads shared memory.
#[derive(Clone, Copy)]
pub(crate) enum Reader {
    /// An access of a thread.
    Access(MemoryAccess),
    /// A copy to global memory.
    TmaStore,
}

#[cold]
fn note_unwritten(
    thread: &Thread,
    block: &Block,
    (offset, bytes): (u32, u32),
    what: Reader,
    line: &'static Location<'static>,
) {
    let unwritten = &thread.block().unwritten_read;
    let first = unwritten.take().unwrap_or_else(|| {
        let written = block.shared.written();
        let first = written.first_unwritten(offset as usize, bytes as usize);
        // Within shared memory, whose size is a u32.
        let first = first.map_or(offset, |first| first as u32);
        let place = races::shared_place(thread, block, first);
        let reserved = match block.shared.reservation_of(first) {
            Some(reserved) => format!(
                "; it is byte {} of the {} bytes that the kernel reserves at {}",
                first - reserved.start,
                reserved.end - reserved.start,
                reserved.line
            ),
            None => String::new(),
        };
        let what = match what {
            Reader::Access(kind) => format!("{} of {bytes} bytes", kind.name()),
            Reader::TmaStore => "a TMA store".to_owned(),
        };
        let message = format!(
            "{what} reads {place}, which nothing has written: write it first, and if another thread writes it, meet \
             that thread at a barrier before the load{reserved}"
        );
        UnwrittenRead {
            thread: thread.linear,
            report: PanicReport::at(line, &message),
        }
    });
    unwritten.set(Some(first));
}

/// To be called when accesses to shared memory are found that nothing orders. That is why a read came before its store.
pub(crate) fn forget_reads(thread: &Thread) {
    for block in thread.block().all_of_cluster() {
        block.unwritten_read.take();
    }
}
