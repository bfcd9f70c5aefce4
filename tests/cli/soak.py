"""The soak: a tiny model trained for many steps while processes die, disks fill up and checkpoints rot.

    .venv/bin/python tests/cli/soak.py --steps 300000 --faults 5000 --seed 1 FOLDER

A first run is left alone: its memory and its open files are sampled from the first step to the last. A second one suffers
faults at random moments, drawn from the seed before it starts; after each one it is continued with `elliptical resume`, as a
user would. It must end with the same bits. FOLDER/faults.txt says what happened so far.
"""

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from damage import DAMAGES
from runs import heed_interrupts, losses, records, resume_command, steps, train_command, weights
from small_disk import fill, small_disk

CHECKPOINT_INTERVAL = 20
LOG_INTERVAL = 5

# How often each fault is drawn; each is drawn at least once.
KINDS = {
    "kill": 4,
    "kill in a save": 3,
    "damage": 3,
    "full disk": 3,
    "full disk at the start": 1,
    "limited files": 2,
    "SIGTERM": 1,
    "SIGINT": 1,
    "SIGINT twice": 1,
    "SIGUSR1": 1,
}
FULL_DISKS = ("full disk", "full disk at the start")  # take a file system of their own
CHECKPOINT_FILES = ["model.safetensors", "optimizer.safetensors", "ema.safetensors", "vocabulary.txt", "state.json"]


def command(run, num_steps):
    """A model as small as they come: a step is about a millisecond, and most of it is not arithmetic."""
    return train_command(
        run,
        task__data__train_lines=200,
        task__batch_size=1,
        task__model__num_layers=1,
        task__model__dim=8,
        task__model__num_heads=1,
        task__model__feedforward_dim=8,
        task__model__window=8,
        train__steps=num_steps,
        train__log_interval=LOG_INTERVAL,
        train__eval_interval=max(1, num_steps // 20),
        train__checkpoint_interval=CHECKPOINT_INTERVAL,
        train__checkpoints_kept=3,
        train__ema_decay=0.9,
    )


@dataclass
class Fault:
    kind: str
    steps: int  # that are done before it strikes
    delay: float  # seconds after that
    share: float  # in [0, 1): where a file is cut, how full the disk is
    damage: str
    file: str


def make_plan(num_steps, num_faults, seed):
    """More faults than a run has room for: it goes on until somebody has seen that it is time for one."""
    numbers = random.Random(seed)
    half = max(len(KINDS), num_faults // 2)  # the run may end before the last faults
    drawn = numbers.choices(list(KINDS), KINDS.values(), k=max(0, num_faults - len(KINDS)))
    first = [*KINDS, *drawn[: half - len(KINDS)]]
    numbers.shuffle(first)
    kinds = first + drawn[half - len(KINDS) :]
    most = num_steps // max(1, num_faults) + CHECKPOINT_INTERVAL
    return [
        Fault(
            kind=kind,
            steps=numbers.randrange(1, most),
            delay=numbers.uniform(0, 0.02),
            share=numbers.random(),
            damage=numbers.choice(list(DAMAGES)),
            file=numbers.choice(CHECKPOINT_FILES),
        )
        for kind in kinds
    ]


def last_step(run):
    """The step of the last complete line of log.jsonl; 0: none."""
    try:
        with open(run / "log.jsonl", "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 2000))
            lines = file.read().split(b"\n")[:-1]
        return json.loads(lines[-1])["step"] if lines else 0
    except (FileNotFoundError, json.JSONDecodeError):
        return 0


def sample(process, run):
    """(step, resident kB, open files) of a process that lives, or None."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
        resident = next((int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")), None)
        handles = len(os.listdir(f"/proc/{process.pid}/fd"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return (last_step(run), resident, handles) if resident else None


@dataclass
class Soak:
    """One run and what happens to it."""

    run: Path
    disk: Path  # where the run lies
    is_small: bool  # whether that is a file system of its own, which can be filled
    errors: Path  # what the process says
    num_steps: int
    counts: Counter = field(default_factory=Counter)
    lives: list = field(default_factory=list)  # of each process the samples
    expected: str | None = None  # what the next process has to say first
    is_working: bool = False  # whether the present process has logged a step

    def start(self):
        if (self.run / "config.toml").exists():
            arguments = resume_command(self.run)
        else:
            shutil.rmtree(self.run, ignore_errors=True)  # killed before there was a run
            arguments = command(self.run, self.num_steps)
        with open(self.errors, "w") as errors:
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": errors}
            process = subprocess.Popen(arguments, **streams, preexec_fn=heed_interrupts)
        self.counts["processes"] += 1
        self.is_working = False
        self.lives.append([])
        return process

    def checkpoints(self):
        with contextlib.suppress(FileNotFoundError):
            return steps(self.run)
        return []

    def file_sizes(self):
        """Of the files of one checkpoint; the process may remove it while we look."""
        for step in reversed(self.checkpoints()):
            with contextlib.suppress(FileNotFoundError):
                return [(self.run / "checkpoints" / f"step-{step}" / name).stat().st_size for name in CHECKPOINT_FILES]
        return [0]

    def said(self):
        return self.errors.read_text(errors="replace")

    def ended(self, process, *statuses):
        status = process.wait(timeout=300)
        assert status in statuses, f"exit status {status}, not {statuses}: {self.said()}"
        self.check_expected()
        return status

    def check_expected(self):
        """A process that goes on has said before which checkpoint it found damaged, or one before it has."""
        if self.expected is None:
            return
        said = self.said()
        if self.expected in said:
            self.expected = None
        assert self.expected is None or "continues after step" not in said, f"{self.expected} is not named: {said}"

    def run_until(self, process, condition):
        """Polls; True when the condition came true before the process ended."""
        next_sample = 0.0
        while process.poll() is None:
            if condition():
                self.check_expected()
                return True
            now = time.monotonic()
            if self.is_working and now >= next_sample:
                next_sample = now + 0.25
                taken = sample(process, self.run)
                if taken and taken[0] < self.num_steps:  # it has not begun to clear up
                    self.lives[-1].append(taken)
            time.sleep(0.005)  # a look costs as much as a tenth of a step
        return False

    def after(self, num_steps):
        """The condition that the present process has done so many steps."""
        begin = None if self.checkpoints() else 0

        def is_time():
            nonlocal begin
            if begin is None and (found := re.search(r"continues after step (\d+)", self.said())):
                begin = int(found.group(1))
            self.is_working = begin is not None and last_step(self.run) > begin
            return begin is not None and last_step(self.run) >= begin + num_steps

        return is_time

    def is_saving(self):
        with contextlib.suppress(FileNotFoundError):
            return any(name.endswith(".incomplete") for name in os.listdir(self.run / "checkpoints"))
        return False

    def stop_in_a_save(self, process):
        """A save takes about a millisecond: no pause between two looks. A process that went on before it was stopped goes on."""
        end = time.monotonic() + 10
        while process.poll() is None and time.monotonic() < end:
            if not self.is_saving():
                continue
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if self.is_saving():
                return
            process.send_signal(signal.SIGCONT)

    def strike(self, fault):
        """Starts a process and lets the fault happen; False when the run ended before."""
        kind = self.possible(fault.kind)
        if kind == "full disk at the start":
            fill(self.disk, 0)
        process = self.start()
        try:
            if kind != "full disk at the start":
                if not self.run_until(process, self.after(fault.steps)):
                    self.ended(process, 0)
                    return False
                time.sleep(fault.delay)
            happened = self.happen(kind, fault, process)
            if happened is not None:
                self.counts[happened] += 1
            return happened is not None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            (self.disk / "ballast").unlink(missing_ok=True)

    def possible(self, kind):
        """What can happen here and now in place of a fault that can not."""
        if kind in FULL_DISKS and not self.is_small:
            return "limited files"
        if kind == "full disk at the start" and not (self.run / "config.toml").exists():
            return "full disk"
        return kind

    def happen(self, kind, fault, process):
        """What happened: the kind of fault, or a lesser one; None when the run ended before."""
        if process.poll() == 0:
            return None
        if kind.startswith("kill") or kind == "damage":
            return self.kill(kind, fault, process)
        if kind == "SIGUSR1":
            return self.ask_for_a_save(process)
        if kind.startswith("SIG"):
            return self.interrupt(kind, fault, process)
        # Less than a checkpoint needs, or the largest of its files.
        sizes, reason = self.file_sizes(), "No space left on device"
        if kind == "full disk":
            fill(self.disk, int(fault.share * 0.9 * sum(sizes)))
        elif kind == "limited files":
            limit = int(fault.share * max(sizes))
            resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, limit))
            reason = "File too large"
        if self.ended(process, 1, 0) == 0:
            return None
        assert reason in self.said(), self.said()
        return kind

    def kill(self, kind, fault, process):
        if kind == "kill in a save":
            self.stop_in_a_save(process)
        process.kill()
        if self.ended(process, -signal.SIGKILL, 0) == 0:
            return None
        if self.is_saving():
            self.counts["killed in a save"] += 1
        elif kind == "kill in a save":
            return "kill"
        if kind == "damage":
            return kind if self.damage(fault) else "kill"
        return kind

    def damage(self, fault):
        """The newest of the checkpoints, where there is another one."""
        present = self.checkpoints()
        if len(present) < 2 or self.expected is not None:
            return False
        folder = self.run / "checkpoints" / f"step-{present[-1]}"
        DAMAGES[fault.damage](folder / fault.file, fault.share)
        self.expected = str(folder)
        self.counts[f"damage: {fault.damage}"] += 1
        return True

    def ask_for_a_save(self, process):
        process.send_signal(signal.SIGUSR1)
        if not self.run_until(process, lambda: "saved, as SIGUSR1 asked" in self.said()):
            self.ended(process, 0)
            return None
        process.kill()
        return "SIGUSR1" if self.ended(process, -signal.SIGKILL, 0) != 0 else None

    def interrupt(self, kind, fault, process):
        number = signal.SIGTERM if kind == "SIGTERM" else signal.SIGINT
        process.send_signal(number)
        if kind.endswith("twice"):
            time.sleep(fault.delay / 4)
            process.send_signal(number)
            # The second one may come so late that nobody waits for it.
            return kind if self.ended(process, 128 + number, -number, 0) != 0 else None
        if self.ended(process, 128 + number, 0) == 0:
            return None
        last = self.said().splitlines()[-1]
        assert f"stopped by {number.name} after step {steps(self.run)[-1]}, saved" in last, last
        return kind

    def tidy(self):
        """Damaged checkpoints are kept for their user, who removes them."""
        for folder in (self.run / "checkpoints").glob("*.damaged"):
            self.counts["moved aside"] += 1
            shutil.rmtree(folder)


def undisturbed(run, num_steps, errors):
    """Trains without faults; the samples, one each quarter of a second."""
    soak = Soak(run, run.parent, False, errors, num_steps)
    process = soak.start()
    soak.run_until(process, soak.after(num_steps))
    soak.ended(process, 0)
    return soak.lives[0]


def expect_same(run, whole, num_steps):
    assert weights(run) == weights(whole), "the bits differ"
    assert losses(run) == losses(whole) and len(losses(run)) == num_steps // LOG_INTERVAL
    assert records(run) == records(whole)
    # A save that a signal asked for near the end may stand among those that are kept.
    assert steps(run)[-1] == num_steps and len(steps(run)) == len(steps(whole))
    assert not [path.name for path in run.rglob("*") if path.suffix in (".incomplete", ".new", ".damaged")]


def disturb(folder, whole, num_steps, num_faults, seed, errors):
    """Trains the same run with faults and holds it against the first."""
    size = 16 * sum(path.stat().st_size for path in whole.rglob("*") if path.is_file()) + 2**20
    with small_disk(folder / "disk", size) as is_small:
        soak = Soak(folder / "disk" / "run", folder / "disk", is_small, errors, num_steps)
        with open(folder / "faults.txt", "w", buffering=1) as progress:
            for number, fault in enumerate(make_plan(num_steps, num_faults, seed)):
                print(f"fault {number} after step {last_step(soak.run)}: {fault.kind}", file=progress)
                if not soak.strike(fault):
                    break
                soak.tidy()
                if number % 100 == 99:
                    print(json.dumps(dict(sorted(soak.counts.items()))), file=progress)
        process = soak.start()
        soak.run_until(process, soak.after(num_steps))
        soak.ended(process, 0)
        soak.tidy()
        expect_same(soak.run, whole, num_steps)
    return soak


def soak(folder, num_steps, num_faults, seed):
    """Both runs; raises AssertionError when something was lost. Returns what was counted and measured."""
    started = time.monotonic()
    errors, whole = folder / "errors.txt", folder / "whole"
    samples = undisturbed(whole, num_steps, errors)
    disturbed = disturb(folder, whole, num_steps, num_faults, seed, errors)
    return summary(num_steps, seed, samples, disturbed, time.monotonic() - started) | {"log_bytes": (whole / "log.jsonl").stat().st_size}


def summary(num_steps, seed, samples, disturbed, seconds):
    # Starting takes memory: a fifth of the run is left out. Processes that were disturbed: the last samples of each.
    steady = [taken for taken in samples if taken[0] >= num_steps // 5]
    return {
        "steps": num_steps,
        "seed": seed,
        "counts": dict(sorted(disturbed.counts.items())),
        "full_file_system": disturbed.is_small,
        "seconds": round(seconds),
        "undisturbed": series(steady),
        "undisturbed_kb_by_tenths": [samples[len(samples) * i // 10][1] for i in range(10)] + [samples[-1][1]],
        "disturbed": series([life[-1] for life in disturbed.lives if life]),
    }


def series(samples):
    """First and last of resident memory and open files, and their extremes."""
    resident, handles = [taken[1] for taken in samples], [taken[2] for taken in samples]
    return {
        name: {"first": values[0], "last": values[-1], "least": min(values), "most": max(values)}
        for name, values in (("resident_kb", resident), ("handles", handles))
    } | {"samples": len(samples)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--faults", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True)
    print(json.dumps(soak(arguments.folder, arguments.steps, arguments.faults, arguments.seed), indent=1))


if __name__ == "__main__":
    main()
