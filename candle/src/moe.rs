//! A layer of a mixture of experts, each a SwiGLU feed-forward network.

use candle_core::backend::BackendStorage;
use candle_core::{D, DType, Error, Module, Result, Shape, Tensor};
use cutlet::{
    DeviceData, Element, GatedElement, Gemm, Matrix, MatrixMut, MoeRows, PooledElement,
    RouterWeights, Stream, View, ViewMut, top_k,
};
use cutlet_host::Scratch;
use half::{bf16, f16};

use crate::matrices::{Matrices, expect, readable};
use crate::operation::{Operand, Operation, apply};
use crate::place::{Elements, Place, Scalar};

/// A layer of a mixture of experts. Each token goes to the `top_k` experts that the router likes best. An expert makes
/// `down · (silu(gate · x) · (up · x))` of it, and the results are added with the router's weights.
///
/// How many tokens an expert gets stays on the device: nothing waits, and one launch multiplies the tokens of all experts.
/// Types are `bf16`, `f16` and `f32`; the arithmetic is in f32. It has no gradient: operands that need one are refused.
///
/// ```
/// use candle_core::{Device, Module, Tensor};
/// use cutlet_candle::Moe;
///
/// let (experts, width, inner) = (4, 16, 8);
/// let random = |shape: (usize, usize, usize)| Tensor::randn(0f32, 0.3, shape, &Device::Cpu);
/// let router = Tensor::randn(0f32, 1.0, (experts, width), &Device::Cpu)?;
/// let (gates, ups) = (random((experts, inner, width))?, random((experts, inner, width))?);
/// let moe = Moe::new(router, &gates, &ups, random((experts, width, inner))?, 2)?;
/// let tokens = Tensor::randn(0f32, 1.0, (3, width), &Device::Cpu)?;
/// assert_eq!(moe.forward(&tokens)?.dims(), [3, width]);
/// # Ok::<(), candle_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Moe {
    router: Tensor,
    /// Rows of gates and ups alternate, so that the product applies SwiGLU before it writes.
    gates_and_ups: Tensor,
    down: Tensor,
    layer: Layer,
}

const NAME: &str = "moe";

impl Moe {
    /// A layer of these weights. `router` is (experts, width), `gates` and `ups` are (experts, inner, width), and `down`
    /// is (experts, width, inner). The gates and ups are copied once, into one tensor of alternating rows.
    ///
    /// The weights of a token's experts are the softmax of their logits alone, and add up to 1; see
    /// [`router_weights`](Self::router_weights).
    ///
    /// # Errors
    /// If the shapes do not agree, or a token cannot choose so many experts.
    pub fn new(
        router: Tensor,
        gates: &Tensor,
        ups: &Tensor,
        down: Tensor,
        top_k: usize,
    ) -> Result<Self> {
        let (experts, width) = router.dims2()?;
        let (_, inner, _) = gates.dims3()?;
        for (what, found, shape) in [
            ("gates are", gates, [experts, inner, width]),
            ("ups are", ups, [experts, inner, width]),
            ("down weights are", &down, [experts, width, inner]),
        ] {
            if found.dims() != shape {
                return Err(Error::Msg(format!(
                    "moe: the router is {:?}, and the {what} {:?}; give {shape:?}",
                    router.dims(),
                    found.dims()
                ))
                .bt());
            }
        }
        if top_k == 0 || top_k > experts {
            return Err(Error::Msg(format!(
                "moe: {top_k} of {experts} experts were asked for; let a token choose from 1 to {experts}"
            ))
            .bt());
        }
        let alternating = Tensor::stack(&[gates, ups], 2)?.reshape((experts, 2 * inner, width))?;
        Ok(Moe {
            router: router.contiguous()?,
            gates_and_ups: alternating.contiguous()?,
            down: down.contiguous()?,
            layer: Layer {
                top_k,
                weights: RouterWeights::Normalised,
            },
        })
    }

    /// The same layer with other weights of a token's experts.
    pub fn router_weights(mut self, weights: RouterWeights) -> Self {
        self.layer.weights = weights;
        self
    }
}

impl Module for Moe {
    /// The layer's results for tokens `(…, width)`, of the same shape.
    fn forward(&self, tokens: &Tensor) -> Result<Tensor> {
        let (_, width) = self.router.dims2()?;
        if tokens.dim(D::Minus1)? != width {
            return Err(Error::Msg(format!(
                "moe: the tokens are {:?}, and the layer is {width} wide; give tokens of that width",
                tokens.dims()
            ))
            .bt());
        }
        if tokens.elem_count() == 0 {
            return Ok(tokens.clone());
        }
        let tokens = readable(NAME, "the tokens", tokens, |it| {
            Matrices::of(it)
                .and_then(Matrices::stacked)
                .is_some_and(|it| it.has_rows())
        })?;
        apply(
            &self.layer,
            [&tokens, &self.router, &self.gates_and_ups, &self.down],
        )
    }
}

/// The operation. Its operands are the tokens, the router, the gates and ups, and the down weights.
#[derive(Clone, Debug)]
struct Layer {
    top_k: usize,
    weights: RouterWeights,
}

impl Operation<4> for Layer {
    const NAME: &'static str = NAME;

    fn forward<P: Place>(&self, operands: [Operand<'_, P>; 4]) -> Result<(P::Storage, Shape)> {
        let sums = match operands[0].storage.dtype() {
            DType::BF16 => self.results::<P, bf16>(operands),
            DType::F16 => self.results::<P, f16>(operands),
            DType::F32 => self.results::<P, f32>(operands),
            found => Err(Error::UnsupportedDTypeForOp(found, NAME).bt()),
        };
        Ok((sums?, operands[0].layout.shape().clone()))
    }
}

/// The element types of the layer.
trait ExpertElement: Scalar + Element + Element<f32> + GatedElement + PooledElement {}
impl<T: Scalar + Element + Element<f32> + GatedElement + PooledElement> ExpertElement for T {}

/// The weights of the experts and of the router.
struct Weights<'a, T: DeviceData> {
    router: Matrix<'a, T>,
    /// (K, N, experts)
    gates_and_ups: cutlet::Tensor<'a, T>,
    down: cutlet::Tensor<'a, T>,
}

impl Layer {
    fn results<P: Place, T: ExpertElement>(
        &self,
        operands: [Operand<'_, P>; 4],
    ) -> Result<P::Storage> {
        let [tokens, router, gates_and_ups, down] = operands;
        let of_tokens = Matrices::of(tokens.layout).and_then(Matrices::stacked);
        let of_tokens = expect(of_tokens, NAME)?;
        let of_weights = [router, gates_and_ups, down].map(|it| Matrices::of(it.layout));
        let experts = router.layout.dims()[0];
        P::with(tokens.storage, |context| {
            let (stream, rows) = context.moe_rows(of_tokens.rows, self.top_k, experts)?;
            let from_tokens = P::read::<T>(stream, tokens.storage)?;
            let [router, gates_and_ups, down] =
                [router, gates_and_ups, down].map(|it| P::read::<T>(stream, it.storage));
            let (router, gates_and_ups, down) = (router?, gates_and_ups?, down?);
            let [of_router, of_first, of_second] = of_weights.map(|it| expect(it, NAME));
            let (of_router, of_first, of_second) = (of_router?, of_first?, of_second?);
            let len = of_tokens.rows * of_tokens.columns;
            P::make(stream, tokens.storage, len, |sums| {
                // A row of weights for each result: matrices B, transposed.
                let weights = Weights {
                    router: of_router.matrix(router.view())?.transposed(),
                    gates_and_ups: of_first.batch(gates_and_ups.view())?.select(&[1, 0, 2])?,
                    down: of_second.batch(down.view())?.select(&[1, 0, 2])?,
                };
                let tokens = of_tokens.matrix(from_tokens.view())?;
                self.enqueue(stream, rows, tokens, weights, sums)
            })
        })
    }

    fn enqueue<T: ExpertElement>(
        &self,
        stream: &Stream,
        rows: &mut MoeRows,
        tokens: Matrix<'_, T>,
        weights: Weights<'_, T>,
        sums: ViewMut<'_, T>,
    ) -> cutlet::Result<()> {
        let (count, width) = (tokens.rows(), tokens.columns());
        let (experts, choices) = (weights.router.columns(), count * self.top_k);
        let mut logits = stream.scratch::<f32>(count * experts)?;
        let to = MatrixMut::row_major(logits.view_mut(), count, experts)?;
        Gemm::new(tokens, weights.router, to).run(stream)?;
        let mut chosen = stream.scratch::<i32>(choices)?;
        let mut shares = stream.scratch::<f32>(choices)?;
        top_k(
            stream,
            Matrix::row_major(logits.view(), count, experts)?,
            self.weights,
            MatrixMut::row_major(chosen.view_mut(), count, self.top_k)?,
            MatrixMut::row_major(shares.view_mut(), count, self.top_k)?,
        )?;
        rows.route(stream, chosen.view())?;

        let mut permuted = stream.scratch::<T>(choices * width)?;
        rows.permute(
            stream,
            tokens,
            MatrixMut::row_major(permuted.view_mut(), choices, width)?,
        )?;
        let results = self.run_experts(stream, rows, permuted.view(), &weights)?;
        rows.unpermute(
            stream,
            Matrix::row_major(results.view(), choices, width)?,
            shares.view(),
            MatrixMut::row_major(sums, count, width)?,
        )
    }

    /// What the experts make of their tokens' rows.
    fn run_experts<'s, T: ExpertElement>(
        &self,
        stream: &'s Stream,
        rows: &MoeRows,
        permuted: View<'_, T>,
        weights: &Weights<'_, T>,
    ) -> cutlet::Result<Scratch<'s, T>> {
        let (choices, ends) = (rows.rows(), rows.ends());
        let [inner, width] = [0, 1].map(|mode| weights.down.shape().mode(mode).size() as usize);
        let mut between = stream.scratch::<T>(choices * inner)?;
        Gemm::new(
            Matrix::row_major(permuted, choices, width)?,
            weights.gates_and_ups,
            MatrixMut::row_major(between.view_mut(), choices, inner)?,
        )
        .group_ends(ends)
        .swiglu()
        .run(stream)?;
        let mut results = stream.scratch::<T>(choices * width)?;
        Gemm::new(
            Matrix::row_major(between.view(), choices, inner)?,
            weights.down,
            MatrixMut::row_major(results.view_mut(), choices, width)?,
        )
        .group_ends(ends)
        .run(stream)?;
        Ok(results)
    }
}
