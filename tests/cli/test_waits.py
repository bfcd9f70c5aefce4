"""The program waits shortly unless it is told how to wait: it starts itself again once, and whoever looks on sees one program."""

import json
import os
import re
import shutil
import subprocess

import pytest

from runs import PROGRAM, call, check, resume_command, train_command

CHOICES = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "ELLIPTICAL_OWN_WAITS")
SHORT = "short (GOMP_SPINCOUNT=1000)"


def environment(**variables):
    return {**{key: value for key, value in os.environ.items() if key not in CHOICES}, **variables}


def works(command):
    """For tools that may be missing, or not allowed to trace."""
    return bool(shutil.which(command[0])) and subprocess.run(command, capture_output=True).returncode == 0


def waits(**variables):
    return json.loads(check([PROGRAM, "info", "--format", "json"], env=environment(**variables)).stdout)["waits"]


def test_waits_are_short_unless_the_user_has_chosen():
    assert waits() == SHORT
    assert waits(OMP_WAIT_POLICY="active") == "as the environment says (OMP_WAIT_POLICY=active)"
    assert waits(GOMP_SPINCOUNT="7") == "as the environment says (GOMP_SPINCOUNT=7)"
    assert waits(OMP_WAIT_POLICY="passive", GOMP_SPINCOUNT="7") == "as the environment says (OMP_WAIT_POLICY=passive, GOMP_SPINCOUNT=7)"


def test_the_openmp_library_is_told():
    """What the library itself says it has read, when it was loaded."""
    told = check([PROGRAM, "--version"], env=environment(OMP_DISPLAY_ENV="VERBOSE")).stderr
    assert told.count("GOMP_SPINCOUNT = '1000'") == told.count("GOMP_SPINCOUNT") == 1


@pytest.mark.skipif(not works(["strace", "-o", "/dev/null", "true"]), reason="strace may not trace processes here")
def test_it_starts_again_once_and_only_then(tmp_path):
    def starts(command, **variables):
        check(["strace", "-f", "-qq", "-e", "trace=execve", "-e", "signal=none", "-o", tmp_path / "trace", *command], env=environment(**variables))
        return (tmp_path / "trace").read_text().count("execve(")

    command = [PROGRAM, "--version"]
    assert starts(command) == 2
    assert starts(command, OMP_WAIT_POLICY="passive") == 1
    assert starts(command, GOMP_SPINCOUNT="300000") == 1
    # valgrind would lose sight of it, and the loader would be given the program's arguments.
    assert starts(command, LD_PRELOAD="/nowhere/vgpreload_core.so") == 1
    loader = next(line.split()[0] for line in check(["ldd", PROGRAM]).stdout.splitlines() if "/ld-linux" in line)
    assert starts([loader, *command]) == 1


def test_what_is_said_and_the_status_stay():
    assert check([PROGRAM, "--version"], env=environment()).stdout.startswith("elliptical ")
    wrong = call([PROGRAM, "bnech", "two  spaces", ""], env=environment())
    assert wrong.returncode == 2 and "did you mean" in wrong.stderr
    named = check(["bash", "-c", f'exec -a other "{PROGRAM}" list simd & wait $!'], env=environment())
    assert "target" in named.stdout


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 2>&-"])
def test_closed_descriptors_stay_closed_to_files(tmp_path, closed):
    run = tmp_path / "run"
    check(["bash", "-c", f'exec "$@" {closed}', "bash", *map(str, train_command(run, train__steps=1))], env=environment())
    check(resume_command(run), env=environment())


def test_a_program_whose_file_is_gone_starts_again_all_the_same(tmp_path):
    program = shutil.copy2(PROGRAM, tmp_path / "elliptical")
    script = "import os, sys; file = os.open(sys.argv[1], os.O_RDONLY); os.unlink(sys.argv[1]); os.execve(file, sys.argv[1:], os.environ)"
    result = check(["python3", "-c", script, program, "info", "--format", "json"], env=environment())
    assert json.loads(result.stdout)["waits"] == SHORT


def test_memory_limits_hold_for_both():
    command = f'ulimit -v 400000; exec "{PROGRAM}" --version'
    result = call(["bash", "-c", command], env=environment())
    assert result.returncode in (1, 127) and len(result.stderr.splitlines()) == 1, result.stderr


@pytest.mark.skipif(not works(["gdb", "-batch", "-ex", "run", "true"]), reason="gdb may not trace processes here")
def test_a_debugger_stops_in_main():
    commands = ["-ex", "set confirm off", "-ex", "break main", "-ex", "run", "-ex", "continue"]
    result = check(["gdb", "-batch", "-nx", *commands, "--args", PROGRAM, "--version"], env=environment())
    assert len(re.findall(r"^Breakpoint 1.* main ", result.stdout, re.MULTILINE)) == 1
    assert "elliptical " in result.stdout and "exited normally" in result.stdout
