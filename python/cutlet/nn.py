"""Modules of PyTorch whose products are cutlet's."""

import torch

from .torch import linear, moe

__all__ = ["Linear", "MoE", "replace"]

_ACTIVATIONS = {
    None: lambda x: x,
    "relu": torch.nn.functional.relu,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "gelu_erf": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
}


def _under_autocast(x, *operands):
    """``x`` and operands in the type that autocast asks for, if any."""
    kind = x.device.type
    if not torch.is_autocast_enabled(kind):
        return x, *operands
    dtype = torch.get_autocast_dtype(kind)
    return tuple(it if it is None else it.to(dtype) for it in (x, *operands))


class Linear(torch.nn.Linear):
    """``torch.nn.Linear`` with cutlet's product: the same parameters, shapes and gradients.

    ``activation`` may be "relu", "gelu" with the hyperbolic tangent, "gelu_erf" without an approximation, or "silu". It
    is applied with the product where no gradient is recorded, and after it elsewhere.
    """

    #: For modules that :func:`replace` has made.
    activation = None

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None, *, activation=None):
        super().__init__(in_features, out_features, bias, device, dtype)
        if activation not in _ACTIVATIONS:
            raise ValueError(f"Linear: activation is {activation!r}; give relu, gelu, gelu_erf or silu")
        self.activation = activation

    def forward(self, x):
        operands = _under_autocast(x, self.weight, self.bias)
        if torch.is_grad_enabled() and any(it is not None and it.requires_grad for it in operands):
            return _ACTIVATIONS[self.activation](linear(*operands))
        return linear(*operands, self.activation)


class MoE(torch.nn.Module):
    """A layer of a mixture of experts: each token goes to ``k`` experts, and each expert is a feed-forward network with
    SwiGLU, ``down @ (silu(gate @ x) * (up @ x))``. The results are added with the weights of a linear router.

    Parameters, which begin as those of ``torch.nn.Linear``:

    - ``router`` (experts, width)
    - ``gates_and_ups`` (experts, 2 * inner, width), of which the rows are gates and ups by turns. Weights of other
      layers are loaded by ``layer.gates_and_ups.copy_(torch.stack([gates, ups], 2).flatten(1, 2))``.
    - ``down`` (experts, width, inner)

    Arguments:
        width: Features of a token.
        inner: Features between the products of an expert.
        experts: How many there are.
        k: How many experts a token chooses, at most 2048.
        normalised: Whether a token's weights are the softmax over the chosen logits alone, or else over all.

    >>> layer = MoE(width=16, inner=32, experts=4, k=2)
    >>> layer(torch.randn(3, 5, 16)).shape
    torch.Size([3, 5, 16])
    """

    def __init__(self, width, inner, experts, k, *, normalised=True, device=None, dtype=None):
        super().__init__()
        if not 1 <= k <= min(experts, 2048):
            raise ValueError(
                f"MoE: {k} of {experts} experts were asked for; let a token choose from 1 to {min(experts, 2048)}"
            )

        def parameter(*shape):
            return torch.nn.Parameter(torch.empty(shape, device=device, dtype=dtype))

        self.width, self.inner, self.experts, self.k, self.normalised = width, inner, experts, k, normalised
        self.router = parameter(experts, width)
        self.gates_and_ups = parameter(experts, 2 * inner, width)
        self.down = parameter(experts, width, inner)
        self.reset_parameters()

    def reset_parameters(self):
        for weights in self.parameters():
            # As torch.nn.Linear, whose bound depends on the inputs alone.
            bound = weights.shape[-1] ** -0.5 if weights.shape[-1] else 0.0
            torch.nn.init.uniform_(weights, -bound, bound)

    def forward(self, tokens):
        operands = _under_autocast(tokens, self.router, self.gates_and_ups, self.down)
        return moe(*operands, self.k, self.normalised)

    def extra_repr(self):
        return (
            f"width={self.width}, inner={self.inner}, experts={self.experts}, k={self.k}, "
            f"normalised={self.normalised}"
        )


def replace(model):
    """Makes each ``torch.nn.Linear`` of a model a :class:`Linear`, with the same parameters and hooks. Subclasses stay
    as they are, and so do mixtures of experts: PyTorch has no module of them, and models name and order their weights
    each in its own way. :class:`MoE` says how to load them.

    Returns:
        ``model``.
    """
    for module in model.modules():
        if type(module) is torch.nn.Linear:
            module.__class__ = Linear
    return model
