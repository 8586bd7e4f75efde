//! softmax: the softmax of rows or its logarithm, of scaled and masked elements.

use core::f32::consts::{LN_2, LOG2_E};

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadIdx, Threads, block_idx, exp2_approx,
    grid_dependency_wait, launch_dependents, log2_approx,
};
use cutlet_layout_core::{Divide, Divisor, Tensor};
use half::{bf16, f16};

use super::{
    Held, Number, RowStrides, Rows, Shape, Space, THREADS, Team, fetch_ahead, held, narrowed,
};

/// Extents and strides of a softmax.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct SoftmaxArgs {
    /// Strides of the rows that are read.
    pub x: RowStrides,
    /// Strides of the mask's rows.
    pub mask: RowStrides,
    /// Strides of the rows that are written.
    pub y: RowStrides,
    /// The rows.
    pub space: Space,
    /// Rows of a causal matrix.
    pub queries: Divisor,
    /// Columns that the first of these rows sees, less one.
    pub past: i32,
    /// Elements are multiplied by it before the mask is added.
    pub scale: f32,
    /// Not 0 if a row sees the columns up to its own alone.
    pub causal: u32,
    /// Not 0 if there is a mask.
    pub masked: u32,
    /// Not 0 if the result is the logarithm of the softmax.
    pub log: u32,
}

/// The greatest of some elements, and the sum of their exponentials relative to it. If all are −∞, the greatest is the
/// least finite number instead, so that no difference to it is NaN.
type Sum = [f32; 2];

/// `e^x`.
#[inline(always)]
fn exp(x: f32) -> f32 {
    exp2_approx(x * LOG2_E)
}

/// The sum of the elements of both.
#[inline(always)]
fn merge(a: Sum, b: Sum) -> Sum {
    let greatest = a[0].max(b[0]);
    [
        greatest,
        a[1] * exp(a[0] - greatest) + b[1] * exp(b[0] - greatest),
    ]
}

/// A thread's part of a row, and the operands.
struct Part<T> {
    thread: ThreadIdx<Threads<THREADS>>,
    x: Tensor<Global<T>, Rows>,
    mask: Tensor<Global<T>, Rows>,
    y: Tensor<GlobalMut<T>, Rows>,
    args: SoftmaxArgs,
}

impl<T: Float + Number> Part<T> {
    /// A tile's elements, scaled and masked. Elements that do not exist are −∞.
    #[inline(always)]
    fn logits<S: Shape>(&self, tile: u32) -> Held<S> {
        let args = &self.args;
        let mut logits = held::<S, _, _>(&self.x, tile, self.thread).map(|_, x| x * args.scale);
        if args.masked != 0 {
            let mask = held::<S, _, _>(&self.mask, tile, self.thread);
            logits = logits.map(|v, logit| logit + mask.get(v));
        }
        let place = self
            .x
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(self.thread);
        let [row, _] = place.bound().coordinate(0);
        let seen = match args.causal {
            0 => args.space.columns,
            _ => {
                let (_, query) = args.queries.div_rem(row as u32);
                (query as i32 + args.past + 1).min(args.space.columns)
            }
        };
        logits.map(|v, logit| match place.bound().coordinate(v)[1] < seen {
            true => logit,
            false => f32::NEG_INFINITY,
        })
    }

    /// What becomes of a tile's elements.
    #[inline(always)]
    fn result<S: Shape>(&self, logits: &Held<S>, total: Total) -> Held<S> {
        match self.args.log {
            0 => logits.map(|_, it| exp(it - total.greatest) * total.factor),
            _ => logits.map(|_, it| it - total.greatest - total.log),
        }
    }

    /// Writes the results of a tile.
    #[inline(always)]
    fn write<S: Shape>(&self, tile: u32, results: &Held<S>) {
        self.y
            .local_tile::<S::Tile>((block_idx().x, tile))
            .partition::<S::Threads>(self.thread)
            .store(&narrowed::<T, _>(results));
    }
}

/// The exponentials of a tile's elements relative to the greatest of them, and their sum.
#[inline(always)]
fn powers_of<S: Shape>(logits: &Held<S>) -> (Held<S>, Sum) {
    let greatest = logits.fold(f32::MIN, f32::max);
    let powers = logits.map(|_, it| exp(it - greatest));
    (powers, [greatest, powers.fold(0.0, |sum, it| sum + it)])
}

/// What a row's elements are divided by.
#[derive(Clone, Copy)]
struct Total {
    greatest: f32,
    factor: f32,
    log: f32,
}

impl Total {
    #[inline(always)]
    fn of([greatest, sum]: Sum) -> Self {
        // The exponentials of −∞ alone are 0, too.
        let (factor, log) = match sum == 0.0 {
            true => (0.0, 0.0),
            false => (1.0 / sum, log2_approx(sum) * LN_2),
        };
        Total {
            greatest,
            factor,
            log,
        }
    }
}

/// `y = e^(z − max z) / Σ e^(z − max z)` for each row, where `z` is `x · scale + mask`, and −∞ beyond the columns that a
/// causal row sees. A row of −∞ alone becomes 0, in logarithms −∞.
///
/// `y` may be `x`.
///
/// # Safety
/// The operands must have these extents, unless there is no mask, and be aligned for the accesses of `S`.
#[inline(always)]
unsafe fn softmax<S: Shape, T: Float + Number, R: Team<Sum>>(
    thread: ThreadIdx<Threads<THREADS>>,
    x: Global<T>,
    mask: Global<T>,
    y: GlobalMut<T>,
    args: SoftmaxArgs,
    mut team: R,
) {
    grid_dependency_wait();
    launch_dependents();
    let space = args.space;
    // SAFETY: the launcher promises the extents.
    let part = unsafe {
        Part {
            thread,
            x: Tensor::new(x, space.rows(args.x)),
            mask: Tensor::new(mask, space.rows(args.mask)),
            y: Tensor::new(y, space.rows(args.y)),
            args,
        }
    };
    fetch_ahead::<S, _>(&part.x, space.ahead, thread);
    let tiles = part.x.tiles::<S::Tile>()[1];
    let mut sum = [f32::MIN, 0.0];
    // Of the first tile: exponentials, which are not computed again, or the logits of which the logarithm is asked for.
    let mut first = Held::<S>::filled(0.0);
    let mut relative_to = 0.0;
    for tile in 0..tiles {
        let logits = part.logits::<S>(tile);
        let (powers, of_tile) = powers_of::<S>(&logits);
        if tile == 0 {
            relative_to = of_tile[0];
            first = match args.log {
                0 => powers,
                _ => logits,
            };
        }
        sum = merge(sum, of_tile);
    }
    let total = Total::of(team.reduce(thread, sum, merge));
    let first = match args.log {
        0 => {
            let factor = exp(relative_to - total.greatest) * total.factor;
            first.map(|_, power| power * factor)
        }
        _ => part.result::<S>(&first, total),
    };
    part.write::<S>(0, &first);
    for tile in 1..tiles {
        part.write::<S>(tile, &part.result::<S>(&part.logits::<S>(tile), total));
    }
}

super::row_instances! {
    softmax, {
        T;
        x: Global<T>,
        mask: Global<T>,
        y: GlobalMut<T>,
        args: SoftmaxArgs,
    }, sums: Sum;
    softmax_f32 of f32, Warp4 Block4: softmax_f32_warp softmax_f32_block softmax_f32_warp_any softmax_f32_block_any;
    softmax_f16 of f16, Warp8 Block8: softmax_f16_warp softmax_f16_block softmax_f16_warp_any softmax_f16_block_any;
    softmax_bf16 of bf16, Warp8 Block8: softmax_bf16_warp softmax_bf16_block softmax_bf16_warp_any softmax_bf16_block_any;
}
