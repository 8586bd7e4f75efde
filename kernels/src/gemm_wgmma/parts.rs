//! The sum of parts: what follows a GEMM whose tiles' steps were split, so that each part of a tile left sums of its
//! own. They are added in the order of the parts, whoever came first, and go through the epilogue to a C of any type
//! and alignment.

use cutlet_device::hopper::{
    SharedTile, WARPGROUP_SIZE, grid_dependency_wait, launch_dependents, warpgroup_idx,
    warpgroup_thread_idx,
};
use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, SharedMemory, block_idx, instantiate, sync_threads,
};
use cutlet_layout_core::{
    Divisor, E, Engine, Fragment, L, NoSwizzle, Raster, RowMajor, StaticLayout, Tensor,
    ThreadValue, Tv, each, tiles,
};

use super::{Epilogue, Fused, Scale};

/// The tile of C that a warpgroup adds, or all warpgroups of a block together.
type Tile = L!((4, 128):(1@0, 1@1));
/// Which of its sums each thread of a warpgroup adds.
type Threads<const WIDTH: usize> = Tv<L!((32, 4):(4@1, 1@0)), L!(4:1@1), WIDTH>;
/// A thread's sums.
type Values = <Threads<1> as ThreadValue>::Val;
/// Parts that are read at a time, so that their reads overlap.
type Batch = E<16, 1, 0>;

/// Warpgroups of a block.
const WARPGROUPS: u32 = 4;
/// Threads of a block.
const THREADS: u32 = WARPGROUPS * WARPGROUP_SIZE;
/// The tiles of a block whose warpgroups have one each.
type Tiles = L!((16, 128):(1@0, 1@1));
/// Sums of a tile in shared memory, on their way from one warpgroup to another.
type Shelf = SharedTile<f32, L!((4, 128):(128, 1)), NoSwizzle>;
/// Bytes of shared memory of a block: the first warpgroup needs no shelf.
const SHARED: u32 = (WARPGROUPS - 1) * Shelf::BYTES;

/// Extents of C and of the parts.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Parts {
    /// Elements from one row of C to the next.
    pub ldc: i64,
    /// Elements from one row of a part to the next: a multiple of 4.
    pub ld: i64,
    /// Elements from one part to the next.
    pub distance: i64,
    /// Rows of C.
    pub m: i32,
    /// Columns of C.
    pub n: i32,
    /// Parts: at least one.
    pub count: u32,
    /// Not 0 if the warpgroups of a block are together at a tile, each with some of its parts: that
    /// is faster where there are many. Else each has a tile of its own, one below the other.
    pub together: u32,
    /// Which tiles are whose: see [`raster`].
    pub raster: Raster<Divisor>,
    /// Nothing.
    pub padding: u32,
}

/// Which tiles of a C of so many rows and columns are whose, one for each block of the grid; by whether the warpgroups
/// of a block are together.
pub fn raster(extents: [i32; 2], together: bool) -> Raster<Divisor> {
    let tiles = match together {
        true => tiles::<Tile>(extents),
        false => tiles::<Tiles>(extents),
    };
    Raster::planned(tiles, tiles[0])
}

/// The tile of the running warpgroup, or, if they are together, of its block, which has this place.
#[inline(always)]
fn tile_of<E: Engine>(
    tensor: Tensor<E, RowMajor>,
    of_block: (u32, u32),
    together: bool,
) -> Tensor<E, RowMajor> {
    match together {
        true => tensor.local_tile::<Tile>(of_block),
        false => tensor
            .local_tile::<Tiles>(of_block)
            .local_tile::<Tile>((warpgroup_idx(), 0u32)),
    }
}

/// `C = epilogue(Σ parts)`.
///
/// # Safety
/// C and the parts must be as their extents say. Elements of a part that lie in its rows, up to a multiple of 4, are
/// read.
#[inline(always)]
unsafe fn sum<T: Float, Epi: Epilogue>(
    parts: Global<f32>,
    c: GlobalMut<T>,
    extents: Parts,
    epilogue: Epi,
) {
    launch_dependents();
    grid_dependency_wait();
    let Parts {
        ldc,
        ld,
        distance,
        m,
        n,
        count,
        ..
    } = extents;
    let thread = warpgroup_thread_idx();
    let warpgroup = warpgroup_idx();
    let together = extents.together != 0;
    let of_block = extents.raster.tile(block_idx().x);
    let own_parts = match together {
        true => warpgroup.share::<WARPGROUPS>(count),
        false => 0..count,
    };
    // SAFETY: the launcher promises the extents.
    let (to, part) = unsafe {
        let to = tile_of(
            Tensor::new(c, RowMajor::new([m, n], ldc)),
            of_block,
            together,
        );
        let part = |nth: u32| {
            // Beyond the warpgroup's last part there are no rows.
            let rows = if nth < own_parts.end { m } else { 0 };
            let start = parts.offset(i64::from(nth) * distance);
            let part = Tensor::new(start, RowMajor::new([rows, n], ld));
            tile_of(part, of_block, together).partition::<Threads<4>>(thread)
        };
        (to.partition::<Threads<1>>(thread), part)
    };
    let mut sums = Fragment::<f32, Values>::filled(0.0);
    let mut next = own_parts.start;
    while next < own_parts.end {
        let mut batch = [Fragment::<f32, Values>::filled(0.0); Batch::SIZE];
        each::<Batch>(|nth| batch[nth] = part(next + nth as u32).load(0.0));
        each::<Batch>(|nth| sums = sums.map(|v, sum| sum + batch[nth].get(v)));
        next += Batch::SIZE as u32;
    }
    if together {
        let shelves = Shelf::take_ring::<{ WARPGROUPS as usize - 1 }>(&mut SharedMemory::new());
        if !warpgroup.is_first() {
            let shelf = shelves.tile(warpgroup.after(1));
            // SAFETY: each warpgroup has a shelf of its own, which is read after the barrier.
            unsafe { shelf.tensor() }
                .partition::<Threads<4>>(thread)
                .store(&sums);
        }
        sync_threads();
        if !warpgroup.is_first() {
            return;
        }
        for other in 0..WARPGROUPS - 1 {
            // SAFETY: as above.
            let shelf = unsafe { shelves.tile(other).tensor() };
            let more = shelf.partition::<Threads<4>>(thread).load(0.0);
            sums = sums.map(|v, sum| sum + more.get(v));
        }
    }
    let at = |v| to.bound().coordinate(v);
    if epilogue.reads_old() {
        to.update(|v, old| T::from_f32(epilogue.apply(sums.get(v), Some(old.to_f32()), at(v))));
    } else {
        to.store(&sums.map(|v, sum| T::from_f32(epilogue.apply(sum, None, at(v)))));
    }
}

instantiate! {
    /// The sum of parts in bf16.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_bf16(
        parts: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: Parts,
        epilogue: Scale,
    ) = sum::<half::bf16, Scale>;

    /// The sum of parts in f16.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_f16(
        parts: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: Parts,
        epilogue: Scale,
    ) = sum::<half::f16, Scale>;

    /// The sum of parts in bf16, with whatever is fused.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_bf16_fused(
        parts: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: Parts,
        epilogue: Fused<half::bf16>,
    ) = sum::<half::bf16, Fused<half::bf16>>;

    /// The sum of parts in f16, with whatever is fused.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_f16_fused(
        parts: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: Parts,
        epilogue: Fused<half::f16>,
    ) = sum::<half::f16, Fused<half::f16>>;

    /// The sum of parts in f32, with whatever is fused.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_f32_fused(
        parts: Global<f32>,
        c: GlobalMut<f32>,
        extents: Parts,
        epilogue: Fused<f32>,
    ) = sum::<f32, Fused<f32>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grid_has_one_direction_however_long_rows_are() {
        assert_eq!(raster([1, (1 << 30) + 1], false).size(), (1 << 23) + 1);
        assert_eq!(raster([17, 129], false).size(), 4);
        assert_eq!(raster([17, 129], true).size(), 10);
    }
}
