//! Attention of few queries a sequence to a long cache of keys and values.

mod launch;

use std::mem;

use cutlet_host::{Stream, View};

use super::AttentionElement;
use crate::attention::heads::Tensors;
use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

pub use launch::Kernels;

/// Attention of few queries a sequence to a long cache of keys and values: a step of decoding.
///
/// | tensor | shape |
/// |---|---|
/// | queries, output | (sequences, queries, heads, features) |
/// | keys, values | (sequences, keys, heads of keys, features) |
/// | keys, values in pages | (pages, keys of a page, heads of keys, features) |
///
/// The heads of keys divide the heads: neighbouring heads of queries share keys and values. There are up to 256
/// features, a multiple of 8. Features are contiguous, all other strides are multiples of 16 bytes, and keys have the
/// strides of values.
///
/// A sequence has all keys of the tensor, or as many as [`lengths`](Self::lengths) says. Query `i` of `m` belongs to
/// key `i + n − m` of `n`: the last query belongs to the last key, which was written to the cache before. A query sees
/// its own key and those before, unless there is a [`window`](Self::window). Keys behind the last one are not read, so
/// that they may be NaN. A query that sees no key has an output of 0.
///
/// Any number of queries is possible. But a head's keys are read once for each 16 of its rows, which are queries times
/// the heads that share it: for many queries, [`Attention`](crate::Attention) is faster.
///
/// The keys of a sequence are split over multiprocessors. The last block to end combines their outputs, which are f32 in
/// scratch memory of the stream. In a capture of another library, a second kernel does. All lengths and pages are read on the device, so that a [graph](crate::Graph) of a
/// step serves for the steps that follow.
///
/// The kernels are for GPUs from compute capability 8.0 on.
///
/// ```
/// use cutlet::{AttentionDecode, Device, DeviceTensor, bf16};
///
/// let stream = Device::auto().stream()?;
/// let ones = |shape: [usize; 4]| {
///     DeviceTensor::upload(&stream, &vec![bf16::ONE; shape.iter().product()], shape)
/// };
/// // Two sequences with a query each, of eight heads, and a cache for 100 keys, of two heads.
/// let (queries, keys, values) = (ones([2, 1, 8, 64])?, ones([2, 100, 2, 64])?, ones([2, 100, 2, 64])?);
/// let mut output = DeviceTensor::<bf16>::zeroed(&stream, [2, 1, 8, 64])?;
/// let lengths = stream.upload(&[70, 3])?;
/// AttentionDecode::new()
///     .lengths(lengths.view())
///     .run(&stream, &queries, &keys, &values, &mut output)?;
/// assert_eq!(output.download(&stream)?[0], bf16::ONE);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct AttentionDecode<'a> {
    scale: Option<f32>,
    /// How many keys before and after its own a query sees.
    window: [usize; 2],
    soft_cap: f32,
    sinks: Option<View<'a, f32>>,
    log_sum_exp: Option<TensorMut<'a, f32>>,
    lengths: Option<View<'a, i32>>,
    longest: usize,
    table: Option<Tensor<'a, i32>>,
    splits: Option<usize>,
    /// What was wrong with an operand.
    operands: Result<()>,
}

impl Default for AttentionDecode<'_> {
    fn default() -> Self {
        AttentionDecode {
            scale: None,
            window: [usize::MAX, 0],
            soft_cap: 0.0,
            sinks: None,
            log_sum_exp: None,
            lengths: None,
            longest: usize::MAX,
            table: None,
            splits: None,
            operands: Ok(()),
        }
    }
}

impl<'a> AttentionDecode<'a> {
    /// A query sees its own key and all before, and the scale is `1 / √features`.
    pub fn new() -> Self {
        AttentionDecode::default()
    }

    /// Multiplies products by this number, which is finite and above 0.
    pub fn scale(self, scale: f32) -> Self {
        let scale = Some(scale);
        AttentionDecode { scale, ..self }
    }

    /// A query sees so many keys before its own, its own, and so many after. `usize::MAX` stands for all. Keys that no
    /// query of a sequence sees are not read.
    pub fn window(self, before: usize, after: usize) -> Self {
        let window = [before, after];
        AttentionDecode { window, ..self }
    }

    /// Scores become `cap · tanh(score / cap)`. The cap is finite and above 0.
    pub fn soft_cap(self, soft_cap: f32) -> Self {
        AttentionDecode { soft_cap, ..self }
    }

    /// For each head, one more score counts in the sum of weights: that of a key whose value is 0 (an attention sink).
    pub fn sinks(self, sinks: View<'a, f32>) -> Self {
        let sinks = Some(sinks);
        AttentionDecode { sinks, ..self }
    }

    /// Writes the natural logarithm of each query's `Σ e^score` to a tensor (sequence, query, head). It is −∞ for a query
    /// that sees no key. With it, outputs of parts of a cache, which several GPUs have, become the output of all.
    ///
    /// ```
    /// use cutlet::{AttentionDecode, Device, DeviceTensor, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let ones = |rows| DeviceTensor::upload(&stream, &vec![bf16::ONE; rows * 64], [1, rows, 1, 64]);
    /// let mut output = DeviceTensor::<bf16>::zeroed(&stream, [1, 1, 1, 64])?;
    /// let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, 1, 1])?;
    /// AttentionDecode::new()
    ///     .log_sum_exp(&mut sums)
    ///     .run(&stream, &ones(1)?, &ones(1)?, &ones(1)?, &mut output)?;
    /// // One key, whose score is 64 / √64.
    /// assert_eq!(sums.download(&stream)?, [8.0]);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn log_sum_exp(mut self, log_sum_exp: impl IntoTensorMut<'a, Element = f32>) -> Self {
        match log_sum_exp.into_tensor_mut() {
            Ok(log_sum_exp) => self.log_sum_exp = Some(log_sum_exp),
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// How many keys each sequence has. The numbers stay on the device. One below 0 counts as 0, and one that is too
    /// large as all keys.
    pub fn lengths(self, lengths: View<'a, i32>) -> Self {
        let lengths = Some(lengths);
        AttentionDecode { lengths, ..self }
    }

    /// No sequence has more than so many keys: those behind are not read. The keys are split by it, so it should be
    /// near the length of the longest sequence if the cache is much larger.
    pub fn longest(self, longest: usize) -> Self {
        AttentionDecode { longest, ..self }
    }

    /// Keys and values are in pages, of which the `table` (sequence, page of the sequence) has the numbers: key `t` of
    /// sequence `b` is row `t mod page` of page `table[b][t / page]`. A row of the table is contiguous.
    ///
    /// The numbers stay on the device. The keys and values of a page that there is not are zeros: no memory outside of
    /// the tensors is read. Numbers of pages behind a sequence's last key are not read.
    ///
    /// ```
    /// use cutlet::{AttentionDecode, Device, DeviceTensor, f16};
    ///
    /// let stream = Device::auto().stream()?;
    /// // Five pages of 16 keys.
    /// let pages = || DeviceTensor::upload(&stream, &[f16::ONE; 5 * 16 * 64], [5, 16, 1, 64]);
    /// let (keys, values) = (pages()?, pages()?);
    /// let queries = DeviceTensor::upload(&stream, &[f16::ONE; 2 * 64], [2, 1, 1, 64])?;
    /// let mut output = DeviceTensor::<f16>::zeroed(&stream, [2, 1, 1, 64])?;
    /// let table = DeviceTensor::upload(&stream, &[3, 1, 0, 4, -1, -1], [2, 3])?;
    /// let lengths = stream.upload(&[48, 5])?;
    /// AttentionDecode::new()
    ///     .paged(&table)
    ///     .lengths(lengths.view())
    ///     .run(&stream, &queries, &keys, &values, &mut output)?;
    /// assert_eq!(output.download(&stream)?[64], f16::ONE);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn paged(mut self, table: impl IntoTensor<'a, Element = i32>) -> Self {
        match table.into_tensor() {
            Ok(table) => self.table = Some(table),
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// Splits the keys of each sequence into so many parts, at least one. The last bits of the output depend on it, and
    /// without it, it depends on the shapes and on the device.
    pub fn splits(self, splits: usize) -> Self {
        let splits = Some(splits);
        AttentionDecode { splits, ..self }
    }

    /// Enqueues the attention of `queries` to `keys` and `values`, and writes `output`.
    ///
    /// # Errors
    /// - Shapes do not agree, or the heads of keys do not divide the heads.
    /// - There are more than 256 features or no multiple of 8, features are not contiguous, another stride is no
    ///   multiple of 16 bytes, or keys have other strides than values.
    /// - A number is not finite, or not above 0. There are no splits, or more than a launch has blocks.
    /// - `output` overlaps another operand.
    /// - An operand is on another device than the stream, or bound to another stream.
    /// - The device is a GPU of a compute capability below 8.0.
    pub fn run<'t, T: AttentionElement>(
        mut self,
        stream: &Stream,
        queries: impl IntoTensor<'t, Element = T>,
        keys: impl IntoTensor<'t, Element = T>,
        values: impl IntoTensor<'t, Element = T>,
        output: impl IntoTensorMut<'t, Element = T>,
    ) -> Result<()> {
        mem::replace(&mut self.operands, Ok(()))?;
        let tensors = Tensors {
            queries: queries.into_tensor()?,
            keys: keys.into_tensor()?,
            values: values.into_tensor()?,
            output: output.into_tensor_mut()?,
        };
        tensors.decode(self, stream)
    }
}
