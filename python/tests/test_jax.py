"""Arrays of JAX on the CPU, which are read and never written."""

import os

import numpy
import pytest

os.environ.setdefault("JAX_PLATFORMS", "cpu")
jax = pytest.importorskip("jax")

import cutlet  # noqa: E402


def test_arrays_of_jax_are_read(array):
    a, b = array(3, 4), array(4, 5)
    out = numpy.zeros((3, 5), "float32")
    cutlet.gemm(jax.numpy.asarray(a), jax.numpy.asarray(b), out=out)
    numpy.testing.assert_array_equal(out, a @ b)


def test_arrays_of_jax_are_not_written(array):
    a, b, out = array(3, 4), array(4, 5), jax.numpy.zeros((3, 5))
    with pytest.raises(ValueError, match="out is read-only"):
        cutlet.gemm(a, b, out=out)
    assert not out.any()
    with pytest.raises(TypeError, match="ArrayImpl is no array that may be written; pass an output"):
        cutlet.gemm(jax.numpy.asarray(a), b)
