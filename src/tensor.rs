//! Tensors on a device: memory and a layout.

mod reshape;

use std::fmt;
use std::ops::{Bound, Range, RangeBounds};

use cutlet_device::DeviceData;
use cutlet_host::{Buffer, IntoView, IntoViewMut, Stream, View, ViewMut};
use cutlet_layout_core::{
    CAPACITY, Int, IntTuple, Layout, LayoutError, Tiler, coalesce, try_composition,
    try_flat_divide, try_logical_divide, try_recast, try_slice_and_offset, try_tiled_divide,
    try_zipped_divide,
};

use crate::into_tensor::one_stride;
use crate::matrix::addresses_of;
use crate::{Error, Matrix, MatrixMut, Result};
use reshape::reshaped;

/// A layout's leaves as numbers, and whether they fit memory.
struct Leaves {
    /// Extents and strides.
    leaves: [(usize, usize); CAPACITY],
    len: usize,
    size: usize,
}

impl Leaves {
    /// The leaves of a layout.
    ///
    /// # Errors
    /// The reason why no tensor has the layout.
    fn of(layout: &Layout) -> Result<Leaves, String> {
        let mut leaves = [(1, 0); CAPACITY];
        let len = layout.num_leaves();
        let mut size = 1usize;
        for (n, leaf) in leaves[..len].iter_mut().enumerate() {
            let (extent, stride) = (layout.leaf_shape(n), layout.leaf_stride(n));
            if !stride.basis().is_none() || stride.value() < 0 {
                return Err(format!(
                    "its stride {stride} is negative or in a basis direction; give strides in elements"
                ));
            }
            let extent = extent.value() as usize;
            size = (size.checked_mul(extent))
                .ok_or("its number of elements exceeds 64 bits; use smaller extents")?;
            *leaf = (extent, stride.value() as usize);
        }
        Ok(Leaves { leaves, len, size })
    }

    /// Elements from the first to the last; `None` on overflow.
    fn span(&self) -> Option<usize> {
        self.leaves[..self.len]
            .iter()
            .try_fold(1usize, |span, (extent, stride)| {
                span.checked_add((extent - 1).checked_mul(*stride)?)
            })
    }

    /// Checks that `len` elements are enough.
    fn fit(&self, len: usize) -> Result<(), String> {
        match self.span() {
            Some(span) if span <= len => Ok(()),
            Some(span) => Err(format!(
                "it reaches {span} elements and the memory has {len}; give more memory or smaller extents"
            )),
            None => Err("it reaches beyond 64 bits; use smaller strides".to_string()),
        }
    }

    /// Checks that no two coordinates have the same element: sorted by strides, each leaf steps beyond those before.
    fn are_disjoint(&self) -> Result<(), String> {
        let mut leaves = self.leaves;
        let leaves = &mut leaves[..self.len];
        leaves.sort_unstable_by_key(|(_, stride)| *stride);
        let mut span = 1usize;
        for (extent, stride) in leaves.iter().filter(|(extent, _)| *extent > 1) {
            if *stride < span {
                return Err(format!(
                    "its stride {stride} leads to elements that it has already, and it is written; each stride must \
                     reach beyond the modes with smaller ones"
                ));
            }
            span = span.saturating_add((extent - 1).saturating_mul(*stride));
        }
        Ok(())
    }
}

/// A layout, or a shape alone.
///
/// A shape is an array of extents. Its tensor lies by rows, as in NumPy and PyTorch: the last mode is contiguous, and
/// the stride of each mode is the number of elements behind it. [`layout!`](crate::layout!) of a shape alone is CuTe's
/// default, which lies by columns.
///
/// ```
/// use cutlet::{Device, DeviceTensor, layout};
///
/// let stream = Device::auto().stream()?;
/// let by_rows = DeviceTensor::<f32>::zeroed(&stream, [2, 3, 4])?;
/// assert_eq!(by_rows.layout().to_string(), "(2,3,4):(12,4,_1)");
/// let by_columns = DeviceTensor::<f32>::zeroed(&stream, layout!((2, 3, 4)))?;
/// assert_eq!(by_columns.layout().to_string(), "(_2,_3,_4):(_1,_2,_6)");
/// # Ok::<(), cutlet::Error>(())
/// ```
pub trait IntoLayout {
    /// The layout.
    ///
    /// # Errors
    /// [`Error::Tensor`]: an extent is 0, or the number of elements exceeds 64 bits.
    fn into_layout(self) -> Result<Layout>;
}

impl IntoLayout for Layout {
    fn into_layout(self) -> Result<Layout> {
        Ok(self)
    }
}

impl IntoLayout for &Layout {
    fn into_layout(self) -> Result<Layout> {
        Ok(*self)
    }
}

impl<const N: usize> IntoLayout for [usize; N] {
    fn into_layout(self) -> Result<Layout> {
        const { assert!(N > 0 && N <= CAPACITY, "a shape has from 1 to 32 modes") }
        by_rows(&self)
    }
}

impl IntoLayout for &[usize] {
    fn into_layout(self) -> Result<Layout> {
        by_rows(self)
    }
}

/// The layout of a shape that lies by rows.
fn by_rows(shape: &[usize]) -> Result<Layout> {
    // An extent beyond 63 bits becomes 0, which no layout has.
    let extents = shape.iter().map(|it| i64::try_from(*it).unwrap_or(0));
    let mut of_modes = [0; CAPACITY];
    for (mode, extent) in of_modes.iter_mut().zip(extents) {
        *mode = extent;
    }
    let layout = match of_modes.get(..shape.len()) {
        None | Some([]) => Err("give it from 1 to 32 modes".to_string()),
        Some(modes) => {
            Layout::try_row_major(&IntTuple::dynamic(modes)).map_err(|it| it.to_string())
        }
    };
    layout.map_err(|found| Error::Tensor {
        layout: format!("{shape:?}, by rows,"),
        found: match shape.contains(&0) {
            true => "it has no elements; leave it out, or use a `Matrix`, which may have none"
                .to_string(),
            false => found,
        },
    })
}

/// Returns an error about a layout.
fn refused(layout: &Layout, found: String) -> Error {
    Error::Tensor {
        layout: layout.to_string(),
        found,
    }
}

/// A part of a layout, and the elements before it.
type Part = (Layout, usize);

/// The modes of a layout that a coordinate leaves open.
fn slice_of(layout: &Layout, coord: &IntTuple) -> Result<Part, String> {
    let (kept, offset) = try_slice_and_offset(coord, layout).map_err(|error| error.to_string())?;
    match is_inside(&layout.shape(), coord) {
        true => Ok((kept, offset.leaf(0).value() as usize)),
        false => Err(format!("the coordinate {coord} is outside of its shape")),
    }
}

/// Whether a coordinate that fits a shape is below its extents.
fn is_inside(shape: &IntTuple, coord: &IntTuple) -> bool {
    match coord.as_int() {
        Some(int) => (0..shape.size()).contains(&int.value()),
        None if coord.is_tuple() => {
            (0..coord.rank()).all(|i| is_inside(&shape.mode(i), &coord.mode(i)))
        }
        None => true,
    }
}

/// The layout whose mode has the coordinates of a range alone.
fn narrowed(
    layout: &Layout,
    mode: usize,
    range: (Bound<usize>, Bound<usize>),
) -> Result<Part, String> {
    if mode >= layout.rank() {
        return Err(format!("there is no mode {mode}; modes are counted from 0"));
    }
    let Some((extent, stride)) = one_stride(layout, mode) else {
        return Err(format!(
            "its mode {mode} has no single stride; use `flatten`, and give a mode of the result"
        ));
    };
    let begin = match range.0 {
        Bound::Included(begin) => begin,
        Bound::Excluded(before) => before.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.1 {
        Bound::Included(last) => last.saturating_add(1),
        Bound::Excluded(end) => end,
        Bound::Unbounded => extent,
    };
    if begin >= end || end > extent {
        return Err(format!(
            "the coordinates {begin}..{end} of its mode {mode} were asked for, which has {extent}; give a range of at \
             least one of them"
        ));
    }
    let part = Layout::leaf(
        Int::dynamic((end - begin) as i64),
        Int::dynamic(stride as i64),
    );
    let layout = match layout.rank() {
        1 => part,
        _ => layout.replace(mode, &part),
    };
    Ok((layout, begin * stride))
}

/// The tile at a coordinate among the tiles.
fn tile_of(layout: &Layout, tiler: &Tiler, coord: &IntTuple) -> Result<Part, String> {
    let tiles = try_zipped_divide(layout, tiler).map_err(|error| error.to_string())?;
    if tiles.size() > layout.size() {
        return Err(TOO_MANY.to_string());
    }
    let coord = IntTuple::tuple(&[IntTuple::UNDERSCORE, *coord]);
    let (tile, offset) = slice_of(&tiles, &coord)?;
    Ok((tile.mode(0), offset))
}

/// Why a division is refused whose last tile is not whole.
const TOO_MANY: &str = "the tiles reach beyond it; give a tiler that divides it";

macro_rules! tensor {
    ($(#[$doc:meta])* $name:ident, $view:ident, $into:ident, $into_view:ident, from $behind:expr, checked $check:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<'a, T: DeviceData> {
            pub(crate) view: $view<'a, T>,
            pub(crate) layout: Layout,
        }

        impl<'a, T: DeviceData> $name<'a, T> {
            /// The tensor of this layout, whose index 0 is the first of `elements`.
            ///
            /// # Errors
            /// [`Error::Tensor`]: the layout reaches beyond the elements, or has a stride that is negative or in a
            /// basis direction. If it is written, two coordinates must not have the same element.
            pub fn new(
                elements: impl $into<'a, Element = T>,
                layout: impl IntoLayout,
            ) -> Result<Self> {
                let (view, layout) = (elements.$into_view(), layout.into_layout()?);
                let check: fn(&Leaves) -> Result<(), String> = $check;
                let has_all = Leaves::of(&layout).and_then(|leaves| {
                    leaves.fit(view.len())?;
                    check(&leaves)?;
                    Ok(leaves.size == view.len() && leaves.are_disjoint().is_ok())
                });
                match has_all {
                    Ok(true) => Ok(Self { view, layout }),
                    // The layout leaves elements out.
                    Ok(false) => Ok(Self { view: view.relaxed(), layout }),
                    Err(found) => Err(refused(&layout, found)),
                }
            }

            /// The layout.
            pub fn layout(&self) -> &Layout {
                &self.layout
            }

            /// The shape.
            pub fn shape(&self) -> IntTuple {
                self.layout.shape()
            }

            /// The number of modes.
            pub fn rank(&self) -> usize {
                self.layout.rank()
            }

            /// The number of elements.
            pub fn size(&self) -> usize {
                self.layout.size() as usize
            }

            /// Mode `i` alone.
            ///
            /// # Errors
            /// If there is no such mode.
            pub fn mode(self, i: usize) -> Result<Self> {
                let mode = self.layout.try_mode(i);
                self.with(mode)
            }

            /// The modes that a coordinate marks with `_`, at its other coordinates.
            ///
            /// # Errors
            /// If the coordinate does not fit the shape.
            pub fn slice(self, coord: &IntTuple) -> Result<Self> {
                let slice = slice_of(&self.layout, coord);
                self.at(slice)
            }

            /// The coordinates of a range of mode `mode` alone: `narrow(1, 3..)` leaves out the first three columns of
            /// a matrix.
            ///
            /// # Errors
            /// If there is no such mode, it has no single stride, or the range is empty or ends behind it.
            pub fn narrow(self, mode: usize, range: impl RangeBounds<usize>) -> Result<Self> {
                let range = (range.start_bound().cloned(), range.end_bound().cloned());
                let part = narrowed(&self.layout, mode, range);
                self.at(part)
            }

            /// The same elements in another shape, without a copy. They are counted by rows, as in NumPy and PyTorch:
            /// the last mode's coordinate changes first. In a mode of modes, it is the first one's.
            ///
            /// # Errors
            /// If the shape has another number of elements, or needs a stride that the layout does not have: modes that
            /// become one must continue one another.
            pub fn reshape(self, shape: impl AsRef<[usize]>) -> Result<Self> {
                let layout = reshaped(&self.layout, shape.as_ref());
                self.at(layout.map(|layout| (layout, 0)))
            }

            /// The tile at a coordinate among the tiles: CuTe's `local_tile`.
            ///
            /// # Errors
            /// If the tiler does not divide the layout, or there is no such tile.
            pub fn local_tile(self, tiler: &Tiler, coord: &IntTuple) -> Result<Self> {
                let tile = tile_of(&self.layout, tiler, coord);
                self.at(tile)
            }

            /// `((tile, rest), …)` of each mode: CuTe's `logical_divide`.
            ///
            /// # Errors
            /// If the tiler does not divide the layout.
            pub fn logical_divide(self, tiler: &Tiler) -> Result<Self> {
                let divided = try_logical_divide(&self.layout, tiler);
                self.with(divided)
            }

            /// `((tiles), (rests))`: CuTe's `zipped_divide`.
            ///
            /// # Errors
            /// If the tiler does not divide the layout.
            pub fn zipped_divide(self, tiler: &Tiler) -> Result<Self> {
                let divided = try_zipped_divide(&self.layout, tiler);
                self.with(divided)
            }

            /// `((tiles), rest, …)`: CuTe's `tiled_divide`.
            ///
            /// # Errors
            /// If the tiler does not divide the layout.
            pub fn tiled_divide(self, tiler: &Tiler) -> Result<Self> {
                let divided = try_tiled_divide(&self.layout, tiler);
                self.with(divided)
            }

            /// `(tile, …, rest, …)`: CuTe's `flat_divide`.
            ///
            /// # Errors
            /// If the tiler does not divide the layout.
            pub fn flat_divide(self, tiler: &Tiler) -> Result<Self> {
                let divided = try_flat_divide(&self.layout, tiler);
                self.with(divided)
            }

            /// The elements to which `layout` leads, through this tensor's layout.
            ///
            /// # Errors
            /// If no layout does that, or it leads beyond the tensor.
            pub fn composition(self, layout: &Layout) -> Result<Self> {
                if layout.maps_below_zero() || layout.cosize() > self.layout.size() {
                    let found = format!("{layout} leads beyond it; stay within its {} elements", self.size());
                    return Err(refused(&self.layout, found));
                }
                let composed = try_composition(&self.layout, layout);
                self.with(composed)
            }

            /// The modes from `begin` up to `end` as one.
            ///
            /// # Errors
            /// If there are no such modes.
            pub fn group(self, begin: usize, end: usize) -> Result<Self> {
                let grouped = self.layout.try_group(begin, end);
                self.with(grouped)
            }

            /// The modes of these numbers, in their order: a permutation, or some of them at coordinate 0 of the
            /// others.
            ///
            /// # Errors
            /// If there are no such modes, or one is named twice.
            pub fn select(self, modes: &[usize]) -> Result<Self> {
                if (1..modes.len()).any(|nth| modes[..nth].contains(&modes[nth])) {
                    let found = format!("a mode is twice in {modes:?}; name each once");
                    return Err(refused(&self.layout, found));
                }
                let selected = self.layout.try_select(modes);
                self.with(selected)
            }

            /// The modes of modes side by side.
            pub fn flatten(self) -> Self {
                Self { layout: self.layout.flatten(), ..self }
            }

            /// The same elements, with as few modes as possible.
            pub fn coalesce(self) -> Self {
                Self { layout: coalesce(&self.layout), ..self }
            }

            /// The two modes of a matrix in the other order.
            ///
            /// # Errors
            /// If there are not two modes.
            pub fn transpose(self) -> Result<Self> {
                if self.rank() != 2 {
                    let found = format!("it has {} modes, and a transpose has two; use `select`", self.rank());
                    return Err(refused(&self.layout, found));
                }
                self.select(&[1, 0])
            }

            /// The same memory as elements of another type.
            ///
            /// # Errors
            /// If elements of the other type are not whole in the layout, or the address is not aligned for them.
            pub fn recast<U: DeviceData>(self) -> Result<$name<'a, U>> {
                let bits = |bytes: usize| 8 * bytes as i64;
                let layout = try_recast(&self.layout, bits(size_of::<T>()), bits(size_of::<U>()))
                    .map_err(|error| refused(&self.layout, error.to_string()))?;
                $name::new(self.view.cast::<U>()?, layout)
            }

            /// The device addresses from the first element to the last.
            pub(crate) fn addresses(&self) -> Range<u64> {
                // No stride is negative, and nothing overflows: the layout was checked.
                addresses_of::<T>(self.view.address(), self.layout.cosize() as usize)
            }

            /// The same memory with what became of the layout.
            fn with(self, layout: Result<Layout, LayoutError>) -> Result<Self> {
                match layout {
                    Ok(layout) if layout.size() > self.layout.size() => {
                        Err(refused(&self.layout, TOO_MANY.to_string()))
                    }
                    Ok(layout) => Self::new(self.view, layout),
                    Err(error) => Err(refused(&self.layout, error.to_string())),
                }
            }

            /// The memory from an offset on, with what became of the layout.
            fn at(self, part: Result<Part, String>) -> Result<Self> {
                let (layout, offset) = part.map_err(|found| refused(&self.layout, found))?;
                let behind: fn($view<'a, T>, usize) -> cutlet_host::Result<$view<'a, T>> = $behind;
                Self::new(behind(self.view, offset)?, layout)
            }
        }

        /// As CuTe prints it: where the memory is, and the layout.
        impl<T: DeviceData> fmt::Display for $name<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let bits = 8 * size_of::<T>();
                write!(f, "gmem_ptr[{bits}b]({:#x}) o {}", self.view.address(), self.layout)
            }
        }
    };
}

tensor! {
    /// A tensor on a device, for reading: memory and a layout. It copies nothing: every operation on it is one of the
    /// layout, checked against the memory.
    ///
    /// ```
    /// use cutlet::{Device, Tensor, layout, shape, tile};
    ///
    /// let stream = Device::auto().stream()?;
    /// let qkv = stream.zeroed::<f32>(2 * 100 * 3 * 4 * 64)?;
    /// // (batch, sequence, q k or v, head, dimension), by rows.
    /// let qkv = Tensor::new(&qkv, layout!((2, 100, 3, 4, 64):(76800, 768, 256, 64, 1)))?;
    /// let keys = qkv.slice(&shape!((_, _, 1, _, _)))?;
    /// assert_eq!(keys.layout().to_string(), "(_2,_100,_4,_64):(_76800,_768,_64,_1)");
    /// let tile = keys.slice(&shape!((1, _, 3, _)))?.local_tile(&tile!((10, 64)), &shape!((2, 0)))?;
    /// assert_eq!(tile.layout().to_string(), "(_10,_64):(_768,_1)");
    /// assert_eq!(tile.composition(&layout!(64:10))?.layout().to_string(), "_64:_1"); // a row of the tile
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// [`reshape`](Self::reshape) and [`narrow`](Self::narrow) need no layout:
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor};
    ///
    /// let stream = Device::auto().stream()?;
    /// let (sequences, tokens, heads, features) = (2, 5, 3, 16);
    /// // A row for each token: all heads of queries, then keys and values of one head.
    /// let qkv = DeviceTensor::<f32>::zeroed(&stream, [sequences * tokens, (heads + 2) * features])?;
    /// let all = qkv.tensor().reshape([sequences, tokens, heads + 2, features])?;
    /// let (queries, keys) = (all.narrow(2, ..heads)?, all.narrow(2, heads..=heads)?);
    /// assert_eq!(queries.layout().to_string(), "(2,5,3,16):(400,80,16,1)");
    /// assert_eq!(keys.layout().to_string(), "(2,5,1,16):(400,80,16,1)");
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    Tensor, View, IntoView, into_view, from |view, first| view.slice(first..), checked |_| Ok(())
}
tensor! {
    /// A tensor on a device, for writing. No two coordinates have the same element.
    TensorMut, ViewMut, IntoViewMut, into_view_mut, from |view, first| Ok(view.split_at(first)?.1),
    checked Leaves::are_disjoint
}

impl<T: DeviceData> Clone for Tensor<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: DeviceData> Copy for Tensor<'_, T> {}

impl<T: DeviceData> TensorMut<'_, T> {
    /// The same tensor, borrowed for less long.
    pub fn reborrow(&mut self) -> TensorMut<'_, T> {
        TensorMut {
            view: self.view.reborrow(),
            layout: self.layout,
        }
    }

    /// The same tensor, for reading.
    pub fn tensor(&self) -> Tensor<'_, T> {
        Tensor {
            view: self.view.view(),
            layout: self.layout,
        }
    }
}

/// (rows, columns). No layout has an extent of 0.
fn matrix_layout([rows, columns]: [usize; 2], [down, right]: [i64; 2]) -> Result<Layout> {
    if rows == 0 || columns == 0 {
        let layout = format!("({rows},{columns}):({down},{right})");
        let found = "it has no elements; leave it out".to_string();
        return Err(Error::Tensor { layout, found });
    }
    let mode =
        |extent: usize, stride| Layout::leaf(Int::dynamic(extent as i64), Int::dynamic(stride));
    Ok(Layout::concat2(&mode(rows, down), &mode(columns, right)))
}

/// The tensor of a matrix. The modes are rows and columns.
pub(crate) fn of_matrix<T: DeviceData>(matrix: Matrix<'_, T>) -> Result<Tensor<'_, T>> {
    Ok(Tensor {
        layout: matrix_layout([matrix.rows(), matrix.columns()], matrix.strides())?,
        view: matrix.view,
    })
}

/// As [`of_matrix`], for writing.
pub(crate) fn of_matrix_mut<T: DeviceData>(matrix: MatrixMut<'_, T>) -> Result<TensorMut<'_, T>> {
    Ok(TensorMut {
        layout: matrix_layout([matrix.rows(), matrix.columns()], matrix.strides())?,
        view: matrix.view,
    })
}

/// Elements of memory that a layout reaches.
///
/// # Errors
/// If no tensor has the layout.
fn span_of(layout: &Layout) -> Result<usize> {
    let span = Leaves::of(layout).and_then(|leaves| {
        (leaves.span()).ok_or("it reaches beyond 64 bits; use smaller strides".to_string())
    });
    span.map_err(|found| refused(layout, found))
}

/// A tensor that owns its memory.
///
/// ```
/// use cutlet::{Device, DeviceTensor, contract, layout};
///
/// let stream = Device::auto().stream()?;
/// let a = DeviceTensor::upload(&stream, &[1.0f32, 2.0, 3.0, 4.0], [2, 2])?; // by rows
/// let mut c = DeviceTensor::<f32>::zeroed(&stream, layout!((2, 2):(1, 2)))?;
/// contract(&stream, "ij,jk->ik", &a, &a, &mut c)?;
/// assert_eq!(c.download(&stream)?, [7.0, 15.0, 10.0, 22.0]); // by columns
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct DeviceTensor<T: DeviceData> {
    buffer: Buffer<T>,
    layout: Layout,
    /// Whether the layout leaves elements out.
    is_part: bool,
}

impl<T: DeviceData> DeviceTensor<T> {
    /// The tensor of this layout in a buffer. A shape alone lies [by rows](IntoLayout).
    ///
    /// # Errors
    /// As [`TensorMut::new`].
    pub fn new(mut buffer: Buffer<T>, layout: impl IntoLayout) -> Result<Self> {
        let layout = layout.into_layout()?;
        let size = TensorMut::new(&mut buffer, layout)?.size();
        let is_part = size != buffer.len();
        Ok(DeviceTensor {
            buffer,
            layout,
            is_part,
        })
    }

    /// A tensor of zeros. It has as many elements of memory as the layout reaches.
    ///
    /// # Errors
    /// As [`TensorMut::new`], or if there is not so much memory.
    pub fn zeroed(stream: &Stream, layout: impl IntoLayout) -> Result<Self> {
        let layout = layout.into_layout()?;
        Self::new(stream.zeroed::<T>(span_of(&layout)?)?, layout)
    }

    /// A tensor whose element `i`, in the order of memory, is `element(i)`. It has as many elements of memory as the layout
    /// reaches.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let ones = DeviceTensor::from_fn(&stream, [2, 3], |_| bf16::ONE)?;
    /// let numbers = DeviceTensor::from_fn(&stream, [2, 3], |i| i as i32)?; // by rows
    /// assert_eq!(ones.download(&stream)?, [bf16::ONE; 6]);
    /// assert_eq!(numbers.download(&stream)?, [0, 1, 2, 3, 4, 5]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`TensorMut::new`], or if there is not so much memory.
    pub fn from_fn(
        stream: &Stream,
        layout: impl IntoLayout,
        element: impl FnMut(usize) -> T,
    ) -> Result<Self> {
        let layout = layout.into_layout()?;
        let elements: Vec<T> = (0..span_of(&layout)?).map(element).collect();
        Self::upload(stream, &elements, layout)
    }

    /// A tensor of these elements, in the order of memory.
    ///
    /// # Errors
    /// As [`TensorMut::new`], or if there is not so much memory.
    pub fn upload(stream: &Stream, elements: &[T], layout: impl IntoLayout) -> Result<Self> {
        Self::new(stream.upload(elements)?, layout)
    }

    /// Waits for the stream, and returns the elements in the order of memory, those between the layout's as well.
    ///
    /// # Errors
    /// If the stream's work failed, or the stream is being captured.
    pub fn download(&self, stream: &Stream) -> Result<Vec<T>> {
        Ok(stream.download(&self.buffer)?)
    }

    /// As [`download`](Self::download), with each element as another type that has all its values.
    ///
    /// ```
    /// use cutlet::{Device, DeviceTensor, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let x = DeviceTensor::upload(&stream, &[bf16::ONE, bf16::NEG_ONE], [2])?;
    /// assert_eq!(x.download_as::<f64>(&stream)?, [1.0, -1.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`download`](Self::download).
    pub fn download_as<U: From<T>>(&self, stream: &Stream) -> Result<Vec<U>> {
        Ok(self.download(stream)?.into_iter().map(U::from).collect())
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The tensor, for reading.
    pub fn tensor(&self) -> Tensor<'_, T> {
        Tensor {
            view: self.view(),
            layout: self.layout,
        }
    }

    /// The tensor, for writing.
    pub fn tensor_mut(&mut self) -> TensorMut<'_, T> {
        let (view, layout) = self.parts_mut();
        TensorMut {
            view,
            layout: *layout,
        }
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer<T> {
        &self.buffer
    }

    /// The memory alone.
    pub fn into_buffer(self) -> Buffer<T> {
        self.buffer
    }

    /// The elements in the order of memory, those between the layout's as well: a list for operations that read one.
    pub fn view(&self) -> View<'_, T> {
        let view = self.buffer.view();
        if self.is_part { view.relaxed() } else { view }
    }

    /// As [`view`](Self::view), for writing.
    pub fn view_mut(&mut self) -> ViewMut<'_, T> {
        self.parts_mut().0
    }

    /// The memory as operations write it, and the layout.
    pub(crate) fn parts_mut(&mut self) -> (ViewMut<'_, T>, &Layout) {
        let view = self.buffer.view_mut();
        let view = if self.is_part { view.relaxed() } else { view };
        (view, &self.layout)
    }
}
