"""What the package says of itself and of the machine."""

from importlib.metadata import version

import numpy
import pytest

import cutlet


def test_a_tuning_that_is_not_there(tmp_path):
    with pytest.raises(RuntimeError, match="none.toml"):
        cutlet.install_tuning(tmp_path / "none.toml")


def test_errors_have_pythons_words(tmp_path):
    ones = numpy.ones((4, 4))
    with pytest.raises(ValueError, match="operands of float32 alone"):
        cutlet.gemm(ones, ones, precision="tf32")
    damaged = tmp_path / "damaged.toml"
    damaged.write_text("nonsense")
    with pytest.raises(RuntimeError, match="with the command `cutlet tune`"):
        cutlet.install_tuning(damaged)


def test_the_package_says_what_it_has():
    assert cutlet.__version__ == version("cutlet")
    assert "gemm bf16 into bf16" in cutlet.doctor() and "numpy: " in cutlet.doctor()
    for name in cutlet.__all__:
        assert getattr(cutlet, name).__doc__, name
