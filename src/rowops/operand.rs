//! Operands of row operations: tensors that are read, absent, or the output itself.

use cutlet_device::{DeviceData, Global, GlobalMut};
use cutlet_host::{ArgSite, KernelArg, Stream, View, ViewMut};
use cutlet_layout_core::{Int, Layout};

use super::refuse;
use super::space::HasRows;
use crate::into_tensor::{Form, FormMut, one_stride};
use crate::matrix::{disjoint, in_stream, pointer, pointer_mut};
use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

/// What a kernel reads.
pub enum Source<'a, T: DeviceData> {
    /// A tensor's memory.
    View(View<'a, T>),
    /// Memory that the launch knows as its output already, or that the kernel does not read.
    Known(Global<T>),
}

impl<T: DeviceData> KernelArg<Global<T>> for Source<'_, T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> cutlet_host::Result<Global<T>> {
        match self {
            Source::View(view) => view.into_kernel(site),
            Source::Known(pointer) => Ok(pointer),
        }
    }
}

/// What a kernel writes, if it does.
pub enum Target<'a, T: DeviceData> {
    /// A tensor's memory.
    View(ViewMut<'a, T>),
    /// Memory that the kernel does not write.
    Absent(GlobalMut<T>),
}

impl<T: DeviceData> KernelArg<GlobalMut<T>> for Target<'_, T> {
    fn into_kernel(self, site: &ArgSite<'_>) -> cutlet_host::Result<GlobalMut<T>> {
        match self {
            Target::View(view) => view.into_kernel(site),
            Target::Absent(pointer) => Ok(pointer),
        }
    }
}

/// The rows that an operation reads: a tensor, or `None` for those that it writes.
pub struct Read<'a, T: DeviceData>(pub Option<Tensor<'a, T>>);

impl<'a, T: DeviceData> Read<'a, T> {
    /// The operand as it has rows, for an output.
    pub fn rows<'t, U: DeviceData>(
        &'t self,
        what: &'static str,
        output: &'t TensorMut<'_, U>,
    ) -> HasRows<'t> {
        match &self.0 {
            Some(tensor) => rows_of(what, tensor),
            None => written_rows(what, output),
        }
    }

    /// What the kernel reads.
    pub fn source<U: DeviceData>(&self, output: &TensorMut<'_, U>) -> Source<'a, T> {
        match &self.0 {
            Some(tensor) => Source::View(tensor.view),
            None => Source::Known(pointer(output.view.view())),
        }
    }

    /// Returns an error unless the stream may read the tensor, and the output does not overlap it.
    pub fn check<U: DeviceData>(
        &self,
        operation: &'static str,
        stream: &Stream,
        what: &'static str,
        output: &TensorMut<'_, U>,
    ) -> Result<()> {
        match &self.0 {
            Some(tensor) => check_read(operation, stream, what, tensor, output),
            None => Ok(()),
        }
    }
}

/// Returns an error unless the stream may read a tensor, and the output does not overlap it.
pub fn check_read<T: DeviceData, U: DeviceData>(
    operation: &'static str,
    stream: &Stream,
    what: &'static str,
    tensor: &Tensor<'_, T>,
    output: &TensorMut<'_, U>,
) -> Result<()> {
    in_stream(operation, stream, what, tensor.view)?;
    disjoint(operation, what, tensor.addresses(), output.addresses())
}

/// A tensor as it has rows.
pub fn rows_of<'t, T: DeviceData>(what: &'static str, tensor: &'t Tensor<'_, T>) -> HasRows<'t> {
    HasRows {
        what,
        layout: &tensor.layout,
        address: tensor.view.address(),
        bytes: size_of::<T>(),
    }
}

/// A tensor that is written, as it has rows.
pub fn written_rows<'t, T: DeviceData>(
    what: &'static str,
    tensor: &'t TensorMut<'_, T>,
) -> HasRows<'t> {
    HasRows {
        what,
        layout: &tensor.layout,
        address: tensor.view.view().address(),
        bytes: size_of::<T>(),
    }
}

/// The layout of a tensor that has an element for each row, with the rows' columns as a last mode of stride 0.
///
/// # Errors
/// If its shape is not that of the rows' modes, or of these and a mode of one element.
pub fn layout_of_rows(
    operation: &'static str,
    what: &str,
    layout: &Layout,
    rows: &Layout,
) -> Result<Layout> {
    let rank = rows.rank();
    let columns = rows.mode(rank - 1).size();
    let repeated = Layout::leaf(Int::dynamic(columns), Int::dynamic(0));
    let of_rows = |modes: usize| {
        let prefix = |layout: &Layout| layout.take(0, modes).shape();
        modes == 0 || layout.rank() >= modes && prefix(layout) == prefix(rows)
    };
    if of_rows(rank - 1) && layout.rank() == rank && layout.mode(rank - 1).size() == 1 {
        return Ok(match rank {
            1 => repeated,
            _ => layout.replace(rank - 1, &repeated),
        });
    }
    if of_rows(rank - 1) && rank > 1 && layout.rank() == rank - 1 {
        return Ok(match rank {
            2 => Layout::concat2(&layout.mode(0), &repeated),
            _ => layout.append(&repeated),
        });
    }
    refuse(
        operation,
        format!(
            "the layout of {what} is {}, and the rows are those of {}; give the same modes but for the last one",
            layout.to_dynamic(),
            rows.to_dynamic()
        ),
    )
}

/// An optional tensor's memory, or any address.
pub fn optional<'a, T: DeviceData>(tensor: Option<&Tensor<'a, T>>) -> Source<'a, T> {
    match tensor {
        Some(tensor) => Source::View(tensor.view),
        None => Source::Known(Global::from_ptr(std::ptr::null())),
    }
}

/// An optional tensor's memory for writing, or any address.
pub fn optional_mut<'a, T: DeviceData>(tensor: Option<&'a mut TensorMut<'_, T>>) -> Target<'a, T> {
    match tensor {
        Some(tensor) => Target::View(tensor.view.reborrow()),
        None => Target::Absent(pointer_mut(0)),
    }
}

/// A tensor that is read. `None` is a matrix without elements.
pub fn read<'a, I: IntoTensor<'a>>(operand: I) -> Result<Option<Tensor<'a, I::Element>>> {
    operand.with_form(|form| match form {
        Form::Matrix(matrix) if matrix.rows() == 0 || matrix.columns() == 0 => Ok(None),
        Form::Matrix(matrix) => matrix.into_tensor().map(Some),
        Form::Tensor(view, layout) => Ok(Some(Tensor {
            view,
            layout: *layout,
        })),
    })
}

/// A tensor that is written. `None` is a matrix without elements.
pub fn written<'a, I: IntoTensorMut<'a>>(operand: I) -> Result<Option<TensorMut<'a, I::Element>>> {
    operand.with_form_mut(|form| match form {
        FormMut::Matrix(matrix) if matrix.rows() == 0 || matrix.columns() == 0 => Ok(None),
        FormMut::Matrix(matrix) => matrix.into_tensor_mut().map(Some),
        FormMut::Tensor(view, layout) => Ok(Some(TensorMut {
            view,
            layout: *layout,
        })),
    })
}

/// Returns an error unless a tensor is a list of this many contiguous elements.
pub fn check_list<T: DeviceData>(
    operation: &'static str,
    what: &str,
    list: &Tensor<'_, T>,
    len: usize,
) -> Result<()> {
    let is_list = list.rank() == 1
        && list.size() == len
        && one_stride(&list.layout, 0).is_some_and(|(extent, stride)| extent == 1 || stride == 1);
    match is_list {
        true => Ok(()),
        false => refuse(
            operation,
            format!(
                "{what} is {}, and a row has {len} elements; give one mode of {len} contiguous elements",
                list.layout.to_dynamic()
            ),
        ),
    }
}
