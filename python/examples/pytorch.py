# ---
# jupyter:
#   jupytext:
#     text_representation: {extension: .py, format_name: percent}
# ---

# %% [markdown]
# # cutlet with PyTorch
# Tensors are used in place, in PyTorch's current stream.

# %%
import torch

import cutlet
import cutlet.nn
import cutlet.torch

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16
print(cutlet.doctor())

# %% [markdown]
# ## A product with what follows it
# One kernel multiplies, adds the bias and applies GELU.

# %%
x, weight, bias = (torch.randn(*shape, device=device, dtype=dtype) for shape in ((64, 128), (96, 128), (96,)))
y = cutlet.gemm(x, weight.t(), bias=bias, activation="gelu")
expected = torch.nn.functional.gelu(torch.nn.functional.linear(x, weight, bias))
print("largest difference:", (y - expected).abs().max().item())

# %% [markdown]
# ## A contraction of tensors as they lie
# Queries and keys of 4 heads are slices of one tensor.

# %%
qkv = torch.randn(2, 16, 3, 4, 8, device=device, dtype=dtype)
scores = cutlet.contract("bshd,bthd->bhst", qkv[:, :, 0], qkv[:, :, 1], dtype=torch.float32)
print(scores.shape)

# %% [markdown]
# ## A layer of a mixture of experts
# How many tokens each expert gets stays on the GPU.

# %%
tokens, router = torch.randn(32, 64, device=device, dtype=dtype), torch.randn(8, 64, device=device, dtype=dtype)
gates_and_ups = torch.randn(8, 2 * 48, 64, device=device, dtype=dtype) / 8
down = torch.randn(8, 64, 48, device=device, dtype=dtype) / 8
print(cutlet.moe(tokens, router, gates_and_ups, down, k=2).shape)

# %% [markdown]
# The same as a module, whose parameters learn.

# %%
layer = cutlet.nn.MoE(width=64, inner=48, experts=8, k=2, device=device)
optimiser = torch.optim.AdamW(layer.parameters(), lr=1e-2)
targets = torch.tanh(tokens.float())
for step in range(4):
    loss = (layer(tokens.float()) - targets).square().mean()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
    print(f"step {step}: {loss.item():.3f}")

# %% [markdown]
# ## A product that runs again and again
# It is checked once, and says by which kernel it runs.

# %%
plan = cutlet.plan_gemm(x, weight.t(), bias=bias, activation="gelu", out=y)
plan(x, weight.t(), bias=bias, out=y)
print(plan.explain())

# %% [markdown]
# ## A model
# `replace` exchanges the linear layers. Gradients are as before.

# %%
model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.SiLU(), torch.nn.Linear(64, 8)).to(device)
inputs = torch.randn(16, 32, device=device)
before = model(inputs)
after = cutlet.nn.replace(model)(inputs)
after.sum().backward()
print("largest difference:", (after - before).abs().max().item())
