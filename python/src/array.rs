//! Arrays of Python in place: their memory, element type, shape and strides, and the tensors, matrices and vectors of
//! the library that they are.

mod capsule;
mod exchange;
mod interface;
mod parts;

use cutlet::{
    DeviceData, IntTuple, Layout, Matrix, MatrixMut, Order, Tensor, TensorMut, View, ViewMut,
};

pub use capsule::{Capsule, dlpack_device, dlpack_stream, place_of};
pub use exchange::Exchange;
pub use interface::{Interface, cuda_interface, numpy_interface};

use crate::data_type::DataType;
use crate::error::{Failure, Result, wrong_type, wrong_value};
use crate::stream::Context;

/// The most dimensions of an array: as many as a copy between layouts takes. A call moves arrays around, so that more
/// would cost each call time.
pub const MAX_RANK: usize = 8;

/// An array: where its elements are. Its owner is alive while a call uses it, because the call borrows it.
#[derive(Clone, Debug)]
pub struct Array {
    /// The name of the argument, for messages.
    pub name: &'static str,
    pub data_type: DataType,
    pub is_read_only: bool,
    /// Of the first element.
    address: u64,
    dimensions: Dimensions,
}

/// Extents and strides. A stride is in elements, and 0 along a dimension of one element.
#[derive(Clone, Copy, Debug)]
pub struct Dimensions {
    rank: usize,
    shape: [usize; MAX_RANK],
    strides: [usize; MAX_RANK],
}

impl Dimensions {
    /// The dimensions of these extents. Without strides, they are those of row-major order.
    ///
    /// # Errors
    /// If there are too many dimensions, or one has a negative extent or stride.
    pub fn new(name: &str, shape: &[i64], strides: Option<&[i64]>) -> Result<Dimensions> {
        let rank = shape.len();
        if rank > MAX_RANK {
            return wrong_value(format!(
                "{name} has {rank} dimensions; give at most {MAX_RANK}"
            ));
        }
        if let Some(strides) = strides
            && strides.len() != rank
        {
            return wrong_value(format!(
                "{name} has {rank} dimensions and {} strides; give one for each",
                strides.len()
            ));
        }
        let mut dimensions = Dimensions {
            rank,
            shape: [1; MAX_RANK],
            strides: [0; MAX_RANK],
        };
        // Without elements, strides say nothing. NumPy has 0 for them.
        let strides = strides.filter(|_| !shape.contains(&0));
        let mut behind = 1usize;
        for nth in (0..rank).rev() {
            let Ok(extent) = usize::try_from(shape[nth]) else {
                return wrong_value(format!(
                    "{name} has the extent {} in dimension {nth}",
                    shape[nth]
                ));
            };
            let stride = strides.map_or(behind as i64, |strides| strides[nth]);
            dimensions.shape[nth] = extent;
            if extent > 1 {
                let Ok(stride) = usize::try_from(stride) else {
                    return wrong_value(format!(
                        "{name} has the stride {stride} in dimension {nth}, and no kernel goes backwards; pass a copy"
                    ));
                };
                dimensions.strides[nth] = stride;
            }
            behind = behind.saturating_mul(extent.max(1));
        }
        Ok(dimensions)
    }

    /// Elements from the first to the last, with gaps; `None` on overflow.
    fn span(&self) -> Option<usize> {
        if self.shape().contains(&0) {
            return Some(0);
        }
        let mut modes = self.shape().iter().zip(self.strides());
        modes.try_fold(1usize, |span, (extent, stride)| {
            span.checked_add((extent - 1).checked_mul(*stride)?)
        })
    }

    fn shape(&self) -> &[usize] {
        &self.shape[..self.rank]
    }

    fn strides(&self) -> &[usize] {
        &self.strides[..self.rank]
    }

    /// The dimensions `first..end` as one; `None` if their elements do not lie at equal distances.
    fn merged(&self, first: usize, end: usize) -> Option<(usize, usize)> {
        let (mut extent, mut stride) = (1, 0);
        for nth in (first..end).rev() {
            match (self.shape[nth], extent) {
                (1, _) => {}
                (outer, 1) => (extent, stride) = (outer, self.strides[nth]),
                (outer, _) if self.strides[nth] == stride * extent || outer == 0 => extent *= outer,
                (_, 0) => {}
                _ => return None,
            }
        }
        Some((extent, stride))
    }
}

impl Array {
    pub fn new(
        name: &'static str,
        data_type: DataType,
        is_read_only: bool,
        address: u64,
        dimensions: Dimensions,
    ) -> Result<Array> {
        match dimensions.span() {
            Some(span) if span.checked_mul(data_type.size()).is_some() => Ok(Array {
                name,
                data_type,
                is_read_only,
                address,
                dimensions,
            }),
            _ => wrong_value(format!("the strides of {name} reach beyond 64 bits")),
        }
    }

    pub fn rank(&self) -> usize {
        self.dimensions.rank
    }

    /// Of the first element.
    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn shape(&self) -> &[usize] {
        self.dimensions.shape()
    }

    /// The shape and the strides, for messages: `a (2, 3) with strides (3, 1)`.
    pub fn in_words(&self) -> String {
        let name = self.name;
        let (shape, strides) = (self.shape(), self.dimensions.strides());
        format!("{name} is {} with strides {}", tuple(shape), tuple(strides))
    }

    /// Returns an error unless the array has so many dimensions.
    pub fn expect_rank(&self, operation: &str, rank: usize) -> Result<()> {
        match self.rank() == rank {
            true => Ok(()),
            false => wrong_value(format!(
                "{operation}: {} has {} dimensions, {}; give {rank}",
                self.name,
                self.rank(),
                tuple(self.shape())
            )),
        }
    }

    /// Whether elements are next to each other along a dimension.
    pub fn in_runs(&self) -> bool {
        self.dimensions.strides().contains(&1)
    }

    /// Returns an error if this array, which is written, and another one have addresses in common.
    pub fn expect_apart(&self, operation: &str, other: &Array) -> Result<()> {
        let of = |array: &Array| {
            let span = array.dimensions.span().unwrap_or(0) * array.data_type.size();
            array.address..array.address + span as u64
        };
        let (own, others) = (of(self), of(other));
        match own.start < others.end && others.start < own.end {
            false => Ok(()),
            true => wrong_value(format!(
                "{operation}: the memory ranges of {} and {} overlap; give {} memory of its own",
                self.name, other.name, self.name
            )),
        }
    }

    /// Returns an error unless the elements are of this type.
    pub fn expect_type(&self, operation: &str, expected: DataType) -> Result<()> {
        match self.data_type == expected {
            true => Ok(()),
            false => wrong_type(format!(
                "{operation}: {} is {}; give {}",
                self.name,
                self.data_type.name(),
                expected.name()
            )),
        }
    }

    /// The address of the first element.
    ///
    /// # Errors
    /// If it is no multiple of an element's size.
    pub fn aligned_address(&self, context: &'static Context) -> cutlet::Result<u64> {
        match self.data_type.size() {
            1 => Ok(self.memory::<u8>(context)?.address()),
            2 => Ok(self.memory::<u16>(context)?.address()),
            4 => Ok(self.memory::<u32>(context)?.address()),
            _ => Ok(self.memory::<u64>(context)?.address()),
        }
    }

    /// The memory from the first element to the last.
    pub fn memory<T: DeviceData>(&self, context: &'static Context) -> cutlet::Result<View<'_, T>> {
        assert_eq!(size_of::<T>(), self.data_type.size());
        let span = self.dimensions.span().unwrap_or(0);
        // SAFETY: the owner says that the elements are memory of the place, and lives while the array is borrowed. It
        // frees the memory in the order of the stream, or the call waits for its work.
        Ok(unsafe { View::from_raw(context.stream.device(), self.address, span)? })
    }

    /// The memory from the first element to the last, for writing.
    pub fn memory_mut<T: DeviceData>(
        &self,
        context: &'static Context,
    ) -> cutlet::Result<ViewMut<'_, T>> {
        assert!(size_of::<T>() == self.data_type.size() && !self.is_read_only);
        let span = self.dimensions.span().unwrap_or(0);
        // SAFETY: as in `memory`. Operations refuse outputs that overlap their inputs. The owner allows writes.
        Ok(unsafe { ViewMut::from_raw(context.stream.device(), self.address, span)? })
    }

    /// The layout of the elements. A scalar has one mode.
    ///
    /// # Errors
    /// If there are no elements: no layout is empty.
    pub fn layout(&self, operation: &str) -> Result<Layout> {
        if self.shape().contains(&0) {
            return wrong_value(format!(
                "{operation}: {} has no elements, {}",
                self.name,
                tuple(self.shape())
            ));
        }
        let numbers = |of: &[usize]| -> Vec<i64> { of.iter().map(|it| *it as i64).collect() };
        let (shape, strides) = match self.rank() {
            0 => (vec![1], vec![0]),
            _ => (numbers(self.shape()), numbers(self.dimensions.strides())),
        };
        let (shape, strides) = (IntTuple::dynamic(&shape), IntTuple::dynamic(&strides));
        Layout::try_from_shape_stride(&shape, &strides)
            .map_err(|error| refused(operation, &error.to_string()))
    }

    /// The tensor of these elements, with a mode for each dimension.
    pub fn tensor<T: DeviceData>(
        &self,
        context: &'static Context,
        layout: Layout,
    ) -> cutlet::Result<Tensor<'_, T>> {
        Tensor::new(self.memory(context)?, layout)
    }

    /// The tensor of these elements, for writing.
    pub fn tensor_mut<T: DeviceData>(
        &self,
        context: &'static Context,
        layout: Layout,
    ) -> cutlet::Result<TensorMut<'_, T>> {
        TensorMut::new(self.memory_mut(context)?, layout)
    }

    /// Returns an error unless the elements lie one behind the other in row-major order.
    pub fn expect_contiguous(&self, operation: &str) -> Result<()> {
        match self.dimensions.merged(0, self.rank()) {
            Some((0 | 1, _) | (_, 1)) => Ok(()),
            _ => wrong_value(format!(
                "{operation}: {}; give a contiguous array",
                self.in_words()
            )),
        }
    }

    /// The rows and columns of a matrix: the last dimension, and all others as one.
    pub fn rows(&self, operation: &'static str) -> Result<Shaped> {
        let last = self.rank().max(1) - 1;
        let (columns, across) = match self.rank() {
            0 => (1, 0),
            _ => (self.dimensions.shape[last], self.dimensions.strides[last]),
        };
        let merged = self.dimensions.merged(0, last);
        let Some((rows, down)) = merged else {
            return wrong_value(format!(
                "{operation}: {}, whose rows do not lie at equal distances; pass a contiguous copy",
                self.in_words()
            ));
        };
        self.shaped(operation, [rows, columns], [down, across])
    }

    /// The matrix of the last two dimensions.
    pub fn matrix(&self, operation: &'static str) -> Result<Shaped> {
        let first = self.rank() - 2;
        let last_two = |of: &[usize; MAX_RANK]| [of[first], of[first + 1]];
        let Dimensions { shape, strides, .. } = &self.dimensions;
        self.shaped(operation, last_two(shape), last_two(strides))
    }

    fn shaped(
        &self,
        operation: &'static str,
        [rows, columns]: [usize; 2],
        [down, across]: [usize; 2],
    ) -> Result<Shaped> {
        let (order, stride, [run, count]) = match () {
            () if columns <= 1 || across == 1 => (Order::RowMajor, down, [columns, rows]),
            () if rows <= 1 || down == 1 => (Order::ColMajor, across, [rows, columns]),
            () => (Order::RowMajor, 0, [columns, rows]),
        };
        let ld = if count <= 1 { run } else { stride };
        if ld < run {
            return wrong_value(format!(
                "{operation}: {}, and a matrix has one stride of 1, and another one of at least that extent; pass a \
                 contiguous copy, or use `contract`, which takes any strides",
                self.in_words()
            ));
        }
        Ok(Shaped {
            rows,
            columns,
            order,
            ld,
        })
    }

    /// Of an array of three dimensions, how many matrices there are, and how many elements one is from the next.
    fn repeats(&self) -> (usize, usize) {
        (self.dimensions.shape[0], self.dimensions.strides[0])
    }
}

/// The extents of a matrix, how its elements lie, and in which order.
#[derive(Clone, Copy, Debug)]
pub struct Shaped {
    pub rows: usize,
    pub columns: usize,
    order: Order,
    ld: usize,
}

impl Shaped {
    /// The same elements with rows and columns exchanged.
    pub fn transposed(self) -> Shaped {
        let order = match self.order {
            Order::RowMajor => Order::ColMajor,
            Order::ColMajor => Order::RowMajor,
        };
        Shaped {
            rows: self.columns,
            columns: self.rows,
            order,
            ld: self.ld,
        }
    }

    /// The matrix of an array's elements.
    pub fn of<'a, T: DeviceData>(
        self,
        array: &'a Array,
        context: &'static Context,
    ) -> cutlet::Result<Matrix<'a, T>> {
        Matrix::with_ld(
            array.memory(context)?,
            self.rows,
            self.columns,
            self.order,
            self.ld,
        )
    }

    /// The matrix of an array's elements, for writing.
    pub fn of_mut<'a, T: DeviceData>(
        self,
        array: &'a Array,
        context: &'static Context,
    ) -> cutlet::Result<MatrixMut<'a, T>> {
        let view = array.memory_mut(context)?;
        MatrixMut::with_ld(view, self.rows, self.columns, self.order, self.ld)
    }

    /// The matrices of an array of three dimensions, as a tensor of (rows, columns, count). One of two dimensions is
    /// `count` times the same matrix.
    pub fn batch_of<'a, T: DeviceData>(
        self,
        array: &'a Array,
        count: usize,
        context: &'static Context,
    ) -> cutlet::Result<Tensor<'a, T>> {
        let repeats = match array.rank() {
            2 => (count, 0),
            _ => array.repeats(),
        };
        Tensor::new(array.memory(context)?, self.repeated(repeats))
    }

    /// The matrices of an array of three dimensions, for writing.
    pub fn batch_of_mut<'a, T: DeviceData>(
        self,
        array: &'a Array,
        context: &'static Context,
    ) -> cutlet::Result<TensorMut<'a, T>> {
        TensorMut::new(array.memory_mut(context)?, self.repeated(array.repeats()))
    }

    /// The layout of matrices at equal distances. None of the extents is 0.
    fn repeated(self, (count, stride): (usize, usize)) -> Layout {
        let (down, across) = match self.order {
            Order::RowMajor => (self.ld, 1),
            Order::ColMajor => (1, self.ld),
        };
        let numbers = |of: [usize; 3]| IntTuple::dynamic(&of.map(|it| it as i64));
        let shape = numbers([self.rows, self.columns, count]);
        Layout::from_shape_stride(&shape, &numbers([down, across, stride]))
    }
}

/// Returns an error unless an array has this shape.
pub fn expect_shape(operation: &str, array: &Array, expected: &[usize]) -> Result<()> {
    match array.shape() == expected {
        true => Ok(()),
        false => wrong_value(format!(
            "{operation}: {} is {}; give {}",
            array.name,
            tuple(array.shape()),
            tuple(expected)
        )),
    }
}

/// Numbers in parentheses, as Python prints a tuple.
pub fn tuple(numbers: &[usize]) -> String {
    match numbers {
        [one] => format!("({one},)"),
        _ => {
            let numbers: Vec<String> = numbers.iter().map(usize::to_string).collect();
            format!("({})", numbers.join(", "))
        }
    }
}

fn refused(operation: &str, found: &str) -> Failure {
    Failure::Exception(pyo3::exceptions::PyValueError::new_err(format!(
        "{operation}: {found}"
    )))
}
