//! Devices, streams, buffers and typed kernel launches, on an NVIDIA GPU or on the CPU.
//!
//! A program chooses a [`Device`], makes a [`Stream`] on it, fills [`Buffer`]s, loads kernels into
//! [`Function`]s and launches them. The same program runs on a GPU and, with the same kernel
//! bodies, on the CPU; [`Device::auto`] takes what there is and says why. Building and starting it
//! needs no CUDA: the driver is looked for at run time.
//!
//! ```
//! # fn main() -> cutlet_host::Result<()> {
//! use cutlet_host::Device;
//!
//! let device = Device::auto();
//! let stream = device.stream()?;
//! let x = stream.upload(&[1.0f32, 2.0, 3.0])?;
//! let mut y = stream.zeroed::<f32>(2)?;
//! stream.copy(x.slice(1..)?, &mut y)?;
//! assert_eq!(stream.download(&y)?, [2.0, 3.0]);
//! # Ok(()) }
//! ```
//!
//! - **Order**: work in one stream runs in order, work in two does not unless an [`Event`] says so.
//!   On the CPU everything is done when its call returns.
//! - **Safety**: launching is `unsafe`, because a kernel can write anywhere; everything else is not.
//! - **Several GPUs**: buffers, streams, functions, events and graphs belong to one device each, and
//!   mixing devices in a call is an [`Error::WrongDevice`].
//! - **Programs that exist**: streams and buffers of cudarc ([`Stream::from_cudarc`], [`Borrowed`])
//!   and bare handles and addresses ([`Stream::from_raw`], [`View::from_raw`]) are used in place.
//!   The feature `cuda-bindings`, on by default, picks the version of cudarc's driver bindings
//!   (drivers from CUDA 12.0 on work whichever it is); a program with another version in its own
//!   cudarc turns it off.

mod args;
mod borrowed;
mod buffer;
mod copy;
mod cpu_queue;
mod device;
mod driver;
mod error;
mod event;
mod function;
mod gpu;
mod graph;
mod grid;
mod launch;
mod limits;
mod lock;
mod module;
mod pinned;
mod resident;
mod scratch;
mod scratch_pool;
mod stream;
mod tensor_map;
mod topology;

pub use args::{ArgSite, KernelArg, LaunchArgs};
pub use borrowed::{Borrowed, BorrowedMut};
pub use buffer::{Buffer, IntoView, IntoViewMut, View, ViewMut};
pub use device::{Backend, Description, Device};
pub use driver::{driver_version, gpu_count};
pub use error::{Error, Result};
pub use event::Event;
pub use function::{Function, Resources};
pub use graph::Graph;
pub use grid::Grid;
pub use launch::LaunchConfig;
pub use limits::Limits;
pub use pinned::PinnedBuffer;
pub use scratch::Scratch;
pub use stream::Stream;
pub use tensor_map::{L2Promotion, TensorMapElement, TensorMapSpec};
