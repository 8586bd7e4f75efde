"""Operations of PyTorch: ``torch.ops.cutlet``.

``torch.compile``, ``torch.export`` and CUDA graphs take them, as ``torch.library`` knows the shapes of their results.
All have gradients. The functions of ``cutlet`` itself take tensors as well, and have neither.

>>> import torch, cutlet.torch
>>> y = torch.ops.cutlet.linear(x, weight, bias)
"""

import collections

import torch

from . import _cutlet

__all__ = ["attention", "embedding", "grouped_gemm", "linear", "moe", "swiglu"]

# Hugging Face's `kernels` gives each version of a package a name, by which its operations are told apart.
_NAMESPACE = __package__.replace(".", "_")
_LIBRARY = torch.library.Library(_NAMESPACE, "DEF")


def _defined(schema, function, key):
    """Defines an operation, and returns it."""
    name = schema.split("(")[0]
    _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
    _LIBRARY.impl(name, function, key)
    return getattr(getattr(torch.ops, _NAMESPACE), name)


def _operation(schema, fake):
    """Defines an operation that runs on CPUs and GPUs. ``fake`` makes a result of the right shape."""

    def define(function):
        operation = _defined(schema, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{_NAMESPACE}::{operation.__name__}", fake, lib=_LIBRARY)
        return operation

    return define


def _composite(schema):
    """Defines an operation that is made of others."""

    return lambda function: _defined(schema, function, "CompositeImplicitAutograd")


def _differentiable(operation, gradient, keep):
    """Gives an operation a gradient, for which ``keep`` keeps what it needs."""
    name = f"{_NAMESPACE}::{operation.__name__}"
    torch.library.register_autograd(name, gradient, setup_context=keep, lib=_LIBRARY)


def _matrix(tensor):
    """The matrix as a kernel reads it: one stride is 1, and runs do not overlap. Others are copied."""
    (rows, columns), (down, across) = tensor.shape, tensor.stride()
    by_rows = (across == 1 or columns <= 1) and (down >= columns or rows <= 1)
    by_columns = (down == 1 or rows <= 1) and (across >= rows or columns <= 1)
    return tensor if by_rows or by_columns else tensor.contiguous()


def _flat(tensor):
    """All dimensions but the last as one."""
    return tensor.unsqueeze(0) if tensor.dim() == 1 else tensor.flatten(0, -2)


def _precision(dtype):
    """PyTorch's choice for products of float32."""
    if dtype != torch.float32 or torch.get_float32_matmul_precision() == "highest":
        return "exact"
    return "tf32"


def _fake_linear(x, weight, bias=None, activation=None):
    return x.new_empty((*x.shape[:-1], weight.shape[0]))


@_operation("linear(Tensor x, Tensor weight, Tensor? bias=None, str? activation=None) -> Tensor", fake=_fake_linear)
def linear(x, weight, bias=None, activation=None):
    """``activation(x @ weight.T + bias)`` for x (..., inputs) and weight (outputs, inputs)."""
    bias = None if bias is None else bias.contiguous()
    weight = _matrix(weight)
    y = _cutlet.gemm(_matrix(_flat(x)), weight.t(), bias=bias, activation=activation, precision=_precision(x.dtype))
    return y.view(*x.shape[:-1], weight.shape[0])


def _keep_for_linear(ctx, inputs, output):
    x, weight, bias, activation = inputs
    if activation is not None:
        raise RuntimeError(
            f"cutlet::linear: activation is {activation}, and a gradient is recorded; apply the activation afterwards, "
            "as cutlet.nn.Linear does"
        )
    ctx.save_for_backward(x, weight)
    ctx.has_bias = bias is not None


def _gradient_of_linear(ctx, gradient):
    x, weight = ctx.saved_tensors
    # Arguments that have their default are left out of it.
    needed = ctx.needs_input_grad
    of_x = of_weight = of_bias = None
    rows = _flat(gradient)
    if needed[0]:
        of_x = linear(rows, weight.t()).view(x.shape)
    if needed[1]:
        of_weight = linear(rows.t(), _flat(x).t())
    if ctx.has_bias and needed[2]:
        of_bias = rows.sum(0)
    return of_x, of_weight, of_bias, None


_differentiable(linear, _gradient_of_linear, _keep_for_linear)


def _fake_swiglu(source):
    return source.new_empty((*source.shape[:-1], source.shape[-1] // 2))


@_operation("swiglu(Tensor source) -> Tensor", fake=_fake_swiglu)
def swiglu(source):
    """``silu(source[..., 0::2]) * source[..., 1::2]``."""
    return _cutlet.swiglu(source.contiguous())


def _keep_for_swiglu(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _of_swiglu(source, gradient):
    """The gradient of the gates and ups."""
    gates, ups = source[..., 0::2], source[..., 1::2]
    of_gates = torch.ops.aten.silu_backward(gradient * ups, gates)
    of_ups = gradient * torch.nn.functional.silu(gates)
    return torch.stack([of_gates, of_ups], -1).reshape(source.shape)


def _gradient_of_swiglu(ctx, gradient):
    return _of_swiglu(*ctx.saved_tensors, gradient)


_differentiable(swiglu, _gradient_of_swiglu, _keep_for_swiglu)


def _fake_embedding(table, indices):
    return table.new_empty((*indices.shape, table.shape[1]))


@_operation("embedding(Tensor table, Tensor indices) -> Tensor", fake=_fake_embedding)
def embedding(table, indices):
    """``table[indices]``. Rows of indices that are no rows are zero, and ``cutlet.check`` reports them."""
    return _cutlet.gather(_matrix(table), indices.contiguous())


def _fake_embedding_gradient(gradient, indices, rows):
    return gradient.new_empty((rows, gradient.shape[-1]))


@_operation("embedding_gradient(Tensor gradient, Tensor indices, SymInt rows) -> Tensor", fake=_fake_embedding_gradient)
def _embedding_gradient(gradient, indices, rows):
    of_table = gradient.new_zeros((rows, gradient.shape[-1]))
    return _cutlet.scatter_add(
        _flat(gradient).contiguous(), indices.reshape(-1).contiguous(), of_table, out_of_range="skip"
    )


def _keep_for_embedding(ctx, inputs, output):
    table, indices = inputs
    ctx.save_for_backward(indices)
    ctx.rows = table.shape[0]


def _gradient_of_embedding(ctx, gradient):
    (indices,) = ctx.saved_tensors
    return _embedding_gradient(gradient, indices, ctx.rows), None


_differentiable(embedding, _gradient_of_embedding, _keep_for_embedding)


def _matrices(tensor):
    """The matrices of a tensor of three dimensions as a kernel reads them: as :func:`_matrix`, at equal distances."""
    (_, rows, columns), (apart, down, across) = tensor.shape, tensor.stride()
    by_rows = (across == 1 or columns <= 1) and (down >= columns or rows <= 1)
    by_columns = (down == 1 or rows <= 1) and (across >= rows or columns <= 1)
    return tensor if apart >= 0 and (by_rows or by_columns) else tensor.contiguous()


def _fake_grouped_gemm(a, b, ends, activation=None):
    columns = b.shape[2] // 2 if activation == "swiglu" else b.shape[2]
    return a.new_empty((a.shape[0], columns))


@_operation("grouped_gemm(Tensor a, Tensor b, Tensor ends, str? activation=None) -> Tensor", fake=_fake_grouped_gemm)
def grouped_gemm(a, b, ends, activation=None):
    """Groups of the rows of a (rows, k), each multiplied with a matrix of b (groups, k, n). Group ``g`` ends at row
    ``ends[g]``, int32. Rows that are in no group are zero, and hold anything with "swiglu".

    The gradient of b is a product for each group, for which the host waits for ``ends``.
    """
    columns = b.shape[2] // 2 if activation == "swiglu" else b.shape[2]
    out = a.new_zeros((a.shape[0], columns))
    if a.shape[0] == 0:
        return out
    return _cutlet.grouped_gemm(
        _matrix(a), _matrices(b), ends=ends, out=out, activation=activation, precision=_precision(a.dtype)
    )


def _like_weights(a, gradient, ends, by_columns):
    """The gradient of the matrices of groups, not yet computed. It lies as they do, so that nothing copies it."""
    groups, k, n = ends.shape[0], a.shape[1], gradient.shape[1]
    if by_columns:
        return a.new_empty((groups, n, k)).transpose(1, 2)
    return a.new_empty((groups, k, n))


@_operation(
    "grouped_gemm_gradient(Tensor a, Tensor gradient, Tensor ends, bool by_columns) -> Tensor", fake=_like_weights
)
def _grouped_gemm_gradient(a, gradient, ends, by_columns):
    out = _like_weights(a, gradient, ends, by_columns)
    if out.numel() == 0:
        return out
    return _cutlet.grouped_gemm(
        _matrix(a).t(), _matrix(gradient), ends=ends, out=out, precision=_precision(a.dtype)
    )


def _keep_for_grouped_gemm(ctx, inputs, output):
    a, b, ends, activation = inputs
    if activation is not None:
        raise RuntimeError(
            f"cutlet::grouped_gemm: activation is {activation}, and a gradient is recorded; apply the activation "
            "afterwards"
        )
    ctx.save_for_backward(a, b, ends)


def _gradient_of_grouped_gemm(ctx, gradient):
    a, b, ends = ctx.saved_tensors
    of_a = of_b = None
    if ctx.needs_input_grad[0]:
        of_a = grouped_gemm(gradient, b.transpose(1, 2), ends)
    if ctx.needs_input_grad[1]:
        of_b = _grouped_gemm_gradient(a, gradient, ends, b.stride(1) == 1)
    return of_a, of_b, None, None


_differentiable(grouped_gemm, _gradient_of_grouped_gemm, _keep_for_grouped_gemm)


def _fake_moe(tokens, router, gates_and_ups, down, k, normalised=True):
    return torch.empty_like(tokens, memory_format=torch.contiguous_format)


@_operation(
    "moe_inference(Tensor tokens, Tensor router, Tensor gates_and_ups, Tensor down, int k, bool normalised=True)"
    " -> Tensor",
    fake=_fake_moe,
)
def _moe_inference(tokens, router, gates_and_ups, down, k, normalised=True):
    return _cutlet.moe(
        tokens.contiguous(),
        _matrix(router),
        _matrices(gates_and_ups),
        _matrices(down),
        k,
        normalised=normalised,
        precision=_precision(tokens.dtype),
    )


#: What the gradient of a mixture of experts needs besides its operands.
_Recorded = collections.namedtuple("_Recorded", "logits choices weights token_of_row row_of_choice ends projected")


def _fake_moe_recorded(tokens, router, gates_and_ups, down, k, normalised=True):
    count, experts = _flat(tokens).shape[0], router.shape[0]
    whole = {"dtype": torch.int32}
    return (
        torch.empty_like(tokens, memory_format=torch.contiguous_format),
        tokens.new_empty((count, experts), dtype=torch.float32),
        tokens.new_empty((count, k), **whole),
        tokens.new_empty((count, k), dtype=torch.float32),
        tokens.new_empty((count * k,), **whole),
        tokens.new_empty((count, k), **whole),
        tokens.new_empty((experts,), **whole),
        tokens.new_empty((count * k, gates_and_ups.shape[1])),
    )


@_operation(
    "moe_recorded(Tensor tokens, Tensor router, Tensor gates_and_ups, Tensor down, int k, bool normalised=True)"
    " -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    fake=_fake_moe_recorded,
)
def _moe_recorded(tokens, router, gates_and_ups, down, k, normalised=True):
    """The layer's result, and what its gradient needs."""
    if tokens.numel() == 0:
        nothing = _fake_moe_recorded(tokens, router, gates_and_ups, down, k, normalised)
        return tuple(it.zero_() for it in nothing)
    precision, flat = _precision(tokens.dtype), _flat(tokens).contiguous()
    logits = _cutlet.gemm(flat, _matrix(router).t(), dtype="float32")
    choices, weights = _cutlet.top_k(logits, k, normalised=normalised)
    token_of_row, row_of_choice, ends = _cutlet.moe_rows(choices, router.shape[0])
    rows = _cutlet.gather(flat, token_of_row, out_of_range="clamp")
    first, second = _matrices(gates_and_ups).transpose(1, 2), _matrices(down).transpose(1, 2)
    projected = _cutlet.grouped_gemm(rows, first, ends=ends, precision=precision)
    results = _cutlet.grouped_gemm(_cutlet.swiglu(projected), second, ends=ends, precision=precision)
    sums = _cutlet.embedding_bag(results, row_of_choice, weights=weights, out_of_range="clamp")
    return sums.view(tokens.shape), logits, choices, weights, token_of_row, row_of_choice, ends, projected


def _fake_moe_gradient(gradient, tokens, router, gates_and_ups, down, *recorded):
    operands, needed = (tokens, router, gates_and_ups, down), recorded[-1]
    return tuple(it.new_empty(it.shape if needs else (0,)) for it, needs in zip(operands, needed))


@_operation(
    "moe_gradient(Tensor gradient, Tensor tokens, Tensor router, Tensor gates_and_ups, Tensor down, Tensor logits,"
    " Tensor choices, Tensor weights, Tensor token_of_row, Tensor row_of_choice, Tensor ends, Tensor projected,"
    " bool normalised, bool[] needed) -> (Tensor, Tensor, Tensor, Tensor)",
    fake=_fake_moe_gradient,
)
def _moe_gradient(gradient, tokens, router, gates_and_ups, down, *others):
    """The gradients of the operands, of which those that are not needed are empty."""
    of, (normalised, needed) = _Recorded(*others[:-2]), others[-2:]
    if tokens.numel() == 0:
        nothing = _fake_moe_gradient(gradient, tokens, router, gates_and_ups, down, needed)
        return tuple(it.zero_() for it in nothing)
    flat, gradients = _flat(tokens).contiguous(), [tokens.new_empty((0,)) for _ in range(4)]
    products = {"ends": of.ends, "precision": _precision(tokens.dtype)}
    rows_of_choices = of.row_of_choice.flatten().long()
    weights_of_rows = torch.empty_like(of.weights).view(-1).scatter_(0, rows_of_choices, of.weights.view(-1))

    # An expert's result gets the token's gradient times the expert's weight. The weight is multiplied behind the
    # product, so that its own gradient needs no result.
    of_results = _cutlet.gather(_flat(gradient).contiguous(), of.token_of_row, out_of_range="clamp")
    of_inner = _cutlet.grouped_gemm(of_results, _matrices(down), **products)
    inner = _cutlet.swiglu(of.projected)
    # Products of float16 may overflow where their sum does not.
    shares = of_inner * (inner.float() if inner.dtype == torch.float16 else inner)
    of_weights = shares.sum(1, dtype=torch.float32)[rows_of_choices].view_as(of.weights)
    del shares
    inner.mul_(weights_of_rows.unsqueeze(1))
    if needed[3]:
        gradients[3] = _grouped_gemm_gradient(of_results, inner, of.ends, False)
    of_projected = _of_swiglu(of.projected, of_inner.mul_(weights_of_rows.unsqueeze(1)))
    if needed[2]:
        rows = _cutlet.gather(flat, of.token_of_row, out_of_range="clamp")
        gradients[2] = _grouped_gemm_gradient(of_projected, rows, of.ends, False)
    of_logits = _of_logits(of, of_weights, normalised).to(tokens.dtype)
    if needed[1]:
        gradients[1] = _cutlet.gemm(of_logits.t(), flat)
    if needed[0]:
        of_rows = _cutlet.grouped_gemm(of_projected, _matrices(gates_and_ups), **products)
        of_tokens = _cutlet.embedding_bag(of_rows, of.row_of_choice, out_of_range="clamp")
        _cutlet.gemm(of_logits, _matrix(router), beta=1.0, out=of_tokens)
        gradients[0] = of_tokens.view(tokens.shape)
    return tuple(gradients)


def _of_logits(of, of_weights, normalised):
    """The gradient of a softmax over the chosen logits, or over all."""
    if normalised:
        of_chosen = of.weights * (of_weights - (of.weights * of_weights).sum(1, keepdim=True))
        return torch.zeros_like(of.logits).scatter_(1, of.choices.long(), of_chosen)
    shares = of.logits.softmax(1)
    of_shares = torch.zeros_like(of.logits).scatter_(1, of.choices.long(), of_weights)
    return shares * (of_shares - (shares * of_shares).sum(1, keepdim=True))


def _keep_for_moe(ctx, inputs, output):
    tokens, router, gates_and_ups, down, _, normalised = inputs
    recorded = output[1:]
    ctx.mark_non_differentiable(*recorded)
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(tokens, router, gates_and_ups, down, *recorded)
    ctx.normalised = normalised


def _gradient_of_moe(ctx, gradient, *_):
    if gradient is None:
        return (None,) * 6
    needed = list(ctx.needs_input_grad[:4])
    gradients = _moe_gradient(gradient, *ctx.saved_tensors, ctx.normalised, needed)
    return *(it if needs else None for it, needs in zip(gradients, needed)), None, None


_differentiable(_moe_recorded, _gradient_of_moe, _keep_for_moe)


@_composite(
    "moe(Tensor tokens, Tensor router, Tensor gates_and_ups, Tensor down, int k, bool normalised=True) -> Tensor"
)
def moe(tokens, router, gates_and_ups, down, k, normalised=True):
    """A layer of a mixture of experts, as ``cutlet.moe``.

    Where a gradient is recorded, gates and ups of the chosen experts are kept for it. The gradients of the experts'
    weights are a product for each expert, for which the host waits to know their rows.
    """
    operands = (tokens, router, gates_and_ups, down)
    if torch.is_grad_enabled() and any(it.requires_grad for it in operands):
        return _moe_recorded(*operands, k, normalised)[0]
    return _moe_inference(*operands, k, normalised)


def _heads(tensor):
    """(sequences, rows, heads, features) as a kernel reads it: features lie behind one another, and rows begin at
    multiples of 16 bytes. Others are copied."""
    aligned = all(stride * tensor.element_size() % 16 == 0 for stride in tensor.stride()[:-1])
    return tensor if tensor.stride(-1) == 1 and aligned else tensor.contiguous()


def _fake_attention(queries, keys, values, causal=False, scale=None):
    return queries.new_empty(queries.shape)


@_operation(
    "attention_inference(Tensor queries, Tensor keys, Tensor values, bool causal=False, float? scale=None) -> Tensor",
    fake=_fake_attention,
)
def _attention_inference(queries, keys, values, causal=False, scale=None):
    return _cutlet.attention(_heads(queries), _heads(keys), _heads(values), causal=causal, scale=scale)


def _fake_attention_recorded(queries, keys, values, causal=False, scale=None):
    sums = queries.new_empty(queries.shape[:3], dtype=torch.float32)
    return queries.new_empty(queries.shape), sums


@_operation(
    "attention_recorded(Tensor queries, Tensor keys, Tensor values, bool causal=False, float? scale=None)"
    " -> (Tensor, Tensor)",
    fake=_fake_attention_recorded,
)
def _attention_recorded(queries, keys, values, causal=False, scale=None):
    """The output, and the logarithms of the queries' sums, which the gradient needs."""
    sums = queries.new_empty(queries.shape[:3], dtype=torch.float32)
    rows = _heads(queries), _heads(keys), _heads(values)
    return _cutlet.attention(*rows, causal=causal, scale=scale, log_sum_exp=sums), sums


def _fake_attention_gradient(gradient, queries, keys, values, output, sums, causal, scale=None):
    return tuple(it.new_empty(it.shape) for it in (queries, keys, values))


@_operation(
    "attention_gradient(Tensor gradient, Tensor queries, Tensor keys, Tensor values, Tensor output, Tensor sums,"
    " bool causal, float? scale=None) -> (Tensor, Tensor, Tensor)",
    fake=_fake_attention_gradient,
)
def _attention_gradient(gradient, queries, keys, values, output, sums, causal, scale=None):
    rows = [_heads(it) for it in (queries, keys, values, output)]
    return _cutlet.attention_backward(
        *rows,
        sums,
        _heads(gradient),
        causal=causal,
        scale=scale,
        deterministic=torch.are_deterministic_algorithms_enabled(),
    )


def _keep_for_attention(ctx, inputs, output):
    *rows, causal, scale = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(*rows, *output)
    ctx.options = causal, scale


def _gradient_of_attention(ctx, gradient, _):
    if gradient is None:
        return (None,) * 5
    return *_attention_gradient(gradient, *ctx.saved_tensors, *ctx.options), None, None


_differentiable(_attention_recorded, _gradient_of_attention, _keep_for_attention)


@_composite("attention(Tensor queries, Tensor keys, Tensor values, bool causal=False, float? scale=None) -> Tensor")
def attention(queries, keys, values, causal=False, scale=None):
    """``softmax(scale * queries @ keys.T) @ values`` for all heads, as ``cutlet.attention``: float16 or bfloat16, of
    (sequences, rows, heads, features). Queries may share the heads of keys.

    Its gradient is for GPUs of compute capability 9.0, and for heads of up to 128 features.
    """
    operands = (queries, keys, values)
    if torch.is_grad_enabled() and any(it.requires_grad for it in operands):
        return _attention_recorded(*operands, causal, scale)[0]
    return _attention_inference(*operands, causal, scale)
