//! norm: RMSNorm and LayerNorm of rows, with a residual that is added before.

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadIdx, Threads, block_idx, fma, grid_dependency_wait,
    launch_dependents, rsqrt_approx,
};
use cutlet_layout_core::{Bound, Tensor, ThreadValue, each};
use half::{bf16, f16};

use super::{
    Held, Number, RowStrides, Rows, Shape, Space, THREADS, Team, fetch_ahead, held, narrowed,
    of_access,
};

/// The operands that a normalisation has. Those that it has not may have any address.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct Parts {
    /// Not 0 if the mean is subtracted: LayerNorm.
    pub centred: u32,
    /// Not 0 if `x` is added to the residual, and the sum is normalised.
    pub residual: u32,
    /// Not 0 if there are weights.
    pub weight: u32,
    /// Not 0 if there are biases.
    pub bias: u32,
}

/// Extents and strides of a normalisation.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct NormArgs {
    /// Strides of the rows that are read.
    pub x: RowStrides,
    /// Strides of the residual's rows.
    pub residual: RowStrides,
    /// Strides of the rows that are written.
    pub y: RowStrides,
    /// The rows.
    pub space: Space,
    /// The operands.
    pub parts: Parts,
    /// Added to the mean of the squares.
    pub epsilon: f32,
    /// Unused.
    pub padding: u32,
}

/// A thread's part of a row, and the operands.
struct Part<T> {
    thread: ThreadIdx<Threads<THREADS>>,
    x: Tensor<Global<T>, Rows>,
    residual: Tensor<GlobalMut<T>, Rows>,
    weight: Tensor<Global<T>, Rows>,
    bias: Tensor<Global<T>, Rows>,
    y: Tensor<GlobalMut<T>, Rows>,
    parts: Parts,
}

impl<T: Float + Number> Part<T> {
    /// Adds a tile of `x` to the residual, if there is one, and returns the values to be normalised.
    #[inline(always)]
    fn take<S: Shape>(&self, tile: u32) -> Held<S> {
        let x = held::<S, _, _>(&self.x, tile, self.thread);
        if self.parts.residual == 0 {
            return x;
        }
        let residual = held::<S, _, _>(&self.residual, tile, self.thread);
        let sums = narrowed::<T, _>(&x.map(|v, x| x + residual.get(v)));
        self.residual
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(self.thread)
            .store(&sums);
        sums.map(|_, sum| sum.to_f32())
    }

    /// The values to be normalised of a tile that was [taken](Self::take). Those of the first tile are held.
    #[inline(always)]
    fn again<S: Shape>(&self, first: &Held<S>, tile: u32) -> Held<S> {
        match (tile, self.parts.residual) {
            (0, _) => *first,
            (_, 0) => held::<S, _, _>(&self.x, tile, self.thread),
            _ => held::<S, _, _>(&self.residual, tile, self.thread),
        }
    }

    /// `squares` with those of a tile's deviations from the mean.
    #[inline(always)]
    fn add_squares<S: Shape>(
        &self,
        mut squares: f32,
        tile: u32,
        values: &Held<S>,
        mean: f32,
    ) -> f32 {
        let place = self
            .x
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(self.thread);
        each::<<S::Threads as ThreadValue>::Val>(|v| {
            let deviation = match place.bound().holds(of_access::<S>(v)) {
                true => values.get(v) - mean,
                false => 0.0,
            };
            squares = fma(deviation, deviation, squares);
        });
        squares
    }

    /// Writes what becomes of a tile's values.
    #[inline(always)]
    fn write<S: Shape>(&self, tile: u32, values: &Held<S>, mean: f32, scale: f32) {
        let mut normal = values.map(|_, h| (h - mean) * scale);
        if self.parts.weight != 0 {
            let weight = held::<S, _, _>(&self.weight, tile, self.thread);
            normal = normal.map(|v, normal| normal * weight.get(v));
        }
        if self.parts.bias != 0 {
            let bias = held::<S, _, _>(&self.bias, tile, self.thread);
            normal = normal.map(|v, normal| normal + bias.get(v));
        }
        self.y
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(self.thread)
            .store(&narrowed::<T, _>(&normal));
    }
}

/// Normalises each row: `y = (h − mean) / √(mean of (h − mean)² + ε) · weight + bias`, where `h` is `x`, or `x + residual`
/// as it is rounded and written back to the residual. RMSNorm is this with 0 for the mean.
///
/// `y` may be `x`.
///
/// # Safety
/// The operands of `args.parts` must have these extents, `weight` and `bias` an element for each column. All are aligned
/// for the accesses of `S`.
#[inline(always)]
#[expect(
    clippy::too_many_arguments,
    reason = "each is an argument of the kernels"
)]
unsafe fn norm<S: Shape, T: Float + Number, R: Team<f32>>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    residual: GlobalMut<T>,
    weight: Global<T>,
    bias: Global<T>,
    y: GlobalMut<T>,
    args: NormArgs,
    mut team: R,
) {
    grid_dependency_wait();
    launch_dependents();
    let NormArgs { space, parts, .. } = args;
    // SAFETY: the launcher promises the extents. Weights and biases are the same for all rows.
    let part = unsafe {
        Part {
            thread,
            x: Tensor::new(x, space.rows(args.x)),
            residual: Tensor::new(residual, space.rows(args.residual)),
            weight: Tensor::new(weight, space.rows([0; 3])),
            bias: Tensor::new(bias, space.rows([0; 3])),
            y: Tensor::new(y, space.rows(args.y)),
            parts,
        }
    };
    fetch_ahead::<S, _>(&part.x, space.ahead, thread);
    if parts.residual != 0 {
        // SAFETY: as above.
        let residual = unsafe { Tensor::new(residual.as_global(), space.rows(args.residual)) };
        fetch_ahead::<S, _>(&residual, space.ahead, thread);
    }
    let tiles = part.x.tiles::<S::Tile>()[1];
    let columns = space.columns as f32;

    let mut sum = 0.0;
    let mut first = Held::<S>::filled(0.0);
    for tile in 0..tiles {
        let values = part.take::<S>(tile);
        sum = values.fold(sum, |sum, h| sum + h);
        if tile == 0 {
            first = values;
        }
    }
    let mean = match parts.centred {
        0 => 0.0,
        _ => team.reduce(thread, sum, |a, b| a + b) / columns,
    };
    let mut squares = 0.0;
    for tile in 0..tiles {
        let values = part.again::<S>(&first, tile);
        squares = part.add_squares::<S>(squares, tile, &values, mean);
    }
    let variance = team.reduce(thread, squares, |a, b| a + b) / columns;
    let scale = rsqrt_approx(variance + args.epsilon);
    for tile in 0..tiles {
        let values = part.again::<S>(&first, tile);
        part.write::<S>(tile, &values, mean, scale);
    }
}

super::row_instances! {
    norm, {
        T;
        x: Global<T>,
        residual: GlobalMut<T>,
        weight: Global<T>,
        bias: Global<T>,
        y: GlobalMut<T>,
        args: NormArgs,
    }, sums: f32;
    norm_f32 of f32, Warp4 Block4: norm_f32_warp norm_f32_block norm_f32_warp_any norm_f32_block_any;
    norm_f16 of f16, Warp8 Block8: norm_f16_warp norm_f16_block norm_f16_warp_any norm_f16_block_any;
    norm_bf16 of bf16, Warp8 Block8: norm_bf16_warp norm_bf16_block norm_bf16_warp_any norm_bf16_block_any;
}
