//! Mixture of experts: the experts of each token, rows sorted by expert, and their weighted sums.

use std::num::NonZeroU32;

use cutlet_device::{DeviceData, Global, GlobalMut, Kernel};
use cutlet_host::{Buffer, Device, IntoView, Stream, View};
use cutlet_kernels::gather::long_top_k::{
    LISTED, long_top_k_bf16, long_top_k_bf16_any, long_top_k_f16, long_top_k_f16_any,
    long_top_k_f32, long_top_k_f32_any,
};
use cutlet_kernels::gather::routing::{
    ChoiceTile, Logits, MAX_EXPERTS, MAX_TOP_K, PlaceArgs, TopKArgs, place_choices, top_k_bf16,
    top_k_f16, top_k_f32,
};
use cutlet_kernels::gather::sorting::{OffsetTile, sort_offsets};
use cutlet_layout_core::{Divisor, StaticLayout, tiles};
use half::{bf16, f16};

use crate::into_tensor::{read_matrix, written_matrix};
use crate::matrix::{disjoint, in_stream};
use crate::rows::{Index, IndexView, Misses, OutOfRange, Sorted, to_next_row};
use crate::{
    Bags, EmbeddingBag, Error, Gather, GroupEnds, GroupRows, IntoTensor, IntoTensorMut, Matrix,
    MatrixMut, Order, PooledElement, Pooling, Result,
};

/// An element type of logits: `f32`, `f16` or `bf16`.
pub trait Logit: DeviceData + sealed::Kernels {}
impl Logit for f32 {}
impl Logit for f16 {}
impl Logit for bf16 {}

/// A kernel that chooses experts.
type TopKKernel<T> = Kernel<(Global<T>, GlobalMut<i32>, GlobalMut<f32>, TopKArgs)>;

mod sealed {
    use super::{DeviceData, TopKKernel};

    /// The kernels for an element type.
    pub trait Kernels: DeviceData {
        /// For short rows, of which a warp has one.
        const SHORT: &'static TopKKernel<Self>;
        /// For long rows, of which a block has one: with aligned vectors, and with any alignment.
        const LONG: [&'static TopKKernel<Self>; 2];
    }
}

macro_rules! kernels {
    ($($element:ty: $short:ident $long:ident $long_any:ident;)+) => {$(
        impl sealed::Kernels for $element {
            const SHORT: &'static TopKKernel<Self> = &$short;
            const LONG: [&'static TopKKernel<Self>; 2] = [&$long, &$long_any];
        }
    )+};
}
kernels! {
    f32: top_k_f32 long_top_k_f32 long_top_k_f32_any;
    f16: top_k_f16 long_top_k_f16 long_top_k_f16_any;
    bf16: top_k_bf16 long_top_k_bf16 long_top_k_bf16_any;
}

/// The kernel that chooses so many of each row of these logits, and its blocks.
fn top_k_kernel<T: Logit>(logits: &Matrix<'_, T>, top_k: usize) -> (&'static TopKKernel<T>, u32) {
    /// Bytes of the widest access.
    const WIDEST: usize = 16;
    let (tokens, experts) = (logits.rows(), logits.columns());
    if experts <= MAX_EXPERTS && top_k <= MAX_TOP_K {
        return (
            T::SHORT,
            tiles::<Logits>([tokens as i32, experts as i32])[0],
        );
    }
    let is_aligned =
        logits.starts_runs_at(WIDEST) && experts.is_multiple_of(WIDEST / size_of::<T>());
    (T::LONG[usize::from(!is_aligned)], tokens as u32)
}

/// The weight of an expert that a token chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouterWeights {
    /// The softmax of its logit over all experts.
    Softmax,
    /// The softmax over the experts that the token chose, so that the weights of a token have the sum 1.
    Normalised,
}

/// Enqueues the choice of the experts with the highest logits for each token, the highest first. Of equal logits, the
/// lower expert comes first.
///
/// Infinite logits count as the largest and the least finite number. So experts at +∞ share all the weight, and experts
/// that are all at −∞ have equal weights. A token with a logit that is NaN has weights that are all NaN. Its choices are
/// still experts that exist, all different: NaN counts as −∞ there.
///
/// `logits` has a row for each token and a column for each expert, of any number. `choices` and `weights` have a row for
/// each token, and a column for each expert that it chooses, of which there are up to 2048. They are packed. The
/// `experts` may as well be the tokens of a vocabulary, or what else has the highest numbers of a row.
///
/// # Errors
/// If extents or orders do not agree, more are asked for than there are or than 2048, or an operand is on another device
/// than the stream or bound to another stream.
///
/// ```
/// use cutlet::{Device, DeviceTensor, RouterWeights, top_k};
///
/// let stream = Device::auto().stream()?;
/// let logits = [0.0f32, 1.0, 1.0, -2.0, 8.0, 0.5, 0.0, 7.0];
/// let logits = DeviceTensor::upload(&stream, &logits, [2, 4])?; // 2 tokens, 4 experts
/// let mut choices = DeviceTensor::<i32>::zeroed(&stream, [2, 2])?;
/// let mut weights = DeviceTensor::<f32>::zeroed(&stream, [2, 2])?;
/// top_k(&stream, &logits, RouterWeights::Normalised, &mut choices, &mut weights)?;
/// assert_eq!(choices.download(&stream)?, [1, 2, 0, 3]);
/// assert_eq!(weights.download(&stream)?[..2], [0.5, 0.5]);
/// # Ok::<(), cutlet::Error>(())
/// ```
pub fn top_k<'a, T: Logit>(
    stream: &Stream,
    logits: impl IntoTensor<'a, Element = T>,
    router_weights: RouterWeights,
    choices: impl IntoTensorMut<'a, Element = i32>,
    weights: impl IntoTensorMut<'a, Element = f32>,
) -> Result<()> {
    let logits = read_matrix(TOP_K, "the logits", logits)?;
    let choices = written_matrix(TOP_K, "the choices", choices)?;
    let weights = written_matrix(TOP_K, "the weights", weights)?;
    choose(stream, logits, router_weights, choices, weights)
}

/// [`top_k`] of matrices.
fn choose<T: Logit>(
    stream: &Stream,
    logits: Matrix<'_, T>,
    router_weights: RouterWeights,
    mut choices: MatrixMut<'_, i32>,
    mut weights: MatrixMut<'_, f32>,
) -> Result<()> {
    let (tokens, experts, top_k) = (logits.rows(), logits.columns(), choices.columns());
    if logits.order() != Order::RowMajor || !is_packed(&choices) || !is_packed(&weights) {
        return refuse(
            TOP_K,
            "the logits are column-major, or the choices or weights are not packed rows; give row-major logits, and \
             packed choices and weights"
                .to_string(),
        );
    }
    let extents = [choices.rows(), weights.rows(), weights.columns()];
    if extents != [tokens, tokens, top_k] {
        return refuse(
            TOP_K,
            format!(
                "there are {tokens} tokens, choices of {}×{top_k} and weights of {}×{}; give a row for each token",
                extents[0], extents[1], extents[2]
            ),
        );
    }
    if top_k > LISTED.min(experts) {
        return refuse(
            TOP_K,
            format!(
                "{top_k} of {experts} experts were asked for; choose at most {}",
                LISTED.min(experts)
            ),
        );
    }
    in_stream(TOP_K, stream, "the logits", logits.view)?;
    in_stream(TOP_K, stream, "the choices", choices.view.view())?;
    in_stream(TOP_K, stream, "the weights", weights.view.view())?;
    disjoint(TOP_K, "the logits", logits.addresses(), choices.addresses())?;
    disjoint(TOP_K, "the logits", logits.addresses(), weights.addresses())?;
    if tokens == 0 || top_k == 0 {
        return Ok(());
    }
    let args = TopKArgs {
        ld: to_next_row(tokens, logits.ld()) as i64,
        tokens: tokens as i32,
        experts: experts as i32,
        top_k: top_k as i32,
        normalised: (router_weights == RouterWeights::Normalised).into(),
    };
    let (kernel, blocks) = top_k_kernel(&logits, top_k);
    let kernel = stream.device().load(&cutlet_kernels::PTX, kernel)?;
    let args = (
        logits.view,
        choices.view.reborrow(),
        weights.view.reborrow(),
        args,
    );
    // SAFETY: the matrices were checked against their memory and have these extents. Choices and weights are borrowed
    // mutably and do not overlap the logits.
    Ok(unsafe { stream.launch(&kernel, blocks, args) }?)
}

const TOP_K: &str = "top_k";

fn is_packed<T: DeviceData>(matrix: &MatrixMut<'_, T>) -> bool {
    matrix.order() == Order::RowMajor && (matrix.ld() == matrix.columns() || matrix.rows() <= 1)
}

fn refuse<R>(operation: &'static str, found: String) -> Result<R> {
    Err(Error::Extents { operation, found })
}

/// The rows of a mixture of experts: a row for each choice of each token, sorted by expert. The rows of an expert are
/// in the order of their tokens.
///
/// Everything stays on the device, and can be captured in a graph. The graph writes the memory of the `MoeRows`, which
/// must outlive it.
///
/// ```
/// use cutlet::{Device, DeviceTensor, MoeRows};
///
/// let stream = Device::auto().stream()?;
/// let choices = stream.upload(&[1i32, 0, 1, 2])?; // two tokens, two of three experts each
/// let weights = stream.upload(&[0.75f32, 0.25, 0.5, 0.5])?;
/// let mut rows = MoeRows::new(stream.device(), 2, 2, 3)?;
/// rows.route(&stream, &choices)?;
/// assert_eq!(stream.download(rows.offsets())?, [0, 1, 3, 4]); // where each expert's rows begin
///
/// let tokens = DeviceTensor::upload(&stream, &[1.0f32, 10.0], [2, 1])?;
/// let mut permuted = DeviceTensor::<f32>::zeroed(&stream, [4, 1])?;
/// rows.permute(&stream, &tokens, &mut permuted)?;
/// assert_eq!(permuted.download(&stream)?, [1.0, 1.0, 10.0, 10.0]);
///
/// let mut sums = DeviceTensor::<f32>::zeroed(&stream, [2, 1])?;
/// rows.unpermute(&stream, &permuted, &weights, &mut sums)?;
/// assert_eq!(sums.download(&stream)?, [1.0, 10.0]);
/// # Ok::<(), cutlet::Error>(())
/// ```
#[derive(Debug)]
pub struct MoeRows {
    tokens: usize,
    top_k: usize,
    experts: usize,
    token_of_row: Buffer<i32>,
    row_of_choice: Buffer<i32>,
    offsets: Buffer<i32>,
    counts: Buffer<i32>,
    gather: Gather,
    bag: EmbeddingBag,
    misses: Misses,
}

const NAME: &str = "moe_rows";

impl MoeRows {
    /// Rows for `tokens` tokens, each of which chooses `top_k` of `experts` experts. There may be no tokens: then no
    /// expert has a row.
    ///
    /// # Errors
    /// If there are 2³¹ choices or more, no experts, or none to choose, or the device is out of memory.
    pub fn new(device: &Device, tokens: usize, top_k: usize, experts: usize) -> Result<Self> {
        let rows = tokens.saturating_mul(top_k);
        let most = rows.max(experts).max(top_k);
        if top_k == 0 || experts == 0 || most > crate::MAX_EXTENT {
            return refuse(
                NAME,
                format!(
                    "{tokens} tokens that choose {top_k} of {experts} experts were asked for; let them choose at least \
                     one, and make at most {} choices",
                    crate::MAX_EXTENT
                ),
            );
        }
        let (stream, skipped) = (device.stream()?, OutOfRange::Skip);
        let moe_rows = MoeRows {
            tokens,
            top_k,
            experts,
            token_of_row: stream.filled(rows, 0xff)?,
            row_of_choice: stream.filled(rows, 0xff)?,
            offsets: stream.zeroed(experts + 1)?,
            counts: stream.zeroed(experts)?,
            gather: Gather::new(device)?.out_of_range(skipped),
            bag: EmbeddingBag::new(device, Pooling::Sum)?.out_of_range(skipped),
            misses: Misses::new(device, NAME, "its choice was left out")?,
        };
        // Nothing orders this stream and those of later work.
        stream.synchronize()?;
        Ok(moe_rows)
    }

    /// Enqueues the sorting of the choices: `choices[t · top_k + j]` is the `j`th expert of token `t`.
    ///
    /// A choice of an expert that does not exist has no row. [`check`](Self::check) reports it.
    ///
    /// # Errors
    /// If there is another number of choices, or they are on another device or bound to another stream.
    pub fn route<'a, X: Index>(
        &mut self,
        stream: &Stream,
        choices: impl IntoView<'a, Element = X>,
    ) -> Result<()> {
        let (choices, rows) = (choices.into_view(), self.rows());
        if choices.len() != rows {
            return refuse(
                NAME,
                format!(
                    "there are {} choices, but {} tokens choose {} experts each; give {rows}",
                    choices.len(),
                    self.tokens,
                    self.top_k
                ),
            );
        }
        in_stream(NAME, stream, "the choices", choices)?;
        if rows == 0 {
            // Offsets and counts are zero from the beginning.
            return Ok(());
        }
        let (indices, policy) = (IndexView::new(choices)?, OutOfRange::Error);
        let sorted = Sorted::new(
            stream,
            indices,
            rows,
            self.experts,
            policy,
            &mut self.misses,
        )?;
        let top_k = NonZeroU32::new(self.top_k as u32).unwrap_or(NonZeroU32::MIN);
        let args = PlaceArgs {
            choices: rows as i32,
            experts: self.experts as i32,
            top_k: Divisor::new(top_k),
            padding: 0,
        };
        let device = stream.device();
        let place = device.load(&cutlet_kernels::PTX, &place_choices)?;
        let find = device.load(&cutlet_kernels::PTX, &sort_offsets)?;
        let (rows, experts) = (rows as i32, self.experts as i32);
        // SAFETY: there is a sorted expert and a position for each choice, and an element of this type's buffers. There
        // is a count for each expert, and an offset more.
        unsafe {
            let placed = (
                sorted.keys(),
                sorted.order(),
                &mut self.token_of_row,
                &mut self.row_of_choice,
                args,
            );
            let blocks = (rows as usize).div_ceil(ChoiceTile::SIZE);
            stream.launch(&place, blocks as u32, placed)?;
            let found = (
                sorted.keys(),
                &mut self.offsets,
                &mut self.counts,
                rows,
                experts,
            );
            let blocks = (experts as usize + 1).div_ceil(OffsetTile::SIZE);
            stream.launch(&find, blocks as u32, found)?;
        }
        Ok(())
    }

    /// Enqueues the copy of each token to the rows of its choices. `permuted` has as many rows as there are choices;
    /// those beyond the last offset are left as they are.
    ///
    /// # Errors
    /// Those of [`gather`](fn@crate::gather).
    pub fn permute<'a, T: DeviceData>(
        &mut self,
        stream: &Stream,
        tokens: impl IntoTensor<'a, Element = T>,
        permuted: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let tokens = read_matrix(NAME, "the tokens", tokens)?;
        self.expect_tokens("the tokens", tokens.rows())?;
        self.gather
            .enqueue(stream, tokens, &self.token_of_row, permuted)
    }

    /// Enqueues the weighted sum of each token's rows, in the order of its choices: `weights[t · top_k + j]` is the
    /// weight of the token's `j`th choice. The sum is in f32.
    ///
    /// # Errors
    /// Those of [`embedding_bag`](fn@crate::embedding_bag), and if there is not one weight for each choice.
    pub fn unpermute<'a, 'w, T: PooledElement>(
        &mut self,
        stream: &Stream,
        permuted: impl IntoTensor<'a, Element = T>,
        weights: impl IntoView<'w, Element = f32>,
        sums: impl IntoTensorMut<'a, Element = T>,
    ) -> Result<()> {
        let sums = written_matrix(NAME, "the sums", sums)?;
        self.expect_tokens("the sums", sums.rows())?;
        let bags = Bags::of_len(self.top_k);
        let weights = weights.into_view();
        self.bag.enqueue_weighted(
            stream,
            permuted,
            self.row_of_choice.view(),
            weights,
            bags,
            sums,
        )
    }

    /// Where the rows of each expert begin, and where the last one's end.
    pub fn offsets(&self) -> View<'_, i32> {
        self.offsets.view()
    }

    /// Where the rows of each expert end: the groups of a product.
    pub fn ends(&self) -> GroupEnds<'_> {
        let ends = self.offsets.slice(1..);
        GroupEnds(ends.expect("there is an offset more than there are experts"))
    }

    /// The number of rows of each expert.
    pub fn counts(&self) -> GroupRows<'_> {
        GroupRows(self.counts.view())
    }

    /// The token of each row, for a kernel that gathers rows by itself; −1 beyond the last offset.
    pub fn token_of_row(&self) -> View<'_, i32> {
        self.token_of_row.view()
    }

    /// The row of each choice, in the order of the choices, for a kernel that adds rows by itself; −1 for a choice of an
    /// expert that does not exist.
    pub fn row_of_choice(&self) -> View<'_, i32> {
        self.row_of_choice.view()
    }

    /// The number of choices of all tokens, each of which has a row.
    pub fn rows(&self) -> usize {
        self.tokens * self.top_k
    }

    /// Waits for the enqueued work, and reports a choice of an expert that does not exist.
    ///
    /// # Errors
    /// [`Error::IndexMissed`] if there was such a choice since the last check; an error if the stream is being
    /// captured.
    pub fn check(&mut self, stream: &Stream) -> Result<()> {
        self.misses.check(stream)
    }

    fn expect_tokens(&self, what: &str, rows: usize) -> Result<()> {
        let tokens = self.tokens;
        match rows == tokens {
            true => Ok(()),
            false => refuse(
                NAME,
                format!(
                    "{what} have {rows} rows, but there are {tokens} tokens; give a row for each"
                ),
            ),
        }
    }
}
