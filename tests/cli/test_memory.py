"""Memory that is not there costs the work of the moment and nothing else. Fault IDs: M1, M2."""

import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import preload
import pytest
from runs import PROGRAM, call, check, copy_run, losses, num_logged, records, resume_command, steps, train_command, wait_until, weights

# Activations are most of what it takes, and evaluations take more than steps.
LARGER = {
    "task__batch_size": 32,
    "task__model__window": 64,
    "task__model__dim": 64,
    "task__model__feedforward_dim": 256,
    "train__steps": 8,
    "train__checkpoint_interval": 1,
    "train__checkpoints_kept": 3,
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
    is_allocation = line.startswith("elliptical: memory: ") and line.endswith((ADVICE, ADVICE_BEFORE_MAIN))
    is_estimate = " of memory, the limit of address space (ulimit -v) leaves " in line and line.endswith("tries all the same)")
    is_of_the_system = line.startswith("elliptical: ") and line.endswith(": Cannot allocate memory (close other programs)")
    assert is_allocation or is_estimate or is_of_the_system, result.stderr
    assert "terminate" not in result.stderr


def expect_same(run, whole):
    check(resume_command(run))
    assert weights(run) == weights(whole) and losses(run) == losses(whole) and records(run) == records(whole)


def test_m1_memory_that_ends_anywhere_is_told_and_loses_nothing(whole, tmp_path):
    run, peak = whole
    refused = 0
    for number in range(8):
        # From what loads the libraries and little else to what is nearly enough.
        run = tmp_path / f"run-{number}"
        result = limited(train_command(run, **LARGER), peak * (86 + 2 * number) // 100)
        if result.returncode == 0:
            continue
        refused += 1
        expect_refusal(result)
        if (run / "config.toml").exists():
            expect_same(run, whole[0])
    assert refused >= 4, "of these limits most are too low"


@pytest.mark.parametrize("environment", [UNCHECKED, None], ids=["unchecked", "estimated"])
def test_m1_memory_that_goes_away_while_it_trains(whole, tmp_path, environment):
    """The limit falls below what is in use, as when a neighbour takes the rest: the next allocation fails, or what is
    estimated before an evaluation."""
    numbers = random.Random(1)
    for number in range(3):
        run = tmp_path / f"run-{number}"
        command = train_command(run, **LARGER)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        wanted = numbers.randrange(1, 4)
        wait_until(lambda: num_logged(run) >= wanted, process, f"step {wanted}")
        process.send_signal(signal.SIGSTOP)  # no step goes by between the two
        done = num_logged(run)
        size = status_kb(process, "VmSize") * 1024
        resource.prlimit(process.pid, resource.RLIMIT_AS, (size, size))
        process.send_signal(signal.SIGCONT)
        _, errors = process.communicate(timeout=120)
        result = subprocess.CompletedProcess([], process.returncode, "", errors)
        if result.returncode != 0:
            expect_refusal(result)
            assert steps(run)[-1] >= done - 1, "but for the step that was being saved"
        expect_same(run, whole[0])


def test_m1_an_allocation_that_fails_anywhere_loses_nothing(whole, tmp_path):
    """While a run goes on from its newest checkpoint: a failure there says nothing about the checkpoint."""

    def go_on(run, **variables):
        copy_run(whole[0], run)
        for step in (7, 8):
            shutil.rmtree(run / "checkpoints" / f"step-{step}", ignore_errors=True)
        return run, call(resume_command(run), env=preload.environment(tmp_path, preload.MEMORY, **variables))

    environment = preload.environment(tmp_path, preload.MEMORY, COUNTED=tmp_path / "count")
    check([PROGRAM, "--version"], env=environment)  # what the libraries take before the program begins
    begin = int((tmp_path / "count").read_text())
    _, result = go_on(tmp_path / "counted", COUNTED=tmp_path / "count")
    assert result.returncode == 0, result.stderr
    end = int((tmp_path / "count").read_text())
    refused = 0
    for number in range(12):
        run, result = go_on(tmp_path / "run", FAILING=begin + 1 + (end - begin) * number // 12)
        newest = run / "checkpoints" / "step-6"
        assert newest.is_dir() and not list(newest.parent.glob("*.damaged")), result.stderr
        if result.returncode != 0:
            refused += 1
            expect_refusal(result)
            expect_same(run, whole[0])
    assert refused >= 6, "most of what is asked for is needed"


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
    for _ in range(20):  # some of them are over before we look
        if kills == 5:
            break
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        peak, end = 0, time.monotonic() + numbers.uniform(0, 1)
        while process.poll() is None:
            now = status_kb(process, "VmRSS")
            late = time.monotonic() - end
            if late > 0 and num_logged(run) > 0 and (now > peak or late > 0.1):
                break
            peak = max(peak, now)
            time.sleep(0.001)
        process.kill()
        _, errors = process.communicate()
        if process.returncode == 0:
            if kills > 0:
                break
            shutil.rmtree(run)  # faster than we: from the start again
            continue
        assert process.returncode == -signal.SIGKILL, errors
        kills += 1
        if (run / "config.toml").exists():
            command = resume_command(run)
    assert kills > 0
    expect_same(run, whole[0])
