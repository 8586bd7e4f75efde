//! Resident memory: words that stay with a stream, in which its launches leave something for its
//! later ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Buffer, Result, Stream};

/// The words that a stream keeps, by what they are for.
#[derive(Default)]
pub(crate) struct Resident(Mutex<HashMap<[u32; 3], Arc<Buffer<u32>>>>);

impl Stream {
    /// Words on the device that stay with the stream and its clones: those that `make` gives at the
    /// first call with this key, and afterwards whatever kernels have made of them. `None` if `make`
    /// gives none.
    ///
    /// Launches of this stream run one after the other, so that each can rely on what the one before
    /// left. `None`, too, where that is not sure: while the stream is captured, because the graph may be
    /// replayed beside it, and for a stream that was made elsewhere, which another one may be a handle
    /// of.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// let stream = cutlet_host::Device::auto().stream()?;
    /// let words = stream.resident([7, 0, 0], || Ok(Some(vec![1, 2, 3])))?.expect("of our own");
    /// assert_eq!(stream.download(&*words)?, [1, 2, 3]);
    /// let same = stream.resident([7, 0, 0], || unreachable!())?.expect("of our own");
    /// assert_eq!(same.view().address(), words.view().address());
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// Those of `make`, [`Error::OutOfMemory`](crate::Error::OutOfMemory),
    /// [`Error::Driver`](crate::Error::Driver).
    pub fn resident(
        &self,
        key: [u32; 3],
        make: impl FnOnce() -> Result<Option<Vec<u32>>>,
    ) -> Result<Option<Arc<Buffer<u32>>>> {
        let Some(Resident(kept)) = self.kept() else {
            return Ok(None);
        };
        if self.is_capturing()? {
            return Ok(None);
        }
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(words) = kept.get(&key) {
            return Ok(Some(words.clone()));
        }
        let Some(words) = make()? else {
            return Ok(None);
        };
        let words = Arc::new(self.upload(&words)?);
        kept.insert(key, words.clone());
        Ok(Some(words))
    }
}
