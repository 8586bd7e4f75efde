"""A linear layer that keeps what it multiplies by."""

from ._cutlet import gemm


class Linear:
    """``linear(x)`` is ``activation(x @ weights.T + bias)``, by one call of :func:`gemm`. The weights are used in place.

    Arguments:
        weights: (outputs, inputs): a row for each output, as in ``torch.nn.Linear``. With "swiglu", rows are gates and
            ups by turns, and there are half as many outputs.
        bias: (outputs,).
        activation, precision, dtype: As in ``gemm``.

    >>> import numpy
    >>> linear = Linear(numpy.eye(3, dtype="float32"), numpy.ones(3, "float32"), activation="relu")
    >>> linear(numpy.array([[1, -2, 3]], "float32"))
    array([[2., 0., 4.]], dtype=float32)

    ``cutlet.nn.Linear`` is a module of PyTorch with parameters and gradients.
    """

    def __init__(self, weights, bias=None, *, activation=None, precision=None, dtype=None):
        if weights.ndim != 2:
            raise ValueError(f"Linear: weights is {tuple(weights.shape)}; give a row for each output")
        self.weights, self.bias = weights, bias
        self.activation, self.precision, self.dtype = activation, precision, dtype
        self._transposed = weights.T

    def __call__(self, x, *, residual=None, out=None, stream=None):
        """The outputs of each row of ``x``, (rows, inputs), in ``out``, (rows, outputs). ``residual`` has its shape, and
        is added before the activation."""
        return gemm(
            x,
            self._transposed,
            out=out,
            bias=self.bias,
            residual=residual,
            activation=self.activation,
            precision=self.precision,
            dtype=self.dtype,
            stream=stream,
        )

    def __repr__(self):
        outputs, inputs = self.weights.shape
        bias = "" if self.bias is None else ", bias"
        activation = "" if self.activation is None else f", {self.activation}"
        return f"Linear({inputs} -> {outputs}{bias}{activation})"
