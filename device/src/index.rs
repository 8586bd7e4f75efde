//! Indices of threads, lanes, warps and blocks, and the extents of a launch.
//!
//! The index types have no arithmetic. A layout takes them as coordinates, which keeps index arithmetic out of kernels.

mod arithmetic;
mod thread_idx;

pub use thread_idx::{AnyThreads, ThreadGroup, ThreadIdx, Threads, ThreadsOf, thread_idx};

/// Threads of a warp.
pub const WARP_SIZE: u32 = 32;

macro_rules! index {
    ($(#[$docs:meta])* $name:ident) => {
        $(#[$docs])*
        ///
        /// It has no arithmetic: layouts take it as a coordinate.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(u32);

        impl $name {
            /// The index as a number, for code below layouts.
            #[inline(always)]
            pub const fn get(self) -> u32 {
                self.0
            }

            /// Whether the index is 0, for work that one of them does.
            #[inline(always)]
            pub const fn is_first(self) -> bool {
                self.0 == 0
            }

            /// Whether the index is below `count`, for work that the first ones do.
            #[inline(always)]
            pub const fn is_below(self, count: u32) -> bool {
                self.0 < count
            }

            /// Whether the index is `number`, for work that one of them does, and not the first.
            #[inline(always)]
            pub const fn is(self, number: u32) -> bool {
                self.0 == number
            }
        }
    };
}

pub(crate) use index;

index! {
    /// Index of a thread in its warp, below [`WARP_SIZE`].
    LaneIdx
}
index! {
    /// Index of a warp in its block.
    WarpIdx
}
index! {
    /// Index of a block along one direction of the grid.
    BlockCoord
}
index! {
    /// Index of a block in its cluster.
    ClusterRank
}

impl LaneIdx {
    /// The lanes below this one, a bit each, as in a [`ballot`](crate::ballot).
    #[inline(always)]
    pub const fn lanes_below(self) -> u32 {
        (1 << self.0) - 1
    }

    /// Whether the index has bit `bit`, which tells the two lanes of an exchange apart.
    #[inline(always)]
    pub const fn has_bit(self, bit: u32) -> bool {
        self.0 >> bit & 1 != 0
    }
}

impl BlockCoord {
    /// The index counted from block `first`, which is not above it: for the second of two pieces of work, if the first
    /// one has the blocks before.
    #[inline(always)]
    pub const fn after(self, first: u32) -> Self {
        Self(self.0 - first)
    }

    /// The index of the block that is `count` further on.
    #[inline(always)]
    pub const fn advanced_by(self, count: u32) -> Self {
        Self(self.0 + count)
    }
}

impl ClusterRank {
    /// The index of this block's part, if the cluster divides something into `parts` parts. It is 0 if there is one
    /// part.
    #[inline(always)]
    pub const fn part(self, parts: usize) -> u32 {
        match parts {
            1 => 0,
            _ => self.0,
        }
    }

    /// The block's row in a cluster of `rows` × `columns` blocks. Ranks run along rows.
    #[inline(always)]
    pub const fn row(self, rows: usize, columns: usize) -> u32 {
        match columns {
            1 => self.part(rows),
            _ if rows == 1 => 0,
            _ => self.0 / columns as u32,
        }
    }

    /// The block's column in a cluster of `rows` × `columns` blocks.
    #[inline(always)]
    pub const fn column(self, rows: usize, columns: usize) -> u32 {
        match rows {
            1 => self.part(columns),
            _ if columns == 1 => 0,
            _ => self.0 % columns as u32,
        }
    }
}

/// Index of a block in the grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockIdx {
    /// Along x. Neighbouring blocks along x usually start one after the other.
    pub x: BlockCoord,
    /// Along y.
    pub y: BlockCoord,
    /// Along z.
    pub z: BlockCoord,
}

/// Extents of a block in threads, or of a grid in blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim3 {
    /// Along x.
    pub x: u32,
    /// Along y.
    pub y: u32,
    /// Along z.
    pub z: u32,
}

/// The running thread's index in its warp.
#[inline(always)]
pub fn lane_idx() -> LaneIdx {
    LaneIdx(imp::lane_idx())
}

/// The index of the running thread's warp in its block.
#[inline(always)]
pub fn warp_idx() -> WarpIdx {
    WarpIdx(imp::thread_idx() / WARP_SIZE)
}

/// [`warp_idx`], read from the warp's first lane. The compiler then knows it to be uniform, so branches on it do not
/// diverge. All lanes of the warp must call it.
#[inline(always)]
pub fn warp_idx_sync() -> WarpIdx {
    WarpIdx(crate::shfl(warp_idx().0, 0))
}

/// The running block's index in the grid.
#[inline(always)]
pub fn block_idx() -> BlockIdx {
    let [x, y, z] = imp::block_idx();
    BlockIdx {
        x: BlockCoord(x),
        y: BlockCoord(y),
        z: BlockCoord(z),
    }
}

/// The running block's index in its cluster. It is 0 in launches without clusters.
#[inline(always)]
pub fn cluster_rank() -> ClusterRank {
    ClusterRank(imp::cluster_rank())
}

/// The number of blocks of a cluster. It is 1 in launches without clusters.
#[inline(always)]
pub fn cluster_size() -> u32 {
    imp::cluster_size()
}

/// The multiprocessor that the running block is on. On the CPU, it is the block's index along x.
///
/// Other blocks of the launch may run on the same multiprocessor, at the same time or later. So the index is a hint,
/// and not a unique owner.
#[inline(always)]
pub fn multiprocessor_idx() -> u32 {
    imp::multiprocessor_idx()
}

/// Extents of a block in threads.
#[inline(always)]
pub fn block_dim() -> Dim3 {
    let [x, y, z] = imp::block_dim();
    Dim3 { x, y, z }
}

/// Extents of the grid in blocks.
#[inline(always)]
pub fn grid_dim() -> Dim3 {
    let [x, y, z] = imp::grid_dim();
    Dim3 { x, y, z }
}

#[cfg(target_arch = "nvptx64")]
mod imp {
    use core::arch::{asm, nvptx};

    #[inline(always)]
    pub fn thread_idx() -> u32 {
        // SAFETY: reads a special register.
        unsafe { nvptx::_thread_idx_x() }
    }

    #[inline(always)]
    pub fn lane_idx() -> u32 {
        unsafe extern "C" {
            #[link_name = "llvm.nvvm.read.ptx.sreg.laneid"]
            fn lane_id() -> u32;
        }
        // SAFETY: reads a special register.
        unsafe { lane_id() }
    }

    #[inline(always)]
    pub fn block_idx() -> [u32; 3] {
        // SAFETY: reads special registers.
        unsafe {
            [
                nvptx::_block_idx_x(),
                nvptx::_block_idx_y(),
                nvptx::_block_idx_z(),
            ]
        }
    }

    #[inline(always)]
    pub fn block_dim() -> [u32; 3] {
        // SAFETY: reads special registers.
        unsafe {
            [
                nvptx::_block_dim_x(),
                nvptx::_block_dim_y(),
                nvptx::_block_dim_z(),
            ]
        }
    }

    #[inline(always)]
    pub fn grid_dim() -> [u32; 3] {
        // SAFETY: reads special registers.
        unsafe {
            [
                nvptx::_grid_dim_x(),
                nvptx::_grid_dim_y(),
                nvptx::_grid_dim_z(),
            ]
        }
    }

    #[cfg(target_feature = "sm_90")]
    #[inline(always)]
    pub fn cluster_rank() -> u32 {
        let rank;
        // SAFETY: reads a special register.
        unsafe {
            asm!("mov.u32 {}, %cluster_ctarank;", out(reg32) rank, options(pure, nomem, nostack));
        }
        rank
    }

    #[cfg(target_feature = "sm_90")]
    #[inline(always)]
    pub fn cluster_size() -> u32 {
        let size;
        // SAFETY: reads a special register.
        unsafe {
            asm!("mov.u32 {}, %cluster_nctarank;", out(reg32) size, options(pure, nomem, nostack));
        }
        size
    }

    // Older targets have neither clusters nor these registers.
    #[cfg(not(target_feature = "sm_90"))]
    #[inline(always)]
    pub fn cluster_rank() -> u32 {
        0
    }

    #[cfg(not(target_feature = "sm_90"))]
    #[inline(always)]
    pub fn cluster_size() -> u32 {
        1
    }

    #[inline(always)]
    pub fn multiprocessor_idx() -> u32 {
        let idx;
        // SAFETY: reads a special register. It may change when the block is preempted.
        unsafe { asm!("mov.u32 {}, %smid;", out(reg32) idx, options(nomem, nostack)) };
        idx
    }
}

#[cfg(not(target_arch = "nvptx64"))]
mod imp {
    pub use cutlet_simt::{
        block_dim, block_idx, cluster_rank, cluster_size, grid_dim, lane as lane_idx,
        linear_thread_idx as thread_idx,
    };

    #[track_caller]
    pub fn multiprocessor_idx() -> u32 {
        block_idx()[0]
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec::Vec;

    use super::ClusterRank;

    #[test]
    fn ranks_run_along_the_rows_of_a_cluster() {
        let places = |rows: usize, columns: usize| {
            let ranks = (0..(rows * columns) as u32).map(ClusterRank);
            let places = ranks.map(|it| (it.row(rows, columns), it.column(rows, columns)));
            places.collect::<Vec<_>>()
        };
        assert_eq!(
            places(2, 3),
            [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
        );
        assert_eq!(places(3, 1), [(0, 0), (1, 0), (2, 0)]);
        assert_eq!(places(1, 3), [(0, 0), (0, 1), (0, 2)]);
        // A cluster whose blocks share one tile.
        let alone = ClusterRank(1);
        assert_eq!((alone.row(1, 1), alone.column(1, 1)), (0, 0));
    }
}
