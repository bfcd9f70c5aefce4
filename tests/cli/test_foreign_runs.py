"""Run folders and recipes that somebody else made: what they may not do to their user's files. Fault ID: S3."""

import json
import os
import shutil

import pytest

from runs import PROGRAM, RECIPE, call, check, copy_run, resume_command, settings, steps, train_command, write_state

IS_LINK = "must be a file of this folder, is a symbolic link"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "finished"
    check(train_command(run, train__steps=2, train__checkpoint_interval=1))
    return run


@pytest.fixture
def foreign(finished, tmp_path):
    """A copy that has a step left to do, to plant things in, and a file that is none of its business."""
    precious = tmp_path / "precious"
    precious.write_text("mine\n")
    run = copy_run(finished, tmp_path / "foreign")
    shutil.rmtree(run / "checkpoints" / "step-2")
    return run, precious


def plant(link, target):
    link.unlink(missing_ok=True)
    link.symlink_to(target)


def evaluate(run):
    return call([PROGRAM, "eval", run, "--threads", "1"])


@pytest.mark.parametrize("name", ["lock", "records.jsonl", "log.jsonl"])
def test_s3_resume_writes_through_no_link(foreign, name):
    run, precious = foreign
    if name != "lock":
        precious.write_text("")  # what is no record would be refused for that
    before = precious.read_bytes()
    for target in (precious, run.parent / "new"):  # a link to nothing would make a file
        plant(run / name, target)
        result = call(resume_command(run))
        assert result.returncode == 1 and f"{name}: {IS_LINK}" in result.stderr, result.stderr
        assert precious.read_bytes() == before and not (run.parent / "new").exists()
    (run / name).unlink()
    check(resume_command(run))


def test_s3_eval_writes_through_no_link(foreign):
    run, precious = foreign
    plant(run / "records.jsonl", run.parent / "new")
    result = evaluate(run)
    assert result.returncode == 1 and IS_LINK in result.stderr
    assert not (run.parent / "new").exists()
    (run / "records.jsonl").unlink()
    for name in ("snapshot.safetensors", "snapshot.safetensors.new"):
        plant(run / name, precious)
    check([PROGRAM, "eval", run, "--threads", "1"])
    assert precious.read_text() == "mine\n"
    assert not (run / "snapshot.safetensors").is_symlink()


def test_s3_checkpoints_of_another_run_are_left_alone(foreign, finished, tmp_path):
    run, _ = foreign
    mine = copy_run(finished, tmp_path / "mine")
    shutil.rmtree(run / "checkpoints")
    (run / "checkpoints").symlink_to(mine / "checkpoints")
    result = call(resume_command(run))
    assert result.returncode == 1
    assert "checkpoints: must be a folder of the run itself, is a symbolic link" in result.stderr
    assert steps(mine) == [1, 2]


def test_s3_a_pipe_in_a_run_folder_is_no_trap(foreign):
    run, _ = foreign
    (run / "log.jsonl").unlink()
    os.mkfifo(run / "log.jsonl")
    result = call(resume_command(run))
    assert result.returncode == 1 and "log.jsonl: must be a regular file" in result.stderr


def test_s3_damaged_lines_are_moved_through_no_link(foreign):
    """FILE.damaged, where they go, may be a link to a file that is neither to be read nor written."""
    run, precious = foreign
    (run / "records.jsonl").write_text("no record\n")
    aside = run / "records.jsonl.damaged"
    plant(aside, precious)
    check(resume_command(run))
    assert precious.read_text() == "mine\n"
    assert not aside.is_symlink() and aside.read_text() == "no record\n"


def test_s3_a_configuration_reads_no_other_file(foreign):
    """A recipe may name a base; what a run holds is whole, and a base in it somebody planted."""
    run, precious = foreign
    refusal = "base: a run's configuration is whole and has none"
    config = run / "config.toml"
    good = config.read_text()
    config.write_text(f'base = "{precious}"\n' + good)
    for command in (resume_command(run), [PROGRAM, "eval", run], [PROGRAM, "generate", run]):
        result = call(command)
        assert result.returncode == 2 and result.stderr.splitlines()[-1] == f"elliptical: {config}:1: {refusal}"
    config.write_text(good)
    folder = run / "checkpoints" / "step-1"
    state = json.loads((folder / "state.json").read_text())
    write_state(folder, {**state, "config": f'base = "{precious}"\n' + state["config"]})
    result = call(resume_command(run))
    assert result.returncode == 2 and result.stderr.splitlines()[-1].endswith(f"checkpoints/state.json:1: {refusal}")


@pytest.mark.parametrize("name", ["../out", "/tmp/elliptical-out", "a/b", "..", "-rf", ".hidden"])
def test_s3_a_recipe_s_name_stays_below_the_folder(tmp_path, name):
    folder = tmp_path / "in" / "runs"
    command = [PROGRAM, "compare", RECIPE, "--run", folder, "--seeds", "1", *settings(train__steps=1)]
    result = call([*command, "--set", f"name={name}"])
    assert result.returncode == 2
    assert 'compare: name must be that of a folder: no "/", no control characters' in result.stderr
    assert f'got "{name}"' in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_s3_a_link_among_the_runs_of_a_comparison_is_refused(tmp_path, finished):
    mine = copy_run(finished, tmp_path / "mine")
    folder = tmp_path / "runs"
    folder.mkdir()
    (folder / "softmax-seed-1").symlink_to(mine)
    command = [PROGRAM, "compare", RECIPE, "--run", folder, "--seeds", "1", *settings(train__steps=1)]
    result = call(command)
    assert result.returncode == 1
    assert "softmax-seed-1: must be a folder itself, is a symbolic link (move it away" in result.stderr
    assert steps(mine) == [1, 2]
