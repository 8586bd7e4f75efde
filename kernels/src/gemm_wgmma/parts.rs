//! The sum of parts: what follows a GEMM that left its sums in the workspace.
//!
//! Where the steps of tiles were split, each part of a tile left sums of its own; here they are
//! added, in the order of the parts whoever came first. They go through the epilogue to a C of any
//! type and alignment.

use cutlet_device::hopper::{
    WARPGROUP_SIZE, grid_dependency_wait, launch_dependents, warpgroup_idx, warpgroup_thread_idx,
};
use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, Shared, SharedMemory, block_idx, instantiate,
    sync_threads,
};
use cutlet_layout_core::{
    E, Fixed, Fragment, L, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, each,
};

use super::{Epilogue, Fused, Scale};

/// The tile of C that a warpgroup adds, or all warpgroups of a block together.
pub type Tile = L!((4, 128):(1@0, 1@1));
/// Which of its sums each thread of a warpgroup adds.
type Threads<const WIDTH: usize> = Tv<L!((32, 4):(4@1, 1@0)), L!(4:1@1), WIDTH>;
/// A thread's sums.
type Values = <Threads<1> as ThreadValue>::Val;
/// Parts that are read at a time, so that their reads overlap.
type Batch = E<16, 1, 0>;

/// Warpgroups of a block.
pub const WARPGROUPS: u32 = 4;
/// Threads of a block.
const THREADS: u32 = WARPGROUPS * WARPGROUP_SIZE;
/// Sums of a tile in shared memory, on their way from one warpgroup to another.
type Shelf = L!((4, 128):(128, 1));
/// Bytes of shared memory of a block: the first warpgroup needs no shelf.
const SHARED: u32 = (WARPGROUPS - 1) * (Shelf::SIZE * size_of::<f32>()) as u32;

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
    /// Parts.
    pub count: u32,
    /// Not 0 if the warpgroups of a block are together at a tile, each with some of its parts: that
    /// is faster where there are many. Else each has a tile of its own, one below the other.
    pub together: u32,
}

/// `C = epilogue(Σ parts)`, by a grid with x along rows, of which there may be more.
/// A `DEPENDENT` one may be launched while the kernel before it ends.
///
/// # Safety
/// C and the parts must be as their extents say; parts have whole tiles.
#[inline(always)]
unsafe fn sum<T: Float, Epi: Epilogue, const DEPENDENT: bool>(
    parts: Global<f32>,
    c: GlobalMut<T>,
    extents: Parts,
    epilogue: Epi,
) {
    if DEPENDENT {
        launch_dependents();
        grid_dependency_wait();
    }
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
    let warpgroup = warpgroup_idx().get();
    let together = extents.together != 0;
    let (row, own_parts) = match together {
        true => (block_idx().x.get(), count.div_ceil(WARPGROUPS)),
        false => (block_idx().x.get() * WARPGROUPS + warpgroup, count),
    };
    let tile = (row, block_idx().y.get());
    let first = match together {
        true => warpgroup * own_parts,
        false => 0,
    };
    let last = count.min(first + own_parts);
    // SAFETY: the launcher promises the extents.
    let (to, part) = unsafe {
        let to = Tensor::new(c, RowMajor::new([m, n], ldc))
            .local_tile::<Tile>(tile)
            .partition::<Threads<1>>(thread);
        let part = |nth: u32| {
            // Beyond the warpgroup's last part there are no rows.
            let rows = if nth < last { m } else { 0 };
            Tensor::new(
                parts.offset(i64::from(nth) * distance),
                RowMajor::new([rows, n], ld),
            )
            .local_tile::<Tile>(tile)
            .partition::<Threads<4>>(thread)
        };
        (to, part)
    };
    let mut sums = Fragment::<f32, Values>::filled(0.0);
    let mut next = first;
    while next < last {
        let mut batch = [Fragment::<f32, Values>::filled(0.0); Batch::SIZE];
        each::<Batch>(|nth| batch[nth] = part(next + nth as u32).load(0.0));
        each::<Batch>(|nth| sums = sums.map(|v, sum| sum + batch[nth].get(v)));
        next += Batch::SIZE as u32;
    }
    if together {
        let shelves: Shared<f32> =
            SharedMemory::new().take((WARPGROUPS - 1) as usize * Shelf::SIZE);
        // SAFETY: each warpgroup has a shelf of its own, and the first one reads them after a
        // barrier.
        let shelf = |other: u32| unsafe {
            let start = shelves.offset(i64::from(other - 1) * Shelf::SIZE as i64);
            Tensor::new(start, Fixed::<Shelf>::new()).partition::<Threads<4>>(thread)
        };
        if warpgroup > 0 {
            shelf(warpgroup).store(&sums);
        }
        sync_threads();
        if warpgroup > 0 {
            return;
        }
        for other in 1..WARPGROUPS {
            let more = shelf(other).load(0.0);
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
    ) = sum::<half::bf16, Scale, true>;

    /// The sum of parts in f16.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_f16(
        parts: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: Parts,
        epilogue: Scale,
    ) = sum::<half::f16, Scale, true>;

    /// The sum of parts in bf16, with whatever is fused.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_bf16_fused(
        parts: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: Parts,
        epilogue: Fused<half::bf16>,
    ) = sum::<half::bf16, Fused<half::bf16>, true>;

    /// The sum of parts in f16, with whatever is fused.
    #[kernel(threads = THREADS, shared = SHARED, arch = "sm_90a")]
    pub unsafe fn sum_parts_f16_fused(
        parts: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: Parts,
        epilogue: Fused<half::f16>,
    ) = sum::<half::f16, Fused<half::f16>, true>;

    /// The sum of parts in f32, with whatever is fused, on any GPU.
    #[kernel(threads = THREADS, shared = SHARED)]
    pub unsafe fn sum_parts_f32_fused(
        parts: Global<f32>,
        c: GlobalMut<f32>,
        extents: Parts,
        epilogue: Fused<f32>,
    ) = sum::<f32, Fused<f32>, false>;
}
