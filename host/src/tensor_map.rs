//! Tensor maps: descriptions of tensors in buffers, for TMA.

mod matrix;

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2, MixedF8};
use cutlet_device::tma::{TensorMap, TmaBox};
use cutlet_layout_core::TensorMapShape;
use cutlet_simt::TensorMapModel;
use half::{bf16, f16};

use crate::device::Place;
use crate::driver::check;
use crate::{Error, IntoView, Result, View};

/// An element type that TMA can move: a number of 1, 2, 4 or 8 bytes, but no type of one's own.
///
/// ```compile_fail,E0277
/// #[derive(Clone, Copy, cutlet_device::DeviceData)]
/// #[repr(C)]
/// struct Pair([f32; 2]);
/// impl cutlet_host::TensorMapElement for Pair {}
/// ```
pub trait TensorMapElement: DeviceData + sealed::DataType {}

mod sealed {
    use super::CUtensorMapDataType;

    /// The driver's name of an element type. Of a wrong size, a map would reach beyond its view.
    pub trait DataType {
        const DATA_TYPE: CUtensorMapDataType;
        /// Its name if loads round elements to tf32.
        const AS_TF32: Option<CUtensorMapDataType> = None;
    }
}

macro_rules! element {
    ($($type:ty: $data_type:ident $(, rounded $as_tf32:ident)?;)*) => {$(
        impl sealed::DataType for $type {
            const DATA_TYPE: CUtensorMapDataType = CUtensorMapDataType::$data_type;
            $(const AS_TF32: Option<CUtensorMapDataType> = Some(CUtensorMapDataType::$as_tf32);)?
        }

        impl TensorMapElement for $type {}
    )*};
}

element! {
    u8: CU_TENSOR_MAP_DATA_TYPE_UINT8;
    i8: CU_TENSOR_MAP_DATA_TYPE_UINT8;
    F8E4M3: CU_TENSOR_MAP_DATA_TYPE_UINT8;
    F8E5M2: CU_TENSOR_MAP_DATA_TYPE_UINT8;
    MixedF8<F8E4M3, F8E5M2>: CU_TENSOR_MAP_DATA_TYPE_UINT8;
    MixedF8<F8E5M2, F8E4M3>: CU_TENSOR_MAP_DATA_TYPE_UINT8;
    u16: CU_TENSOR_MAP_DATA_TYPE_UINT16;
    f16: CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    bf16: CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    u32: CU_TENSOR_MAP_DATA_TYPE_UINT32;
    i32: CU_TENSOR_MAP_DATA_TYPE_INT32;
    f32: CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rounded CU_TENSOR_MAP_DATA_TYPE_TFLOAT32;
    u64: CU_TENSOR_MAP_DATA_TYPE_UINT64;
    i64: CU_TENSOR_MAP_DATA_TYPE_INT64;
    f64: CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
}

/// The granularity in which the L2 cache fetches a box's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum L2Promotion {
    /// Only the sectors that the lines touch.
    None,
    /// Aligned groups of 64 bytes.
    Bytes64,
    /// Aligned groups of 128 bytes.
    #[default]
    Bytes128,
    /// Aligned groups of 256 bytes.
    Bytes256,
}

const MAX_RANK: usize = TensorMapShape::MAX_RANK;

/// The shape of a tensor for a [`TensorMap`]: a matrix with rows of consecutive elements, or a stack
/// of such matrices, or a stack of stacks, up to rank 5.
///
/// ```
/// # fn main() -> cutlet_host::Result<()> {
/// use cutlet_device::tile::KMajorTile;
/// use cutlet_host::{Device, TensorMapSpec};
///
/// let stream = Device::cpu().stream()?;
/// let a = stream.zeroed::<f32>(100 * 64)?;
/// // 100 rows of 60 elements, 64 apart, moved in tiles of 32 rows by 32.
/// type Tile = KMajorTile<f32, 32, 32>;
/// let map = TensorMapSpec::rows(100, 60, 64).encode(&a, Tile::tile_box(1))?;
/// # let _ = map;
///
/// // Rows must begin at multiples of 16 bytes.
/// let error = TensorMapSpec::rows(100, 60, 63).encode(&a, Tile::tile_box(1)).unwrap_err();
/// assert!(error.to_string().contains("rows are 252 bytes apart"));
/// # Ok(()) }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TensorMapSpec {
    /// It may be more than [`MAX_RANK`]. Then `encode` fails.
    rank: usize,
    /// Elements along each dimension, innermost first; 1 beyond the rank.
    extent: [u64; MAX_RANK],
    /// Elements from one index to the next along dimensions 1 to 4.
    stride: [u64; MAX_RANK - 1],
    /// From one element of a box to the next along each dimension.
    element_stride: [u32; MAX_RANK],
    promotion: L2Promotion,
    as_tf32: bool,
}

impl TensorMapSpec {
    /// `rows` rows of `columns` consecutive elements, `ld` elements apart.
    pub const fn rows(rows: u64, columns: u64, ld: u64) -> Self {
        TensorMapSpec {
            rank: 2,
            extent: [columns, rows, 1, 1, 1],
            stride: [ld, 0, 0, 0],
            element_stride: [1; MAX_RANK],
            promotion: L2Promotion::Bytes128,
            as_tf32: false,
        }
    }

    /// `count` such tensors, `distance` elements apart: a tensor with one more dimension, the
    /// outermost. A matrix becomes a tensor of rank 3.
    ///
    /// The distance may be less than a row's: dimensions need not lie in memory in their order.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// use cutlet_device::tma::TmaBox;
    /// use cutlet_host::{Device, TensorMapSpec};
    ///
    /// let (batch, positions, heads, width) = (2, 100, 3, 64);
    /// let stream = Device::cpu().stream()?;
    /// // The heads of a position lie side by side.
    /// let keys = stream.zeroed::<f32>(batch * positions * heads * width)?;
    /// let [batch, positions, heads, width] = [batch, positions, heads, width].map(|n| n as u64);
    ///
    /// let ld = heads * width;
    /// let spec = TensorMapSpec::rows(positions, width, ld)
    ///     .stacked(heads, width)
    ///     .stacked(batch, positions * ld);
    /// // Coordinates are [width, position, head, batch]. A box has 8 positions of 2 heads.
    /// let boxes = TmaBox { extent: [32, 8, 2], swizzle_bytes: 128 };
    /// let map = spec.encode(&keys, boxes)?;
    /// # let _ = map;
    /// # Ok(()) }
    /// ```
    pub const fn stacked(self, count: u64, distance: u64) -> Self {
        let Self {
            rank,
            mut extent,
            mut stride,
            ..
        } = self;
        if rank < MAX_RANK {
            extent[rank] = count;
            stride[rank - 1] = distance;
        }
        TensorMapSpec {
            rank: rank + 1,
            extent,
            stride,
            ..self
        }
    }

    /// The same tensor, of which boxes take every `stride`th element along a dimension: CUDA's `elementStrides`. The
    /// dimension is counted from the innermost, along which boxes take all elements. The coordinate of a box stays that
    /// of its first element. Elements before and after the tensor load as zero here, too.
    ///
    /// ```
    /// # fn main() -> cutlet_host::Result<()> {
    /// use cutlet_device::tma::TmaBox;
    /// use cutlet_host::{Device, TensorMapSpec};
    ///
    /// let stream = Device::cpu().stream()?;
    /// let image = stream.zeroed::<f32>(100 * 200 * 32)?;
    /// // Every second pixel of every third line, in boxes of 4 lines with 8 pixels of 32 channels.
    /// let spec = TensorMapSpec::rows(200, 32, 32)
    ///     .stacked(100, 200 * 32)
    ///     .element_stride(1, 2)
    ///     .element_stride(2, 3);
    /// let boxes = TmaBox { extent: [32, 8, 4], swizzle_bytes: 128 };
    /// let map = spec.encode(&image, boxes)?;
    /// # let _ = map;
    ///
    /// let error = spec.element_stride(2, 9).encode(&image, boxes).unwrap_err();
    /// assert!(error.to_string().contains("an element stride of 9 along dimension 2"));
    /// # Ok(()) }
    /// ```
    ///
    /// # Panics
    /// If TMA has no such dimension: there are 5.
    pub const fn element_stride(self, dimension: usize, stride: u32) -> Self {
        assert!(
            dimension < MAX_RANK,
            "element_stride: a tensor map has dimensions 0 to 4"
        );
        let mut element_stride = self.element_stride;
        element_stride[dimension] = stride;
        TensorMapSpec {
            element_stride,
            ..self
        }
    }

    /// The same tensor with another granularity of L2 fetches. The default is 128 bytes.
    pub const fn promotion(self, promotion: L2Promotion) -> Self {
        TensorMapSpec { promotion, ..self }
    }

    /// The same tensor, whose elements are `f32`, and are rounded to tf32 as they are loaded. `wgmma` leaves out the bits
    /// that tf32 does not have, which rounds towards zero.
    pub const fn as_tf32(self) -> Self {
        TensorMapSpec {
            as_tf32: true,
            ..self
        }
    }

    /// Makes the map of this tensor for boxes of `tile`. The tensor begins at the first element of
    /// `view`. A box has one element along each dimension that `tile` does not have.
    ///
    /// Elements of a box outside the tensor load as zero and are not stored. One exception: stores fill
    /// the innermost dimension up to a multiple of 16 bytes.
    ///
    /// The map holds the address, not the buffer. Keep the buffer alive while kernels use the map. If
    /// a kernel stores through the map, do not read the buffer meanwhile.
    ///
    /// # Errors
    /// [`Error::BadTensorMap`] if TMA cannot move boxes of this tensor. The address and the strides in
    /// bytes must be multiples of 16, and a box has up to 256 elements in a direction. The tensor has at
    /// most 5 dimensions, and the box has no more than the tensor. Also if the view is shorter than the
    /// tensor, or the device has no TMA.
    pub fn encode<'a, V, const R: usize>(&self, view: V, tile: TmaBox<R>) -> Result<TensorMap>
    where
        V: IntoView<'a, Element: TensorMapElement>,
    {
        let view = view.into_view();
        let shape = self.shape(&tile, size_of::<V::Element>() as u64);
        let fault = shape.faults(view.address(), view.len() as u64).next();
        if let Some(fault) = fault {
            return Err(bad(&view, &shape, fault.to_string(), fault.fix()));
        }
        if self.as_tf32 && <V::Element as sealed::DataType>::AS_TF32.is_none() {
            let found = "its elements are not f32, and tf32 has f32's exponents".to_string();
            return Err(bad(&view, &shape, found, "leave out as_tf32"));
        }
        match view.device().place() {
            Place::Cpu => Ok(encode_for_cpu(&view, &shape, self.as_tf32)),
            Place::Gpu(gpu) if gpu.capability < (9, 0) => Err(bad(
                &view,
                &shape,
                format!("{} has no TMA", view.device().name()),
                "use a kernel without tensor maps (TMA needs compute capability 9.0)",
            )),
            Place::Gpu(_) => encode_for_gpu(&view, &shape, self.promotion, self.as_tf32),
        }
    }

    fn shape<const R: usize>(&self, tile: &TmaBox<R>, element_bytes: u64) -> TensorMapShape {
        let mut box_extent = [1; MAX_RANK];
        for (to, from) in box_extent.iter_mut().zip(tile.extent) {
            *to = from;
        }
        TensorMapShape {
            rank: self.rank,
            extent: self.extent,
            stride: self.stride,
            element_bytes,
            box_rank: R,
            box_extent,
            element_stride: self.element_stride,
            swizzle_bytes: tile.swizzle_bytes,
        }
    }
}

fn bad<T: TensorMapElement>(
    view: &View<'_, T>,
    shape: &TensorMapShape,
    found: String,
    fix: &'static str,
) -> Error {
    Error::BadTensorMap {
        asked: format!("{shape} on {}", view.device().name()),
        found,
        fix,
    }
}

fn encode_for_cpu<T: TensorMapElement>(
    view: &View<'_, T>,
    shape: &TensorMapShape,
    rounds_to_tf32: bool,
) -> TensorMap {
    let model = TensorMapModel {
        address: view.address(),
        element_bytes: shape.element_bytes as u32,
        rank: shape.rank as u32,
        extent: shape.extent,
        stride: shape.stride.map(|stride| stride * shape.element_bytes),
        box_extent: shape.box_extent,
        element_stride: shape.element_stride.map(|stride| stride as u8),
        span: shape.swizzle_bytes,
        rounds_to_tf32,
    };
    TensorMap::from_words(model.encode())
}

fn encode_for_gpu<T: TensorMapElement>(
    view: &View<'_, T>,
    shape: &TensorMapShape,
    promotion: L2Promotion,
    as_tf32: bool,
) -> Result<TensorMap> {
    let data_type = match T::AS_TF32 {
        Some(as_tf32_type) if as_tf32 => as_tf32_type,
        _ => T::DATA_TYPE,
    };
    let strides = shape.stride.map(|stride| stride * shape.element_bytes);
    let swizzle = match shape.swizzle_bytes {
        16 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
        64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        _ => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    };
    let promotion = match promotion {
        L2Promotion::None => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
        L2Promotion::Bytes64 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
        L2Promotion::Bytes128 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
        L2Promotion::Bytes256 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
    };
    // The driver counts the elements that a box steps over, too.
    let box_extent: [u32; MAX_RANK] =
        std::array::from_fn(|d| shape.box_extent[d] * shape.element_stride[d]);
    let mut map = CUtensorMap { opaque: [0; 16] };
    // SAFETY: the arrays have `rank` extents and strides or more. The driver writes one map, and does not
    // access the tensor.
    check("making a tensor map", unsafe {
        sys::cuTensorMapEncodeTiled(
            &mut map,
            data_type,
            shape.rank as u32,
            std::ptr::with_exposed_provenance_mut(view.address() as usize),
            shape.extent.as_ptr(),
            strides.as_ptr(),
            box_extent.as_ptr(),
            shape.element_stride.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            promotion,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    })?;
    Ok(TensorMap::from_words(map.opaque))
}
