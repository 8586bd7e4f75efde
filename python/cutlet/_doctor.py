"""What a machine has for cutlet."""

import sys

from ._cutlet import report

_FRAMEWORKS = ("torch", "cupy", "jax", "numpy", "ml_dtypes")


def doctor() -> str:
    """What this machine has: the driver, its GPUs, the kernels that run there, and the frameworks. Paste it into a bug
    report.
    """
    # Not at the top: it takes longer than all else that an import of cutlet does.
    from importlib.metadata import PackageNotFoundError, version

    lines = [report().rstrip("\n"), f"python: {sys.version.split()[0]}"]
    for name in _FRAMEWORKS:
        try:
            lines.append(f"{name}: {version(name)}")
        except PackageNotFoundError:
            lines.append(f"{name}: not installed")
    return "\n".join(lines)
