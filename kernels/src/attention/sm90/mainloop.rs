//! The mainloop of a consumer: two products for each block of keys, and the softmax between them.

use cutlet_device::collective::{Consumer, OrderedBarrier, StageIdx, Stages};
use cutlet_device::sm90::{Accumulator, AccumulatorsAsA, warpgroup_arrive, warpgroup_wait};
use cutlet_device::warpgroup::{WarpgroupIdx, WarpgroupThread};

use cutlet_layout_core::Fragment;

use super::config::{CONSUMERS, Config, RingOfKeys, RingOfQueries, RingOfValues, Storage};
use super::scores::{Scores, ScoresOfRows};
use super::store::Output;
use crate::attention::mask::{KeyBlocks, ScorePlaces};
use crate::attention::score_mod::ScoreMod;
use crate::attention::softmax::Softmax;

/// The mainloop of a consumer, over the stages of keys and of values.
pub(super) struct Mainloop<C: Config> {
    queries: (RingOfQueries<C>, Consumer<Stages<CONSUMERS>>),
    keys: (RingOfKeys<C>, Consumer<C::Stages>),
    values: (RingOfValues<C>, Consumer<C::Stages>),
    order: OrderedBarrier,
    thread: WarpgroupThread,
}

/// What a consumer has between two blocks of keys.
struct State<C: Config> {
    /// The output of the blocks before the last one.
    output: Accumulator<C::Output>,
    /// The weights of the last block.
    weights: AccumulatorsAsA<C::Scores, C::Element>,
    softmax: Softmax,
}

impl<C: Config> Mainloop<C> {
    /// The mainloop of this consumer.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn new(block: Storage<C>, consumer: WarpgroupIdx, thread: WarpgroupThread) -> Self {
        let order = OrderedBarrier::new(consumer);
        order.begin();
        let mut queries = block.queries.1.consumer();
        queries.skip(consumer.own(1, 0));
        Self {
            queries: (block.queries.0, queries),
            keys: (block.keys.0, block.keys.1.consumer()),
            values: (block.values.0, block.values.1.consumer()),
            order,
            thread,
        }
    }

    /// The output of the next queries, and the sums to divide it by.
    ///
    /// The queries are released before the last values are multiplied, so that the next ones come meanwhile.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    pub fn attend<M: ScoreMod>(
        &mut self,
        blocks: KeyBlocks,
        scores: &ScoresOfRows<'_, M>,
    ) -> (Output<C>, Softmax) {
        let full = self.queries.1.wait();
        let queries = full.stage();
        let mut state = self.begin(queries, blocks.block(0), scores);
        // Where scores are modified, a mask costs little.
        let masked = match M::IS_IDENTITY {
            true => blocks.count_masked(),
            false => blocks.count(),
        };
        for nth in 1..masked {
            state = self.step::<M, true>(queries, blocks.block(nth), scores, state);
        }
        if M::IS_IDENTITY {
            for nth in masked.max(1)..blocks.count() {
                state = self.step::<M, false>(queries, blocks.block(nth), scores, state);
            }
        }
        self.queries.1.release(full, self.thread);
        self.queries.1.skip(CONSUMERS as u32 - 1);
        self.end(state)
    }

    /// The weights of the first block.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn begin<M: ScoreMod>(
        &mut self,
        queries: StageIdx,
        block: u32,
        scores: &ScoresOfRows<'_, M>,
    ) -> State<C> {
        let keys = self.keys.1.wait();
        self.order.wait();
        let of_block = self.multiply_keys(queries, keys.stage());
        self.order.pass();
        let of_block = of_block.wait();
        self.keys.1.release(keys, self.thread);
        let of_block = scores.finish::<C, true>(&of_block, block);
        let mut softmax = Softmax::new(scores.scale());
        let (weights, _) = softmax.add(&of_block);
        State {
            output: Accumulator::from_values(&Fragment::filled(0.0)),
            weights: AccumulatorsAsA::new(&weights),
            softmax,
        }
    }

    /// The weights of one more block, and the output of the block before. The tensor cores compute this output while
    /// the threads make the weights.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn step<M: ScoreMod, const MASKED: bool>(
        &mut self,
        queries: StageIdx,
        block: u32,
        scores: &ScoresOfRows<'_, M>,
        state: State<C>,
    ) -> State<C> {
        let State {
            mut output,
            weights,
            mut softmax,
        } = state;
        let keys = self.keys.1.wait();
        self.order.wait();
        let of_block = self.multiply_keys(queries, keys.stage());
        let values = self.values.1.wait();
        self.multiply_values(&mut output, &weights, values.stage());
        self.order.pass();
        // ptxas waits for all products where branches come before the wait.
        if !M::IS_IDENTITY {
            warpgroup_wait::<0>();
        }
        let of_block = of_block.wait_but::<1>();
        self.keys.1.release(keys, self.thread);
        let of_block = scores.finish::<C, MASKED>(&of_block, block);
        let (new_weights, rescale) = softmax.add(&of_block);
        let output = output.wait();
        self.values.1.release(values, self.thread);
        drop(weights);
        let output = output.map(|v, value| value * rescale[ScorePlaces::row_of(v)]);
        State {
            output: Accumulator::from_values(&output),
            weights: AccumulatorsAsA::new(&new_weights),
            softmax,
        }
    }

    /// The output with that of the last block.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn end(&mut self, state: State<C>) -> (Output<C>, Softmax) {
        let State {
            mut output,
            weights,
            softmax,
        } = state;
        let values = self.values.1.wait();
        self.multiply_values(&mut output, &weights, values.stage());
        let output = output.wait();
        self.values.1.release(values, self.thread);
        drop(weights);
        (output, softmax)
    }

    /// Issues the product of the queries and a stage of keys.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn multiply_keys(&self, queries: StageIdx, stage: StageIdx) -> Scores<C> {
        let mut scores = Accumulator::new();
        let a = self.queries.0.operand_a::<C::Scores>(queries);
        let b = self.keys.0.operand_b::<C::Scores>(stage);
        let group = warpgroup_arrive();
        // 64 features are four k-steps.
        for nth in 0..C::FEATURES / 64 {
            let steps = [4 * nth, 4 * nth + 1, 4 * nth + 2, 4 * nth + 3];
            let (a, b) = (
                steps.map(|step| a.k_step(step)),
                steps.map(|step| b.k_step(step)),
            );
            // SAFETY: the queries and the stage are full until they are released.
            unsafe { group.mma_x4(&mut scores, a, b, nth > 0) };
        }
        group.commit();
        scores
    }

    /// Issues the product of the weights and a stage of values.
    #[inline(always)]
    #[cfg_attr(not(target_arch = "nvptx64"), track_caller)]
    fn multiply_values(
        &self,
        output: &mut Accumulator<C::Output>,
        weights: &AccumulatorsAsA<C::Scores, C::Element>,
        stage: StageIdx,
    ) {
        let b = self.values.0.operand_b::<C::Output>(stage);
        let group = warpgroup_arrive();
        // SAFETY: the stage is full until it is released. The weights are dropped after the wait.
        unsafe { group.mma_from_accumulators(output, weights, b) };
        group.commit();
    }
}
