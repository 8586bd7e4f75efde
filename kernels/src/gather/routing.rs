//! Routing of a mixture of experts: the experts of each token, and the token of each row when rows are sorted by
//! expert.

use core::f32::consts::LOG2_E;

use cutlet_device::{
    DeviceData, Float, Global, GlobalMut, ThreadGroup, ThreadIdx, block_idx, exp2_approx,
    instantiate, kernel, lane_idx, shfl_xor, thread_idx, warp_sum,
};
use cutlet_layout_core::{
    Bound, Divide, Divisor, Fragment, FragmentLayout, L, RowMajor, Tensor, ThreadValue, Tv,
    covers_exactly, each, tile_extent,
};

/// The logits of a block: eight tokens by up to 512 experts. A warp has a token.
pub type Logits = L!((8, 512):(1@0, 1@1));
type LogitThreads = Tv<L!((32, 8):(1@1, 1@0)), L!(16:32@1)>;
const _: () = assert!(covers_exactly::<LogitThreads>(tile_extent::<Logits>()));
/// The most experts that a warp chooses among.
pub const MAX_EXPERTS: usize = 512;

/// The choices of a block: up to 32 experts of each token. A lane has one.
type Choices = L!((8, 32):(1@0, 1@1));
type ChoiceThreads = Tv<L!((32, 8):(1@1, 1@0)), L!(1:1@0)>;
/// The most choices of a row that a warp makes.
pub const MAX_TOP_K: usize = 32;

/// Extents of a choice of experts.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct TopKArgs {
    /// Logits from one token to the next.
    pub ld: i64,
    /// Tokens.
    pub tokens: i32,
    /// Experts.
    pub experts: i32,
    /// Experts that a token chooses: at most as many as there are.
    pub top_k: i32,
    /// Not 0 if the weights of a token's choices are divided by their sum.
    pub normalised: u32,
}

/// A logit that a lane holds, and its expert.
#[derive(Clone, Copy)]
struct Best {
    logit: f32,
    expert: i32,
}

impl Best {
    /// The higher logit. Of equal ones, the one of the lower expert.
    #[inline(always)]
    fn or(self, other: Best) -> Best {
        let wins =
            other.logit > self.logit || other.logit == self.logit && other.expert < self.expert;
        if wins { other } else { self }
    }

    /// The best of all lanes.
    #[inline(always)]
    fn of_warp(self) -> Best {
        let mut best = self;
        each::<L!(5:1)>(|step| {
            best = best.or(Best {
                logit: shfl_xor(best.logit, 1 << step),
                expert: shfl_xor(best.expert, 1 << step),
            });
        });
        best
    }
}

/// Chooses the experts with the highest logits for each token, the highest first, and their softmax over all experts.
///
/// Infinite logits count as the largest and the least finite number: an expert at +∞ has all the weight, and experts
/// that are all at −∞ have equal weights. NaN counts as −∞ in the choice, and makes all weights of its token NaN.
///
/// # Safety
/// The logits must have these extents, and choices and weights `tokens · top_k` elements. There are at most
/// [`MAX_EXPERTS`] experts, and at most [`MAX_TOP_K`] are chosen.
#[inline(always)]
unsafe fn top_k<T: Float + Default>(
    thread: ThreadIdx<impl ThreadGroup>,
    logits: Global<T>,
    choices: GlobalMut<i32>,
    weights: GlobalMut<f32>,
    args: TopKArgs,
) {
    let chosen = RowMajor::new([args.tokens, args.top_k], i64::from(args.top_k));
    let all = RowMajor::new([args.tokens, args.experts], args.ld);
    let tile = (block_idx().x, 0u32);
    // SAFETY: the launcher promises the extents.
    let (logits, choices, weights) = unsafe {
        (
            Tensor::new(logits, all)
                .local_tile::<Logits>(tile)
                .partition::<LogitThreads>(thread),
            Tensor::new(choices, chosen)
                .local_tile::<Choices>(tile)
                .partition::<ChoiceThreads>(thread),
            Tensor::new(weights, chosen)
                .local_tile::<Choices>(tile)
                .partition::<ChoiceThreads>(thread),
        )
    };
    let loaded = logits.load(T::default());
    // Finite, so that no difference of two is NaN. What is beyond the last expert is −∞, and has no weight.
    #[expect(clippy::manual_clamp, reason = "`clamp` would keep NaN")]
    let held = loaded.map(|v, logit| match logits.bound().holds(v) {
        true => logit.to_f32().max(f32::MIN).min(f32::MAX),
        false => f32::NEG_INFINITY,
    });
    // 0, or NaN if a logit of the lane is.
    let mut nan = 0.0;
    each::<<LogitThreads as ThreadValue>::Val>(|v| {
        let logit = loaded.get(v).to_f32();
        nan = if logit.is_nan() { logit } else { nan };
    });
    // Whether a value can still be chosen.
    let mut free = held.map(|v, _| logits.bound().holds(v));
    let mut own = Best {
        logit: f32::NEG_INFINITY,
        expert: 0,
    };
    let mut highest = f32::NEG_INFINITY;
    for nth in 0..args.top_k as u32 {
        let best = best_of_lane(&held, &free, |v| logits.bound().coordinate(v)[1]).of_warp();
        if nth == 0 {
            highest = best.logit;
        }
        if lane_idx().is(nth) {
            own = best;
        }
        each::<<LogitThreads as ThreadValue>::Val>(|v| {
            let is_chosen = logits.bound().coordinate(v)[1] == best.expert;
            free.set(v, free.get(v) && !is_chosen);
        });
    }

    let power = |logit: f32| exp2_approx((logit - highest) * LOG2_E);
    let mut sum = 0.0;
    each::<<LogitThreads as ThreadValue>::Val>(|v| sum += power(held.get(v)));
    let of_choices = match lane_idx().is_below(args.top_k as u32) {
        true => power(own.logit),
        false => 0.0,
    };
    let total = match args.normalised {
        0 => sum,
        _ => of_choices,
    };
    let total = warp_sum(total + nan);
    choices.store_with(|_| own.expert);
    weights.store_with(|_| power(own.logit) / total);
}

/// The best of a lane's values that are free. Without one, an expert beyond all others.
#[inline(always)]
fn best_of_lane<V: FragmentLayout>(
    held: &Fragment<f32, V>,
    free: &Fragment<bool, V>,
    expert: impl Fn(usize) -> i32,
) -> Best {
    let mut best = Best {
        logit: f32::NEG_INFINITY,
        expert: i32::MAX,
    };
    each::<V>(|v| {
        if free.get(v) {
            best = best.or(Best {
                logit: held.get(v),
                expert: expert(v),
            });
        }
    });
    best
}

instantiate! {
    /// Logits in f32.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn top_k_f32(
        logits: Global<f32>,
        choices: GlobalMut<i32>,
        weights: GlobalMut<f32>,
        args: TopKArgs,
    ) = top_k::<f32>(thread_idx(), ..);

    /// Logits in bf16.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn top_k_bf16(
        logits: Global<half::bf16>,
        choices: GlobalMut<i32>,
        weights: GlobalMut<f32>,
        args: TopKArgs,
    ) = top_k::<half::bf16>(thread_idx(), ..);

    /// Logits in f16.
    #[kernel(threads = 256, cpu = crate::cpu::BODY)]
    pub unsafe fn top_k_f16(
        logits: Global<half::f16>,
        choices: GlobalMut<i32>,
        weights: GlobalMut<f32>,
        args: TopKArgs,
    ) = top_k::<half::f16>(thread_idx(), ..);
}

/// The choices of a block.
pub type ChoiceTile = L!((1, 1024):(1@0, 1@1));
type OfThread = Tv<L!(256:1@1), L!(4:256@1)>;

/// Extents of the choices of all tokens.
#[derive(Clone, Copy, Debug, DeviceData)]
#[repr(C)]
pub struct PlaceArgs {
    /// Choices of all tokens together.
    pub choices: i32,
    /// Experts.
    pub experts: i32,
    /// Choices of a token.
    pub top_k: Divisor,
    /// Unused.
    pub padding: u32,
}

/// Writes the token of each row, and the row of each choice: rows are the choices, sorted by expert. A choice of an
/// expert that does not exist has no row, which −1 says.
///
/// # Safety
/// All operands must have an element for each choice. `order` has each position once.
#[kernel(threads = 256, cpu = crate::cpu::BODY)]
pub unsafe fn place_choices(
    sorted_experts: Global<u32>,
    order: Global<i32>,
    token_of_row: GlobalMut<i32>,
    row_of_choice: GlobalMut<i32>,
    args: PlaceArgs,
) {
    let rows = RowMajor::new([1, args.choices], 0);
    let tile = (0u32, block_idx().x);
    // SAFETY: the launcher promises the extents.
    let (experts, order, tokens) = unsafe {
        (
            Tensor::new(sorted_experts, rows).local_tile::<ChoiceTile>(tile),
            Tensor::new(order, rows).local_tile::<ChoiceTile>(tile),
            Tensor::new(token_of_row, rows).local_tile::<ChoiceTile>(tile),
        )
    };
    let experts = experts.partition::<OfThread>(thread_idx()).load(0);
    let order = order.partition::<OfThread>(thread_idx());
    let tokens = tokens.partition::<OfThread>(thread_idx());
    let choice = order.load(0);
    let exists = |v| experts.get(v) < args.experts as u32;
    tokens.store_with(|v| match exists(v) {
        true => args.top_k.div_rem(choice.get(v) as u32).0 as i32,
        false => -1,
    });
    each::<<OfThread as ThreadValue>::Val>(|v| {
        if order.bound().holds(v) {
            let [_, row] = order.bound().coordinate(v);
            let row = if exists(v) { row } else { -1 };
            // SAFETY: the order has each position once, and all are below the number of choices.
            unsafe { row_of_choice.store(i64::from(choice.get(v)), row) };
        }
    });
}
