//! The checks of a call, and the arguments that a kernel gets.

use std::ptr;

use cutlet_device::{DeviceData, Global, GlobalMut};
use cutlet_host::{Stream, View};
use cutlet_kernels::attention::args::{Args, OutputArgs, SequencesArgs, TilesArgs, Window};
use cutlet_kernels::attention::mask::KeyBlocks;
use cutlet_kernels::attention::scheduler::Sequence;
use cutlet_kernels::attention::score_mod::{Modifications, Unmodified};
use cutlet_layout_core::Layout;

use super::heads::{Extents, Heads, Tensors, modes, refuse};
use super::kernels::{AttentionKernels, strides};
use super::{Attention, AttentionElement, NAME, Packed};
use crate::matrix::{disjoint, divisor, in_stream, pointer, pointer_mut};
use crate::{Result, Tensor, TensorMut};

/// The name of logarithms of sums in errors.
pub(super) const LOG_SUM_EXP: &str = "the logarithms of sums";

/// Bytes of keys and values that stay in the L2 cache while tiles of queries need them: a part of Hopper's 50 MB.
const IN_CACHE: usize = 32 << 20;

/// Checks a call, and enqueues it.
pub(super) fn run<T: AttentionElement>(
    mut attention: Attention<'_>,
    stream: &Stream,
    mut tensors: Tensors<'_, T>,
) -> Result<()> {
    let mut log_sum_exp = attention.log_sum_exp.take();
    let packed = attention.packed;
    let (heads, extents) = tensors.heads()?;
    let kernels = AttentionKernels::of(stream.device(), attention.kernels)?;
    tensors.check(stream)?;
    let packed = packed.map(|it| it.check(stream, &extents)).transpose()?;
    let modifications = modifications(&attention, stream, &extents)?;
    let mut args = Args {
        output: output(&heads[3], &mut log_sum_exp, stream, &extents, &tensors)?,
        sequences: sequences(packed.as_ref(), &extents),
        sinks: null(),
        has_sinks: 0,
        scale: scale(attention.scale, extents.features)?,
        tiles: TilesArgs {
            of_head: 0,
            heads: extents.heads as u32,
            all_heads: 0,
            heads_at_a_time: 0,
        },
        window: window(attention.window),
    };
    if let Some(sinks) = attention.sinks {
        of_heads("the sinks", stream, &sinks, &extents)?;
        (args.sinks, args.has_sinks) = (pointer(sinks), 1);
    }
    let sequences = packed.map_or(extents.sequences, |it| it.count());
    let queries = packed.map_or(extents.queries, |it| it.most_queries.min(extents.queries));
    let call = Call {
        stream,
        heads,
        extents,
        args,
        tiles: (sequences, queries),
    };
    let (plain, tensors) = (Unmodified::VALUE, &mut tensors);
    match (kernels, modifications) {
        (AttentionKernels::Sm90, None) => call.launch_sm90(T::SM90, plain, tensors),
        (AttentionKernels::Sm90, Some(it)) => call.launch_sm90(T::SM90_MODIFIED, it, tensors),
        (AttentionKernels::Sm80, None) => call.launch_sm80(T::SM80, plain, tensors),
        (AttentionKernels::Sm80, Some(it)) => call.launch_sm80(T::SM80_MODIFIED, it, tensors),
    }
}

/// A call that was checked.
pub(super) struct Call<'s> {
    pub stream: &'s Stream,
    pub heads: [Heads; 4],
    pub extents: Extents,
    pub args: Args,
    /// Sequences, and queries of the longest one.
    tiles: (usize, usize),
}

impl Call<'_> {
    /// The tiles of a launch, of so many queries each.
    pub fn tiles(&self, of_queries: u32) -> TilesArgs {
        let (sequences, queries) = self.tiles;
        let Extents {
            keys,
            heads,
            heads_of_keys,
            features,
            ..
        } = self.extents;
        let all_heads = sequences * heads;
        // Keys and values of a head of queries, in elements of 2 bytes.
        let bytes = 2 * 2 * keys * features * heads_of_keys / heads;
        TilesArgs {
            of_head: (queries as u32).div_ceil(of_queries),
            heads: heads as u32,
            all_heads: all_heads as u32,
            heads_at_a_time: at_a_time(self.args.window, all_heads, bytes) as u32,
        }
    }

    /// What the tiles of a head compute, if tiles have so many queries and blocks so many keys: keys, and a number for
    /// each block.
    pub fn cost_of_keys(&self, queries: u32, keys: u32) -> u64 {
        /// The part of a block's time that does not grow with its keys, in keys: blocks of 176 take 5 % less a key than
        /// those of 128.
        const OF_BLOCK: u32 = 24;
        /// Tiles that are looked at, so that long sequences do not take long.
        const SOME: usize = 32;
        let all = self.tiles.1;
        let sequence = Sequence {
            nth: 0,
            first_query: 0,
            first_key: 0,
            queries: all as i32,
            // The lengths of packed sequences are on the device.
            keys: match self.args.sequences.are_packed {
                0 => self.extents.keys,
                _ => all,
            } as i32,
        };
        let tiles = (all as u32).div_ceil(queries);
        let blocks: u64 = (0..tiles)
            .step_by((tiles as usize).div_ceil(SOME).max(1))
            .map(|tile| {
                let first = (tile * queries) as i32;
                let blocks = KeyBlocks::of(first, queries as i32, keys, sequence, self.args.window);
                u64::from(blocks.count())
            })
            .sum();
        blocks * u64::from(keys + OF_BLOCK)
    }
}

/// How many of all heads are computed at a time: those of which so many bytes each fit the cache.
pub(super) fn at_a_time(window: Window, all_heads: usize, bytes: usize) -> usize {
    let most = match window == Window::CAUSAL {
        // The longest tiles of all heads come first, so that all blocks end at the same time.
        true => all_heads,
        false => (IN_CACHE / bytes.max(1)).clamp(1, all_heads),
    };
    let divides = |count: &usize| all_heads.is_multiple_of(*count);
    (1..=most).rev().find(divides).unwrap_or(1)
}

/// A pointer that the kernel does not read.
pub(super) fn null<T: DeviceData>() -> Global<T> {
    Global::from_ptr(ptr::null())
}

pub(super) fn scale(scale: Option<f32>, features: usize) -> Result<f32> {
    match scale {
        None => Ok(1.0 / (features as f32).sqrt()),
        Some(scale) if scale.is_finite() && scale > 0.0 => Ok(scale),
        Some(scale) => refuse(format!(
            "the scale is {scale}; give a finite number above 0, and negate the queries for a negative one"
        )),
    }
}

/// The soft cap, or 0.
pub(super) fn checked_soft_cap(soft_cap: f32) -> Result<f32> {
    match soft_cap.is_finite() && soft_cap >= 0.0 {
        true => Ok(soft_cap),
        false => refuse(format!(
            "the soft cap is {soft_cap}; give a finite number above 0"
        )),
    }
}

pub(super) fn window(window: Option<[usize; 2]>) -> Window {
    let Some(window) = window else {
        return Window::FULL;
    };
    let [before, after] = window.map(|keys| u32::try_from(keys).unwrap_or(u32::MAX));
    Window::new(before, after)
}

pub(super) fn sequences(packed: Option<&Packed<'_>>, extents: &Extents) -> SequencesArgs {
    SequencesArgs {
        first_queries: packed.map_or(null(), |it| pointer(it.queries)),
        first_keys: packed.map_or(null(), |it| pointer(it.keys)),
        are_packed: packed.is_some().into(),
        queries: extents.queries as i32,
        keys: extents.keys as i32,
        group: divisor(extents.heads / extents.heads_of_keys),
    }
}

impl Packed<'_> {
    /// How many sequences there are.
    pub(super) fn count(&self) -> usize {
        self.queries.len() - 1
    }

    /// Returns an error unless the numbers are those of sequences, and the stream may read them.
    pub(super) fn check(self, stream: &Stream, extents: &Extents) -> Result<Self> {
        let (queries, keys) = (self.queries.len(), self.keys.len());
        if extents.sequences != 1 || queries < 2 || keys != queries {
            return refuse(format!(
                "packed sequences have {queries} numbers for queries and {keys} for keys, and lie in tensors of {} \
                 sequences; give one number more than there are sequences for both, and tensors of one sequence",
                extents.sequences
            ));
        }
        for (what, view) in [
            ("the first queries", self.queries),
            ("the first keys", self.keys),
        ] {
            in_stream(NAME, stream, what, view)?;
            view.use_in(stream, NAME, what)?;
        }
        Ok(self)
    }
}

/// Returns an error unless there is a number for each head, and the stream may read it.
pub(super) fn of_heads(
    what: &str,
    stream: &Stream,
    numbers: &View<'_, f32>,
    extents: &Extents,
) -> Result<()> {
    if numbers.len() != extents.heads {
        return refuse(format!(
            "{what} are {} numbers for {} heads; give one for each",
            numbers.len(),
            extents.heads
        ));
    }
    in_stream(NAME, stream, what, *numbers)?;
    Ok(numbers.use_in(stream, NAME, what)?)
}

/// The strides of logarithms of sums, whose extents are those of (sequence, query, head).
pub(super) fn strides_of_log_sum_exp(layout: &Layout, expected: [usize; 3]) -> Result<[i64; 3]> {
    let found = modes(LOG_SUM_EXP, layout, ["sequence", "query", "head"])?;
    if found.map(|it| it[0]) != expected {
        return refuse(format!(
            "{LOG_SUM_EXP} have (sequences, queries, heads) = {:?}, and the queries {expected:?}; give a tensor of that \
             shape",
            found.map(|it| it[0])
        ));
    }
    Ok(found.map(|it| it[1] as i64))
}

/// Where the output goes, and the logarithms of sums, if they are asked for.
fn output<T: DeviceData>(
    heads: &Heads,
    log_sum_exp: &mut Option<TensorMut<'_, f32>>,
    stream: &Stream,
    extents: &Extents,
    tensors: &Tensors<'_, T>,
) -> Result<OutputArgs> {
    let logarithms = check_log_sum_exp(log_sum_exp, stream, extents, tensors)?;
    Ok(OutputArgs {
        strides: strides(heads),
        log_sum_exp: logarithms.to,
        log_sum_exp_strides: logarithms.strides,
        features: extents.features as i32,
        writes_log_sum_exp: logarithms.are_written,
    })
}

/// The logarithms of sums, as kernels get them.
pub(super) struct Logarithms {
    pub to: GlobalMut<f32>,
    pub strides: [i64; 3],
    /// 0 if they are not asked for.
    pub are_written: u32,
}

/// Returns an error unless there is a logarithm for each query, and the stream may write it.
pub(super) fn check_log_sum_exp<T: DeviceData>(
    log_sum_exp: &mut Option<TensorMut<'_, f32>>,
    stream: &Stream,
    extents: &Extents,
    tensors: &Tensors<'_, T>,
) -> Result<Logarithms> {
    let Some(tensor) = log_sum_exp else {
        return Ok(Logarithms {
            to: GlobalMut::from_ptr(ptr::null_mut()),
            strides: [0; 3],
            are_written: 0,
        });
    };
    let what = LOG_SUM_EXP;
    let expected = [extents.sequences, extents.queries, extents.heads];
    let strides = strides_of_log_sum_exp(&tensor.layout, expected)?;
    in_stream(NAME, stream, what, tensor.view.view())?;
    let written = tensor.addresses();
    disjoint(NAME, what, tensors.output.addresses(), written.clone())?;
    for (what, tensor) in tensors.read() {
        disjoint(NAME, what, tensor.addresses(), written.clone())?;
    }
    tensor.view.use_in(stream, NAME, what)?;
    Ok(Logarithms {
        to: pointer_mut(tensor.view.view().address()),
        strides,
        are_written: 1,
    })
}

/// What is done to scores, if anything.
fn modifications(
    attention: &Attention<'_>,
    stream: &Stream,
    extents: &Extents,
) -> Result<Option<Modifications>> {
    let Attention {
        soft_cap,
        bias,
        slopes,
        ..
    } = attention;
    let soft_cap = checked_soft_cap(*soft_cap)?;
    if soft_cap == 0.0 && bias.is_none() && slopes.is_none() {
        return Ok(None);
    }
    let mut args = Modifications {
        bias: null(),
        bias_strides: [0; 3],
        bias_extent: [extents.queries as i32, extents.keys as i32],
        slopes: null(),
        soft_cap,
        has_bias: 0,
        has_slopes: 0,
        unused: 0,
    };
    if let Some(bias) = bias {
        args.bias_strides = strides_of_bias(bias, stream, extents)?;
        (args.bias, args.has_bias) = (pointer(bias.view), 1);
    }
    if let Some(slopes) = slopes {
        of_heads("the slopes", stream, slopes, extents)?;
        (args.slopes, args.has_slopes) = (pointer(*slopes), 1);
    }
    Ok(Some(args))
}

/// The strides of a bias along sequences, heads and queries.
fn strides_of_bias(bias: &Tensor<'_, f32>, stream: &Stream, extents: &Extents) -> Result<[i64; 3]> {
    let found = modes(
        "the bias",
        &bias.layout,
        ["sequence", "head", "query", "key"],
    )?;
    let expected = [
        extents.sequences,
        extents.heads,
        extents.queries,
        extents.keys,
    ];
    let [sequence, head, query, [keys, of_key]] = found;
    if found.map(|it| it[0]) != expected || keys > 1 && of_key != 1 {
        return refuse(format!(
            "the bias is {}; give (sequences, heads, queries, keys) = {expected:?} with contiguous keys, where modes of \
             stride 0 repeat it",
            bias.layout.to_dynamic()
        ));
    }
    in_stream(NAME, stream, "the bias", bias.view)?;
    bias.view.use_in(stream, NAME, "the bias")?;
    Ok([sequence, head, query].map(|it| it[1] as i64))
}
