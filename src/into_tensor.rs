//! Operands: the forms in which operations take tensors, and the matrices that kernels make of their layouts.

use cutlet_device::DeviceData;
use cutlet_host::{View, ViewMut};
use cutlet_layout_core::Layout;

use crate::batch::{Batch, BatchMut, Repeats};
use crate::matrix::Extents;
use crate::tensor::{of_matrix, of_matrix_mut};
use crate::{DeviceTensor, Error, MAX_EXTENT, Matrix, MatrixMut, Result, Tensor, TensorMut};

/// A tensor that an operation reads: `&DeviceTensor`, a [`Tensor`], `&TensorMut`, or a [`Matrix`].
///
/// ```
/// use cutlet::{Device, DeviceTensor, gemm};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let mut c = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// gemm(&stream, 1.0, &a, a.tensor().transpose()?, 0.0, &mut c)?; // A·Aᵀ
/// assert_eq!(c.download(&stream)?, [5.0, 11.0, 11.0, 25.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tensor that an operation can read",
    label = "expected `&DeviceTensor<T>`, a `Tensor<T>` or a `Matrix<T>`"
)]
pub trait IntoTensor<'a>: Sized + sealed::Form {
    /// The elements' type.
    type Element: DeviceData;

    /// The tensor.
    ///
    /// # Errors
    /// [`Error::Tensor`]: it is a matrix without elements, which no layout describes.
    fn into_tensor(self) -> Result<Tensor<'a, Self::Element>> {
        self.with_form(|form| match form {
            Form::Tensor(view, layout) => Ok(Tensor {
                view,
                layout: *layout,
            }),
            Form::Matrix(matrix) => of_matrix(matrix),
        })
    }

    /// Passes the form on.
    #[doc(hidden)]
    fn with_form<R>(self, then: impl FnOnce(Form<'a, '_, Self::Element>) -> R) -> R;
}

/// A tensor that an operation writes: `&mut DeviceTensor`, a [`TensorMut`] or a `&mut` to one, or a [`MatrixMut`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tensor that an operation can write",
    label = "expected `&mut DeviceTensor<T>`, a `TensorMut<T>` or a `MatrixMut<T>`"
)]
pub trait IntoTensorMut<'a>: Sized + sealed::Form {
    /// The elements' type.
    type Element: DeviceData;

    /// The tensor.
    ///
    /// # Errors
    /// [`Error::Tensor`]: it is a matrix without elements, which no layout describes.
    fn into_tensor_mut(self) -> Result<TensorMut<'a, Self::Element>> {
        self.with_form_mut(|form| match form {
            FormMut::Tensor(view, layout) => Ok(TensorMut {
                view,
                layout: *layout,
            }),
            FormMut::Matrix(matrix) => of_matrix_mut(matrix),
        })
    }

    /// Passes the form on.
    #[doc(hidden)]
    fn with_form_mut<R>(self, then: impl FnOnce(FormMut<'a, '_, Self::Element>) -> R) -> R;
}

/// What is read: memory and a layout that was compared with it, or a matrix.
pub enum Form<'a, 'l, T: DeviceData> {
    Tensor(View<'a, T>, &'l Layout),
    Matrix(Matrix<'a, T>),
}

/// What is written.
pub enum FormMut<'a, 'l, T: DeviceData> {
    Tensor(ViewMut<'a, T>, &'l Layout),
    Matrix(MatrixMut<'a, T>),
}

mod sealed {
    /// A form of a tensor.
    pub trait Form {}
}

impl<T: DeviceData> sealed::Form for Tensor<'_, T> {}
impl<'a, T: DeviceData> IntoTensor<'a> for Tensor<'a, T> {
    type Element = T;
    fn with_form<R>(self, then: impl FnOnce(Form<'a, '_, T>) -> R) -> R {
        then(Form::Tensor(self.view, &self.layout))
    }
}

impl<T: DeviceData> sealed::Form for &TensorMut<'_, T> {}
impl<'a, T: DeviceData> IntoTensor<'a> for &'a TensorMut<'_, T> {
    type Element = T;
    fn with_form<R>(self, then: impl FnOnce(Form<'a, '_, T>) -> R) -> R {
        then(Form::Tensor(self.view.view(), &self.layout))
    }
}

impl<T: DeviceData> sealed::Form for &DeviceTensor<T> {}
impl<'a, T: DeviceData> IntoTensor<'a> for &'a DeviceTensor<T> {
    type Element = T;
    fn with_form<R>(self, then: impl FnOnce(Form<'a, '_, T>) -> R) -> R {
        then(Form::Tensor(self.view(), self.layout()))
    }
}

impl<T: DeviceData> sealed::Form for Matrix<'_, T> {}
impl<'a, T: DeviceData> IntoTensor<'a> for Matrix<'a, T> {
    type Element = T;
    fn with_form<R>(self, then: impl FnOnce(Form<'a, '_, T>) -> R) -> R {
        then(Form::Matrix(self))
    }
}

impl<T: DeviceData> sealed::Form for TensorMut<'_, T> {}
impl<'a, T: DeviceData> IntoTensorMut<'a> for TensorMut<'a, T> {
    type Element = T;
    fn with_form_mut<R>(self, then: impl FnOnce(FormMut<'a, '_, T>) -> R) -> R {
        then(FormMut::Tensor(self.view, &self.layout))
    }
}

impl<T: DeviceData> sealed::Form for &mut TensorMut<'_, T> {}
impl<'a, T: DeviceData> IntoTensorMut<'a> for &'a mut TensorMut<'_, T> {
    type Element = T;
    fn with_form_mut<R>(self, then: impl FnOnce(FormMut<'a, '_, T>) -> R) -> R {
        then(FormMut::Tensor(self.view.reborrow(), &self.layout))
    }
}

impl<T: DeviceData> sealed::Form for &mut DeviceTensor<T> {}
impl<'a, T: DeviceData> IntoTensorMut<'a> for &'a mut DeviceTensor<T> {
    type Element = T;
    fn with_form_mut<R>(self, then: impl FnOnce(FormMut<'a, '_, T>) -> R) -> R {
        let (view, layout) = self.parts_mut();
        then(FormMut::Tensor(view, layout))
    }
}

impl<T: DeviceData> sealed::Form for MatrixMut<'_, T> {}
impl<'a, T: DeviceData> IntoTensorMut<'a> for MatrixMut<'a, T> {
    type Element = T;
    fn with_form_mut<R>(self, then: impl FnOnce(FormMut<'a, '_, T>) -> R) -> R {
        then(FormMut::Matrix(self))
    }
}

/// An operand of an operation as a matrix: two modes, of which one is contiguous.
pub(crate) fn read_matrix<'a, I: IntoTensor<'a>>(
    operation: &'static str,
    operand: &str,
    tensor: I,
) -> Result<Matrix<'a, I::Element>> {
    matrix(tensor, operand).map_err(|found| Error::Extents { operation, found })
}

/// As [`read_matrix`], for writing.
pub(crate) fn written_matrix<'a, I: IntoTensorMut<'a>>(
    operation: &'static str,
    operand: &str,
    tensor: I,
) -> Result<MatrixMut<'a, I::Element>> {
    matrix_mut(tensor, operand).map_err(|found| Error::Extents { operation, found })
}

/// An operand that is written, as a matrix.
///
/// # Errors
/// Why it is none, with the operand's name.
pub(crate) fn matrix_mut<'a, I: IntoTensorMut<'a>>(
    operand: I,
    name: &str,
) -> Result<MatrixMut<'a, I::Element>, String> {
    operand.with_form_mut(|form| match form {
        FormMut::Matrix(matrix) => Ok(matrix),
        FormMut::Tensor(view, layout) => match matrix_of(layout) {
            Ok(extents) => Ok(MatrixMut { view, extents }),
            Err(why) => Err(refused(name, layout, &why)),
        },
    })
}

/// An operand as a matrix.
///
/// # Errors
/// Why it is none, with the operand's name.
pub(crate) fn matrix<'a, I: IntoTensor<'a>>(
    operand: I,
    name: &str,
) -> Result<Matrix<'a, I::Element>, String> {
    operand.with_form(|form| match form {
        Form::Matrix(matrix) => Ok(matrix),
        Form::Tensor(view, layout) => match matrix_of(layout) {
            Ok(extents) => Ok(Matrix { view, extents }),
            Err(why) => Err(refused(name, layout, &why)),
        },
    })
}

fn refused(name: &str, layout: &Layout, why: &str) -> String {
    format!("{name} is {}, {why}", layout.to_dynamic())
}

/// The operand as a batch of matrices: its first two modes are rows and columns, of which one is contiguous, and the
/// others are the batch.
///
/// # Errors
/// Why it is none, with the operand's name.
pub(crate) fn batch<'a, I: IntoTensor<'a>>(
    operand: I,
    name: &str,
) -> Result<Batch<'a, I::Element>, String> {
    operand.with_form(|form| match form {
        Form::Matrix(matrix) => Ok(matrix.into()),
        Form::Tensor(view, layout) => match batch_of(layout) {
            Ok((extents, repeats)) => Ok(Batch {
                first: Matrix { view, extents },
                repeats,
            }),
            Err(why) => Err(refused(name, layout, &why)),
        },
    })
}

/// As [`batch`], for writing.
pub(crate) fn batch_mut<'a, I: IntoTensorMut<'a>>(
    operand: I,
    name: &str,
) -> Result<BatchMut<'a, I::Element>, String> {
    operand.with_form_mut(|form| match form {
        FormMut::Matrix(matrix) => Ok(matrix.into()),
        FormMut::Tensor(view, layout) => match batch_of(layout) {
            Ok((extents, repeats)) => Ok(BatchMut {
                first: MatrixMut { view, extents },
                repeats,
            }),
            Err(why) => Err(refused(name, layout, &why)),
        },
    })
}

/// The matrix of a layout of two modes.
fn matrix_of(layout: &Layout) -> Result<Extents, String> {
    match layout.rank() {
        2 => rows_and_columns(layout).map_err(|why| format!("{why}; copy it with `permute`")),
        1 => Err("one mode; give it rows and columns".to_string()),
        rank => Err(format!(
            "{rank} modes; give it rows and columns alone, by `slice`, `group` or `select`"
        )),
    }
}

/// The matrices of a layout of two modes or more.
fn batch_of(layout: &Layout) -> Result<(Extents, Repeats), String> {
    if layout.rank() < 2 {
        return Err("one mode; give it rows and columns".to_string());
    }
    let extents = rows_and_columns(layout)
        .map_err(|why| format!("{why}; copy it with `permute`, or use `contract`, which copies"))?;
    let first = match is_flat(layout) {
        true => 2,
        false => layout.mode(0).num_leaves() + layout.mode(1).num_leaves(),
    };
    let mut repeats = Repeats::ONE;
    for leaf in first..layout.num_leaves() {
        let (count, stride) = of_leaf(layout, leaf);
        if repeats.push(count, stride).is_none() {
            return Err(
                "and too many of its batch's modes do not continue one another; use `contract`"
                    .to_string(),
            );
        }
    }
    Ok((extents, repeats))
}

/// The matrix of the first two modes.
fn rows_and_columns(layout: &Layout) -> Result<Extents, String> {
    let rows = one_stride(layout, 0).ok_or("and its rows have no single stride")?;
    let columns = one_stride(layout, 1).ok_or("and its columns have no single stride")?;
    if rows.0.max(columns.0) > MAX_EXTENT {
        return Err(format!(
            "and rows and columns have at most {MAX_EXTENT} elements; give parts of it"
        ));
    }
    Extents::of_modes(rows, columns).map_err(|why| format!("and {why}"))
}

/// Whether no mode is a tuple of several.
fn is_flat(layout: &Layout) -> bool {
    layout.num_leaves() == layout.rank()
}

/// A leaf's extent and stride. A tensor's layout has no others than numbers from 0 on.
pub(crate) fn of_leaf(layout: &Layout, leaf: usize) -> (usize, usize) {
    let (extent, stride) = (layout.leaf_shape(leaf), layout.leaf_stride(leaf));
    (extent.value() as usize, stride.value() as usize)
}

/// A mode's extent and stride, if each of its leaves continues the one before.
pub(crate) fn one_stride(layout: &Layout, mode: usize) -> Option<(usize, usize)> {
    if is_flat(layout) {
        return Some(of_leaf(layout, mode));
    }
    let mode = layout.mode(mode);
    let mut found = (1, 0);
    for leaf in 0..mode.num_leaves() {
        found = match (found, of_leaf(&mode, leaf)) {
            (found, (1, _)) => found,
            ((1, _), leaf) => leaf,
            ((extent, stride), (more, next)) if next == stride * extent => (extent * more, stride),
            _ => return None,
        };
    }
    Some(found)
}
