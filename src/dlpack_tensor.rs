//! Tensors that come from other libraries by DLPack.

use cutlet_host::dlpack::{Element, Imported, ImportedMut};
use cutlet_layout_core::{CAPACITY, IntTuple, Layout};

use crate::{Error, HostError, Result, Tensor, TensorMut};

impl<'a, T: Element> Tensor<'a, T> {
    /// A DLPack tensor, in its memory: its dimensions are the modes.
    ///
    /// # Errors
    /// - [`HostError::Dlpack`]: the elements are of another type.
    /// - [`Error::Tensor`]: it has no elements or no dimensions, or a negative stride.
    ///
    /// ```
    /// use cutlet::dlpack::{Imported, dlpark::versioned};
    /// use cutlet::{Device, DeviceTensor, Tensor, gemm};
    ///
    /// # fn main() -> cutlet::Result<()> {
    /// let stream = Device::auto().stream()?;
    /// let buffer = stream.upload(&[1.0f32, 2.0, 3.0, 4.0])?;
    /// let tensor: versioned::Dlpack = stream.export_dlpack(buffer, &[2, 2], None)?;
    ///
    /// // SAFETY: the tensor is a buffer of this device, which nothing else uses.
    /// let tensor = unsafe { Imported::new(&stream, tensor)? };
    /// let a = Tensor::<f32>::from_dlpack(&tensor)?;
    /// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
    /// gemm(&stream, 1.0, a, a.transpose()?, 0.0, &mut c)?;
    /// assert_eq!(c.download(&stream)?, [5.0, 11.0, 11.0, 25.0]);
    /// # Ok(()) }
    /// ```
    pub fn from_dlpack(tensor: &'a Imported<'_>) -> Result<Self> {
        let layout = layout_of(tensor)?;
        // SAFETY: the view becomes a tensor's, which nobody gets back. No operation on a tensor leads to elements that
        // it does not have, and kernels read its elements alone.
        Tensor::new(unsafe { tensor.span::<T>()? }, layout)
    }
}

impl<'a, T: Element> TensorMut<'a, T> {
    /// A DLPack tensor, in its memory; see [`Tensor::from_dlpack`].
    ///
    /// # Errors
    /// As [`Tensor::from_dlpack`], and if an element has several coordinates.
    pub fn from_dlpack(tensor: &'a mut ImportedMut<'_>) -> Result<Self> {
        let layout = layout_of(tensor)?;
        // SAFETY: as for `Tensor`, and kernels write its elements alone.
        TensorMut::new(unsafe { tensor.span_mut::<T>()? }, layout)
    }
}

/// The layout of a tensor's dimensions.
fn layout_of(tensor: &Imported<'_>) -> Result<Layout> {
    let (shape, rank) = (tensor.shape(), tensor.shape().len());
    if shape.contains(&0) || !(1..=CAPACITY).contains(&rank) {
        return Err(Error::Host(HostError::Dlpack {
            asked: "a tensor".to_string(),
            found: format!("this is a {tensor}"),
            fix: "give it elements, and from 1 to 32 dimensions",
        }));
    }
    let (mut extents, mut strides) = ([0; CAPACITY], [0; CAPACITY]);
    for (mode, (extent, stride)) in shape.iter().zip(tensor.strides()).enumerate() {
        // No memory has elements beyond 63 bits. A stride that is never taken may be any number.
        extents[mode] = i64::try_from(*extent).unwrap_or(0);
        strides[mode] = if *extent == 1 { 0 } else { *stride };
    }
    let [extents, strides] = [extents, strides].map(|it| IntTuple::dynamic(&it[..rank]));
    Layout::try_from_shape_stride(&extents, &strides).map_err(|error| Error::Tensor {
        layout: format!("{extents}:{strides}"),
        found: error.to_string(),
    })
}
