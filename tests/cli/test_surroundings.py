"""Clocks, homes, locales, paths and streams that are not what one is used to. Fault IDs: C12, R3."""

import contextlib
import json
import os
import shutil
import subprocess

import preload
import pytest
from runs import (
    PROGRAM,
    call,
    check,
    copy_run,
    folder_state,
    losses,
    read_lines,
    records,
    resume_command,
    steps,
    train_command,
    weights,
    without_privileges,
)
from vision_runs import attack_command
from vision_runs import train_command as train_pictures


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "finished"
    check(train_command(run, train__steps=4, train__checkpoint_interval=2))
    return run


def expect_same(run, finished):
    assert weights(run) == weights(finished) and losses(run) == losses(finished) and records(run) == records(finished)


def one_step_back(finished, run):
    copy_run(finished, run)
    shutil.rmtree(run / "checkpoints" / "step-4")
    return run


def test_c12_a_clock_that_jumps_changes_nothing(finished, tmp_path):
    environment = preload.environment(tmp_path, preload.CLOCK)
    said = check(["python3", "-c", "import time; print([time.time() for _ in range(3)])"], env=environment).stdout
    looks = json.loads(said)
    assert 80_000 < max(looks) - min(looks) < 200_000, "the clock does jump, forth and back"
    run = tmp_path / "run"
    check(train_command(run, train__steps=4, train__checkpoint_interval=2), env=environment)
    expect_same(run, finished)
    check([PROGRAM, "eval", run], env=environment)


@pytest.mark.parametrize("when", [0, 4_102_444_800], ids=["1970", "2100"])
def test_c12_times_of_files_decide_nothing(finished, tmp_path, when):
    """The newest checkpoint is that of the highest step, whatever the clock was when it was written."""
    run = copy_run(finished, tmp_path / "run")
    for path in (run / "checkpoints" / "step-2").rglob("*"):
        os.utime(path, (when, when))
    os.utime(run / "checkpoints" / "step-2", (when, when))
    (record,) = [r for r in json.loads(check([PROGRAM, "eval", run, "--format", "json"]).stdout) if r["metric"] == "perplexity"]
    assert record["step"] == 4
    shutil.rmtree(run / "checkpoints" / "step-4")
    check(resume_command(run))
    assert weights(run) == weights(finished)


def test_c12_a_home_and_a_folder_that_may_not_be_written(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o555)
    environment = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(home)}
    command = train_command(tmp_path / "run", train__steps=1)
    check(without_privileges(command), env=environment, cwd=home)
    assert list(home.iterdir()) == []
    result = call(without_privileges(train_command(home / "run", train__steps=1)), env=environment)
    assert result.returncode == 1
    assert result.stderr.splitlines()[-1].startswith(f"elliptical: {home}/run: could not be created: Permission denied")


def test_c12_a_run_folder_that_may_not_be_written(finished, tmp_path):
    run = one_step_back(finished, tmp_path / "run")
    for folder in (run, run / "checkpoints"):
        folder.chmod(0o555)
    result = call(without_privileges(resume_command(run)))
    assert result.returncode == 1 and "Permission denied" in result.stderr.splitlines()[-1]
    # What is measured is told where it can not be recorded.
    (run / "records.jsonl").chmod(0o444)
    result = call(without_privileges([PROGRAM, "eval", run, "--format", "json"]))
    assert result.returncode == 1 and json.loads(result.stdout)[0]["metric"] == "perplexity"
    assert result.stderr.splitlines()[-1].endswith(f"{run}/records.jsonl: can not open: Permission denied")
    (run / "records.jsonl").chmod(0o644)
    for folder in (run, run / "checkpoints"):
        folder.chmod(0o755)
    check(resume_command(run))
    expect_same(run, finished)


def test_c12_an_attack_on_a_run_that_may_not_be_written_ends_before_the_work(tmp_path):
    run = tmp_path / "run"
    check(train_pictures(run, train__steps=1))
    before = folder_state(run)
    run.chmod(0o555)
    result = call(without_privileges(attack_command(run, "--attack", "fgsm", "--eps", "1/255")))
    assert result.returncode == 1 and result.stdout == ""
    assert result.stderr.splitlines()[-1] == f"elliptical: {run}/attack.lock: can not open: Permission denied"
    run.chmod(0o755)
    assert folder_state(run) == before
    check(attack_command(run, "--attack", "fgsm", "--eps", "1/255"))


def path_of_length(folder, length):
    """A path below `folder` whose folders are there, where the system can make them."""
    path = str(folder)
    while length - len(path) > 256:
        path += "/" + "d" * 200
    with contextlib.suppress(OSError):
        os.makedirs(path)
    return path + "/" + "r" * (length - len(path) - 1)


def test_c12_paths_up_to_the_longest(tmp_path):
    """One name of 255 bytes, a path so long that files below it just fit into 4,096 bytes, and some beyond."""
    run = tmp_path / ("n" * 255)
    check(train_command(run, train__steps=1))
    assert steps(run) == [1]
    path = path_of_length(tmp_path, 4034)
    check(train_command(path, train__steps=1))
    check(resume_command(path))
    assert steps(path) == [1]
    for length in (4035, 4090, 4200):
        path = path_of_length(tmp_path, length)
        result = call(train_command(path, train__steps=1))
        assert result.returncode == 1 and "File name too long" in result.stderr.splitlines()[-1], result.stderr
        assert not [line for line in result.stderr.splitlines() if line.startswith("train:")], "not when the work is done"
        assert length > 4095 or not os.path.exists(path), "nothing is left of it"


@pytest.mark.parametrize("name", ["two  spaces", " begins and ends ", "new\nline", "quote'\"s", "$HOME;`id`", "-dash", "tab\t", "\u4e2d\u6587"])
def test_c12_names_with_anything_in_them(finished, tmp_path, name):
    run = copy_run(finished, tmp_path / name)
    check([PROGRAM, "eval", run])
    shutil.rmtree(run / "checkpoints" / "step-4")
    result = check(resume_command(run))
    assert weights(run) == weights(finished)
    assert all(character == "\n" or character.isprintable() for character in result.stdout + result.stderr)
    page = tmp_path / "page.html"
    check([PROGRAM, "report", run, "-o", page])
    assert page.stat().st_size > 0


@pytest.mark.parametrize("locale", ["xx_YY", "C", "de_DE.UTF-8", "tr_TR.UTF-8"])
def test_c12_no_locale_changes_a_number(finished, tmp_path, locale):
    run = tmp_path / "run"
    environment = {**os.environ, "LC_ALL": locale, "LANG": locale, "LANGUAGE": locale}
    result = check(train_command(run, train__steps=4, train__checkpoint_interval=2), env=environment)
    expect_same(run, finished)
    assert (run / "config.toml").read_text() == (finished / "config.toml").read_text()
    assert "100% 4/4  loss " in result.stderr


def run_with(command, **streams):
    """Standard streams as given; the status and what was caught."""
    process = subprocess.Popen(command, **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams})
    output, errors = process.communicate(timeout=300)
    return process.returncode, output, errors


@pytest.fixture
def no_reader():
    """The writing end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


COMMANDS = [["eval"], ["eval", "--format", "json"], ["generate", "--tokens", "50"], ["resume"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("stream", ["full", "no reader"])
def test_r3_results_that_can_not_be_printed_are_a_failure_and_recorded(finished, tmp_path, no_reader, command, stream):
    run = one_step_back(finished, tmp_path / "run")
    arguments = [PROGRAM, command[0], run, *command[1:]]
    before = len(read_lines(run, "records.jsonl"))
    with open("/dev/full", "w") as full:
        status, _, errors = run_with(arguments, stdout=full if stream == "full" else no_reader)
    assert status == 1 and errors.decode().splitlines()[-1] == "elliptical: stdout: could not be written"
    if command[0] == "eval":
        assert len(read_lines(run, "records.jsonl")) > before
    if command[0] == "resume":
        expect_same(run, finished)


@pytest.mark.parametrize("stream", ["full", "no reader"])
def test_r3_training_goes_on_when_nobody_listens(finished, tmp_path, no_reader, stream):
    run = tmp_path / "run"
    with open("/dev/full", "w") as full:
        where = full if stream == "full" else no_reader
        status, output, _ = run_with(train_command(run, train__steps=4, train__checkpoint_interval=2), stderr=where)
    assert status == 0 and b"perplexity" in output
    expect_same(run, finished)


def test_r3_a_terminal_that_goes_away_in_the_middle(finished, tmp_path):
    """The window is closed: SIGHUP, and writes that fail. What was trained is saved."""
    import pty

    controller, terminal = pty.openpty()
    run = tmp_path / "run"
    command = train_command(run, train__steps=4, train__checkpoint_interval=2)
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
    os.close(terminal)
    os.read(controller, 10)  # it has said something
    os.close(controller)
    assert process.wait(timeout=120) in (0, 1, 129)
    check(resume_command(run)) if (run / "config.toml").exists() else check(command)
    expect_same(run, finished)


def test_r3_progress_is_for_terminals_only(finished, tmp_path):
    """Into a file or a pipe: whole lines, no control characters, and few of them."""
    log = tmp_path / "log.txt"
    with open(log, "wb") as file:
        status, output, _ = run_with(train_command(tmp_path / "run", train__steps=300, train__log_interval=1), stderr=file)
    text = log.read_bytes()
    assert status == 0
    assert not [byte for byte in text + output if byte < 32 and byte != 10]
    assert len(text.splitlines()) < 30, "not a line for each step"
