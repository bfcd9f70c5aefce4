"""Memory that is not there costs the work of the moment and nothing else. Fault IDs: M1, M2."""

import os
import random
import re
import resource
import signal
import subprocess
import time
from pathlib import Path

import pytest

from runs import PROGRAM, call, check, losses, num_logged, records, resume_command, steps, train_command, wait_until, weights

# Activations are most of what it takes, and evaluations take more than steps.
LARGER = {
    "task__batch_size": 32,
    "task__model__window": 64,
    "task__model__dim": 64,
    "task__model__feedforward_dim": 256,
    "train__steps": 8,
    "train__checkpoint_interval": 1,
    "train__checkpoints_kept": 2,
    "train__eval_interval": 4,
}
ADVICE = "(smaller batches, windows or models; fewer --jobs; close other programs)"
ADVICE_BEFORE_MAIN = "(close other programs; raise ulimit -v where it is set)"
# The estimate beforehand would refuse what is tried here.
UNCHECKED = {**os.environ, "ELLIPTICAL_MEMORY": "none"}


def status_kb(process, name):
    """One number of /proc/PID/status; 0 when the process is gone."""
    try:
        found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(found.group(1)) if found else 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that had all it needs, and the most address space it ever had, in kB."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    process = subprocess.Popen(train_command(run, **LARGER), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    peak = 0
    while process.poll() is None:
        peak = max(peak, status_kb(process, "VmPeak"))
        time.sleep(0.005)
    assert process.returncode == 0
    return run, peak


def limited(command, kilobytes):
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (1024 * kilobytes, 1024 * kilobytes))

    return call(command, env=UNCHECKED, preexec_fn=limit)


def expect_refusal(result):
    """One sentence with advice, and the status of a failure: no abort, no trace."""
    assert result.returncode == 1, (result.returncode, result.stderr)
    line = result.stderr.splitlines()[-1]
    assert line.startswith("elliptical: memory: ") and line.endswith((ADVICE, ADVICE_BEFORE_MAIN)), result.stderr
    assert "terminate" not in result.stderr


def expect_same(run, whole):
    check(resume_command(run))
    assert weights(run) == weights(whole) and losses(run) == losses(whole) and records(run) == records(whole)


def test_m1_libraries_that_do_not_fit_are_told(whole, tmp_path):
    """Torch takes memory before the program begins; too little for that is a sentence as well."""
    refused = set()
    for percent in range(60, 90, 3):
        result = limited([PROGRAM, "info"], whole[1] * percent // 100)
        assert result.returncode in (0, 1, 127), (percent, result.returncode, result.stderr)
        if result.returncode == 127:  # who says so is the loader of the system
            assert "error while loading shared libraries" in result.stderr
        if result.returncode == 1:
            expect_refusal(result)
            refused.add(percent)
    assert refused


def test_m2_what_the_oom_killer_ends_is_resumed(whole, tmp_path):
    """It sends SIGKILL to who has most, so to a process that is just taking more: in a step, an evaluation, a save."""
    numbers = random.Random(2)
    run, kills = tmp_path / "run", 0
    command = train_command(run, **LARGER)
    while kills < 5:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        peak, end = 0, time.monotonic() + numbers.uniform(0.1, 1.5)
        while process.poll() is None:
            now = status_kb(process, "VmRSS")
            if now > peak and time.monotonic() > end and num_logged(run) > 0:
                break
            peak = max(peak, now)
            time.sleep(0.001)
        process.kill()
        _, errors = process.communicate()
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, errors
        kills += 1
        if (run / "config.toml").exists():
            command = resume_command(run)
    assert kills > 0
    expect_same(run, whole[0])
