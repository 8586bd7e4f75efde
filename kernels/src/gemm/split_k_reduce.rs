//! The split-K reduction: adds the partials of all splits of a GEMM, in their order, applies the epilogue, and writes a
//! C of any type and alignment.

use core::marker::PhantomData;

use cutlet_device::collective::{Stages, TileRing};
use cutlet_device::warpgroup::{WARPGROUP_SIZE, warpgroup_idx, warpgroup_thread_idx};
use cutlet_device::{
    DeviceData, Global, GlobalMut, block_idx, grid_dependency_wait, instantiate, launch_dependents,
    sync_threads,
};
use cutlet_layout_core::{
    AccessWidth, AnyStrides, Divisor, E, Engine, Fragment, FragmentLayout, L, MatrixInner,
    NoSwizzle, Raster, RowMajor, StaticLayout, Tensor, ThreadValue, Width, each, tiles,
};

use super::epilogue::{Accumulator, ElementC, Epilogue, FusedWithErf, Scale};

/// The tile of C that one warpgroup reduces, or all cooperative warpgroups of a block.
type Tile = L!((4, 128):(1@0, 1@1));
/// Thread-value layout of the tile, for a warpgroup.
#[derive(Clone, Copy)]
struct Threads<W>(PhantomData<W>);

impl<W: AccessWidth> ThreadValue for Threads<W> {
    type Thr = L!((32, 4):(4@1, 1@0));
    type Val = Values;
    type Width = W;
}

/// A thread's elements.
type Values = L!(4:1@1);
/// Accesses to them, of accumulators.
type Fours<Acc> = <Acc as Accumulator>::Fours;

/// An accumulator of which a thread has the reads of several splits in flight at a time.
trait Batched: Accumulator {
    /// These splits.
    type Batch: FragmentLayout;
}

macro_rules! batched {
    ($($acc:ty: $splits:literal;)+) => {$(
        impl Batched for $acc {
            type Batch = E<$splits, 1, 0>;
        }
    )+};
}
/// The splits of a batch.
type Splits<T> = <<T as ElementC>::Acc as Batched>::Batch;
/// A thread's partials of these splits.
type Batch<T> = Fragment<Fragment<<T as ElementC>::Acc, Values>, Splits<T>>;

batched! {
    f32: 16;
    i32: 16;
    f64: 8;
}

/// Warpgroups of a block.
const WARPGROUPS: u32 = 4;
/// Threads of a block.
const THREADS: u32 = WARPGROUPS * WARPGROUP_SIZE;
/// The tiles of a block whose warpgroups have a tile each.
type Tiles = L!((16, 128):(1@0, 1@1));
/// The partials of all warpgroups but the first, which keeps its own in registers and adds the others.
type PartialsRing<Acc> =
    TileRing<Acc, L!((4, 128):(128, 1)), NoSwizzle, Stages<{ WARPGROUPS as usize - 1 }>>;

/// Extents of C and of the partials.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ReduceArgs {
    /// Elements from one row of C to the next, and from one column to the next.
    pub strides: [i64; 2],
    /// Elements from one row of partials to the next, a multiple of 4.
    pub ld: i64,
    /// Elements from one split to the next.
    pub split_stride: i64,
    /// Rows of C.
    pub m: i32,
    /// Columns of C.
    pub n: i32,
    /// Splits, at least one.
    pub splits: u32,
    /// Not 0 if warpgroups are cooperative: those of a block share a tile, and each adds some of its splits. This is
    /// faster for many splits. Otherwise each warpgroup has a tile of its own, one below the other.
    pub cooperative: u32,
    /// The tile of each block: see [`raster`].
    pub raster: Raster<Divisor>,
    /// Unused.
    pub padding: u32,
}

/// The raster of a C with these extents, with one entry for each block of the grid. A block has one tile if its
/// warpgroups are cooperative, otherwise one for each warpgroup.
pub fn raster(extents: [i32; 2], cooperative: bool) -> Raster<Divisor> {
    let tiles = match cooperative {
        true => tiles::<Tile>(extents),
        false => tiles::<Tiles>(extents),
    };
    Raster::planned(tiles, tiles[0])
}

/// The tile of the running warpgroup, or of its block if warpgroups are cooperative.
#[inline(always)]
fn tile_of<E: Engine, I: MatrixInner>(
    tensor: Tensor<E, I>,
    of_block: (u32, u32),
    cooperative: bool,
) -> Tensor<E, I, Tile> {
    match cooperative {
        true => tensor.local_tile::<Tile>(of_block),
        false => tensor
            .local_tile::<Tiles>(of_block)
            .local_tile::<Tile>((warpgroup_idx(), 0u32)),
    }
}

/// `C = epilogue(Σ partials)`.
///
/// # Safety
/// C and the partials must have these extents. Rows of partials are read up to a multiple of 4 elements.
#[inline(always)]
unsafe fn reduce<T: ElementC<Acc: Batched>, Epi: Epilogue<Acc = T::Acc>>(
    partials: Global<T::Acc>,
    c: GlobalMut<T>,
    extents: ReduceArgs,
    epilogue: Epi,
    shared_partials: PartialsRing<T::Acc>,
) {
    launch_dependents();
    grid_dependency_wait();
    let ReduceArgs {
        strides,
        ld,
        split_stride,
        m,
        n,
        splits,
        ..
    } = extents;
    let thread = warpgroup_thread_idx();
    let warpgroup = warpgroup_idx();
    let cooperative = extents.cooperative != 0;
    let of_block = extents.raster.tile(block_idx().x);
    let own_splits = match cooperative {
        true => warpgroup.share::<WARPGROUPS>(splits),
        false => 0..splits,
    };
    // SAFETY: the launcher promises the extents.
    let (to, partials_of) = unsafe {
        let to = tile_of(
            Tensor::new(c, AnyStrides::new([m, n], strides)),
            of_block,
            cooperative,
        );
        let partials_of = |split: u32| {
            // A split beyond the warpgroup's last one has no rows.
            let rows = if split < own_splits.end { m } else { 0 };
            let start = partials.offset(i64::from(split) * split_stride);
            let partials = Tensor::new(start, RowMajor::new([rows, n], ld));
            tile_of(partials, of_block, cooperative).partition::<Threads<Fours<T::Acc>>>(thread)
        };
        (to.partition::<Threads<Width<1>>>(thread), partials_of)
    };
    let mut accumulators = Fragment::<T::Acc, Values>::filled(T::Acc::ZERO);
    let mut next = own_splits.start;
    while next < own_splits.end {
        let batch = Batch::<T>::from_fn(|nth| partials_of(next + nth as u32).load(T::Acc::ZERO));
        each::<Splits<T>>(|nth| {
            accumulators = accumulators.map(|v, acc| acc.plus(batch.get(nth).get(v)));
        });
        next += Splits::<T>::SIZE as u32;
    }
    if cooperative {
        if !warpgroup.is_first() {
            let own = shared_partials.tile(warpgroup.after(1));
            // SAFETY: each warpgroup has a tile of its own, which is read after the barrier.
            unsafe { own.tensor() }
                .partition::<Threads<Fours<T::Acc>>>(thread)
                .store(&accumulators);
        }
        sync_threads();
        if !warpgroup.is_first() {
            return;
        }
        for other in 0..WARPGROUPS - 1 {
            // SAFETY: as above.
            let partials = unsafe { shared_partials.tile(other).tensor() };
            let partials = partials
                .partition::<Threads<Fours<T::Acc>>>(thread)
                .load(T::Acc::ZERO);
            accumulators = accumulators.map(|v, acc| acc.plus(partials.get(v)));
        }
    }
    let at = |v| to.bound().coordinate(v);
    if epilogue.reads_old() {
        to.update(|v, old| {
            T::narrow(epilogue.apply(accumulators.get(v), Some(old.widen()), at(v)))
        });
    } else {
        to.store(&accumulators.map(|v, acc| T::narrow(epilogue.apply(acc, None, at(v)))));
    }
}

instantiate! {
    /// To a C of bf16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn split_k_reduce_bf16(
        partials: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: ReduceArgs,
        epilogue: Scale,
        #[shared] shared_partials: PartialsRing<f32>,
    ) = reduce::<half::bf16, Scale>;

    /// To a C of f16.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn split_k_reduce_f16(
        partials: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: ReduceArgs,
        epilogue: Scale,
        #[shared] shared_partials: PartialsRing<f32>,
    ) = reduce::<half::f16, Scale>;

    /// To a C of bf16, with everything that can be fused.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn split_k_reduce_bf16_fused(
        partials: Global<f32>,
        c: GlobalMut<half::bf16>,
        extents: ReduceArgs,
        epilogue: FusedWithErf<half::bf16>,
        #[shared] shared_partials: PartialsRing<f32>,
    ) = reduce::<half::bf16, FusedWithErf<half::bf16>>;

    /// To a C of f16, with everything that can be fused.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn split_k_reduce_f16_fused(
        partials: Global<f32>,
        c: GlobalMut<half::f16>,
        extents: ReduceArgs,
        epilogue: FusedWithErf<half::f16>,
        #[shared] shared_partials: PartialsRing<f32>,
    ) = reduce::<half::f16, FusedWithErf<half::f16>>;

    /// To a C of f32, with everything that can be fused.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn split_k_reduce_f32_fused(
        partials: Global<f32>,
        c: GlobalMut<f32>,
        extents: ReduceArgs,
        epilogue: FusedWithErf<f32>,
        #[shared] shared_partials: PartialsRing<f32>,
    ) = reduce::<f32, FusedWithErf<f32>>;

    /// Of f64, with everything that can be fused.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn split_k_reduce_f64_fused(
        partials: Global<f64>,
        c: GlobalMut<f64>,
        extents: ReduceArgs,
        epilogue: FusedWithErf<f64>,
        #[shared] shared_partials: PartialsRing<f64>,
    ) = reduce::<f64, FusedWithErf<f64>>;

    /// Of i32, with everything that can be fused.
    #[kernel(threads = THREADS, cpu = crate::cpu::BODY)]
    pub unsafe fn split_k_reduce_i32_fused(
        partials: Global<i32>,
        c: GlobalMut<i32>,
        extents: ReduceArgs,
        epilogue: FusedWithErf<i32>,
        #[shared] shared_partials: PartialsRing<i32>,
    ) = reduce::<i32, FusedWithErf<i32>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_is_one_dimensional_for_any_extents() {
        assert_eq!(raster([1, (1 << 30) + 1], false).size(), (1 << 23) + 1);
        assert_eq!(raster([17, 129], false).size(), 4);
        assert_eq!(raster([17, 129], true).size(), 10);
    }
}
