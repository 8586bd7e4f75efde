"""Rows of tables on the CPU backend, against NumPy."""

import numpy
import pytest

import cutlet

ml_dtypes = pytest.importorskip("ml_dtypes")

BF16 = ml_dtypes.bfloat16
ANY_TYPE = ["bool", "int8", "uint16", "float16", "float32", "int64", "float64", "complex64", BF16]


@pytest.mark.parametrize("dtype", ANY_TYPE)
@pytest.mark.parametrize("of_indices", ["int32", "int64"])
def test_gather_of_any_type(array, dtype, of_indices):
    table, indices = array(7, 5, dtype=dtype), numpy.array([6, 0, 6, 3], of_indices)
    rows = cutlet.gather(table, indices)
    assert rows.dtype == table.dtype
    numpy.testing.assert_array_equal(rows, table[indices])


def test_indices_of_any_shape(array):
    table, indices = array(7, 5), numpy.array([[6, 0, 1], [3, 3, 2]])
    numpy.testing.assert_array_equal(cutlet.gather(table, indices), table[indices])
    out = numpy.full((2, 3, 8), 7, "float32")
    cutlet.gather(table, indices, out=out[:, :, :5])
    numpy.testing.assert_array_equal(out[:, :, :5], table[indices])
    numpy.testing.assert_array_equal(out[:, :, 5:], numpy.full((2, 3, 3), 7))


def test_a_bad_index_of_a_checked_call_is_an_error(array):
    table = array(7, 5)
    with pytest.raises(IndexError, match=r"gather: indices\[1\] is 7, the table has 7 rows"):
        cutlet.gather(table, numpy.array([0, 7]), out_of_range="checked")
    with pytest.raises(IndexError, match=r"indices\[0\] is -1"):
        cutlet.gather(table, numpy.array([-1, 7], "int32"), out_of_range="checked")


def test_policies(array):
    table, indices = array(7, 5), numpy.array([2, 9, -3])
    clamped = cutlet.gather(table, indices, out_of_range="clamp")
    numpy.testing.assert_array_equal(clamped, table[[2, 6, 0]])
    kept = numpy.full((3, 5), 8, "float32")
    cutlet.gather(table, indices, out=kept, out_of_range="skip")
    numpy.testing.assert_array_equal(kept, [table[2], [8] * 5, [8] * 5])
    with pytest.raises(ValueError, match='out_of_range is "wrap"; give deferred, checked, clamp or skip'):
        cutlet.gather(table, indices, out_of_range="wrap")


def test_a_deferred_error_is_reported_by_check(array):
    table = array(7, 5)
    rows = cutlet.gather(table, numpy.array([2, 9, 1]))
    numpy.testing.assert_array_equal(rows, [table[2], [0] * 5, table[1]])
    with pytest.raises(IndexError, match=r"gather: indices\[1\] is not a row"):
        cutlet.check(rows)
    cutlet.check(rows)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_scatter(array, dtype):
    source, table = array(3, 5, dtype=dtype), array(7, 5, dtype=dtype)
    expected = table.copy()
    expected[[4, 0, 6]] = source
    assert cutlet.scatter(source, numpy.array([4, 0, 6]), table) is table
    numpy.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", BF16])
@pytest.mark.parametrize("ordered", [False, True])
def test_scatter_add(array, dtype, ordered):
    source, table = array(6, 5, dtype=dtype), array(4, 5, dtype=dtype)
    indices = numpy.array([1, 1, 3, 0, 1, 3])
    expected = table.astype("float64")
    numpy.add.at(expected, indices, source.astype("float64"))
    cutlet.scatter_add(source, indices, table, ordered=ordered)
    numpy.testing.assert_array_equal(table.astype("float64"), expected)


def test_refusals_of_scatter(array):
    table = array(4, 5)
    with pytest.raises(ValueError, match=r"source is \(3, 5\); give \(2, 5\)"):
        cutlet.scatter_add(array(3, 5), numpy.array([1, 2]), table)
    with pytest.raises(TypeError, match="indices is float32; give int32 or int64"):
        cutlet.scatter(array(2, 5), array(2), table)
    with pytest.raises(TypeError, match="source is int32; give float32, float16 or bfloat16"):
        cutlet.scatter_add(array(2, 5, dtype="int32"), numpy.array([1, 2]), array(4, 5, dtype="int32"))
    with pytest.raises(IndexError, match=r"indices\[1\] is 4"):
        cutlet.scatter_add(array(2, 5), numpy.array([1, 4]), table, out_of_range="checked")
    with pytest.raises(ValueError, match="indices is .* with strides"):
        cutlet.gather(table, numpy.arange(4)[::2])


@pytest.mark.parametrize("pooling", ["sum", "mean", "max"])
def test_embedding_bag(array, pooling):
    table, indices = array(7, 5), numpy.array([2, 0, 2, 1])
    offsets = numpy.array([0, 3, 3, 4])
    pool = {"sum": numpy.sum, "mean": numpy.mean, "max": numpy.max}[pooling]
    expected = [pool(table[[2, 0, 2]], axis=0), numpy.zeros(5), table[1]]
    bags = cutlet.embedding_bag(table, indices, offsets=offsets, pooling=pooling)
    numpy.testing.assert_allclose(bags, expected, rtol=1e-6)
    of_two = cutlet.embedding_bag(table, indices.reshape(2, 2), pooling=pooling)
    numpy.testing.assert_allclose(of_two, [pool(table[[2, 0]], axis=0), pool(table[[2, 1]], axis=0)], rtol=1e-6)


def test_weights_of_an_embedding_bag(array):
    table, indices = array(7, 5), numpy.array([[2, 0], [6, 6]])
    weights = array(2, 2)
    expected = (table[indices] * weights[:, :, None]).sum(axis=1)
    numpy.testing.assert_array_equal(cutlet.embedding_bag(table, indices, weights=weights), expected)
    with pytest.raises(ValueError, match='weights were given, and pooling is "max"; give "sum"'):
        cutlet.embedding_bag(table, indices, weights=weights, pooling="max")
    with pytest.raises(ValueError, match=r"indices is \(4,\); give \(bags, indices of each\)"):
        cutlet.embedding_bag(table, indices.reshape(4))


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex64"])
@pytest.mark.parametrize("axes", [None, (0, 1, 2), (2, 0, 1), (-1, 1, 0)])
def test_permute(array, dtype, axes):
    source = array(3, 4, 5, dtype=dtype)
    numpy.testing.assert_array_equal(cutlet.permute(source, axes), source.transpose(axes))


def test_permute_into_strides(array):
    source, out = array(6, 4)[::2], numpy.zeros((8, 3), "float32")
    cutlet.permute(source, out=out[::2])
    numpy.testing.assert_array_equal(out[::2], source.T)
    numpy.testing.assert_array_equal(out[1::2], numpy.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"axes is \[0, 0\], and source has 2 dimensions"):
        cutlet.permute(source, (0, 0))
    with pytest.raises(ValueError, match="source has 9 dimensions; give at most 8"):
        cutlet.permute(source.reshape((1,) * 7 + (3, 4)))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_interleave_rows(array, dtype):
    gates, ups = array(3, 4, 5, dtype=dtype), array(5, 4, 3, dtype=dtype).T
    found = cutlet.interleave_rows(gates, ups)
    numpy.testing.assert_array_equal(found[::2], gates)
    numpy.testing.assert_array_equal(found[1::2], ups)
    with pytest.raises(ValueError, match="second is"):
        cutlet.interleave_rows(gates, ups[:2])


def test_swiglu(array):
    source = array(2, 3, 8) / 2
    gates, ups = source[..., 0::2], source[..., 1::2]
    expected = gates / (1 + numpy.exp(-gates)) * ups
    numpy.testing.assert_allclose(cutlet.swiglu(source), expected, rtol=1e-5, atol=1e-6)
    apart = cutlet.silu_mul(gates.copy(), ups.copy())
    numpy.testing.assert_allclose(apart, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match=r"source is \(2, 3\); give a last dimension"):
        cutlet.swiglu(array(2, 3))


@pytest.mark.parametrize("normalised", [True, False])
def test_top_k(rng, normalised):
    logits = rng.random((5, 12), "float32")
    choices, weights = cutlet.top_k(logits, 3, normalised=normalised)
    expected = numpy.argsort(-logits, axis=1)[:, :3]
    numpy.testing.assert_array_equal(choices, expected)
    chosen = numpy.exp(numpy.take_along_axis(logits, expected, 1))
    total = chosen.sum(1, keepdims=True) if normalised else numpy.exp(logits).sum(1, keepdims=True)
    numpy.testing.assert_allclose(weights, chosen / total, rtol=1e-5)
    for k in (0, 13):
        match = f"top_k: k is {k}, and there are 12 experts; let a token choose from 1 to 12"
        with pytest.raises(ValueError, match=match):
            cutlet.top_k(logits, k)
    with pytest.raises(ValueError, match=r"top_k: logits is \(5, 0\), and has no experts; give at least one"):
        cutlet.top_k(logits[:, :0], 1)


@pytest.mark.parametrize("shape", [(6, 8), (2, 3, 8)])
def test_moe(rng, shape):
    experts, width, inner, k = 4, 8, 6, 2

    def random(*shape):
        return rng.standard_normal(shape).astype("float32")

    tokens, router = random(*shape), random(experts, width)
    first, down = random(experts, 2 * inner, width), random(experts, width, inner)
    result = cutlet.moe(tokens, router, first, down, k)
    expected = layer(tokens.reshape(-1, width), router, first, down, k).reshape(shape)
    numpy.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)
    with pytest.raises(ValueError, match="k is 5, and there are 4 experts"):
        cutlet.moe(tokens, router, first, down, 5)
    with pytest.raises(ValueError, match=r"moe: router is \(0, 8\), and has no experts; give at least one"):
        cutlet.moe(tokens, router[:0], first[:0], down[:0], 1)
    with pytest.raises(TypeError, match="tokens is int32; give float32, float16 or bfloat16"):
        cutlet.moe(*(it.astype("int32") for it in (tokens[:0], router, first, down)), k)
    with pytest.raises(ValueError, match=r"gates_and_ups is \(4, 11, 8\)"):
        cutlet.moe(tokens, router, first[:, :11], down, k)


def layer(tokens, router, first, down, k):
    """The layer, a token and an expert at a time."""
    logits = tokens @ router.T
    result = numpy.zeros_like(tokens)
    for token, of_token in zip(range(len(tokens)), logits):
        chosen = numpy.argsort(-of_token)[:k]
        weights = numpy.exp(of_token[chosen] - of_token[chosen].max())
        for expert, weight in zip(chosen, weights / weights.sum()):
            x = first[expert] @ tokens[token]
            gates, ups = x[0::2], x[1::2]
            result[token] += weight * (down[expert] @ (gates / (1 + numpy.exp(-gates)) * ups))
    return result


def test_choices_and_weights_are_apart():
    both = numpy.zeros((10, 2), "int32")
    with pytest.raises(ValueError, match="the memory ranges of choices and weights overlap"):
        cutlet.top_k(numpy.ones((10, 4), "float32"), 2, choices=both, weights=both.view("float32"))
