"""Products on the CPU backend, against NumPy."""

import math

import numpy
import pytest

import cutlet

ml_dtypes = pytest.importorskip("ml_dtypes")

BF16 = ml_dtypes.bfloat16
TYPES = [
    ("float32", "float32"),
    ("float32", "float16"),
    ("float16", "float16"),
    ("float16", "float32"),
    ("float64", "float64"),
    ("int8", "int32"),
    (BF16, BF16),
    (BF16, "float32"),
    ("float32", BF16),
]


def wide(a):
    """The array in a type in which sums are exact."""
    return a.astype("float64")


@pytest.mark.parametrize(("of_a", "of_c"), TYPES)
def test_every_type(array, of_a, of_c):
    a, b = array(9, 17, dtype=of_a), array(17, 12, dtype=of_a)
    c = cutlet.gemm(a, b, dtype=numpy.dtype(of_c).name)
    assert c.dtype == numpy.dtype(of_c) and c.shape == (9, 12)
    expected = (wide(a) @ wide(b)).astype(of_c)
    numpy.testing.assert_array_equal(wide(c), wide(expected))


def test_the_output_has_the_type_of_a(array):
    assert cutlet.gemm(array(2, 3), array(3, 4)).dtype == numpy.float32
    assert cutlet.gemm(array(2, 3, dtype="int8"), array(3, 4, dtype="int8")).dtype == numpy.int32


@pytest.mark.parametrize("order_of_a", "CF")
@pytest.mark.parametrize("order_of_b", "CF")
@pytest.mark.parametrize("order_of_c", "CF")
def test_every_order(array, order_of_a, order_of_b, order_of_c):
    a = numpy.asarray(array(6, 10), order=order_of_a)
    b = numpy.asarray(array(10, 7), order=order_of_b)
    out = numpy.zeros((6, 7), "float32", order=order_of_c)
    assert cutlet.gemm(a, b, out=out) is out
    numpy.testing.assert_array_equal(out, a @ b)


@pytest.mark.parametrize("of_c", ["bfloat16", "float16", "float32"])
def test_eight_bit_floats(array, of_c):
    e4m3 = ml_dtypes.float8_e4m3fn
    a, b = array(9, 40, dtype=e4m3), array(40, 24, dtype=e4m3)
    c = cutlet.gemm(a, b, dtype=of_c)
    expected = wide(a) @ wide(b)
    numpy.testing.assert_allclose(wide(c), expected, rtol=1 / 128)
    assert cutlet.gemm(a, b, precision="fast-accumulation").dtype == BF16


def test_scales_of_eight_bit_floats():
    random = numpy.random.default_rng(1)
    e4m3 = ml_dtypes.float8_e4m3fn
    m, n, k = 10, 200, 300
    a, b = (random.uniform(-2, 2, shape).astype(e4m3) for shape in ((m, k), (k, n)))
    scale_a, scale_b = (random.uniform(1, 2, shape).astype("float32") for shape in ((m, 3), (3, 2)))
    c = cutlet.gemm(a, b, scale_a=scale_a, scale_b=scale_b, dtype="float32")
    of_a = numpy.repeat(scale_a, 128, 1)[:, :k]
    of_b = numpy.repeat(numpy.repeat(scale_b, 128, 0), 128, 1)[:k, :n]
    numpy.testing.assert_allclose(c, (wide(a) * of_a) @ (wide(b) * of_b), rtol=1e-4, atol=1e-3)
    of_a, of_b = (random.uniform(1, 2, count).astype("float32") for count in (m, n))
    expected = wide(a) @ wide(b) * of_a[:, None] * of_b
    for outer_a, outer_b in ((of_a, of_b), (of_a[:, None], of_b[None, :])):
        c = cutlet.gemm(a, b, scale_a=outer_a, scale_b=outer_b, dtype="float32")
        numpy.testing.assert_allclose(c, expected, rtol=1e-4, atol=1e-3)
    c = cutlet.gemm(a, b, scale_a=of_a[:1, None], scale_b=of_b, dtype="float32")
    numpy.testing.assert_allclose(c, wide(a) @ wide(b) * of_a[0] * of_b, rtol=1e-4, atol=1e-3)
    with pytest.raises(ValueError, match="give both"):
        cutlet.gemm(a, b, scale_a=scale_a)
    with pytest.raises(ValueError, match="10×2"):
        cutlet.gemm(a, b, scale_a=scale_a[:, :2], scale_b=scale_b)
    with pytest.raises(TypeError, match="they are for float8_e4m3fn, float8_e5m2 and int8"):
        cutlet.gemm(wide(a), wide(b), scale_a=scale_a, scale_b=scale_b)


def test_both_formats_of_eight_bit_floats(array):
    e4m3, e5m2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
    scale_a, scale_b = numpy.full((9, 1), 2, "float32"), numpy.full(24, 0.5, "float32")
    for of_a, of_b in ((e5m2, e5m2), (e4m3, e5m2), (e5m2, e4m3)):
        a, b = array(9, 32, dtype=of_a), array(32, 24, dtype=of_b)
        c = cutlet.gemm(a, b, dtype="float32")
        numpy.testing.assert_allclose(c, wide(a) @ wide(b), rtol=1e-5)
        assert cutlet.gemm(a, b).dtype == BF16
        scaled = cutlet.gemm(a, b, scale_a=scale_a, scale_b=scale_b, dtype="float32")
        numpy.testing.assert_allclose(scaled, c, rtol=1e-5)
    with pytest.raises(TypeError, match="b"):
        cutlet.gemm(a, array(32, 24))


def scaled(random, a, b):
    """Scales of rows and of columns, and of blocks, with the operands that they make."""
    [m, k], n = a.shape[-2:], b.shape[-1]
    uniform = lambda *shape: random.uniform(1, 2, shape).astype("float32")
    of_a, of_b = uniform(*a.shape[:-1], 1), uniform(*b.shape[:-2], 1, n)
    yield of_a, of_b, wide(a) * of_a, wide(b) * of_b
    of_a = uniform(*a.shape[:-1], -(-k // 128))
    of_b = uniform(*b.shape[:-2], -(-k // 128), -(-n // 128))
    spread_a = numpy.repeat(of_a, 128, -1)[..., :k]
    spread_b = numpy.repeat(numpy.repeat(of_b, 128, -2), 128, -1)[..., :k, :n]
    yield of_a, of_b, wide(a) * spread_a, wide(b) * spread_b


E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2


@pytest.mark.parametrize("formats", [(E4M3, E4M3), (E5M2, E4M3), (E5M2, E5M2)])
def test_scales_of_several_products(formats):
    random = numpy.random.default_rng(3)
    m, n, k = 10, 136, 272
    a = random.uniform(-2, 2, (3, m, k)).astype(formats[0])
    # Columns are contiguous.
    b = random.uniform(-2, 2, (3, n, k)).astype(formats[1]).transpose(0, 2, 1)
    close = lambda c, expected: numpy.testing.assert_allclose(wide(c), expected, rtol=1 / 100, atol=0.1)
    for scale_a, scale_b, of_a, of_b in scaled(random, a, b):
        close(cutlet.gemm_batched(a, b, scale_a=scale_a, scale_b=scale_b), of_a @ of_b)
        in_f32 = cutlet.gemm_batched(a, b, scale_a=scale_a, scale_b=scale_b, dtype="float32")
        numpy.testing.assert_allclose(in_f32, of_a @ of_b, rtol=1e-4, atol=1e-2)
        if scale_a.shape[-1] > 1:
            # Rows are contiguous, as kernels of groups read them.
            scale_a, scale_b = (numpy.asfortranarray(it.transpose(1, 2, 0)).transpose(2, 0, 1) for it in (scale_a, scale_b))
            padded = numpy.zeros((3, 3, 12), "float32").transpose(0, 2, 1)[:, :m]
            padded[:] = scale_a
            scale_a = padded
        rows = numpy.array([10, 0, 3], "int32")
        c = numpy.full((3, m, n), 5, BF16)
        cutlet.grouped_gemm(a, b, rows=rows, out=c, scale_a=scale_a, scale_b=scale_b)
        for group, count in enumerate(rows):
            close(c[group, :count], (of_a @ of_b)[group, :count])
            assert (wide(c[group, count:]) == 5).all()
    ends = numpy.array([4, 4, 10], "int32")
    for scale_a, scale_b, of_a, of_b in scaled(random, a[0], b):
        if scale_a.shape[-1] > 1:
            scale_b = numpy.ascontiguousarray(scale_b.transpose(0, 2, 1)).transpose(0, 2, 1)
        c = cutlet.grouped_gemm(a[0], b, ends=ends, scale_a=scale_a, scale_b=scale_b)
        expected = numpy.concatenate([of_a[:4] @ of_b[0], of_a[4:] @ of_b[2]])
        close(c, expected)
    c = cutlet.grouped_gemm(a[0], b, ends=ends, scale_a=scale_a[:1, 0], scale_b=numpy.array([1, 2, 3], "float32"))
    expected = numpy.concatenate([wide(a)[0, :4] @ wide(b)[0], 3 * wide(a)[0, 4:] @ wide(b)[2]])
    close(c, scale_a[0, 0] * expected)
    with pytest.raises(ValueError, match="give one for each of the columns of each matrix"):
        cutlet.gemm_batched(a, b, scale_a=scale_a[:1, 0], scale_b=numpy.ones((3, 5), "float32"))


@pytest.mark.parametrize("of_c", ["bfloat16", "float16", "float32"])
def test_scales_of_rows_and_columns(of_c):
    random = numpy.random.default_rng(2)
    m, n, k = 10, 24, 80
    a, b = (random.integers(-128, 128, shape, "int8") for shape in ((m, k), (k, n)))
    scale_a, scale_b = (random.uniform(1, 2, count).astype("float32") / 256 for count in (m, n))
    sums = a.astype("int32") @ b.astype("int32")
    c = cutlet.gemm(a, b, scale_a=scale_a[:, None], scale_b=scale_b[None, :], dtype=of_c)
    rtol = 1e-6 if of_c == "float32" else 1 / 128
    numpy.testing.assert_allclose(wide(c), sums * scale_a[:, None] * scale_b, rtol=rtol)
    c = cutlet.gemm(a, b, scale_a=scale_a[:1], scale_b=scale_b, dtype=of_c)
    numpy.testing.assert_allclose(wide(c), sums * scale_a[0] * scale_b, rtol=rtol)
    with pytest.raises(ValueError, match="A's scales are 9, and C has 10 rows"):
        cutlet.gemm(a, b, scale_a=scale_a[1:], scale_b=scale_b, dtype=of_c)
    with pytest.raises(TypeError, match="out is int32"):
        cutlet.gemm(a, b, scale_a=scale_a, scale_b=scale_b)


def test_parts_of_arrays_are_used_in_place(array):
    a, b, c = array(20, 30), array(30, 40), numpy.full((12, 13), 9, "float32")
    cutlet.gemm(a[3:9, 4:14], b[5:15, 7:15], out=c[2:8, 3:11])
    expected = numpy.full((12, 13), 9, "float32")
    expected[2:8, 3:11] = a[3:9, 4:14] @ b[5:15, 7:15]
    numpy.testing.assert_array_equal(c, expected)


def test_factors(array):
    a, b, c = array(5, 6), array(6, 8), array(5, 8)
    expected = 2 * (a @ b) - 3 * c
    cutlet.gemm(a, b, out=c, alpha=2, beta=-3)
    numpy.testing.assert_array_equal(c, expected)


def test_integers_have_integer_factors(array):
    a, b = array(5, 6, dtype="int8"), array(6, 8, dtype="int8")
    expected = 3 * (a.astype("int32") @ b.astype("int32"))
    numpy.testing.assert_array_equal(cutlet.gemm(a, b, alpha=3), expected)
    with pytest.raises(ValueError, match=r"gemm: alpha is 0\.5"):
        cutlet.gemm(a, b, alpha=0.5)


def test_a_residual_may_have_a_factor(array):
    a, b, residual = array(6, 8), array(8, 10), array(6, 10)
    found = cutlet.gemm(a, b, residual=residual, alpha=2.0, beta=-0.5)
    assert (found == 2 * (a @ b) - residual / 2).all()
    plan = cutlet.plan_gemm(a, b, residual=residual, beta=3.0)
    assert (plan(a, b, residual=residual) == a @ b + 3 * residual).all()


@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_erf", "silu"])
@pytest.mark.parametrize("along", ["columns", "rows"])
def test_what_follows_a_product(array, activation, along):
    a, b = array(6, 8) / 8, array(8, 10) / 8
    bias, residual = array(10 if along == "columns" else 6) / 4, array(6, 10) / 4
    c = cutlet.gemm(a, b, bias=bias, bias_along=along, residual=residual, activation=activation)
    x = wide(a) @ wide(b) + wide(residual) + (wide(bias) if along == "columns" else wide(bias)[:, None])
    expected = {
        "relu": lambda: numpy.maximum(x, 0),
        "silu": lambda: x / (1 + numpy.exp(-x)),
        "gelu": lambda: 0.5 * x * (1 + numpy.tanh(numpy.sqrt(2 / numpy.pi) * (x + 0.044715 * x**3))),
        "gelu_erf": lambda: 0.5 * x * (1 + numpy.vectorize(math.erf)(x / numpy.sqrt(2))),
    }[activation]()
    # GELU with the hyperbolic tangent is less exact than the arithmetic.
    error = 2e-3 if activation == "gelu" else 1e-5
    numpy.testing.assert_allclose(c, expected, rtol=error, atol=error / 4)


def test_gates_and_ups_become_one_column(array):
    a, b = array(5, 6) / 4, array(6, 8) / 4
    x = wide(a) @ wide(b)
    gates, ups = x[:, 0::2], x[:, 1::2]
    expected = gates / (1 + numpy.exp(-gates)) * ups
    numpy.testing.assert_allclose(cutlet.gemm(a, b, activation="swiglu"), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("precision", "error"), [("exact", 1e-6), ("tf32", 2e-3), ("3xtf32", 1e-5)])
def test_precisions(rng, precision, error):
    a, b = rng.random((8, 16), "float32"), rng.random((16, 8), "float32")
    c = cutlet.gemm(a, b, precision=precision)
    numpy.testing.assert_allclose(c, wide(a) @ wide(b), rtol=error)


def test_nothing_is_summed_without_k():
    c = numpy.full((2, 3), 7, "float32")
    cutlet.gemm(numpy.zeros((2, 0), "float32"), numpy.zeros((0, 3), "float32"), out=c)
    numpy.testing.assert_array_equal(c, numpy.zeros((2, 3)))
    assert cutlet.gemm(numpy.zeros((0, 4), "float32"), numpy.zeros((4, 3), "float32")).shape == (0, 3)


def test_read_only_operands_are_read(array):
    a, b = array(3, 4), array(4, 5)
    a.flags.writeable = False
    numpy.testing.assert_array_equal(cutlet.gemm(a, b), a @ b)


class TestRefusals:
    """Nothing is written, and the message has names and numbers."""

    @pytest.fixture
    def out(self):
        return numpy.full((4, 5), 7, "float32")

    def refuse(self, error, match, out, *arguments, **options):
        before = out.copy()
        with pytest.raises(error, match=match):
            cutlet.gemm(*arguments, out=out, **options)
        numpy.testing.assert_array_equal(out, before)

    def test_extents(self, array, out):
        match = "the columns of A and the rows of B are 3 and 6"
        self.refuse(ValueError, match, out, array(4, 3), array(6, 5))
        match = "bias has 4 elements, and C has 5 columns"
        self.refuse(ValueError, match, out, array(4, 3), array(3, 5), bias=array(4))
        self.refuse(ValueError, r"a has 1 dimensions, \(3,\); give 2", out, array(3), array(3, 5))

    def test_types(self, array, out):
        self.refuse(TypeError, "b is float64; give float32", out, array(4, 3), array(3, 5, dtype="float64"))
        of_int64 = array(4, 3, dtype="int64"), array(3, 5, dtype="int64")
        self.refuse(TypeError, "a is int64 and out is float32", out, *of_int64)
        bias = array(5, dtype="float16")
        self.refuse(TypeError, "bias is float16; give float32", out, array(4, 3), array(3, 5), bias=bias)
        self.refuse(TypeError, "a is a <class 'list'>", out, [[1.0]], array(3, 5))

    def test_strides(self, array, out):
        strided = array(4, 12)[:, :6:2]
        self.refuse(ValueError, r"a is \(4, 3\) with strides \(12, 2\)", out, strided, array(3, 5))
        self.refuse(ValueError, "a has the stride -3 in dimension 0", out, array(4, 3)[::-1], array(3, 5))

    def test_overlap(self, array, out):
        memory = numpy.zeros(100, "float32")
        a, out = memory[:12].reshape(4, 3), memory[8:28].reshape(4, 5)
        self.refuse(ValueError, "the output overlaps", out, a, array(3, 5))

    def test_read_only_output(self, array, out):
        out.flags.writeable = False
        self.refuse(ValueError, "out is read-only", out, array(4, 3), array(3, 5))

    def test_words(self, array, out):
        operands = array(4, 3), array(3, 5)
        match = 'activation is "tanh"; give relu, gelu, gelu_erf, silu or swiglu'
        self.refuse(ValueError, match, out, *operands, activation="tanh")
        self.refuse(ValueError, 'precision is "fp8"', out, *operands, precision="fp8")
        with pytest.raises(TypeError, match="dtype is nonsense"):
            cutlet.gemm(array(4, 3), array(3, 5), dtype="nonsense")

    def test_beta_without_an_output(self, array):
        with pytest.raises(ValueError, match="beta is 1, and there is no out"):
            cutlet.gemm(array(4, 3), array(3, 5), beta=1)

    def test_streams_are_for_gpus(self, array):
        with pytest.raises(ValueError, match="a is on the CPU, which has none"):
            cutlet.gemm(array(4, 3), array(3, 5), stream=0)


@pytest.mark.parametrize("repeated", [None, "a", "b"])
def test_batches(array, repeated):
    a = array(*((6, 8) if repeated == "a" else (3, 6, 8)))
    b = array(*((8, 5) if repeated == "b" else (3, 8, 5)))
    numpy.testing.assert_array_equal(cutlet.gemm_batched(a, b), a @ b)


def test_a_batch_in_an_output_of_other_strides(array):
    a, b = array(3, 6, 8), array(3, 8, 5)
    # Heads side by side, as attention has them.
    out = numpy.zeros((6, 3, 5), "float32").transpose(1, 0, 2)
    cutlet.gemm_batched(a, b, out=out)
    numpy.testing.assert_array_equal(out, a @ b)
    with pytest.raises(ValueError, match=r"a is \(3, 6, 8\) and b is \(2, 8, 5\)"):
        cutlet.gemm_batched(a, b[:2])


def test_batches_without_products():
    a, b = numpy.zeros((0, 2, 3), "float32"), numpy.zeros((0, 3, 4), "float32")
    assert cutlet.gemm_batched(a, b).shape == (0, 2, 4)
    a, b = numpy.zeros((5, 0, 3), "float32"), numpy.zeros((3, 4), "float32")
    assert cutlet.gemm_batched(a, b).shape == (5, 0, 4)


def test_groups_of_rows(array):
    a, b = array(9, 6), array(3, 6, 4)
    ends = numpy.array([2, 2, 9], "int32")
    c = cutlet.grouped_gemm(a, b, ends=ends)
    expected = numpy.concatenate([a[:2] @ b[0], a[2:9] @ b[2]])
    numpy.testing.assert_array_equal(c, expected)


def test_rows_of_padded_groups(array):
    a, b = array(3, 5, 6), array(3, 6, 4)
    out = numpy.full((3, 5, 4), 7, "float32")
    cutlet.grouped_gemm(a, b, rows=numpy.array([2, 0, 5], "int32"), out=out)
    expected = numpy.full((3, 5, 4), 7, "float32")
    expected[0, :2], expected[2] = a[0, :2] @ b[0], a[2] @ b[2]
    numpy.testing.assert_array_equal(out, expected)
    with pytest.raises(ValueError, match="give either ends"):
        cutlet.grouped_gemm(a, b)
    with pytest.raises(TypeError, match="ends is int64; give int32"):
        cutlet.grouped_gemm(a[0], b, ends=numpy.array([1, 2, 5]))


BATCHES = [((2, 3, 0), (2, 0, 5)), ((3, 0), (2, 0, 5)), ((2, 3, 0), (0, 5)), ((2, 3, 4), (2, 4, 0))]


@pytest.mark.parametrize("shapes", BATCHES)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", "int8"])
def test_batches_without_elements(array, shapes, dtype):
    a, b = (numpy.ones(shape, dtype) for shape in shapes)
    of_c = {"int8": "int32"}.get(dtype, dtype)
    expected = numpy.zeros((2, 3, shapes[1][-1]), of_c)
    numpy.testing.assert_array_equal(cutlet.gemm_batched(a, b), expected)
    out = array(*expected.shape, dtype=of_c)
    # The product is 0, also by an infinite factor.
    options = {"beta": 2} if dtype == "int8" else {"beta": 2, "alpha": numpy.inf, "activation": "relu"}
    expected = 2 * out if dtype == "int8" else numpy.maximum(2 * out, 0)
    cutlet.gemm_batched(a, b, out=out, **options)
    numpy.testing.assert_array_equal(out, expected)


def test_a_bias_where_nothing_is_summed(array):
    a, b, bias = numpy.ones((2, 3, 0), "float32"), numpy.ones((2, 0, 5), "float32"), array(5)
    expected = numpy.broadcast_to(bias, (2, 3, 5))
    numpy.testing.assert_array_equal(cutlet.gemm_batched(a, b, bias=bias), expected)


def test_groups_where_nothing_is_summed(array):
    ends, out = numpy.array([1, 3], "int32"), array(4, 5)
    a, b = numpy.ones((4, 0), "float32"), numpy.ones((2, 0, 5), "float32")
    expected = numpy.concatenate([3 * out[:3], out[3:]])
    cutlet.grouped_gemm(a, b, ends=ends, out=out, beta=3)
    numpy.testing.assert_array_equal(out, expected)
    out = numpy.ones((2, 4, 5), "float32")
    expected = out.copy()
    expected[0, :1], expected[1, :3] = 0, 0
    cutlet.grouped_gemm(a.reshape(1, 4, 0).repeat(2, 0), b, rows=ends, out=out)
    numpy.testing.assert_array_equal(out, expected)


def test_groups_are_clamped(array):
    """Ends below 0 and beyond the rows are cut off, and rows in no group keep their elements."""
    a, b, out = array(6, 3), array(3, 3, 4), numpy.full((6, 4), 7, "float32")
    cutlet.grouped_gemm(a, b, ends=numpy.array([-2, 2, 4], "int32"), out=out)
    numpy.testing.assert_array_equal(out, numpy.concatenate([a[:2] @ b[1], a[2:4] @ b[2], numpy.full((2, 4), 7)]))
    numpy.testing.assert_array_equal(
        cutlet.grouped_gemm(a, b, ends=numpy.array([2, 9, 11], "int32")), numpy.concatenate([a[:2] @ b[0], a[2:] @ b[1]])
    )


def test_rows_of_groups_are_clamped(array):
    a, b, out = array(2, 3, 4), array(2, 4, 5), numpy.full((2, 3, 5), 7, "float32")
    expected = numpy.stack([out[0], a[1] @ b[1]])
    cutlet.grouped_gemm(a, b, rows=numpy.array([-1, 9], "int32"), out=out)
    numpy.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("extent", [0, 2])
def test_extents_of_batches_agree(extent):
    """Also where C has no elements."""

    def of(*shape):
        return numpy.zeros(shape, "float32")

    a, b, out = of(extent, 3, 4), of(extent, 4, 5), of(extent, 3, 5)
    cutlet.gemm_batched(a, b, out=out)
    with pytest.raises(ValueError, match="gemm_batched: .* the columns of a and the rows of b are 4 and 6"):
        cutlet.gemm_batched(a, of(extent, 6, 5), out=out)
    with pytest.raises(ValueError, match=rf"gemm_batched: out is \({extent}, 3, 6\); give \({extent}, 3, 5\)"):
        cutlet.gemm_batched(a, b, out=of(extent, 3, 6))
    with pytest.raises(ValueError, match=r"gemm_batched: bias is \(4,\); give \(5,\)"):
        cutlet.gemm_batched(a, b, out=out, bias=of(4))
    with pytest.raises(TypeError, match="a is float32 and out is int32"):
        cutlet.gemm_batched(a, b, out=numpy.zeros((extent, 3, 5), "int32"))


@pytest.mark.parametrize("rows", [0, 6])
def test_extents_of_groups_agree(rows):
    a, b, ends = numpy.zeros((rows, 3), "float32"), numpy.zeros((2, 3, 4), "float32"), numpy.zeros(2, "int32")
    cutlet.grouped_gemm(a, b, ends=ends)
    with pytest.raises(ValueError, match=r"grouped_gemm: ends is \(3,\); give \(2,\)"):
        cutlet.grouped_gemm(a, b, ends=numpy.zeros(3, "int32"))
    with pytest.raises(ValueError, match=rf"grouped_gemm: out is \({rows}, 5\); give \({rows}, 4\)"):
        cutlet.grouped_gemm(a, b, ends=ends, out=numpy.zeros((rows, 5), "float32"))
    with pytest.raises(ValueError, match="grouped_gemm: .* the columns of a and the rows of b are 3 and 2"):
        cutlet.grouped_gemm(a, b[:, :2], ends=ends)


def test_sizes_of_groups_are_not_written():
    ends = numpy.array([1, 2, 3], "int32")
    a, b = numpy.full((3, 2), 2, "int8"), numpy.ones((3, 2, 1), "int8")
    with pytest.raises(ValueError, match="overlap"):
        cutlet.grouped_gemm(a, b, ends=ends, out=ends.reshape(3, 1))
    assert list(ends) == [1, 2, 3]
