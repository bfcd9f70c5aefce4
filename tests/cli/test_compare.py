"""`elliptical compare`: runs are planned, trained, measured once, and told apart or not."""

import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from runs import PROGRAM, RECIPE, ROOT, call, check, comparison_table, read_lines, settings
from runs import folder_state as state

CONTROLS = "matched constant,null twin"
MEASURES = ["clean", "swapped", "clean targets, swapped text", "swapped targets"]


def compare_command(folder, *arguments, recipes=(RECIPE,), seeds=2, controls=CONTROLS, threads=1, **changes):
    changes = {"train__steps": 3, **changes}
    command = [PROGRAM, "compare", *recipes, "--run", folder, "--seeds", str(seeds), "--controls", controls]
    return [*command, "--threads", str(threads), *settings(**changes), *arguments]


def table_of(text):
    return comparison_table(text, "tokens")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A comparison that nothing disturbed, and its table."""
    folder = tmp_path_factory.mktemp("compare") / "runs"
    result = check(compare_command(folder, "--format", "json"))
    return folder, result


def test_softmax_method_and_controls(whole):
    folder, result = whole
    table = table_of(result.stdout)
    assert sorted(path.name for path in folder.iterdir()) == [
        f"{name}-seed-{seed}" for name in ("elliptical", "matched-constant", "null-twin", "softmax") for seed in (1, 2)
    ]
    assert [(m["name"], m["role"]) for m in table["methods"]] == [
        ("softmax", "reference"), ("elliptical", "method"), ("matched constant", "control"), ("null twin", "control")
    ]
    assert table["problems"] == []
    assert (table["reference"], table["matched"], table["split"], table["swap_rate"]) == ("softmax", "matched constant", "test", 0.025)
    for method in table["methods"]:
        assert method["seeds"] == [1, 2]
        assert list(method["measures"]) == MEASURES
    difference = table["methods"][1]["measures"]["clean"]["to_reference"]
    low, high = difference["interval"]
    assert low < difference["percent"] < high
    assert "run 3 of 8: matched constant, seed 1 (metric 0." in result.stderr


def test_values_are_those_of_the_records(whole):
    folder, result = whole
    for method in json.loads(result.stdout)["methods"]:
        for place, seed in enumerate(method["seeds"]):
            run = folder / f"{method['name'].replace(' ', '-')}-seed-{seed}"
            values = {r["perturbation"]: r["value"] for r in read_lines(run, "records.jsonl") if r["metric"] == "perplexity" and r["split"] == "test"}
            assert method["measures"]["clean"]["values"][place] == values["none"]
            assert method["measures"]["swapped"]["values"][place] == values["word_swap"]


def test_controls_have_the_measured_mean_of_their_pair(whole):
    folder, _ = whole
    for seed in (1, 2):
        (mean,) = [
            r["value"] for r in read_lines(folder / f"elliptical-seed-{seed}", "records.jsonl")
            if r["metric"] == "metric_mean" and r["source"] == "train" and r["step"] == 3
        ]
        for name, factor in (("matched-constant", 1), ("null-twin", 1.002)):
            config = (folder / f"{name}-seed-{seed}" / "config.toml").read_text()
            (value,) = [float(line.split("=")[1]) for line in config.splitlines() if line.startswith(("value =", "metric.value ="))]
            assert value == pytest.approx(factor * mean, rel=1e-12)


def test_what_is_there_is_not_done_again(whole):
    folder, result = whole
    before = state(folder)
    again = check(compare_command(folder, "--format", "json"))
    assert state(folder) == before
    assert again.stdout == result.stdout
    assert again.stderr == "8 of 8 runs are there already\n"
    assert json.loads(check([PROGRAM, "compare", "--run", folder, "--format", "json"]).stdout) == json.loads(result.stdout)


def test_data_are_described_once(tmp_path):
    """An own text without test.txt is measured on valid.txt: nobody shall take that for test text."""
    text = tmp_path / "text"
    text.mkdir()
    (text / "train.txt").write_text("a b c d\n" * 200)
    (text / "valid.txt").write_text("a b x d\n" * 40)
    command = compare_command(tmp_path / "runs", seeds=1, controls="matched constant", task__data__name=text)
    lines = command.index("task.data.train_lines=300")
    command = command[: lines - 1] + command[lines + 1 :]
    described = (
        "text: text: train.txt, valid.txt (there is no test text: test is valid); tokens: train 1000, valid 200, test 200; "
        "vocabulary: 6; unknown words: train 0.00 %, valid 25.00 %, test 25.00 %"
    )
    result = check(command)
    assert [line for line in result.stderr.splitlines() if line.startswith("text: ")] == [described]
    assert "done in" in result.stderr and f"Perplexity on {text} (test)" in result.stdout


def test_by_a_sliding_window_beside_what_is_there(whole, tmp_path):
    folder, before = whole
    mine = tmp_path / "runs"
    subprocess.run(["cp", "-a", folder, mine], check=True)
    command = compare_command(mine, "--method", "sliding", "--format", "json")
    result = check(command)
    assert "sliding windows: 16 evaluations of " in result.stderr and " windows of 16 tokens each, " in result.stderr
    assert "steps of training, a run has 3" in result.stderr
    table, blocks = table_of(result.stdout), table_of(before.stdout)
    assert (table["method"], table["window"], table["stride"]) == ("sliding", 16, 1)
    assert (blocks["method"], blocks["columns_of_text"]) == ("block", 10)
    assert table["problems"] == [] and [list(m["measures"]) for m in table["methods"]] == [MEASURES] * 4
    for method in table["methods"]:
        values = [
            r["value"]
            for seed in (1, 2)
            for r in read_lines(mine / f"{method['name'].replace(' ', '-')}-seed-{seed}", "records.jsonl")
            if r["metric"] == "perplexity" and r["split"] == "test" and r["method"] == "sliding" and r["perturbation"] == "none"
        ]
        assert method["measures"]["clean"]["values"] == values
    # Nothing is measured twice, each method has its table, and the heading says which one it is.
    once = state(mine)
    assert table_of(check(command).stdout) == table and state(mine) == once
    text = check([PROGRAM, "compare", "--run", mine]).stdout
    assert text.startswith("Perplexity on small-language (test) by blocks of 16 tokens in 10 columns; lower is better.")
    text = check([PROGRAM, "compare", "--run", mine, "--method", "sliding"]).stdout
    assert text.startswith("Perplexity on small-language (test) by a sliding window of 16 tokens, stride 1; lower is better.")


def test_method_is_of_text(tmp_path):
    recipe = ROOT / "recipes" / "smoke" / "vit.toml"
    result = call([PROGRAM, "compare", recipe, "--run", tmp_path / "runs", "--method", "sliding", "--smoke"])
    message = "compare: --method needs recipes of language_model, these are of classify_image (leave it out)"
    assert (result.returncode, result.stderr) == (2, f"elliptical: {message}\n")


def test_more_seeds_keep_what_is_there(whole, tmp_path):
    folder, _ = whole
    copy = tmp_path / "runs"
    subprocess.run(["cp", "-a", folder, copy], check=True)
    before = state(copy)
    result = check(compare_command(copy, "--format", "json", seeds=3))
    assert "8 of 12 runs are there already" in result.stderr
    after = state(copy)
    assert {path: after[path] for path in before} == before
    assert table_of(result.stdout)["methods"][0]["seeds"] == [1, 2, 3]


def test_two_jobs_give_the_same_table(whole, tmp_path):
    _, result = whole
    command = compare_command(tmp_path / "runs", "--format", "json", "--jobs", "2", threads=2)
    assert table_of(check(command).stdout) == table_of(result.stdout)


def test_p1_killed_twice_and_repeated_gives_the_same_table(whole, tmp_path):
    _, result = whole
    folder = tmp_path / "runs"
    random_numbers = random.Random(3)
    kills = 0
    while kills < 2:
        process = subprocess.Popen(compare_command(folder, "--format", "json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        records = len(list(folder.glob("*/records.jsonl")))
        wanted = records + random_numbers.randrange(1, 3)
        while process.poll() is None and len(list(folder.glob("*/records.jsonl"))) < wanted:
            time.sleep(0.001)
        time.sleep(random_numbers.uniform(0, 0.1))
        process.kill()
        process.communicate()
        kills += process.returncode == -9
        assert process.returncode in (-9, 0)
        if process.returncode == 0:  # faster than we
            subprocess.run(["rm", "-r", folder], check=True)
    again = check(compare_command(folder, "--format", "json"))
    assert table_of(again.stdout) == table_of(result.stdout)


def test_interrupted_saves_and_says_how_to_go_on(whole, tmp_path):
    _, result = whole
    folder = tmp_path / "runs"
    process = subprocess.Popen(compare_command(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list(folder.glob("*/records.jsonl")) and process.poll() is None:
        time.sleep(0.001)
    process.terminate()
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 143, errors
    assert output == ""
    assert "compare: stopped by SIGTERM, " in errors.splitlines()[-1]
    assert errors.splitlines()[-1].endswith("(go on: the same command again)")
    assert table_of(check(compare_command(folder, "--format", "json")).stdout) == table_of(result.stdout)


def test_p1_a_run_that_fails_does_not_stop_the_others(tmp_path):
    folder = tmp_path / "runs"
    run = folder / "elliptical-seed-1"
    check(compare_command(folder, "--format", "json", seeds=1))
    # Its checkpoints are gone but for their names: it can neither be resumed nor measured.
    for name in ("records.jsonl", "checkpoints/step-3/state.json"):
        (run / name).write_text("")
    for other in ("matched-constant-seed-1", "softmax-seed-1"):
        subprocess.run(["rm", "-r", folder / other], check=True)
    result = call(compare_command(folder, seeds=1))
    assert result.returncode == 1
    assert "run 2 of 4: elliptical, seed 1: failed: " in result.stderr
    assert "matched constant, seed 1: failed: needs the mean of the metric of elliptical, seed 1, which is not there" in result.stderr
    assert "run 1 of 4: softmax, seed 1: done in" in result.stderr
    assert "softmax" in result.stdout and "null twin" in result.stdout
    assert "elliptical-seed-1: must be finished" in result.stdout


def children(process):
    """Processes that a process has started and that still run."""
    try:
        return [int(word) for word in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def test_p1_m2_a_killed_child_is_named_and_the_others_go_on(whole, tmp_path):
    """As the OOM killer does it: one of two that run at once gets SIGKILL."""
    _, result = whole
    folder = tmp_path / "runs"
    process = subprocess.Popen(compare_command(folder, "--jobs", "2"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (len(children(process)) == 2 and list(folder.glob("*/config.toml"))):
        time.sleep(0.001)
    os.kill(children(process)[0], signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 1
    failed = [line for line in errors.splitlines() if ": failed: " in line]
    assert len([line for line in failed if "ended by SIGKILL, which the system sends when memory runs out (fewer --jobs" in line]) == 1, errors
    assert len([line for line in errors.splitlines() if ": done in " in line]) >= 1, errors
    again = check(compare_command(folder, "--format", "json"))
    assert table_of(again.stdout) == table_of(result.stdout)


def test_p1_c11_another_configuration_is_refused(whole):
    folder, _ = whole
    before = state(folder)
    result = call(compare_command(folder, train__steps=5))
    assert result.returncode == 1
    assert result.stdout == ""
    assert result.stderr == (
        f'elliptical: {folder}/softmax-seed-1: must hold the run "softmax, seed 1" as it is asked for, '
        "differs in train.steps: 5, was 3 (move it away, or choose another folder with --run)\n"
    )
    assert state(folder) == before


def test_a_folder_of_another_program_is_refused(tmp_path):
    run = tmp_path / "softmax-seed-1"
    run.mkdir()
    (run / "config.toml").write_text("[server]\nport = 80\n")
    result = call(compare_command(tmp_path))
    assert result.returncode == 1
    assert result.stderr.startswith(f'elliptical: {run}: must hold the run "softmax, seed 1", holds something else: ')
    assert [path.name for path in run.iterdir()] == ["config.toml"]


def test_recipes_of_different_data_are_refused(tmp_path):
    other = tmp_path / "other.toml"
    other.write_text('[task]\nname = "language_model"\n[task.data]\nname = "wikitext-2"\n')
    result = call([PROGRAM, "compare", RECIPE, other, "--run", tmp_path / "runs"])
    assert result.returncode == 2
    assert result.stderr == "elliptical: compare: recipes must be of one data set, got small-language and wikitext-2 (compare them one by one)\n"
    assert not (tmp_path / "runs").exists()


def test_data_that_are_missing_are_said_once(tmp_path):
    recipe = ROOT / "recipes" / "lm" / "two-core-softmax.toml"
    result = call([PROGRAM, "compare", recipe, "--run", tmp_path / "runs", "--seeds", "2"], env={"ELLIPTICAL_DATA": str(tmp_path), "HOME": str(tmp_path)}, cwd=tmp_path)
    assert result.returncode in (1, 3), result.stderr
    assert result.stderr.splitlines()[-1].startswith("elliptical: ")
    assert result.stderr.count("elliptical data get") == 1


def test_runs_made_by_hand(whole, tmp_path):
    folder, _ = whole
    mine = tmp_path / "mine"
    mine.mkdir()
    for name in ("softmax-seed-1", "elliptical-seed-1"):
        subprocess.run(["cp", "-a", folder / name, mine / name], check=True)
        records = [line for line in (mine / name / "records.jsonl").read_text().splitlines() if '"source":"train"' in line]
        (mine / name / "records.jsonl").write_text("\n".join(records) + "\n")
    result = check([PROGRAM, "compare", "--run", mine])
    assert "Perplexity on small-language (valid)" in result.stdout
    assert "Nothing can be said with one seed about differences" in result.stdout
    assert " against " not in result.stdout and "95 %" not in result.stdout
    assert "matched constant: is missing, without it a gain may be that of a temperature" in result.stdout
    assert "null twin" not in result.stdout  # one seed has no interval that it could question


def test_table_for_people_and_csv(whole):
    folder, result = whole
    text = check([PROGRAM, "compare", "--run", folder]).stdout
    table = json.loads(result.stdout)
    for line in table["words"]:
        assert f"  {line}\n" in text
    assert f"The runs are in {folder}. Try next:" in text
    lines = check([PROGRAM, "compare", "--run", folder, "--format", "csv"]).stdout.splitlines()
    assert len(lines) == 1 + 4 * len(MEASURES)


def test_smoke_runs_carry_a_banner_and_no_claims(tmp_path):
    banner = "These are smoke runs, shrunk by --smoke to end within seconds: their numbers mean nothing."
    command = [PROGRAM, "compare", ROOT / "recipes" / "lm" / "two-core-elliptical.toml", "--run", tmp_path / "runs"]
    command += ["--smoke", "--seeds", "2", "--controls", "matched constant", "--threads", "1", "--set", "task.data.name=small-language"]
    text = check(command).stdout
    assert text.startswith(banner + "\n\nPerplexity on small-language")
    assert text.count(banner) == 2  # above the tables and in words
    for claim in ("better than", "worse than", "equals", "noise ("):
        assert claim not in text
    table = json.loads(check([*command, "--format", "json"]).stdout)
    assert table["smoke"] is True and table["words"] == [banner]
    assert {column["margin"] for column in table["columns"]} == {0.05}
    csv = check([*command, "--format", "csv"])
    assert csv.stderr.splitlines()[-1] == banner and banner not in csv.stdout


def test_verdicts_are_those_of_the_intervals(whole):
    """Nothing is outside the noise that lies within the margin of equivalence."""
    _, result = whole
    table = json.loads(result.stdout)
    assert table["smoke"] is False
    for method in table["methods"]:
        for cell in method["measures"].values():
            for difference in (cell["to_reference"], cell["to_matched"]):
                if difference is None:
                    continue
                low, high = difference["interval"]
                verdict = (
                    "equal" if -0.05 <= low and high <= 0.05
                    else "within the noise" if low <= 0 <= high
                    else "too small to matter" if abs(difference["percent"]) <= 0.05
                    else "outside the noise"
                )
                assert difference["verdict"] == verdict
                assert difference["outside_noise"] == (verdict == "outside the noise")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--seeds", "none"], 'compare: --seeds must be how many (3) or which ones (1,2,5), got "none"'),
        (["--controls", "isotrop"], 'compare: --controls: unknown "isotrop", did you mean "isotropic"?'),
    ],
)
def test_wrong_usage(tmp_path, arguments, message):
    result = call([PROGRAM, "compare", RECIPE, "--run", tmp_path / "runs", *arguments])
    assert (result.returncode, result.stderr) == (2, f"elliptical: {message}\n")


def test_no_runs(tmp_path):
    result = call([PROGRAM, "compare", "--run", tmp_path])
    assert result.returncode == 1
    assert f"{tmp_path}: must be a folder with runs, has none" in result.stdout
