"""PyTorch's times of the decoder in `examples/11_llama.rs`: python decoder.py

The sizes are those of Llama 3.2 1B, with random weights of bf16 and a static cache of keys and values. The layers are
one compiled function, and the prompt and a step are a CUDA graph each. The next token is the most probable one. A step
is compiled in several ways, each of which is a line.
"""

import argparse
import dataclasses
import statistics
import time

import torch
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import linear, rms_norm, scaled_dot_product_attention, silu

EPSILON, BASE = 1e-5, 500_000.0


@dataclasses.dataclass
class Config:
    layers: int = 16
    width: int = 2048
    heads: int = 32
    heads_of_keys: int = 8
    hidden: int = 8192
    vocabulary: int = 128_256
    prompt: int = 2048
    generated: int = 128
    batches: tuple = (1, 16)

    @property
    def features(self):
        return self.width // self.heads


TINY = Config(2, 64, 4, 2, 96, 200, 13, 4, (1, 3))


class Model:
    """Weights. A layer's norms stand behind its attention and behind the layer."""

    def __init__(self, config, device):
        def weight(*shape):
            return torch.randn(shape, device=device, dtype=torch.bfloat16) * shape[-1] ** -0.5

        def norm():
            return torch.full((config.width,), 1.25, device=device, dtype=torch.bfloat16)

        width, qkv = config.width, (config.heads + 2 * config.heads_of_keys) * config.features
        shapes = (qkv, width), (width, width), (2 * config.hidden, width), (width, config.hidden)
        self.layers = [[*(weight(*shape) for shape in shapes), norm(), norm()] for _ in range(config.layers)]
        self.norm, self.head = norm(), weight(config.vocabulary, width)
        pairs = torch.arange(0, config.features, 2, device=device, dtype=torch.float64)
        positions = torch.arange(config.prompt + config.generated, device=device, dtype=torch.float64)
        angles = positions[:, None] * BASE ** -(pairs / config.features)
        self.cosines, self.sines = angles.cos().float(), angles.sin().float()
        matrices = [self.head] + [matrix for layer in self.layers for matrix in layer if matrix.dim() == 2]
        self.bytes = sum(2 * matrix.numel() for matrix in matrices)


def rotated(x, cosines, sines):
    """(sequence, head, token, feature), by the angles (token, pair)."""
    first, second = x.float().chunk(2, dim=-1)
    return torch.cat((first * cosines - second * sines, second * cosines + first * sines), dim=-1).to(x.dtype)


def normed(x, weight):
    return rms_norm(x, weight.shape, weight, EPSILON)


def masked(queries, keys, values, position):
    """Attention to the first keys of the cache, by a mask."""
    mask = (torch.arange(keys.shape[2], device=keys.device) <= position).expand(queries.shape[2], -1)
    return scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=True)


def flex(queries, keys, values, position):
    """As `masked`, with a kernel that splits the keys."""
    last = position[0]

    def up_to_position(score, sequence, head, query, key):
        return torch.where(key <= last, score, -float("inf"))

    return flex_attention(queries, keys, values, score_mod=up_to_position, enable_gqa=True)


def causal(queries, keys, values, position):
    return scaled_dot_product_attention(queries, keys, values, is_causal=True, enable_gqa=True)


def layer_of(attend, config, sequences):
    """A layer as a function of tensors: all layers are one compiled function. It returns the next layer's input."""
    split = [count * config.features for count in (config.heads, config.heads_of_keys, config.heads_of_keys)]

    def layer(x, normal, weights, keys, values, position, positions, cosines, sines):
        qkv, output, gated, down, after_attention, after_layer = weights
        queries, new_keys, new_values = (
            part.view(sequences, -1, part.shape[1] // config.features, config.features).transpose(1, 2)
            for part in linear(normal, qkv).split(split, dim=1)
        )
        cosines, sines = cosines[positions], sines[positions]
        queries, new_keys = rotated(queries, cosines, sines), rotated(new_keys, cosines, sines)
        keys.index_copy_(2, positions, new_keys)
        values.index_copy_(2, positions, new_values)
        if attend is causal:
            keys, values = new_keys, new_values
        attended = attend(queries, keys, values, position).transpose(1, 2).reshape(x.shape[0], -1)
        x = x + linear(attended, output)
        gates, ups = linear(normed(x, after_attention), gated).chunk(2, dim=1)
        x = x + linear(silu(gates) * ups, down)
        return x, normed(x, after_layer)

    return layer


def head(normal, weight, sequences):
    logits = linear(normal.view(sequences, -1, normal.shape[1])[:, -1], weight)
    return logits, logits.argmax(dim=1)


class Decoder:
    """Sequences, and their cache: (sequence, head, position, feature)."""

    def __init__(self, model, config, sequences, device):
        shape = (sequences, config.heads_of_keys, config.prompt + config.generated, config.features)
        zeros = [torch.zeros(shape, device=device, dtype=torch.bfloat16) for _ in range(2 * config.layers)]
        self.model, self.config, self.sequences = model, config, sequences
        self.caches = list(zip(zeros[::2], zeros[1::2]))
        self.prompt = torch.randint(config.vocabulary, (sequences * config.prompt,), device=device)
        self.of_prompt = torch.arange(config.prompt, device=device)
        self.tokens = torch.zeros(sequences, device=device, dtype=torch.int64)
        self.position = torch.full((1,), config.prompt, device=device, dtype=torch.int64)

    def run(self, layer, last, is_prompt):
        model = self.model
        x = torch.nn.functional.embedding(self.prompt if is_prompt else self.tokens, model.head)
        normal = normed(x, model.norm)
        positions = self.of_prompt if is_prompt else self.position
        for weights, cache in zip(model.layers, self.caches):
            x, normal = layer(x, normal, weights, *cache, self.position, positions, model.cosines, model.sines)
        logits, tokens = last(normal, model.head, self.sequences)
        self.tokens.copy_(tokens)
        self.position.fill_(self.config.prompt) if is_prompt else self.position.add_(1)
        return logits


def graph_of(run, device):
    """A replay of the run, and what the run returns."""
    if device == "cpu":
        return run, run()
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    return graph.replay, result


def milliseconds(run, times, device):
    """The median time of groups of runs, as the device counts."""
    if device == "cpu":
        begin = time.perf_counter()
        run()
        return 1e3 * (time.perf_counter() - begin)
    found = []
    for _ in range(5):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(times):
            run()
        end.record()
        end.synchronize()
        found.append(begin.elapsed_time(end) / times)
    return statistics.median(found)


def measure(name, decoder, attend, options, device):
    """Compiles the prompt or a step, compares it with what is not compiled, and prints its time."""
    is_prompt = attend is causal
    layer = layer_of(attend, decoder.config, decoder.sequences)
    torch.compiler.reset()
    began = time.perf_counter()
    how = {"fullgraph": True, "dynamic": False}
    how |= {"options": options} if device == "cuda" else {"backend": "aot_eager"}
    compiled, last = (torch.compile(function, **how) for function in (layer, head))
    state = decoder.tokens.clone(), decoder.position.clone()

    def reset():
        decoder.tokens.copy_(state[0])
        decoder.position.copy_(state[1])

    plain = layer_of(masked if attend is flex else attend, decoder.config, decoder.sequences)
    expected = decoder.run(plain, head, is_prompt).double()
    reset()
    replay, logits = graph_of(lambda: decoder.run(compiled, last, is_prompt), device)
    seconds = time.perf_counter() - began
    reset()
    replay()
    error = float((logits.double() - expected).norm() / expected.norm())
    reset()
    # Five groups of steps stay within the cache.
    taken = milliseconds(replay, 2 if is_prompt else decoder.config.generated // 8, device)
    reset()
    found = f"{decoder.sequences:3} × {name:36} {taken:9.3f} ms, error {error:.1e}, {seconds:.0f} s to compile"
    rate = "" if is_prompt else f", weights at {decoder.model.bytes / taken / 1e6:.0f} GB/s"
    print(found + rate, flush=True)
    if is_prompt:
        replay()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tiny", action="store_true", help="a small model on the CPU: a test of the script")
    tiny = parser.parse_args().tiny
    config, device = (TINY, "cpu") if tiny else (Config(), "cuda")
    print(f"{'the CPU' if tiny else torch.cuda.get_device_name()}, PyTorch {torch.__version__}")
    torch.manual_seed(7)
    model = Model(config, device)
    cublas, tuned = {}, {"max_autotune": True}
    # With it, products with one row are made without cuBLAS, as reductions at the memory's speed.
    descent = {"coordinate_descent_tuning": True}
    decoders = [Decoder(model, config, sequences, device) for sequences in config.batches]
    for decoder in decoders:
        measure("prompt", decoder, causal, cublas, device)
        measure("step, mask", decoder, masked, descent if decoder.sequences == 1 else cublas, device)
    # Uncompiled, as on the CPU, it takes no heads that share keys.
    for decoder in decoders if device == "cuda" else []:
        measure("step, flex_attention", decoder, flex, descent if decoder.sequences == 1 else cublas, device)
    if device == "cuda":
        measure("step, flex_attention, max_autotune", decoders[-1], flex, tuned, device)


if __name__ == "__main__":
    with torch.no_grad():
        main()
