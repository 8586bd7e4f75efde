"""A layer of a mixture of experts beside one by `torch._grouped_mm`: python moe.py

The layer is that of `cutlet bench moe`, in bf16: 128 experts have 768 inner features, and each token of 2048 features
takes eight of them.
"""

import torch
from torch.nn.functional import silu

import cutlet

from interleaved import compare, graphs, options


def layer_of_pytorch(tokens, router, first, second, k):
    """The layer by ``torch._grouped_mm``, with rows sorted by expert. ``first`` has the gates, and the ups behind."""
    logits, choices = torch.topk((tokens @ router.t()).float(), k, dim=1)
    choices = choices.flatten()
    order = torch.sort(choices, stable=True).indices
    counts = torch.zeros(len(first), device=tokens.device, dtype=torch.int32)
    counts.index_add_(0, choices, torch.ones_like(choices, dtype=torch.int32))
    ends = torch.cumsum(counts, 0).to(torch.int32)
    rows = tokens.index_select(0, order // k)
    gates, ups = torch._grouped_mm(rows, first.transpose(1, 2), offs=ends).chunk(2, 1)
    results = torch._grouped_mm(silu(gates) * ups, second.transpose(1, 2), offs=ends)
    by_token = torch.empty_like(results)
    by_token[order] = results
    shares = torch.softmax(logits, 1).unsqueeze(-1).to(results.dtype)
    return (by_token.view(*logits.shape, -1) * shares).sum(1)


def ways(count, width, experts, k, inner, device):
    options = {"device": device, "dtype": torch.bfloat16}
    router = torch.randn(experts, width, **options) / width**0.5
    # The logits of k experts are far above the others', so that no rounding decides which ones a token chooses.
    choices = torch.rand(count, experts, device=device).topk(k).indices
    tokens = torch.randn(count, width, **options) + 8 * router[choices].sum(1)
    gates_and_ups = torch.randn(experts, 2 * inner, width, **options) / width**0.5
    down = torch.randn(experts, width, inner, **options) / inner**0.5
    gates_then_ups = torch.cat([gates_and_ups[:, 0::2], gates_and_ups[:, 1::2]], 1)
    out = torch.empty_like(tokens)
    eager = {
        "torch._grouped_mm": lambda: layer_of_pytorch(tokens, router, gates_then_ups, down, k),
        "cutlet.moe": lambda: cutlet.moe(tokens, router, gates_and_ups, down, k, out=out),
    }
    return eager | graphs(eager, device)


def main():
    found = options(__doc__)
    width, experts, k, inner = (64, 8, 2, 48) if found.tiny else (2048, 128, 8, 768)
    for count in [24] if found.tiny else [1024, 8192]:
        problem = f"{count} tokens of {width}, {k} of {experts} experts of {inner}, bf16"
        compare(problem, ways(count, width, experts, k, inner, found.device), tolerance=3e-2)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
