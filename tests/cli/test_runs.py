"""train, resume, fork, eval and config as a user meets them. Fault IDs: C3, C8, C9, C11, C12, R3, S5."""

import csv
import io
import json
import os
import shutil
import signal
import struct
import subprocess

import pytest

from runs import (
    PROGRAM,
    RECIPE,
    ROOT,
    call,
    check,
    copy_run,
    losses,
    num_logged,
    records,
    resume_command,
    rewrite_file,
    settings,
    steps,
    train_command,
    wait_until,
    weights,
    write_state,
)

SMOKE = "These are smoke runs, shrunk by --smoke to end within seconds: their numbers mean nothing."
RECIPES = sorted(path.relative_to(ROOT) for path in (ROOT / "recipes").rglob("*.toml"))


def one_line(result, status):
    assert result.returncode == status, result.stderr
    return result.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of 4 steps with checkpoints 2 and 4; copy it before changing it."""
    run = tmp_path_factory.mktemp("runs") / "finished"
    check(train_command(run, train__steps=4, train__checkpoint_interval=2))
    return run


@pytest.fixture
def endless(tmp_path):
    """A training process that has done at least one step and will not end by itself."""
    run = tmp_path / "endless"
    command = train_command(run, train__steps=1_000_000, train__checkpoint_interval=0)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: num_logged(run) > 0, process, "the first step")
    yield run, process
    process.kill()
    process.communicate()


def test_text_is_described_in_one_line(tmp_path):
    text = tmp_path / "text"
    text.mkdir()
    (text / "train.txt").write_text("a b c d\n" * 200)
    (text / "valid.txt").write_text("a b x d\n" * 40)
    line = (
        "text: text: train.txt, valid.txt (there is no test text: test is valid); tokens: train 1000, valid 200, test 200; "
        "vocabulary: 6; unknown words: train 0.00 %, valid 25.00 %, test 25.00 %"
    )
    run = tmp_path / "run"
    command = train_command(run, task__data__name=text, train__steps=2, train__eval_interval=1)
    lines = command.index("task.data.train_lines=300")
    result = check(command[: lines - 1] + command[lines + 1 :])
    assert [each for each in result.stderr.splitlines() if each.startswith("text: ")] == [line]
    perplexity = {}
    for split in ("valid", "test"):
        result = check([PROGRAM, "eval", run, "--split", split, "--format", "json"])
        assert result.stderr.splitlines()[0] == line
        perplexity[split] = json.loads(result.stdout)[0]["value"]
    assert perplexity["valid"] == perplexity["test"]


def test_train_leaves_a_run(finished):
    assert steps(finished) == [2, 4]
    assert [step for step, _ in losses(finished)] == [1, 2, 3, 4]
    state = json.loads((finished / "checkpoints" / "step-4" / "state.json").read_text())
    assert state["step"] == 4 and state["program"].startswith("elliptical ")
    measured = records(finished)
    assert "perplexity" in {record["metric"] for record in measured}
    assert {record["step"] for record in measured} == {4}


def test_finished_run_is_not_trained_again(finished):
    before = weights(finished)
    result = check(resume_command(finished))
    assert "perplexity" in result.stdout and weights(finished) == before


def test_train_into_an_existing_run_is_refused(finished):
    line = one_line(call(train_command(finished)), 1)
    assert "holds a run already (continue it: elliptical resume" in line


def test_nothing_is_left_of_a_start_that_failed(tmp_path):
    result = call(train_command(tmp_path / "run", task__model__num_heads=3))
    assert result.returncode == 2 and not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--set", "train.stesp=3"], "did you mean"),
        (["--set", "train.steps=many"], "train.steps"),
        (["--set", "train.steps=-1"], "train.steps"),
        (["--set", "task.model.attention.name=eliptical"], "did you mean"),
        (["--treads", "1"], 'option unknown "--treads", did you mean "--threads"?'),
    ],
)
def test_s5_mistakes_are_found_before_any_work(tmp_path, arguments, message):
    line = one_line(call([PROGRAM, "train", RECIPE, "--run", tmp_path / "run", *arguments]), 2)
    assert message in line and not (tmp_path / "run").exists()


def test_s5_unknown_key_of_a_recipe_is_named_with_its_line(tmp_path):
    recipe = tmp_path / "wrong.toml"
    recipe.write_text('[task]\nname = "language_model"\n\n[train]\nstpes = 3\n')
    line = one_line(call([PROGRAM, "train", recipe, "--run", tmp_path / "run"]), 2)
    assert "wrong.toml:5" in line and '"train.steps"' in line


@pytest.mark.parametrize("number, status", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_c9_signal_saves_and_stops(endless, number, status):
    run, process = endless
    process.send_signal(number)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == status
    assert f"stopped by {number.name} after step {steps(run)[-1]}, saved" in errors.splitlines()[-1]
    assert len(losses(run)) == steps(run)[-1]


def test_c9_user_signal_saves_and_goes_on(endless):
    run, process = endless
    process.send_signal(signal.SIGUSR1)
    wait_until(lambda: steps(run), process, "the checkpoint")
    wait_until(lambda: num_logged(run) > steps(run)[-1] + 1, process, "further steps")


def test_c8_second_process_is_refused(endless):
    run, process = endless
    line = one_line(call(resume_command(run)), 1)
    assert f"is in use by process {process.pid}" in line
    process.kill()  # a crash leaves no lock behind
    process.wait()
    process = subprocess.Popen(resume_command(run), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_until(lambda: num_logged(run) > 0, process, "the first step")
    process.kill()
    process.communicate()


def test_c11_changed_configuration_is_refused_and_fork_allows_it(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    config = run / "config.toml"
    text = config.read_text()
    assert "steps = 4" in text
    config.write_text(text.replace("steps = 4", "steps = 6", 1))
    line = one_line(call(resume_command(run)), 1)
    assert "train.steps: 6, was 4" in line and "elliptical fork" in line
    forked = tmp_path / "forked"
    check([PROGRAM, "fork", run, "--run", forked, "--set", "optimizer.learning_rate=0.01"])
    assert steps(forked)[-1] == 6
    assert [step for step, _ in losses(forked)] == [5, 6]


def test_fork_beyond_the_last_step_is_refused(finished, tmp_path):
    target = tmp_path / "f"
    line = one_line(call([PROGRAM, "fork", finished, "--run", target, "--set", "train.steps=3"]), 2)
    assert line == (
        "elliptical: fork: train.steps must be at least 4, the step that it starts from, is 3 (--set train.steps=N, an earlier "
        "checkpoint with --step, there are 2, 4, or --restart)"
    )
    assert not target.exists()
    check([PROGRAM, "fork", finished, "--run", target, "--set", "train.steps=3", "--step", "2"])
    assert steps(target) == [2, 3] and {record["step"] for record in records(target)} == {3}
    line = one_line(call([PROGRAM, "fork", finished, "--run", target, "--set", "train.steps=8"]), 1)
    assert f"{target}: must be new, holds a run already" in line


def test_fork_at_the_last_step_measures_the_weights(finished, tmp_path):
    """Softmax weights with a metric, without training: what docs/vision.md calls a switch."""
    target = tmp_path / "switched"
    result = check([PROGRAM, "fork", finished, "--run", target, "--set", "task.model.attention.name=softmax"])
    (measured,) = [r for r in records(target) if r["metric"] == "perplexity"]
    assert (measured["step"], measured["attention"]) == (4, "softmax")
    assert "perplexity" in result.stdout and losses(target) == [] and steps(target) == [4]
    assert weights(target)[0] == weights(finished)[0]


def test_no_steps_are_said(tmp_path):
    result = check(train_command(tmp_path / "run", train__steps=0))
    assert result.stderr.splitlines()[-1] == (
        f"{tmp_path}/run: holds its first weights, nothing was trained or measured (measure them: elliptical eval {tmp_path}/run)"
    )


@pytest.mark.parametrize("command", [["eval"], ["generate"], ["attack", "--attack", "pgd", "--eps", "0.1"], ["fork", "--run", "x"]], ids=lambda c: c[0])
def test_a_step_without_checkpoint_is_told_with_those_there_are(finished, tmp_path, command):
    name, *arguments = command
    line = one_line(call([PROGRAM, name, finished, *arguments, "--step", "3"], cwd=tmp_path), 1)
    assert line == f"elliptical: {finished}: --step must be one of its checkpoints, 2, 4, got 3"
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def diverged(finished, tmp_path):
    """A run whose weights are finite and whose perplexity is not."""
    run = copy_run(finished, tmp_path / "diverged")
    shutil.rmtree(run / "checkpoints" / "step-2")
    folder = run / "checkpoints" / "step-4"
    model = bytearray((folder / "model.safetensors").read_bytes())
    (length,) = struct.unpack("<Q", model[:8])
    header = json.loads(bytes(model[8 : 8 + length]))
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            values = memoryview(model)[begin:end].cast("f")
            for i, value in enumerate(values):
                values[i] = value * 1e6
            values.release()
    rewrite_file(folder / "model.safetensors", bytes(model))
    write_state(folder, {**json.loads((folder / "state.json").read_text()), "evaluated": False})
    (run / "records.jsonl").unlink()
    return run


def test_n1_a_diverged_run_ends_with_a_sentence(diverged):
    message = (
        f"elliptical: {diverged}: what is measured must be finite, perplexity is inf (recorded as it is; the training has diverged: "
        "train it again with a lower optimizer.learning_rate or optimizer.clip_norm)"
    )
    resumed = call(resume_command(diverged))
    assert one_line(resumed, 1) == message and "perplexity" in resumed.stdout
    measured = call([PROGRAM, "eval", diverged, "--split", "test", "--format", "json"])
    assert one_line(measured, 1) == message
    (printed,) = [r for r in json.loads(measured.stdout) if r["metric"] == "perplexity"]
    (recorded,) = [r for r in records(diverged) if r["metric"] == "perplexity" and r["split"] == "test"]
    assert printed["value"] == recorded["value"] == "inf"
    assert one_line(call(resume_command(diverged)), 1) == message


@pytest.mark.parametrize("arguments", [[], ["--temperature", "0"], ["--top-k", "3"]], ids=["drawn", "likeliest", "of three"])
def test_n1_a_diverged_run_writes_no_text(finished, tmp_path, arguments):
    """Weights of 1e30 are finite; what they say of words is no number."""
    run = tmp_path / "run"
    options = ("optimizer.learning_rate=1e30", "schedule.warmup_steps=0", "train.steps=5")
    result = call([PROGRAM, "fork", finished, "--run", run, *(word for option in options for word in ("--set", option))])
    assert "what is measured must be finite" in one_line(result, 1)
    result = call([PROGRAM, "generate", run, "--prompt", "the", *arguments])
    assert one_line(result, 1) == (
        "elliptical: generate: the model must give words probabilities, gives none that are numbers (its training has diverged: "
        "choose an older checkpoint with --step, or train it again with a lower optimizer.learning_rate)"
    )
    assert result.stdout in ("", "the"), "no word but the prompt"


def test_n1_a_comparison_with_a_diverged_run_fails(finished, diverged, tmp_path):
    folder = tmp_path / "both"
    assert call(resume_command(diverged)).returncode == 1
    for source, name in ((finished, "good"), (diverged, "bad")):
        run = copy_run(source, folder / name)
        (run / "config.toml").write_text((run / "config.toml").read_text().replace('name = ""', f'name = "{name}"', 1))
    result = call([PROGRAM, "compare", "--run", folder])
    assert one_line(result, 1).startswith("elliptical: compare: what is measured must be finite, some of it is not and is left out")
    assert f"{folder}/bad: perplexity must be finite, is not" in result.stdout


def test_fork_of_another_shape_is_refused(finished, tmp_path):
    command = [PROGRAM, "fork", finished, "--run", tmp_path / "f", "--set", "task.model.num_layers=3"]
    line = one_line(call(command), 1)
    assert "model.safetensors: must hold " in line


def test_c6_damaged_newest_checkpoint_is_named_and_the_older_one_used(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    model = run / "checkpoints" / "step-4" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-1])
    result = check(resume_command(run))
    assert f"{model}: must have" in result.stderr and "continues after step 2" in result.stderr
    assert weights(run) == weights(finished) and losses(run) == losses(finished)


def test_eval_formats(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    command = [PROGRAM, "eval", run, "--split", "test", "--swap", "0.05"]
    measured = json.loads(check([*command, "--format", "json"]).stdout)
    rows = list(csv.DictReader(io.StringIO(check([*command, "--format", "csv"]).stdout)))
    assert [row["metric"] for row in rows] == [record["metric"] for record in measured]
    for row, record in zip(rows, measured):
        assert float(row["value"]) == record["value"]
        assert record["split"] == "test" and record["step"] == 4 and record["source"] == "eval"
    assert "perplexity" in check(command).stdout
    # Each evaluation joined the records of the run.
    assert sum(record["source"] == "eval" for record in records(run)) == 3 * len(measured)


def test_eval_by_a_sliding_window_says_its_cost_and_its_method(finished, tmp_path):
    run = copy_run(finished, tmp_path / "run")
    by_blocks = check([PROGRAM, "eval", run])
    assert by_blocks.stdout.startswith("small-language (valid), by blocks of 16 tokens in 10 columns:\n\n")
    assert "sliding window" not in by_blocks.stderr
    sliding = check([PROGRAM, "eval", run, "--method", "sliding"])
    assert sliding.stdout.startswith("small-language (valid), by a sliding window of 16 tokens, stride 1:\n\n")
    said = [line for line in sliding.stderr.splitlines() if line.startswith("eval: ")]
    assert said[0].startswith("eval: sliding window: ") and " windows of 16 tokens, " in said[0]
    assert " tokens are read to score " in said[0]  # before the first line of progress, which has a rate
    assert any(line.startswith("eval: about ") for line in said) and any(" tokens/s  ETA " in line for line in said)
    last = [r for r in records(run) if r["source"] == "eval" and r["metric"] == "perplexity"][-2:]
    assert [(r["method"], r.get("stride"), r.get("columns")) for r in last] == [("block", None, 10), ("sliding", 1, None)]
    assert last[1]["count"] > last[0]["count"]
    assert 'method' in one_line(call([PROGRAM, "eval", run, "--method", "slide"]), 2)


def test_eval_dump_is_a_safetensors_file(finished, tmp_path):
    run, dump = copy_run(finished, tmp_path / "run"), tmp_path / "dump.safetensors"
    measured = json.loads(check([PROGRAM, "eval", run, "--dump", dump, "--format", "json"]).stdout)
    content = dump.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    perplexity = next(record for record in measured if record["metric"] == "perplexity")
    assert perplexity["count"] in [entry["shape"][0] for name, entry in header.items() if name != "__metadata__"]


def test_eval_mistakes(finished, tmp_path):
    assert "split" in one_line(call([PROGRAM, "eval", finished, "--split", "tset"]), 2)
    assert "there is no such folder" in one_line(call([PROGRAM, "eval", tmp_path / "none"]), 1)


def test_config_prints_a_recipe_and_its_cost(tmp_path):
    text = check([PROGRAM, "config", RECIPE, *settings()]).stdout
    assert "# parameters" in text and "hours" in text
    again = tmp_path / "again.toml"
    again.write_text(text)
    assert check([PROGRAM, "config", again, "--no-measure"]).stdout == check(
        [PROGRAM, "config", RECIPE, *settings(), "--no-measure"]
    ).stdout


def test_config_describes_every_option():
    rows = json.loads(check([PROGRAM, "config", RECIPE, "--no-measure", "--format", "json"]).stdout)["options"]
    assert {"seed", "train.steps", "optimizer.learning_rate", "schedule.shape"} <= {row["key"] for row in rows}
    assert all(row["help"] for row in rows)
    table = check([PROGRAM, "config", RECIPE, "--format", "table"]).stdout
    assert all(row["key"] in table for row in rows)


@pytest.mark.parametrize(
    "recipe, parameters",
    [("small", "44,018,394"), ("medium", "89,833,434")],
)
@pytest.mark.parametrize("attention", ["softmax", "elliptical"])
def test_full_size_recipes_have_the_published_counts(recipe, parameters, attention):
    path = ROOT / "recipes" / "lm" / f"{recipe}-{attention}.toml"
    assert f"# parameters      {parameters}\n" in check([PROGRAM, "config", path, "--no-measure"]).stdout


@pytest.mark.parametrize("attention", ["kde", "mom", "rkde-huber", "rkde-hampel", "spkde"])
def test_small_recipes_of_densities_have_the_count_of_the_backbone(attention):
    path = ROOT / "recipes" / "lm" / f"small-{attention}.toml"
    assert "# parameters      44,018,394\n" in check([PROGRAM, "config", path, "--no-measure"]).stdout


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_every_recipe_runs_when_shrunk(recipe, tmp_path):
    result = check([PROGRAM, "train", ROOT / recipe, "--run", tmp_path / "run", "--smoke"])
    assert "perplexity" in result.stdout or "accuracy" in result.stdout
    assert result.stderr.splitlines()[-1] == SMOKE
    assert all(record["smoke"] is True for record in records(tmp_path / "run"))


@pytest.mark.parametrize("what", ["attention", "corruptions", "data", "models", "tasks"])
def test_list(what):
    assert len(check([PROGRAM, "list", what]).stdout.splitlines()) > 1


@pytest.mark.parametrize("name", [b"with space", b"caf\xc3\xa9", b"\xff\xfe", b"x" * 200])
def test_c12_odd_paths(tmp_path, name):
    run = os.path.join(os.fsencode(tmp_path), name)
    check(train_command(run, train__steps=1))
    assert os.path.exists(os.path.join(run, b"checkpoints", b"step-1", b"state.json"))


def test_c12_no_locale_and_no_home(tmp_path):
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "ELLIPTICAL_DATA")}
    check(train_command(tmp_path / "run", train__steps=1), env={**environment, "LC_ALL": "xx_YY", "HOME": "/nowhere"})


def test_c3_folder_that_can_not_be_made():
    line = one_line(call(train_command("/proc/run", train__steps=1)), 1)
    assert line.startswith("elliptical: /proc/run: could not be created: ")


def test_r3_nobody_reads_stderr(tmp_path):
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(train_command(tmp_path / "run", train__steps=2), stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    assert result.returncode == 0 and b"perplexity" in result.stdout


def test_r3_no_terminal_no_control_characters(tmp_path):
    result = check(train_command(tmp_path / "run", train__steps=2))
    assert "train:  100% 2/2  loss " in result.stderr
    assert "\r" not in result.stderr and "\033" not in result.stderr
