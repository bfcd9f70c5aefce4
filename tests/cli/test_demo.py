"""`elliptical demo`, what ./run does without arguments: comparisons of text and pictures, attacks, a report, and where to go on."""

import json
import re
import shutil

import pytest

from runs import PROGRAM, ROOT, check, read_lines


CLAIMS = ("better than", "worse than", "equals", " against ", "noise")


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """The folder, the command and what it said first."""
    folder = tmp_path_factory.mktemp("demo")
    command = [PROGRAM, "demo", "--smoke", "--recipes", ROOT / "recipes", "--run", folder / "runs"]
    command += ["--report", folder / "report.html", "--threads", "1"]
    return folder, command, check(command)


def test_compares_and_reports(first):
    folder, command, result = first
    for name in ("softmax", "elliptical", "matched constant", "learned temperature"):
        assert f"\n{name} " in result.stdout
        # --smoke is of the built-in language, and runs on other data have a folder of their own.
        run = folder / "runs-small-language" / (name.replace(" ", "-") + "-seed-1")
        assert {line["name"] for line in read_lines(run, "records.jsonl")} == {name}
    assert result.stdout.count("Nothing can be said with one seed about differences") == 2
    assert result.stdout.count("their numbers mean nothing.\n\n") == 2
    for claim in CLAIMS:
        assert claim not in result.stdout
    assert f"Open {folder}/report.html and {folder}/report-pictures.html in a browser" in result.stdout
    for name in ("report.html", "report-pictures.html"):
        page = (folder / name).read_text()
        assert page.startswith("<!DOCTYPE html>") and "matched constant" in page
        assert "like the others" not in page  # runs of one task each


def as_if_real(source, target, seed=1, factor=1.0):
    """A copy of a run that does not say that it is one of --smoke, of another seed and other numbers."""
    shutil.copytree(source, target)
    config = (target / "config.toml").read_text()
    assert "smoke = true\n" in config and "seed = 1\n" in config
    (target / "config.toml").write_text(config.replace("smoke = true\n", "").replace("seed = 1\n", f"seed = {seed}\n"))
    lines = read_lines(target, "records.jsonl")
    for record in lines:
        record.pop("smoke")
        record |= {"seed": seed, "value": record["value"] * factor}
    (target / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in lines))


@pytest.mark.parametrize("kind", ["small-language", "pictures-small-pictures"])
def test_one_seed_claims_nothing_even_where_the_numbers_mean_something(first, tmp_path, kind):
    """--smoke says nothing about differences in any case: here its flag is gone."""
    folder, _, _ = first
    for run in (folder / f"runs-{kind}").iterdir():
        as_if_real(run, tmp_path / "one" / run.name)
        for seed in (1, 2):
            factor = 1 + 0.1 * seed * run.name.startswith("elliptical")
            as_if_real(run, tmp_path / "two" / run.name.replace("-1", f"-{seed}"), seed, factor)
    text = check([PROGRAM, "compare", "--run", tmp_path / "one"]).stdout
    assert "Nothing can be said with one seed about differences" in text and "mean nothing" not in text
    assert not [claim for claim in CLAIMS if claim in text]
    text = check([PROGRAM, "compare", "--run", tmp_path / "two"]).stdout
    assert " against " in text and "noise" in text and ("better than" in text or "worse than" in text), "two seeds do claim"


def test_attacks_classifiers(first):
    folder, command, result = first
    assert re.search(r"Attacked: 8 of \d+ pictures, of 10 classes alike\.", result.stdout)
    for attack in ("fgsm", "pgd"):
        table = result.stdout.split(f"\n{attack}, eps 1/255 ")[1].splitlines()[1:]
        cells = [re.split("  +", line) for line in table[: table.index("")]]
        assert [row[0] for row in cells] == ["softmax", "elliptical", "matched constant"]
        for name, _, shown, *_ in cells:
            run = folder / "runs-pictures-small-pictures" / f"{name.replace(' ', '-')}-seed-1"
            (value,) = [r["value"] for r in read_lines(run, "records.jsonl") if r["metric"] == "robust_accuracy" and r["attack"] == attack]
            assert shown == f"{value:.2f}"
            assert (run / "attack.safetensors").exists()
    page = (folder / "report-pictures.html").read_text()
    assert "fgsm" in page and "pgd" in page


def test_what_is_finished_is_not_done_again(first):
    folder, command, result = first
    before = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    again = check(command)
    assert "step" not in again.stderr and "attack" not in again.stderr
    assert again.stdout == result.stdout
    assert {path: path.read_bytes() for path in folder.rglob("*.jsonl")} == before
