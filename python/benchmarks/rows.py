"""Sums of rows of a table, and sums into rows of one, beside PyTorch's: python rows.py"""

import torch
from torch.nn.functional import embedding_bag

import cutlet

from interleaved import compare, options


def bags(table, indices):
    out = torch.empty(len(indices), table.shape[1], device=table.device, dtype=table.dtype)
    return {
        "torch.nn.functional.embedding_bag": lambda: embedding_bag(indices, table, mode="sum"),
        "cutlet.embedding_bag": lambda: cutlet.embedding_bag(table, indices, out_of_range="clamp"),
        "cutlet.embedding_bag(out=)": lambda: cutlet.embedding_bag(table, indices, out=out, out_of_range="clamp"),
    }


def sums(source, indices, table):
    of_cutlet, of_ordered = table.clone(), table.clone()

    def add(to, ordered):
        return lambda: cutlet.scatter_add(source, indices, to, ordered=ordered, out_of_range="skip")

    return {
        "torch.Tensor.index_add_": lambda: table.index_add_(0, indices, source),
        "cutlet.scatter_add": add(of_cutlet, ordered=False),
        "cutlet.scatter_add(ordered=True)": add(of_ordered, ordered=True),
    }


def main():
    found = options(__doc__)
    rows, width, count, per_bag = (50, 8, 96, 4) if found.tiny else (1_000_000, 128, 1 << 20, 32)
    indices = torch.randint(rows, (count,), device=found.device)
    for dtype in [torch.float32, torch.bfloat16]:
        table = torch.randn(rows, width, device=found.device, dtype=dtype)
        source = torch.randn(count, width, device=found.device, dtype=dtype)
        problem = f"{rows} rows of {width}, {dtype}"
        compare(
            f"{problem}: {count // per_bag} bags of {per_bag}", bags(table, indices.view(-1, per_bag)), tolerance=1e-2
        )
        compare(f"{problem}: {count} rows added", sums(source, indices, table), tolerance=1e-2)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
