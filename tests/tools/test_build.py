"""tools/build says on one line how far it is, and keeps the rest in a log that it names when something fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def build(tmp_path):
    """tools/build in a folder of its own, with a cmake whose build step prints what ninja would."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "bin").mkdir()
    shutil.copy(ROOT / "tools/build", tmp_path / "tools/build")

    def program(path, script):
        (tmp_path / path).write_text(f"#!/bin/bash\n{script}\n")
        (tmp_path / path).chmod(0o755)

    def run(ninja):
        program("tools/setup", "")
        program("bin/cmake", f'[ "$1" = --build ] || exit 0\necho "$@" >arguments\n{ninja}')
        environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
        return subprocess.run([tmp_path / "tools/build", "dev", "one", "two"], capture_output=True, text=True, env=environment, timeout=60)

    run.folder = tmp_path
    return run


def test_steps_are_one_line(build):
    result = build('for i in $(seq 274); do echo "[$i/274] Building CXX object $i"; done')
    assert result.returncode == 0 and result.stdout == ""
    assert result.stderr == "build: dev 10% 20% 30% 40% 50% 60% 70% 80% 90% 100%\n"
    assert (build.folder / "build/dev-build.log").read_text().count("\n") == 274
    assert (build.folder / "arguments").read_text() == "--build --preset dev --target one two\n"


def test_nothing_to_do_says_nothing(build):
    assert build("echo ninja: no work to do.").stderr == ""


def test_a_failure_shows_what_failed_and_names_the_log(build):
    result = build('for i in 1 2 3 4; do echo "[$i/40] Building $i"; done; echo "FAILED: x.o"; echo "x.cpp:7: error: no"; exit 1')
    assert result.returncode == 1
    assert result.stderr == "build: dev 10%\nFAILED: x.o\nx.cpp:7: error: no\nbuild: the whole output is in build/dev-build.log\n"


def test_a_failure_without_a_step_shows_the_end(build):
    result = build('for i in $(seq 30); do echo "line $i"; done; exit 3')
    assert result.returncode == 3
    assert "line 30" in result.stderr and "line 5\n" not in result.stderr and "dev-build.log" in result.stderr
