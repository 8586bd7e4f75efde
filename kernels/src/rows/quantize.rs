//! quantize: numbers as e4m3, with a scale for each row or for each block of a row. The numbers may be those that SwiGLU
//! makes of gates and ups.

use cutlet_device::fp8::F8E4M3;
use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, LogicalWarp, ThreadIdx, Threads, block_idx,
    grid_dependency_wait, instantiate, launch_dependents, thread_idx,
};
use cutlet_layout_core::{
    Bound, Fragment, FragmentLayout, L, Raster, StaticLayout, Tensor, ThreadValue, Tv, Whole,
    covers_exactly, tile_extent, tiles,
};
use half::{bf16, f16};

use super::{Held, RowStrides, Rows, Shape, Space, THREADS, Team, held, narrowed};
use crate::gemm::epilogue::silu;
pub use crate::quantization::BLOCK;
use crate::quantization::scale_of;

/// Extents and strides of a quantisation.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct QuantizeArgs {
    /// Strides of the rows that are read.
    pub x: RowStrides,
    /// Strides of the rows that are written.
    pub y: RowStrides,
    /// Strides of the rows' scales.
    pub scales: RowStrides,
    /// From one scale of a row to the next.
    pub to_next_scale: i64,
    /// The rows that are written.
    pub space: Space,
    /// Not 0 if scales are powers of two.
    pub powers: u32,
    /// Unused.
    pub padding: u32,
}

/// The largest magnitude of some numbers. NaN is left out.
#[inline(always)]
fn amax<L: FragmentLayout>(amax: f32, values: &Fragment<f32, L>) -> f32 {
    values.fold(amax, |amax, x| amax.max(x.abs()))
}

/// Which elements a thread of a block has, where 16 neighbouring threads have the elements of a scale.
pub trait BlockShape {
    /// Rows and columns of a block.
    type Tile: StaticLayout;
    /// Which elements a thread has.
    type Threads: ThreadValue;
}

macro_rules! shapes {
    ($($(#[$doc:meta])* $name:ident: $threads:ty;)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name;
        impl BlockShape for $name {
            type Tile = L!((32, 128):(1@0, 1@1));
            type Threads = $threads;
        }
        const _: () = assert!(
            covers_exactly::<$threads>(tile_extent::<<$name as BlockShape>::Tile>()),
            "a shape's threads have each element of its tile once"
        );
    )+};
}
shapes! {
    /// In vectors of eight elements.
    Scaled8: Tv<L!((8, 32):(8@1, 1@0)), L!((8, 2):(1@1, 64@1)), 8>;
    /// In vectors of four elements.
    Scaled4: Tv<L!((8, 32):(4@1, 1@0)), L!((4, 4):(1@1, 32@1)), 4>;
    /// Of any alignment.
    ScaledAny: Tv<L!((8, 32):(1@1, 1@0)), L!(16:8@1)>;
}

/// A [`BlockShape`] of which each element is made of a gate and an up, which are neighbours. Value `v` of a thread is made
/// of values `2v` and `2v + 1` of those that it reads.
pub trait GatedShape: BlockShape {
    /// Rows and columns of a block's gates and ups.
    type Pairs: StaticLayout;
    /// Which of them a thread reads.
    type Reads: ThreadValue;
}

macro_rules! gated_shapes {
    ($($name:ident: $reads:ty;)+) => {$(
        impl GatedShape for $name {
            type Pairs = L!((32, 256):(1@0, 1@1));
            type Reads = $reads;
        }
        const _: () = assert!(
            covers_exactly::<$reads>(tile_extent::<<$name as GatedShape>::Pairs>()),
            "a shape's threads have each gate and each up once"
        );
    )+};
}
gated_shapes! {
    Scaled8: Tv<L!((8, 32):(16@1, 1@0)), L!((16, 2):(1@1, 128@1)), 8>;
    Scaled4: Tv<L!((8, 32):(8@1, 1@0)), L!((8, 4):(1@1, 64@1)), 4>;
    ScaledAny: Tv<L!((8, 32):(2@1, 1@0)), L!((2, 16):(1@1, 16@1))>;
}

/// Quantises each block of [`BLOCK`] elements of a row: `y = x / scale`, where `scale` is the largest magnitude of the
/// block, divided by 448.
///
/// # Safety
/// The operands must have these extents, the scales one for each block of a row. They are aligned for the accesses of `S`.
#[inline(always)]
unsafe fn blocks<S: BlockShape, T: Float + Default>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    y: GlobalMut<F8E4M3>,
    scales: GlobalMut<f32>,
    args: QuantizeArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    let space = args.space;
    // SAFETY: the launcher promises the extents.
    let (x, y) = unsafe {
        (
            Tensor::new(x, space.rows(args.x)),
            Tensor::new(y, space.rows(args.y)),
        )
    };
    let tile = Raster::new(tiles::<S::Tile>([space.rows, space.columns]), 1).tile(block_idx().x);
    let values = x
        .local_tile::<S::Tile>(tile)
        .partition::<S::Threads>(thread)
        .load(T::default())
        .map(|_, x| x.to_f32());
    // SAFETY: as promised by the caller.
    unsafe { write_block::<S>(thread, tile, &values, y, scales, args) };
}

/// Quantises each block of [`BLOCK`] elements of what SwiGLU makes of a row: `x = silu(gate) · up`, where the row of gates
/// and ups has twice as many elements. `args` has the extents of `y`.
///
/// # Safety
/// As [`blocks`].
#[inline(always)]
unsafe fn swiglu_blocks<S: GatedShape, T: Float + Default>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    y: GlobalMut<F8E4M3>,
    scales: GlobalMut<f32>,
    args: QuantizeArgs,
) {
    grid_dependency_wait();
    launch_dependents();
    let space = args.space;
    // SAFETY: the launcher promises the extents.
    let (x, y) = unsafe {
        (
            Tensor::new(x, space.with_pairs().rows(args.x)),
            Tensor::new(y, space.rows(args.y)),
        )
    };
    let tile = Raster::new(tiles::<S::Tile>([space.rows, space.columns]), 1).tile(block_idx().x);
    let pairs = x
        .local_tile::<S::Pairs>(tile)
        .partition::<S::Reads>(thread)
        .load(T::default())
        .map(|_, x| x.to_f32());
    let values = Fragment::from_fn(|v| silu(pairs.get(2 * v)) * pairs.get(2 * v + 1));
    // SAFETY: as promised by the caller.
    unsafe { write_block::<S>(thread, tile, &values, y, scales, args) };
}

/// The values of a thread of a shape `S`.
type Values<S> = <<S as BlockShape>::Threads as ThreadValue>::Val;

/// Writes a block's tile of `y`, and its scales.
///
/// # Safety
/// As [`blocks`].
#[inline(always)]
unsafe fn write_block<S: BlockShape>(
    thread: ThreadIdx<Threads<THREADS>>,
    tile: (u32, u32),
    values: &Fragment<f32, Values<S>>,
    y: Tensor<GlobalMut<F8E4M3>, Rows, Whole>,
    scales: GlobalMut<f32>,
    args: QuantizeArgs,
) {
    let space = args.space;
    let of_block = LogicalWarp::<8>::max(amax(0.0, values));
    let [scale, inverse] = scale_of(of_block, args.powers);
    let mine = y.local_tile::<S::Tile>(tile);
    let [_, begin] = mine.origin();
    let mine = mine.partition::<S::Threads>(thread);
    mine.store(&narrowed::<F8E4M3, _>(&values.map(|_, it| it * inverse)));
    let [row, column] = mine.bound().coordinate(0);
    if column == begin && mine.bound().holds(0) {
        let place = space.begin(args.scales, row) + i64::from(tile.1) * args.to_next_scale;
        // SAFETY: the launcher promises a scale for each block.
        unsafe { scales.store(place, scale) };
    }
}

/// Quantises each row: `y = x / scale`, where `scale` is the largest magnitude of the row, divided by 448.
///
/// # Safety
/// The operands must have these extents, the scales one for each row. They are aligned for the accesses of `S`.
#[inline(always)]
unsafe fn rows<S: Shape, T: Float + Default, R: Team<f32>>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    y: GlobalMut<F8E4M3>,
    scales: GlobalMut<f32>,
    args: QuantizeArgs,
    mut team: R,
) {
    grid_dependency_wait();
    launch_dependents();
    let space = args.space;
    // SAFETY: the launcher promises the extents.
    let (x, y) = unsafe {
        (
            Tensor::new(x, space.rows(args.x)),
            Tensor::new(y, space.rows(args.y)),
        )
    };
    let tiles = x.tiles::<S::Tile>()[1];
    let mut largest = 0.0;
    let mut first = Held::<S>::filled(0.0);
    for tile in 0..tiles {
        let values = held::<S, _, _>(&x, tile, thread);
        largest = amax(largest, &values);
        if tile == 0 {
            first = values;
        }
    }
    let [scale, inverse] = scale_of(team.reduce(thread, largest, f32::max), args.powers);
    for tile in 0..tiles {
        let values = match tile {
            0 => first,
            _ => held::<S, _, _>(&x, tile, thread),
        };
        y.local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(thread)
            .store(&narrowed::<F8E4M3, _>(&values.map(|_, it| it * inverse)));
    }
    let mine = x
        .local_tile::<S::Tile>((block_idx().x, 0u32))
        .partition::<S::Threads>(thread);
    let [row, column] = mine.bound().coordinate(0);
    if column == 0 && mine.bound().holds(0) {
        // SAFETY: the launcher promises a scale for each row.
        unsafe { scales.store(space.begin(args.scales, row), scale) };
    }
}

macro_rules! block_instances {
    ($($element:ty: $vectors:ident in $shape:ident, $any:ident, $swiglu:ident, $swiglu_any:ident;)+) => {
        instantiate! {$(
            #[doc = concat!("Blocks of `", stringify!($element), "`, in vectors.")]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $vectors(x: Global<$element>, y: GlobalMut<F8E4M3>, scales: GlobalMut<f32>, args: QuantizeArgs)
                = blocks::<$shape, $element>(thread_idx(), ..);

            #[doc = concat!("Blocks of `", stringify!($element), "` of any alignment.")]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $any(x: Global<$element>, y: GlobalMut<F8E4M3>, scales: GlobalMut<f32>, args: QuantizeArgs)
                = blocks::<ScaledAny, $element>(thread_idx(), ..);

            #[doc = concat!("Blocks of SwiGLU of `", stringify!($element), "`, in vectors.")]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $swiglu(x: Global<$element>, y: GlobalMut<F8E4M3>, scales: GlobalMut<f32>, args: QuantizeArgs)
                = swiglu_blocks::<$shape, $element>(thread_idx(), ..);

            #[doc = concat!("Blocks of SwiGLU of `", stringify!($element), "` of any alignment.")]
            #[kernel(threads = 256, cpu = crate::cpu::BODY)]
            pub unsafe fn $swiglu_any(x: Global<$element>, y: GlobalMut<F8E4M3>, scales: GlobalMut<f32>, args: QuantizeArgs)
                = swiglu_blocks::<ScaledAny, $element>(thread_idx(), ..);
        )+}
    };
}
block_instances! {
    f32: quantize_blocks_f32 in Scaled4, quantize_blocks_f32_any, swiglu_quantize_f32, swiglu_quantize_f32_any;
    f16: quantize_blocks_f16 in Scaled8, quantize_blocks_f16_any, swiglu_quantize_f16, swiglu_quantize_f16_any;
    bf16: quantize_blocks_bf16 in Scaled8, quantize_blocks_bf16_any, swiglu_quantize_bf16, swiglu_quantize_bf16_any;
}

super::row_instances! {
    rows, {
        T;
        x: Global<T>,
        y: GlobalMut<F8E4M3>,
        scales: GlobalMut<f32>,
        args: QuantizeArgs,
    }, largest: f32;
    quantize_f32 of f32, Warp4 Block4: quantize_f32_warp quantize_f32_block quantize_f32_warp_any quantize_f32_block_any;
    quantize_f16 of f16, Warp8 Block8: quantize_f16_warp quantize_f16_block quantize_f16_warp_any quantize_f16_block_any;
    quantize_bf16 of bf16, Warp8 Block8:
        quantize_bf16_warp quantize_bf16_block quantize_bf16_warp_any quantize_bf16_block_any;
}
