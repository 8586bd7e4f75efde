//! Devices, streams, buffers and typed kernel launches, on an NVIDIA GPU or on the CPU.
//!
//! A program chooses a [`Device`], makes a [`Stream`] on it, fills [`Buffer`]s, loads kernels as
//! [`Function`]s and launches them. The same program runs on a GPU and, with the same kernel
//! bodies, on the CPU. [`Device::auto`] takes the GPU if there is one, and can say why it took what
//! it did. Building and starting the program need no CUDA: the driver is loaded at run time.
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
//! - **Order**: work in one stream runs in order. Work in different streams is not ordered unless an
//!   [`Event`] or [`Stream::wait_for`] orders it, or the host waits. Builds with debug assertions refuse work on a buffer
//!   that lacks an order: [`Error::Unordered`]. On the CPU, work is done when its call returns.
//! - **Safety**: launches are `unsafe`, because on a GPU a kernel can write anywhere. The CPU backend
//!   checks every access, and finds races: see [`cpu`]. So are asynchronous
//!   copies and raw handles, whose memory the compiler cannot follow.
//! - **Several GPUs**: a buffer, stream, function, event or graph belongs to one device. A call that
//!   mixes devices returns [`Error::WrongDevice`].
//! - **Autotuning**: an [`Autotuner`] checks and measures several [`Candidates`] for a problem, and remembers the fastest.
//! - **Existing programs**: streams and buffers of cudarc ([`Stream::from_cudarc`], [`Borrowed`])
//!   and raw handles and addresses ([`Stream::from_raw`], [`View::from_raw`]) are used in place.
//!   The feature `dlpack` has a module of this name for tensors of other libraries.
//!   The feature `cuda-bindings`, on by default, selects the version of cudarc's driver bindings.
//!   A program whose own cudarc selects another version turns the feature off. With any version,
//!   drivers from CUDA 12.0 on work.

#[cfg(debug_assertions)]
mod access;
mod allocation;
mod args;
mod autotune;
mod binding;
mod borrowed;
mod buffer;
mod capture;
mod copy;
pub mod cpu;
mod cpu_queue;
mod device;
#[cfg(feature = "dlpack")]
pub mod dlpack;
mod driver;
mod error;
mod event;
mod foreign_capture;
mod function;
mod gpu;
mod gpu_event;
mod gpu_stream;
mod graph;
mod grid;
mod idle_blocks;
mod launch;
mod limits;
mod lock;
#[doc(hidden)]
pub mod measure;
mod memory_pool;
mod module;
#[cfg(not(debug_assertions))]
#[path = "no_order.rs"]
mod order;
#[cfg(debug_assertions)]
mod order;
mod owned_graph;
mod pinned;
mod pooled;
mod ptx_text;
mod scratch;
mod stream;
mod stream_memory;
mod stream_state;
mod tensor_map;
mod topology;
#[doc(hidden)]
pub mod tuning_file;
mod user_stream;

pub use args::{ArgSite, KernelArg, LaunchArgs};
pub use autotune::{Autotuner, Candidates, Ranked, Tuned};
pub use borrowed::{Borrowed, BorrowedMut};
pub use buffer::{Buffer, IntoView, IntoViewMut, View, ViewMut};
pub use capture::Fork;
pub use device::{Backend, Description, Device};
pub use driver::{driver_version, gpu_count};
pub use error::{Error, Result};
pub use event::Event;
pub use function::{Function, Resources};
pub use graph::Graph;
pub use grid::Grid;
pub use launch::LaunchConfig;
pub use limits::Limits;
pub use measure::Spread;
pub use owned_graph::OwnedGraph;
pub use pinned::PinnedBuffer;
pub use ptx_text::ptx_text;
pub use scratch::Scratch;
pub use stream::Stream;
pub use tensor_map::{L2Promotion, TensorMapElement, TensorMapSpec};
