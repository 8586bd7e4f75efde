"""Modules of PyTorch whose products are cutlet's."""

import torch

from .torch import linear

__all__ = ["Linear", "replace"]

_ACTIVATIONS = {
    None: lambda x: x,
    "relu": torch.nn.functional.relu,
    "gelu": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
}


class Linear(torch.nn.Linear):
    """``torch.nn.Linear`` with cutlet's product: the same parameters, shapes and gradients.

    ``activation`` may be "relu", "gelu" or "silu". It is applied in the product's kernel where no gradient is recorded,
    and after it elsewhere.
    """

    #: For modules that :func:`replace` has made.
    activation = None

    def __init__(self, in_features, out_features, bias=True, device=None, dtype=None, *, activation=None):
        super().__init__(in_features, out_features, bias, device, dtype)
        if activation not in _ACTIVATIONS:
            raise ValueError(f"Linear: activation is {activation!r}; give relu, gelu or silu")
        self.activation = activation

    def forward(self, x):
        operands = (x, self.weight, self.bias)
        kind = x.device.type
        if torch.is_autocast_enabled(kind):
            dtype = torch.get_autocast_dtype(kind)
            operands = tuple(it if it is None else it.to(dtype) for it in operands)
        if torch.is_grad_enabled() and any(it is not None and it.requires_grad for it in operands):
            return _ACTIVATIONS[self.activation](linear(*operands))
        return linear(*operands, self.activation)


def replace(model):
    """Makes each ``torch.nn.Linear`` of a model a :class:`Linear`, with the same parameters and hooks. Subclasses stay
    as they are.

    Returns:
        ``model``.
    """
    for module in model.modules():
        if type(module) is torch.nn.Linear:
            module.__class__ = Linear
    return model
