"""`elliptical compare --attack`: robust accuracies are columns like others, and are measured once."""

import json
import re
import signal
import subprocess

import pytest

import runs
from runs import PROGRAM, call, check, comparison_table, read_lines, wait_until
from runs import folder_state as state
from vision_runs import RECIPE, TINY, settings

NUM_PICTURES = 24


def compare_command(folder, *arguments, attack="pgd", seeds=2, pictures=NUM_PICTURES):
    command = [PROGRAM, "compare", RECIPE, "--run", folder, "--seeds", str(seeds), "--controls", "none", "--threads", "1"]
    command += ["--corrupt", "contrast", "--attack", attack, "--eps", "4/255", "--pictures", str(pictures)]
    return [*command, *settings({**TINY, "train.steps": 2}), *arguments]


def table_of(text):
    return comparison_table(text, "images")


def records(run, metric):
    return [record for record in read_lines(run, "records.jsonl") if record["metric"] == metric]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked") / "runs"
    return folder, check(compare_command(folder, "--format", "json"))


def test_an_attack_is_a_column(whole):
    folder, result = whole
    table = table_of(result.stdout)
    assert [column["name"] for column in table["columns"]] == ["clean", "corrupted", "pgd, eps 4/255"]
    assert [column["condition"] for column in table["columns"]] == ["clean", "damaged", "attacked"]
    assert [column["max_pictures"] for column in table["columns"]] == [0, NUM_PICTURES, NUM_PICTURES]
    assert {column["metric"] for column in table["columns"]} == {"accuracy"}
    assert not [line for line in table["problems"] if " is missing, " not in line]
    for method in table["methods"]:
        cell = method["measures"]["pgd, eps 4/255"]
        for place, seed in enumerate(method["seeds"]):
            run = folder / f"{method['name']}-seed-{seed}"
            (robust,) = records(run, "robust_accuracy")
            assert cell["values"][place] == robust["value"]
            assert (robust["count"], robust["split"], robust["profile"], robust["metric_gradient"]) == (NUM_PICTURES, "test", "strict", "through")
            parts = records(run, "block_robust_accuracy")
            assert sum(part["count"] for part in parts) == NUM_PICTURES
            assert sum(part["count"] * part["value"] for part in parts) / NUM_PICTURES == pytest.approx(robust["value"])
            # The same parts as those of an evaluation of the same pictures.
            corrupted = [part["block"] for part in records(run, "block_accuracy") if part["perturbation"] == "corruption"]
            assert [part["block"] for part in parts] == corrupted
            assert (run / "attack.safetensors").exists()
    assert table["methods"][1]["measures"]["pgd, eps 4/255"]["to_reference"]["interval"] is not None
    assert any(line.startswith("elliptical equals softmax under pgd (eps 4/255) to 0.05 points") for line in table["words"])


def test_the_same_command_changes_nothing(whole):
    folder, result = whole
    before = state(folder)
    again = check(compare_command(folder, "--format", "json"))
    assert state(folder) == before
    assert (again.stdout, again.stderr) == (result.stdout, "4 of 4 runs are there already\n")
    without = check([PROGRAM, "compare", "--run", folder, "--format", "json"])
    assert json.loads(without.stdout) == json.loads(result.stdout)


def changed_copy(folder, copy, change):
    """Of a folder of runs, with records as `change` leaves them."""
    subprocess.run(["cp", "-a", folder, copy], check=True)
    for run in copy.iterdir():
        lines = read_lines(run, "records.jsonl")
        for record in lines:
            change(record)
        (run / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in lines))
    return copy


def test_first_pictures_of_earlier_versions_are_measured_again(whole, tmp_path):
    """They may be of the first classes only, and their parts may be classes."""
    folder, result = whole

    def make_old(record):
        for label in ("subset", "cut", "pictures_total", "classes"):
            record.pop(label, None)
        record["value"] += 1

    copy = changed_copy(folder, tmp_path / "runs", make_old)
    again = check(compare_command(copy, "--format", "json"))
    table, expected = table_of(again.stdout), table_of(result.stdout)
    assert table["methods"] == expected["methods"] and table["columns"] == expected["columns"]
    assert [line for line in table["problems"] if line.startswith("attacks: 1 on the first pictures")]


def test_another_attack_is_added(whole, tmp_path):
    folder, result = whole
    copy = tmp_path / "runs"
    subprocess.run(["cp", "-a", folder, copy], check=True)
    text = check(compare_command(copy, attack="fgsm,pgd")).stdout
    assert "Corrupted: contrast, severity 3, 24 of 1000 pictures, of 10 classes alike. Attacked: 24 of 1000 pictures, of 10 classes alike." in text
    assert re.search(r"^pgd, eps 4/255 +seeds +accuracy %", text, re.M) and re.search(r"^fgsm, eps 4/255 ", text, re.M)
    assert re.search(r"^  elliptical compare .* --seeds 4 .*--corrupt contrast --attack fgsm,pgd --eps 4/255 --pictures 24 ", text, re.M)
    (run,) = copy.glob("softmax-seed-1")
    assert [record["attack"] for record in records(run, "robust_accuracy")] == ["pgd", "fgsm"], "only what was missing is done"
    lines = check([PROGRAM, "compare", "--run", copy, "--format", "csv"]).stdout.splitlines()
    assert [line.split(",softmax,")[0] for line in lines if ",softmax," in line] == ["clean", "corrupted", '"pgd, eps 4/255"', '"fgsm, eps 4/255"']


def test_more_pictures_than_there_are_are_all(tmp_path):
    folder = tmp_path / "runs"
    table = json.loads(check(compare_command(folder, "--format", "json", attack="fgsm", seeds=1, pictures=100000)).stdout)
    assert [column["max_pictures"] for column in table["columns"]] == [0, 0, 0]
    for pictures in (100000, 0):  # 0: all
        again = check(compare_command(folder, "--format", "json", attack="fgsm", seeds=1, pictures=pictures))
        assert (json.loads(again.stdout), again.stderr) == (table, "2 of 2 runs are there already\n")


def test_a2_remarks_of_attacks_are_shown(whole, tmp_path):
    folder, result = whole

    def flag(record):
        if record["metric"] == "robust_accuracy":
            record["flag_few_classes"] = True

    copy = changed_copy(folder, tmp_path / "runs", flag)
    remark = "pgd, eps 4/255: there are fewer classes than apgd-t has targets, it led to each of them: flag_few_classes (nothing is lost)"
    text = check([PROGRAM, "compare", "--run", copy]).stdout
    assert f"\nWorth knowing\n  {remark}\n" in text and text.count(remark) == 1
    table = json.loads(check([PROGRAM, "compare", "--run", copy, "--format", "json"]).stdout)
    assert table["remarks"] == [remark] and json.loads(result.stdout)["remarks"] == []


def test_what_a_run_lacks_is_told_with_a_command_that_helps(whole, tmp_path):
    folder, result = whole
    copy = tmp_path / "runs"
    subprocess.run(["cp", "-a", folder, copy], check=True)
    run = copy / "elliptical-seed-2"
    kept = [line for line in (run / "records.jsonl").read_text().splitlines() if '"source":"attack"' not in line]
    (run / "records.jsonl").write_text("\n".join(kept) + "\n")
    command = [PROGRAM, "compare", "--run", copy, "--format", "json"]
    (problem,) = [line for line in json.loads(check(command).stdout)["problems"] if "is not attacked by" in line]
    helpful = re.search(r"\((elliptical attack .*)\)", problem).group(1).split()
    table = check([PROGRAM, *helpful[1:], "--threads", "1"]).stdout
    assert "robust_accuracy" in table and "block" not in table, "parts are for programs"
    assert table_of(check(command).stdout)["methods"] == table_of(result.stdout)["methods"]


def test_killed_and_repeated_gives_the_same_table(whole, tmp_path):
    _, result = whole
    folder = tmp_path / "runs"
    for num_attacked in (1, 3):
        process = subprocess.Popen(compare_command(folder, "--format", "json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_until(lambda: len(list(folder.glob("*/attacks.jsonl"))) >= num_attacked, process, f"attack {num_attacked}")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
    again = check(compare_command(folder, "--format", "json"))
    assert table_of(again.stdout) == table_of(result.stdout)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--attack", "pgdd"], '--attack: unknown "pgdd", did you mean "pgd"? (run: elliptical list attacks)'),
        (["--attack", "pgd", "--eps", "-1/255"], '--eps: must be a number or a fraction like 1/255, not negative, got "-1/255"'),
        (["--eps", "1/255"], "compare: --eps needs an attack (--attack pgd)"),
        (["--attack", "pgd", "--pictures", "-1"], "compare: --pictures: "),
    ],
)
def test_wrong_usage_is_told_before_any_work(tmp_path, arguments, message):
    result = call([PROGRAM, "compare", RECIPE, "--run", tmp_path / "runs", *arguments])
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.startswith(f"elliptical: {message}") and result.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("option, value", [("--attack", "pgd"), ("--pictures", "5")])
def test_a_text_has_no_pictures(tmp_path, option, value):
    result = call([PROGRAM, "compare", runs.RECIPE, "--run", tmp_path / "runs", option, value])
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == (
        f"elliptical: compare: {option} needs recipes of classify_image, these are of language_model "
        "(a text is damaged by: --swap 0.025)\n"
    )
    assert not (tmp_path / "runs").exists()


def test_without_recipes_nothing_is_attacked(whole):
    folder, _ = whole
    result = call([PROGRAM, "compare", "--run", folder, "--attack", "pgd"])
    assert result.returncode == 2 and result.stderr.startswith("elliptical: compare: --attack needs recipes, ")
