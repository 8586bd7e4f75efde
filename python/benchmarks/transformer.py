"""A transformer of four layers, and the same one by `cutlet.nn.replace`: python transformer.py

Its weights are random and of bf16. Attention and norms are PyTorch's in both.
"""

import copy

import torch
from torch import nn
from torch.nn.functional import gelu, scaled_dot_product_attention

import cutlet.nn

from interleaved import compare, compiled, options

LAYERS = 4


class Block(nn.Module):
    """Causal attention, and two products with GELU between."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        sequences, tokens, width = x.shape
        heads = self.query_key_value(self.before_attention(x)).view(sequences, tokens, 3, self.heads, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)
        attended = scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(attended.transpose(1, 2).reshape(sequences, tokens, width))
        return x + self.down(gelu(self.up(self.before_mlp(x)), approximate="tanh"))


def main():
    found = options(__doc__)
    width, heads, shapes = (32, 2, [(1, 5)]) if found.tiny else (2048, 16, [(1, 16), (4, 2048)])
    torch.manual_seed(7)
    model = nn.Sequential(*(Block(width, heads) for _ in range(LAYERS))).to(found.device, torch.bfloat16).eval()
    replaced = cutlet.nn.replace(copy.deepcopy(model))
    compiled_model, compiled_replaced = compiled(model, found.device), compiled(replaced, found.device)
    for sequences, tokens in shapes:
        x = torch.randn(sequences, tokens, width, device=found.device, dtype=torch.bfloat16)
        ways = {
            "PyTorch": lambda: model(x),
            "cutlet.nn.replace": lambda: replaced(x),
            "PyTorch, compiled": lambda: compiled_model(x),
            "cutlet.nn.replace, compiled": lambda: compiled_replaced(x),
        }
        compare(f"{LAYERS} layers of {width}, {sequences} × {tokens} tokens, bf16", ways, tolerance=2e-2)


if __name__ == "__main__":
    with torch.inference_mode():
        main()
