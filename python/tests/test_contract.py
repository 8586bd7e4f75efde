"""Contractions on the CPU backend, against NumPy's einsum."""

import numpy
import pytest

import cutlet

NOTATIONS = [
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ji,jk->ki", (4, 3), (4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bshd,bthd->bhst", (2, 4, 3, 5), (2, 6, 3, 5)),
    ("ijk,jl->ilk", (2, 3, 4), (3, 5)),
    ("bij,bkj->ik", (3, 4, 5), (3, 6, 5)),
    ("i,j->ij", (4,), (5,)),
    ("i,i->", (7,), (7,)),
]


@pytest.mark.parametrize(("notation", "of_a", "of_b"), NOTATIONS)
def test_notations(array, notation, of_a, of_b):
    a, b = array(*of_a), array(*of_b)
    expected = numpy.einsum(notation, a, b)
    c = cutlet.contract(notation, a, b)
    assert c.shape == expected.shape
    numpy.testing.assert_array_equal(c, expected)


def test_any_strides(array):
    a, b = array(4, 6, 10)[::2, :, ::3], array(8, 6)[:, ::-1][:, ::-1]
    out = numpy.zeros((8, 2, 4), "float32").transpose(1, 2, 0)
    cutlet.contract("ijk,lj->ikl", a, b, out=out)
    numpy.testing.assert_array_equal(out, numpy.einsum("ijk,lj->ikl", a, b))


def test_repeated_elements(array):
    a, b = numpy.broadcast_to(array(1, 5), (4, 5)), array(5, 3)
    numpy.testing.assert_array_equal(cutlet.contract("ij,jk->ik", a, b), a @ b)


def test_factors_and_types(array):
    a, b, c = array(3, 4, dtype="float16"), array(4, 5, dtype="float16"), array(3, 5)
    expected = 2 * (a.astype("float32") @ b.astype("float32")) + c
    cutlet.contract("ij,jk->ik", a, b, out=c, alpha=2, beta=1)
    numpy.testing.assert_array_equal(c, expected)


def test_refusals(array):
    with pytest.raises(ValueError, match="j"):
        cutlet.contract("ij,jk->ik", array(3, 4), array(5, 6))
    with pytest.raises(ValueError, match="has 3 letters for it"):
        cutlet.contract("ijk,jk->ik", array(3, 4), array(5, 6))
    with pytest.raises(ValueError, match="a letter that no operand has"):
        cutlet.contract("ij,jk->il", array(3, 4), array(4, 6))
    with pytest.raises(ValueError, match="is no contraction of two arrays"):
        cutlet.contract("ij->ji", array(3, 4), array(4, 6))
    with pytest.raises(ValueError, match="stride"):
        overlapping = numpy.lib.stride_tricks.as_strided(numpy.zeros(8, "float32"), (3, 5), (4, 4))
        cutlet.contract("ij,jk->ik", array(3, 4), array(4, 5), out=overlapping)
