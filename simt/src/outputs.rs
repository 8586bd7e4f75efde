//! What a launch writes of the memory that it is given to write.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::buffers::{Buffer, Buffers};
use crate::context::Thread;
use crate::live_memory::with_range;
use crate::report::UnwrittenReport;
use crate::written::Written;

/// Which bytes of each range of live memory a launch has written, by the range's start.
#[derive(Default)]
pub(crate) struct Outputs(Mutex<BTreeMap<usize, Output>>);

/// A range of memory that a launch writes to.
#[derive(Clone)]
struct Output {
    bytes: usize,
    written: Arc<Written>,
}

/// Notes that the running thread writes bytes of global memory, if its launch is reported.
#[inline]
pub(crate) fn note_write(thread: &Thread, address: usize, bytes: usize) {
    if let Some(outputs) = &thread.block().launch().outputs {
        outputs.add(address, bytes);
    }
}

impl Outputs {
    fn add(&self, address: usize, bytes: usize) {
        with_range(address, bytes, |range| {
            let output = self.of(range.start, range.bytes);
            output.written.set(address - range.start, bytes);
        });
    }

    /// The range of so many bytes at a start, made at the first write.
    fn of(&self, start: usize, bytes: usize) -> Output {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Output {
            bytes,
            written: Arc::new(Written::none(bytes)),
        };
        all.entry(start).or_insert_with(new).clone()
    }

    /// What the launch has left unwritten: elements of the arguments that it was given to write, and bytes of other
    /// memory of which it has written some.
    pub(crate) fn into_reports(self, buffers: Option<&Buffers>) -> Vec<UnwrittenReport> {
        let mut all = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut reports = Vec::new();
        for buffer in buffers.into_iter().flat_map(Buffers::outputs) {
            let name = buffers.map_or(String::new(), |buffers| buffers.name(buffer.argument));
            let found = with_range(buffer.start, buffer.bytes, |range| range.start);
            let output = found.and_then(|start| Some((start, all.get(&start)?.clone())));
            reports.extend(unwritten(name, buffer, output));
        }
        // The rest of a buffer of which an argument is a part was not to be written.
        for buffer in buffers.into_iter().flat_map(Buffers::all) {
            with_range(buffer.start, buffer.bytes, |range| all.remove(&range.start));
        }
        for (start, output) in all {
            let bytes = output.bytes;
            let whole = Buffer::of_bytes(start, bytes);
            let name = format!("memory of {bytes} bytes that is no argument");
            reports.extend(unwritten(name, &whole, Some((start, output))));
        }
        reports
    }
}

/// The elements of a buffer that were not written, if there are some. `output` is the range that has the buffer, with
/// its start, if some of it was written.
fn unwritten(
    memory: String,
    buffer: &Buffer,
    output: Option<(usize, Output)>,
) -> Option<UnwrittenReport> {
    let size = buffer.element_bytes;
    let is_written = |element: &usize| {
        output.as_ref().is_some_and(|(start, output)| {
            let offset = buffer.start + element * size - start;
            output.written.all(offset, size)
        })
    };
    let elements = buffer.bytes / size;
    let mut missing = (0..elements).filter(|element| !is_written(element));
    let first = missing.next()?;
    let count = 1 + missing.count();
    let run = (first..elements).take_while(|element| !is_written(element));
    Some(UnwrittenReport {
        memory,
        elements,
        unwritten: count,
        first: first..first + run.count(),
    })
}
