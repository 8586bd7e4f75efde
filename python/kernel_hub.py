"""Makes the folder from which Hugging Face's ``kernels`` loads the package: python kernel_hub.py WHEEL FOLDER

FOLDER/build/torch-universal gets the package and ``metadata.json``. The folder ``cutlet`` in it is for versions of
``kernels`` that look for one of the package's name. A library that the Hub does not take is refused.
"""

import base64
import hashlib
import json
import pathlib
import re
import shutil
import struct
import sys
import tempfile
import zipfile

NAME, VARIANT = "cutlet", pathlib.PurePath("build", "torch-universal")

#: The Hub's number of the package's interface. By its convention, 0 is for those that still change.
VERSION = 0

#: The driver compiles PTX for Ampere or newer.
BACKEND = {"type": "cuda", "archs": ["8.0+PTX"]}

#: What any Linux has, by the policy of manylinux_2_28.
LIBRARIES = re.compile(r"(lib(c|m|dl|rt|pthread|gcc_s)\.so\.\d|ld-linux-.*\.so\.\d)")
GLIBC = (2, 28)

#: Imports the package under the name that newer versions of ``kernels`` give it, so that there is one of it.
_FOR_OLDER = '''"""The package, for versions of ``kernels`` that look for a folder of its name."""

import importlib.util
import pathlib
import sys

_ID = "{id}"
if _ID not in sys.modules:
    _path = pathlib.Path(__file__).parent.parent / "__init__.py"
    _spec = importlib.util.spec_from_file_location(_ID, _path)
    sys.modules[_ID] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules[_ID])
_package = sys.modules[_ID]
globals().update({{name: getattr(_package, name) for name in [*_package.__all__, "__all__", "__doc__", "__version__"]}})


def __getattr__(name):
    return getattr(_package, name)
'''


def make(package, folder):
    """Makes the folder of a package's folder. Returns where the variant is."""
    variant = pathlib.Path(folder) / VARIANT
    shutil.rmtree(variant, ignore_errors=True)
    shutil.copytree(package, variant, ignore=shutil.ignore_patterns("__pycache__"))
    for library in variant.glob("*.so"):
        check_library(library)
    identifier = f"_{NAME}_{_digest_of_all(variant)[:7]}"
    older = variant / NAME / "__init__.py"
    older.parent.mkdir()
    older.write_text(_FOR_OLDER.format(id=identifier))
    metadata = {
        "id": identifier,
        "name": NAME,
        "version": VERSION,
        "license": "Apache-2.0",
        "upstream": "https://github.com/cutlet-rs/cutlet",
        "python-depends": [],
        "backend": BACKEND,
        "digest": {"algorithm": "sha256", "files": {name: _digest(path) for name, path in _files(variant)}},
    }
    (variant / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")
    return variant


def _files(variant):
    """The files of a variant, with their names in the metadata."""
    found = (path for path in sorted(variant.rglob("*")) if path.is_file())
    return [(path.relative_to(variant).as_posix(), path) for path in found]


def _digest(path):
    return base64.b64encode(hashlib.sha256(path.read_bytes()).digest()).decode()


def _digest_of_all(variant):
    """A digest of names and contents, so that other contents have another identifier."""
    whole = hashlib.sha256()
    for name, path in _files(variant):
        whole.update(f"{name} {_digest(path)}\n".encode())
    return whole.hexdigest()


def check_library(path):
    """Raises an error if an extension module needs other libraries or a newer glibc than the Hub has."""
    if ".abi3." not in path.name:
        raise ValueError(f"{path.name} is for one version of Python; build it with abi3")
    others = [name for name in needed(path) if not LIBRARIES.fullmatch(name)]
    if others:
        raise ValueError(f"{path.name} needs {', '.join(others)}, which not every Linux has")
    newest = max(versions(path), default=(0, 0))
    if newest > GLIBC:
        raise ValueError(f"{path.name} needs glibc {newest[0]}.{newest[1]}, and the Hub has {GLIBC[0]}.{GLIBC[1]}")


def _dynamic(data):
    """The entries of the dynamic section of an ELF file for 64 bits, and the table of their strings."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("it is no ELF file for 64 bits")
    (offset,), (size, count) = struct.unpack_from("<Q", data, 0x28), struct.unpack_from("<HH", data, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, offset + nth * size) for nth in range(count)]
    for _, kind, _, _, start, length, link, *_ in sections:
        if kind == 6:  # SHT_DYNAMIC
            strings = data[sections[link][4] :][: sections[link][5]]
            return [struct.unpack_from("<QQ", data, start + at) for at in range(0, length, 16)], strings
    raise ValueError("it has no dynamic section")


def needed(path):
    """The names of the libraries that an ELF file needs."""
    entries, strings = _dynamic(path.read_bytes())
    return [strings[at : strings.index(b"\0", at)].decode() for tag, at in entries if tag == 1]  # DT_NEEDED


def versions(path):
    """The versions of glibc whose symbols an ELF file needs."""
    _, strings = _dynamic(path.read_bytes())
    return [(int(major), int(minor)) for major, minor in re.findall(rb"\0GLIBC_(\d+)\.(\d+)", strings)]


def main(wheel, folder):
    with tempfile.TemporaryDirectory() as unpacked:
        zipfile.ZipFile(wheel).extractall(unpacked)
        variant = make(pathlib.Path(unpacked) / NAME, folder)
    size = sum(path.stat().st_size for _, path in _files(variant))
    print(f"{variant} has {size / 1e6:.1f} MB; upload the folder above `build` to a repository of kernels")


if __name__ == "__main__":
    main(*sys.argv[1:])
