//! The gated activation of a feed-forward network, `silu(gate) · up`: `swiglu`, where gates and ups alternate in a row, and
//! `silu_mul`, where they are two matrices.

use cutlet_device::{
    DeviceData, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, grid_dependency_wait,
    instantiate, launch_dependents, thread_idx,
};
use cutlet_layout_core::{L, Raster, RowMajor, StaticLayout, Tensor, ThreadValue, Tv, tiles};
use half::{bf16, f16};

use crate::gemm::epilogue::{ElementC, silu};

/// Extents of the operands of `swiglu`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Extents {
    /// Elements from one row of the source to the next.
    pub ld_source: i64,
    /// Elements from one row of the output to the next.
    pub ld_output: i64,
    /// Rows.
    pub rows: i32,
    /// Columns of the output. The source has twice as many.
    pub columns: i32,
}

/// Extents of the operands of `silu_mul`.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct ApartExtents {
    /// Elements from one row of the gates to the next.
    pub ld_gates: i64,
    /// Elements from one row of the ups to the next.
    pub ld_ups: i64,
    /// Elements from one row of the output to the next.
    pub ld_output: i64,
    /// Rows of each.
    pub rows: i32,
    /// Columns of each.
    pub columns: i32,
}

/// How a block of 256 threads covers its tiles. Value `v` of a thread's output is made of values `2v` and `2v + 1` of
/// its source.
pub trait Shape {
    /// The tile of the source.
    type Source: StaticLayout;
    /// Which elements of it a thread reads.
    type Reads: ThreadValue;
    /// The tile of the output.
    type Output: StaticLayout;
    /// Which elements of it a thread writes.
    type Writes: ThreadValue;
}

macro_rules! shape {
    ($(#[$doc:meta])* $name:ident: $source:ty, $reads:ty => $output:ty, $writes:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl Shape for $name {
            type Source = $source;
            type Reads = $reads;
            type Output = $output;
            type Writes = $writes;
        }
    };
}
shape! {
    /// 16-bit elements, of which a thread reads eight neighbours.
    Eights: L!((8, 256):(1@0, 1@1)), Tv<L!((32, 8):(8@1, 1@0)), L!(8:1@1), 8>
        => L!((8, 128):(1@0, 1@1)), Tv<L!((32, 8):(4@1, 1@0)), L!(4:1@1), 4>
}
shape! {
    /// 32-bit elements, of which a thread reads four neighbours.
    Fours: L!((8, 128):(1@0, 1@1)), Tv<L!((32, 8):(4@1, 1@0)), L!(4:1@1), 4>
        => L!((8, 64):(1@0, 1@1)), Tv<L!((32, 8):(2@1, 1@0)), L!(2:1@1), 2>
}
shape! {
    /// Elements of any alignment.
    Ones: L!((8, 256):(1@0, 1@1)), Tv<L!((32, 8):(2@1, 1@0)), L!((2, 4):(1@1, 64@1)), 1>
        => L!((8, 128):(1@0, 1@1)), Tv<L!((32, 8):(1@1, 1@0)), L!(4:32@1), 1>
}

/// `output[r, c] = silu(source[r, 2c]) · source[r, 2c + 1]`, in f32, rounded once. Each block computes one tile.
///
/// # Safety
/// Source and output must have these extents.
#[inline(always)]
unsafe fn swiglu<S: Shape, T: ElementC<Acc = f32>>(
    thread: ThreadIdx<impl ThreadGroup>,
    source: Global<T>,
    output: GlobalMut<T>,
    extents: Extents,
) {
    grid_dependency_wait();
    launch_dependents();
    let Extents {
        ld_source,
        ld_output,
        rows,
        columns,
    } = extents;
    let tile = Raster::new(tiles::<S::Output>([rows, columns]), 1).tile(block_idx().x);
    // SAFETY: the launcher promises the extents.
    let (source, output) = unsafe {
        (
            Tensor::new(source, RowMajor::new([rows, 2 * columns], ld_source)),
            Tensor::new(output, RowMajor::new([rows, columns], ld_output)),
        )
    };
    let pairs = source
        .local_tile::<S::Source>(tile)
        .partition::<S::Reads>(thread)
        .load(T::default());
    output
        .local_tile::<S::Output>(tile)
        .partition::<S::Writes>(thread)
        .store_with(|v| {
            let (gate, up) = (pairs.get(2 * v).widen(), pairs.get(2 * v + 1).widen());
            T::narrow(silu(gate) * up)
        });
}

/// `output[r, c] = silu(gates[r, c]) · ups[r, c]`, in f32, rounded once. Each block computes a tile as large as the source's
/// tile of [`swiglu`].
///
/// # Safety
/// Gates, ups and output must have these extents.
#[inline(always)]
unsafe fn silu_mul<S: Shape, T: ElementC<Acc = f32>>(
    thread: ThreadIdx<impl ThreadGroup>,
    gates: Global<T>,
    ups: Global<T>,
    output: GlobalMut<T>,
    extents: ApartExtents,
) {
    grid_dependency_wait();
    launch_dependents();
    let ApartExtents {
        ld_gates,
        ld_ups,
        ld_output,
        rows,
        columns,
    } = extents;
    let tile = Raster::new(tiles::<S::Source>([rows, columns]), 1).tile(block_idx().x);
    // SAFETY: the launcher promises the extents.
    let (gates, ups, output) = unsafe {
        (
            Tensor::new(gates, RowMajor::new([rows, columns], ld_gates)),
            Tensor::new(ups, RowMajor::new([rows, columns], ld_ups)),
            Tensor::new(output, RowMajor::new([rows, columns], ld_output)),
        )
    };
    let [gates, ups] = [gates, ups].map(|it| {
        it.local_tile::<S::Source>(tile)
            .partition::<S::Reads>(thread)
            .load(T::default())
    });
    output
        .local_tile::<S::Source>(tile)
        .partition::<S::Reads>(thread)
        .store_with(|v| T::narrow(silu(gates.get(v).widen()) * ups.get(v).widen()));
}

macro_rules! kernels {
    ($($swiglu:ident, $silu_mul:ident = $shape:ty, $element:ty, $what:literal;)+) => {
        instantiate! {
            $(
                #[doc = concat!("`silu(gate) · up` of alternating ", $what, ".")]
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $swiglu(source: Global<$element>, output: GlobalMut<$element>, extents: Extents)
                    = swiglu::<$shape, $element>(thread_idx(), ..);
            )+
            $(
                #[doc = concat!("`silu(gate) · up` of two matrices of ", $what, ".")]
                #[kernel(threads = 256, cpu = crate::cpu::BODY)]
                pub unsafe fn $silu_mul(
                    gates: Global<$element>,
                    ups: Global<$element>,
                    output: GlobalMut<$element>,
                    extents: ApartExtents
                ) = silu_mul::<$shape, $element>(thread_idx(), ..);
            )+
        }
    };
}
kernels! {
    swiglu_bf16, silu_mul_bf16 = Eights, bf16, "bf16, whose rows begin at multiples of 16 bytes and have a multiple of eight elements";
    swiglu_bf16_any, silu_mul_bf16_any = Ones, bf16, "bf16 of any alignment";
    swiglu_f16, silu_mul_f16 = Eights, f16, "f16, whose rows begin at multiples of 16 bytes and have a multiple of eight elements";
    swiglu_f16_any, silu_mul_f16_any = Ones, f16, "f16 of any alignment";
    swiglu_f32, silu_mul_f32 = Fours, f32, "f32, whose rows begin at multiples of 16 bytes and have a multiple of four elements";
    swiglu_f32_any, silu_mul_f32_any = Ones, f32, "f32 of any alignment";
}
