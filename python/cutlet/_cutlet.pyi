import os
from typing import Any, Dict, Iterator, List, Literal, Optional, Protocol, Sequence, Tuple, TypeVar, Union, overload

__version__: str

class _Array(Protocol):
    """An array with `__dlpack__`, `__cuda_array_interface__` or `__array_interface__`."""

_A = TypeVar("_A")
_Stream = Any
_Dtype = Any
_Activation = Literal["relu", "gelu", "gelu_erf", "silu", "swiglu"]
_Precision = Literal["exact", "tf32", "3xtf32", "fast-accumulation"]
_OutOfRange = Literal["deferred", "checked", "clamp", "skip"]
_IntTuple = Union[int, Tuple["_IntTuple", ...]]
_Coordinate = Union[int, None, Tuple["_Coordinate", ...]]
_Tiler = Union[int, str, "Layout", Sequence["_Tiler"]]

def gemm(
    a: _A,
    b: Any,
    *,
    out: Optional[_A] = None,
    alpha: float = 1.0,
    beta: Optional[float] = None,
    bias: Optional[Any] = None,
    bias_along: Literal["columns", "rows"] = "columns",
    residual: Optional[Any] = None,
    activation: Optional[_Activation] = None,
    precision: Optional[_Precision] = None,
    scale_a: Optional[Any] = None,
    scale_b: Optional[Any] = None,
    dtype: Optional[_Dtype] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def gemm_batched(
    a: _A,
    b: Any,
    *,
    out: Optional[_A] = None,
    alpha: float = 1.0,
    beta: Optional[float] = None,
    bias: Optional[Any] = None,
    bias_along: Literal["columns", "rows"] = "columns",
    activation: Optional[_Activation] = None,
    precision: Optional[_Precision] = None,
    scale_a: Optional[Any] = None,
    scale_b: Optional[Any] = None,
    dtype: Optional[_Dtype] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def grouped_gemm(
    a: _A,
    b: Any,
    *,
    ends: Optional[Any] = None,
    rows: Optional[Any] = None,
    out: Optional[_A] = None,
    alpha: float = 1.0,
    beta: Optional[float] = None,
    activation: Optional[_Activation] = None,
    precision: Optional[_Precision] = None,
    scale_a: Optional[Any] = None,
    scale_b: Optional[Any] = None,
    dtype: Optional[_Dtype] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def contract(
    notation: str,
    a: _A,
    b: Any,
    *,
    out: Optional[_A] = None,
    alpha: float = 1.0,
    beta: Optional[float] = None,
    precision: Optional[_Precision] = None,
    dtype: Optional[_Dtype] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def permute(
    source: _A, axes: Optional[Sequence[int]] = None, *, out: Optional[_A] = None, stream: Optional[_Stream] = None
) -> _A: ...
def gather(
    table: _A,
    indices: Any,
    *,
    out: Optional[_A] = None,
    out_of_range: _OutOfRange = "deferred",
    stream: Optional[_Stream] = None,
) -> _A: ...
def scatter(
    source: Any, indices: Any, table: _A, *, out_of_range: _OutOfRange = "deferred", stream: Optional[_Stream] = None
) -> _A: ...
def scatter_add(
    source: Any,
    indices: Any,
    table: _A,
    *,
    ordered: bool = False,
    out_of_range: _OutOfRange = "deferred",
    stream: Optional[_Stream] = None,
) -> _A: ...
def embedding_bag(
    table: _A,
    indices: Any,
    *,
    offsets: Optional[Any] = None,
    weights: Optional[Any] = None,
    pooling: Literal["sum", "mean", "max"] = "sum",
    out: Optional[_A] = None,
    out_of_range: _OutOfRange = "deferred",
    stream: Optional[_Stream] = None,
) -> _A: ...
def check(array: Any, *, stream: Optional[_Stream] = None) -> None: ...
def attention(
    queries: _A,
    keys: Any,
    values: Any,
    *,
    causal: bool = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    scale: Optional[float] = None,
    soft_cap: float = 0.0,
    bias: Any = None,
    slopes: Any = None,
    sinks: Any = None,
    packed: Optional[Tuple[Any, Any, int]] = None,
    log_sum_exp: Any = None,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def attention_backward(
    queries: _A,
    keys: Any,
    values: Any,
    output: Any,
    log_sum_exp: Any,
    output_gradient: Any,
    *,
    causal: bool = False,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    scale: Optional[float] = None,
    packed: Optional[Tuple[Any, Any, int]] = None,
    deterministic: bool = False,
    out: Optional[Tuple[_A, _A, _A]] = None,
    stream: Optional[_Stream] = None,
) -> Tuple[_A, _A, _A]: ...
def attention_decode(
    queries: _A,
    keys: Any,
    values: Any,
    *,
    lengths: Any = None,
    table: Any = None,
    longest: Optional[int] = None,
    splits: Optional[int] = None,
    window: Optional[Tuple[Optional[int], Optional[int]]] = None,
    scale: Optional[float] = None,
    soft_cap: float = 0.0,
    sinks: Any = None,
    log_sum_exp: Any = None,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def rms_norm(
    x: _A,
    weight: Optional[Any] = None,
    *,
    eps: float = 1e-6,
    residual: Optional[Any] = None,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def layer_norm(
    x: _A,
    weight: Optional[Any] = None,
    bias: Optional[Any] = None,
    *,
    eps: float = 1e-5,
    residual: Optional[Any] = None,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def softmax(
    x: _A,
    *,
    scale: float = 1.0,
    mask: Optional[Any] = None,
    causal: Optional[int] = None,
    log: bool = False,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def reduce(
    x: _A,
    reduction: Literal["sum", "mean", "max", "min", "amax"],
    *,
    axis: Optional[Union[int, Sequence[int]]] = None,
    keepdims: bool = False,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def argmax(x: _A, *, out: Optional[_A] = None, stream: Optional[_Stream] = None) -> _A: ...
def rope(
    x: _A,
    positions: Any,
    cosines: Any,
    sines: Any,
    *,
    pairing: Literal["halves", "neighbours"] = "halves",
    backwards: bool = False,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def sample(
    logits: _A,
    counters: Any,
    *,
    seed: int = 0,
    temperature: float = 1.0,
    top_k: Optional[int] = None,
    top_p: float = 1.0,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def cast(
    x: _A, dtype: Optional[_Dtype] = None, *, out: Optional[_A] = None, stream: Optional[_Stream] = None
) -> _A: ...
def interleave_rows(first: _A, second: Any, *, out: Optional[_A] = None, stream: Optional[_Stream] = None) -> _A: ...
def quantize(
    x: Any,
    out: _A,
    scales: _A,
    *,
    by: Literal["rows", "blocks"] = "rows",
    powers_of_two: bool = False,
    stream: Optional[_Stream] = None,
) -> Tuple[_A, _A]: ...
def swiglu(source: _A, *, out: Optional[_A] = None, stream: Optional[_Stream] = None) -> _A: ...
def silu_mul(gates: _A, ups: Any, *, out: Optional[_A] = None, stream: Optional[_Stream] = None) -> _A: ...
def top_k(
    logits: _A,
    k: int,
    *,
    normalised: bool = True,
    choices: Optional[_A] = None,
    weights: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> Tuple[_A, _A]: ...
def moe(
    tokens: _A,
    router: Any,
    gates_and_ups: Any,
    down: Any,
    k: int,
    *,
    normalised: bool = True,
    precision: Optional[_Precision] = None,
    out: Optional[_A] = None,
    stream: Optional[_Stream] = None,
) -> _A: ...
def moe_rows(choices: _A, experts: int, *, stream: Optional[_Stream] = None) -> Tuple[_A, _A, _A]: ...
def plan_gemm(
    a: Any,
    b: Any,
    *,
    out: Optional[Any] = None,
    alpha: float = 1.0,
    beta: Optional[float] = None,
    bias: Optional[Any] = None,
    bias_along: Literal["columns", "rows"] = "columns",
    residual: Optional[Any] = None,
    activation: Optional[_Activation] = None,
    precision: Optional[_Precision] = None,
    dtype: Optional[_Dtype] = None,
    kernel: Optional[str] = None,
    stream: Optional[_Stream] = None,
) -> Plan: ...
def tune(
    a: Any,
    b: Any,
    *,
    out: Optional[Any] = None,
    alpha: float = 1.0,
    beta: Optional[float] = None,
    bias: Optional[Any] = None,
    bias_along: Literal["columns", "rows"] = "columns",
    residual: Optional[Any] = None,
    activation: Optional[_Activation] = None,
    precision: Optional[_Precision] = None,
    dtype: Optional[_Dtype] = None,
    path: Optional[Union[str, "os.PathLike[str]"]] = None,
    install: bool = True,
) -> Tuned: ...
def install_tuning(path: Union[str, "os.PathLike[str]"]) -> None: ...
def load(path: Union[str, "os.PathLike[str]"]) -> Module: ...

class Plan:
    @property
    def kernel(self) -> Optional[str]: ...
    def __call__(
        self,
        a: _A,
        b: Any,
        *,
        out: Optional[_A] = None,
        bias: Optional[Any] = None,
        residual: Optional[Any] = None,
        stream: Optional[_Stream] = None,
    ) -> _A: ...
    def explain(self) -> str: ...

class Tuned:
    @property
    def kernel(self) -> str: ...
    @property
    def estimated(self) -> str: ...
    @property
    def microseconds(self) -> float: ...
    @property
    def gain(self) -> float: ...
    @property
    def problem(self) -> str: ...

def report() -> str: ...

class Module:
    @property
    def kernels(self) -> List[str]: ...
    @property
    def refused(self) -> Dict[str, str]: ...
    def __getitem__(self, name: str) -> Kernel: ...
    def __getattr__(self, name: str) -> Kernel: ...

class Kernel:
    @property
    def __name__(self) -> str: ...
    @property
    def parameters(self) -> List[Tuple[str, str]]: ...
    @property
    def threads(self) -> int: ...
    @property
    def cluster(self) -> int: ...
    @property
    def shared_bytes(self) -> int: ...
    def __call__(self, *arguments: Any, grid: Union[int, Sequence[int]], stream: Optional[_Stream] = None) -> None: ...

class LayoutError(ValueError): ...

class Layout:
    @overload
    def __new__(cls, shape: Layout) -> Layout: ...
    @overload
    def __new__(cls, shape: Union[_IntTuple, str], stride: Optional[Union[_IntTuple, str]] = None) -> Layout: ...
    @property
    def shape(self) -> _IntTuple: ...
    @property
    def stride(self) -> _IntTuple: ...
    def size(self) -> int: ...
    def cosize(self) -> int: ...
    def depth(self) -> int: ...
    def rank(self) -> int: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Layout]: ...
    def __call__(self, *coordinate: _Coordinate) -> Any: ...
    def __getitem__(self, modes: Union[int, slice]) -> Layout: ...
    def __matmul__(self, right: _Tiler) -> Layout: ...
    def __rmatmul__(self, left: _Tiler) -> Layout: ...
    def __hash__(self) -> int: ...
    def table(self) -> str: ...
    def latex(self) -> str: ...
    def svg(
        self,
        *,
        color: Optional[Literal["index", "row", "column", "bank"]] = None,
        bits: int = 32,
        tiler: Optional[_Tiler] = None,
    ) -> str: ...
    def thread_values(self, tile: Optional[_IntTuple] = None, *, by_value: bool = False) -> str: ...
    def bank_conflicts(self, bits: int) -> str: ...
    def coalescing(self, bits: int) -> str: ...
    def bijective(self) -> str: ...
    def explain(self) -> str: ...
    def _repr_svg_(self) -> str: ...

def evaluate(expression: str) -> Any: ...
def call(function: str, *arguments: Any) -> Any: ...
def explain(expression: str) -> str: ...
def signatures() -> List[Tuple[str, str]]: ...
