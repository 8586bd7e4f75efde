"""Times PyTorch at problems of cutlet's benchmarks.

Standard input has a problem a line: an operation, a number of rounds, and extents. For each way to solve a problem,
a line is printed: the problem's number, the way, and its microseconds or why there are none, separated by tabs.
"""

import sys

import torch
import torch.nn.attention

RUNS = 8


def median_microseconds(run, rounds):
    """The median time of a run, over rounds of several runs."""
    for _ in range(3):
        run()
    times = []
    for _ in range(rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for _ in range(RUNS):
            run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / RUNS)
    return sorted(times)[rounds // 2]


def in_graph(run):
    """A replay of the run in a CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph.replay


def indices_of(distribution, count, rows):
    """Indices of a table, distributed like those of cutlet's benchmark."""
    if distribution == "zipf":
        ranks = (rows ** torch.rand(count, device="cuda", dtype=torch.float64)).long() - 1
        return torch.randint(rows, (rows,), device="cuda")[ranks.clamp(0, rows - 1)]
    if distribution == "repeated":
        return torch.randint(rows, (1024,), device="cuda")[torch.randint(1024, (count,), device="cuda")]
    indices = torch.randint(rows, (count,), device="cuda")
    return indices.sort().values if distribution == "sorted" else indices


def moved_rows(operation, dtype, distribution, row_bytes, rows, table_rows, group):
    """The ways to move rows."""
    dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    columns = int(row_bytes) // dtype.itemsize
    rows, table_rows, group = int(rows), int(table_rows), int(group)
    table = torch.randn(table_rows, columns, device="cuda", dtype=dtype)
    indices = indices_of(distribution, rows, table_rows)
    if operation == "index_select":
        return {operation: lambda: torch.index_select(table, 0, indices)}
    if operation == "embedding_bag":
        bags = indices.view(-1, group)
        return {operation: lambda: torch.nn.functional.embedding_bag(bags, table, mode="sum")}
    source = torch.randn(rows, columns, device="cuda", dtype=dtype)
    move = {"index_add": table.index_add_, "index_copy": table.index_copy_}[operation]
    return {operation: lambda: move(0, indices, source)}


def contraction(dtype, notation, *extents):
    """The ways to contract two tensors."""
    torch.backends.cuda.matmul.allow_tf32 = dtype == "tf32"
    types = {name: torch.float32 for name in ("f32", "tf32", "3xtf32")}
    types |= {"f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
    dtype = types[dtype]
    extents = {mode: int(extent) for mode, extent in (it.split("=") for it in extents)}
    modes = notation.split("->")[0].split(",")
    a, b = (torch.randn([extents[mode] for mode in of], device="cuda", dtype=dtype) for of in modes)
    return {"einsum": lambda: torch.einsum(notation, a, b)}


def scaled_product(dtype, *extents):
    """The ways to multiply 8-bit floats. A run goes through so many tensors that none is in a cache."""
    m, n, k = map(int, extents)
    k_blocks, n_blocks = -(-k // 128), -(-n // 128)

    def random(*extents):
        return torch.rand(*extents, device="cuda") + 0.5

    def scales():
        if dtype == "e4m3-outer":
            return random(m, 1), random(1, n)
        if dtype == "e4m3-blocks":
            # Those of a column of blocks begin at multiples of four.
            return random(k_blocks, m).t(), random(n_blocks, -(-k_blocks // 4) * 4)[:, :k_blocks].t()
        return random(()), random(())

    def operands():
        a, b = (torch.randn(lines, k, device="cuda").to(torch.float8_e4m3fn) for lines in (m, n))
        return a, b.t(), *scales()

    sets = [operands() for _ in range(1 + (256 << 20) // ((m + n) * k))]
    options = {"out_dtype": torch.bfloat16, "use_fast_accum": dtype == "e4m3-fast"}

    def run():
        for operands in sets:
            torch._scaled_mm(*operands, **options)

    run.parts = len(sets)
    return {"_scaled_mm": run}


def mixture_of_experts(*extents):
    """The ways to compute a layer of a mixture of experts."""
    tokens, width, experts, top_k, inner = map(int, extents)
    options = {"device": "cuda", "dtype": torch.bfloat16}
    features = torch.randn(tokens, width, **options)
    router = torch.randn(width, experts, **options) / width**0.5
    first = (torch.randn(experts, 2 * inner, width, **options) / width**0.5).transpose(1, 2)
    second = (torch.randn(experts, width, inner, **options) / inner**0.5).transpose(1, 2)

    def experts_of_rows():
        logits, choices = torch.topk((features @ router).float(), top_k, dim=1)
        choices = choices.flatten()
        order = torch.sort(choices, stable=True).indices
        ones = torch.ones_like(choices, dtype=torch.int32)
        counts = torch.zeros(experts, device="cuda", dtype=torch.int32).index_add_(0, choices, ones)
        ends = torch.cumsum(counts, 0).to(torch.int32)
        token_of_row = order // top_k
        rows = features.index_select(0, token_of_row)
        gates, ups = torch._grouped_mm(rows, first, offs=ends).chunk(2, 1)
        gated = torch.nn.functional.silu(gates) * ups
        results = torch._grouped_mm(gated, second, offs=ends)
        return torch.softmax(logits, 1), order, token_of_row, results

    def sum_of_copies():
        shares, order, _, results = experts_of_rows()
        by_token = torch.empty_like(results)
        by_token[order] = results
        by_token = by_token.view(tokens, top_k, width)
        return (by_token * shares.unsqueeze(-1).to(results.dtype)).sum(1)

    def index_add():
        shares, order, token_of_row, results = experts_of_rows()
        weighted = results * shares.flatten()[order].unsqueeze(1).to(results.dtype)
        return torch.zeros_like(features).index_add_(0, token_of_row, weighted)

    return {"_grouped_mm, sum": sum_of_copies, "_grouped_mm, index_add": index_add}


def attention(*extents):
    """The ways to compute attention."""
    run, _ = attention_of(extents)
    return {name: lambda backend=backend: run(backend) for name, backend in attention_backends().items()}


def attention_backward(*extents):
    """The ways to compute the gradients of attention."""
    run, operands = attention_of(extents, requires_grad=True)

    def of(backend):
        kept = []

        def gradients():
            if not kept:
                output = run(backend)
                kept.extend([output, torch.randn_like(output)])
            return torch.autograd.grad(kept[0], operands, kept[1], retain_graph=True)

        gradients.is_captured = False  # A failed capture of cuDNN's leaves the generator unusable.
        return gradients

    return {name: of(backend) for name, backend in attention_backends().items()}


def attention_backends():
    """The kernels that attention is computed by."""
    backends = torch.nn.attention.SDPBackend
    return {"cuDNN": backends.CUDNN_ATTENTION, "FlashAttention": backends.FLASH_ATTENTION}


def attention_of(extents, requires_grad=False):
    """Attention by a backend, and its operands."""
    sequences, tokens, heads, heads_of_keys, features, causal = map(int, extents)

    def of_heads(heads):
        options = {"device": "cuda", "dtype": torch.bfloat16, "requires_grad": requires_grad}
        return torch.randn(sequences, tokens, heads, features, **options)

    operands = of_heads(heads), of_heads(heads_of_keys), of_heads(heads_of_keys)
    options = {"is_causal": bool(causal), "enable_gqa": heads != heads_of_keys}

    def run(backend):
        q, k, v = (operand.transpose(1, 2) for operand in operands)
        with torch.nn.attention.sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, **options)

    return run, operands


def on_rows(operation, *extents):
    """The ways to compute an operation on rows. A run goes through so many tensors that none is in a cache."""
    rows, columns = map(int, extents)
    functional = torch.nn.functional
    weight = torch.randn(columns, device="cuda", dtype=torch.bfloat16)

    def rms_norm_residual(x, residual):
        residual.add_(x)
        return functional.rms_norm(residual, (columns,), weight, 1e-6)

    function = {
        "rms_norm": lambda x, _: functional.rms_norm(x, (columns,), weight, 1e-6),
        "rms_norm_residual": rms_norm_residual,
        "layer_norm": lambda x, _: functional.layer_norm(x, (columns,), weight, weight, 1e-6),
        "softmax": lambda x, _: torch.softmax(x, -1),
        "add": lambda x, other: x + other,
        "cast": lambda x, _: x.float(),
        "argmax": lambda x, _: torch.argmax(x, -1),
        "sum": lambda x, _: torch.sum(x, -1),
        "column_sum": lambda x, _: torch.sum(x, 0),
        "top_k": lambda x, _: torch.topk(x, 50, -1),
    }[operation]

    def tensor():
        return torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)

    sets = [(tensor(), tensor()) for _ in range(1 + (256 << 20) // (8 * rows * columns))]

    def of_all(function):
        def run():
            for x, other in sets:
                function(x, other)

        run.parts = len(sets)
        return run

    return {"eager": of_all(function), "torch.compile": of_all(torch.compile(function, dynamic=False))}


def main():
    problems = sys.stdin.read().splitlines()
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}", flush=True)
    for number, problem in enumerate(problems):
        operation, rounds, *extents = problem.split()
        runs = {}
        try:
            makers = {"moe": mixture_of_experts, "einsum": contraction, "rows": on_rows, "scaled_mm": scaled_product}
            makers |= {"attention": attention, "attention_backward": attention_backward}
            make = makers.get(operation, lambda *it: moved_rows(operation, *it))
            runs = make(*extents)
        except Exception as error:
            print(number, operation, repr(error).replace("\n", " ")[:200], sep="\t", flush=True)
        for name, run in runs.items():
            ways = [(name, lambda it: it), (f"{name}, in a graph", in_graph)]
            for way, prepare in ways[: 1 + getattr(run, "is_captured", True)]:
                try:
                    microseconds = median_microseconds(prepare(run), int(rounds)) / getattr(run, "parts", 1)
                    outcome = f"{microseconds:.2f}"
                except Exception as error:
                    outcome = repr(error).replace("\n", " ")[:200]
                print(number, way, outcome, sep="\t", flush=True)
        del runs
        torch.cuda.empty_cache()


main()
