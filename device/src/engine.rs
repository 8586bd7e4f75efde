//! `cutlet-layout-core`'s traits for this crate's types: pointers are engines of tensors, and indices are those of
//! threads and tiles.

#[cfg(not(target_arch = "nvptx64"))]
use cutlet_layout_core::Line;
use cutlet_layout_core::{Engine, EngineMut, ThreadIndex, TileIndex};

use crate::{
    BlockCoord, ClusterRank, DeviceData, Global, GlobalMut, LaneIdx, Shared, WARP_SIZE, WarpIdx,
};

macro_rules! engine {
    ($pointer:ident) => {
        impl<T: DeviceData> Engine for $pointer<T> {
            type Element = T;

            #[inline(always)]
            fn offset(self, index: i64) -> Self {
                self.offset(index)
            }

            #[cfg(not(target_arch = "nvptx64"))]
            fn attribute_to(self, line: Line) -> Line {
                cutlet_simt::attribute_to(line)
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn load(self, index: i64) -> T {
                // SAFETY: as promised by the caller.
                unsafe { self.load(index) }
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn load_vector<const N: usize>(self, index: i64) -> [T; N] {
                // SAFETY: as promised by the caller.
                unsafe { self.load_vec(index) }
            }
        }
    };
}
engine!(Global);
engine!(GlobalMut);
engine!(Shared);

macro_rules! engine_mut {
    ($pointer:ident) => {
        impl<T: DeviceData> EngineMut for $pointer<T> {
            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn store(self, index: i64, value: T) {
                // SAFETY: as promised by the caller.
                unsafe { self.store(index, value) };
            }

            #[inline(always)]
            #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
            unsafe fn store_vector<const N: usize>(self, index: i64, values: [T; N]) {
                // SAFETY: as promised by the caller.
                unsafe { self.store_vec(index, values) };
            }
        }
    };
}
engine_mut!(GlobalMut);
engine_mut!(Shared);

impl ThreadIndex for LaneIdx {
    const THREADS: Option<u32> = Some(WARP_SIZE);

    #[inline(always)]
    fn index(self) -> u32 {
        self.get()
    }
}

macro_rules! tile_index {
    ($($index:ident),+) => {$(
        impl TileIndex for $index {
            #[inline(always)]
            fn index(self) -> u32 {
                self.get()
            }
        }
    )+};
}
tile_index!(BlockCoord, ClusterRank, WarpIdx);
