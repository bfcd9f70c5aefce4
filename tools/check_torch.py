#!/usr/bin/env python3
"""check_torch.py VERSION: whether the torch that Python imports is the one that was asked for.

torch is the only package that tools/setup installs without a hash. Checked instead: its version, that the files are
those of the package that pip knows, that its build (cpu, cu130) is what its name says, and that it was compiled with
the ABI of C++11, which our sources need. Prints one line and returns 1 when something is not so.
"""

import importlib.metadata
import sys


def problem(torch, installed: str, wanted: str) -> str | None:
    """What is wrong with a module `torch` whose package pip calls `installed`; None: nothing."""
    version, _, build = torch.__version__.partition("+")
    if version != wanted:
        return f"torch must be version {wanted}, is {torch.__version__}"
    if installed != torch.__version__:
        return f"torch must be the package that pip installed, {installed}, is {torch.__version__} from {torch.__file__}"
    if torch.version.cuda is not None:
        real = "cu" + torch.version.cuda.replace(".", "")
    else:
        real = "rocm" + torch.version.hip if torch.version.hip is not None else "cpu"
    if build and build != real and not real.startswith("rocm"):
        return f"torch must be the build that its name says, {build}, is one for {real}"
    if not torch.compiled_with_cxx11_abi():
        return "torch must be compiled with the ABI of C++11, is not"
    return None


def main() -> None:
    try:
        import torch

        what = problem(torch, importlib.metadata.version("torch"), sys.argv[1])
    except (ImportError, OSError) as error:  # a library of a GPU is missing
        what = f"torch must be importable, is not: {error}"
    if what is not None:
        sys.exit(f"setup: {what} (remove it: .venv/bin/python -m pip uninstall torch)")


if __name__ == "__main__":
    main()
