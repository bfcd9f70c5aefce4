"""Training and measuring give the bits they gave: weights, records and losses of short runs of every attention and
model are those of tests/fixtures/same_bits.json, so that nothing but a decision changes them.

    python tests/cli/test_same_bits.py PROGRAM > tests/fixtures/same_bits.json     # after such a decision

Products of matrices round differently on other processors: there, numbers are compared instead of bits."""

import hashlib
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = ROOT / "tests" / "fixtures" / "same_bits.json"

TEXT = ["train.steps=20", "train.eval_interval=10", "train.checkpoint_interval=10", "schedule.warmup_steps=5",
        "task.data.train_lines=400", "task.model.dropout=0.1"]
PICTURES = ["train.steps=10", "train.eval_interval=5", "train.checkpoint_interval=5", "schedule.warmup_steps=2",
            "task.model.drop_path=0.1", "task.mix.probability=1.0"]
FAN = ["task.model.name=fan", "task.model.dim=32", "task.model.num_layers=2", "task.model.num_heads=2"]
RVT = ["task.model.name=rvt", "task.model.dims=[16, 32]", "task.model.num_layers=[1, 1]", "task.model.num_heads=[2, 4]"]
METRIC = "task.model.attention.metric"


def attention(name, *more):
    return [f"task.model.attention.name={name}", *(f"task.model.attention.{option}" for option in more)]


CASES = {
    "lm": ("lm", TEXT + ["task.model.attention_dropout=0.1"]),
    "lm softmax": ("lm", TEXT + attention("softmax")),
    "lm jacobian metric": ("lm", TEXT + [f"{METRIC}.estimator=jacobian"]),
    "lm released": ("lm", TEXT + attention("elliptical", "preset=released-lm", "metric_lookahead=true")),
    "lm random metric": ("lm", TEXT + [f"{METRIC}.estimator=random"]),
    "lm kde": ("lm", TEXT + attention("kde")),
    "lm mgk": ("lm", TEXT + attention("mgk")),
    "lm mom": ("lm", TEXT + attention("mom")),
    "lm performer": ("lm", TEXT + attention("performer")),
    "lm fourier": ("lm", TEXT + attention("fourier")),
    "lm rkde": ("lm", TEXT + attention("rkde")),
    "vit": ("vit", PICTURES),
    "vit softmax": ("vit", PICTURES + attention("softmax")),
    "vit through the metric": ("vit", PICTURES + attention("elliptical", "metric_gradient=through")),
    "vit rvt": ("vit", PICTURES + attention("rvt")),
    "vit spkde": ("vit", PICTURES + attention("spkde")),
    "fan": ("vit", PICTURES + FAN),
    "rvt": ("vit", PICTURES + RVT),
}
CHANGING = ("_per_second",)  # labels that are times


def digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def kept(record):
    return {name: value for name, value in record.items() if not name.endswith(CHANGING)}


def weights(run):
    [newest] = sorted(run.glob("checkpoints/step-*"), key=lambda path: int(path.name[5:]))[-1:]
    data = (newest / "model.safetensors").read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    return hashlib.sha256(data[header:]).hexdigest()


def measure(program, case, folder):
    """Trains and evaluates one case; what it left, in short."""
    recipe, options = CASES[case]
    sets = [word for option in options for word in ("--set", option)]
    run = folder / "run"
    for command in (["train", ROOT / "recipes" / "smoke" / f"{recipe}.toml", "--run", run, *sets],
                    ["eval", run, "--split", "test", "--set", "blocks=5",
                     *(["--swap", "0.025"] if recipe == "lm" else ["--corrupt", "fog,contrast", "--severity", "2"])]):
        done = subprocess.run([program, *command], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    records, log = ([kept(json.loads(line)) for line in (run / name).read_text().splitlines()]
                    for name in ("records.jsonl", "log.jsonl"))
    return {
        "weights": weights(run),
        "records": digest(json.dumps(record, sort_keys=True) for record in records),
        "log": digest(json.dumps(line, sort_keys=True) for line in log),
        "names": digest(json.dumps({**record, "value": 0}, sort_keys=True) for record in records),
        "values": [record["value"] for record in records],
    }


def processor(program):
    lines = subprocess.run([program, "info"], capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()
    return [line for line in lines if line.startswith(("CPU", "features", "SIMD in use"))]


@pytest.mark.parametrize("case", CASES)
def test_bits_are_those_of_the_fixture(case, root, tmp_path):
    program = root / "build" / "release" / "elliptical"
    fixture = json.loads(FIXTURE.read_text())
    before, now = fixture["cases"][case], measure(program, case, tmp_path)
    if processor(program) == fixture["processor"]:
        assert now == before
        return
    assert now["names"] == before["names"]
    for value, expected in zip(now["values"], before["values"], strict=True):
        # Rounding grows over the steps; another random stream or formula moves losses by far more.
        assert math.isclose(value, expected, rel_tol=2e-2, abs_tol=2.0)


def main():
    program = sys.argv[1]
    cases = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            cases[case] = measure(program, case, Path(folder))
    print(json.dumps({"processor": processor(program), "cases": cases}, indent=1))


if __name__ == "__main__":
    main()
