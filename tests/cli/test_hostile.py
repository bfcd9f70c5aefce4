"""Inputs that were made or chosen to hurt: numbers without sense, files that lie about their size, text that terminals obey."""

import hashlib
import json
import os
import re
import resource
import struct

import pytest

from runs import PROGRAM, RECIPE, call, check, resume_command, settings, train_command
from vision_runs import attack_command, png, write_pictures
from vision_runs import train_command as train_pictures_command


def last_line(result, status):
    assert result.returncode == status, result.stderr
    return result.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def language_run(tmp_path_factory):
    run = tmp_path_factory.mktemp("hostile") / "language"
    check(train_command(run, train__steps=1))
    return run


@pytest.fixture(scope="module")
def picture_run(tmp_path_factory):
    run = tmp_path_factory.mktemp("hostile") / "pictures"
    check(train_pictures_command(run, train__steps=1))
    return run


@pytest.mark.parametrize(
    "assignment, limit",
    [
        ("task.batch_size=288230376151711744", "a whole number in [1, 1048576]"),
        ("task.model.num_layers=1000000000", "a whole number in [1, 1000]"),
        ("task.model.dim=9223372036854775807", "a whole number in [2, 65536]"),
        ("train.steps=9223372036854775807", "a whole number in [0, 1000000000]"),
    ],
)
def test_m1_numbers_without_sense_are_refused(tmp_path, assignment, limit):
    key, value = assignment.split("=")
    command = [PROGRAM, "train", RECIPE, "--run", tmp_path / "run", *settings(), "--set", assignment]
    line = last_line(call(command), 2)
    assert line == f"elliptical: --set {assignment}: {key}: must be {limit}, got {value}"
    assert not (tmp_path / "run").exists()


def test_m1_more_columns_than_words_are_refused(language_run):
    line = last_line(call([PROGRAM, "eval", language_run, "--set", "columns=9223372036854775807"]), 2)
    assert "columns: must be a whole number in [1, 1048576]" in line
    line = last_line(call([PROGRAM, "eval", language_run, "--set", "columns=1048576"]), 1)
    assert "must have at least 2097152 tokens" in line


def test_m1_attacks_can_not_overflow(picture_run):
    arguments = ["--attack", "spsa", "--eps", "1/255", "--max-pictures", "2", "--set", "spsa.pairs=9223372036854775807"]
    line = last_line(call(attack_command(picture_run, *arguments)), 2)
    assert "spsa.pairs: must be a whole number in [1, 1000000]" in line


@pytest.mark.parametrize(
    "changes",
    [
        {"task__model__dim": 65536, "task__model__num_layers": 1000},
        {"task__model__num_layers": 1000, "task__model__feedforward_dim": 65536, "task__model__dim": 4096},
    ],
)
def test_m1_models_that_can_not_fit_are_refused_with_both_numbers(tmp_path, changes):
    result = call(train_command(tmp_path / "run", **changes))
    line = last_line(result, 1)
    assert line.startswith("elliptical: training: needs about ") and " TB of memory, the " in line
    assert line.endswith("(a smaller task.batch_size, or a narrower model of fewer layers; ELLIPTICAL_MEMORY=none tries all the same)")
    assert not (tmp_path / "run").exists()


def test_m1_the_bound_can_be_set(tmp_path):
    environment = {**os.environ, "ELLIPTICAL_MEMORY": "10K"}
    line = last_line(call(train_command(tmp_path / "run", train__steps=1), env=environment), 1)
    assert "of memory, ELLIPTICAL_MEMORY allows 10.0 kB" in line
    check(train_command(tmp_path / "run", train__steps=1), env={**environment, "ELLIPTICAL_MEMORY": "none"})
    environment["ELLIPTICAL_MEMORY"] = "much"
    line = last_line(call([PROGRAM, "eval", tmp_path / "run"], env=environment), 2)
    assert line == 'elliptical: ELLIPTICAL_MEMORY: must be a number of bytes, 16G for instance, or none, got "much"'


def test_m1_failed_allocations_say_how_much_was_asked_for(tmp_path):
    # 2.5 GB of address space hold the program; the check of the estimate is off.
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2_500_000_000, 2_500_000_000))

    command = train_command(tmp_path / "run", task__model__dim=16384)
    result = call(command, env={**os.environ, "ELLIPTICAL_MEMORY": "none"}, preexec_fn=limit)
    line = last_line(result, 1)
    assert line.startswith("elliptical: memory: ") and "asked for" in line, line
    assert line.endswith("(smaller batches, windows or models; fewer --jobs; close other programs)")
    assert "DefaultCPUAllocator" not in result.stderr
    line = last_line(call(command, preexec_fn=limit), 1)
    assert "the limit of address space (ulimit -v) leaves" in line


def test_best_metric_must_be_measured(tmp_path):
    for command, names in [
        (train_command(tmp_path / "run", train__best_metric="nonsense"), "perplexity"),
        (train_pictures_command(tmp_path / "run", train__best_metric="nonsense"), "accuracy, top5_accuracy, loss"),
    ]:
        line = last_line(call(command), 2)
        assert line == f'elliptical: train.best_metric: must be measured while training: unknown "nonsense", known: {names}'
        assert not (tmp_path / "run").exists()


def test_d5_replaced_picture_of_the_same_size_is_noticed(tmp_path):
    write_pictures(tmp_path / "data" / "train", ["ant", "bee"], per_class=4)
    write_pictures(tmp_path / "data" / "val", ["ant", "bee"])
    first, other = (png(16, 16, colour) for colour in ((3, 5, 7), (7, 5, 3)))
    assert len(first) == len(other) and first != other
    victim = tmp_path / "data" / "train" / "ant" / "2.png"
    victim.write_bytes(first)
    run = tmp_path / "run"
    check(train_pictures_command(run, train__steps=1, task__data__name=tmp_path / "data"))
    check(resume_command(run))
    victim.write_bytes(other)
    line = last_line(call(resume_command(run)), 1)
    assert "configuration and data must be those of the checkpoint, changed: data contents: " in line


def test_c11_checkpoints_of_older_programs_have_fewer_checksums(tmp_path):
    write_pictures(tmp_path / "data" / "train", ["ant", "bee"], per_class=4)
    write_pictures(tmp_path / "data" / "val", ["ant", "bee"])
    run = tmp_path / "run"
    check(train_pictures_command(run, train__steps=1, task__data__name=tmp_path / "data"))
    file = run / "checkpoints" / "step-1" / "state.json"
    state = json.loads(file.read_text())
    del state["data"]["contents"], state["checksum"]
    compact = json.dumps(state, separators=(",", ":"), ensure_ascii=False)
    file.write_text(json.dumps({**state, "checksum": hashlib.sha256(compact.encode()).hexdigest()}))
    check(resume_command(run))


def records(run):
    return [line for line in (run / "records.jsonl").read_text().splitlines() if '"source":"attack"' in line]


def test_a3_a_finished_attack_that_is_repeated_records_nothing_new(picture_run):
    command = attack_command(picture_run, "--attack", "fgsm", "--eps", "1/255", "--max-pictures", "4")
    first = check(command).stdout
    once = records(picture_run)
    assert once
    assert check(command).stdout == first
    assert records(picture_run) == once
    check(attack_command(picture_run, "--attack", "fgsm", "--eps", "2/255", "--max-pictures", "4"))
    assert len(records(picture_run)) == 2 * len(once)


ESCAPE = "\x1b]0;owned\x07"


def assert_harmless(text):
    assert not [character for character in text if ord(character) < 32 and character != "\n"], text


def test_control_characters_of_file_and_class_names_are_escaped(tmp_path):
    write_pictures(tmp_path / "data" / "train", ["ant", f"b{ESCAPE}"], per_class=4)
    write_pictures(tmp_path / "data" / "val", ["ant", f"b{ESCAPE}"])
    run = tmp_path / "run"
    changes = {"train__steps": 1, "task__data__name": tmp_path / "data"}
    check(train_pictures_command(run, **changes))
    result = check([PROGRAM, "eval", run, "--set", "per_class=true", "--split", "valid"])
    assert_harmless(result.stdout + result.stderr)
    assert "b\\x1b]0;owned\\x07" in result.stdout
    for file in (tmp_path / "data" / "train" / f"b{ESCAPE}").iterdir():
        file.write_text("no picture")
    result = call(train_pictures_command(tmp_path / "second", **changes))
    assert result.returncode == 1
    assert_harmless(result.stderr)
    assert re.search(r"b\\x1b\]0;owned\\x07/\d\.png", result.stderr)


def test_control_characters_of_words_reach_a_terminal_only_when_asked(tmp_path):
    (tmp_path / "data").mkdir()
    line = f"red{ESCAPE} " * 30 + "\n"
    for name in ("train", "valid", "test"):
        (tmp_path / "data" / f"{name}.txt").write_text(line * 40)
    run = tmp_path / "run"
    result = call(train_command(run, train__steps=1, task__data__name=tmp_path / "data", task__data__train_lines=1))
    assert_harmless(result.stderr)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        f'[task]\nname = "language_model"\nbatch_size = 2\n[task.data]\nname = "{tmp_path / "data"}"\n'
        "[task.model]\nnum_layers = 1\ndim = 16\nnum_heads = 2\nfeedforward_dim = 16\nwindow = 8\ncutoffs = []\n"
        "[train]\nsteps = 1\n"
    )
    check([PROGRAM, "train", recipe, "--run", run, "--threads", "1"])
    command = [PROGRAM, "generate", run, "--tokens", "20", "--threads", "1"]
    shown = check(command)
    assert_harmless(shown.stdout + shown.stderr)
    assert "red\\x1b]0;owned\\x07" in shown.stdout
    assert f"red{ESCAPE}" in check([*command, "--raw"]).stdout


def snapshot(path, tensors):
    """A safetensors file whose header claims these shapes."""
    header, offset = {}, 0
    for name, (shape, count) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [offset, offset + 4 * count]}
        offset += 4 * count
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(offset))


def test_r1_snapshots_that_lie_cost_their_own_section_only(language_run, tmp_path):
    many = 2**44
    heads, width = 1000, 2**21
    lies = {
        "without tokens": {"attention": ([many, 0, 0], 0), "queries": ([many, 0, 1], 0), "keys": ([many, 0, 1], 0), "metric": ([1, 1, 1], 1)},
        "8 MB": {"attention": ([heads, 1, 1], heads), "queries": ([heads, 1, 1], heads), "keys": ([heads, 1, 1], heads), "metric": ([1, 1, width], width)},
    }

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (2_000_000_000, 2_000_000_000))
        resource.setrlimit(resource.RLIMIT_CPU, (20, 20))

    for lie in lies.values():
        snapshot(language_run / "snapshot.safetensors", {f"layers.0.{name}": entry for name, entry in lie.items()})
        page = tmp_path / "page.html"
        check([PROGRAM, "report", language_run, "-o", page], preexec_fn=limit)
        text = page.read_text()
        assert "(its heads are not shown)" in text and "perplexity" in text
        page.unlink()
