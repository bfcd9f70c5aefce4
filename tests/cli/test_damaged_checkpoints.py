"""Whatever becomes of the newest checkpoint, the one before is used, and it is said which and why. Fault IDs: C6, C7."""

import errno
import os

import pytest

from damage import DAMAGES, unreadable
from runs import (
    PROGRAM,
    call,
    check,
    copy_run,
    losses,
    needs_strace,
    records,
    resume_command,
    rewrite_file,
    steps,
    train_command,
    weights,
    without_privileges,
)

# All that a run of a language model has with an average of its weights; task.safetensors, which no task of ours has yet, is
# damaged in tests/store/checkpoint_test.cpp.
FILES = ["model.safetensors", "optimizer.safetensors", "ema.safetensors", "vocabulary.txt", "state.json"]
# What is said of a damaged file: a word of it.
REASONS = {
    "cut": ("must have", "JSON"),
    "flip": ("checksum", "checksum"),
    "empty": ("must have", "JSON"),
    "missing": ("must be a file", "No such file"),
    "folder": ("must be a file", "must be a regular file"),
    "web page": ("must have", "JSON"),
    "zeros": ("checksum", "JSON"),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "finished"
    check(train_command(run, train__steps=6, train__checkpoint_interval=2, train__checkpoints_kept=3, train__ema_decay=0.9))
    newest = run / "checkpoints" / "step-6"
    assert sorted(file.name for file in newest.iterdir()) == sorted(FILES), "every file is damaged below"
    return run


def expect_fallback(result, run, finished, file, step=6):
    """`result` is that of resuming `run`, whose newest checkpoint has this damaged file."""
    assert result.returncode == 0, result.stderr
    assert f"continues after step {step - 2}" in result.stderr
    folder = file.parent
    named = [line for line in result.stderr.splitlines() if line.startswith(f"{folder}: can not be used: ")]
    assert len(named) == 1 and str(file) in named[0], result.stderr
    assert f"{folder}: damaged, moved to {folder.name}.damaged" in result.stderr
    assert weights(run) == weights(finished)
    assert losses(run) == losses(finished) and records(run) == records(finished)
    assert (folder.parent / f"{folder.name}.damaged").is_dir(), "what is left of it is kept"
    return named[0]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_c6_every_damage_of_every_file_falls_back(finished, tmp_path, damage, name):
    run = copy_run(finished, tmp_path / "run")
    file = run / "checkpoints" / "step-6" / name
    DAMAGES[damage](file, 0.5)
    line = expect_fallback(check(resume_command(run)), run, finished, file)
    assert REASONS[damage][name == "state.json"] in line


@pytest.mark.parametrize("name", FILES)
def test_c6_a_file_that_may_not_be_read_falls_back(finished, tmp_path, name):
    run = copy_run(finished, tmp_path / "run")
    file = run / "checkpoints" / "step-6" / name
    unreadable(file, 0)
    line = expect_fallback(call(without_privileges(resume_command(run))), run, finished, file)
    assert "Permission denied" in line


def test_c6_what_only_reads_falls_back_too(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    file = run / "checkpoints" / "step-6" / "model.safetensors"
    file.write_bytes(b"<html>")
    for command in (["eval"], ["generate", "--tokens", "3"], ["fork", "--run", tmp_path / "forked", "--set", "train.steps=7"]):
        result = check([PROGRAM, command[0], run, *command[1:]])
        assert str(file) in result.stderr, result.stderr
    assert steps(run) == [2, 4, 6] and file.read_bytes() == b"<html>", "who only reads changes nothing"
    assert {record["step"] for record in records(run) if record["source"] == "eval"} == {4}


def test_c6_words_that_are_none_fall_back(finished, tmp_path):
    """With the right checksum: who wrote them was wrong."""
    for words, reason in ((b"<eos>\nthe\nthe\n<unk>\n", ':3: word "the" comes twice'), (b"the\n", ": vocabulary must start with <eos>")):
        run = copy_run(finished, tmp_path / "run")
        file = run / "checkpoints" / "step-6" / "vocabulary.txt"
        rewrite_file(file, words)
        for command in (["generate", "--tokens", "3"], ["eval"]):
            result = check([PROGRAM, command[0], run, *command[1:]])
            assert f"{file.parent}: can not be used: {file}{reason}" in result.stderr
        asked = call([PROGRAM, "generate", run, "--step", "6"])
        assert asked.returncode == 1 and asked.stderr.splitlines()[-1].startswith(f"elliptical: {file}{reason}")
        (run / "records.jsonl").write_text((finished / "records.jsonl").read_text())  # without that evaluation
        expect_fallback(check(resume_command(run)), run, finished, file)


@needs_strace
@pytest.mark.parametrize("error", ["EMFILE", "ENFILE", "ENOMEM"])
def test_c6_too_few_open_files_are_no_damage(finished, tmp_path, error):
    """A file that can not be opened for lack of something says nothing about what is in it: all stay where they are."""
    for name in ("", *FILES):
        run = copy_run(finished, tmp_path / "run")
        file = run / "checkpoints" / "step-6" / name if name else run / "checkpoints"
        inject = ["-P", str(file), "-e", "trace=openat", "-e", f"inject=openat:error={error}:when=1+"]
        result = call(["strace", "-f", "-qq", "-o", "/dev/null", *inject, *map(str, resume_command(run))])
        assert result.returncode == 1, (name, result.stderr)
        action = "open" if name else "list"
        wanted = f"elliptical: {file}: can not {action}: {os.strerror(getattr(errno, error))} ("
        assert result.stderr.splitlines()[-1].startswith(wanted), result.stderr
        assert steps(run) == [2, 4, 6] and not list((run / "checkpoints").glob("*.damaged"))
        assert weights(run) == weights(finished)
        check(resume_command(run))


def test_c6_two_in_a_row_and_all_of_them(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    for step in (6, 4):
        DAMAGES["empty"](run / "checkpoints" / f"step-{step}" / "state.json", 0)
    result = check(resume_command(run))
    assert "continues after step 2" in result.stderr and weights(run) == weights(finished)
    for step in (2, 4, 6):
        DAMAGES["empty"](run / "checkpoints" / f"step-{step}" / "state.json", 0)
    before = sorted(run.rglob("*"))
    result = call(resume_command(run))
    assert result.returncode == 1
    line = result.stderr.splitlines()[-1]
    assert "one checkpoint must be whole, none is (to start again from the first step: remove this folder)" in line
    assert sorted(run.rglob("*")) == before, "nothing is thrown away"


@pytest.mark.parametrize("name", FILES)
def test_c7_a_flipped_bit_anywhere_falls_back(finished, tmp_path, name):
    for share in (0.0, 0.1, 0.9, 0.9999):
        run = copy_run(finished, tmp_path / "run")
        file = run / "checkpoints" / "step-6" / name
        DAMAGES["flip"](file, share)
        expect_fallback(check(resume_command(run)), run, finished, file)
