"""Classifiers of pictures as a user meets them: train, kill, resume, eval, corrupt, fork, compare."""

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from runs import PROGRAM, ROOT, call, check, copy_run, losses, num_logged, read_lines, resume_command, steps, wait_until, weights
from vision_runs import RECIPE, TINY, attack_command, last_line, settings, train_command
from vision_runs import measured as measured_of

DATA = Path(os.environ.get("ELLIPTICAL_DATA", "data"))
FEW = ["--set", "max_pictures=40"]


def measured(run, *arguments):
    return measured_of(run, *FEW, *arguments)


def average(run):
    return (run / "checkpoints" / f"step-{steps(run)[-1]}" / "ema.safetensors").read_bytes()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    run = tmp_path_factory.mktemp("vision") / "whole"
    check(train_command(run, train__steps=8, train__checkpoint_interval=2))
    return run


def test_c10_killed_and_resumed_is_the_same_to_the_bit(whole, tmp_path):
    run = tmp_path / "killed"
    command = train_command(run, train__steps=8, train__checkpoint_interval=2)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: num_logged(run) >= 3, process, "the third step")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    check(resume_command(run))
    assert weights(run) == weights(whole) and average(run) == average(whole)
    assert losses(run) == losses(whole)


def test_eval_says_how_many_are_right(whole):
    records = measured(whole, "--split", "test")
    assert records["accuracy"]["count"] == 40
    assert 0 <= records["accuracy"]["value"] <= records["top5_accuracy"]["value"] <= 100
    assert records["accuracy"]["perturbation"] == "none"
    assert records["accuracy"]["attention"] == "elliptical" and records["accuracy"]["model"] == "vit"
    assert 0 < records["metric_mean"]["value"] <= 1


def test_eval_of_the_average(whole):
    trained, mean = measured(whole), measured(whole, "--weights", "ema")
    assert mean["loss"]["weights"] == "ema" and "weights" not in trained["loss"]
    assert mean["loss"]["value"] != trained["loss"]["value"]


def test_a_run_can_be_measured_by_its_average(whole, tmp_path):
    run = tmp_path / "run"
    check(train_command(run, train__steps=8, train__eval_weights="ema"))
    assert weights(run) == weights(whole) and average(run) == average(whole)
    own, trained = measured(run), measured(run, "--weights", "trained")
    assert own["loss"]["eval_weights"] == trained["loss"]["eval_weights"] == "ema"
    assert "weights" not in own["loss"] and trained["loss"]["weights"] == "trained"
    assert own["loss"]["value"] == measured(whole, "--weights", "ema")["loss"]["value"]
    assert trained["loss"]["value"] == measured(whole)["loss"]["value"]
    arguments = ["--attack", "fgsm", "--eps", "1/255", "--max-pictures", "40"]
    records = json.loads(check(attack_command(run, *arguments)).stdout)
    clean = {record["value"] for record in records if record["metric"] == "clean_accuracy"}
    assert clean == {measured(run, "--split", "valid")["accuracy"]["value"]}


def test_average_that_is_measured_must_be_kept(tmp_path):
    line = last_line(call(train_command(tmp_path / "run", train__ema_decay=0, train__eval_weights="ema")), 2)
    assert line.startswith("elliptical: train: ema_decay must be above 0 with eval_weights = \"ema\", got 0")
    assert not (tmp_path / "run").exists()


def test_average_that_was_not_kept_is_refused(tmp_path):
    run = tmp_path / "run"
    check(train_command(run, train__steps=1, train__ema_decay=0))
    line = last_line(call([PROGRAM, "eval", run, "--weights", "ema"]), 1)
    assert "train.ema_decay must be above 0" in line


def test_eval_of_corruptions(whole, tmp_path):
    dump = tmp_path / "dump.safetensors"
    records = measured(whole, "--corrupt", "fog,contrast", "--severity", "3", "--dump", dump)
    assert records["accuracy"]["count"] == 80
    assert records["accuracy"]["corruption"] == "fog,contrast" and records["accuracy"]["severity"] == 3
    assert records["corrupted_accuracy"]["count"] == 40
    assert dump.stat().st_size > 80 * 10 * 4
    all_severities = measured(whole, "--corrupt", "contrast")
    assert all_severities["corruption_error"]["count"] == 200


def test_fork_to_another_attention_without_training(tmp_path):
    run, forked = tmp_path / "softmax", tmp_path / "elliptical"
    check(train_command(run, train__steps=2, task__model__attention__name="softmax"))
    check([PROGRAM, "fork", run, "--run", forked, "--set", "task.model.attention.name=elliptical"])
    assert weights(forked) == weights(run)
    softmax, elliptical = measured(run), measured(forked)
    assert softmax["loss"]["value"] != elliptical["loss"]["value"]
    assert (softmax["loss"]["attention"], elliptical["loss"]["attention"]) == ("softmax", "elliptical")


def test_weights_of_a_run_are_a_start_and_a_teacher(whole, tmp_path):
    run = tmp_path / "started"
    check(train_command(run, train__steps=0, task__init=whole))
    assert measured(run)["loss"]["value"] == measured(whole)["loss"]["value"]
    student = tmp_path / "student"
    check(train_command(student, train__steps=1, task__model__distilled="true", task__teacher__kind="hard", task__teacher__weights=whole))


def test_a_checkpoint_needs_no_other_weights(whole, tmp_path):
    run, teacher = tmp_path / "run", copy_run(whole, tmp_path / "teacher")
    distilled = {"task__model__distilled": "true", "task__teacher__kind": "hard", "task__teacher__weights": teacher}
    check(train_command(tmp_path / "seed", train__steps=0, task__model__distilled="true"))
    check(train_command(run, train__steps=4, train__checkpoint_interval=2, task__init=tmp_path / "seed", **distilled))
    expected = weights(run), measured(run)["loss"]["value"]
    shutil.rmtree(tmp_path / "seed")
    shutil.rmtree(run / "checkpoints" / "step-4")
    check(resume_command(run))
    assert (weights(run), measured(run)["loss"]["value"]) == expected
    check([PROGRAM, "fork", run, "--run", tmp_path / "forked", "--set", "train.steps=5"])

    teacher.rename(tmp_path / "gone")
    assert measured(run)["loss"]["value"] == expected[1]
    check(attack_command(run, "--attack", "fgsm", "--eps", "1/255", "--max-pictures", "4"))
    shutil.rmtree(run / "checkpoints" / "step-4")
    assert f"{teacher} must be a safetensors file" in last_line(call(resume_command(run)), 3)
    (tmp_path / "gone").rename(teacher)
    shutil.rmtree(run / "checkpoints")
    assert "seed must be a safetensors file" in last_line(call(resume_command(run)), 3), "nothing to go on from"


def test_attack_of_the_average(whole):
    arguments = ["--attack", "fgsm", "--eps", "1/255", "--max-pictures", "40"]
    results = {}
    for name in ("trained", "ema"):
        records = json.loads(check(attack_command(whole, *arguments, "--weights", name)).stdout)
        assert {record.get("weights") for record in records} == {"ema" if name == "ema" else None}
        results[name] = {record["metric"]: record["value"] for record in records}
    for name in results:
        extra = ["--split", "valid"] + (["--weights", "ema"] if name == "ema" else [])
        assert results[name]["clean_accuracy"] == measured(whole, *extra)["accuracy"]["value"]
    finished = read_lines(whole, "attacks.jsonl")
    assert len({line["digest"] for line in finished}) == 2, "each has finished batches of its own"


@pytest.mark.parametrize(
    "changes, status, message",
    [
        ({"task__model__image_size": 18}, 2, "image_size must be a multiple of patch_size"),
        ({"task__batch_size": 5}, 2, "batch_size must be even"),
        ({"task__data__name": "imagenet"}, 3, "elliptical data import imagenet"),
        ({"task__data__name": "smal-pictures"}, 2, 'did you mean "small-pictures"?'),
        ({"task__init": "nowhere/model.safetensors"}, 3, "nowhere/model.safetensors must be a safetensors file"),
        ({"task__init": "nowhere.safetensors"}, 3, "weights: nowhere.safetensors must be a safetensors file"),
        ({"task__data__augment__crop__max_area": 0.05}, 2, "augment.crop.min_area must be at most max_area, got min_area = 0.08, max_area = 0.05"),
        ({"task__data__augment__erase__min_area": 0.5}, 2, "augment.erase.min_area must be at most max_area"),
    ],
)
def test_mistakes_are_found_before_any_work(tmp_path, changes, status, message):
    line = last_line(call(train_command(tmp_path / "run", **changes), env={"PATH": "/usr/bin"}, cwd=tmp_path), status)
    assert message in line and not (tmp_path / "run").exists()


def test_mistakes_of_an_evaluation(whole):
    assert 'did you mean "fog"?' in last_line(call([PROGRAM, "eval", whole, "--corrupt", "frog"]), 2)
    assert "severity" in last_line(call([PROGRAM, "eval", whole, "--corrupt", "fog", "--severity", "6"]), 2)
    assert "swap_rate" in last_line(call([PROGRAM, "eval", whole, "--swap", "0.1"]), 2)


def test_compare_with_controls(tmp_path):
    command = [PROGRAM, "compare", RECIPE, "--run", tmp_path / "runs", "--seeds", "2", "--controls", "matched constant", "--format", "json"]
    table = json.loads(check([*command, "--threads", "1", "--split", "valid", "--corrupt", "contrast", *settings({**TINY, "train.steps": 2})]).stdout)
    assert table["problems"] == ["null twin: is missing, without it the floor is unknown (elliptical compare RECIPE --run DIR trains it)"]
    assert (table["metric"], table["corruption"], table["severity"]) == ("accuracy", "contrast", 3)
    assert [method["name"] for method in table["methods"]] == ["softmax", "elliptical", "matched constant"]
    for method in table["methods"]:
        assert list(method["measures"]) == ["clean", "corrupted"] and method["images_per_second"] > 0
    values = [r["value"] for r in read_lines(tmp_path / "runs" / "softmax-seed-1", "records.jsonl") if r["metric"] == "accuracy" and r["source"] == "eval"]
    assert [table["methods"][0]["measures"][m]["values"][0] for m in ("clean", "corrupted")] == values


@pytest.mark.parametrize("recipe, parameters", [("tiny", "5,717,416"), ("small", "22,050,664"), ("base", "86,567,656")])
@pytest.mark.parametrize("attention", ["softmax", "elliptical"])
def test_full_size_recipes_have_the_published_counts(recipe, parameters, attention):
    path = ROOT / "recipes" / "vit" / f"deit-{recipe}-{attention}.toml"
    text = check([PROGRAM, "config", path, "--no-measure"]).stdout
    assert f"# parameters      {parameters}\n" in text and "= 300 epochs" in text


@pytest.mark.skipif(not (DATA / "deit-tiny").is_dir(), reason="deit-tiny is not below $ELLIPTICAL_DATA")
def test_recipes_of_the_published_model_are_compared(tmp_path):
    """By their names, which are not those of their attention; the published weights are what both begin with."""
    recipes = [ROOT / "recipes" / "vit" / f"two-core-pretrained-{attention}.toml" for attention in ("softmax", "elliptical")]
    command = [PROGRAM, "compare", *recipes, "--run", tmp_path / "runs", "--seeds", "1", "--controls", "matched constant", "--threads", "1"]
    command += ["--reference", "pretrained softmax", "--corrupt", "none", "--format", "json"]
    for option in ("task.data.name=small-pictures", "task.batch_size=2", "train.steps=1", "schedule.warmup_steps=0", "train.checkpoint_interval=0"):
        command += ["--set", option]
    table = json.loads(check(command).stdout)
    assert [(row["name"], row["role"]) for row in table["methods"]] == [
        ("pretrained softmax", "reference"), ("pretrained elliptical", "method"), ("matched constant", "control"),
    ]
    assert table["problems"] == [] and table["matched"] == "matched constant"
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "matched-constant-seed-1", "pretrained-elliptical-seed-1", "pretrained-softmax-seed-1",
    ]
    for run in (tmp_path / "runs").iterdir():
        assert {record["init"] for record in read_lines(run, "records.jsonl")} == {"deit-tiny"}
