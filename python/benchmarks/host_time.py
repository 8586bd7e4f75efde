"""The host's time for a call, beside PyTorch's: python host_time.py

Products are small, so that the GPU is done before the next call, and calls are timed in groups that fit its queue.
"""

import statistics
import time

import torch

import cutlet

CALLS, GROUPS = 200, 50


def microseconds(call):
    """The median time of a call of a group, in which the GPU's queue is empty at the beginning."""
    times = []
    for _ in range(GROUPS):
        torch.cuda.synchronize()
        started = time.perf_counter()
        for _ in range(CALLS):
            call()
        times.append((time.perf_counter() - started) / CALLS * 1e6)
    return statistics.median(times)


def main():
    a, b, c = (torch.randn(64, 64, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    table, indices = torch.randn(64, 64, device="cuda"), torch.arange(64, device="cuda")
    rows, addend = torch.empty(64, 64, device="cuda"), torch.randn(64, device="cuda", dtype=torch.bfloat16)
    stream, plan = torch.cuda.current_stream(), cutlet.plan_gemm(a, b, out=c)
    calls = {
        "torch.mm(out=)": lambda: torch.mm(a, b, out=c),
        "cutlet.gemm(out=)": lambda: cutlet.gemm(a, b, out=c),
        "cutlet.gemm(out=, stream=)": lambda: cutlet.gemm(a, b, out=c, stream=stream),
        "cutlet.plan_gemm's plan(out=)": lambda: plan(a, b, out=c),
        "torch.mm": lambda: torch.mm(a, b),
        "cutlet.gemm": lambda: cutlet.gemm(a, b),
        "torch.addmm": lambda: torch.addmm(addend, a, b),
        "cutlet.gemm(bias=)": lambda: cutlet.gemm(a, b, bias=addend),
        "torch.einsum": lambda: torch.einsum("ij,jk->ik", a, b),
        "cutlet.contract": lambda: cutlet.contract("ij,jk->ik", a, b),
        "torch.index_select(out=)": lambda: torch.index_select(table, 0, indices, out=rows),
        "cutlet.gather(out=, clamp)": lambda: cutlet.gather(table, indices, out=rows, out_of_range="clamp"),
    }
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "cutlet", cutlet.__version__)
    for call in calls.values():
        call()
    for name, call in calls.items():
        print(f"{name:28} {microseconds(call):6.2f} µs")


if __name__ == "__main__":
    main()
