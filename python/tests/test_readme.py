"""The programs in the README and in docstrings run."""

import doctest
import pathlib
import re

import pytest

import cutlet

README = pathlib.Path(__file__).parent.parent / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs_and_prints_what_it_says(program, capsys):
    exec(compile(program, str(README), "exec"), {})
    printed = capsys.readouterr().out
    for said in re.findall(r"# ([(\d].*)", program):
        assert said in printed


@pytest.mark.parametrize("module", [cutlet, cutlet.layouts])
def test_docstrings(module):
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0


def test_there_are_programs():
    assert len(PROGRAMS) == 2
