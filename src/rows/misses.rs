//! Misses: the first index of some operations that was not a row of its table.

use cutlet_device::GlobalMut;
use cutlet_host::{Buffer, Device, IntoView, KernelArg, Stream, View, ViewMut};

use super::Index;
use crate::{Error, Result};

/// The report that kernels write when they meet an index that is no row of the table.
#[derive(Debug)]
pub(crate) struct Misses {
    operation: &'static str,
    /// What became of the row.
    outcome: &'static str,
    /// The first position of such an index; `u64::MAX` if there is none.
    first: Buffer<u64>,
}

/// Where a launch reports the first index that was not a row of its table.
pub(crate) trait Report {
    /// The report, for a launch. It is written atomically.
    fn of_launch(&mut self) -> impl KernelArg<GlobalMut<u64>>;
}

impl Report for Misses {
    fn of_launch(&mut self) -> impl KernelArg<GlobalMut<u64>> {
        self.report()
    }
}

impl Misses {
    /// No misses, of operations of this name in any stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn new(device: &Device, operation: &'static str, outcome: &'static str) -> Result<Self> {
        let stream = device.stream()?;
        let misses = Misses::in_stream(&stream, operation, outcome)?;
        // Nothing orders this stream and those of the operations.
        stream.synchronize()?;
        Ok(misses)
    }

    /// No misses, of operations of this name in this stream.
    ///
    /// # Errors
    /// If the device is out of memory.
    pub fn in_stream(
        stream: &Stream,
        operation: &'static str,
        outcome: &'static str,
    ) -> Result<Self> {
        Ok(Misses {
            operation,
            outcome,
            first: stream.filled(1, 0xff)?,
        })
    }

    /// The operation's name.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// The report, for a launch. Operations in several streams may write it at the same time, as they do it atomically.
    pub fn report(&mut self) -> ViewMut<'_, u64> {
        self.first.view_mut().relaxed()
    }

    /// The report, for launches that get its address.
    pub fn report_view(&self) -> View<'_, u64> {
        self.first.view().relaxed()
    }

    /// Waits for the stream's operations, and returns the position of a bad index since the last time.
    ///
    /// # Errors
    /// If the device fails, or the stream is being captured.
    pub fn take(&mut self, stream: &Stream) -> Result<Option<u64>> {
        let position = stream.download(self.report_view())?[0];
        if position == u64::MAX {
            return Ok(None);
        }
        stream.fill_bytes(self.report(), 0xff)?;
        Ok(Some(position))
    }

    /// Waits for the stream's operations.
    ///
    /// # Errors
    /// [`Error::IndexMissed`] if there was a bad index since the last time.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        match self.take(stream)? {
            None => Ok(()),
            Some(position) => Err(Error::IndexMissed {
                operation: self.operation,
                position,
                outcome: self.outcome,
            }),
        }
    }

    /// Waits for the only operation since the last time, which had these indices.
    ///
    /// # Errors
    /// [`Error::IndexOutOfRange`] if there was a bad index.
    pub fn check_one<'a, X: Index>(
        &mut self,
        stream: &Stream,
        indices: impl IntoView<'a, Element = X>,
        table_rows: usize,
    ) -> Result<()> {
        let Some(position) = self.take(stream)? else {
            return Ok(());
        };
        let at = position as usize;
        let index = stream.download(indices.into_view().slice(at..=at)?)?;
        Err(Error::IndexOutOfRange {
            operation: self.operation,
            position,
            index: index[0].to_i64(),
            table_rows,
            outcome: self.outcome,
        })
    }
}

/// Returns an error if the stream is being captured, in which a call cannot wait.
pub(crate) fn expect_no_capture(stream: &Stream, doing: &'static str) -> Result<()> {
    match stream.is_capturing()? {
        true => Err(Error::Host(cutlet_host::Error::Capturing { doing })),
        false => Ok(()),
    }
}
