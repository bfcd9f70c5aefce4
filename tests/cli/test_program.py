"""The program as a user meets it: exit status, stdout for results, one line on stderr for mistakes."""

import csv
import io
import json
import math
import os
import subprocess

import pytest

def commands(elliptical):
    """Those that `--help` lists, in its order."""
    result = elliptical("--help")
    assert result.returncode == 0
    lines = [line for line in result.stdout.splitlines() if line.startswith("  ")]
    return [line.split()[0] for line in lines if line.split()[0] not in ("elliptical", "--debug")]


def usage_error(result):
    assert result.returncode == 2
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    return line


def test_help_lists_the_commands(elliptical):
    listed = commands(elliptical)
    assert listed == sorted(listed) and {"attack", "train", "eval", "compare"} <= set(listed)


def test_every_command_has_help(elliptical):
    for command in commands(elliptical):
        result = elliptical(command, "--help")
        assert result.returncode == 0 and "Usage: " in result.stdout, command
        prints_no_numbers = command in ("demo", "generate", "report")
        assert ("--format" in result.stdout) != prints_no_numbers, command


def test_version(elliptical, root):
    result = elliptical("--version")
    version = result.stdout.removeprefix("elliptical ").strip()
    assert result.returncode == 0
    assert f"project(elliptical VERSION {version} " in (root / "CMakeLists.txt").read_text()


def test_no_command_is_wrong_usage(elliptical):
    result = elliptical()
    assert result.returncode == 2 and result.stdout == "" and "usage:" in result.stderr


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["bnech"], 'command: unknown "bnech", did you mean "bench"?'),
        (["xyzzy"], 'command: unknown "xyzzy", known: attack, bench, compare, config, data, demo, '),
        (["info", "--fromat", "json"], 'info: option unknown "--fromat", did you mean "--format"?'),
        (["info", "--format", "jsn"], 'unknown "jsn", did you mean "json"?'),
        (["info", "more"], 'info: unexpected argument "more"'),
        (["list", "smid"], 'unknown "smid", did you mean "simd"?'),
        (["bench", "--peers", "sdpa,unfsed"], 'unknown "unfsed", did you mean "unfused"?'),
        (["bench", "--case", "nothing"], 'bench: no case has "nothing" in its name'),
        (["bench", "--what", "variants", "--case", "nothing"], 'bench: no case has "nothing" in its name'),
        (["bench", "--threads", "0"], "--threads"),
        (["bench", "--repeats", "many"], "--repeats"),
    ],
)
def test_mistakes_get_one_line(elliptical, arguments, message):
    assert message in usage_error(elliptical(*arguments))


def test_info_knows_the_paths(elliptical):
    facts = json.loads(elliptical("info", "--format", "json").stdout)
    assert facts["torch"].startswith("2.13.")
    assert facts["simd"]["in_use"] in facts["simd"]["runnable"]
    assert set(facts["simd"]["runnable"]) <= set(facts["simd"]["compiled"])
    assert facts["paths"]["float32"]["path"] == "fused"
    double = facts["paths"]["float64"]
    assert double["path"] == "composite" and double["refused"]["fused"] != ""


def test_info_table_says_the_same(elliptical):
    table = elliptical("info").stdout
    facts = json.loads(elliptical("info", "--format", "json").stdout)
    assert facts["cpu"] in table and facts["simd"]["in_use"] in table
    assert facts["paths"]["float64"]["refused"]["fused"] in table


def test_simd_target_can_be_forced(elliptical):
    for target in json.loads(elliptical("info", "--format", "json").stdout)["simd"]["runnable"]:
        rows = elliptical("list", "simd", "--format", "csv", env={**os.environ, "ELLIPTICAL_SIMD": target})
        in_use = [row["target"] for row in csv.DictReader(io.StringIO(rows.stdout)) if row["in use"] == "yes"]
        assert in_use == [target]


def test_impossible_simd_target_is_refused(elliptical):
    result = elliptical("list", "simd", env={**os.environ, "ELLIPTICAL_SIMD": "mmx"})
    (line,) = result.stderr.splitlines()
    assert result.returncode == 1 and "simd: target must be one of" in line and '"mmx"' in line


def test_corruptions_are_listed_with_their_groups(elliptical):
    rows = list(csv.DictReader(io.StringIO(elliptical("list", "corruptions", "--format", "csv").stdout)))
    assert [row["group"] for row in rows] == ["main"] * 15 + ["extra"] * 4
    assert rows[0]["corruption"] == "gaussian_noise" and rows[-1]["corruption"] == "saturate"


def short_bench(elliptical, *arguments, **options):
    result = elliptical("bench", "--repeats", "1", "--min-time", "0", *arguments, **options)
    assert result.returncode == 0, result.stderr
    return result


def test_bench_records(elliptical):
    arguments = ["--case", "8,8,128,16", "--peers", "sdpa,unfused", "--threads", "1"]
    rows = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    assert [(row["pass"], row["peer"]) for row in rows] == [
        ("forward", "sdpa"),
        ("forward", "unfused"),
        ("forward+backward", "sdpa"),
        ("forward+backward", "unfused"),
    ]
    for row in rows:
        assert row["ratio_min"] == pytest.approx(row["peer_min_s"] / row["ours_min_s"])
        assert row["ours_min_s"] <= row["ours_median_s"]
        assert row["threads"] == 1 and row["simd"] and row["torch"].startswith("2.13.")
        assert 0 < row["ours_error"] < 1e-5
        assert row["must"] == (None if row["peer"] == "unfused" else 2.6 if row["pass"] == "forward" else 2.2)


def test_bench_formats_have_the_same_rows(elliptical):
    arguments = ["--case", "8,8,128,16", "--pass", "forward"]
    (record,) = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    (row,) = csv.DictReader(io.StringIO(short_bench(elliptical, "--format", "csv", *arguments).stdout))
    assert list(row) == list(record) and row["case"] == record["case"]
    table = short_bench(elliptical, *arguments).stdout
    assert record["case"] in table and "2.60" in table


def test_bench_price_of_the_metric(elliptical):
    arguments = ["--case", "4,8,256,16 causal metric", "--pass", "forward", "--format", "json"]
    rows = json.loads(short_bench(elliptical, *arguments).stdout)
    assert [row["case"].split()[-1] for row in rows] == ["metric-row", "metric-per-query"]
    assert {row["peer"] for row in rows} == {"plain"}


def test_bench_says_why_a_peer_is_skipped(elliptical, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    arguments = ["--case", "8,8,128,16", "--peers", "ort", "--format", "json"]
    environment = {**os.environ, "ELLIPTICAL_PYTHON": str(python)}
    rows = json.loads(short_bench(elliptical, *arguments, env=environment).stdout)
    assert str(python) in rows[0]["skipped"] and rows[0]["ratio_min"] is None
    assert rows[1]["skipped"] == "ONNX Runtime has no backward pass"


def test_bench_loader_by_number_of_workers(elliptical):
    arguments = ["--what", "loader", "--quick", "--threads", "1"]
    rows = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    assert [row["workers"] for row in rows] == [0, 1, 2, 4]
    for row in rows:
        assert min(row["loader_pictures_per_s"], row["step_pictures_per_s"], row["fed_pictures_per_s"]) > 0
        assert 0 <= row["wait_share"] <= 1
    assert "waiting" in short_bench(elliptical, *arguments).stdout


def test_bench_training_takes_turns_with_pytorch(elliptical):
    arguments = ["--what", "training", "--quick", "--threads", "1"]
    rows = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    names = ["softmax", "torch softmax", "elliptical", "torch elliptical"]
    assert [row["trainer"] for row in rows] == names
    assert len({row["num_parameters"] for row in rows}) == 1  # the same model
    for row in rows:
        assert row["tokens_per_second"] == pytest.approx(64 / row["min_s"])
        assert row["loss"] == pytest.approx(math.log(300), rel=0.1)  # untrained
    table = short_bench(elliptical, *arguments, "--case", "300/").stdout
    assert "1.80" in table and "torch elliptical" in table


def test_bench_attack_takes_turns_with_pytorch(elliptical):
    arguments = ["--what", "attack", "--quick", "--threads", "1"]
    rows = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    names = ["softmax", "elliptical", "elliptical through"]
    assert [row["attacker"] for row in rows] == [who + name for name in names for who in ("", "torch ")]
    assert len({row["num_parameters"] for row in rows}) == 1  # the same model
    assert all(0 < row["min_s"] <= row["median_s"] for row in rows)
    assert "1.30" in short_bench(elliptical, *arguments, "--case", "softmax").stdout
    result = elliptical("bench", *arguments, "--case", "linear")
    assert result.returncode == 2 and 'no attacker has "linear" in its name' in result.stderr


def test_bench_decode_gives_a_row_per_attention_and_position(elliptical):
    arguments = ["--what", "decode", "--quick", "--threads", "1"]
    rows = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    expected = [(a, p) for p in (16, 64) for a in ("softmax", "elliptical")]
    assert [(row["attention"], row["position"]) for row in rows] == expected
    assert all(0 < row["min_s"] <= row["median_s"] for row in rows)
    lines = short_bench(elliptical, "--format", "csv", *arguments).stdout.splitlines()
    assert lines[0].startswith("what,attention,") and len(lines) == 1 + len(rows)
    assert "ms/token" in short_bench(elliptical, *arguments).stdout


def test_bench_variants_measures_every_attention(elliptical):
    arguments = ["--what", "variants", "--quick", "--threads", "1"]
    names = elliptical("bench", *arguments, "--list").stdout.split()
    assert {"elliptical", "performer", "softmax"} <= set(names)
    rows = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    assert [row["attention"] for row in rows] == names
    softmax = rows[names.index("softmax")]
    for row in rows:
        assert row["refusal"] == ""
        assert row["ratio_min"] == pytest.approx(row["min_s"] / softmax["min_s"])
        assert 64 * 32 * 4 < row["peak_bytes_64"] < row["peak_bytes_128"]
        exponent = math.log2(row["peak_bytes_128"] / row["peak_bytes_64"])
        assert row["memory_exponent"] == pytest.approx(exponent)
    # Without softmax there is nothing to divide by.
    (line,) = csv.DictReader(
        io.StringIO(short_bench(elliptical, "--format", "csv", *arguments, "--case", "mgk").stdout)
    )
    assert line["attention"] == "mgk" and line["ratio_min"] == ""
    table = short_bench(elliptical, *arguments).stdout
    assert "MiB at 128" in table and "performer" in table


def test_bench_vision_takes_turns_with_pytorch(elliptical):
    arguments = ["--what", "vision", "--quick", "--threads", "1"]
    rows = json.loads(short_bench(elliptical, "--format", "json", *arguments).stdout)
    names = ["softmax", "torch softmax", "elliptical", "torch elliptical"]
    assert [(row["pass"], row["runner"]) for row in rows] == [
        (what, name) for what in ("inference", "training") for name in names
    ]
    assert len({row["num_parameters"] for row in rows}) == 1  # the same model
    for row in rows:
        assert row["images_per_second"] == pytest.approx(2 / row["min_s"])
    table = short_bench(elliptical, *arguments, "--case", "softmax").stdout
    assert "1.25" in table and "1.15" in table and "elliptical" not in table
    assert elliptical("bench", *arguments, "--list").stdout.splitlines() == names
    missing = elliptical("bench", *arguments, "--case", "nothing")
    assert missing.returncode == 2 and 'no case has "nothing" in its name' in missing.stderr
    environment = {**os.environ, "ELLIPTICAL_PYTHON": "/bin/false"}
    result = elliptical("bench", *arguments, env=environment)
    assert result.returncode == 1 and "vit.py gave no answer" in result.stderr


def test_bench_training_names_a_peer_that_does_not_start(elliptical):
    environment = {**os.environ, "ELLIPTICAL_PYTHON": "/bin/false"}
    result = elliptical("bench", "--what", "training", "--quick", env=environment)
    assert result.returncode == 1 and "lm_training.py gave no answer" in result.stderr


def test_r3_unwritable_stdout_is_a_failure(elliptical, root):
    program = root / "build" / "release" / "elliptical"
    with open("/dev/full", "w") as full:
        result = subprocess.run([program, "--version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 1 and result.stderr == "elliptical: stdout: could not be written\n"
