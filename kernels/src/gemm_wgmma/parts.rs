//! The sum of parts: what follows a GEMM that left its sums in the workspace.
//!
//! Where the steps of tiles were split, each part of a tile left sums of its own; here they are
//! added, in the order of the parts whoever came first. They go through the epilogue to a C of any
//! type and alignment.

use cutlet_device::hopper::{grid_dependency_wait, launch_dependents};
use cutlet_device::{DeviceData, Float, Global, GlobalMut, block_idx, instantiate, thread_idx};
use cutlet_layout_core::{E, Fragment, L, RowMajor, Tensor, ThreadValue, Tv, each};

use super::{Epilogue, Fused, Scale};

/// The tile of C of a block.
pub type Tile = L!((2, 128):(1@0, 1@1));
/// Who adds what of it.
type Threads<const WIDTH: usize> = Tv<L!((32, 2):(4@1, 1@0)), L!(4:1@1), WIDTH>;
/// A thread's sums.
type Values = <Threads<1> as ThreadValue>::Val;
/// Parts that are read at a time, so that their reads overlap.
type Group = E<8, 1, 0>;

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
    /// Makes the size a multiple of the alignment.
    pub padding: u32,
}

/// `C = epilogue(Σ parts)`, one tile a block, the grid's x along rows, of which there may be more.
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
    let tile = (block_idx().x, block_idx().y);
    // SAFETY: the launcher promises the extents.
    let (to, part) = unsafe {
        let to = Tensor::new(c, RowMajor::new([m, n], ldc))
            .local_tile::<Tile>(tile)
            .partition::<Threads<1>>(thread_idx());
        let part = |nth: u32| {
            // Beyond the last part no rows exist.
            let rows = if nth < count { m } else { 0 };
            Tensor::new(
                parts.offset(i64::from(nth) * distance),
                RowMajor::new([rows, n], ld),
            )
            .local_tile::<Tile>(tile)
            .partition::<Threads<4>>(thread_idx())
        };
        (to, part)
    };
    let mut sums = Fragment::<f32, Values>::filled(0.0);
    let mut first = 0;
    while first < count {
        let mut group = [Fragment::<f32, Values>::filled(0.0); 8];
        each::<Group>(|nth| group[nth] = part(first + nth as u32).load(0.0));
        each::<Group>(|nth| sums = sums.map(|v, sum| sum + group[nth].get(v)));
        first += 8;
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
    #[kernel(threads = 64, arch = "sm_90a")]
    pub unsafe fn sum_parts_bf16(
        parts: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: Parts,
        epilogue: Scale,
    ) = sum::<half::bf16, Scale, true>;

    /// The sum of parts in f16.
    #[kernel(threads = 64, arch = "sm_90a")]
    pub unsafe fn sum_parts_f16(
        parts: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: Parts,
        epilogue: Scale,
    ) = sum::<half::f16, Scale, true>;

    /// The sum of parts in bf16, with whatever is fused.
    #[kernel(threads = 64, arch = "sm_90a")]
    pub unsafe fn sum_parts_bf16_fused(
        parts: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: Parts,
        epilogue: Fused<half::bf16>,
    ) = sum::<half::bf16, Fused<half::bf16>, true>;

    /// The sum of parts in f16, with whatever is fused.
    #[kernel(threads = 64, arch = "sm_90a")]
    pub unsafe fn sum_parts_f16_fused(
        parts: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: Parts,
        epilogue: Fused<half::f16>,
    ) = sum::<half::f16, Fused<half::f16>, true>;

    /// The sum of parts in f32, with whatever is fused, on any GPU.
    #[kernel(threads = 64)]
    pub unsafe fn sum_parts_f32_fused(
        parts: Global<f32>,
        c: GlobalMut<f32>,
        extents: Parts,
        epilogue: Fused<f32>,
    ) = sum::<f32, Fused<f32>, false>;
}
