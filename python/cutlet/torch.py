"""Operations of PyTorch: ``torch.ops.cutlet``.

``torch.compile``, ``torch.export`` and CUDA graphs take them, as ``torch.library`` knows the shapes of their results.
``linear``, ``swiglu`` and ``embedding`` have gradients. The functions of ``cutlet`` itself take tensors as well, and
have neither.

>>> import torch, cutlet.torch
>>> y = torch.ops.cutlet.linear(x, weight, bias)
"""

import torch

from . import _cutlet

__all__ = ["embedding", "grouped_gemm", "linear", "moe", "swiglu"]

_LIBRARY = torch.library.Library("cutlet", "DEF")


def _operation(schema, fake):
    """Defines an operation that runs on CPUs and GPUs. ``fake`` makes a result of the right shape."""

    def define(function):
        name = schema.split("(")[0]
        _LIBRARY.define(schema, tags=(torch.Tag.pt2_compliant_tag,))
        _LIBRARY.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"cutlet::{name}", fake, lib=_LIBRARY)
        return getattr(torch.ops.cutlet, name)

    return define


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


torch.library.register_autograd("cutlet::linear", _gradient_of_linear, setup_context=_keep_for_linear, lib=_LIBRARY)


def _fake_swiglu(source):
    return source.new_empty((*source.shape[:-1], source.shape[-1] // 2))


@_operation("swiglu(Tensor source) -> Tensor", fake=_fake_swiglu)
def swiglu(source):
    """``silu(source[..., 0::2]) * source[..., 1::2]``."""
    return _cutlet.swiglu(source.contiguous())


def _keep_for_swiglu(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])


def _gradient_of_swiglu(ctx, gradient):
    (source,) = ctx.saved_tensors
    gates, ups = source[..., 0::2], source[..., 1::2]
    sigmoid = torch.sigmoid(gates)
    of_gates = gradient * ups * sigmoid * (1 + gates * (1 - sigmoid))
    of_ups = gradient * gates * sigmoid
    return torch.stack([of_gates, of_ups], -1).reshape(source.shape)


torch.library.register_autograd("cutlet::swiglu", _gradient_of_swiglu, setup_context=_keep_for_swiglu, lib=_LIBRARY)


def _fake_embedding(table, indices):
    return table.new_empty((*indices.shape, table.shape[1]))


@_operation("embedding(Tensor table, Tensor indices) -> Tensor", fake=_fake_embedding)
def embedding(table, indices):
    """``table[indices]``. Rows of indices that are no rows are zero, and ``cutlet.check`` reports them."""
    return _cutlet.gather(_matrix(table), indices.contiguous(), out_of_range="deferred")


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


torch.library.register_autograd(
    "cutlet::embedding", _gradient_of_embedding, setup_context=_keep_for_embedding, lib=_LIBRARY
)


def _fake_grouped_gemm(a, b, ends, activation=None):
    columns = b.shape[2] // 2 if activation == "swiglu" else b.shape[2]
    return a.new_empty((a.shape[0], columns))


@_operation("grouped_gemm(Tensor a, Tensor b, Tensor ends, str? activation=None) -> Tensor", fake=_fake_grouped_gemm)
def grouped_gemm(a, b, ends, activation=None):
    """Groups of the rows of a (rows, k), each multiplied with a matrix of b (groups, k, n). Group ``g`` ends at row
    ``ends[g]``, int32. Rows that are in no group are zero. It has no gradient.
    """
    columns = b.shape[2] // 2 if activation == "swiglu" else b.shape[2]
    out = a.new_zeros((a.shape[0], columns))
    return _cutlet.grouped_gemm(_matrix(a), b, ends=ends, out=out, activation=activation)


def _fake_moe(tokens, router, gates_and_ups, down, k, normalised=True):
    return torch.empty_like(tokens, memory_format=torch.contiguous_format)


@_operation(
    "moe(Tensor tokens, Tensor router, Tensor gates_and_ups, Tensor down, int k, bool normalised=True) -> Tensor",
    fake=_fake_moe,
)
def moe(tokens, router, gates_and_ups, down, k, normalised=True):
    """A layer of a mixture of experts, as ``cutlet.moe``. It has no gradient."""
    return _cutlet.moe(tokens.contiguous(), router, gates_and_ups, down, k, normalised=normalised)
