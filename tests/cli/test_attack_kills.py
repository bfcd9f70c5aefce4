"""`elliptical attack` that is killed or stopped goes on with the same command, and nothing is lost."""

import json
import random
import signal
import subprocess

import pytest

from runs import check, copy_run, read_lines, wait_until
from vision_runs import attack_command, train_command


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    run = tmp_path_factory.mktemp("attacked") / "run"
    check(train_command(run, train__steps=4))
    return run


def command(run, num_pictures):
    # Two cases, batches of two pictures: many lines of attacks.jsonl in little time.
    attacks = ["--attack", "pgd,square", "--eps", "4/255", "--set", "square.queries=200", "--set", "pgd.steps=40"]
    return attack_command(run, *attacks, "--batch-size", "2", "--max-pictures", str(num_pictures))


def num_finished(run):
    try:
        return (run / "attacks.jsonl").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


def results(text):
    """The records without what no two attacks share."""
    return [{**record, "value": None} if record["metric"] == "attack_seconds" else record for record in json.loads(text)]


def attack_records(run):
    return results(json.dumps([r for r in read_lines(run, "records.jsonl") if r["source"] == "attack"]))


def start(run, num_pictures):
    return subprocess.Popen(command(run, num_pictures), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kill_at_random(trained, folder, num_pictures, num_kills):
    whole, run = copy_run(trained, folder / "whole" / "run"), copy_run(trained, folder / "killed" / "run")
    expected = results(check(command(whole, num_pictures)).stdout)
    random_numbers = random.Random(1)
    before_last = 0
    for _ in range(num_kills):
        before_last = num_finished(run)
        process = start(run, num_pictures)
        wanted = before_last + random_numbers.randrange(1, 4)
        wait_until(lambda: num_finished(run) >= wanted, process, f"line {wanted}")
        try:
            process.wait(random_numbers.uniform(0, 0.03))
        except subprocess.TimeoutExpired:
            pass
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not attack_records(run), "records are of whole attacks"
    assert num_finished(run) > before_last
    assert results(check(command(run, num_pictures)).stdout) == expected
    assert attack_records(run) == attack_records(whole)
    digests = [(line["digest"], line["batch"]) for line in read_lines(run, "attacks.jsonl")]
    assert len(digests) == len(set(digests)) == num_pictures, "a finished batch is not attacked again"


def test_a3_killed_attacks_end_as_if_they_had_not_been(trained, tmp_path):
    kill_at_random(trained, tmp_path, num_pictures=20, num_kills=2)


@pytest.mark.slow
def test_a3_many_kills(trained, tmp_path):
    kill_at_random(trained, tmp_path, num_pictures=400, num_kills=50)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a3_c9_signals_end_it_between_two_passes(trained, tmp_path, number):
    run = copy_run(trained, tmp_path / "run")
    process = start(run, 400)
    wait_until(lambda: num_finished(run) >= 1, process, "the first batch")
    process.send_signal(number)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 128 + number and output == ""
    line = errors.splitlines()[-1]
    assert line == f"elliptical: attack: stopped by {number.name}, finished batches are kept (to go on: the same command)"
    assert not attack_records(run)


def test_a3_a_line_that_was_half_written_is_done_again(trained, tmp_path):
    whole = copy_run(trained, tmp_path / "whole" / "run")
    expected = results(check(command(whole, 8)).stdout)
    run = copy_run(trained, tmp_path / "cut" / "run")
    lines = (whole / "attacks.jsonl").read_bytes().splitlines(keepends=True)
    (run / "attacks.jsonl").write_bytes(b"".join(lines[:3]) + lines[3][:25])
    assert results(check(command(run, 8)).stdout) == expected
    finished = [[(line["digest"], line["batch"]) for line in read_lines(place, "attacks.jsonl")] for place in (whole, run)]
    assert finished[0] == finished[1]
