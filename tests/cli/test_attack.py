"""`elliptical attack`: what can go wrong before a picture is touched."""

import json

import pytest

import runs
import vision_runs


@pytest.fixture(scope="module")
def language_run(tmp_path_factory):
    run = tmp_path_factory.mktemp("attack") / "run"
    runs.check(runs.train_command(run, train__steps=1))
    return run


def test_a_language_model_is_refused_in_one_line(elliptical, language_run):
    before = (language_run / "records.jsonl").read_bytes()
    result = elliptical("attack", language_run, "--attack", "pgd", "--eps", "1/255", "--batch-size", "8")
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.splitlines() == [
        "elliptical: attack: needs a run whose task classifies pictures, this one's is language_model "
        "(a text is damaged by: elliptical eval RUN --swap 0.025)"
    ]
    assert (language_run / "records.jsonl").read_bytes() == before
    assert not (language_run / "attacks.jsonl").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--attack", "pgdd", "--eps", "1/255"], '--attack: unknown "pgdd", did you mean "pgd"?'),
        (["--attack", "pgd", "--eps", "-1/255"], "--eps: must be a number or a fraction like 1/255, not negative"),
        (["--attack", "pgd", "--eps", "nan"], "--eps: must be a number or a fraction like 1/255, not negative"),
        (["--attack", "pgd", "--eps", "4"], 'the range of a pixel, got "4" (did you mean 4/255?)'),
        (["--attack", "pgd", "--eps", "0.1", "--set", "pgd.stps=1"], 'did you mean "pgd.steps"?'),
        (["--attack", "pgd", "--eps", "0.1", "--profile", "strickt"], 'did you mean "strict"?'),
        (["--attack", "pgd,fgsm", "--eps", "0.1", "--dump", "x"], "--dump: must be of one attack, one eps"),
        (["--attack", "pgd", "--eps", "0.1", "--metric-gradient", "both", "--dump", "x"], "got 2 combinations"),
        (["--attack", "pgd"], "--eps is required"),
    ],
)
def test_wrong_usage_is_told_before_a_run_is_read(elliptical, arguments, message):
    result = elliptical("attack", "no/such/run", *arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_attacks_are_listed(elliptical):
    result = elliptical("list", "attacks", "--format", "csv")
    assert result.returncode == 0
    names = [line.split(",")[0] for line in result.stdout.splitlines()[1:]]
    assert names == "apgd-ce apgd-dlr apgd-t auto-attack fab-t fgsm pgd spsa square".split()


AUTO_ATTACK = ["--attack", "auto-attack", "--eps", "2/255", "--set", "auto-attack.apgd.steps=2", "--set", "auto-attack.apgd_t.steps=2"]
AUTO_ATTACK += ["--set", "auto-attack.fab.steps=2", "--set", "auto-attack.square.queries=5"]


def test_a2_a_skipped_stage_is_no_stage_that_ran(elliptical, tmp_path):
    """Three classes: apgd-t can not be done, which the screen, the records and the report say."""
    for split in ("train", "val"):
        vision_runs.write_pictures(tmp_path / "three" / split, ["a", "b", "c"], per_class=4)
    run = tmp_path / "run"
    runs.check(vision_runs.train_command(run, train__steps=1, task__data__name=tmp_path / "three"))
    command = vision_runs.attack_command(run, *AUTO_ATTACK)
    attacked = runs.check(command)
    name = "auto-attack, eps 2/255, apgd.steps=2 apgd_t.steps=2 fab.steps=2 square.queries=5"
    skipped = "apgd-t was skipped, the model has too few classes for it: skipped_stages (the other attacks are all there is)"
    assert f"{name}: accuracy may be too high, {skipped}" in attacked.stderr.splitlines()
    records = json.loads(attacked.stdout)
    stages = {r["stage"]: r["skipped"] for r in records if r["metric"] == "robust_accuracy_after"}
    assert stages == {"apgd-ce": False, "apgd-t": True, "fab-t": False, "square": False}
    (robust,) = [r for r in records if r["metric"] == "robust_accuracy"]
    assert robust["skipped_stages"] == "apgd-t" and robust["flag_few_classes"] is True
    table = runs.check([word if word != "json" else "table" for word in command]).stdout.splitlines()
    assert "skipped" in table[0].split()
    (row,) = [line for line in table if " apgd-t" in line]
    assert "true" in row.split()
    result = elliptical("report", run, "-o", tmp_path / "report.html")
    assert result.returncode == 0
    assert f"accuracy under {name} may be too high, {skipped}" in (tmp_path / "report.html").read_text()


def test_a2_a_model_that_draws_is_doubted(tmp_path):
    run = tmp_path / "run"
    runs.check(vision_runs.train_command(run, train__steps=1, **{"task__model__attention__metric__estimator": "random"}))
    attacked = runs.check(vision_runs.attack_command(run, *AUTO_ATTACK, "--max-pictures", "4"))
    (line,) = [line for line in attacked.stderr.splitlines() if "flag_randomised" in line]
    assert line.endswith(
        ": accuracy may be too high, its answers differ between passes over the same picture: flag_randomised "
        "(attack it with --attack auto-attack --set auto-attack.version=rand)"
    )
    again = ["--attack", "auto-attack", "--eps", "2/255", "--set", "auto-attack.version=rand", "--set", "auto-attack.apgd.steps=2"]
    assert "flag_randomised" not in runs.check(vision_runs.attack_command(run, *again, "--max-pictures", "4")).stderr
