//! `top_k` and `moe`: the router of a mixture of experts, and a whole layer of it.

use cutlet::{
    Element, GatedElement, Gemm, Logit, Matrix, MatrixMut, MoeRows, PooledElement, Precision,
    RouterWeights, Stream, View,
};
use cutlet_host::Scratch;
use pyo3::prelude::*;

use crate::array::{Array, Shaped, tuple};
use crate::call::Call;
use crate::data_type::DataType;
use crate::error::{Result, wrong_type, wrong_value};
use crate::options;
use crate::rows::for_sums;
use crate::stream::Context;

/// The highest logits of each token: the experts that it chooses, the best first, and their weights.
///
/// Arguments:
///     logits: (tokens, experts), float32, float16 or bfloat16, of any number of experts.
///     k: How many experts a token chooses, at most 2048.
///     normalised: Whether the weights are the softmax over the chosen logits alone, or else over all.
///     choices, weights: (tokens, k) for the results, int32 and float32, contiguous.
///     stream: As in `gemm`.
///
/// Returns:
///     `choices` and `weights`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit.
#[pyfunction]
#[pyo3(signature = (logits, k, *, normalised=true, choices=None, weights=None, stream=None))]
pub fn top_k<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    k: usize,
    normalised: bool,
    choices: Option<&Bound<'py, PyAny>>,
    weights: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    const NAME: &str = "top_k";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("logits", logits)?;
    from.expect_rank(NAME, 2)?;
    let [tokens, experts] = [from.shape()[0], from.shape()[1]];
    expect_choice(NAME, &from, experts, k)?;
    let shape = [tokens, k];
    let output = |given: Option<&Bound<'py, PyAny>>, data_type| match given {
        Some(given) => Ok(given.clone()),
        None => call.empty(logits, &shape, Some(data_type)),
    };
    let choices = output(choices, DataType::I32)?;
    let weights = output(weights, DataType::F32)?;
    let to_choices = call.write("choices", &choices)?;
    let to_weights = call.write("weights", &weights)?;
    to_choices.expect_type(NAME, DataType::I32)?;
    to_weights.expect_type(NAME, DataType::F32)?;
    to_choices.expect_apart(NAME, &to_weights)?;
    to_choices.expect_rank(NAME, 2)?;
    to_weights.expect_rank(NAME, 2)?;
    if to_choices.shape()[1] != k {
        return wrong_value(format!(
            "{NAME}: choices is {}; give {}",
            tuple(to_choices.shape()),
            tuple(&shape)
        ));
    }
    let chosen = Chosen {
        logits: (&from, from.matrix(NAME)?),
        choices: (&to_choices, to_choices.matrix(NAME)?),
        weights: (&to_weights, to_weights.matrix(NAME)?),
        router_weights: router_weights(normalised),
    };
    for_sums!(NAME, from, enqueue_top_k(&call, &chosen))?;
    Ok((choices, weights))
}

/// Returns an error unless a token can choose `k` experts.
fn expect_choice(operation: &str, array: &Array, experts: usize, k: usize) -> Result<()> {
    match experts {
        0 => wrong_value(format!(
            "{operation}: {} is {}, and has no experts; give at least one",
            array.name,
            tuple(array.shape())
        )),
        _ if k == 0 || k > experts => wrong_value(format!(
            "{operation}: k is {k}, and there are {experts} experts; let a token choose from 1 to {experts}"
        )),
        _ => Ok(()),
    }
}

/// The arrays of a choice of experts, each as a matrix.
struct Chosen<'a> {
    logits: (&'a Array, Shaped),
    choices: (&'a Array, Shaped),
    weights: (&'a Array, Shaped),
    router_weights: RouterWeights,
}

fn enqueue_top_k<T: Logit>(call: &Call<'_>, chosen: &Chosen<'_>) -> Result<()> {
    let context = call.context();
    call.run(false, || {
        let logits = chosen.logits.1.of::<T>(chosen.logits.0, context)?;
        let choices = chosen.choices.1.of_mut::<i32>(chosen.choices.0, context)?;
        let weights = chosen.weights.1.of_mut::<f32>(chosen.weights.0, context)?;
        let router_weights = chosen.router_weights;
        cutlet::top_k(&context.stream, logits, router_weights, choices, weights)
    })
}

fn router_weights(normalised: bool) -> RouterWeights {
    match normalised {
        true => RouterWeights::Normalised,
        false => RouterWeights::Softmax,
    }
}

/// The rows of a mixture of experts: one for each choice of a token, sorted by expert. The rows of an expert are in the
/// order of their tokens.
///
/// Arguments:
///     choices: (tokens, k), int32, contiguous: the experts of each token, as `top_k` returns them.
///     experts: How many experts there are.
///     stream: As in `gemm`.
///
/// Everything stays on the device: nothing waits. With `gather(tokens, token_of_row)`, `grouped_gemm(rows, weights,
/// ends=ends)` and `embedding_bag(rows, row_of_choice, weights=weights)` it makes layers that `moe` does not have. Of a
/// choice that is no expert, `row_of_choice` is -1, and `check` reports it.
///
/// Returns:
///     `token_of_row` (tokens * k,), `row_of_choice` (tokens, k), and `ends` (experts,), where the rows of each expert
///     end, all int32.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit.
#[pyfunction]
#[pyo3(signature = (choices, experts, *, stream=None))]
#[allow(clippy::type_complexity, reason = "a tuple of Python")]
pub fn moe_rows<'py>(
    py: Python<'py>,
    choices: &Bound<'py, PyAny>,
    experts: usize,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<(Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    const NAME: &str = "moe_rows";
    let mut call = Call::new(py, NAME, stream);
    let from = call.read("choices", choices)?;
    from.expect_type(NAME, DataType::I32)?;
    from.expect_rank(NAME, 2)?;
    from.expect_contiguous(NAME)?;
    let (tokens, k) = (from.shape()[0], from.shape()[1]);
    let token_of_row = call.empty(choices, &[tokens * k], None)?;
    let row_of_choice = call.empty(choices, &[tokens, k], None)?;
    let ends = call.empty(choices, &[experts], None)?;
    let to_tokens = call.write("token_of_row", &token_of_row)?;
    let to_rows = call.write("row_of_choice", &row_of_choice)?;
    let to_ends = call.write("ends", &ends)?;
    let context = call.context();
    let [from, to_tokens, to_rows, to_ends]: [&Array; 4] = [&from, &to_tokens, &to_rows, &to_ends];
    call.run_kept(false, |kept| {
        let stream = &context.stream;
        kept.moe_rows.with(
            stream,
            [tokens, k, experts],
            || MoeRows::new(stream.device(), tokens, k, experts),
            |rows| {
                rows.route(stream, from.memory::<i32>(context)?)?;
                stream.copy(rows.token_of_row(), to_tokens.memory_mut(context)?)?;
                stream.copy(rows.row_of_choice(), to_rows.memory_mut(context)?)?;
                Ok(stream.copy(rows.ends(), to_ends.memory_mut(context)?)?)
            },
        )
    })?;
    Ok((token_of_row, row_of_choice, ends))
}

const MOE: &str = "moe";

/// A layer of a mixture of experts: each token goes to `k` experts, which compute `down @ (silu(gate) * up)`.
///
/// Arguments:
///     tokens: (..., width), float32, float16 or bfloat16.
///     router: (experts, width).
///     gates_and_ups: (experts, 2 * inner, width), of which the rows are gates and ups by turns.
///     down: (experts, width, inner).
///     k: How many experts a token chooses.
///     normalised: As in `top_k`.
///     precision: As in `gemm`, of the experts' products. The router's are exact.
///     out: An array of the shape of `tokens`.
///     stream: As in `gemm`.
///
/// How many tokens an expert gets stays on the device: nothing waits. The first call with a number of tokens allocates.
/// A graph gets memory of its own: make a call before the capture, which loads the kernels.
///
/// Returns:
///     `out`.
///
/// Raises:
///     TypeError, ValueError: Types or shapes do not fit.
#[pyfunction]
#[pyo3(signature = (tokens, router, gates_and_ups, down, k, *, normalised=true, precision=None, out=None,
    stream=None))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by name")]
pub fn moe<'py>(
    py: Python<'py>,
    tokens: &Bound<'py, PyAny>,
    router: &Bound<'py, PyAny>,
    gates_and_ups: &Bound<'py, PyAny>,
    down: &Bound<'py, PyAny>,
    k: usize,
    normalised: bool,
    precision: Option<&str>,
    out: Option<&Bound<'py, PyAny>>,
    stream: Option<&Bound<'py, PyAny>>,
) -> Result<Bound<'py, PyAny>> {
    let mut call = Call::new(py, MOE, stream);
    let from_tokens = call.read("tokens", tokens)?;
    let from_router = call.read("router", router)?;
    let from_first = call.read("gates_and_ups", gates_and_ups)?;
    let from_second = call.read("down", down)?;
    let out = match out {
        Some(out) => out.clone(),
        None => call.empty(tokens, from_tokens.shape(), None)?,
    };
    let to = call.write("out", &out)?;
    let arrays = [&*from_tokens, &from_router, &from_first, &from_second, &to];
    expect_layer(arrays, k)?;
    let layer = Layer {
        tokens: (&from_tokens, from_tokens.rows(MOE)?),
        // A row of weights for each result: matrices B, column-major.
        router: (&from_router, from_router.matrix(MOE)?.transposed()),
        gates_and_ups: (&from_first, from_first.matrix(MOE)?.transposed()),
        down: (&from_second, from_second.matrix(MOE)?.transposed()),
        out: (&to, to.rows(MOE)?),
        top_k: k,
        weights: router_weights(normalised),
        precision: options::precision(MOE, precision)?,
    };
    for_sums!(MOE, from_tokens, enqueue_layer(&call, &layer))?;
    Ok(out)
}

/// Returns an error unless the shapes and the types of a layer agree.
fn expect_layer([tokens, router, first, second, out]: [&Array; 5], k: usize) -> Result<()> {
    router.expect_rank(MOE, 2)?;
    first.expect_rank(MOE, 3)?;
    second.expect_rank(MOE, 3)?;
    let (experts, width) = (router.shape()[0], router.shape()[1]);
    expect_choice(MOE, router, experts, k)?;
    let inner = second.shape()[2];
    if inner == 0 {
        return wrong_value(format!(
            "{MOE}: down is {}, and experts have no inner features; give them some",
            tuple(second.shape())
        ));
    }
    for weights in [router, first, second] {
        out.expect_apart(MOE, weights)?;
    }
    let expected = [
        (first, vec![experts, 2 * inner, width]),
        (second, vec![experts, width, inner]),
        (out, tokens.shape().to_vec()),
    ];
    for (array, shape) in expected {
        if array.shape() != shape {
            return wrong_value(format!(
                "{MOE}: {} is {}, router is {} and down is {}; give {}",
                array.name,
                tuple(array.shape()),
                tuple(router.shape()),
                tuple(second.shape()),
                tuple(&shape)
            ));
        }
    }
    if tokens.shape().last() != Some(&width) {
        return wrong_value(format!(
            "{MOE}: tokens is {}, and the layer is {width} wide; give tokens of that width",
            tuple(tokens.shape())
        ));
    }
    [router, first, second, out]
        .into_iter()
        .try_for_each(|it| it.expect_type(MOE, tokens.data_type))
}

/// The arrays of a layer, each as a matrix or as one of its matrices.
struct Layer<'a> {
    tokens: (&'a Array, Shaped),
    router: (&'a Array, Shaped),
    gates_and_ups: (&'a Array, Shaped),
    down: (&'a Array, Shaped),
    out: (&'a Array, Shaped),
    top_k: usize,
    weights: RouterWeights,
    precision: Precision,
}

/// The element types of a layer.
trait ExpertElement: Element + Element<f32> + GatedElement + PooledElement {}
impl<T: Element + Element<f32> + GatedElement + PooledElement> ExpertElement for T {}

fn enqueue_layer<T: ExpertElement>(call: &Call<'_>, layer: &Layer<'_>) -> Result<()> {
    if layer.tokens.0.shape().contains(&0) {
        return Ok(());
    }
    let context = call.context();
    let (tokens, experts) = (layer.tokens.1.rows, layer.router.1.columns);
    call.run_kept(false, |kept| {
        kept.moe_rows.with(
            &context.stream,
            [tokens, layer.top_k, experts],
            || MoeRows::new(context.stream.device(), tokens, layer.top_k, experts),
            |rows| layer.enqueue::<T>(context, rows),
        )
    })
}

impl Layer<'_> {
    fn enqueue<T: ExpertElement>(
        &self,
        context: &'static Context,
        rows: &mut MoeRows,
    ) -> cutlet::Result<()> {
        let stream = &context.stream;
        let tokens = self.tokens.1.of::<T>(self.tokens.0, context)?;
        let (choices, width) = (rows.rows(), tokens.columns());
        let shares = self.route(context, rows, tokens)?;
        let mut permuted = stream.scratch::<T>(choices * width)?;
        rows.permute(
            stream,
            tokens,
            MatrixMut::row_major(permuted.view_mut(), choices, width)?,
        )?;
        let results = self.run_experts(context, rows, permuted.view())?;
        rows.unpermute(
            stream,
            Matrix::row_major(results.view(), choices, width)?,
            shares.view(),
            self.out.1.of_mut(self.out.0, context)?,
        )
    }

    /// Chooses the experts of each token, and returns their weights.
    fn route<T: ExpertElement>(
        &self,
        context: &'static Context,
        rows: &mut MoeRows,
        tokens: Matrix<'_, T>,
    ) -> cutlet::Result<Scratch<'static, f32>> {
        let stream: &'static Stream = &context.stream;
        let router = self.router.1.of::<T>(self.router.0, context)?;
        let (count, experts, choices) = (tokens.rows(), router.columns(), rows.rows());
        let mut logits = stream.scratch::<f32>(count * experts)?;
        let to = MatrixMut::row_major(logits.view_mut(), count, experts)?;
        Gemm::new(tokens, router, to).run(stream)?;
        let mut chosen = stream.scratch::<i32>(choices)?;
        let mut shares = stream.scratch::<f32>(choices)?;
        cutlet::top_k(
            stream,
            Matrix::row_major(logits.view(), count, experts)?,
            self.weights,
            MatrixMut::row_major(chosen.view_mut(), count, self.top_k)?,
            MatrixMut::row_major(shares.view_mut(), count, self.top_k)?,
        )?;
        rows.route(stream, chosen.view())?;
        Ok(shares)
    }

    /// What the experts make of their tokens' rows.
    fn run_experts<T: ExpertElement>(
        &self,
        context: &'static Context,
        rows: &MoeRows,
        permuted: View<'_, T>,
    ) -> cutlet::Result<Scratch<'static, T>> {
        let stream: &'static Stream = &context.stream;
        let (first, second) = (self.gates_and_ups, self.down);
        let gates_and_ups = first.1.batch_of::<T>(first.0, 0, context)?;
        let down = second.1.batch_of::<T>(second.0, 0, context)?;
        let (choices, ends) = (rows.rows(), rows.ends());
        let (width, inner) = (second.1.columns, second.1.rows);
        let mut between = stream.scratch::<T>(choices * inner)?;
        Gemm::new(
            Matrix::row_major(permuted, choices, width)?,
            gates_and_ups,
            MatrixMut::row_major(between.view_mut(), choices, inner)?,
        )
        .group_ends(ends)
        .precision(self.precision)
        .swiglu()
        .run(stream)?;
        let mut results = stream.scratch::<T>(choices * width)?;
        Gemm::new(
            Matrix::row_major(between.view(), choices, inner)?,
            down,
            MatrixMut::row_major(results.view_mut(), choices, width)?,
        )
        .group_ends(ends)
        .precision(self.precision)
        .run(stream)?;
        Ok(results)
    }
}
