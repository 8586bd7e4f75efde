"""The time from a wheel to a first result: python first_result.py target/python/wheels/cutlet-*.whl

A fresh virtual environment gets the wheel, and finds PyTorch or NumPy where this Python has them. The first result is
that of five lines in a process of their own, with an empty cache of the driver's compiler, and once more with what the
first process left there.
"""

import argparse
import importlib.util
import os
import pathlib
import subprocess
import sys
import tempfile
import time

LINES = {
    "cuda": 'import cutlet, torch\na = torch.ones(64, 64, device="cuda")\nb = cutlet.gemm(a, a)\n',
    "cpu": 'import cutlet, numpy\na = numpy.ones((64, 64), "float32")\nb = cutlet.gemm(a, a)\n',
}
ENDING = "assert (b == 64).all()\nprint(float(b[0][0]))\n"


def step(name, command, variables):
    started = time.perf_counter()
    subprocess.run(command, check=True, env=variables, stdout=subprocess.DEVNULL)
    print(f"{name:44} {time.perf_counter() - started:6.2f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("wheel", help="the wheel")
    parser.add_argument("--tiny", action="store_true", help="with NumPy on the CPU: a test of the script")
    found = parser.parse_args()
    device, framework = ("cpu", "numpy") if found.tiny else ("cuda", "torch")
    frameworks = pathlib.Path(importlib.util.find_spec(framework).origin).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        environment = pathlib.Path(folder, "environment")
        python = str(environment / "bin" / "python")
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", found.wheel]
        variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        variables["CUDA_CACHE_PATH"] = os.path.join(folder, "cache")
        started = time.perf_counter()
        step("python -m venv", [sys.executable, "-m", "venv", str(environment)], variables)
        step("pip install", pip, variables)
        # After the installation, which would take a cutlet beside the framework for the wheel's.
        (packages,) = environment.glob("lib/python*/site-packages")
        (packages / "framework.pth").write_text(f"{frameworks}\n")
        run = [python, "-c", LINES[device] + ENDING]
        step("first process", run, variables)
        print(f"{'until the first result':44} {time.perf_counter() - started:6.2f} s")
        step("second process", run, variables)
        step(f"for comparison: import {framework} alone", [python, "-c", f"import {framework}"], variables)


if __name__ == "__main__":
    main()
