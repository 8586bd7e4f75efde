"""The folder that Hugging Face's `kernels` loads: what the Hub demands of it, and that it is imported from there."""

import base64
import hashlib
import importlib.util
import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

import cutlet

PACKAGE = pathlib.Path(cutlet.__file__).parent
_SPEC = importlib.util.spec_from_file_location(
    "kernel_hub", pathlib.Path(__file__).resolve().parent.parent / "kernel_hub.py"
)
kernel_hub = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(kernel_hub)


@pytest.fixture(scope="module")
def variant(tmp_path_factory):
    return kernel_hub.make(PACKAGE, tmp_path_factory.mktemp("hub"))


def test_the_layout(variant):
    assert variant.parts[-2:] == ("build", "torch-universal")
    metadata = json.loads((variant / "metadata.json").read_text())
    assert metadata["name"] == "cutlet" and re.fullmatch(r"_cutlet_[0-9a-f]{7}", metadata["id"])
    assert metadata["backend"]["type"] == "cuda" and isinstance(metadata["version"], int)
    files = {path.relative_to(variant).as_posix() for path in variant.rglob("*") if path.is_file()}
    assert {"__init__.py", "_cutlet.abi3.so", "torch.py", "nn.py", "cutlet/__init__.py"} <= files
    assert files - {"metadata.json"} == set(metadata["digest"]["files"])
    digest = hashlib.sha256((variant / "nn.py").read_bytes()).digest()
    assert metadata["digest"]["files"]["nn.py"] == base64.b64encode(digest).decode()


def test_other_contents_have_another_name(variant, tmp_path):
    changed = tmp_path / "cutlet"
    shutil.copytree(PACKAGE, changed, ignore=shutil.ignore_patterns("__pycache__"))
    (changed / "nn.py").write_text((changed / "nn.py").read_text() + "\n")
    other = json.loads((kernel_hub.make(changed, tmp_path) / "metadata.json").read_text())
    assert other["id"] != json.loads((variant / "metadata.json").read_text())["id"]


def test_modules_import_each_other_by_relative_names():
    for path in PACKAGE.glob("*.py"):
        absolute = re.findall(r"^\s*(?:from|import) cutlet\b.*", path.read_text(), re.M)
        assert all(line.startswith("    ") or ">>>" in line for line in absolute), (path, absolute)


def test_libraries_that_the_hub_does_not_take(monkeypatch, tmp_path):
    library = PACKAGE / "_cutlet.abi3.so"
    kernel_hub.check_library(library)
    assert "libc.so.6" in kernel_hub.needed(library) and (2, 2) < max(kernel_hub.versions(library)) <= (2, 28)
    monkeypatch.setattr(kernel_hub, "GLIBC", (2, 2))
    with pytest.raises(ValueError, match=r"_cutlet.abi3.so needs glibc 2\.\d+, and the Hub has 2.2"):
        kernel_hub.check_library(library)
    monkeypatch.setattr(kernel_hub, "LIBRARIES", re.compile("libm.so.6"))
    with pytest.raises(ValueError, match="_cutlet.abi3.so needs .*libc.so.6.*, which not every Linux has"):
        kernel_hub.check_library(library)
    with pytest.raises(ValueError, match="is for one version of Python"):
        kernel_hub.check_library(tmp_path / "_cutlet.cpython-311-x86_64-linux-gnu.so")


#: As `kernels` imports a package: by its path, under the metadata's name or one of its own. No other package named
#: cutlet is there, nor a framework besides PyTorch.
_LOADING = """
import importlib.util, sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("cutlet", "cupy", "jax", "ml_dtypes", "numba"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Without())
name, path = sys.argv[1:]
spec = importlib.util.spec_from_file_location(name, path)
package = importlib.util.module_from_spec(spec)
sys.modules[name] = package
spec.loader.exec_module(package)
print(package.Layout("(4,2):(2,1)").size())
import torch
x = torch.ones(3, 4, requires_grad=True)
weight = torch.ones(5, 4)
print(package.gemm(x.detach(), weight.t()).sum().item())
package.torch.linear(x, weight).sum().backward()
print(x.grad.sum().item(), package.nn.MoE(8, 4, 2, 1)(torch.ones(3, 8)).shape)
print(sorted(it for it in dir(torch.ops) if "cutlet" in it))
"""


@pytest.mark.parametrize("older", [False, True])
def test_the_package_is_loaded_from_the_folder(variant, older, tmp_path):
    pytest.importorskip("torch")
    identifier = json.loads((variant / "metadata.json").read_text())["id"]
    path = variant / "cutlet" / "__init__.py" if older else variant / "__init__.py"
    command = [sys.executable, "-c", _LOADING, "cutlet_of_a_path" if older else identifier, str(path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["8", "60.0", "60.0 torch.Size([3, 8])", f"['{identifier}']"]
