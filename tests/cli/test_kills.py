"""Runs that are killed, or whose disk fails, lose nothing. Fault IDs: C1 to C5, C9.

strace injects the faults: a signal or an error at the N-th system call that touches the run's files.
"""

import collections
import errno
import json
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
from runs import (
    call,
    check,
    copy_run,
    heed_interrupts,
    losses,
    needs_strace,
    num_logged,
    records,
    resume_command,
    steps,
    train_command,
    wait_until,
    weights,
    write_state,
)
from small_disk import fill, small_disk

NUM_STEPS = 12
CHECKPOINT_FILES = ["model.safetensors", "optimizer.safetensors", "vocabulary.txt", "state.json"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing disturbed."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    check(train_command(run, train__steps=NUM_STEPS, train__checkpoint_interval=2))
    return run


@pytest.fixture(scope="module")
def before_save(whole, tmp_path_factory):
    """The same run two steps before its end: going on means two steps, one checkpoint, and one less of those before it."""
    run = copy_run(whole, tmp_path_factory.mktemp("runs") / "before")
    checkpoints = run / "checkpoints"
    shutil.rmtree(checkpoints / f"step-{NUM_STEPS}")
    # What has been removed since; nobody reads it while the newer one is whole.
    oldest = checkpoints / f"step-{NUM_STEPS - 4}"
    shutil.copytree(checkpoints / f"step-{NUM_STEPS - 2}", oldest)
    write_state(oldest, {**json.loads((oldest / "state.json").read_text()), "step": NUM_STEPS - 4})
    return run


def expect_same(run, whole):
    assert weights(run) == weights(whole)
    assert losses(run) == losses(whole)
    assert records(run) == records(whole)


def kill_at_random(run, num_steps, num_kills, whole):
    """Trains `run`, kills it `num_kills` times after a random number of further steps, then lets it end."""
    random_numbers = random.Random(1)
    command = train_command(run, train__steps=num_steps, train__checkpoint_interval=2)
    kills = 0
    while kills < num_kills:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wanted = num_logged(run) + random_numbers.randrange(1, 4)
        delay = random_numbers.uniform(0, 0.02)
        try:
            while process.poll() is None and num_logged(run) < wanted:
                time.sleep(0.001)
            time.sleep(delay)
        finally:
            process.kill()
        _, errors = process.communicate()
        if process.returncode == 0:  # faster than we: from the start again
            shutil.rmtree(run)
            command = train_command(run, train__steps=num_steps, train__checkpoint_interval=2)
            continue
        assert process.returncode == -9, errors
        kills += 1
        if (run / "config.toml").exists():
            command = resume_command(run)
    check(resume_command(run))
    expect_same(run, whole)


def test_c1_random_kills(whole, tmp_path):
    kill_at_random(tmp_path / "run", NUM_STEPS, 4, whole)


@pytest.mark.slow
def test_c1_200_random_kills(tmp_path):
    whole = tmp_path / "whole"
    check(train_command(whole, train__steps=400, train__checkpoint_interval=2))
    kill_at_random(tmp_path / "run", 400, 200, whole)


def watched(run):
    """strace's arguments that restrict it to calls on the run's files."""
    checkpoints = run / "checkpoints"
    new, old = checkpoints / f"step-{NUM_STEPS}", checkpoints / f"step-{NUM_STEPS - 4}"
    incomplete = checkpoints / f"{new.name}.incomplete"
    files = CHECKPOINT_FILES
    removed = checkpoints / f"{old.name}.incomplete"
    paths = [checkpoints, new, incomplete, *(incomplete / name for name in files), old, removed]
    paths += [*(removed / name for name in files), *(old / name for name in files)]
    return [argument for path in paths for argument in ("-P", str(path))]


def traced(run, *arguments):
    return ["strace", "-f", "-qq", "-e", "signal=none", "-o", f"{run}.trace", *watched(run), *arguments, *map(str, resume_command(run))]


CALLS = "open,openat,write,fsync,fdatasync,close,rename,renameat,mkdir,rmdir,unlink,unlinkat,ftruncate"


def calls_of_a_save(before_save, tmp_path):
    """The system calls on its files that one checkpoint save makes, in order: (name, how many of that name so far)."""
    run = copy_run(before_save, tmp_path / "counted")
    check(traced(run, "-e", f"trace={CALLS}"))
    counts, calls = collections.Counter(), []
    for line in (tmp_path / "counted.trace").read_text().splitlines():
        name = re.match(r"\d+ +(\w+)\(", line).group(1)
        counts[name] += 1
        calls.append((name, counts[name]))
    return calls


def kill_at_call(before_save, whole, tmp_path, name, number):
    run = copy_run(before_save, tmp_path / "killed")
    result = call(traced(run, "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}"))
    assert result.returncode != 0, f"{name} {number} was not reached"
    check(resume_command(run))
    expect_same(run, whole)
    assert not [path for path in (run / "checkpoints").iterdir() if path.suffix == ".incomplete"]
    assert steps(run) == steps(whole)


@needs_strace
def test_c1_c2_killed_at_system_calls_of_a_save(before_save, whole, tmp_path):
    calls = calls_of_a_save(before_save, tmp_path)
    # Each kind of call the first, the middle and the last time: writing, the renames, and the removal after them.
    of_kind = collections.defaultdict(list)
    for name, number in calls:
        of_kind[name].append(number)
    assert {"mkdir", "write", "fsync", "close", "rename", "rmdir"} <= {name.replace("unlinkat", "rmdir") for name in of_kind}
    assert len(of_kind["rename"]) >= 2, "a checkpoint comes into its place, an older one is removed"
    for name, numbers in of_kind.items():
        for number in sorted({numbers[0], numbers[len(numbers) // 2], numbers[-1]}):
            kill_at_call(before_save, whole, tmp_path, name, number)


@needs_strace
@pytest.mark.slow
def test_c1_c2_killed_at_every_system_call_of_a_save(before_save, whole, tmp_path):
    for name, number in calls_of_a_save(before_save, tmp_path):
        kill_at_call(before_save, whole, tmp_path, name, number)


def failing_save(before_save, whole, tmp_path, fault, message):
    run = copy_run(before_save, tmp_path / "failed")
    result = call(traced(run, "-e", f"inject={fault}"))
    assert result.returncode == 1, result.stderr
    line = result.stderr.splitlines()[-1]
    assert message in line and f"step-{NUM_STEPS}.incomplete" in line, line
    assert steps(run)[-1] == NUM_STEPS - 2
    check(resume_command(run))
    expect_same(run, whole)


@needs_strace
@pytest.mark.parametrize(
    "fault, message",
    [
        ("write:error=ENOSPC:when=2+", "No space left on device"),
        ("write:error=EDQUOT:when=2+", "Disk quota exceeded ("),
        ("fsync:error=EIO:when=2", "Input/output error"),
        ("mkdir:error=EROFS:when=1", "Read-only file system"),
    ],
)
def test_c3_failing_disk(before_save, whole, tmp_path, fault, message):
    failing_save(before_save, whole, tmp_path, fault, message)


@needs_strace
@pytest.mark.slow
@pytest.mark.parametrize("error", ["ENOSPC", "EDQUOT", "EIO", "EROFS"])
@pytest.mark.parametrize("name", ["openat", "write", "fsync", "mkdir", "rename"])
def test_c3_every_error_of_every_call(before_save, whole, tmp_path, error, name):
    reason = os.strerror(getattr(errno, error))
    failed = 0
    for number in range(1, 8):
        run = copy_run(before_save, tmp_path / "failed")
        result = call(traced(run, "-e", f"inject={name}:error={error}:when={number}"))
        assert result.returncode in (0, 1), result.stderr
        if result.returncode == 1:  # 0: the call was not made so often, or what failed was not needed
            failed += 1
            assert str(run) in result.stderr.splitlines()[-1] and reason in result.stderr.splitlines()[-1]
        check(resume_command(run))
        expect_same(run, whole)
    assert failed > 0


@needs_strace
def test_c3_interrupted_writes_are_continued(before_save, whole, tmp_path):
    run = copy_run(before_save, tmp_path / "interrupted")
    check(traced(run, "-e", "inject=write:error=EINTR:when=1+2"))
    expect_same(run, whole)


def test_c3_short_reads_and_writes_are_continued(whole, tmp_path):
    run = tmp_path / "run"
    environment = preload.environment(tmp_path, preload.SHORT)
    check(train_command(run, train__steps=NUM_STEPS // 2, train__checkpoint_interval=2), env=environment)
    wanted = train_command(tmp_path / "usual", train__steps=NUM_STEPS // 2, train__checkpoint_interval=2)
    check(wanted)
    expect_same(run, tmp_path / "usual")
    check(resume_command(run), env=environment)  # which reads everything again


def largest_file(run):
    return max(path.stat().st_size for path in run.rglob("*") if path.is_file())


# Shares of the largest file: from the first byte that is written to the last one but one.
SHARES = [0, 0.001, 0.02, 0.2, 0.45, 0.6, 0.8, 0.999]


@pytest.mark.parametrize("share", SHARES)
def test_c3_files_that_may_not_grow(before_save, whole, tmp_path, share):
    run = copy_run(before_save, tmp_path / "limited")
    size = int(share * largest_file(whole))

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    result = call(resume_command(run), preexec_fn=limit)
    assert result.returncode == 1, result.stderr
    line = result.stderr.splitlines()[-1]
    assert line.startswith(f"elliptical: {run}/") and "File too large" in line, line
    assert steps(run)[-1] == NUM_STEPS - 2
    check(resume_command(run))
    expect_same(run, whole)


@pytest.mark.parametrize("share", SHARES)
def test_c3_a_disk_that_is_full(before_save, whole, tmp_path, share):
    """A file system without a byte left, or with some: less than one checkpoint."""
    checkpoint = sum(path.stat().st_size for path in (whole / "checkpoints" / f"step-{NUM_STEPS}").iterdir())
    with small_disk(tmp_path / "disk", 8 * checkpoint) as is_mounted:
        if not is_mounted:
            pytest.skip("no file system can be mounted here")
        run = copy_run(before_save, tmp_path / "disk" / "run")
        fill(tmp_path / "disk", int(share * checkpoint))
        result = call(resume_command(run))
        assert result.returncode == 1, result.stderr
        line = result.stderr.splitlines()[-1]
        assert line.startswith(f"elliptical: {run}") and "No space left on device" in line, line
        assert steps(run)[-1] == NUM_STEPS - 2 and not list(run.rglob("*.incomplete"))
        (tmp_path / "disk" / "ballast").unlink()
        check(resume_command(run))
        expect_same(run, whole)


@needs_strace
@pytest.mark.parametrize(
    "call_name, when, number, status",
    [("mkdir", 1, "SIGTERM", 143), ("fsync", 2, "SIGTERM", 143), ("fsync", 2, "SIGINT", 130), ("rename", 1, "SIGTERM", 143)],
)
def test_c9_signals_in_a_save(whole, tmp_path, call_name, when, number, status):
    """At the start, in the middle and at the end of the first save: it is finished, and the process ends after it."""
    run = tmp_path / "run"
    folder = run / "checkpoints" / "step-2.incomplete"
    watch = [argument for path in (folder, *(folder / name for name in CHECKPOINT_FILES)) for argument in ("-P", str(path))]
    inject = ["-e", f"trace={call_name}", "-e", f"inject={call_name}:signal={number}:when={when}"]
    command = train_command(run, train__steps=NUM_STEPS, train__checkpoint_interval=2)
    result = call(["strace", "-f", "-qq", "-o", tmp_path / "trace", *watch, *inject, *map(str, command)], preexec_fn=heed_interrupts)
    assert result.returncode == status, result.stderr
    assert f"stopped by {number} after step 2, saved" in result.stderr.splitlines()[-1]
    assert steps(run) == [2]
    check(resume_command(run))
    expect_same(run, whole)


def catches(process, number):
    """Whether the process has a handler for the signal: from the beginning of the program on."""
    try:
        (mask,) = re.findall(r"SigCgt:\s+(\w+)", Path(f"/proc/{process.pid}/status").read_text())
    except (FileNotFoundError, ProcessLookupError, ValueError):
        return False
    return int(mask, 16) >> (number - 1) & 1 == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_c9_a_signal_before_the_first_step_is_no_obstacle(whole, tmp_path, number):
    """While data are read: it ends at once with a sentence, and what it leaves is in nobody's way."""
    run = tmp_path / "run"
    command = train_command(run, train__steps=NUM_STEPS, train__checkpoint_interval=2)
    for delay in (0, 0.1, 0.2):
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=heed_interrupts)
        wait_until(lambda: catches(process, number), process, "the program's begin")
        time.sleep(delay)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        last = errors.splitlines()[-1]
        if delay == 0:
            assert process.returncode == 128 + number and last == f"elliptical: stopped by {number.name}", errors
        if (run / "config.toml").exists():  # a step was done, or all of them
            assert process.returncode in (0, 128 + number), errors
            break
        assert process.returncode == 128 + number and last == f"elliptical: stopped by {number.name}", errors
    check(resume_command(run) if (run / "config.toml").exists() else command)
    expect_same(run, whole)


@needs_strace
def test_c4_files_are_synced_before_the_rename_and_the_folder_after(before_save, tmp_path):
    run = copy_run(before_save, tmp_path / "ordered")
    check(traced(run, "-y", "-e", "trace=write,fsync,fdatasync,rename,renameat"))
    lines = (tmp_path / "ordered.trace").read_text().splitlines()
    renames = [i for i, line in enumerate(lines) if re.search(rf"rename(at)?\(.*step-{NUM_STEPS}\.incomplete", line)]
    (rename,) = renames
    for name in ("model.safetensors", "optimizer.safetensors", "vocabulary.txt", "state.json"):
        of_file = [i for i, line in enumerate(lines) if f"step-{NUM_STEPS}.incomplete/{name}>" in line]
        assert of_file and max(of_file) < rename
        assert "sync(" in lines[max(of_file)], "the last thing that happens to a file is that it is synced"
    synced = [line for line in lines[:rename] if "sync(" in line and f"step-{NUM_STEPS}.incomplete>" in line]
    assert synced, "the folder's entries are synced too"
    assert "sync(" in lines[rename + 1] and f"{run}/checkpoints>" in lines[rename + 1]


def test_c5_saving_over_a_leftover(before_save, whole, tmp_path):
    run = copy_run(before_save, tmp_path / "leftover")
    leftover = run / "checkpoints" / f"step-{NUM_STEPS}.incomplete"
    leftover.mkdir()
    (leftover / "model.safetensors").write_bytes(b"half")
    result = check(resume_command(run))
    assert f"{leftover}: left by an earlier process, removed" in result.stderr
    expect_same(run, whole)
