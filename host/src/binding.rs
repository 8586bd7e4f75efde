//! What memory is bound to: its device, and a stream's work, if any.

use crate::{Device, Error, Result, Stream};

/// The device that memory is on, and the work that may use it.
#[derive(Clone, Copy)]
pub(crate) enum Binding<'a> {
    /// Work of every stream of the device.
    Device(&'a Device),
    /// Work of this stream: the memory is allocated and freed in the order of the stream's work.
    Stream(&'a Stream),
}

impl<'a> Binding<'a> {
    pub(crate) fn device(self) -> &'a Device {
        match self {
            Binding::Device(device) => device,
            Binding::Stream(stream) => stream.device(),
        }
    }

    /// Returns an error unless work in `user` may use the memory, which is `what` in words.
    pub(crate) fn expect(self, user: &Stream, what: impl FnOnce() -> String) -> Result<()> {
        match self {
            Binding::Device(device) => device.expect(user.device(), what),
            Binding::Stream(stream) if stream == user => Ok(()),
            Binding::Stream(stream) => {
                let what = what();
                stream.device().expect(user.device(), || what.clone())?;
                Err(Error::WrongStream { what })
            }
        }
    }
}
