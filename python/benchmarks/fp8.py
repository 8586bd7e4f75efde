"""Products of 8-bit floats into bf16 beside `torch._scaled_mm`: python fp8.py

With scales of rows, each row of a and each column of b has one. With scales of blocks, 1×128 elements of a have a scale, and 128×128 elements of b. Both libraries get them as they read
them: those of a block of k are neighbours.
"""

import torch

import cutlet

from interleaved import compare, options

E4M3 = torch.float8_e4m3fn


def of_tensors(m, n, k, device):
    """Ways with one scale, accumulated in f32 and as the tensor cores do."""
    a, b = (torch.randn(lines, k, device=device).to(E4M3) for lines in (m, n))
    one, out = torch.ones((), device=device), torch.empty(m, n, device=device, dtype=torch.bfloat16)

    def scaled_mm(fast):
        return torch._scaled_mm(a, b.t(), one, one, out_dtype=torch.bfloat16, use_fast_accum=fast)

    def gemm(precision):
        return cutlet.gemm(a, b.t(), out=out, precision=precision)

    return {
        "torch._scaled_mm": lambda: scaled_mm(False),
        "cutlet.gemm(out=)": lambda: gemm("exact"),
        "torch._scaled_mm, fast accumulation": lambda: scaled_mm(True),
        "cutlet.gemm(out=), fast accumulation": lambda: gemm("fast-accumulation"),
    }


def of_blocks(m, n, k, device):
    """Ways with scales of blocks, which PyTorch has on GPUs, for more than one row."""
    a, b = (torch.randn(lines, k, device=device).to(E4M3) for lines in (m, n))
    scale_a = torch.rand(k // 128, m, device=device).t()
    scale_b = torch.rand(n // 128, k // 128, device=device).t()
    out = torch.empty(m, n, device=device, dtype=torch.bfloat16)
    return {
        "torch._scaled_mm": lambda: torch._scaled_mm(a, b.t(), scale_a, scale_b, out_dtype=torch.bfloat16),
        "cutlet.gemm(out=)": lambda: cutlet.gemm(a, b.t(), out=out, scale_a=scale_a, scale_b=scale_b),
    }


def of_rows(m, n, k, device):
    """Ways with a scale for each row of a and each column of b, which PyTorch adds fast on GPUs."""
    a, b = (torch.randn(lines, k, device=device).to(E4M3) for lines in (m, n))
    scale_a, scale_b = torch.rand(m, 1, device=device), torch.rand(1, n, device=device)
    out = torch.empty(m, n, device=device, dtype=torch.bfloat16)

    def scaled_mm(fast):
        return torch._scaled_mm(a, b.t(), scale_a, scale_b, out_dtype=torch.bfloat16, use_fast_accum=fast)

    def gemm(precision):
        return cutlet.gemm(a, b.t(), out=out, scale_a=scale_a, scale_b=scale_b, precision=precision)

    return {
        "torch._scaled_mm": lambda: scaled_mm(False),
        "cutlet.gemm(out=)": lambda: gemm("exact"),
        "torch._scaled_mm, fast accumulation": lambda: scaled_mm(True),
        "cutlet.gemm(out=), fast accumulation": lambda: gemm("fast-accumulation"),
    }


def main():
    found = options(__doc__)
    shapes = [(4096, 4096, 4096), (4096, 7168, 16384), (8192, 8192, 8192), (2112, 4096, 7168)]
    shapes += [(rows, 7168, 18432) for rows in (1, 16, 64, 128)]
    for m, n, k in [(16, 128, 256)] if found.tiny else shapes:
        compare(f"{m} × {n} × {k}, one scale", of_tensors(m, n, k, found.device), tolerance=2e-2)
        if not found.tiny:
            compare(f"{m} × {n} × {k}, scales of rows", of_rows(m, n, k, found.device), tolerance=2e-2)
        if not found.tiny and m > 1:
            compare(f"{m} × {n} × {k}, scales of blocks", of_blocks(m, n, k, found.device), tolerance=2e-2)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
