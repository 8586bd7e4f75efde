//! Tensors over layout *values*: for hosts, tests and teaching, where layouts are run-time values.
//!
//! The tests and the guide use them.
//!
//! A kernel's [`Tensor`](crate::Tensor) has its layouts as types and points into a GPU's memory. A
//! [`ValueTensor`] has a [`Layout`] and safe engines, and checks every access. Both are
//! `inner(offset + outer(c))`: tiling and partitioning act on the outer layout and the offset,
//! whatever the inner transform does.

mod partition;
mod recast;

use core::fmt;
use core::ops::{Index, IndexMut};

use crate::composed::Transform;
use crate::error::LayoutError;
use crate::{ComposedLayout, IntTuple, Layout, fragment_like, identity};

pub(crate) use partition::underscores;
pub use recast::{Number, Recast};

/// An engine that a tensor reads: an element for every index, or every coordinate, to which its
/// layout maps.
pub trait Source {
    /// The type of an element.
    type Element;

    /// The element at an index.
    ///
    /// # Panics
    /// If there is none.
    fn read(&self, index: &IntTuple) -> Self::Element;
}

/// Elements in memory, by index.
pub trait Memory {
    /// The type of an element.
    type Element;

    /// All elements.
    fn elements(&self) -> &[Self::Element];
}

/// Elements in memory that can be written.
pub trait MemoryMut: Memory {
    /// All elements.
    fn elements_mut(&mut self) -> &mut [Self::Element];
}

impl<T, const N: usize> Memory for [T; N] {
    type Element = T;

    fn elements(&self) -> &[T] {
        self
    }
}

impl<T, const N: usize> MemoryMut for [T; N] {
    fn elements_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T> Memory for &[T] {
    type Element = T;

    fn elements(&self) -> &[T] {
        self
    }
}

impl<T> Memory for &mut [T] {
    type Element = T;

    fn elements(&self) -> &[T] {
        self
    }
}

impl<T> MemoryMut for &mut [T] {
    fn elements_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<M: Memory<Element: Copy>> Source for M {
    type Element = M::Element;

    fn read(&self, index: &IntTuple) -> M::Element {
        self.elements()[place(index, self.elements().len())]
    }
}

/// The engine without memory: the element at an index is the index, and at a coordinate the
/// coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting;

impl Source for Counting {
    type Element = IntTuple;

    fn read(&self, index: &IntTuple) -> IntTuple {
        *index
    }
}

/// The inner transform that leaves indices as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Direct;

impl Transform for Direct {
    fn transform(&self, coord: &IntTuple) -> IntTuple {
        *coord
    }
}

/// An engine seen through a layout: `engine[inner(offset + outer(c))]`.
///
/// Engines are arrays, which own their elements as registers do, slices, and [`Counting`]. The
/// inner transform is [`Direct`], a [`Swizzle`](crate::Swizzle), another layout, or any function:
/// a table of indices makes a tensor that gathers when it is read and scatters when it is written.
///
/// ```
/// use cutlet_layout_core::{ValueTensor, layout, shape, tile};
///
/// let memory: [i32; 24] = core::array::from_fn(|i| i as i32);
/// let matrix = ValueTensor::new(&memory[..], layout!((4, 6):(6, 1)));
/// assert_eq!(matrix[(1, 2)], 8);
/// let row = matrix.slice(&shape!((1, _)));
/// assert_eq!(row.iter().collect::<Vec<_>>(), [6, 7, 8, 9, 10, 11]);
/// let tile = matrix.local_tile(&tile!(<2, 3>), &shape!((1, 1)));
/// assert_eq!(tile[(0, 0)], 15);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ValueTensor<E, I = Direct> {
    engine: E,
    layout: ComposedLayout<I>,
}

impl<E> ValueTensor<E> {
    /// A tensor of an engine and a layout.
    pub const fn new(engine: E, layout: Layout) -> ValueTensor<E> {
        ValueTensor::composed(engine, ComposedLayout::new(Direct, ZERO, layout))
    }
}

/// The offset of a tensor that begins where its engine does.
const ZERO: IntTuple = IntTuple::int(crate::Int::ZERO);

impl ValueTensor<Counting> {
    /// The tensor of a shape's coordinates, each of which is its own element. Partitioned like the
    /// data, it gives the coordinate of each element, so that elements outside can be left out.
    ///
    /// ```
    /// use cutlet_layout_core::{ValueTensor, shape, tile};
    ///
    /// let coords = ValueTensor::coordinates(&shape!((5, 7)));
    /// let tile = coords.local_tile(&tile!(<4, 4>), &shape!((1, 1)));
    /// assert_eq!(tile.at((1, 3)), (5, 7).into()); // outside of (5, 7)
    /// ```
    ///
    /// # Panics
    /// As [`identity`] does.
    #[track_caller]
    pub const fn coordinates(shape: &IntTuple) -> ValueTensor<Counting> {
        ValueTensor::new(Counting, identity(shape))
    }
}

impl<T: Copy, const N: usize> ValueTensor<[T; N]> {
    /// Registers for the elements of another tensor's layout, each `value`: compact, in the order
    /// of [`fragment_like`].
    ///
    /// # Panics
    /// If `N` is not the number of elements of the fragment.
    #[track_caller]
    pub fn fragment_like(layout: &Layout, value: T) -> ValueTensor<[T; N]> {
        let layout = fragment_like(layout);
        let needed = layout.cosize();
        assert!(
            needed == N as i64,
            "fragment_like: a fragment of {layout} takes {needed} elements, not {N}"
        );
        ValueTensor::new([value; N], layout)
    }
}

impl<E, I> ValueTensor<E, I> {
    /// A tensor of an engine and a composed layout.
    pub const fn composed(engine: E, layout: ComposedLayout<I>) -> ValueTensor<E, I> {
        ValueTensor { engine, layout }
    }

    /// The layout that maps coordinates to elements.
    pub const fn layout(&self) -> &ComposedLayout<I> {
        &self.layout
    }

    /// The layout that tiling and slicing act on.
    pub const fn outer(&self) -> &Layout {
        self.layout.outer()
    }

    /// The engine, which is read and written.
    pub const fn engine(&self) -> &E {
        &self.engine
    }

    /// The shape.
    pub const fn shape(&self) -> IntTuple {
        self.layout.shape()
    }

    /// The number of elements.
    pub const fn size(&self) -> i64 {
        self.layout.size()
    }

    /// The number of modes.
    pub const fn rank(&self) -> usize {
        self.layout.rank()
    }
}

impl<E: Source, I: Transform> ValueTensor<E, I> {
    /// The element at a coordinate in any form.
    ///
    /// # Panics
    /// If the coordinate does not fit the shape, or the engine has no element there.
    #[track_caller]
    pub fn at(&self, coord: impl Into<IntTuple>) -> E::Element {
        self.engine.read(&self.layout.call(&coord.into()))
    }

    /// The elements, by 1-D coordinate.
    pub fn iter(&self) -> impl Iterator<Item = E::Element> {
        (0..self.size()).map(|c| self.at(c))
    }
}

impl<E: Memory, I: Copy> ValueTensor<E, I> {
    /// The same tensor, borrowed.
    pub fn view(&self) -> ValueTensor<&[E::Element], I> {
        ValueTensor {
            engine: self.engine.elements(),
            layout: self.layout,
        }
    }
}

impl<E: MemoryMut, I: Copy> ValueTensor<E, I> {
    /// The same tensor, borrowed for writing.
    pub fn view_mut(&mut self) -> ValueTensor<&mut [E::Element], I> {
        ValueTensor {
            engine: self.engine.elements_mut(),
            layout: self.layout,
        }
    }
}

impl<E: MemoryMut, I: Transform> ValueTensor<E, I> {
    /// Sets every element.
    #[track_caller]
    pub fn fill(&mut self, value: E::Element)
    where
        E::Element: Copy,
    {
        for c in 0..self.size() {
            self[c] = value;
        }
    }

    /// Copies another tensor's elements, by 1-D coordinate.
    ///
    /// # Panics
    /// If the sizes differ.
    #[track_caller]
    pub fn copy_from<S, J>(&mut self, source: &ValueTensor<S, J>)
    where
        S: Source<Element = E::Element>,
        J: Transform,
    {
        self.copy_if(source, |_| true);
    }

    /// Copies the elements of another tensor whose 1-D coordinate fulfils a condition.
    ///
    /// ```
    /// use core::cmp::Ordering;
    /// use cutlet_layout_core::{ValueTensor, compare_elementwise, layout, shape, tile};
    ///
    /// // A tile of 4×4 at the corner of a 5×7 matrix has 1×3 elements inside.
    /// let (extent, tile, at) = (shape!((5, 7)), tile!(<4, 4>), shape!((1, 1)));
    /// let memory = [1; 35];
    /// let matrix = ValueTensor::new(&memory[..], layout!((5, 7):(7, 1))).local_tile(&tile, &at);
    /// let coords = ValueTensor::coordinates(&extent).local_tile(&tile, &at);
    /// let mut inside = ValueTensor::new([0; 16], layout!((4, 4):(1, 4)));
    /// inside.copy_if(&matrix, |c| compare_elementwise(&coords.at(c), &extent) == Some(Ordering::Less));
    /// assert_eq!(inside.iter().sum::<i32>(), 3);
    /// ```
    ///
    /// # Panics
    /// If the sizes differ.
    #[track_caller]
    pub fn copy_if<S, J>(&mut self, source: &ValueTensor<S, J>, condition: impl Fn(i64) -> bool)
    where
        S: Source<Element = E::Element>,
        J: Transform,
    {
        let (from, to) = (source.size(), self.size());
        assert!(
            from == to,
            "copy: {from} elements cannot be copied to {to}: give tensors of the same size"
        );
        for c in 0..to {
            if condition(c) {
                self[c] = source.at(c);
            }
        }
    }
}

impl<C: Into<IntTuple>, E: Memory, I: Transform> Index<C> for ValueTensor<E, I> {
    type Output = E::Element;

    #[track_caller]
    fn index(&self, coord: C) -> &E::Element {
        let index = self.layout.call(&coord.into());
        let elements = self.engine.elements();
        &elements[place(&index, elements.len())]
    }
}

impl<C: Into<IntTuple>, E: MemoryMut, I: Transform> IndexMut<C> for ValueTensor<E, I> {
    #[track_caller]
    fn index_mut(&mut self, coord: C) -> &mut E::Element {
        let index = self.layout.call(&coord.into());
        let elements = self.engine.elements_mut();
        &mut elements[place(&index, elements.len())]
    }
}

/// An index as a place in memory.
#[track_caller]
fn place(index: &IntTuple, len: usize) -> usize {
    let Some(int) = index.as_int() else {
        panic!(
            "tensor: {index} is a coordinate, but memory is read by index: use plain strides or an inner transform"
        );
    };
    match usize::try_from(int.value()) {
        Ok(place) if place < len => place,
        _ => panic!(
            "tensor: index {} is outside of the {len} elements in memory",
            int.value()
        ),
    }
}

impl<E, I: fmt::Display> fmt::Display for ValueTensor<E, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.layout)
    }
}

impl fmt::Display for Direct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("direct")
    }
}

/// The value, or a panic with the error's message.
#[track_caller]
fn unwrap<T>(result: Result<T, LayoutError>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => error.panic(),
    }
}
