"""Compares ways to compute the same: their values first, then their times, interleaved in one run."""

import argparse
import statistics
import time

import torch

import cutlet

#: Runs between two looks at the clock, and how often each way has its turn.
RUNS, ROUNDS = 10, 30


def options(description):
    """The script's options. With ``--tiny``, problems are small and run on the CPU, where times mean nothing."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tiny", action="store_true", help="small problems on the CPU: a test of the script")
    found = parser.parse_args()
    found.device = "cpu" if found.tiny else "cuda"
    name = "the CPU" if found.tiny else torch.cuda.get_device_name()
    print(f"{name}, PyTorch {torch.__version__}, cutlet {cutlet.__version__}")
    return found


def compiled(function, device):
    """``torch.compile``'s function. On the CPU it is traced, and not compiled, which needs no C++ compiler."""
    return torch.compile(function, backend="inductor" if device == "cuda" else "aot_eager")


def graphs(ways, device):
    """The same ways as CUDA graphs; none on the CPU."""
    return {f"{name}, CUDA graph": _graph(way) for name, way in ways.items()} if device == "cuda" else {}


def _graph(way):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            way()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = way()

    def replay():
        graph.replay()
        return result

    return replay


def compare(problem, ways, *, tolerance, calls=1):
    """Prints the median time of each way, and its ratio to the first one's.

    A way is a function without arguments that makes ``calls`` calls and returns a tensor. ``tolerance`` is the largest
    norm of a difference from the first way's tensor, relative to that tensor's norm.
    """
    print(f"\n{problem}")
    errors = _errors(ways, tolerance)
    times = _microseconds(ways)
    first = next(iter(times.values()))
    for name, found in times.items():
        print(f"  {name:44} {found / calls:10.1f} µs {found / first:6.2f}   error {errors[name]:.1e}")


def _errors(ways, tolerance):
    expected, errors = None, {}
    for name, way in ways.items():
        result = way().double()
        expected = result.clone() if expected is None else expected
        errors[name] = float((result - expected).norm() / expected.norm())
        # Written so that NaN fails.
        if not errors[name] <= tolerance:
            raise SystemExit(f"{name}: the values differ by {errors[name]:.1e}, and {tolerance:.1e} is allowed")
    return errors


def _microseconds(ways):
    times = {name: [] for name in ways}
    for round in range(ROUNDS if torch.cuda.is_available() else 2):
        # Each way follows each other one, so that none always finds a cooler GPU.
        order = list(ways.items())
        for name, way in order if round % 2 == 0 else reversed(order):
            way()
            times[name].append(_group(way))
    return {name: statistics.median(found) for name, found in times.items()}


def _group(way):
    if not torch.cuda.is_available():
        started = time.perf_counter()
        way()
        return (time.perf_counter() - started) * 1e6
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(RUNS):
        way()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / RUNS
