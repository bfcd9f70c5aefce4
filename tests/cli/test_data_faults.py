"""Data that are not what they should be, found before the first step; data that changed, found before the next. Fault IDs: D4, D5."""

import os
import shutil

import pytest

from runs import PROGRAM, call, check, resume_command, steps, train_command, weights
from vision_runs import png, write_pictures
from vision_runs import train_command as train_pictures

CLASSES = ["ant", "bee", "cat"]


def refused(result, run):
    """The sentence of a refusal that came before anything was made."""
    assert result.returncode == 1, result.stderr
    assert not run.exists(), "nothing is left of it"
    assert not [line for line in result.stderr.splitlines() if line.startswith("train:")], "no step was done"
    return result.stderr.splitlines()[-1]


@pytest.fixture
def pictures(tmp_path):
    data = tmp_path / "data"
    for split in ("train", "val"):
        write_pictures(data / split, CLASSES, per_class=4)
    return data


def break_pictures(data, how):
    """Breaks a folder of pictures; what is said of it."""
    if how == "no class in val":
        shutil.rmtree(data / "val" / "bee")
        return f"{data}/val: must have the classes of {data}/train, lacks bee"
    if how == "a class in val alone":
        write_pictures(data / "val", ["dog"], per_class=1)
        return f"{data}/val: must have the classes of {data}/train, has also dog"
    if how == "no class in test":
        write_pictures(data / "test", CLASSES[:2], per_class=1)
        return f"{data}/test: must have the classes of {data}/train, lacks cat"
    if how in ("an empty class in train", "an empty class in val"):
        folder = data / how.split()[-1] / "bee"
        shutil.rmtree(folder)
        folder.mkdir()
        return f"{folder}: must have pictures (.jpg, .jpeg, .png), has none"
    if how == "one class":
        for split in ("train", "val"):
            for name in CLASSES[1:]:
                shutil.rmtree(data / split / name)
        return f"{data}/train: must have a folder for each of at least 2 classes, has 1"
    if how == "no val":
        shutil.rmtree(data / "val")
        return f"{data}: must have a folder for the split valid (val, valid), has none"
    if how == "val twice":
        shutil.copytree(data / "val", data / "valid")
        return f"{data}: must hold each split once, has val and valid (take one of them away)"
    if how == "nothing":
        shutil.rmtree(data)
        data.mkdir()
        return f"{data}: must have folders train and val to have a split train, is a test set"
    raise ValueError(how)


PICTURE_FAULTS = [
    "no class in val",
    "a class in val alone",
    "no class in test",
    "an empty class in train",
    "an empty class in val",
    "one class",
    "no val",
    "val twice",
    "nothing",
]


@pytest.mark.parametrize("how", PICTURE_FAULTS)
def test_d4_pictures_are_checked_before_the_first_step(pictures, tmp_path, how):
    message = break_pictures(pictures, how)
    run = tmp_path / "run"
    line = refused(call(train_pictures(run, train__steps=3, task__data__name=pictures)), run)
    assert line.startswith(f"elliptical: {message}"), line


def cifar_folder(folder, labels_by_file, names=tuple(f"class {i}" for i in range(10))):
    folder.mkdir()
    (folder / "batches.meta.txt").write_text("".join(f"{name}\n" for name in names))
    for file, labels in labels_by_file.items():
        (folder / file).write_bytes(b"".join(bytes([label]) + bytes(3072) for label in labels))


@pytest.mark.parametrize("file", ["data_batch_3.bin", "data_batch_5.bin", "test_batch.bin"])
def test_d4_a_label_out_of_range_in_any_file_is_found_before_the_first_step(tmp_path, file):
    # Of the fifth file the last 5,000 are validated on.
    files = {f"data_batch_{i}.bin": [j % 10 for j in range(5100 if i == 5 else 1100)] for i in range(1, 6)} | {"test_batch.bin": [1, 2, 3]}
    files[file][2] = 10
    cifar_folder(tmp_path / "cifar10", files)
    run = tmp_path / "run"
    command = train_pictures(run, train__steps=3, task__data__name="cifar-10")
    line = refused(call(command, env={**os.environ, "ELLIPTICAL_DATA": str(tmp_path)}), run)
    assert line == f"elliptical: {tmp_path}/cifar10/{file}: labels must be 0 to 9, got 10 (offset {2 * 3073})"


def write_texts(folder, **lines):
    folder.mkdir()
    for name, count in lines.items():
        (folder / f"{name}.txt").write_text("".join(f"the cat number {i % 10} sat on the mat\n" for i in range(count)))


def train_text(run, folder, **changes):
    """The built-in language's number of lines is no option of a folder."""
    command = train_command(run, task__data__name=folder, **changes)
    place = next(i for i, word in enumerate(command) if str(word).startswith("task.data.train_lines="))
    return command[: place - 1] + command[place + 1 :]


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("text", ["", "\n\n", "a b c\n"], ids=["empty", "empty lines", "short"])
def test_d4_texts_are_checked_before_the_first_step(tmp_path, split, text):
    write_texts(tmp_path / "text", train=300, valid=50, test=50)
    (tmp_path / "text" / f"{split}.txt").write_text(text)
    run = tmp_path / "run"
    line = refused(call(train_text(run, tmp_path / "text", train__steps=3)), run)
    assert f"{tmp_path}/text/{split}.txt" in line, line


def trained_on(tmp_path, data):
    run = tmp_path / "run"
    if (data / "train.txt").exists():
        check(train_text(run, data, train__steps=4, train__checkpoint_interval=2))
    else:
        check(train_pictures(run, train__steps=4, train__checkpoint_interval=2, task__data__name=data))
    shutil.rmtree(run / "checkpoints" / "step-4")
    return run


def expect_data_change(run, data, change, put_back, whole):
    """Resuming is refused, says what changed and changes nothing; with the data of before it goes on, and a fork may differ."""
    change()
    result = call(resume_command(run))
    line = result.stderr.splitlines()[-1]
    assert result.returncode == 1 and "configuration and data must be those of the checkpoint, changed: data " in line, result.stderr
    assert "elliptical fork" in line and steps(run) == [2]
    forked = data.parent / "forked"
    check([PROGRAM, "fork", run, "--run", forked])
    assert steps(forked)[-1] == 4
    put_back()
    check(resume_command(run))
    assert weights(run) == whole


@pytest.mark.parametrize("split", ["train", "valid", "test"])
@pytest.mark.parametrize("kind", ["same size", "longer", "shorter"])
def test_d5_a_text_that_changed_is_refused(tmp_path, split, kind):
    data = tmp_path / "text"
    write_texts(data, train=300, valid=50, test=50)
    run = trained_on(tmp_path, data)
    check(resume_command(run))
    whole = weights(run)
    shutil.rmtree(run / "checkpoints" / "step-4")
    file = data / f"{split}.txt"
    before = file.read_text()
    # The same words, so that a fork has the same model.
    after = {
        "same size": before.replace("cat number", "number cat", 1),
        "longer": before + "the cat sat\n",
        "shorter": before[: before.rindex("the cat")],
    }[kind]
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)

    def change():
        file.write_text(after)
        os.utime(file, ns=times)  # times do not give it away

    expect_data_change(run, data, change, lambda: file.write_text(before), whole)


@pytest.mark.parametrize("kind", ["another picture", "one more", "one less", "another name"])
def test_d5_pictures_that_changed_are_refused(pictures, tmp_path, kind):
    file = pictures / "train" / "ant" / "2.png"
    file.write_bytes(png(16, 16, (3, 5, 7)))
    run = trained_on(tmp_path, pictures)
    check(resume_command(run))
    whole = weights(run)
    shutil.rmtree(run / "checkpoints" / "step-4")
    before, other = file.read_bytes(), file.with_name("9.png")

    def change():
        if kind == "another picture":
            file.write_bytes(png(16, 16, (7, 5, 3)))
        elif kind == "one more":
            other.write_bytes(before)
        elif kind == "one less":
            file.unlink()
        else:
            file.rename(other)

    def put_back():
        other.unlink(missing_ok=True)
        file.write_bytes(before)

    expect_data_change(run, pictures, change, put_back, whole)
