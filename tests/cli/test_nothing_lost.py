"""What a run must not lose, and what must not be taken for a result. Fault IDs: C3, C8, D1, D4, N1, R2, R3."""

import fcntl
import json
import os
import struct
import subprocess

import pytest

from runs import PROGRAM, call, check, copy_run, read_lines, records, resume_command, rewrite_file, steps, train_command, weights
from vision_runs import attack_command, write_pictures
from vision_runs import train_command as train_pictures

WORDS = "the a cat dog sat ran on under mat tree and or".split()


def write_text(path, num_words):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(" ".join(WORDS[(i * i + j) % len(WORDS)] for j in range(10)) for i in range(num_words // 10)) + "\n")


def without(command, key):
    """A command that does not set `key`."""
    place = next(i for i, word in enumerate(command) if str(word).startswith(f"{key}="))
    return command[: place - 1] + command[place + 1 :]


def damage_weights(run, value=float("nan")):
    """Puts a number into the weights of the newest checkpoint, with checksums that agree; the name of the tensor."""
    folder = run / "checkpoints" / f"step-{steps(run)[-1]}"
    model = folder / "model.safetensors"
    data = bytearray(model.read_bytes())
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    name = next(name for name, entry in header.items() if name != "__metadata__" and entry["dtype"] == "F32")
    start = 8 + length + header[name]["data_offsets"][0]
    data[start : start + 4] = struct.pack("<f", value)
    rewrite_file(model, bytes(data))
    return name, model


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "finished"
    check(train_command(run, train__steps=4, train__checkpoint_interval=2))
    return run


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "pictures"
    check(train_pictures(run, train__steps=2))
    return run


def error_of(result, status=1):
    assert result.returncode == status, result.stderr
    return result.stderr.splitlines()[-1]


def test_d4_a_validation_text_shorter_than_a_window_is_found_before_the_first_step(tmp_path):
    for name, count in (("train", 2000), ("valid", 10), ("test", 500)):
        write_text(tmp_path / "text" / f"{name}.txt", count)
    run = tmp_path / "run"
    command = without(train_command(run, task__data__name=tmp_path / "text", train__steps=60), "task.data.train_lines")
    result = call(command)
    assert "valid.txt: must have at least 20 tokens, has " in error_of(result)
    assert not run.exists()


def test_d1_a_truncated_picture_of_the_validation_costs_no_training(tmp_path):
    data, run = tmp_path / "data", tmp_path / "run"
    for split in ("train", "val"):
        write_pictures(data / split, ["a", "b"], per_class=4)
    broken = data / "val" / "b" / "1.png"
    whole = broken.read_bytes()
    broken.write_bytes(whole[: len(whole) // 2])
    options = {"task__data__name": data, "train__steps": 6, "train__checkpoint_interval": 0, "train__eval_interval": 3}
    assert str(broken) in error_of(call(train_pictures(run, **options)))
    assert steps(run) == [3]
    assert str(broken) in error_of(call(resume_command(run)))
    assert steps(run) == [3] and len(read_lines(run, "log.jsonl")) == 3
    # At the last step it is the same.
    last = tmp_path / "last"
    assert str(broken) in error_of(call(train_pictures(last, **{**options, "train__eval_interval": 0})))
    assert steps(last) == [6]


def test_r3_closed_descriptors_get_no_run_files(finished, tmp_path):
    run = tmp_path / "run"
    command = [str(word) for word in train_command(run, train__steps=4, train__checkpoint_interval=2)]
    for closed in ("<&- >&- 2>&-", ">&- 2>&-", "2>&-", ">&-"):
        subprocess.run(["rm", "-rf", run], check=True)
        status = subprocess.run(["bash", "-c", f'"$@" {closed}', "bash", *command]).returncode
        assert status == 0
        assert weights(run) == weights(finished)
        assert [r["metric"] for r in records(run)] == [r["metric"] for r in records(finished)]
        assert len(read_lines(run, "log.jsonl")) == 4


@pytest.mark.parametrize("closed", ["<&- >&- 2>&-", ">&- 2>&-", "2>&-"])
def test_r3_closed_descriptors_cost_no_other_command_its_work(finished, pictures, tmp_path, closed):
    """What is opened first would get their numbers, and what is printed would be written into it."""
    run, classifier, page = copy_run(finished, tmp_path / "run"), copy_run(pictures, tmp_path / "pictures"), tmp_path / "page.html"
    attack = attack_command(classifier, "--attack", "fgsm", "--eps", "1/255", "--max-pictures", "8")
    commands = ([PROGRAM, "eval", run], attack, [PROGRAM, "generate", run], [PROGRAM, "report", run, "-o", page])
    both = [PROGRAM, "compare", "--run", tmp_path / "both"]
    copy_run(finished, tmp_path / "both" / "one")
    before = records(run), records(classifier)
    for command in (*commands, both):
        words = [str(word) for word in command]
        status = subprocess.run(["bash", "-c", f'"$@" {closed}', "bash", *words], stdout=subprocess.DEVNULL).returncode
        assert status == 0, words
    # Each file holds what it should and nothing else.
    assert records(run)[: len(before[0])] == before[0] and len(records(run)) > len(before[0])
    assert records(classifier)[: len(before[1])] == before[1] and len(records(classifier)) > len(before[1])
    assert page.read_text().startswith("<!") and page.read_text().rstrip().endswith("</html>")


def test_n1_weights_that_are_not_finite_are_not_saved(tmp_path):
    run = tmp_path / "run"
    options = {"optimizer__learning_rate": 1e30, "optimizer__weight_decay": 1e30, "schedule__warmup_steps": 0}
    result = call(train_command(run, train__steps=1, **options))
    assert "step 1: " in error_of(result) and "must be finite after this step, is not (nothing was saved" in error_of(result)
    assert steps(run) == [] and records(run) == []


def test_n1_weights_that_measure_as_no_number_rotate_nothing_away(finished, tmp_path):
    run = tmp_path / "run"
    options = ["optimizer.learning_rate=1e30", "train.steps=5", "train.checkpoints_kept=1", "schedule.warmup_steps=0"]
    result = call([PROGRAM, "fork", finished, "--run", run, *(word for option in options for word in ("--set", option))])
    message = f"elliptical: {run}: what is measured must be finite, perplexity is "
    assert error_of(result).startswith(message)
    assert steps(run) == [4, 5]
    check([PROGRAM, "eval", run, "--step", "4"])
    # Nor does it when it is asked again.
    assert error_of(call(resume_command(run))).startswith(message)
    assert steps(run) == [4, 5]


def test_n1_weights_that_were_never_used_rotate_nothing_away(finished, tmp_path):
    """Saved before they are measured, and before the loss of the next step says that they are broken."""
    run = tmp_path / "run"
    options = ["optimizer.learning_rate=1e30", "train.steps=9", "train.checkpoints_kept=1", "train.checkpoint_interval=1"]
    words = [word for option in (*options, "schedule.warmup_steps=0") for word in ("--set", option)]
    result = call([PROGRAM, "fork", finished, "--run", run, *words])
    assert "step 6 (batch 5): loss must be finite, is " in error_of(result)
    assert steps(run) == [4, 5]
    check([PROGRAM, "eval", run, "--step", "4"])
    assert "step 6 (batch 5): loss must be finite" in error_of(call(resume_command(run)))
    assert steps(run) == [4, 5]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_n1_weights_that_are_not_finite_are_not_measured(finished, pictures, tmp_path, value):
    run = copy_run(finished, tmp_path / "run")
    name, model = damage_weights(run, value)
    before = records(run)
    message = f"elliptical: {model}: weights must be finite, {name} is not (choose an older checkpoint with --step, or train it again"
    for command in (["eval", run], ["generate", run, "--tokens", "5"]):
        result = call([PROGRAM, *command])
        assert error_of(result).startswith(message) and result.stdout == ""
    assert records(run) == before
    check([PROGRAM, "eval", run, "--step", "2"])
    other = copy_run(pictures, tmp_path / "pictures")
    name, model = damage_weights(other, value)
    for command in ([PROGRAM, "eval", other], attack_command(other, "--attack", "fgsm", "--eps", "1/255")):
        result = call(command)
        assert error_of(result).startswith(f"elliptical: {model}: weights must be finite, {name} is not") and result.stdout == ""


def test_n1_compare_names_the_run_whose_weights_are_not_finite(tmp_path):
    from test_compare import compare_command

    folder = tmp_path / "runs"
    check(compare_command(folder, seeds=1, controls="none"))
    name, _ = damage_weights(folder / "elliptical-seed-1")
    result = call(compare_command(folder, "--split", "valid", seeds=1, controls="none"))
    assert result.returncode == 1
    assert f"elliptical, seed 1: failed: " in result.stderr and f"weights must be finite, {name} is not" in result.stderr


def test_r2_a_damaged_line_does_not_block_resume(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    subprocess.run(["rm", "-r", run / "checkpoints" / "step-4"], check=True)
    for name in ("records.jsonl", "log.jsonl"):
        path = run / name
        path.write_text('{"metric":"loss",\n' + path.read_text())
    result = check(resume_command(run))
    for name in ("records.jsonl", "log.jsonl"):
        assert f"{run / name}:1: record: " in result.stderr and f"(left out, moved to {run / name}.damaged)" in result.stderr
        assert (run / f"{name}.damaged").read_text() == '{"metric":"loss",\n'
    assert weights(run) == weights(finished)
    assert [(r["metric"], r["value"]) for r in records(run)] == [(r["metric"], r["value"]) for r in records(finished)]


def test_c3_a_result_that_can_not_be_recorded_is_printed_first(finished, pictures, tmp_path):
    for source, command in (
        (finished, ["eval", "--format", "json"]),
        (pictures, ["attack", "--attack", "fgsm", "--eps", "1/255", "--format", "json", "--max-pictures", "8"]),
    ):
        run = copy_run(source, tmp_path / source.name)
        (run / "records.jsonl").unlink()
        (run / "records.jsonl").mkdir()  # as root may write to everything else
        result = call([PROGRAM, command[0], run, *command[1:]])
        assert "records.jsonl: " in error_of(result)
        assert json.loads(result.stdout)[0]["value"] > 0


def test_c3_a_dump_that_can_not_be_written_costs_no_record(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    before = len(records(run))
    result = call([PROGRAM, "eval", run, "--dump", tmp_path / "none" / "dump.safetensors"])
    assert "dump.safetensors: can not create" in error_of(result)
    assert "perplexity" in result.stdout and len(records(run)) > before


def test_c8_a_second_attack_is_told_who_has_the_run(pictures, tmp_path):
    run = copy_run(pictures, tmp_path / "run")
    before = records(run)
    with open(run / "attack.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        command = attack_command(run, "--attack", "fgsm", "--eps", "1/255", "--max-pictures", "8")
        assert error_of(call(command)) == f"elliptical: {run}: is in use by process {os.getpid()} (wait for it or stop it)"
        assert records(run) == before
        check([PROGRAM, "eval", run])  # which needs no lock
    check(command)


def test_c8_attacks_and_evaluations_at_once_lose_no_record(pictures, tmp_path):
    run = copy_run(pictures, tmp_path / "run")
    before = len(records(run))
    commands = [[PROGRAM, "eval", run, "--format", "json", "--threads", "1"]] * 3
    commands.append(attack_command(run, "--attack", "fgsm", "--eps", "1/255", "--max-pictures", "8"))
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands]
    results = [process.communicate(timeout=300) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, [error for _, error in results]
    assert len(records(run)) == before + sum(len(json.loads(output)) for output, _ in results)
    assert not list(run.glob("*.new"))
