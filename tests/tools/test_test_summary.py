"""The last line of ./test must count every test once, whoever ran it, and never hide a failure."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def report(folder, name, *cases):
    text = "".join(f'<testcase classname="C" {case}</testcase>' for case in cases)
    (folder / name).write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")


def summary(folder):
    command = [sys.executable, str(ROOT / "tools" / "test_summary.py"), str(folder)]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.returncode, result.stdout.splitlines()


def test_adds_up_all_kinds(tmp_path):
    report(tmp_path, "ctest.xml", 'name="ops_test">', 'name="example">')
    report(tmp_path, "ops_test.xml", 'name="a">', 'name="b">', 'name="c"><skipped message="no data"/>')
    report(tmp_path, "pytest.xml", 'name="d">')
    status, lines = summary(tmp_path)
    assert (status, lines[-1]) == (0, "4 passed, 0 failed, 1 skipped")
    assert lines[0] == "skipped  C.c: no data"


def test_counts_a_failed_case(tmp_path):
    report(tmp_path, "ctest.xml", 'name="ops_test"><failure/>')
    report(tmp_path, "ops_test.xml", 'name="a">', 'name="b"><failure/>')
    status, lines = summary(tmp_path)
    assert (status, lines[-1]) == (1, "1 passed, 1 failed, 0 skipped")
    assert "FAILED   C.b" in lines


def test_counts_a_binary_that_died_without_a_report(tmp_path):
    report(tmp_path, "ctest.xml", 'name="ops_test"><failure/>', 'name="example">')
    assert summary(tmp_path) == (1, ["FAILED   C.ops_test", "1 passed, 1 failed, 0 skipped"])


def test_counts_a_binary_that_died_after_its_report(tmp_path):
    report(tmp_path, "ctest.xml", 'name="ops_test"><failure/>')
    report(tmp_path, "ops_test.xml", 'name="a">')
    assert summary(tmp_path) == (1, ["FAILED   C.ops_test", "1 passed, 1 failed, 0 skipped"])


def test_nothing_ran_is_a_failure(tmp_path):
    report(tmp_path, "ctest.xml")
    assert summary(tmp_path) == (1, ["0 passed, 0 failed, 0 skipped"])
