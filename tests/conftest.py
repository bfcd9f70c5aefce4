"""What all Python tests share: where the repository is and how to run the program."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def elliptical():
    """Runs the program of the release build with some arguments."""
    program = ROOT / "build" / "release" / "elliptical"

    def run(*arguments, **options):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=300, **options)

    return run
