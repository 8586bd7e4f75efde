"""The examples run."""

import pathlib
import runpy

import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "examples"


def test_layouts(capsys):
    runpy.run_path(str(FOLDER / "layouts.py"))
    printed = capsys.readouterr().out
    assert "32-way" in printed and "no bank conflicts" in printed


def test_pytorch(capsys):
    pytest.importorskip("torch")
    runpy.run_path(str(FOLDER / "pytorch.py"))
    differences = [float(line.split()[-1]) for line in capsys.readouterr().out.splitlines() if "difference" in line]
    assert len(differences) == 2 and max(differences) < 0.25
