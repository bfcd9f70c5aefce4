"""Runs of the smallest image model, and folders of pictures, for the tests of classifiers."""

import json
import struct
import zlib

from runs import PROGRAM, ROOT, check

RECIPE = ROOT / "recipes" / "smoke" / "vit.toml"
TINY = {
    "task.batch_size": 4,
    "task.model.image_size": 16,
    "task.model.dim": 16,
    "task.model.num_layers": 2,
    "task.model.drop_path": 0.2,
    "task.mix.probability": 1,
    "task.data.augment.rand_augment.num_operations": 2,
    "train.log_interval": 1,
    "train.eval_interval": 0,
    "train.ema_decay": 0.9,
}


def settings(options):
    return [word for key, value in options.items() for word in ("--set", f"{key}={value}")]


def train_command(run, **changes):
    """`train__steps=3` sets train.steps."""
    options = {**TINY, **{key.replace("__", "."): value for key, value in changes.items()}}
    return [PROGRAM, "train", RECIPE, "--run", run, "--threads", "1", *settings(options)]


def attack_command(run, *arguments):
    return [PROGRAM, "attack", run, "--format", "json", "--threads", "1", *arguments]


def measured(run, *arguments, **options):
    """The records of an evaluation by metric; of several with the same metric the last."""
    command = [PROGRAM, "eval", run, "--format", "json", *arguments]
    return {record["metric"]: record for record in json.loads(check(command, **options).stdout)}


def last_line(result, status):
    assert result.returncode == status, result.stderr
    return result.stderr.splitlines()[-1]


def png(width, height, colour):
    """A PNG file of one colour; `colour` may be a function of x and y."""
    at = colour if callable(colour) else lambda x, y: colour
    rows = b"".join(b"\0" + b"".join(bytes(at(x, y)) for x in range(width)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def write_pictures(folder, classes, per_class=1, side=16):
    """FOLDER/CLASS/N.png, each of another colour."""
    for number, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(per_class):
            colour = (number * 37 % 256, (number * 11 + i * 91) % 256, i * 53 % 256)
            (folder / name / f"{i}.png").write_bytes(png(side, side, colour))


def read_safetensors(path):
    """Tensors by name as (shape, numbers)."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        start, end = entry["data_offsets"]
        kind = {"F32": "f", "I64": "q"}[entry["dtype"]]
        values = memoryview(data[8 + length + start : 8 + length + end]).cast(kind).tolist()
        tensors[name] = (entry["shape"], values)
    return tensors
