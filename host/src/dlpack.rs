//! Tensors of other libraries by [DLPack](https://dmlc.github.io/dlpack/latest/), without a copy.
//!
//! DLPack is the C interface by which PyTorch, JAX, CuPy, NumPy and others pass tensors to one another: a description
//! (device, element type, shape, strides, address) with a function that gives the tensor back to its owner. The crate
//! [`dlpark`] has its types, for the versioned interface and for the older one. [`Imported`] and [`ImportedMut`] are
//! tensors of another library, for reading and for writing. [`Stream::export_dlpack`] makes a tensor of a [`Buffer`].
//!
//! A pointer from C becomes a tensor by `dlpark::Managed::from_raw`, and a tensor becomes a pointer by `into_raw`. So do
//! tensors of a program that has dlpark in another version.
//!
//! ```
//! use cutlet_host::Device;
//! use cutlet_host::dlpack::{Imported, dlpark::versioned};
//!
//! # fn main() -> cutlet_host::Result<()> {
//! let stream = Device::auto().stream()?;
//! let buffer = stream.upload(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])?;
//! // What another library would get, or would have made.
//! let tensor: versioned::Dlpack = stream.export_dlpack(buffer, &[2, 3], None)?;
//!
//! // SAFETY: the tensor is a buffer of this device, which nothing else uses.
//! let tensor = unsafe { Imported::new(&stream, tensor)? };
//! assert_eq!((tensor.shape(), tensor.strides()), ([2, 3].as_slice(), [3, 1].as_slice()));
//! assert_eq!(stream.download(tensor.view::<f32>()?)?, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
//! # Ok(()) }
//! ```
//!
//! # Who waits for whom
//!
//! On the CPU, nobody: work is done when its call returns. On a GPU, the *consumer* of a tensor says in which stream it
//! will use it, by an integer. The *producer* makes that stream wait for its own work.
//!
//! | cutlet is | who waits | how |
//! |---|---|---|
//! | the consumer, before its first use | cutlet's stream waits for the producer's | pass [`Stream::dlpack_stream`] to the producer: in Python, `x.__dlpack__(stream=…)` |
//! | the consumer, after its last use | the host waits for cutlet's stream | dropping an [`Imported`] does. [`freed_in_order`](Imported::freed_in_order) avoids it |
//! | the producer, and the consumer names a stream | the consumer's stream waits for cutlet's | [`Stream::export_dlpack_to`] |
//! | the producer, and the consumer names none | the host waits for cutlet's stream | [`Stream::export_dlpack`] |
//!
//! DLPack says nothing about streams when a tensor is given back. An owner such as PyTorch uses the memory again at once,
//! in its own stream. So an imported tensor belongs to one stream, and waits for it before it is given back.
//!
//! [`Buffer`]: crate::Buffer
//! [`Stream::dlpack_stream`]: crate::Stream::dlpack_stream
//! [`Stream::export_dlpack`]: crate::Stream::export_dlpack
//! [`Stream::export_dlpack_to`]: crate::Stream::export_dlpack_to

mod element;
mod export;
mod extents;
mod import;

pub use dlpark;
pub use element::Element;
pub use import::{Imported, ImportedMut};
