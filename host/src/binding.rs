//! What memory is bound to: its device, and a stream's work, if any.

use std::sync::Arc;

use crate::allocation::Allocation;
use crate::order::{Access, Tracked};
use crate::{Device, Error, Result, Stream};

/// The device that memory is on, and the work that may use it.
#[derive(Clone, Copy)]
pub(crate) enum Binding<'a> {
    /// Work of every stream of the device, in an order.
    Device {
        device: &'a Device,
        /// The memory, if a buffer owns it.
        memory: Option<&'a Arc<Allocation>>,
        uses: Tracked<'a>,
    },
    /// Work of this stream: the memory is allocated and freed in the order of the stream's work.
    Stream {
        stream: &'a Stream,
        /// Whether the stream owns the memory, and with it the graph for which it records.
        is_own: bool,
    },
}

impl<'a> Binding<'a> {
    pub(crate) fn device(self) -> &'a Device {
        match self {
            Binding::Device { device, .. } => device,
            Binding::Stream { stream, .. } => stream.device(),
        }
    }

    /// The same, with [relaxed](crate::View::relaxed) uses.
    pub(crate) fn relaxed(self) -> Self {
        match self {
            Binding::Device {
                device,
                memory,
                uses,
            } => Binding::Device {
                device,
                memory,
                uses: uses.relaxed(),
            },
            Binding::Stream { .. } => self,
        }
    }

    /// Returns an error unless work in `user` may use the memory, which is `what` in words.
    pub(crate) fn expect(self, user: &Stream, what: impl FnOnce() -> String) -> Result<()> {
        let expected = match self {
            Binding::Device { device, .. } => device.expect(user.device(), what),
            Binding::Stream { stream, .. } if stream == user => Ok(()),
            Binding::Stream { stream, .. } => {
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

    /// Notes an access, which is about to be enqueued in `user`. The memory is freed after it, and a graph that is being
    /// recorded keeps the memory. In builds with debug assertions, it is an error if nothing orders the access after a conflicting one in another
    /// stream.
    #[cfg_attr(debug_assertions, track_caller)]
    pub(crate) fn note(
        self,
        user: &Stream,
        access: Access,
        what: impl Fn() -> String,
    ) -> Result<()> {
        match self {
            Binding::Device { memory, uses, .. } => {
                uses.note(user, access, &what)?;
                user.uses_memory(memory, what)
            }
            Binding::Stream { is_own: true, .. } => Ok(()),
            Binding::Stream { is_own: false, .. } => user.uses_memory(None, what),
        }
    }
}
