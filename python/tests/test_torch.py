"""Tensors of PyTorch: on GPU 0 if there is one, and else on the CPU, where graphs and streams are left out."""

import ctypes
import gc
import threading
import time

import pytest

torch = pytest.importorskip("torch")

import cutlet  # noqa: E402
import cutlet.nn  # noqa: E402
import cutlet.torch  # noqa: E402

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
on_gpu = pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")

FLOATS = [torch.float32, torch.float16, torch.bfloat16]
ACTIVATIONS = {
    None: lambda x: x,
    "relu": torch.nn.functional.relu,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "gelu_erf": torch.nn.functional.gelu,
    "silu": torch.nn.functional.silu,
}
TYPES = [(a, c) for a in FLOATS for c in FLOATS] + [
    (torch.float64, torch.float64),
    (torch.int8, torch.int32),
]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def integers(*shape, dtype=torch.float32):
    """Small integers, of which sums of products are exact."""
    return torch.randint(-4, 5, shape).to(dtype).to(DEVICE)


def exact(a, b, dtype):
    return (a.cpu().double() @ b.cpu().double()).to(dtype).to(DEVICE)


@pytest.mark.parametrize(("of_a", "of_c"), TYPES)
@pytest.mark.parametrize("shape", [(16, 24, 32), (33, 17, 65)])
def test_gemm(of_a, of_c, shape):
    m, n, k = shape
    a, b = integers(m, k, dtype=of_a), integers(k, n, dtype=of_a)
    c = cutlet.gemm(a, b, dtype=of_c)
    assert c.dtype == of_c and c.device == a.device
    assert torch.equal(c, exact(a, b, of_c))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("of_a", ["rows", "columns", "part"])
@pytest.mark.parametrize("of_b", ["rows", "columns", "part"])
def test_strides(dtype, of_a, of_b):
    def lying(rows, columns, how):
        if how == "part":
            return integers(rows + 3, columns + 5, dtype=dtype)[2:-1, 1:-4]
        return integers(rows, columns, dtype=dtype) if how == "rows" else integers(columns, rows, dtype=dtype).t()

    a, b = lying(24, 40, of_a), lying(40, 16, of_b)
    out = torch.zeros(16, 24, dtype=dtype, device=DEVICE).t()
    assert cutlet.gemm(a, b, out=out) is out
    assert torch.equal(out, exact(a, b, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_what_follows(dtype, activation):
    a, b = torch.randn(40, 32, device=DEVICE, dtype=dtype), torch.randn(48, 32, device=DEVICE, dtype=dtype).t() / 4
    bias, residual = torch.randn(48, device=DEVICE, dtype=dtype), torch.randn(40, 48, device=DEVICE, dtype=dtype)
    c = cutlet.gemm(a, b, bias=bias, residual=residual, activation=activation)
    x = a.double() @ b.double() + bias.double() + residual.double()
    expected = ACTIVATIONS[activation](x)
    error = 1e-3 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(c.double(), expected, rtol=error, atol=error)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
def test_batches_and_contractions(dtype):
    q, k = integers(2, 6, 3, 8, dtype=dtype), integers(2, 7, 3, 8, dtype=dtype)
    expected = torch.einsum("bshd,bthd->bhst", q.double(), k.double()).to(dtype)
    assert torch.equal(cutlet.contract("bshd,bthd->bhst", q, k), expected)
    a, b = integers(3, 6, 8, dtype=dtype), integers(3, 8, 5, dtype=dtype)
    assert torch.equal(cutlet.gemm_batched(a, b), torch.bmm(a.double(), b.double()).to(dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("of_indices", [torch.int32, torch.int64])
def test_rows(dtype, of_indices):
    table, source = integers(50, 24, dtype=dtype), integers(30, 24, dtype=dtype)
    indices = torch.randint(0, 50, (30,), device=DEVICE, dtype=of_indices)
    assert torch.equal(cutlet.gather(table, indices), table[indices.long()])
    expected = table.double().index_add(0, indices.long(), source.double()).to(dtype)
    for ordered in (False, True):
        sums = cutlet.scatter_add(source, indices, table.clone(), ordered=ordered)
        assert torch.equal(sums, expected)
    bags = cutlet.embedding_bag(table, indices.reshape(6, 5))
    assert torch.equal(bags, table[indices.long()].reshape(6, 5, 24).double().sum(1).to(dtype))
    assert torch.equal(cutlet.permute(source, (1, 0)), source.t())
    with pytest.raises(IndexError, match=r"indices\[3\] is 50, the table has 50 rows"):
        bad = indices.clone().index_fill_(0, torch.tensor([3], device=DEVICE), 50)
        cutlet.gather(table, bad, out_of_range="checked")


@pytest.mark.parametrize("dtype", FLOATS)
def test_groups(dtype):
    a, b = integers(40, 16, dtype=dtype), integers(4, 16, 24, dtype=dtype)
    ends = torch.tensor([10, 10, 33, 40], dtype=torch.int32, device=DEVICE)
    starts = [0, 10, 10, 33]
    expected = [exact(a[s:e], b[g], dtype) for g, (s, e) in enumerate(zip(starts, ends.tolist()))]
    assert torch.equal(cutlet.grouped_gemm(a, b, ends=ends), torch.cat(expected))


@pytest.mark.parametrize("dtype", FLOATS)
def test_routers_and_gates(dtype):
    # No two logits of a token are the same.
    logits = torch.stack([torch.randperm(64) for _ in range(20)]).to(DEVICE).to(dtype) / 16
    choices, weights = cutlet.top_k(logits, 6)
    expected = torch.topk(logits.double(), 6)
    assert torch.equal(choices, expected.indices.int())
    torch.testing.assert_close(weights, torch.softmax(expected.values, -1).float(), rtol=1e-4, atol=1e-5)
    source = torch.randn(3, 5, 48, device=DEVICE, dtype=dtype)
    gates, ups = source[..., 0::2].contiguous(), source[..., 1::2].contiguous()
    gated = torch.nn.functional.silu(gates.double()) * ups.double()
    error = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(cutlet.swiglu(source).double(), gated, rtol=error, atol=error)
    torch.testing.assert_close(cutlet.silu_mul(gates, ups).double(), gated, rtol=error, atol=error)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.bool, torch.complex64])
def test_moves_of_any_type(dtype):
    table, source = integers(50, 24).to(dtype), integers(30, 24).to(dtype)
    indices = torch.randperm(50, device=DEVICE)[:30]
    expected = table.clone()
    expected[indices] = source
    assert torch.equal(cutlet.scatter(source, indices, table.clone()), expected)
    assert torch.equal(cutlet.gather(table, indices), table[indices])
    volume = table.reshape(5, 10, 24)[:, ::2]
    assert torch.equal(cutlet.permute(volume, (2, 0, 1)), volume.permute(2, 0, 1))


@pytest.mark.parametrize("dtype", FLOATS)
def test_moe(dtype):
    tokens, router = torch.randn(12, 32, device=DEVICE, dtype=dtype), torch.randn(4, 32, device=DEVICE, dtype=dtype)
    first = torch.randn(4, 48, 32, device=DEVICE, dtype=dtype) / 4
    down = torch.randn(4, 32, 24, device=DEVICE, dtype=dtype) / 4
    result = cutlet.moe(tokens, router, first, down, 2)
    logits, choices = torch.topk(tokens.double() @ router.double().t(), 2)
    weights, expected = torch.softmax(logits, -1), torch.zeros_like(tokens, dtype=torch.float64)
    for token in range(12):
        for weight, expert in zip(weights[token], choices[token]):
            x = first[expert].double() @ tokens[token].double()
            inner = torch.nn.functional.silu(x[0::2]) * x[1::2]
            expected[token] += weight * (down[expert].double() @ inner)
    error = 1e-3 if dtype == torch.float32 else 5e-2
    torch.testing.assert_close(result.double(), expected, rtol=error, atol=error)


def test_a_tensor_whose_gradient_is_recorded_is_read():
    a = integers(4, 6).requires_grad_()
    assert torch.equal(cutlet.gemm(a, integers(6, 5).fill_(1)), a.detach().sum(1, keepdim=True).expand(4, 5))


@on_gpu
def test_side_streams():
    a, b = torch.randn(512, 512, device=DEVICE), torch.randn(512, 512, device=DEVICE)
    expected = cutlet.gemm(a, b)
    stream = torch.cuda.Stream()
    for _ in range(20):
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            torch.cuda._sleep(1_000_000)
            late = a.clone()
            c = cutlet.gemm(late, b)
        assert cutlet.gemm(a, b, stream=stream).shape == (512, 512)
        torch.cuda.current_stream().wait_stream(stream)
        assert torch.equal(c, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_eight_bit_floats(dtype):
    a, b = (torch.randn(lines, 300, device=DEVICE).to(torch.float8_e4m3fn) for lines in (70, 136))
    expected = a.float() @ b.float().t()
    c = cutlet.gemm(a, b.t(), dtype=dtype)
    assert c.dtype == dtype
    torch.testing.assert_close(c.float(), expected, rtol=1e-2, atol=2e-2)
    scale_a, scale_b = torch.rand(3, 70, device=DEVICE).t(), torch.rand(2, 3, device=DEVICE).t()
    of_a = scale_a.repeat_interleave(128, 1)[:, :300]
    of_b = scale_b.repeat_interleave(128, 0).repeat_interleave(128, 1)[:300, :136]
    c = cutlet.gemm(a, b.t(), scale_a=scale_a, scale_b=scale_b, dtype=dtype)
    expected = (a.float() * of_a) @ (b.float().t() * of_b)
    torch.testing.assert_close(c.float(), expected, rtol=1e-2, atol=2e-2)


@on_gpu
def test_cuda_graphs():
    a, b = integers(64, 32), integers(32, 48)
    c, table = torch.zeros(64, 48, device=DEVICE), integers(9, 32)
    indices = torch.zeros(64, dtype=torch.int64, device=DEVICE)
    cutlet.gather(table, indices, out=a, out_of_range="clamp")
    cutlet.gemm(a, b, out=c)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        cutlet.gather(table, indices, out=a, out_of_range="clamp")
        cutlet.gemm(a, b, out=c)
        made = cutlet.gemm(a, b)
        with pytest.raises(RuntimeError, match="out_of_range"):
            cutlet.gather(table, indices, out_of_range="checked")
    indices.copy_(torch.arange(64) % 9)
    graph.replay()
    torch.cuda.synchronize()
    expected = exact(table[indices], b, torch.float32)
    assert torch.equal(c, expected) and torch.equal(made, expected)


@on_gpu
def test_tensors_on_several_devices():
    with pytest.raises(ValueError, match="b is on the CPU, and a is on GPU 0; move one of them"):
        cutlet.gemm(integers(4, 6), torch.ones(6, 5))
    if torch.cuda.device_count() > 1:
        a = torch.ones(4, 6, device="cuda:1")
        assert torch.equal(cutlet.gemm(a, a.t()), a @ a.t())
        assert torch.cuda.current_device() == 0 and torch.ones(1, device="cuda").device.index == 0


class Described:
    """A tensor that tells its address alone."""

    def __init__(self, tensor, address=None):
        self.tensor = tensor
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape),
            "typestr": "<f4",
            "data": (tensor.data_ptr() if address is None else address, False),
            "version": 3,
            "stream": 1,
        }


@on_gpu
def test_the_driver_knows_where_an_address_is():
    a, out = integers(4, 6), torch.zeros(6, 4, device=DEVICE)
    torch.cuda.synchronize()
    cutlet.permute(Described(a), out=Described(out))
    assert torch.equal(out, a.t())
    for of_host in (a.cpu(), a.cpu().pin_memory()):
        with pytest.raises(ValueError, match="source has `__cuda_array_interface__`, and its address 0x.* is no memory"):
            cutlet.permute(Described(of_host), out=out)
    if torch.cuda.device_count() > 1:
        elsewhere = torch.ones(4, 6, device="cuda:1")
        with pytest.raises(ValueError, match="out is on GPU 0, and source is on GPU 1"):
            cutlet.permute(Described(elsewhere), out=out)


@on_gpu
def test_a_stream_of_another_gpu():
    a, b = integers(4, 6), integers(6, 5)
    if torch.cuda.device_count() < 2:
        pytest.skip("there is one GPU")
    stream = torch.cuda.Stream(device=1)
    with pytest.raises(ValueError, match="stream is of GPU 1, and a is on GPU 0; give a stream of GPU 0"):
        cutlet.gemm(a, b, stream=stream)
    with pytest.raises(ValueError, match="the stream 0x.* is of GPU 1, and the arrays are on GPU 0"):
        cutlet.gemm(a, b, stream=stream.cuda_stream)


def made_stream(driver):
    stream = ctypes.c_void_p()
    assert driver.cuStreamCreate(ctypes.byref(stream), 1) == 0
    return stream


@on_gpu
def test_a_handle_that_a_new_stream_has():
    """What the old stream has not reported is no error of the new one."""
    driver = ctypes.CDLL("libcuda.so.1")
    table, bad = integers(4, 8), torch.tensor([9], device=DEVICE)
    rows = torch.empty(1, 8, device=DEVICE)
    torch.cuda.synchronize()
    seen, again = set(), 0
    for _ in range(64):
        stream = made_stream(driver)
        again += stream.value in seen
        seen.add(stream.value)
        cutlet.check(table, stream=stream.value)
        cutlet.gather(table, bad, out=rows, stream=stream.value)
        assert driver.cuStreamSynchronize(stream) == 0
        assert driver.cuStreamDestroy_v2(stream) == 0
    if again == 0:
        pytest.skip("the driver gave no handle twice")


@on_gpu
def test_graphs_of_one_stream_share_no_memory():
    """Two mixtures of experts of the same extents, captured in one stream, and replayed at the same time."""
    weights = integers(8, 64) / 4, integers(8, 64, 64) / 16, integers(8, 64, 32) / 16
    tokens = [torch.randn(512, 64, device=DEVICE) for _ in range(2)]
    expected = [cutlet.moe(it, *weights, 2) for it in tokens]
    results = [torch.zeros_like(it) for it in tokens]
    graphs, stream = [torch.cuda.CUDAGraph() for _ in tokens], torch.cuda.Stream()
    for graph, source, result in zip(graphs, tokens, results):
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(8):
                cutlet.moe(source, *weights, 2, out=result)
    streams = [torch.cuda.Stream() for _ in graphs]
    torch.cuda.synchronize()
    for _ in range(50):
        for graph, it in zip(graphs, streams):
            with torch.cuda.stream(it):
                graph.replay()
        torch.cuda.synchronize()
        for result, want in zip(results, expected):
            # A graph's products may be of other kernels.
            torch.testing.assert_close(result, want, rtol=1e-3, atol=1e-3)
            result.zero_()
        torch.cuda.synchronize()


@on_gpu
def test_memory_of_graphs_is_freed_with_them():
    weights = integers(8, 64) / 4, integers(8, 64, 64) / 16, integers(8, 64, 32) / 16
    tokens = torch.randn(1 << 16, 64, device=DEVICE)
    result, stream = torch.zeros_like(tokens), torch.cuda.Stream()

    def capture():
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            cutlet.moe(tokens, *weights, 2, out=result)
        graph.replay()
        torch.cuda.synchronize()

    def free():
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.synchronize()
        time.sleep(0.1)
        return torch.cuda.mem_get_info()[0]

    cutlet.moe(tokens, *weights, 2, out=result)
    for _ in range(4):
        capture()
    before = free()
    for _ in range(40):
        capture()
    # A graph has at least 1 MiB of rows.
    assert before - free() < 16 << 20


@on_gpu
def test_threads_run_while_a_call_waits_for_another_ones():
    """`check` waits for work with what the stream keeps. A call that needs it waits without the interpreter."""
    table, indices = integers(9, 8), torch.tensor([1, 2], device=DEVICE)
    rows = torch.empty(2, 8, device=DEVICE)
    cutlet.gather(table, indices, out=rows, out_of_range="clamp")
    torch.cuda.synchronize()
    torch.cuda._sleep(2_000_000_000)
    threads = [
        threading.Thread(target=cutlet.check, args=(table,)),
        threading.Thread(target=cutlet.gather, args=(table, indices), kwargs={"out": rows, "out_of_range": "clamp"}),
    ]
    longest, last = 0, time.monotonic()
    for thread in threads:
        thread.start()
        time.sleep(0.05)
    while threads[0].is_alive():
        time.sleep(0.001)
        now = time.monotonic()
        longest, last = max(longest, now - last), now
    for thread in threads:
        thread.join()
    assert longest < 0.3


@on_gpu
def test_garbage_while_work_is_queued():
    expected = None
    for _ in range(50):
        a, b = torch.full((256, 256), 2.0, device=DEVICE), torch.full((256, 256), 3.0, device=DEVICE)
        torch.cuda._sleep(100_000)
        c = cutlet.gemm(a, b)
        del a, b
        gc.collect()
        torch.full((256, 256), 9.0, device=DEVICE)
        expected = c if expected is None else expected
        assert torch.equal(c, expected)


@on_gpu
def test_memory_does_not_grow():
    a, b = torch.randn(64, 64, device=DEVICE), torch.randn(64, 64, device=DEVICE)
    for _ in range(100):
        cutlet.gemm(a, b)
    torch.cuda.synchronize()
    before = torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()
    for _ in range(10_000):
        cutlet.gemm(a, b)
    torch.cuda.synchronize()
    assert (torch.cuda.mem_get_info()[0], torch.cuda.memory_allocated()) == before


def test_threads():
    a, b = integers(32, 16), integers(16, 32)
    expected, wrong = exact(a, b, torch.float32), []

    def work():
        for _ in range(20):
            if not torch.equal(cutlet.gemm(a, b), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


OPERATIONS = {
    "linear": lambda: (integers(3, 4, 8), integers(6, 8), integers(6)),
    "swiglu": lambda: (integers(3, 8),),
    "embedding": lambda: (integers(9, 8), torch.tensor([[1, 2, 8]], device=DEVICE)),
    "grouped_gemm": lambda: (integers(9, 8), integers(2, 8, 6), torch.tensor([4, 9], dtype=torch.int32, device=DEVICE)),
    "moe": lambda: (integers(5, 8), integers(4, 8), integers(4, 6, 8), integers(4, 8, 3), 2),
    "attention": lambda: rows_of_heads(6, 6, 2, 2),
}


def rows_of_heads(queries, keys, heads, heads_of_keys):
    """Queries, keys and values of two sequences."""
    shapes = [(2, queries, heads, 64)] + [(2, keys, heads_of_keys, 64)] * 2
    return tuple(torch.randn(*shape, device=DEVICE, dtype=torch.bfloat16) for shape in shapes)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_what_their_schemas_say(name):
    torch.library.opcheck(getattr(torch.ops.cutlet, name).default, OPERATIONS[name]())


def gradients(function, *tensors):
    leaves = [it.clone().requires_grad_() for it in tensors]
    result = function(*leaves)
    result.backward(torch.linspace(-1, 1, result.numel(), device=DEVICE).reshape(result.shape))
    return [result.detach(), *(it.grad for it in leaves)]


def test_gradients_of_attention():
    rows = rows_of_heads(9, 13, 4, 2)
    visible = torch.ones(9, 13, device=DEVICE, dtype=torch.bool).tril(13 - 9)

    def exact(*rows):
        q, k, v = (it.double().transpose(1, 2) for it in rows)
        k, v = (it.repeat_interleave(2, 1) for it in (k, v))
        output = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return output.transpose(1, 2).to(torch.bfloat16)

    found = gradients(lambda *rows: torch.ops.cutlet.attention(*rows, causal=True), *rows)
    torch.testing.assert_close(found, gradients(exact, *rows), rtol=3e-2, atol=3e-2)
    with torch.no_grad():
        torch.testing.assert_close(torch.ops.cutlet.attention(*rows, True), found[0], rtol=0, atol=0)


def test_gradients():
    x, weight, bias = (torch.randn(*shape, device=DEVICE) for shape in ((3, 4, 8), (6, 8), (6,)))
    torch.testing.assert_close(
        gradients(torch.ops.cutlet.linear, x, weight, bias),
        gradients(torch.nn.functional.linear, x, weight, bias),
        rtol=1e-4,
        atol=1e-4,
    )
    gated = lambda x: torch.nn.functional.silu(x[..., 0::2]) * x[..., 1::2]  # noqa: E731
    torch.testing.assert_close(gradients(torch.ops.cutlet.swiglu, x), gradients(gated, x), rtol=1e-4, atol=1e-4)
    indices = torch.tensor([[1, 2], [2, 5]], device=DEVICE)
    torch.testing.assert_close(
        gradients(lambda table: torch.ops.cutlet.embedding(table, indices), weight),
        gradients(lambda table: torch.nn.functional.embedding(indices, table), weight),
    )


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_linear_is_a_drop_in(activation):
    layer = cutlet.nn.Linear(8, 6, device=DEVICE, activation=activation)
    plain = torch.nn.Linear(8, 6, device=DEVICE)
    plain.load_state_dict(layer.state_dict())
    x = torch.randn(3, 5, 8, device=DEVICE)
    expected = ACTIVATIONS[activation](plain(x))
    torch.testing.assert_close(layer(x), expected, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(layer(x), expected, rtol=2e-3, atol=2e-3)


def test_autocast():
    layer, x = cutlet.nn.Linear(8, 6, device=DEVICE), torch.randn(5, 8, device=DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        y = layer(x)
    assert y.dtype == torch.bfloat16
    torch.testing.assert_close(y.float(), torch.nn.functional.linear(x, layer.weight, layer.bias), rtol=5e-2, atol=5e-2)


def test_replace():
    model = torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 4)).to(DEVICE)
    x = torch.randn(5, 8, device=DEVICE)
    expected, parameters = model(x), list(model.parameters())
    assert cutlet.nn.replace(model) is model
    assert [type(it) for it in model] == [cutlet.nn.Linear, torch.nn.ReLU, cutlet.nn.Linear]
    assert all(one is other for one, other in zip(parameters, model.parameters()))
    torch.testing.assert_close(model(x), expected, rtol=1e-4, atol=1e-4)


@on_gpu
def test_compilation_with_dynamic_shapes():
    layer = cutlet.nn.Linear(32, 48, device=DEVICE)
    compiled = torch.compile(lambda x: layer(x).relu() + 1, dynamic=True, fullgraph=True)
    for rows in (3, 7, 64):
        x = torch.randn(rows, 32, device=DEVICE)
        torch.testing.assert_close(compiled(x), layer(x).relu() + 1)


@on_gpu
def test_export():
    layer = cutlet.nn.Linear(32, 48, device=DEVICE)
    x = torch.randn(5, 32, device=DEVICE)
    exported = torch.export.export(layer, (x,), dynamic_shapes=({0: torch.export.Dim("rows")},))
    torch.testing.assert_close(exported.module()(x[:3]), layer(x[:3]))
