//! Tensor maps: descriptions of tensors in buffers, for TMA.

use cudarc::driver::sys::{
    self, CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave,
    CUtensorMapL2promotion, CUtensorMapSwizzle,
};
use cutlet_device::DeviceData;
use cutlet_device::fp8::{F8E4M3, F8E5M2};
use cutlet_device::tma::{TensorMap, TmaBox};
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
    }
}

macro_rules! element {
    ($($type:ty: $data_type:ident,)*) => {$(
        impl sealed::DataType for $type {
            const DATA_TYPE: CUtensorMapDataType = CUtensorMapDataType::$data_type;
        }

        impl TensorMapElement for $type {}
    )*};
}

element! {
    u8: CU_TENSOR_MAP_DATA_TYPE_UINT8,
    i8: CU_TENSOR_MAP_DATA_TYPE_UINT8,
    F8E4M3: CU_TENSOR_MAP_DATA_TYPE_UINT8,
    F8E5M2: CU_TENSOR_MAP_DATA_TYPE_UINT8,
    u16: CU_TENSOR_MAP_DATA_TYPE_UINT16,
    f16: CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    bf16: CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    u32: CU_TENSOR_MAP_DATA_TYPE_UINT32,
    i32: CU_TENSOR_MAP_DATA_TYPE_INT32,
    f32: CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    u64: CU_TENSOR_MAP_DATA_TYPE_UINT64,
    i64: CU_TENSOR_MAP_DATA_TYPE_INT64,
    f64: CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
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

/// The shape of a tensor for a [`TensorMap`]: a matrix with rows of consecutive elements, or a stack
/// of such matrices.
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
    rank: usize,
    /// Elements along each dimension, innermost first.
    extent: [u64; 3],
    /// Elements from one index to the next along dimensions 1 and 2.
    stride: [u64; 2],
    promotion: L2Promotion,
}

impl TensorMapSpec {
    /// `rows` rows of `columns` consecutive elements, `ld` elements apart.
    pub const fn rows(rows: u64, columns: u64, ld: u64) -> Self {
        TensorMapSpec {
            rank: 2,
            extent: [columns, rows, 1],
            stride: [ld, 0],
            promotion: L2Promotion::Bytes128,
        }
    }

    /// `count` such matrices, `distance` elements apart: a tensor of rank 3.
    pub const fn stacked(self, count: u64, distance: u64) -> Self {
        let Self { extent, stride, .. } = self;
        TensorMapSpec {
            rank: 3,
            extent: [extent[0], extent[1], count],
            stride: [stride[0], distance],
            ..self
        }
    }

    /// The same tensor with another granularity of L2 fetches. The default is 128 bytes.
    pub const fn promotion(self, promotion: L2Promotion) -> Self {
        TensorMapSpec { promotion, ..self }
    }

    /// Makes the map of this tensor for boxes of `tile`. The tensor begins at the first element of
    /// `view`. Elements of a box outside the tensor load as zero and are not stored. One exception:
    /// stores fill the innermost dimension up to a multiple of 16 bytes.
    ///
    /// The map holds the address, not the buffer. Keep the buffer alive while kernels use the map. If
    /// a kernel stores through the map, do not read the buffer meanwhile.
    ///
    /// # Errors
    /// [`Error::BadTensorMap`] if TMA cannot move boxes of this tensor. The address and the strides in
    /// bytes must be multiples of 16, and a box has up to 256 elements in a direction. Also if the view
    /// is shorter than the tensor, or the device has no TMA.
    pub fn encode<'a, V>(&self, view: V, tile: TmaBox) -> Result<TensorMap>
    where
        V: IntoView<'a, Element: TensorMapElement>,
    {
        let view = view.into_view();
        self.check(&view, tile)?;
        match view.device().place() {
            Place::Cpu => Ok(self.encode_for_cpu(&view, tile)),
            Place::Gpu(gpu) if gpu.capability < (9, 0) => Err(self.bad(
                &view,
                tile,
                format!("{} has no TMA", view.device().name()),
                "use a kernel without tensor maps (TMA needs compute capability 9.0)",
            )),
            Place::Gpu(_) => self.encode_for_gpu(&view, tile),
        }
    }

    fn check<T: TensorMapElement>(&self, view: &View<'_, T>, tile: TmaBox) -> Result<()> {
        let element = size_of::<T>() as u64;
        let bad = |found: String, fix| Err(self.bad(view, tile, found, fix));
        if let Some(d) = (0..self.rank).find(|&d| !(1..=1 << 32).contains(&self.extent[d])) {
            return bad(
                format!("dimension {d} has {} elements", self.extent[d]),
                "use extents from 1 to 2^32, and skip the launch for an empty tensor",
            );
        }
        let last = (1..self.rank).try_fold(self.extent[0] - 1, |last, d| {
            let steps = (self.extent[d] - 1).checked_mul(self.stride[d - 1])?;
            last.checked_add(steps)
        });
        if last.is_none_or(|last| last >= view.len() as u64) {
            return bad(
                format!(
                    "it reaches beyond the {} elements of the buffer",
                    view.len()
                ),
                "use smaller extents or strides, or a larger buffer",
            );
        }
        const ALIGN: &str = "TMA needs multiples of 16 bytes: use a kernel that loads without TMA, \
            or copy the tensor to aligned rows";
        if !view.address().is_multiple_of(16) {
            return bad(format!("its address is {:#x}", view.address()), ALIGN);
        }
        for (d, what) in [(0, "rows"), (1, "matrices")]
            .into_iter()
            .take(self.rank - 1)
        {
            let bytes = self.stride[d].saturating_mul(element);
            if !bytes.is_multiple_of(16) {
                return bad(format!("its {what} are {bytes} bytes apart"), ALIGN);
            }
            if bytes >= 1 << 40 {
                return bad(
                    format!("its {what} are {bytes} bytes apart"),
                    "TMA needs less than 2^40 bytes: use a kernel that loads without TMA",
                );
            }
        }
        let line = u64::from(tile.extent[0]) * element;
        if tile.extent.iter().any(|extent| !(1..=256).contains(extent)) {
            return bad(
                "the box is too large, or empty".to_string(),
                "use boxes of 1 to 256 elements in each direction, several for a larger tile",
            );
        }
        if !matches!(tile.swizzle_bytes, 16 | 32 | 64 | 128)
            || !line.is_multiple_of(16)
            || (tile.swizzle_bytes > 16 && line != u64::from(tile.swizzle_bytes))
        {
            return bad(
                format!("a line of the box has {line} bytes"),
                "use lines of a multiple of 16 bytes, or of 32, 64 or 128 with a swizzle of that span",
            );
        }
        Ok(())
    }

    fn bad<T: TensorMapElement>(
        &self,
        view: &View<'_, T>,
        tile: TmaBox,
        found: String,
        fix: &'static str,
    ) -> Error {
        let [columns, rows, count] = self.extent;
        let stack = match self.rank {
            2 => String::new(),
            _ => format!("{count} × "),
        };
        Error::BadTensorMap {
            asked: format!(
                "a tensor map of {stack}{rows} × {columns} elements of {} bytes on {} in boxes of {} × {}",
                size_of::<T>(),
                view.device().name(),
                tile.extent[1],
                tile.extent[0],
            ),
            found,
            fix,
        }
    }

    fn encode_for_cpu<T: TensorMapElement>(&self, view: &View<'_, T>, tile: TmaBox) -> TensorMap {
        let element = size_of::<T>() as u64;
        let model = TensorMapModel {
            address: view.address(),
            element_bytes: element as u32,
            rank: self.rank as u32,
            extent: self.extent,
            stride: self.stride.map(|stride| stride * element),
            box_extent: [tile.extent[0], tile.extent[1], 1],
            span: tile.swizzle_bytes,
        };
        TensorMap::from_words(model.encode())
    }

    fn encode_for_gpu<T: TensorMapElement>(
        &self,
        view: &View<'_, T>,
        tile: TmaBox,
    ) -> Result<TensorMap> {
        let strides = self.stride.map(|stride| stride * size_of::<T>() as u64);
        let box_extent = [tile.extent[0], tile.extent[1], 1];
        let swizzle = match tile.swizzle_bytes {
            16 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            _ => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        };
        let promotion = match self.promotion {
            L2Promotion::None => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_NONE,
            L2Promotion::Bytes64 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
            L2Promotion::Bytes128 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            L2Promotion::Bytes256 => CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        };
        let mut map = CUtensorMap { opaque: [0; 16] };
        // SAFETY: the arrays have `rank` extents and strides or more. The driver writes one map, and does not
        // access the tensor.
        check("making a tensor map", unsafe {
            sys::cuTensorMapEncodeTiled(
                &mut map,
                T::DATA_TYPE,
                self.rank as u32,
                std::ptr::with_exposed_provenance_mut(view.address() as usize),
                self.extent.as_ptr(),
                strides.as_ptr(),
                box_extent.as_ptr(),
                [1; 3].as_ptr(),
                CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                promotion,
                CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        })?;
        Ok(TensorMap::from_words(map.opaque))
    }
}
