"""Data sets of pictures as `eval` meets them: ImageNet-A, -R and -C, all corruptions, and files that are no pictures."""

import csv
import io
import json
import os
import shutil
import struct
import zlib
from pathlib import Path

import pytest

from runs import PROGRAM, ROOT, call, check, read_lines
from vision_runs import attack_command, last_line, measured, png, read_safetensors, train_command, write_pictures

PICTURES = ROOT / "tests" / "fixtures" / "corpus" / "picture"


def environment(data):
    return {**os.environ, "ELLIPTICAL_DATA": str(data)}


@pytest.fixture(scope="module")
def wordnet_ids():
    """The 1000 ids of ImageNet in order."""
    file = Path(os.environ.get("ELLIPTICAL_DATA", "")) / "deit-tiny" / "synset_words.txt"
    if not file.exists():
        pytest.skip("synset_words.txt of deit-tiny is not below $ELLIPTICAL_DATA")
    return [line.split()[0] for line in file.read_text().splitlines()]


@pytest.fixture(scope="module")
def columns():
    """Which outputs are the classes of ImageNet-A and of ImageNet-R, from the header."""
    text = (ROOT / "elliptical" / "data" / "image" / "imagenet_columns.h").read_text()
    lists = [part.split("}")[0] for part in text.split("= {")[1:]]
    return dict(zip("ar", ([int(number) for number in numbers.split(",")] for numbers in lists)))


@pytest.fixture(scope="module")
def thousand_classes(tmp_path_factory):
    """A run of no steps of a model with 1000 classes; there is no ImageNet to train on."""
    folder = tmp_path_factory.mktemp("imagenet")
    check(train_command(folder / "run", train__steps=0, task__data__name="imagenet"), env=environment(folder), cwd=folder)
    return folder / "run"


def first_of(logits, shape):
    rows = [logits[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    return [row.index(max(row)) for row in rows]


@pytest.mark.parametrize("which", "ar")
def test_imagenet_a_and_r_are_answered_among_their_classes(thousand_classes, wordnet_ids, columns, which, tmp_path):
    ids = [wordnet_ids[column] for column in columns[which]]
    assert len(ids) == 200
    write_pictures(tmp_path / f"imagenet-{which}", ids)
    write_pictures(tmp_path / "all", ids + [i for i in wordnet_ids if i not in ids])
    run, dump = thousand_classes, tmp_path / "dump.safetensors"
    options = {"env": environment(tmp_path), "cwd": tmp_path}
    records = measured(run, "--split", "test", "--set", f"data=imagenet-{which}", "--dump", dump, **options)
    assert records["accuracy"]["count"] == 200 and records["accuracy"]["data"] == f"imagenet-{which}"
    shape, logits = read_safetensors(dump)["logits"]
    assert shape == [200, 200]
    predictions = first_of(logits, shape)
    right = sum(prediction == label for label, prediction in enumerate(predictions))
    assert records["accuracy"]["value"] == pytest.approx(right / 2)

    # The same pictures among all classes: these outputs are the columns of the header.
    measured(run, "--split", "test", "--set", f"data={tmp_path / 'all'}", "--dump", dump, **options)
    shape, everything = read_safetensors(dump)["logits"]
    place = sorted(wordnet_ids).index(ids[7])
    row = everything[place * 1000 : place * 1000 + 1000]
    assert [row[column] for column in columns[which]] == pytest.approx(logits[7 * 200 : 8 * 200], rel=1e-4, abs=1e-5)

    attack = attack_command(run, "--attack", "fgsm", "--eps", "0", "--split", "test", "--eval-set", f"data=imagenet-{which}")
    attacked = {r["metric"]: r["value"] for r in json.loads(check(attack, **options).stdout)}
    assert attacked["clean_accuracy"] == attacked["robust_accuracy"] == records["accuracy"]["value"]


def test_imagenet_a_with_other_folders_is_refused(thousand_classes, tmp_path):
    write_pictures(tmp_path / "imagenet-a", ["n01440764", "n01443537"])
    command = [PROGRAM, "eval", thousand_classes, "--split", "test", "--set", "data=imagenet-a"]
    line = last_line(call(command, env=environment(tmp_path)), 1)
    assert line.endswith("imagenet-a: must have 200 classes, has 2")


def test_imagenet_c_is_read_as_it_is(thousand_classes, wordnet_ids, tmp_path):
    write_pictures(tmp_path / "imagenet-c" / "fog" / "3", wordnet_ids)
    # A frame that a crop would cut off.
    framed = png(16, 16, lambda x, y: (255, 255, 255) if 0 < x < 15 and 0 < y < 15 else (0, 0, 0))
    (tmp_path / "imagenet-c" / "fog" / "3" / wordnet_ids[0] / "0.png").write_bytes(framed)
    options = {"env": environment(tmp_path), "cwd": tmp_path}
    dumps = []
    for number, ratio in enumerate((0.5, 1.0)):
        run = tmp_path / f"run-{number}"
        check(train_command(run, train__steps=0, task__data__name="imagenet", task__data__crop_ratio=ratio), **options)
        dumps.append(tmp_path / f"{number}.safetensors")
        records = measured(run, "--split", "test", "--set", "data=imagenet-c/fog/3", "--dump", dumps[-1], **options)
        assert records["accuracy"]["count"] == 1000 and records["accuracy"]["data"] == "imagenet-c/fog/3"
    assert dumps[0].read_bytes() == dumps[1].read_bytes(), "its pictures are cropped already"
    # As a whole: what is there of it.
    result = check([PROGRAM, "eval", run, "--split", "test", "--set", "data=imagenet-c", "--severity", "3", "--format", "json"], **options)
    (accuracy,) = [r for r in json.loads(result.stdout) if r["metric"] == "accuracy"]
    assert (accuracy["value"], accuracy["data"], accuracy["corruption"]) == (records["accuracy"]["value"], "imagenet-c", "all")
    assert ", 1000 classes; 1 kind of damage, not there: gaussian_noise, shot_noise, " in result.stderr.splitlines()[0]
    line = last_line(call([PROGRAM, "eval", run, "--split", "test", "--set", "data=imagenet-c", "--corrupt", "snow"], **options), 1)
    assert line == "elliptical: imagenet-c: must hold snow at severity 1 to 5, does not"
    line = last_line(call(train_command(tmp_path / "none", task__data__name="imagenet-c"), **options), 2)
    assert "must be asked for as imagenet-c/NOISE/LEVEL" in line


@pytest.fixture(scope="module")
def ten_classes(tmp_path_factory):
    run = tmp_path_factory.mktemp("corrupted") / "run"
    check(train_command(run, train__steps=0))
    return run


def test_all_corruptions_with_their_errors(ten_classes, tmp_path):
    (tmp_path / "frost").mkdir()
    for name in ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"):
        (tmp_path / "frost" / name).write_bytes(png(120, 110, lambda x, y: (x * 2, y * 2, 200)))
    command = [PROGRAM, "eval", ten_classes, "--corrupt", "all", "--set", "max_pictures=4", "--format", "json"]
    records = json.loads(check(command, env=environment(tmp_path)).stdout)

    listed = check([PROGRAM, "list", "corruptions", "--format", "csv"]).stdout
    groups = {row[0]: row[1] for row in list(csv.reader(io.StringIO(listed)))[1:]}
    assert len(groups) == 19
    of_one = [r for r in records if r["metric"] == "corrupted_accuracy"]
    assert sorted((r["corruption_name"], r["corruption_severity"]) for r in of_one) == sorted(
        (name, severity) for name in groups for severity in range(1, 6)
    )
    errors = {r["corruption_name"]: r["value"] for r in records if r["metric"] == "corruption_error"}
    assert errors.keys() == groups.keys()
    for metric, group, count in (("mce", "main", 15), ("extra_mce", "extra", 4)):
        (record,) = [r for r in records if r["metric"] == metric]
        mine = [value for name, value in errors.items() if groups[name] == group]
        assert len(mine) == count and record["value"] == pytest.approx(sum(mine) / count)
        assert record["count"] == 4 * 19 * 5


def test_one_command_measures_files_of_damaged_pictures(ten_classes, tmp_path):
    """FOLDER/NOISE/LEVEL/CLASS/PICTURE, as ImageNet-C was released: accuracies of all folders and mCE."""
    listed = check([PROGRAM, "list", "corruptions", "--format", "csv"]).stdout
    groups = {row[0]: row[1] for row in list(csv.reader(io.StringIO(listed)))[1:]}
    damaged = tmp_path / "damaged"
    for number, name in enumerate(groups):
        for level in range(1, 6):
            write_pictures(damaged / name / str(level), [f"class-{k}" for k in range(10)])
            (damaged / name / str(level) / "class-3" / "0.png").write_bytes(png(16, 16, (13 * number, 50 * level, 90)))
    command = [PROGRAM, "eval", ten_classes, "--split", "test", "--set", f"data={damaged}", "--format", "json"]
    result = check(command)
    records = json.loads(result.stdout)
    assert result.stderr.splitlines()[0] == f"pictures: all 10 ({damaged}, test), 10 classes; 95 kinds of damage"
    of_one = {(r["corruption_name"], r["corruption_severity"]): r for r in records if r["metric"] == "corrupted_accuracy"}
    assert of_one.keys() == {(name, level) for name in groups for level in range(1, 6)}
    for (name, level), record in list(of_one.items())[::17]:
        alone = measured(ten_classes, "--split", "test", "--set", f"data={damaged}/{name}/{level}")
        assert alone["accuracy"]["value"] == record["value"], "the same pictures as a set of their own"
    values = {r["metric"]: r["value"] for r in records}
    errors = {r["corruption_name"]: r["value"] for r in records if r["metric"] == "corruption_error"}
    for metric, group in (("mce", "main"), ("extra_mce", "extra")):
        mine = [value for name, value in errors.items() if groups[name] == group]
        assert values[metric] == pytest.approx(sum(mine) / len(mine))

    shutil.rmtree(damaged / "fog" / "3")
    result = check([*command, "--set", "max_pictures=5", "--set", "blocks=5"])
    assert result.stderr.splitlines()[0] == (
        f"pictures: 5 of 10 ({damaged}, test), 0 to 1 of each of 10 classes; 94 kinds of damage, not there: fog/3 (no mCE)"
    )
    records = json.loads(result.stdout)
    assert "mce" not in {r["metric"] for r in records} and "extra_mce" in {r["metric"] for r in records}
    assert {(r["subset"], r["data"]) for r in records} == {("balanced", str(damaged))}
    assert [r["count"] for r in records if r["metric"] == "block_accuracy"] == [94] * 5
    line = last_line(call(command[:3] + ["--set", f"data={damaged}"]), 1)
    assert line == f"elliptical: {damaged}: must be read as the split test, since it is a test set, got valid (--split test)"


def test_without_frost_it_says_how_to_get_it(ten_classes, tmp_path):
    line = last_line(call([PROGRAM, "eval", ten_classes, "--corrupt", "all"], env=environment(tmp_path), cwd=tmp_path), 3)
    assert line.endswith("(run: elliptical data get frost; every other corruption needs no files)")
    measured(ten_classes, "--corrupt", "fog", "--severity", "1", "--set", "max_pictures=4", env=environment(tmp_path), cwd=tmp_path)


def claims_30000(bytes_of_png):
    """The same file with a header of 30,000 x 30,000 pixels."""
    header = struct.pack(">II", 30_000, 30_000) + bytes_of_png[24:29]
    return bytes_of_png[:16] + header + struct.pack(">I", zlib.crc32(b"IHDR" + header)) + bytes_of_png[33:]


def flipped(data, place):
    return data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]


GOOD = ["grey16.png", "cmyk.jpg", "grey.jpg", "grey_alpha.png", "rgb_alpha.png", "palette_alpha.png", "rotated.jpg", "rotated.png", "one.png"]
BAD = {
    "truncated.jpg": (lambda: (PICTURES / "rgb.jpg").read_bytes()[:-40], "must be a complete JPEG picture, is not"),
    "truncated.png": (lambda: (PICTURES / "rgb.png").read_bytes()[:-40], "must be a complete PNG picture, is not"),
    "corrupt.jpg": (lambda: b"\xff\xd8" + bytes(range(256)), "must be a JPEG or PNG picture, begins with bytes ff d8 00 01"),
    "corrupt.png": (lambda: flipped((PICTURES / "rgb.png").read_bytes(), 60), "must be a complete PNG picture, is not"),
    "empty.png": (lambda: b"", "must be a JPEG or PNG picture, is empty"),
    "text.jpg": (lambda: b"this is text", 'must be a JPEG or PNG picture, begins with "this is text"'),
    "huge.png": (lambda: claims_30000((PICTURES / "rgb.png").read_bytes()), "must have at most 64000000 pixels and sides of 65500, says it is 30000 x 30000"),
}


@pytest.fixture
def own_folder(tmp_path):
    """Pictures of ten classes, for the run of ten classes."""
    for split in ("train", "val"):
        write_pictures(tmp_path / "mine" / split, [f"class-{i}" for i in range(10)], per_class=2)
    return tmp_path / "mine"


@pytest.mark.parametrize("name", GOOD)
def test_d1_every_kind_of_picture_is_read(ten_classes, own_folder, name):
    shutil.copy(PICTURES / name, own_folder / "val" / "class-3" / name)
    assert measured(ten_classes, "--set", f"data={own_folder}")["accuracy"]["count"] == 21


@pytest.mark.parametrize("name", BAD)
def test_d1_bad_pictures_fail_with_their_path_or_are_replaced(ten_classes, own_folder, tmp_path, name):
    contents, message = BAD[name]
    path = own_folder / "val" / "class-3" / name
    path.write_bytes(contents())
    line = last_line(call([PROGRAM, "eval", ten_classes, "--set", f"data={own_folder}"]), 1)
    assert line.startswith(f"elliptical: {path}: {message}")

    shutil.copy(path, own_folder / "train" / "class-3" / name)
    train = {"train__steps": 25, "task__data__name": own_folder, "task__batch_size": 2}
    assert message in last_line(call(train_command(tmp_path / "strict", **train)), 1)
    check(train_command(tmp_path / "patient", task__data__max_bad=1, **train))
    assert measured(tmp_path / "patient")["accuracy"]["count"] == 21


def test_d5_attacks_of_changed_pictures_begin_again(ten_classes, own_folder):
    command = attack_command(ten_classes, "--attack", "fgsm", "--eps", "1/255", "--eval-set", f"data={own_folder}")
    lines = []
    for colour in (None, None, (9, 99, 199)):
        if colour:
            (own_folder / "val" / "class-3" / "0.png").write_bytes(png(20, 20, colour))
        check(command)
        lines.append(len((ten_classes / "attacks.jsonl").read_text().splitlines()))
    assert lines[0] == lines[1] < lines[2]


@pytest.fixture(scope="module")
def three_classes(tmp_path_factory):
    """A run of no steps on class folders of 12 pictures each, of which it gets some classes right and others wrong."""
    folder = tmp_path_factory.mktemp("three")
    for split in ("train", "val"):
        write_pictures(folder / "mine" / split, ["ape", "bee", "cat"], per_class=12)
    check(train_command(folder / "run", train__steps=0, task__data__name=folder / "mine"))
    return folder / "run"


def test_some_pictures_are_of_all_classes(three_classes):
    def by_class(*arguments):
        result = check([PROGRAM, "eval", three_classes, "--set", "per_class=true", "--format", "json", *arguments])
        records = json.loads(result.stdout)
        (accuracy,) = [r for r in records if r["metric"] == "accuracy"]
        return accuracy, [(r["value"], r["count"]) for r in records if r["metric"] == "class_accuracy"], result.stderr.splitlines()[0]

    everything, classes, line = by_class()
    assert len({value for value, _ in classes}) > 1, "first pictures of folders, which are of one class, would not tell"
    assert line.startswith("pictures: all 36 (") and line.endswith("/mine, valid), 3 classes")
    some, classes, line = by_class("--set", "max_pictures=12")
    assert [count for _, count in classes] == [4, 4, 4]
    assert some["value"] == pytest.approx(sum(value for value, _ in classes) / 3)
    assert line.startswith("pictures: 12 of 36 (") and line.endswith("/mine, valid), 4 of each of 3 classes")
    assert (some["count"], some["max_pictures"], some["pictures_total"], some["classes"], some["subset"]) == (12, 12, 36, 3, "balanced")
    assert (everything["count"], everything["pictures_total"], everything["classes"]) == (36, 36, 3)
    assert "max_pictures" not in everything and "subset" not in everything


def test_some_pictures_are_attacked_of_all_classes(three_classes, tmp_path):
    def attacked(count):
        command = attack_command(three_classes, "--attack", "pgd", "--eps", "8/255", "--max-pictures", str(count), "--batch-size", "3")
        result = check([*command, "--dump", tmp_path / "dump.safetensors"])
        (record,) = [r for r in json.loads(result.stdout) if r["metric"] == "robust_accuracy"]
        return record, read_safetensors(tmp_path / "dump.safetensors"), result.stderr.splitlines()[0]

    record, dump, line = attacked(7)
    assert sorted(dump["labels"][1].count(label) for label in range(3)) == [2, 2, 3]
    assert [number // 12 for number in dump["pictures"][1]] == dump["labels"][1]
    assert (record["count"], record["max_pictures"], record["pictures_total"], record["subset"]) == (7, 7, 36, "balanced")
    assert line.startswith("pictures: 7 of 36 (") and line.endswith("/mine, valid), 2 to 3 of each of 3 classes")
    # Random starts belong to the number of a picture: all pictures, in their own order, give the same for these.
    everything = attacked(36)[1]
    width = len(dump["adversarial"][1]) // 7
    for place, number in enumerate(dump["pictures"][1]):
        assert everything["pictures"][1][number] == number
        ours, theirs = (d["adversarial"][1][i * width : (i + 1) * width] for d, i in ((dump, place), (everything, number)))
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_finished_batches_serve_more_pictures_of_the_same_kind(three_classes):
    command = attack_command(three_classes, "--attack", "fgsm", "--eps", "1/255", "--batch-size", "3", "--max-pictures")
    finished = [len(json.loads(check([*command, str(count)]).stdout)) and len(read_lines(three_classes, "attacks.jsonl")) for count in (6, 12, 36)]
    assert finished[1] - finished[0] == 2, "two batches were there already"
    assert finished[2] - finished[1] == 12, "all pictures are read in their own order"


def test_d4_empty_class_and_label_out_of_range(ten_classes, own_folder, tmp_path):
    shutil.rmtree(own_folder / "val" / "class-9")
    (own_folder / "val" / "class-9").mkdir()
    line = last_line(call([PROGRAM, "eval", ten_classes, "--set", f"data={own_folder}"]), 1)
    assert line == f"elliptical: {own_folder}/val/class-9: must have pictures (.jpg, .jpeg, .png), has none"
    folder = tmp_path / "cifar10"
    folder.mkdir()
    (folder / "batches.meta.txt").write_text("".join(f"class {i}\n" for i in range(10)))
    (folder / "test_batch.bin").write_bytes(bytes([3]) + bytes(3072) + bytes([10]) + bytes(3072))
    command = [PROGRAM, "eval", ten_classes, "--split", "test", "--set", "data=cifar-10"]
    line = last_line(call(command, env=environment(tmp_path)), 1)
    assert line == f"elliptical: {folder}/test_batch.bin: labels must be 0 to 9, got 10 (offset 3073)"
