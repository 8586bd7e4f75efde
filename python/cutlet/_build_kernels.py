"""Compiles a package of kernels, for :func:`cutlet.load`."""

import json
import os
import subprocess


def build_kernels(package="."):
    """Compiles a package of kernels, as ``cutlet new`` makes one, by cargo.

    Args:
        package: Its folder.

    Returns:
        The folder of its PTX.

    Raises:
        RuntimeError: cargo is missing, the package does not compile, or it has no kernels.

    >>> module = cutlet.load(cutlet.build_kernels("my-kernels"))
    """
    messages = _cargo(package, "build", "--lib", "--message-format=json-render-diagnostics")
    # After the build, which makes the lock file.
    own = _cargo(package, "pkgid").strip()
    for line in messages.splitlines():
        message = json.loads(line)
        if message.get("reason") == "build-script-executed" and message["package_id"] == own:
            folder = dict(message["env"]).get("CUTLET_PTX_FOLDER")
            if folder is not None:
                return folder
    raise RuntimeError(f"{os.path.abspath(package)} has no kernels: its build.rs does not call cutlet_ptx_builder")


def _cargo(package, *arguments):
    """What cargo prints. Its errors go to standard error."""
    try:
        done = subprocess.run(["cargo", *arguments], cwd=package, stdout=subprocess.PIPE, text=True)
    except FileNotFoundError:
        if not os.path.isdir(package):
            raise
        raise RuntimeError("there is no cargo; install Rust, or load PTX that was built elsewhere") from None
    if done.returncode != 0:
        raise RuntimeError(f"`cargo {arguments[0]}` failed in {os.path.abspath(package)}; its error is above")
    return done.stdout
