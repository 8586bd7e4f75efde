//! The home of memory: its device, and the stream that the memory is bound to, if any.

use crate::{Device, Error, Result, Stream};

/// The device that memory is on, and the streams that may use it.
#[derive(Clone, Copy)]
pub(crate) enum Home<'a> {
    /// Every stream of the device may use the memory.
    Device(&'a Device),
    /// Only this stream may: the memory is allocated and freed in the order of its work.
    Stream(&'a Stream),
}

impl<'a> Home<'a> {
    pub(crate) fn device(self) -> &'a Device {
        match self {
            Home::Device(device) => device,
            Home::Stream(stream) => stream.device(),
        }
    }

    /// The stream that the memory is bound to.
    pub(crate) fn stream(self) -> Option<&'a Stream> {
        match self {
            Home::Device(_) => None,
            Home::Stream(stream) => Some(stream),
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
