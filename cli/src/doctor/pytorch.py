# Prints a line for each fact, as soon as it is known: importing PyTorch takes seconds.
import importlib.metadata
import importlib.util
import os
import runpy
import sys


def say(*words):
    print(*words, sep="\t", flush=True)


say("python", sys.version.split()[0], sys.executable)
try:
    say("torch", importlib.metadata.version("torch"))
except importlib.metadata.PackageNotFoundError:
    sys.exit(say("torch", "none"))
try:
    folder = os.path.dirname(importlib.util.find_spec("torch").origin)
    say("built for", runpy.run_path(os.path.join(folder, "version.py"))["cuda"] or "no CUDA")
except Exception:
    pass
try:
    import torch

    say("cuda", "available" if torch.cuda.is_available() else "not available")
except Exception as error:
    say("cuda", repr(error).replace("\n", " ")[:200])
