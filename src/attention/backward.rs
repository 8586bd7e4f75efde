//! The backward pass: checks, and the launches of its kernels.

use cutlet_device::DeviceData;
use cutlet_device::tma::TensorMap;
use cutlet_host::{LaunchConfig, Stream, TensorMapSpec};
use cutlet_kernels::PTX;
use cutlet_kernels::attention::args::{SequencesArgs, TilesArgs, Window};
use cutlet_kernels::attention::sm90::backward::args::{
    BackwardArgs, QueriesArgs, QueryBlocksArgs, StatisticsArgs, Strides,
};
use cutlet_kernels::attention::sm90::backward::instances::Instance;
use cutlet_kernels::attention::sm90::backward::turns::TurnsArgs;
use cutlet_kernels::attention::sm90::config::CONSUMERS;

use super::heads::{Extents, Heads, refuse};
use super::kernels::{AttentionKernels, strides};
use super::launch::{LOG_SUM_EXP, at_a_time, scale, sequences, strides_of_log_sum_exp, window};
use super::{Attention, AttentionElement, NAME};
use crate::matrix::{disjoint, in_stream, pointer, pointer_mut};
use crate::{Result, Tensor, TensorMut};

/// The tensors of a call.
pub(super) struct Tensors<'t, T: DeviceData> {
    pub queries: Tensor<'t, T>,
    pub keys: Tensor<'t, T>,
    pub values: Tensor<'t, T>,
    pub output: Tensor<'t, T>,
    pub log_sum_exp: Tensor<'t, f32>,
    pub output_gradient: Tensor<'t, T>,
    pub of_queries: TensorMut<'t, T>,
    pub of_keys: TensorMut<'t, T>,
    pub of_values: TensorMut<'t, T>,
}

/// The extents and strides of the tensors.
struct AllHeads {
    queries: Heads,
    keys: Heads,
    values: Heads,
    output: Heads,
    output_gradient: Heads,
    of_queries: Heads,
    of_keys: Heads,
    of_values: Heads,
    log_sum_exp: Strides,
}

impl<T: DeviceData> Tensors<'_, T> {
    /// The tensors of heads that are read, with their names in errors.
    fn read(&self) -> [(&'static str, &Tensor<'_, T>); 5] {
        [
            ("the queries", &self.queries),
            ("the keys", &self.keys),
            ("the values", &self.values),
            ("the output", &self.output),
            ("the output's gradient", &self.output_gradient),
        ]
    }

    /// The tensors that are written.
    fn written(&self) -> [(&'static str, &TensorMut<'_, T>); 3] {
        [
            ("the queries' gradient", &self.of_queries),
            ("the keys' gradient", &self.of_keys),
            ("the values' gradient", &self.of_values),
        ]
    }

    /// The tensors as kernels see them.
    ///
    /// # Errors
    /// If extents or strides are none that kernels take, or do not agree.
    fn heads(&self) -> Result<(AllHeads, Extents)> {
        let of = |what, tensor: &Tensor<'_, T>| {
            Heads::of::<T>(what, &tensor.layout, tensor.view.address())
        };
        let read = |nth: usize| {
            let (what, tensor) = self.read()[nth];
            of(what, tensor)
        };
        let [queries, keys, values, output] = [read(0)?, read(1)?, read(2)?, read(3)?];
        let extents = Extents::of([&queries, &keys, &values, &output])?;
        let of_shape = |what: &'static str, tensor: &Tensor<'_, T>, shape: &Heads| {
            let heads = of(what, tensor)?;
            if heads.extents != shape.extents {
                return refuse(format!(
                    "{what} has (sequences, rows, heads, features) = {:?}, and not {:?}; give a gradient of its \
                     tensor's shape",
                    heads.extents, shape.extents
                ));
            }
            Ok(heads)
        };
        let written = |nth: usize, shape: &Heads| {
            let (what, tensor) = &self.written()[nth];
            of_shape(what, &tensor.tensor(), shape)
        };
        let expected = [extents.sequences, extents.queries, extents.heads];
        let all = AllHeads {
            output_gradient: of_shape(self.read()[4].0, &self.output_gradient, &queries)?,
            of_queries: written(0, &queries)?,
            of_keys: written(1, &keys)?,
            of_values: written(2, &values)?,
            log_sum_exp: strides_of_log_sum_exp(&self.log_sum_exp.layout, expected)?,
            queries,
            keys,
            values,
            output,
        };
        Ok((all, extents))
    }

    /// Returns an error unless the stream may use the tensors, and those that are written overlap no others.
    fn check(&self, stream: &Stream) -> Result<()> {
        for (what, tensor) in self.read() {
            in_stream(NAME, stream, what, tensor.view)?;
        }
        in_stream(NAME, stream, LOG_SUM_EXP, self.log_sum_exp.view)?;
        let written = self.written();
        for (nth, (what, tensor)) in written.iter().enumerate() {
            in_stream(NAME, stream, what, tensor.view.view())?;
            for (what, read) in self.read() {
                disjoint(NAME, what, read.addresses(), tensor.addresses())?;
            }
            disjoint(
                NAME,
                LOG_SUM_EXP,
                self.log_sum_exp.addresses(),
                tensor.addresses(),
            )?;
            for (what, other) in &written[..nth] {
                disjoint(NAME, what, other.addresses(), tensor.addresses())?;
            }
        }
        Ok(())
    }

    /// Orders the stream behind other uses of the tensors of which kernels get addresses alone.
    fn use_in(&self, stream: &Stream) -> Result<()> {
        for (what, tensor) in self.read() {
            tensor.view.use_in(stream, NAME, what)?;
        }
        Ok(self.log_sum_exp.view.use_in(stream, NAME, LOG_SUM_EXP)?)
    }
}

/// Refuses what the kernels do not differentiate.
fn expect_plain(attention: &Attention<'_>) -> Result<()> {
    let found = [
        (attention.soft_cap != 0.0, "a soft cap"),
        (attention.bias.is_some(), "a bias"),
        (attention.slopes.is_some(), "slopes"),
        (
            attention.kernels == Some(AttentionKernels::Sm80),
            "kernels by mma.sync",
        ),
        (
            attention.log_sum_exp.is_some(),
            "a tensor for the logarithms of sums, which the forward pass writes",
        ),
    ];
    match found.iter().find(|(is_there, _)| *is_there) {
        None => Ok(()),
        Some((_, what)) => refuse(format!(
            "the backward pass has {what}; it takes a scale, a window, sinks and packed sequences alone"
        )),
    }
}

/// Checks a call, and enqueues it.
pub(super) fn run<T: AttentionElement>(
    attention: Attention<'_>,
    stream: &Stream,
    mut tensors: Tensors<'_, T>,
) -> Result<()> {
    expect_plain(&attention)?;
    let (heads, extents) = tensors.heads()?;
    AttentionKernels::of(stream.device(), Some(AttentionKernels::Sm90))?;
    tensors.check(stream)?;
    let packed = attention
        .packed
        .map(|it| it.check(stream, &extents))
        .transpose()?;
    let features = extents.features;
    let Some(instance) = T::BACKWARD.iter().find(|it| features <= it.features) else {
        return refuse(format!(
            "heads have {features} features; the backward pass takes up to 128"
        ));
    };
    tensors.use_in(stream)?;
    let rows = packed.map_or(extents.queries, |it| it.most_queries.min(extents.queries));
    let call = Call {
        stream,
        instance,
        heads,
        extents,
        sequences: sequences(packed.as_ref(), &extents),
        all_sequences: packed.map_or(extents.sequences, |it| it.count()),
        blocks_of_head: rows.div_ceil(instance.queries_of_block),
        window: window(attention.window),
        scale: scale(attention.scale, features)?,
        deterministic: attention.deterministic,
    };
    call.launch(&mut tensors)
}

/// A call that was checked.
struct Call<'s, T: 'static> {
    stream: &'s Stream,
    instance: &'static Instance<T>,
    heads: AllHeads,
    extents: Extents,
    sequences: SequencesArgs,
    all_sequences: usize,
    /// Blocks of queries of a head.
    blocks_of_head: usize,
    window: Window,
    scale: f32,
    deterministic: bool,
}

impl<T: AttentionElement> Call<'_, T> {
    /// Launches the three kernels.
    fn launch(&self, tensors: &mut Tensors<'_, T>) -> Result<()> {
        let Self {
            stream,
            instance,
            heads,
            extents,
            ..
        } = self;
        let (device, features) = (stream.device(), extents.features as i32);
        let blocks = QueryBlocksArgs {
            of_head: self.blocks_of_head as u32,
            heads: extents.heads as u32,
        };
        let all_blocks = self.all_sequences * extents.heads * self.blocks_of_head;
        let statistics = stream.scratch::<f32>(2 * all_blocks * instance.queries_of_block)?;
        let mut query_sums = stream.scratch::<f32>(all_blocks * instance.sums_of_block)?;
        stream.fill_bytes(query_sums.view_mut(), 0)?;
        let turns = match self.deterministic {
            true => all_blocks * CONSUMERS,
            false => 0,
        };
        let mut next = stream.scratch::<u32>(turns)?;
        stream.fill_bytes(next.view_mut(), 0)?;
        let args = StatisticsArgs {
            log_sum_exp: pointer(tensors.log_sum_exp.view),
            log_sum_exp_strides: heads.log_sum_exp,
            output: strides(&heads.output),
            output_gradient: strides(&heads.output_gradient),
            statistics: pointer_mut(statistics.view().address()),
            sequences: self.sequences,
            blocks,
            features,
            unused: 0,
        };
        let function = device.load(&PTX, instance.statistics)?;
        let operands = (tensors.output.view, tensors.output_gradient.view, args);
        // SAFETY: extents and strides are those of the tensors, which were checked against their memory. There are
        // statistics for each block.
        unsafe { stream.launch(&function, all_blocks as u32, operands)? };

        let tiles = self.tiles();
        let args = BackwardArgs {
            query_sums: pointer_mut(query_sums.view().address()),
            turns: TurnsArgs {
                next: pointer_mut(next.view().address()),
                are_taken: self.deterministic.into(),
                unused: 0,
            },
            keys: strides(&heads.of_keys),
            values: strides(&heads.of_values),
            sequences: self.sequences,
            tiles,
            blocks,
            window: self.window,
            scale: self.scale,
            features,
        };
        let numbers = instance.queries_of_block as u64;
        let of_statistics = TensorMapSpec::rows(2 * all_blocks as u64, numbers, numbers);
        let [queries, keys, values, output_gradient] = self.maps(tensors)?;
        let operands = (
            queries,
            keys,
            values,
            output_gradient,
            of_statistics.encode(statistics.view(), instance.boxes[3])?,
            tensors.of_keys.view.reborrow(),
            tensors.of_values.view.reborrow(),
            args,
        );
        let function = device.load(&PTX, instance.keys)?;
        let grid = (tiles.of_head * tiles.all_heads).min(device.multiprocessors());
        let config = LaunchConfig {
            cooperative: self.deterministic,
            ..LaunchConfig::from(grid)
        };
        // SAFETY: as above. What is written overlaps nothing else. Blocks that wait for each other's turns run at the
        // same time. Rows of packed sequences that are none of the tensors' are neither loaded by TMA nor stored, as
        // `packed` says of them.
        unsafe { stream.launch(&function, config, operands)? };

        let args = QueriesArgs {
            query_sums: pointer_mut(query_sums.view().address()),
            strides: strides(&heads.of_queries),
            sequences: self.sequences,
            blocks,
            scale: self.scale,
            features,
        };
        let function = device.load(&PTX, instance.queries)?;
        let to = tensors.of_queries.view.reborrow();
        // SAFETY: as above.
        unsafe { stream.launch(&function, all_blocks as u32, (to, args))? };
        Ok(())
    }

    /// The maps of queries, keys, values and the output's gradient.
    fn maps(&self, tensors: &Tensors<'_, T>) -> Result<[TensorMap; 4]> {
        let [of_queries, of_keys, of_values, _] = self.instance.boxes;
        let heads = &self.heads;
        Ok([
            heads
                .queries
                .spec::<T>()
                .encode(tensors.queries.view, of_queries)?,
            heads.keys.spec::<T>().encode(tensors.keys.view, of_keys)?,
            heads
                .values
                .spec::<T>()
                .encode(tensors.values.view, of_values)?,
            heads
                .output_gradient
                .spec::<T>()
                .encode(tensors.output_gradient.view, of_queries)?,
        ])
    }

    /// The tiles of keys.
    fn tiles(&self) -> TilesArgs {
        let Extents {
            queries,
            keys,
            heads,
            heads_of_keys,
            features,
            ..
        } = self.extents;
        // Queries and gradients of a head of keys, in elements of 2 bytes, and the sums of their dQ, in those of 4.
        let bytes = (2 + 2 + 4) * queries * features * heads / heads_of_keys;
        let all_heads = self.all_sequences * heads_of_keys;
        TilesArgs {
            of_head: keys.div_ceil(self.instance.keys_of_tile) as u32,
            heads: heads_of_keys as u32,
            all_heads: all_heads as u32,
            heads_at_a_time: at_a_time(self.window, all_heads, bytes) as u32,
        }
    }
}
