"""Arrays for tests: random numbers, of which products are exact in the type's accumulators or nearly so."""

import numpy
import pytest


@pytest.fixture
def rng():
    return numpy.random.default_rng(7)


@pytest.fixture
def array(rng):
    """Small integers as an array of a type, so that sums of products are exact."""

    def make(*shape, dtype="float32"):
        return rng.integers(-4, 5, size=shape).astype(dtype)

    return make
