//! What memory is bound to: its device, and a stream's work, if any.

use crate::order::{Access, Tracked};
use crate::{Device, Error, Result, Stream};

/// The device that memory is on, and the work that may use it.
#[derive(Clone, Copy)]
pub(crate) enum Binding<'a> {
    /// Work of every stream of the device, in an order.
    Device(&'a Device, Tracked<'a>),
    /// Work of this stream: the memory is allocated and freed in the order of the stream's work.
    Stream(&'a Stream),
}

impl<'a> Binding<'a> {
    pub(crate) fn device(self) -> &'a Device {
        match self {
            Binding::Device(device, _) => device,
            Binding::Stream(stream) => stream.device(),
        }
    }

    /// The same, with [relaxed](crate::View::relaxed) uses.
    pub(crate) fn relaxed(self) -> Self {
        match self {
            Binding::Device(device, uses) => Binding::Device(device, uses.relaxed()),
            Binding::Stream(_) => self,
        }
    }

    /// Returns an error unless work in `user` may use the memory, which is `what` in words.
    pub(crate) fn expect(self, user: &Stream, what: impl FnOnce() -> String) -> Result<()> {
        let expected = match self {
            Binding::Device(device, _) => device.expect(user.device(), what),
            Binding::Stream(stream) if stream == user => Ok(()),
            Binding::Stream(stream) => {
                let what = what();
                let device = stream.device();
                device
                    .expect(user.device(), || what.clone())
                    .and(Err(Error::WrongStream { what }))
            }
        };
        if expected.is_err() {
            user.order().call_is_refused();
        }
        expected
    }

    /// Notes an access, which is about to be enqueued in `user`. In builds with debug assertions, it is an error if
    /// nothing orders it after a conflicting one in another stream.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn note(
        self,
        user: &Stream,
        access: Access,
        what: impl FnOnce() -> String,
    ) -> Result<()> {
        match self {
            Binding::Device(_, uses) => uses.note(user, access, what),
            Binding::Stream(_) => Ok(()),
        }
    }
}
