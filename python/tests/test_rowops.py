"""Norms, softmax, rotations, the largest elements, tokens, other types and quantisation, on NumPy's arrays."""

import numpy
import pytest

import cutlet


def rms_norm(x, weight, eps):
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + eps) * weight


def softmax(x):
    powers = numpy.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


@pytest.mark.parametrize("shape", [(7,), (3, 64), (2, 3, 5, 600), (4, 5000)])
def test_rms_norm(rng, shape):
    x, weight = rng.standard_normal(shape, "float32"), rng.random(shape[-1], "float32")
    expected = rms_norm(x.astype("float64"), weight, 1e-6)
    numpy.testing.assert_allclose(cutlet.rms_norm(x, weight), expected, rtol=1e-5, atol=1e-6)
    assert cutlet.rms_norm(x, weight, out=x) is x
    numpy.testing.assert_allclose(x, expected, rtol=1e-5, atol=1e-6)


def test_norms_of_heads_that_are_slices(rng):
    qkv = rng.standard_normal((5, 3, 4, 32), "float32")
    before = qkv.copy()
    cutlet.rms_norm(qkv[:, 1], out=qkv[:, 1])
    numpy.testing.assert_array_equal(qkv[:, ::2], before[:, ::2])
    numpy.testing.assert_allclose(qkv[:, 1], rms_norm(before[:, 1], 1, 1e-6), rtol=1e-5, atol=1e-6)


def test_layer_norm_with_a_residual(rng):
    x, residual = rng.standard_normal((2, 6, 100), "float32"), rng.standard_normal((6, 100), "float32")
    weight, bias = rng.random(100, "float32"), rng.random(100, "float32")
    sums = x[0] + residual
    found = cutlet.layer_norm(x[0], weight, bias, eps=1e-5, residual=residual)
    numpy.testing.assert_array_equal(residual, sums)
    normal = (sums - sums.mean(-1, keepdims=True)) / numpy.sqrt(sums.var(-1, keepdims=True) + 1e-5)
    numpy.testing.assert_allclose(found, normal * weight + bias, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="the weight is .*, and a row has 100 elements"):
        cutlet.layer_norm(x, weight[:99])


def test_softmax(rng):
    x = rng.standard_normal((2, 3, 4, 9), "float32")
    numpy.testing.assert_allclose(cutlet.softmax(x), softmax(x), rtol=1e-5, atol=1e-7)
    numpy.testing.assert_allclose(cutlet.softmax(x, log=True), numpy.log(softmax(x)), rtol=1e-5, atol=1e-6)
    mask = numpy.where(rng.random((4, 9)) < 0.3, -numpy.inf, 0).astype("float32")
    mask[:, 0] = 0
    found = cutlet.softmax(x, scale=0.5, mask=numpy.broadcast_to(mask, x.shape), causal=5)
    hidden = numpy.arange(9) > numpy.arange(4)[:, None] + 5
    expected = softmax(numpy.where(hidden, -numpy.inf, x * 0.5 + mask))
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)
    assert cutlet.softmax(x, out=x) is x


def test_rows_without_a_finite_number_have_no_probabilities():
    x = numpy.array([[-numpy.inf, -numpy.inf], [numpy.nan, 0]], "float32")
    found = cutlet.softmax(x)
    numpy.testing.assert_array_equal(found[0], [0, 0])
    assert numpy.isnan(found[1]).all()


def test_argmax(rng):
    x = rng.integers(0, 50, (3, 4, 700)).astype("float32")
    found = cutlet.argmax(x)
    assert found.dtype == numpy.int32
    numpy.testing.assert_array_equal(found, x.argmax(-1))
    assert cutlet.argmax(x[0, 0]).tolist() == [x[0, 0].argmax()]


def angles(positions, pairs):
    turns = numpy.outer(numpy.arange(positions), 10000.0 ** (-numpy.arange(pairs) / pairs))
    return numpy.cos(turns).astype("float32"), numpy.sin(turns).astype("float32")


@pytest.mark.parametrize("pairing", ["halves", "neighbours"])
def test_rope(rng, pairing):
    x = rng.standard_normal((5, 3, 16), "float32")
    cosines, sines = angles(40, 8)
    positions = numpy.array([7, 0, 39, 2, 2], "int32")
    of_heads = numpy.broadcast_to(positions[:, None], (5, 3))
    first, second = (x[..., :8], x[..., 8:]) if pairing == "halves" else (x[..., ::2], x[..., 1::2])
    cosine, sine = cosines[positions][:, None], sines[positions][:, None]
    rotated = [first * cosine - second * sine, second * cosine + first * sine]
    expected = numpy.concatenate(rotated, -1) if pairing == "halves" else numpy.stack(rotated, -1).reshape(x.shape)
    found = cutlet.rope(x, of_heads, cosines, sines, pairing=pairing)
    numpy.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert cutlet.rope(found, of_heads, cosines, sines, pairing=pairing, backwards=True, out=found) is found
    numpy.testing.assert_allclose(found, x, rtol=1e-5, atol=1e-5)
    assert numpy.isnan(cutlet.rope(x[0], numpy.array([40, 0, 1], "int32"), cosines, sines)[0]).all()


def test_wrong_rotations_are_refused(rng):
    x, positions = rng.standard_normal((5, 16), "float32"), numpy.zeros(5, "int32")
    cosines, sines = angles(4, 8)
    with pytest.raises(ValueError, match='pairing is "thirds"; give halves or neighbours'):
        cutlet.rope(x, positions, cosines, sines, pairing="thirds")
    with pytest.raises(ValueError, match="the cosines are 4×8 and the sines 3×8"):
        cutlet.rope(x, positions, cosines, sines[:3])
    with pytest.raises(TypeError, match="positions is int64"):
        cutlet.rope(x, positions.astype("int64"), cosines, sines)


def test_sample(rng):
    logits = rng.standard_normal((64, 300), "float32")
    counters = numpy.arange(64)
    tokens = cutlet.sample(logits, counters, seed=5, temperature=0.7, top_k=4)
    assert tokens.dtype == numpy.int32 and tokens.shape == (64,)
    drawn = numpy.take_along_axis(logits, tokens[:, None].astype("int64"), 1)
    assert ((logits > drawn).sum(-1) < 4).all()
    assert len({int(it) for it in (logits > drawn).sum(-1)}) > 1
    again = cutlet.sample(logits, counters.astype("uint64"), seed=5, temperature=0.7, top_k=4)
    numpy.testing.assert_array_equal(again, tokens)
    assert (cutlet.sample(logits, counters + 1, seed=5, temperature=0.7, top_k=4) != tokens).any()
    numpy.testing.assert_array_equal(cutlet.sample(logits, counters, temperature=0.0), logits.argmax(-1))
    with pytest.raises(TypeError, match="counters is int32; give int64 or uint64"):
        cutlet.sample(logits, counters.astype("int32"))
    with pytest.raises(ValueError, match="top_p is 0"):
        cutlet.sample(logits, counters, top_p=0.0)


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 1), (0, 2), (-1, -3)])
@pytest.mark.parametrize("reduction", ["sum", "mean", "max", "min", "amax"])
def test_reduce(rng, reduction, axis):
    x = rng.standard_normal((3, 70, 40), "float32")
    reduced = numpy.max if reduction == "amax" else getattr(numpy, reduction)
    magnitudes = abs(x) if reduction == "amax" else x
    for keepdims in [False, True]:
        found = cutlet.reduce(x, reduction, axis=axis, keepdims=keepdims)
        expected = reduced(magnitudes, axis=axis, keepdims=keepdims)
        assert found.shape == (expected.shape or (1,))
        numpy.testing.assert_allclose(found, expected.reshape(found.shape), rtol=1e-5, atol=1e-4)


def test_wrong_reductions_are_refused(rng):
    x = rng.standard_normal((3, 4), "float32")
    with pytest.raises(ValueError, match='reduction is "product"; give sum, mean, max, min or amax'):
        cutlet.reduce(x, "product")
    with pytest.raises(ValueError, match="x has 2 dimensions; give some of these"):
        cutlet.reduce(x, "sum", axis=2)
    with pytest.raises(ValueError, match="give different modes"):
        cutlet.reduce(x, "sum", axis=(0, -2))
    with pytest.raises(ValueError, match="give an x with elements"):
        cutlet.reduce(x[:0], "sum", axis=0)


def test_cast(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = 600 * rng.standard_normal((3, 5, 33), "float32")
    narrow = cutlet.cast(x, ml_dtypes.bfloat16)
    numpy.testing.assert_array_equal(narrow, x.astype(ml_dtypes.bfloat16))
    out = numpy.empty(x.shape, ml_dtypes.float8_e4m3fn)
    assert cutlet.cast(narrow, out=out) is out
    expected = narrow.astype("float32").clip(-448, 448).astype(out.dtype)
    numpy.testing.assert_array_equal(out.view("uint8"), expected.view("uint8"))
    numpy.testing.assert_array_equal(cutlet.cast(out, "float32"), out.astype("float32"))
    with pytest.raises(TypeError, match="x is float32 and out is float32; give two different ones"):
        cutlet.cast(x, "float32")
    with pytest.raises(TypeError, match="there is neither dtype nor out"):
        cutlet.cast(x)


@pytest.mark.parametrize("dtype", ["float64", "int32"])
def test_other_types_are_refused(array, dtype):
    with pytest.raises(TypeError, match=f"x is {dtype}; give float32, float16 or bfloat16"):
        cutlet.softmax(array(2, 3, dtype=dtype))


def test_quantize(rng):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = rng.standard_normal((3, 300), "float32")
    out, scales = numpy.empty(x.shape, ml_dtypes.float8_e4m3fn), numpy.empty((3, 3), "float32")
    cutlet.quantize(x, out, scales, by="blocks")
    for block in range(3):
        of_block = x[:, 128 * block :][:, :128]
        numpy.testing.assert_allclose(scales[:, block], abs(of_block).max(-1) / 448, rtol=1e-6)
        found = out[:, 128 * block :][:, :128].astype("float32") * scales[:, block : block + 1]
        numpy.testing.assert_allclose(found, of_block, rtol=0.07, atol=1e-4)
    with pytest.raises(ValueError, match='by is "columns"; give rows or blocks'):
        cutlet.quantize(x, out, scales, by="columns")
