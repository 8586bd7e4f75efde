//! Sampling: random tokens by the softmax of logits.

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{LaunchConfig, Scratch, Stream};
use cutlet_kernels::PTX;
use cutlet_kernels::rows::sample::{
    LISTED, SampleArgs, Splits, sample_bf16, sample_bf16_any, sample_f16, sample_f16_any,
    sample_f32, sample_f32_any,
};
use cutlet_kernels::rows::sample_split::{
    SplitArgs, sample_split_bf16, sample_split_f16, sample_split_f32,
};
use half::{bf16, f16};

use super::operand::{check_read, layout_of_rows, read, rows_of, written};
use super::reduce::{ReducedElement, argmax};
use super::refuse;
use super::space::{HasRows, RowSet};
use super::splits::splits_of;
use crate::matrix::{divisor, in_stream, pointer_mut};
use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

/// The operation's name in errors.
const NAME: &str = "sample";

/// An element type of the logits of [`Sampling`]: `f32`, `f16` or `bf16`.
pub trait SampledElement: ReducedElement + sealed::Kernels {}
impl SampledElement for f32 {}
impl SampledElement for f16 {}
impl SampledElement for bf16 {}

/// A kernel that draws.
type SampleKernel<T> = Kernel<(Global<T>, Global<u64>, GlobalMut<i32>, SampleArgs)>;
/// A kernel that lists elements of splits.
type SplitKernel<T> = Kernel<(Global<T>, SplitArgs)>;

mod sealed {
    use super::{DeviceData, SampleKernel, SplitKernel};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        /// For aligned vectors, and for any alignment.
        const DRAW: [&'static SampleKernel<Self>; 2];
        /// For aligned vectors.
        const SPLIT: &'static SplitKernel<Self>;
    }
}

macro_rules! kernels {
    ($($element:ty: $vectors:ident $any:ident $split:ident;)+) => {$(
        impl sealed::Kernels for $element {
            const DRAW: [&'static SampleKernel<Self>; 2] = [&$vectors, &$any];
            const SPLIT: &'static SplitKernel<Self> = &$split;
        }
    )+};
}
kernels! {
    f32: sample_f32 sample_f32_any sample_split_f32;
    f16: sample_f16 sample_f16_any sample_split_f16;
    bf16: sample_bf16 sample_bf16_any sample_split_bf16;
}

/// Sampling of tokens: a random place in each row of logits, by the softmax of `logits / temperature`.
///
/// `top_k` and `top_p` leave the most probable tokens alone. Both are judged by the whole softmax: a token counts if fewer
/// than `top_k` tokens are more probable, and if those have less than `top_p` of the probability together. Equally
/// probable tokens count together. The others keep the ratios of their probabilities.
///
/// A random number depends on the seed, on the row, and on the row's counter, which is a `u64` on the device: a graph that
/// is replayed with other counters draws other tokens, and the same counters draw the same tokens again. NaN and −∞ are
/// never drawn. A row without another logit gets −1.
///
/// ```
/// use cutlet::{Device, DeviceTensor, Sampling};
///
/// let stream = Device::auto().stream()?;
/// let logits = [0.0f32, 9.0, 9.0, 1.0];
/// let logits = DeviceTensor::upload(&stream, &logits.repeat(8), [8, 4])?;
/// let counters = DeviceTensor::upload(&stream, &[7u64; 8], [8])?;
/// let mut tokens = DeviceTensor::<i32>::zeroed(&stream, [8])?;
/// let sampling = Sampling::new(42).temperature(0.8).top_k(2).top_p(0.95);
/// sampling.run(&stream, &logits, &counters, &mut tokens)?;
/// assert!(tokens.download(&stream)?.iter().all(|token| matches!(token, 1 | 2)));
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    seed: u64,
    temperature: f32,
    top_k: usize,
    top_p: f32,
}

impl Sampling {
    /// Sampling of the whole softmax at a temperature of 1.
    pub fn new(seed: u64) -> Self {
        Sampling {
            seed,
            temperature: 1.0,
            top_k: usize::MAX,
            top_p: 1.0,
        }
    }

    /// Divides the logits by this number, which is finite and not negative. At 0, the token of the largest logit is taken,
    /// as by [`argmax`].
    pub fn temperature(self, temperature: f32) -> Self {
        Sampling {
            temperature,
            ..self
        }
    }

    /// Leaves this many of the most probable tokens: at least 1.
    pub fn top_k(self, top_k: usize) -> Self {
        Sampling { top_k, ..self }
    }

    /// Leaves the most probable tokens that have this share of the probability together: above 0, and at most 1.
    pub fn top_p(self, top_p: f32) -> Self {
        Sampling { top_p, ..self }
    }

    /// Enqueues the draw of a token for each row of `logits`. `counters` and `tokens` have the modes before the row, and
    /// may have a last mode of one element. In `counters`, a stride of 0 repeats a counter.
    ///
    /// # Errors
    /// - Shapes do not agree, rows are not contiguous, or more than three modes of rows do not continue one another.
    /// - The temperature, `top_k` or `top_p` is out of its range.
    /// - `tokens` overlaps another operand.
    /// - An operand is on another device than the stream, or bound to another stream.
    pub fn run<'a, T: SampledElement>(
        &self,
        stream: &Stream,
        logits: impl IntoTensor<'a, Element = T>,
        counters: impl IntoTensor<'a, Element = u64>,
        tokens: impl IntoTensorMut<'a, Element = i32>,
    ) -> Result<()> {
        let is_fit = self.temperature >= 0.0
            && self.temperature.is_finite()
            && self.top_k > 0
            && self.top_p > 0.0
            && self.top_p <= 1.0;
        if !is_fit {
            return refuse(
                NAME,
                format!(
                    "the temperature is {}, top_k is {} and top_p is {}; give a finite temperature from 0 on, a top_k from 1 \
                     on, and a top_p above 0 and up to 1",
                    self.temperature, self.top_k, self.top_p
                ),
            );
        }
        match (read(logits)?, read(counters)?, written(tokens)?) {
            (Some(logits), Some(_), Some(tokens)) if self.temperature == 0.0 => {
                argmax(stream, logits, tokens)
            }
            (Some(logits), Some(counters), Some(tokens)) => {
                self.launch(stream, &logits, &counters, tokens)
            }
            (None, _, None) => Ok(()),
            _ => refuse(
                NAME,
                "some of the tensors have no elements; give a counter and a token for each row"
                    .to_string(),
            ),
        }
    }

    fn launch<T: SampledElement>(
        &self,
        stream: &Stream,
        logits: &Tensor<'_, T>,
        counters: &Tensor<'_, u64>,
        mut tokens: TensorMut<'_, i32>,
    ) -> Result<()> {
        in_stream(NAME, stream, "the tokens", tokens.view.view())?;
        check_read(NAME, stream, "the logits", logits, &tokens)?;
        check_read(NAME, stream, "the counters", counters, &tokens)?;
        let of_counters = layout_of_rows(NAME, "the counters", &counters.layout, &logits.layout)?;
        let of_tokens = layout_of_rows(NAME, "the tokens", &tokens.layout, &logits.layout)?;
        let [of_counters, of_tokens] = [&of_counters, &of_tokens].map(|layout| HasRows {
            what: "a number of each row",
            layout,
            address: 0,
            bytes: 0,
        });
        let operands = [rows_of("the logits", logits), of_counters, of_tokens];
        let rows = RowSet::of(NAME, &operands)?;
        let count = self.splits(stream, logits).filter(|_| rows.is_aligned);
        let found = count.map(|count| Found::scratch(stream, rows.extent()[0], count));
        let found = found.transpose()?;
        if let Some(found) = &found {
            self.launch_splits(stream, logits, found)?;
        }
        let args = SampleArgs {
            logits: rows.strides[0],
            counters: rows.strides[1],
            tokens: rows.strides[2],
            space: rows.space,
            seed: self.seed,
            splits: found.as_ref().map_or_else(no_splits, Found::splits),
            inverse: self.inverse(),
            top_p: match self.top_p {
                // The probabilities' sum is rounded.
                1.0 => f32::INFINITY,
                share => share,
            },
            top_k: self.top_k.min(i32::MAX as usize) as i32,
            padding: 0,
        };
        let kernel = T::DRAW[usize::from(!rows.is_aligned)];
        let kernel = stream.device().load(&PTX, kernel)?;
        // SAFETY: the rows were checked against the tensors' memory. There is a counter and a token for each row, and the
        // tokens overlap nothing else.
        unsafe {
            let args = (logits.view, counters.view, tokens.view.reborrow(), args);
            Ok(stream.launch(
                &kernel,
                LaunchConfig::dependent(rows.space.rows as u32),
                args,
            )?)
        }
    }

    /// What logits are multiplied by. A smaller temperature would make all differences infinite.
    fn inverse(&self) -> f32 {
        1.0 / self.temperature.max(1e-30)
    }

    /// Into how many splits rows are divided whose lists of elements have room in that of a row.
    fn splits<T: SampledElement>(&self, stream: &Stream, logits: &Tensor<'_, T>) -> Option<usize> {
        // A list has a few elements more than the `top_k` greatest ones.
        let most = LISTED / self.top_k.saturating_mul(2);
        splits_of(stream, logits, most)
    }

    /// Enqueues the search of each split for elements that may be drawn.
    fn launch_splits<T: SampledElement>(
        &self,
        stream: &Stream,
        logits: &Tensor<'_, T>,
        found: &Found<'_>,
    ) -> Result<()> {
        let [rows, columns] = [0, 1].map(|mode| logits.layout.mode(mode).size() as usize);
        let in_splits = logits.reshape([rows, found.count, columns / found.count])?;
        let splits = RowSet::of(NAME, &[rows_of("the logits", &in_splits)])?;
        let args = SplitArgs {
            logits: splits.strides[0],
            space: splits.space,
            splits: found.splits(),
            of_row: divisor(found.count),
            inverse: self.inverse(),
            top_k: self.top_k as i32,
            padding: 0,
        };
        let kernel = stream.device().load(&PTX, T::SPLIT)?;
        let blocks = splits.space.rows as u32;
        // SAFETY: the rows were checked against the tensor's memory. There is room for what each split has.
        unsafe {
            Ok(stream.launch(
                &kernel,
                LaunchConfig::dependent(blocks),
                (in_splits.view, args),
            )?)
        }
    }
}

/// Memory for what the splits of rows have.
struct Found<'s> {
    sums: Scratch<'s, f32>,
    counts: Scratch<'s, i32>,
    logits: Scratch<'s, f32>,
    columns: Scratch<'s, u32>,
    /// Splits of a row.
    count: usize,
}

impl<'s> Found<'s> {
    fn scratch(stream: &'s Stream, rows: usize, count: usize) -> Result<Self> {
        let splits = rows * count;
        let listed = splits * (LISTED / count);
        Ok(Found {
            sums: stream.scratch(2 * splits)?,
            counts: stream.scratch(splits)?,
            logits: stream.scratch(listed)?,
            columns: stream.scratch(listed)?,
            count,
        })
    }

    /// As kernels see it.
    fn splits(&self) -> Splits {
        Splits {
            sums: pointer_mut(self.sums.view().address()),
            counts: pointer_mut(self.counts.view().address()),
            logits: pointer_mut(self.logits.view().address()),
            columns: pointer_mut(self.columns.view().address()),
            count: self.count as u32,
            room: divisor(LISTED / self.count),
        }
    }
}

/// Of rows that are not split.
fn no_splits() -> Splits {
    Splits {
        sums: pointer_mut(0),
        counts: pointer_mut(0),
        logits: pointer_mut(0),
        columns: pointer_mut(0),
        count: 0,
        room: divisor(1),
    }
}
