"""`elliptical demo`, what ./run does without arguments: comparisons of text and pictures, attacks, a report, and where to go on."""

import re

import pytest

from runs import PROGRAM, ROOT, check, read_lines


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
    for claim in ("better than", "worse than", "equals", " against ", "noise"):
        assert claim not in result.stdout
    assert f"Open {folder}/report.html and {folder}/report-pictures.html in a browser" in result.stdout
    for name in ("report.html", "report-pictures.html"):
        page = (folder / name).read_text()
        assert page.startswith("<!DOCTYPE html>") and "matched constant" in page
        assert "like the others" not in page  # runs of one task each


def test_data_are_described_once(first):
    folder, command, result = first
    described = [line for line in result.stderr.splitlines() if line.startswith(("text: ", "pictures: "))]
    assert described[0].startswith("text: small-language: made up; tokens: train ")
    assert len(set(described)) == len(described) and all(line.startswith("pictures: ") for line in described[1:])
    assert any(line.startswith("pictures: 8 of ") for line in described), described


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
