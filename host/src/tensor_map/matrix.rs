//! Tensors as matrices whose tiles TMA copies: a layout of coordinates, and the boxes that it makes of a tile.

use cutlet_device::tiled::TmaTensor;
use cutlet_device::tma::TmaBox;
use cutlet_layout_core::{Basis, CoordinateLayout, Layout};

use super::{MAX_RANK, TensorMapElement, TensorMapSpec};
use crate::{Error, IntoView, Result};

impl TensorMapSpec {
    /// A tensor of these extents, innermost first, without gaps.
    pub fn packed(extents: &[u64]) -> Self {
        let first = extents.first().copied().unwrap_or(0);
        let mut spec = Self {
            rank: 1,
            ..Self::rows(1, first, 0)
        };
        let mut distance = first;
        for &extent in extents.iter().skip(1) {
            spec = spec.stacked(extent, distance);
            distance = distance.saturating_mul(extent);
        }
        spec
    }

    /// Makes the tensor as a matrix for a kernel, and its map: CuTe's `make_tma_copy`. `matrix` is a layout from (row,
    /// column) to coordinates of this tensor, innermost first, which `origin` is added to.
    ///
    /// `tile` is the [`tile_box`](cutlet_device::tile::SharedTile::tile_box) of the tile in shared memory. The map's
    /// box is of the coordinates that the layout's first rows and columns have, as many as `tile` has. It takes every
    /// second element along a dimension in which these rows are two elements apart.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// use cutlet_device::tile::KMajorTile;
    /// use cutlet_device::tiled::TmaTensor;
    /// use cutlet_host::{Device, TensorMapSpec};
    /// use cutlet_layout_core::layout;
    ///
    /// let stream = Device::cpu().stream()?;
    /// // 56×56 pixels with 32 channels each.
    /// let image = stream.zeroed::<f32>(56 * 56 * 32)?;
    /// let memory = TensorMapSpec::packed(&[32, 56, 56]);
    /// // Rows are pixels in tiles of 8×4, columns are channels.
    /// let pixels = layout!((((8, 4), (7, 14)), 32):(((1@1, 1@2), (8@1, 4@2)), 1@0));
    /// type Tile = KMajorTile<f32, 32, 32>;
    /// let tensor: TmaTensor<3, 4, 1> =
    ///     memory.encode_tensor(&image, &pixels, [0; 3], Tile::tile_box(1))?;
    /// assert_eq!(tensor.layout().at(32, 0), [0, 8, 0]);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`encode`](Self::encode). Also if the layout's first rows and columns are no box of the tensor, or `R` is not
    /// the tensor's rank.
    ///
    /// # Panics
    /// As [`CoordinateLayout::new`].
    pub fn encode_tensor<'a, V, const R: usize, const M: usize, const N: usize>(
        &self,
        view: V,
        matrix: &Layout,
        origin: [i32; R],
        tile: TmaBox,
    ) -> Result<TmaTensor<R, M, N>>
    where
        V: IntoView<'a, Element: TensorMapElement>,
    {
        let layout = CoordinateLayout::new(matrix, origin);
        let boxes = first_box::<R>(matrix, tile.extent).filter(|_| R == self.rank);
        let Some(Dimensions { extent, stride }) = boxes else {
            let [line, lines] = tile.extent;
            return Err(Error::BadTensorMap {
                asked: format!(
                    "{matrix} of a tensor of rank {} in boxes of {lines} × {line}",
                    self.rank
                ),
                found: "its first rows and columns are no box of the tensor".to_owned(),
                fix: "begin its modes with leaves that make up the tile, of the tensor's dimensions in ascending order",
            });
        };
        let spec = Self {
            element_stride: stride,
            ..*self
        };
        let boxes = TmaBox {
            extent: std::array::from_fn::<u32, R, _>(|d| extent[d]),
            swizzle_bytes: tile.swizzle_bytes,
        };
        Ok(TmaTensor::new(spec.encode(view, boxes)?, layout))
    }
}

/// A box along each dimension of a tensor: its elements, and the steps between them.
struct Dimensions {
    extent: [u32; MAX_RANK],
    stride: [u32; MAX_RANK],
}

/// The box of a tensor of rank `R` that `lines` lines of `line` elements of a matrix are, at its first row and column.
/// Its elements have the same order in both. `None` if they are no box.
fn first_box<const R: usize>(matrix: &Layout, [line, lines]: [u32; 2]) -> Option<Dimensions> {
    let mut boxes = Dimensions {
        extent: [1; MAX_RANK],
        stride: [1; MAX_RANK],
    };
    let (rows, columns) = (matrix.mode(0), matrix.mode(1));
    let is_k_major = columns.leaf_stride(0).basis() == Basis::new(0);
    let modes = match is_k_major {
        true => [columns, rows],
        false => [rows, columns],
    };
    // A box's elements are in the order of the dimensions.
    let mut next_dimension = 0;
    for (mode, count) in modes.iter().zip([line, lines]) {
        let mut rest = i64::from(count);
        for n in 0..mode.num_leaves() {
            let is_last = n + 1 == mode.num_leaves();
            let (extent, stride) = (mode.leaf_shape(n).value(), mode.leaf_stride(n));
            let taken = if is_last { rest } else { rest.min(extent) };
            if rest % taken != 0 || (!is_last && extent % taken != 0) {
                return None;
            }
            if taken > 1 {
                let d = (next_dimension..R).find(|&d| stride.component(d) > 0)?;
                boxes.extent[d] = u32::try_from(taken).ok()?;
                boxes.stride[d] = u32::try_from(stride.value()).ok()?;
                next_dimension = d + 1;
            }
            rest /= taken;
        }
    }
    Some(boxes)
}
