"""Products of bf16 beside PyTorch's, eager and compiled: python gemm.py

Several weights are used by turns, as by the layers of a model, so that they do not stay in the L2 cache.
"""

import torch
from torch.nn.functional import linear

import cutlet
import cutlet.torch

from interleaved import compare, compiled, options

WEIGHTS = 4


def ways(m, n, k, device):
    x = torch.randn(m, k, device=device, dtype=torch.bfloat16)
    weights = [torch.randn(n, k, device=device, dtype=torch.bfloat16) / k**0.5 for _ in range(WEIGHTS)]
    out = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    compiled_linear, compiled_cutlet = compiled(linear, device), compiled(cutlet.torch.linear, device)

    def each(product):
        def run():
            for weight in weights:
                result = product(weight)
            return result

        return run

    return {
        "torch.mm(out=)": each(lambda weight: torch.mm(x, weight.t(), out=out)),
        "cutlet.gemm(out=)": each(lambda weight: cutlet.gemm(x, weight.t(), out=out)),
        "torch.nn.functional.linear": each(lambda weight: linear(x, weight)),
        "cutlet.torch.linear": each(lambda weight: cutlet.torch.linear(x, weight)),
        "torch.nn.functional.linear, compiled": each(lambda weight: compiled_linear(x, weight)),
        "cutlet.torch.linear, compiled": each(lambda weight: compiled_cutlet(x, weight)),
    }


def main():
    found = options(__doc__)
    for m, n, k in [(16, 64, 64)] if found.tiny else [(16, 4096, 4096), (4096, 4096, 4096)]:
        compare(f"{m} × {n} × {k}, bf16", ways(m, n, k, found.device), tolerance=1e-2, calls=WEIGHTS)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
