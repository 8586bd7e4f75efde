//! The home of memory: its device, and the stream that the memory is bound to, if any.

use crate::{Device, Error, Result, Stream};

/// The device that memory is on, and the work that may use it.
#[derive(Clone, Copy)]
pub(crate) enum Home<'a> {
    /// Work of every stream of the device.
    Device(&'a Device),
    /// Work of this stream: the memory is allocated and freed in the order of the stream's work.
    Stream(&'a Stream),
}

impl<'a> Home<'a> {
    pub(crate) fn device(self) -> &'a Device {
        match self {
            Home::Device(device) => device,
            Home::Stream(stream) => stream.device(),
        }
    }

    /// Returns an error unless work in `user` may use the memory, which is `what` in words.
    pub(crate) fn expect(self, user: &Stream, what: impl FnOnce() -> String) -> Result<()> {
        match self {
            Home::Device(device) => device.expect(user.device(), what),
            Home::Stream(stream) if stream == user => Ok(()),
            Home::Stream(stream) => {
                let what = what();
                stream.device().expect(user.device(), || what.clone())?;
                Err(Error::WrongStream { what })
            }
        }
    }
}
