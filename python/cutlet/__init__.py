"""GEMM, contractions, gathers and CuTe layouts on arrays of PyTorch, CuPy, JAX and NumPy.

Arrays are used in place: by DLPack, by ``__cuda_array_interface__`` or by NumPy's ``__array_interface__``. Work on a
GPU is enqueued in the current stream of the arrays' framework, or in the stream that is passed. The same kernels run on
arrays of the CPU, which finds bugs and is slow.

>>> import numpy, cutlet
>>> a, b = numpy.ones((2, 3), "float32"), numpy.ones((3, 4), "float32")
>>> cutlet.gemm(a, b)
array([[3., 3., 3., 3.],
       [3., 3., 3., 3.]], dtype=float32)
>>> print(cutlet.Layout("(4,6):(6,1)") @ cutlet.Layout("(2,2):(1,2)"))
(2,2):(6,12)

"""

from ._cutlet import (
    Kernel,
    Layout,
    LayoutError,
    Module,
    Plan,
    Tuned,
    __version__,
    argmax,
    attention,
    attention_backward,
    attention_decode,
    cast,
    check,
    contract,
    embedding_bag,
    gather,
    gemm,
    gemm_batched,
    grouped_gemm,
    install_tuning,
    interleave_rows,
    layer_norm,
    load,
    moe,
    moe_rows,
    permute,
    plan_gemm,
    quantize,
    reduce,
    rms_norm,
    rope,
    sample,
    scatter,
    scatter_add,
    silu_mul,
    softmax,
    swiglu,
    top_k,
    tune,
)
from ._build_kernels import build_kernels
from ._doctor import doctor
from ._linear import Linear
from . import layouts

__all__ = [
    "Kernel",
    "Layout",
    "LayoutError",
    "Linear",
    "Module",
    "build_kernels",
    "Plan",
    "Tuned",
    "argmax",
    "attention",
    "attention_backward",
    "attention_decode",
    "cast",
    "check",
    "contract",
    "doctor",
    "embedding_bag",
    "gather",
    "gemm",
    "gemm_batched",
    "grouped_gemm",
    "install_tuning",
    "interleave_rows",
    "layer_norm",
    "layouts",
    "load",
    "moe",
    "moe_rows",
    "permute",
    "plan_gemm",
    "quantize",
    "reduce",
    "rms_norm",
    "rope",
    "sample",
    "scatter",
    "scatter_add",
    "silu_mul",
    "softmax",
    "swiglu",
    "top_k",
    "tune",
]


def __getattr__(name):
    """Imports ``cutlet.nn`` and ``cutlet.torch``, which need PyTorch, when they are used."""
    if name in ("nn", "torch"):
        from importlib import import_module

        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
