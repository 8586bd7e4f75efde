"""`attention`, its gradients and `attention_decode` against the formula in float64, on NumPy's arrays and on PyTorch's."""

import ml_dtypes
import numpy
import pytest

import cutlet


def formula(q, k, v, *, visible=None, scale=None, bias=0.0, soft_cap=0.0):
    """(sequences, queries, heads, features) in float64, and the logarithms (sequences, queries, heads)."""
    q, k, v = (array.astype("float64") for array in (q, k, v))
    k, v = (numpy.repeat(array, q.shape[2] // array.shape[2], axis=2) for array in (k, v))
    scores = numpy.einsum("bqhd,bkhd->bhqk", q, k) * (scale or q.shape[3] ** -0.5)
    if soft_cap:
        scores = soft_cap * numpy.tanh(scores / soft_cap)
    scores = scores + bias
    if visible is not None:
        scores = numpy.where(visible, scores, -numpy.inf)
    largest = scores.max(axis=-1, keepdims=True)
    weights = numpy.exp(scores - largest)
    sums = weights.sum(axis=-1, keepdims=True)
    output = numpy.einsum("bhqk,bkhd->bqhd", weights / sums, v)
    return output, (largest + numpy.log(sums))[..., 0].transpose(0, 2, 1)


def arrays(queries, keys, heads, heads_of_keys, features, dtype):
    random = numpy.random.default_rng(queries * keys)
    shapes = [(2, queries, heads, features)] + [(2, keys, heads_of_keys, features)] * 2
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_causal_attention_of_shared_heads(dtype):
    q, k, v = arrays(30, 45, 4, 2, 64, dtype)
    visible = numpy.arange(45) <= numpy.arange(30)[:, None] + 15
    expected, logarithms = formula(q, k, v, visible=visible)
    sums = numpy.empty((2, 30, 4), "float32")
    found = cutlet.attention(q, k, v, causal=True, log_sum_exp=sums)
    assert found.dtype == q.dtype
    assert numpy.allclose(found.astype("float64"), expected, atol=2e-2)
    assert numpy.allclose(sums, logarithms, atol=1e-3)


def test_windows_biases_and_caps():
    q, k, v = arrays(40, 40, 2, 2, 72, "float16")
    distance = numpy.arange(40) - numpy.arange(40)[:, None]
    expected, _ = formula(q, k, v, visible=(distance >= -5) & (distance <= 3), scale=0.3)
    found = cutlet.attention(q, k, v, window=(5, 3), scale=0.3)
    assert numpy.allclose(found.astype("float64"), expected, atol=5e-3)
    bias = numpy.random.default_rng(1).standard_normal((2, 2, 40, 40)).astype("float32")
    slopes = numpy.array([0.5, 0.25], "float32")
    added = bias - slopes[:, None, None] * abs(distance)
    expected, _ = formula(q, k, v, bias=added, soft_cap=3.0)
    out = numpy.empty_like(q)
    assert cutlet.attention(q, k, v, bias=bias, slopes=slopes, soft_cap=3.0, out=out) is out
    assert numpy.allclose(out.astype("float64"), expected, atol=1e-2)


def test_parts_of_one_array_and_packed_sequences():
    qkv = numpy.random.default_rng(2).standard_normal((1, 30, 3, 2, 64)).astype("float16")
    q, k, v = (qkv[:, :, part] for part in range(3))
    ends = numpy.array([0, 10, 10, 30], "int32")
    found = cutlet.attention(q, k, v, packed=(ends, ends, 20)).astype("float64")
    for rows in (slice(0, 10), slice(10, 30)):
        expected, _ = formula(q[:, rows], k[:, rows], v[:, rows])
        assert numpy.allclose(found[:, rows], expected, atol=5e-3)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_decoding_against_a_cache_of_various_lengths(dtype):
    q, k, v = arrays(2, 150, 4, 2, 64, dtype)
    lengths = numpy.array([150, 70], "int32")
    for splits in (None, 1, 3):
        sums = numpy.full((2, 2, 4), numpy.nan, "float32")
        options = {"lengths": lengths, "splits": splits, "log_sum_exp": sums}
        found = cutlet.attention_decode(q, k, v, **options).astype("float64")
        for sequence, keys in enumerate(lengths):
            visible = numpy.arange(keys) <= numpy.arange(2)[:, None] + keys - 2
            of = slice(sequence, sequence + 1)
            expected, logarithms = formula(q[of], k[of, :keys], v[of, :keys], visible=visible)
            assert numpy.allclose(found[of], expected, atol=2e-2)
            assert numpy.allclose(sums[of], logarithms, atol=1e-3)


def test_decoding_in_pages():
    q, k, v = arrays(1, 48, 4, 2, 64, "float16")
    keys, values = (array.reshape(6, 16, 2, 64) for array in (k, v))
    table = numpy.array([[4, 0, 2], [5, 1, 3]], "int32")
    sinks = numpy.array([0.5, -1.0, 2.0, 0.0], "float32")
    out = numpy.empty_like(q)
    options = {"scale": 0.2, "soft_cap": 4.0, "out": out}
    assert cutlet.attention_decode(q, keys, values, table=table, sinks=sinks, longest=48, **options) is out
    k, v = (array[table].reshape(2, 48, 2, 64) for array in (keys, values))
    expected, logarithms = formula(q, k, v, scale=0.2, soft_cap=4.0)
    share = 1 / (1 + numpy.exp(sinks - logarithms))
    assert numpy.allclose(out.astype("float64"), expected * share[..., None], atol=5e-3)
    found = cutlet.attention_decode(q, keys, values, table=table, window=(9, 0)).astype("float64")
    expected, _ = formula(q, k[:, -10:], v[:, -10:])
    assert numpy.allclose(found, expected, atol=5e-3)


def test_wrong_arguments_of_decoding():
    q, k, v = arrays(1, 48, 4, 2, 64, "float16")
    with pytest.raises(TypeError, match="attention_decode: lengths"):
        cutlet.attention_decode(q, k, v, lengths=numpy.array([48, 48]))
    with pytest.raises(ValueError, match="the lengths are 3 numbers for 2 sequences"):
        cutlet.attention_decode(q, k, v, lengths=numpy.array([1, 2, 3], "int32"))
    with pytest.raises(ValueError, match="the table of pages is"):
        cutlet.attention_decode(q, k, v, table=numpy.zeros((3, 1), "int32"))


def test_wrong_arguments():
    q, k, v = arrays(5, 7, 4, 2, 64, "float16")
    with pytest.raises(ValueError, match="causal and window are given; give one"):
        cutlet.attention(q, k, v, causal=True, window=(1, 0))
    with pytest.raises(TypeError, match="float16 or bfloat16"):
        cutlet.attention(*(array.astype("float32") for array in (q, k, v)))
    with pytest.raises(ValueError, match="out is"):
        cutlet.attention(q, k, v, out=numpy.empty((2, 5, 4, 32), "float16"))
    with pytest.raises(ValueError, match="a number of heads that divides theirs"):
        cutlet.attention(q, k[:, :, :1].repeat(3, axis=2), v[:, :, :1].repeat(3, axis=2))


def test_torch_on_a_gpu():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU, or no PyTorch")
    q, k, v = (torch.randn(2, 300, heads, 128, dtype=torch.bfloat16, device="cuda") for heads in (8, 2, 2))
    found = cutlet.attention(q, k, v, causal=True)
    by_heads = (array.transpose(1, 2).float() for array in (q, k, v))
    expected = torch.nn.functional.scaled_dot_product_attention(*by_heads, is_causal=True, enable_gqa=True)
    assert torch.allclose(found.transpose(1, 2).float(), expected, atol=2e-2)


def gradients(q, k, v, output_gradient, *, visible, scale=None):
    """The gradients of (sequences, rows, heads, features) in float64. Heads may share keys."""
    shared = q.shape[2] // k.shape[2]
    q, k, v, g = (array.astype("float64") for array in (q, k, v, output_gradient))
    k, v = (numpy.repeat(array, shared, axis=2) for array in (k, v))
    scale = scale or q.shape[3] ** -0.5
    scores = numpy.where(visible, numpy.einsum("bqhd,bkhd->bhqk", q, k) * scale, -numpy.inf)
    weights = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    of_weights = numpy.einsum("bqhd,bkhd->bhqk", g, v)
    of_scores = weights * (of_weights - (weights * of_weights).sum(axis=-1, keepdims=True)) * scale
    of_shared = [
        numpy.einsum("bhqk,bqhd->bkhd", of_scores, q),
        numpy.einsum("bhqk,bqhd->bkhd", weights, g),
    ]
    of_keys = [it.reshape(*it.shape[:2], -1, shared, it.shape[3]).sum(axis=3) for it in of_shared]
    return [numpy.einsum("bhqk,bkhd->bqhd", of_scores, k), *of_keys]


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_gradients_of_shared_heads(dtype):
    q, k, v = arrays(30, 45, 4, 2, 64, dtype)
    visible = numpy.arange(45) <= numpy.arange(30)[:, None] + 15
    sums = numpy.empty((2, 30, 4), "float32")
    output = cutlet.attention(q, k, v, causal=True, scale=0.2, log_sum_exp=sums)
    output_gradient = numpy.random.default_rng(3).standard_normal(q.shape).astype(dtype)
    expected = gradients(q, k, v, output_gradient, visible=visible, scale=0.2)
    out = tuple(numpy.empty_like(array) for array in (q, k, v))
    given = (q, k, v, output, sums, output_gradient)
    assert all(a is b for a, b in zip(cutlet.attention_backward(*given, causal=True, scale=0.2, out=out), out))
    again = cutlet.attention_backward(*given, window=(None, 0), scale=0.2, deterministic=True)
    for found, same, exact in zip(out, again, expected):
        assert found.dtype == q.dtype
        assert numpy.allclose(found.astype("float64"), exact, rtol=2e-2, atol=5e-2)
        assert numpy.allclose(same.astype("float64"), exact, rtol=2e-2, atol=5e-2)


def test_gradients_of_packed_sequences():
    q, k, v = (array[:1] for array in arrays(30, 30, 2, 2, 64, "float16"))
    ends = numpy.array([0, 10, 10, 30], "int32")
    sums = numpy.empty((1, 30, 2), "float32")
    packed = (ends, ends, 20)
    output = cutlet.attention(q, k, v, packed=packed, log_sum_exp=sums)
    found = cutlet.attention_backward(q, k, v, output, sums, q, packed=packed)
    for rows in (slice(0, 10), slice(10, 30)):
        expected = gradients(*(array[:, rows] for array in (q, k, v, q)), visible=True)
        for array, exact in zip(found, expected):
            assert numpy.allclose(array[:, rows].astype("float64"), exact, rtol=1e-2, atol=1e-2)


def test_wrong_gradients():
    q, k, v = arrays(5, 7, 4, 2, 64, "float16")
    sums = numpy.zeros((2, 5, 4), "float32")
    with pytest.raises(TypeError, match="float32"):
        cutlet.attention_backward(q, k, v, q, sums.astype("float64"), q)
    with pytest.raises(ValueError, match=r"out\[1\] is"):
        cutlet.attention_backward(q, k, v, q, sums, q, out=(q.copy(), q.copy(), v.copy()))
    with pytest.raises(ValueError, match="the output's gradient has"):
        cutlet.attention_backward(q, k, v, q, sums, k)
