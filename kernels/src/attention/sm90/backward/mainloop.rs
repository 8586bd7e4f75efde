//! The mainloop of a consumer: five products for each block of queries.

use core::f32::consts::LOG2_E;

use cutlet_device::collective::{Consumer, StageIdx};
use cutlet_device::operand::{Operand, OperandA, OperandB};
use cutlet_device::sm90::{
    Accumulator, AccumulatorsAsA, WgmmaInstruction, store_accumulator, warpgroup_arrive,
    warpgroup_wait,
};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread, warpgroup_idx};
use cutlet_device::{
    GlobalMut, MmaInstruction, RedAdd, Shared, barrier_sync, exp2_approx, fence_async_shared, fma,
};
use cutlet_layout_core::{
    Fixed, Fragment, FragmentLayout, M, NoSwizzle, StaticLayout, StaticSwizzle, Tensor, ThreadValue,
};

use super::config::{
    Columns, Config, PART, Stages, Storage, SumsOfBlock, SumsOfThread, Tile, part_of,
};
use super::turns::Turn;
use crate::attention::args::Window;
use crate::attention::mask::{ScorePlaces, VisibleKeys, mask};
use crate::attention::scheduler::Sequence;
use crate::attention::sm90::config::CONSUMERS;

/// The named barrier at which all consumers meet. Those before are of one warpgroup each.
const ALL_CONSUMERS: u32 = 1 + CONSUMERS as u32;

/// A thread's part of a consumer's dK or dV.
pub(super) type OfKeys<C> = Fragment<f32, <<C as Config>::OfKeys as MmaInstruction>::Values>;
/// A number for each of a thread's columns of scores.
type PerColumn = Fragment<f32, <Columns as ThreadValue>::Val>;

/// The running consumer. It is asked for wherever it is needed: registers would keep what follows from it, such as the
/// descriptors of the tiles that stay.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
pub(super) fn consumer_idx() -> WarpgroupIdx {
    warpgroup_idx().after(1)
}

/// The keys of a consumer, as its threads see them.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeysOfConsumer {
    /// The queries that see the key of each of a thread's rows.
    visible: [VisibleKeys; ScorePlaces::ROWS],
    places: ScorePlaces,
    scale: f32,
}

impl KeysOfConsumer {
    /// Of the 64 keys from `first` on. In `transposed`, and in `window`, keys and queries have changed places.
    #[inline(always)]
    pub fn new(
        first: i32,
        transposed: Sequence,
        window: Window,
        scale: f32,
        places: ScorePlaces,
    ) -> Self {
        let visible = [0, 1].map(|nth: usize| {
            let key = first + places.row_below(nth);
            match key < transposed.queries {
                true => VisibleKeys::of(key, transposed, window),
                false => VisibleKeys { first: 0, end: 0 },
            }
        });
        Self {
            visible,
            places,
            scale: scale * LOG2_E,
        }
    }
}

/// dK and dV of a consumer's keys, without the queries to come.
pub(super) struct Gradients<C: Config> {
    pub keys: Accumulator<C::OfKeys>,
    pub values: Accumulator<C::OfKeys>,
}

impl<C: Config> Gradients<C> {
    /// Zeros.
    #[inline(always)]
    pub fn new() -> Self {
        let zeros = || Accumulator::from_values(&Fragment::filled(0.0));
        Self {
            keys: zeros(),
            values: zeros(),
        }
    }
}

/// A block of queries that see the keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    /// The block's first query.
    pub first_query: i32,
    /// The sums of its dQ.
    pub query_sums: GlobalMut<f32>,
    /// When the tile may add to them.
    pub turn: Turn,
}

/// A part of a block of queries.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The block's stage.
    stage: StageIdx,
    /// Which of the block's parts.
    nth: usize,
    /// The running consumer.
    consumer: WarpgroupIdx,
    /// The part's first query.
    first_query: i32,
}

/// The weights of a part, and the gradients of its scores, in registers that products read until they were waited for.
type Weights<C> = [AccumulatorsAsA<<C as Config>::Scores, <C as Config>::Element>; 2];

/// The mainloop of a consumer.
pub(super) struct Mainloop<C: Config> {
    block: Storage<C>,
    full: Consumer<Stages>,
    thread: WarpgroupThread,
}

impl<C: Config> Mainloop<C> {
    /// The mainloop of this consumer.
    #[inline(always)]
    pub fn new(block: Storage<C>, thread: WarpgroupThread) -> Self {
        Self {
            block,
            full: block.full.consumer(),
            thread,
        }
    }

    /// Adds what a block of queries adds to dK and dV, and to this consumer's part of the block's dQ.
    ///
    /// # Safety
    /// The sums must be there, and as [`Turn::wait`].
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub unsafe fn step<const MASKED: bool>(
        &mut self,
        sums: &mut Gradients<C>,
        keys: &KeysOfConsumer,
        step: Step,
    ) {
        let consumer = consumer_idx();
        // SAFETY: as promised by the caller.
        unsafe { step.turn.wait(consumer, self.thread) };
        let full = self.full.wait();
        let part = |nth: usize| Part {
            stage: full.stage(),
            nth,
            consumer,
            first_query: step.first_query + (nth * PART) as i32,
        };
        for nth in 1..C::PARTS {
            let part = part(nth - 1);
            let registers = self.add_to_values::<MASKED>(sums, keys, part);
            self.add_to_keys(sums, &registers, part);
            warpgroup_wait::<0>();
            drop(registers);
        }
        let part = part(C::PARTS - 1);
        let registers = self.add_to_values::<MASKED>(sums, keys, part);
        fence_async_shared();
        barrier_sync(ALL_CONSUMERS, 128 * CONSUMERS as u32);
        let mut of_queries = Accumulator::<C::OfQueries>::new();
        self.multiply_scores(&mut of_queries, part);
        self.add_to_keys(sums, &registers, part);
        // The tensor cores compute dK while the threads add to dQ.
        let of_queries = of_queries.wait_but::<1>();
        // SAFETY: as promised by the caller.
        unsafe { add_to_sums(step.query_sums, consumer, self.thread, &of_queries) };
        warpgroup_wait::<0>();
        drop(registers);
        self.full.release(full, self.thread);
        // SAFETY: as promised by the caller.
        unsafe { step.turn.pass(consumer, self.thread) };
    }

    /// Issues what a part of a block of queries adds to dV, and writes its dS to shared memory.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add_to_values<const MASKED: bool>(
        &self,
        sums: &mut Gradients<C>,
        keys: &KeysOfConsumer,
        part: Part,
    ) -> Weights<C> {
        let block = self.block;
        let queries = part_of::<C>(block.queries, part.stage, part.nth);
        let gradients = part_of::<C>(block.gradients, part.stage, part.nth);
        let mut scores = Accumulator::<C::Scores>::new();
        let of_keys = block.keys.0.operand_a::<C::Scores>().rows(part.consumer);
        multiply(&mut scores, of_keys, queries.operand_b::<C::Scores>());
        let mut of_weights = Accumulator::<C::Scores>::new();
        let values = block.values.0.tile(part.consumer).operand_a::<C::Scores>();
        multiply(&mut of_weights, values, gradients.operand_b::<C::Scores>());

        let scores = scores.wait_but::<1>();
        let scores = match MASKED {
            true => mask(&scores, keys.places, keys.visible, part.first_query),
            false => scores,
        };
        let log_sums = self.per_column(block.log_sums.stage(part.stage), part.nth);
        let weights =
            scores.map(|v, score| exp2_approx(fma(score, keys.scale, -log_sums.get(column(v)))));
        let weights_as_a = AccumulatorsAsA::<C::Scores, C::Element>::new(&weights);
        self.add(&mut sums.values, &weights_as_a, by_feature::<C>(gradients));
        let of_weights = of_weights.wait_but::<1>();
        let row_sums = self.per_column(block.row_sums.stage(part.stage), part.nth);
        let of_scores =
            of_weights.map(|v, of_weight| weights.get(v) * (of_weight - row_sums.get(column(v))));
        let scores_as_a = AccumulatorsAsA::<C::Scores, C::Element>::new(&of_scores);
        // SAFETY: the products that read this tile before are over: the consumers have met since.
        unsafe {
            let tile = block.scores.stage(part.stage).start();
            let own = part.consumer.own(C::PARTS, part.nth) as usize * C::ScoresByKey::SIZE;
            let own = Tile::<C, C::ScoresByKey>::from_shared(tile.offset(own as i64));
            store_accumulator::<C::Scores, _, _, _>(own, 0u32, 0, self.thread, &of_scores);
        }
        [weights_as_a, scores_as_a]
    }

    /// Issues what a part of a block of queries adds to dK.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add_to_keys(&self, sums: &mut Gradients<C>, [_, scores]: &Weights<C>, part: Part) {
        let queries = part_of::<C>(self.block.queries, part.stage, part.nth);
        self.add(&mut sums.keys, scores, by_feature::<C>(queries));
    }

    /// The numbers of a thread's columns of a part.
    #[inline(always)]
    fn per_column(&self, numbers: Shared<f32>, part: usize) -> PerColumn {
        // SAFETY: a stage is full until it is released.
        let numbers = unsafe {
            Tensor::new(
                numbers.offset((part * PART) as i64),
                Fixed::<M<PART, 1>, NoSwizzle>::new(),
            )
        };
        numbers
            .partition_broadcast::<Columns>(self.thread)
            .load(0.0)
    }

    /// Issues the product of accumulators and a tile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn add(
        &self,
        sums: &mut Accumulator<C::OfKeys>,
        a: &AccumulatorsAsA<C::Scores, C::Element>,
        tile: Tile<C, C::QueriesByFeature>,
    ) {
        let group = warpgroup_arrive();
        // SAFETY: the stage is full until it is released. The registers are dropped after the wait.
        unsafe { group.mma_from_accumulators(sums, a, tile.operand_b::<C::OfKeys>()) };
        group.commit();
    }

    /// Issues this consumer's part of dQ.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn multiply_scores(&self, of_queries: &mut Accumulator<C::OfQueries>, part: Part) {
        let consumer = part.consumer;
        let scores = self.block.scores.operand_a::<C::OfQueries>(part.stage);
        let keys = Tile::<C, C::KeysByFeature>::from_shared(self.block.keys.0.start());
        let keys = keys.operand_b::<C::OfQueries>();
        match C::DIVIDES_FEATURES {
            true => multiply(of_queries, scores, keys.rows(consumer)),
            false => multiply(of_queries, scores.rows(consumer), keys),
        }
    }
}

/// Issues the product of two tiles.
#[inline(always)]
#[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
fn multiply<I, LA, LB, WA, WB>(
    accumulator: &mut Accumulator<I>,
    a: Operand<OperandA<I>, LA, WA>,
    b: Operand<OperandB<I>, LB, WB>,
) where
    I: WgmmaInstruction,
    LA: StaticLayout,
    LB: StaticLayout,
    WA: StaticSwizzle,
    WB: StaticSwizzle,
{
    let group = warpgroup_arrive();
    for nth in 0..const { Operand::<OperandB<I>, LB, WB>::K_STEPS / 4 } {
        let steps = [4 * nth, 4 * nth + 1, 4 * nth + 2, 4 * nth + 3];
        let (a, b) = (
            steps.map(|step| a.k_step(step)),
            steps.map(|step| b.k_step(step)),
        );
        // SAFETY: the tiles are full until they are released.
        unsafe { group.mma_x4(accumulator, a, b, nth > 0) };
    }
    group.commit();
}

/// A tile of queries or gradients as (feature, query).
#[inline(always)]
fn by_feature<C: Config>(tile: Tile<C, C::Queries>) -> Tile<C, C::QueriesByFeature> {
    Tile::<C, C::QueriesByFeature>::from_shared(tile.start())
}

/// Adds a consumer's part of a block's dQ to its sums.
///
/// # Safety
/// The sums must be there.
#[inline(always)]
unsafe fn add_to_sums<V: FragmentLayout>(
    sums: GlobalMut<f32>,
    consumer: WarpgroupIdx,
    thread: WarpgroupThread,
    values: &Fragment<f32, V>,
) {
    let own = sums.offset(i64::from(consumer.own(SumsOfBlock::SIZE, 0)));
    // SAFETY: as promised by the caller.
    let sums = unsafe { Tensor::new(RedAdd::to(own), Fixed::<SumsOfBlock, NoSwizzle>::new()) };
    sums.partition::<SumsOfThread>(thread).store(values);
}

/// Which of a thread's columns score `v` belongs to.
#[inline(always)]
const fn column(v: usize) -> usize {
    v / 4 * 2 + v % 2
}
