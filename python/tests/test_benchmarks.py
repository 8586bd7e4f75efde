"""The benchmarks run, at sizes that say nothing about time."""

import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "benchmarks"


def printed_by(script, *arguments):
    command = [sys.executable, str(FOLDER / script), *arguments, "--tiny"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "script, ways", [("gemm.py", 6), ("fp8.py", 4), ("transformer.py", 4), ("moe.py", 2), ("rows.py", 12)]
)
def test_against_pytorch(script, ways):
    pytest.importorskip("torch")
    assert printed_by(script).count("µs") == ways


def test_pytorch_alone():
    pytest.importorskip("torch")
    assert printed_by("decoder.py").count(" ms") == 4


def test_first_result():
    # Where `cargo xtask python` has it.
    wheels = sorted((pathlib.Path(sys.prefix).parent / "wheels").glob("cutlet-*.whl"))
    if not wheels:
        pytest.skip("there is no wheel beside the environment")
    assert "until the first result" in printed_by("first_result.py", str(wheels[-1]))
