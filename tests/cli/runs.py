"""Runs of the smallest language model, for the tests that stop, kill and damage them."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "release" / "elliptical"
RECIPE = ROOT / "recipes" / "smoke" / "lm.toml"

# A step takes milliseconds, starting the program most of a second.
TINY = {
    "task.data.train_lines": 300,
    "task.batch_size": 2,
    "task.model.num_layers": 2,
    "task.model.dim": 16,
    "task.model.num_heads": 2,
    "task.model.feedforward_dim": 32,
    "task.model.window": 16,
    "train.log_interval": 1,
    "train.eval_interval": 0,
}


def settings(**changes):
    """Arguments that make the smoke recipe tiny; `train__steps=3` sets train.steps."""
    options = {**TINY, **{key.replace("__", "."): value for key, value in changes.items()}}
    return [argument for key, value in options.items() for argument in ("--set", f"{key}={value}")]


def train_command(run, **changes):
    return [PROGRAM, "train", RECIPE, "--run", run, "--threads", "1", *settings(**changes)]


def resume_command(run):
    return [PROGRAM, "resume", run, "--threads", "1"]


def strace_works():
    if not shutil.which("strace"):
        return False
    return subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True).returncode == 0


needs_strace = pytest.mark.skipif(not strace_works(), reason="strace may not trace processes here")


def without_privileges(command):
    """The command of a user who must obey permissions, which root need not."""
    if os.geteuid() != 0:
        return command
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", *command]


def heed_interrupts():
    """For `preexec_fn`: a shell that starts tests in the background has SIGINT ignored, and nohup SIGHUP, by all that they start."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def call(command, **options):
    return subprocess.run(command, capture_output=True, text=True, timeout=300, errors="replace", **options)


def check(command, **options):
    result = call(command, **options)
    assert result.returncode == 0, result.stderr
    return result


def num_logged(run):
    """Complete lines of log.jsonl."""
    try:
        return (Path(run) / "log.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def wait_until(condition, process, what):
    """Polls until `condition()`; fails when the process ends before."""
    while not condition():
        assert process.poll() is None, f"ended before {what}: {process.stderr.read()}"
        time.sleep(0.002)


def steps(run):
    return sorted(int(p.name[5:]) for p in (Path(run) / "checkpoints").iterdir() if p.name[5:].isdigit())


def weights(run):
    """What the newest checkpoint holds, as bytes: weights, moments, and the average and the task's state where there are any."""
    newest = Path(run) / "checkpoints" / f"step-{steps(run)[-1]}"
    names = {path.name for path in newest.glob("*.safetensors")} - {"model.safetensors", "optimizer.safetensors"}
    return [(newest / name).read_bytes() for name in ("model.safetensors", "optimizer.safetensors", *sorted(names))]


def read_lines(run, name):
    return [json.loads(line) for line in (Path(run) / name).read_text().splitlines()]


def losses(run):
    return [(record["step"], record["value"]) for record in read_lines(run, "log.jsonl")]


def records(run):
    """The records without what names the run."""
    return [{**record, "run": None} for record in read_lines(run, "records.jsonl")]


def comparison_table(text, unit):
    """What `compare --format json` says without what no two trainings share: their speed, in `unit` a second."""
    table = json.loads(text)
    for method in table["methods"]:
        assert method.pop(f"{unit}_per_second") > 0
    return table


def write_state(folder, state):
    """state.json of a checkpoint, with the checksum of what it says."""
    state.pop("checksum", None)
    compact = json.dumps(state, separators=(",", ":"), ensure_ascii=False)
    state["checksum"] = hashlib.sha256(compact.encode()).hexdigest()
    (folder / "state.json").write_text(json.dumps(state))


def rewrite_file(file, content):
    """Puts `content` into a file of a checkpoint, with checksums that agree."""
    file.write_bytes(content)
    state = json.loads((file.parent / "state.json").read_text())
    state["files"][file.name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    write_state(file.parent, state)


def folder_state(folder):
    """Times and contents of all files."""
    return {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in sorted(folder.rglob("*")) if path.is_file()}


def copy_run(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    return target
