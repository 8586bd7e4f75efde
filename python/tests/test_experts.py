"""Gradients of grouped products and of mixtures of experts, on GPU 0 if there is one, and else on the CPU."""

import math

import pytest

torch = pytest.importorskip("torch")

import cutlet  # noqa: E402
import cutlet.nn  # noqa: E402
import cutlet.torch  # noqa: E402

HAS_GPU = torch.cuda.is_available()
DEVICE = "cuda" if HAS_GPU else "cpu"
FLOATS = [torch.float32, torch.float16, torch.bfloat16]


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


def random(*shape, dtype=torch.float32, scale=1.0):
    return (scale * torch.randn(*shape)).to(dtype).to(DEVICE)


def integers(*shape, dtype=torch.float32):
    """Small integers, of which sums of products are exact."""
    return torch.randint(-4, 5, shape).to(dtype).to(DEVICE)


def ends_at(*rows):
    return torch.tensor(rows, dtype=torch.int32, device=DEVICE)


def gradients(function, *tensors):
    """The result and the gradients of all tensors, which are computed in the function's own type."""
    leaves = [it.clone().requires_grad_() for it in tensors]
    result = function(*leaves)
    result.backward(torch.linspace(-1, 1, result.numel(), device=DEVICE).reshape(result.shape).to(result.dtype))
    return [result.detach(), *(it.grad for it in leaves)]


def assert_near(found, expected, error):
    """Compares with what was computed in float64. Errors are a share of the largest element."""
    for nth, (one, other) in enumerate(zip(found, expected)):
        assert one.shape == other.shape, nth
        largest = other.abs().max().item()
        torch.testing.assert_close(one.double(), other.double(), rtol=error, atol=error * max(largest, 1e-3))


def plain_grouped_gemm(a, b, ends):
    starts = [0, *ends.tolist()]
    parts = [a[start:end] @ b[g] for g, (start, end) in enumerate(zip(starts, ends.tolist()))]
    return torch.cat([*parts, a.new_zeros((a.shape[0] - starts[-1], b.shape[2]))])


def plain_moe(tokens, router, gates_and_ups, down, k, normalised=True):
    """Each token with each of its experts, by functions of PyTorch alone."""
    flat = tokens.reshape(-1, tokens.shape[-1])
    logits = flat @ router.t()
    chosen, choices = torch.topk(logits, k)
    weights = torch.softmax(chosen, 1) if normalised else torch.softmax(logits, 1).gather(1, choices)
    sums = 0
    for nth in range(k):
        first, second = gates_and_ups[choices[:, nth]], down[choices[:, nth]]
        projected = torch.einsum("tiw,tw->ti", first, flat)
        inner = torch.nn.functional.silu(projected[:, 0::2]) * projected[:, 1::2]
        sums = sums + weights[:, nth : nth + 1] * torch.einsum("twi,ti->tw", second, inner)
    return sums.reshape(tokens.shape)


def layer_of(dtype, width=24, inner=16, experts=5, tokens=(3, 7)):
    """Operands of a layer whose logits are far apart, so that rounding changes no choice."""
    count = math.prod(tokens)
    logits = torch.stack([torch.randperm(experts) for _ in range(count)]).double()
    features = torch.randn(count, width).double()
    router = torch.linalg.lstsq(features, logits).solution.t() if count <= width else torch.randn(experts, width)
    return [
        features.reshape(*tokens, width).to(dtype).to(DEVICE),
        router.contiguous().to(dtype).to(DEVICE),
        random(experts, 2 * inner, width, dtype=dtype, scale=width**-0.5),
        random(experts, width, inner, dtype=dtype, scale=inner**-0.5),
    ]


@pytest.mark.parametrize("dtype", [*FLOATS, torch.float64])
@pytest.mark.parametrize("ends", [(10, 10, 33, 40), (0, 0, 0, 40), (5, 9, 20, 31), (0, 0, 0, 0)])
def test_products_of_groups_of_k(dtype, ends):
    a, b = integers(40, 16, dtype=dtype), integers(40, 24, dtype=dtype)
    starts = (0, *ends)
    expected = [a[s:e].double().t() @ b[s:e].double() for s, e in zip(starts, ends)]
    expected = torch.stack(expected).to(dtype)
    assert torch.equal(cutlet.grouped_gemm(a.t(), b, ends=ends_at(*ends)), expected)
    out = torch.ones(4, 24, 16, dtype=dtype, device=DEVICE).transpose(1, 2)
    assert cutlet.grouped_gemm(a.t(), b, ends=ends_at(*ends), beta=2.0, out=out) is out
    assert torch.equal(out, expected + 2)


def test_groups_of_k_that_are_refused():
    a, b = integers(16, 40), integers(40, 24)
    with pytest.raises(ValueError, match=r"ends\[1\] is 3, and an earlier group ends at 9"):
        cutlet.grouped_gemm(a, b, ends=ends_at(9, 3))
    with pytest.raises(ValueError, match=r"a is \(16, 39\), b is \(40, 24\), there are 2 ends"):
        cutlet.grouped_gemm(a[:, 1:], b, ends=ends_at(9, 40))
    with pytest.raises(ValueError, match=r"out is \(3, 16, 24\)"):
        cutlet.grouped_gemm(a, b, ends=ends_at(9, 40), out=integers(3, 16, 24))
    # Ends are cut off at the rows.
    assert torch.equal(cutlet.grouped_gemm(a, b, ends=ends_at(-7, 99)), torch.stack([0 * a @ b, a @ b]))


@pytest.mark.skipif(not HAS_GPU, reason="there is no GPU")
def test_groups_of_k_wait_and_no_graph_has_them():
    a, b, ends = integers(16, 40), integers(40, 24), ends_at(9, 40)
    cutlet.grouped_gemm(a, b, ends=ends)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        with pytest.raises(RuntimeError, match="a graph is captured, and the call waits for the ends"):
            cutlet.grouped_gemm(a, b, ends=ends)
    assert torch.equal(cutlet.grouped_gemm(a, b, ends=ends)[1], a[:, 9:] @ b[9:])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("ends", [(10, 10, 33, 40), (5, 9, 20, 31)])
@pytest.mark.parametrize("is_transposed", [False, True])
def test_gradients_of_grouped_products(dtype, ends, is_transposed):
    a, b, ends = integers(40, 16, dtype=dtype), integers(4, 16, 24, dtype=dtype), ends_at(*ends)
    if is_transposed:
        b = b.transpose(1, 2).contiguous()

    def product(function):
        return lambda a, b: function(a, b.transpose(1, 2) if is_transposed else b, ends)

    found = gradients(product(torch.ops.cutlet.grouped_gemm), a, b)
    expected = gradients(product(plain_grouped_gemm), a.double(), b.double())
    assert_near(found, expected, {torch.float32: 1e-5, torch.float16: 5e-3, torch.bfloat16: 3e-2}[dtype])
    # The gradient lies as the weights do, so that nothing copies it.
    leaf = b.clone().requires_grad_()
    result = product(torch.ops.cutlet.grouped_gemm)(a, leaf)
    (of_b,) = torch.autograd.grad(result, leaf, torch.ones_like(result))
    assert of_b.stride() == leaf.stride()


def test_gradients_of_a_grouped_product_are_those_of_differences():
    """As torch.autograd.gradcheck, in float32 and at steps that are exact there."""
    a, b, ends = integers(6, 3), integers(2, 3, 4), ends_at(2, 5)
    weights = integers(6, 4)

    def value(a, b):
        return (torch.ops.cutlet.grouped_gemm(a, b, ends) * weights).sum()

    leaves = a.clone().requires_grad_(), b.clone().requires_grad_()
    of_a, of_b = torch.autograd.grad(value(*leaves), leaves)
    for operand, gradient in ((a, of_a), (b, of_b)):
        for nth in range(operand.numel()):
            step = torch.zeros_like(operand).view(-1).index_fill_(0, torch.tensor([nth], device=DEVICE), 1.0)
            step = step.view_as(operand)
            other = (a + step, b) if operand is a else (a, b + step)
            difference = value(*other) - value(a, b)
            torch.testing.assert_close(gradient.view(-1)[nth], difference, rtol=1e-4, atol=1e-4)


def test_what_has_no_gradient_says_so():
    a, b = integers(9, 8).requires_grad_(), integers(2, 8, 6)
    with pytest.raises(RuntimeError, match="activation is silu, and a gradient is recorded"):
        torch.ops.cutlet.grouped_gemm(a, b, ends_at(4, 9), "silu")


@pytest.mark.parametrize("experts", [3, 4, 64])
def test_rows_of_experts(experts):
    choices = torch.randint(0, experts, (11, 2), dtype=torch.int32, device=DEVICE)
    token_of_row, row_of_choice, ends = cutlet.moe_rows(choices, experts)
    order = torch.argsort(choices.flatten(), stable=True)
    assert torch.equal(token_of_row, (order // 2).int())
    assert torch.equal(row_of_choice.flatten()[order], torch.arange(22, dtype=torch.int32, device=DEVICE))
    assert torch.equal(ends.long(), torch.bincount(choices.flatten(), minlength=experts).cumsum(0))


def test_choices_that_are_no_experts():
    choices = torch.tensor([[1, 7], [0, 1]], dtype=torch.int32, device=DEVICE)
    _, row_of_choice, ends = cutlet.moe_rows(choices, 2)
    assert row_of_choice.tolist() == [[1, -1], [0, 2]] and ends.tolist() == [1, 3]
    with pytest.raises(IndexError, match=r"indices\[1\]"):
        cutlet.check(choices)
    token_of_row, row_of_choice, ends = cutlet.moe_rows(choices[:0], 2)
    assert token_of_row.shape == (0,) and row_of_choice.shape == (0, 2) and ends.tolist() == [0, 0]
    with pytest.raises(TypeError, match="moe_rows: choices is int64; give int32"):
        cutlet.moe_rows(choices.long(), 2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_gradients_of_moe(dtype, normalised, k):
    operands = layer_of(dtype)
    found = gradients(lambda *it: torch.ops.cutlet.moe(*it, k, normalised), *operands)
    expected = gradients(lambda *it: plain_moe(*it, k, normalised), *(it.double() for it in operands))
    assert_near(found, expected, {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}[dtype])
    with torch.no_grad():
        inferred = torch.ops.cutlet.moe(*operands, k, normalised)
    assert_near([inferred], expected[:1], {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}[dtype])


def test_products_follow_the_precision_of_pytorch():
    operands = layer_of(torch.float32)
    expected = gradients(lambda *it: plain_moe(*it, 2), *(it.double() for it in operands))
    before = torch.get_float32_matmul_precision()
    try:
        torch.set_float32_matmul_precision("high")
        found = gradients(lambda *it: torch.ops.cutlet.moe(*it, 2), *operands)
        with torch.no_grad():
            inferred = torch.ops.cutlet.moe(*operands, 2)
    finally:
        torch.set_float32_matmul_precision(before)
    assert_near([inferred, *found], [expected[0], *expected], 1e-2)


def test_gradients_that_are_not_needed():
    operands = layer_of(torch.float32)
    expected = gradients(lambda *it: plain_moe(*it, 2), *operands)[1:]
    for needed in range(4):
        leaves = [it.clone().requires_grad_(nth == needed) for nth, it in enumerate(operands)]
        result = torch.ops.cutlet.moe(*leaves, 2)
        result.backward(torch.linspace(-1, 1, result.numel(), device=DEVICE).reshape(result.shape))
        assert [it.grad is not None for it in leaves] == [nth == needed for nth in range(4)]
        assert_near([leaves[needed].grad], [expected[needed]], 1e-4)


def test_a_layer_without_tokens():
    operands = layer_of(torch.float32)
    operands[0] = operands[0].new_empty((0, 24))
    result, *of_operands = gradients(lambda *it: torch.ops.cutlet.moe(*it, 2), *operands)
    assert result.shape == (0, 24) and all(not it.any() for it in of_operands)


def recorded(operands):
    outputs = torch.ops.cutlet.moe_recorded(*operands, 2)
    return (torch.randn_like(outputs[0]), *operands, *outputs[1:], True, [True, False, True, False])


OPERATIONS = {
    "grouped_gemm": lambda: (random(9, 8).requires_grad_(), random(2, 8, 6).requires_grad_(), ends_at(4, 9)),
    "grouped_gemm_gradient": lambda: (random(9, 8), random(9, 6), ends_at(4, 9), True),
    "moe": lambda: (*(it.requires_grad_() for it in layer_of(torch.float32)), 2),
    "moe_inference": lambda: (*layer_of(torch.float32), 2),
    "moe_recorded": lambda: (*(it.requires_grad_() for it in layer_of(torch.float32)), 2),
    "moe_gradient": lambda: recorded(layer_of(torch.float32)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_what_their_schemas_say(name):
    torch.library.opcheck(getattr(torch.ops.cutlet, name).default, OPERATIONS[name]())


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_layer_is_a_module(dtype):
    layer = cutlet.nn.MoE(24, 16, 5, 2, device=DEVICE, dtype=dtype)
    assert sorted(layer.state_dict()) == ["down", "gates_and_ups", "router"]
    assert all(it.abs().max() <= it.shape[-1] ** -0.5 and it.abs().max() > 0 for it in layer.parameters())
    tokens, router, gates_and_ups, down = layer_of(dtype)
    layer.load_state_dict({"router": router, "gates_and_ups": gates_and_ups, "down": down})
    expected = plain_moe(*(it.double() for it in (tokens, router, gates_and_ups, down)), 2)
    assert_near([layer(tokens)], [expected], {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 5e-2}[dtype])
    layer(tokens).float().square().mean().backward()
    assert all(it.grad.isfinite().all() and it.grad.any() for it in layer.parameters())
    with pytest.raises(ValueError, match="6 of 5 experts were asked for"):
        cutlet.nn.MoE(24, 16, 5, 6)


def test_weights_of_other_layers_are_loaded_as_the_docstring_says():
    layer = cutlet.nn.MoE(24, 16, 5, 2, device=DEVICE)
    gates, ups = random(5, 16, 24), random(5, 16, 24)
    with torch.no_grad():
        layer.gates_and_ups.copy_(torch.stack([gates, ups], 2).flatten(1, 2))
    assert torch.equal(layer.gates_and_ups[:, 0::2], gates) and torch.equal(layer.gates_and_ups[:, 1::2], ups)


def test_a_layer_learns():
    layer, target = cutlet.nn.MoE(8, 16, 4, 2, device=DEVICE), random(16, 8)
    tokens, optimiser = random(16, 8), torch.optim.Adam(layer.parameters(), 5e-2)
    losses = []
    for _ in range(12):
        optimiser.zero_grad()
        loss = (layer(tokens) - target).square().mean()
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0], losses


def test_a_layer_under_autocast():
    layer, tokens = cutlet.nn.MoE(24, 16, 5, 2, device=DEVICE), layer_of(torch.float32)[0]
    with torch.autocast(DEVICE, torch.bfloat16):
        result = layer(tokens)
    assert result.dtype == torch.bfloat16
    result.float().sum().backward()
    assert all(it.grad.dtype == torch.float32 for it in layer.parameters())


def test_a_layer_in_a_graph_of_the_compiler():
    """Without a break of the graph, with and without gradients."""
    layer, tokens = cutlet.nn.MoE(24, 16, 5, 2, device=DEVICE), layer_of(torch.float32)[0]
    compiled = torch.compile(lambda x: layer(x) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    for count in (21, 5):
        x = tokens.reshape(-1, 24)[:count].contiguous()
        layer.zero_grad()
        (layer(x) + 1).square().sum().backward()
        expected = [it.grad.clone() for it in layer.parameters()]
        layer.zero_grad()
        compiled(x).square().sum().backward()
        torch.testing.assert_close([it.grad for it in layer.parameters()], expected)
        with torch.no_grad():
            torch.testing.assert_close(compiled(x), layer(x) + 1)
