"""Finds the ops library and loads it; torch comes first, because the library's symbols are in it."""

import os
from importlib.resources import files
from pathlib import Path

import torch

NAME = "libelliptical_ops.so"


def library_path() -> Path:
    """The library that is loaded: $ELLIPTICAL_LIBRARY, else the one installed with the package."""
    named = os.environ.get("ELLIPTICAL_LIBRARY")
    path = Path(named) if named else Path(str(files(__package__) / "lib" / NAME))
    if not path.is_file():
        raise ImportError(
            f"elliptical: {path} must be the ops library, no such file "
            "(run: pip install --no-build-isolation . in the repository, or set ELLIPTICAL_LIBRARY)"
        )
    return path


torch.ops.load_library(str(library_path()))
