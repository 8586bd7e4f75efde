//! Attention: `softmax(Q·Kᵀ · scale)·V`, for all heads of all sequences in one launch.

mod backward;
mod decode;
mod heads;
mod kernels;
mod launch;

use std::mem;

use cutlet_device::DeviceData;
use cutlet_host::{Stream, View};
use half::{bf16, f16};

use crate::{IntoTensor, IntoTensorMut, Result, Tensor, TensorMut};

pub use decode::AttentionDecode;
pub use kernels::AttentionKernels;

/// The operation's name in errors.
const NAME: &str = "attention";

/// An element type of [`Attention`]: `f16` or `bf16`.
pub trait AttentionElement: DeviceData + kernels::Kernels + decode::Kernels {}
impl AttentionElement for f16 {}
impl AttentionElement for bf16 {}

/// Enqueues `output = softmax(queries·keysᵀ / √features)·values`, where every query sees every key.
///
/// The modes of the tensors are (sequence, row, head, feature). [`Attention`] says which shapes and strides they have,
/// and has masks, biases and packed sequences.
///
/// ```
/// use cutlet::{Device, DeviceTensor, attention, bf16};
///
/// let stream = Device::auto().stream()?;
/// let ones = |shape| DeviceTensor::upload(&stream, &[bf16::ONE; 2 * 5 * 4 * 64], shape);
/// // Two sequences of five rows, with four heads of 64 features.
/// let (queries, keys, values) = (ones([2, 5, 4, 64])?, ones([2, 5, 4, 64])?, ones([2, 5, 4, 64])?);
/// let mut output = DeviceTensor::<bf16>::zeroed(&stream, [2, 5, 4, 64])?;
/// attention(&stream, &queries, &keys, &values, &mut output)?;
/// assert_eq!(output.download(&stream)?[0], bf16::ONE);
/// # Ok::<(), cutlet::Error>(())
/// ```
///
/// # Errors
/// As [`Attention::run`].
pub fn attention<'a, T: AttentionElement>(
    stream: &Stream,
    queries: impl IntoTensor<'a, Element = T>,
    keys: impl IntoTensor<'a, Element = T>,
    values: impl IntoTensor<'a, Element = T>,
    output: impl IntoTensorMut<'a, Element = T>,
) -> Result<()> {
    Attention::new().run(stream, queries, keys, values, output)
}

/// Attention: `softmax(Q·Kᵀ · scale)·V`, with what models add to it.
///
/// The modes of the tensors are (sequence, row, head, feature):
///
/// | tensor | shape |
/// |---|---|
/// | queries, output | (sequences, queries, heads, features) |
/// | keys, values | (sequences, keys, heads of keys, features) |
///
/// The heads of keys divide the heads: with fewer of them, neighbouring heads of queries share keys and values
/// (grouped-query attention). There are up to 256 features, a multiple of 8. Features are contiguous, and all other
/// strides are multiples of 16 bytes, so that the parts of one QKV tensor need no copy.
///
/// Query `i` of `m` belongs to key `i + n − m` of `n`: the last query belongs to the last key. A query that sees no key
/// has an output of 0.
///
/// A score is `scale · q·k`. It is capped first, then the bias is added, then the slope of ALiBi, then the mask applies.
/// Products and sums are in f32, and weights are rounded to the element type before they multiply the values.
///
/// The kernels are for GPUs from compute capability 8.0 on. Hopper (9.0) has [its own](AttentionKernels).
///
/// ```
/// use cutlet::{Attention, Device, DeviceTensor, bf16};
///
/// let stream = Device::auto().stream()?;
/// let rows = |heads| DeviceTensor::upload(&stream, &vec![bf16::ONE; 7 * heads * 64], [1, 7, heads, 64]);
/// // Four heads of queries for two heads of keys, and a query sees itself and the two keys before.
/// let (queries, keys, values) = (rows(4)?, rows(2)?, rows(2)?);
/// let mut output = DeviceTensor::<bf16>::zeroed(&stream, [1, 7, 4, 64])?;
/// let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, 7, 4])?;
/// Attention::new()
///     .window(2, 0)
///     .log_sum_exp(&mut sums)
///     .run(&stream, &queries, &keys, &values, &mut output)?;
/// // The first query sees one key, whose score is 64 / √64.
/// assert_eq!(sums.download(&stream)?[0], 8.0);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct Attention<'a> {
    scale: Option<f32>,
    /// How many keys before and after its own a query sees.
    window: Option<[usize; 2]>,
    soft_cap: f32,
    bias: Option<Tensor<'a, f32>>,
    slopes: Option<View<'a, f32>>,
    sinks: Option<View<'a, f32>>,
    log_sum_exp: Option<TensorMut<'a, f32>>,
    packed: Option<Packed<'a>>,
    kernels: Option<AttentionKernels>,
    deterministic: bool,
    /// What was wrong with an operand.
    operands: Result<()>,
}

/// Sequences that lie behind one another in one.
#[derive(Clone, Copy, Debug)]
struct Packed<'a> {
    /// The first query of each, and the end of the last one.
    queries: View<'a, i32>,
    /// The same of keys.
    keys: View<'a, i32>,
    /// Queries of the longest one.
    most_queries: usize,
}

impl Default for Attention<'_> {
    fn default() -> Self {
        Attention {
            scale: None,
            window: None,
            soft_cap: 0.0,
            bias: None,
            slopes: None,
            sinks: None,
            log_sum_exp: None,
            packed: None,
            kernels: None,
            deterministic: false,
            operands: Ok(()),
        }
    }
}

impl<'a> Attention<'a> {
    /// Every query sees every key, and the scale is `1 / √features`.
    pub fn new() -> Self {
        Attention::default()
    }

    /// Multiplies products by this number, which is finite and above 0.
    pub fn scale(self, scale: f32) -> Self {
        let scale = Some(scale);
        Attention { scale, ..self }
    }

    /// A query sees its own key and those before.
    pub fn causal(self) -> Self {
        self.window(usize::MAX, 0)
    }

    /// A query sees so many keys before its own, its own, and so many after. `usize::MAX` stands for all.
    pub fn window(self, before: usize, after: usize) -> Self {
        let window = Some([before, after]);
        Attention { window, ..self }
    }

    /// Scores become `cap · tanh(score / cap)`. The cap is finite and above 0.
    pub fn soft_cap(self, soft_cap: f32) -> Self {
        Attention { soft_cap, ..self }
    }

    /// Adds a bias (sequence, head, query, key) to scores. −∞ hides a key. Keys are contiguous. Modes of stride 0 repeat
    /// it.
    pub fn bias(mut self, bias: impl IntoTensor<'a, Element = f32>) -> Self {
        match bias.into_tensor() {
            Ok(bias) => self.bias = Some(bias),
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// Subtracts `slope · |key − own key|` from scores, with a slope for each head (ALiBi).
    pub fn slopes(self, slopes: View<'a, f32>) -> Self {
        let slopes = Some(slopes);
        Attention { slopes, ..self }
    }

    /// For each head, one more score counts in the sum of weights: that of a key whose value is 0 (an attention sink).
    pub fn sinks(self, sinks: View<'a, f32>) -> Self {
        let sinks = Some(sinks);
        Attention { sinks, ..self }
    }

    /// Writes the natural logarithm of each query's `Σ e^score` to a tensor (sequence, query, head). It is −∞ for a query
    /// that sees no key.
    pub fn log_sum_exp(mut self, log_sum_exp: impl IntoTensorMut<'a, Element = f32>) -> Self {
        match log_sum_exp.into_tensor_mut() {
            Ok(log_sum_exp) => self.log_sum_exp = Some(log_sum_exp),
            Err(error) => self.operands = Err(error),
        }
        self
    }

    /// The tensors have one sequence, in which sequences of various lengths lie behind one another: sequence `b` has the
    /// queries `queries[b]..queries[b + 1]`, and likewise keys. These numbers stay on the device (`cu_seqlens` of other
    /// libraries). No sequence has more than `most_queries` queries: others are not computed.
    ///
    /// The numbers must rise from 0 to the rows of the tensors at most. They are not checked, so a wrong one may read or
    /// write another sequence's rows, but no memory outside of the tensors.
    ///
    /// ```
    /// use cutlet::{Attention, Device, DeviceTensor, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let rows = || DeviceTensor::upload(&stream, &[bf16::ONE; 12 * 64], [1, 12, 1, 64]);
    /// let (queries, keys, values) = (rows()?, rows()?, rows()?);
    /// let mut output = DeviceTensor::<bf16>::zeroed(&stream, [1, 12, 1, 64])?;
    /// // Sequences of three, none and nine rows.
    /// let ends = stream.upload(&[0, 3, 3, 12])?;
    /// Attention::new()
    ///     .packed(ends.view(), ends.view(), 9)
    ///     .run(&stream, &queries, &keys, &values, &mut output)?;
    /// assert_eq!(output.download(&stream)?[11 * 64], bf16::ONE);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn packed(self, queries: View<'a, i32>, keys: View<'a, i32>, most_queries: usize) -> Self {
        let packed = Some(Packed {
            queries,
            keys,
            most_queries,
        });
        Attention { packed, ..self }
    }

    /// Makes the [backward pass](Self::backward) add in one order, so that its results are the same in each run. It takes
    /// longer then. The forward pass always is the same.
    pub fn deterministic(self) -> Self {
        Attention {
            deterministic: true,
            ..self
        }
    }

    /// Uses these kernels instead of those for the device: to compare both.
    ///
    /// ```
    /// use cutlet::{Attention, AttentionKernels, Device, DeviceTensor, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let rows = || DeviceTensor::upload(&stream, &[bf16::ONE; 9 * 64], [1, 9, 1, 64]);
    /// let mut output = DeviceTensor::<bf16>::zeroed(&stream, [1, 9, 1, 64])?;
    /// Attention::new()
    ///     .kernels(AttentionKernels::Sm80)
    ///     .run(&stream, &rows()?, &rows()?, &rows()?, &mut output)?;
    /// assert_eq!(output.download(&stream)?[0], bf16::ONE);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    pub fn kernels(self, kernels: AttentionKernels) -> Self {
        let kernels = Some(kernels);
        Attention { kernels, ..self }
    }

    /// Enqueues the attention of `queries` to `keys` and `values`, and writes `output`.
    ///
    /// # Errors
    /// - Shapes do not agree, or the heads of keys do not divide the heads.
    /// - There are more than 256 features or no multiple of 8, features are not contiguous, or another stride is no
    ///   multiple of 16 bytes.
    /// - A number is not finite, or not above 0.
    /// - `output` overlaps another operand, or reaches one of its elements twice.
    /// - An operand is on another device than the stream, or bound to another stream.
    /// - The device is a GPU of a compute capability below 8.0, or not the one of the [`kernels`](Self::kernels).
    pub fn run<'t, T: AttentionElement>(
        mut self,
        stream: &Stream,
        queries: impl IntoTensor<'t, Element = T>,
        keys: impl IntoTensor<'t, Element = T>,
        values: impl IntoTensor<'t, Element = T>,
        output: impl IntoTensorMut<'t, Element = T>,
    ) -> Result<()> {
        mem::replace(&mut self.operands, Ok(()))?;
        let tensors = heads::Tensors {
            queries: queries.into_tensor()?,
            keys: keys.into_tensor()?,
            values: values.into_tensor()?,
            output: output.into_tensor_mut()?,
        };
        launch::run(self, stream, tensors)
    }

    /// Enqueues the backward pass: of the gradient of the output, the gradients of queries, keys and values.
    ///
    /// `results` are the output and the [logarithms of sums](Self::log_sum_exp) that [`run`](Self::run) wrote for the
    /// queries, keys and values in `operands`, with this scale, window, packing and sinks. `gradients` are written: those
    /// of the queries, the keys and the values. Each gradient has the shape of its tensor. Where heads share keys, the
    /// gradients of these are sums over the heads.
    ///
    /// Products and sums are in f32, and weights and their gradients are rounded to the element type before they are
    /// multiplied. The gradient of the queries is added up in an order that varies from run to run, so that its last
    /// bits do, too, unless it is [`deterministic`](Self::deterministic). Those of keys and values do not vary.
    ///
    /// Sinks need not be given: the logarithms have them. Their own gradient is not computed.
    ///
    /// ```
    /// use cutlet::{Attention, Device, DeviceTensor, bf16};
    ///
    /// let stream = Device::auto().stream()?;
    /// let rows = || DeviceTensor::upload(&stream, &[bf16::ONE; 5 * 64], [1, 5, 1, 64]);
    /// let (q, k, v, mut o) = (rows()?, rows()?, rows()?, rows()?);
    /// let mut sums = DeviceTensor::<f32>::zeroed(&stream, [1, 5, 1])?;
    /// Attention::new().causal().log_sum_exp(&mut sums).run(&stream, &q, &k, &v, &mut o)?;
    /// // The gradients of the sum of all outputs.
    /// let (ones, mut dq, mut dk, mut dv) = (rows()?, rows()?, rows()?, rows()?);
    /// Attention::new()
    ///     .causal()
    ///     .backward(&stream, (&q, &k, &v), (&o, &sums), &ones, (&mut dq, &mut dk, &mut dv))?;
    /// // The last key has a fifth of the weights of the last query, and the scores do not matter.
    /// assert_eq!(dv.download(&stream)?[4 * 64], bf16::from_f32(0.2));
    /// assert_eq!(dq.download(&stream)?[0], bf16::ZERO);
    /// # Ok::<(), cutlet::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`run`](Self::run), and:
    /// - There are more than 128 features.
    /// - There is a soft cap, a bias, or slopes, or a tensor for the logarithms of sums.
    pub fn backward<'t, T: AttentionElement>(
        mut self,
        stream: &Stream,
        operands: (
            impl IntoTensor<'t, Element = T>,
            impl IntoTensor<'t, Element = T>,
            impl IntoTensor<'t, Element = T>,
        ),
        results: (
            impl IntoTensor<'t, Element = T>,
            impl IntoTensor<'t, Element = f32>,
        ),
        output_gradient: impl IntoTensor<'t, Element = T>,
        gradients: (
            impl IntoTensorMut<'t, Element = T>,
            impl IntoTensorMut<'t, Element = T>,
            impl IntoTensorMut<'t, Element = T>,
        ),
    ) -> Result<()> {
        mem::replace(&mut self.operands, Ok(()))?;
        let tensors = backward::Tensors {
            queries: operands.0.into_tensor()?,
            keys: operands.1.into_tensor()?,
            values: operands.2.into_tensor()?,
            output: results.0.into_tensor()?,
            log_sum_exp: results.1.into_tensor()?,
            output_gradient: output_gradient.into_tensor()?,
            of_queries: gradients.0.into_tensor_mut()?,
            of_keys: gradients.1.into_tensor_mut()?,
            of_values: gradients.2.into_tensor_mut()?,
        };
        backward::run(self, stream, tensors)
    }
}
