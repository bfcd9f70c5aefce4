"""check_faults.py must accept the catalogue as it is and name every way in which one can promise more than is tested."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import check_faults  # noqa: E402

CPP = """
TEST(Suite, C6C7WhatHolds) {
TEST_P(Cases, K2_K3_Sizes) {
RC_GTEST_PROP(Props, S1Anything, (int x)) {
TEST(Suite, WS3IsNoFault) {
TEST(Suite, A16BitPicture) {
TEST(Suite, SlowM3Long) {
TEST_F(
    Fixture,
    D1Wrapped) {
"""
PYTHON = '''
DEF test_c6_falls_back():
@pytest.mark.slow
@pytest.mark.parametrize(
    "a, b",
    [(1, 2)],
)
DEF test_c1_c2_all(a, b):
DEF test_config_has_no_fault():
DEF helper_c6_x():
'''.replace("DEF", "def")  # or the checker would find them in this file
ROW = "| ID | what | holds | tests |\n| --- | --- | --- | --- |\n"


def run(*arguments):
    command = [sys.executable, str(ROOT / "tools" / "check_faults.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_catalogue_holds():
    result = run("--list")
    assert result.returncode == 0, result.stderr
    assert "C6" in result.stdout and "test_damaged_checkpoints.test_c6_" in result.stdout


@pytest.mark.parametrize(
    "lines, complaint",
    [
        ("| C1 | x | y | `S.C1A` |\n| D2 | x | y | later |", None),
        ("| C1 | x | y | `S.C1A` |\n| D2 | x | y | `S.D2A` |", None),
        ("| D2 | x | y | later |", "C1: is promised, but has no line"),
        ("| C1 | x | y | later |\n| D2 | x | y | later |", "C1: must have a test now, only D2 may have theirs later"),
        ("| C1 | x | y | `S.C1A` |\n| C2 | x | y | `S.C2A` |\n| D2 | x | y | later |", "C2: is not among the promised ones"),
    ],
)
def test_no_promise_is_dropped_or_put_off(lines, complaint):
    problems = check_faults.check_promises(ROW + lines + "\n", ["C1", "D2"], ("D2",))
    assert (problems == []) if complaint is None else (len(problems) == 1 and complaint in problems[0]), problems


def test_all_forty_four_are_promised():
    assert len(check_faults.PROMISED) == 44 and set(check_faults.MAY_BE_LATER) == {"D2", "P2"}
    catalogue = (ROOT / check_faults.CATALOGUE).read_text()
    without = "\n".join(line for line in catalogue.splitlines() if not line.startswith("| K5 |"))
    assert check_faults.check_promises(catalogue) == []
    assert check_faults.check_promises(without) == ["docs/faults.md: K5: is promised, but has no line"]


def test_names_of_tests_are_read():
    tests = {test.name: test for test in check_faults.tests_of_cpp(CPP) + check_faults.tests_of_python(PYTHON, "test_x")}
    assert {name: test.ids for name, test in tests.items()} == {
        "Suite.C6C7WhatHolds": ["C6", "C7"],
        "Cases.K2_K3_Sizes": ["K2", "K3"],
        "Props.S1Anything": ["S1"],
        "Suite.WS3IsNoFault": [],
        "Suite.A16BitPicture": ["A16"],
        "Suite.SlowM3Long": [],
        "Fixture.D1Wrapped": ["D1"],
        "test_x.test_c6_falls_back": ["C6"],
        "test_x.test_c1_c2_all": ["C1", "C2"],
        "test_x.test_config_has_no_fault": [],
    }
    assert {name for name, test in tests.items() if test.is_slow} == {"Suite.SlowM3Long", "test_x.test_c1_c2_all"}


@pytest.mark.parametrize(
    "row, complaint",
    [
        ("| C6 | x | y | `S.C6A` |", None),
        ("| C6 | x | y | `S.C6A`, `S.Slow` |", "C6: the name of S.Slow must begin with the ID"),
        ("| C6 | x | y | none yet |", "C6: no test is named"),
        ("| C6 | x | y | `S.C6Gone` |", "C6: there is no test S.C6Gone"),
        ("| C6 | x | `S.C6A` | here |", "C6: no test is named"),
        ("| C6 | x | y | later, with z |", "C6: is said to come later, but S.C6A tests it"),
        ("| C6 | x | y | `S.C6A` |\n| D2 | x | y | later, with z |", None),
        ("| C6 | x | y | `S.C6A` |\n| C6 | x | y | `S.C6A` |", "C6: has two lines"),
        ("| C7 | x | y | `S.C7Slow` |\n| C6 | x | y | `S.C6A` |", "C7: one of its tests must be of the ordinary ones, all are slow"),
        ("| D2 | x | y | later |", "S.C6A: docs/faults.md has no line for C6"),
        ("", "no line begins with an ID"),
    ],
)
def test_what_is_wrong_is_named(row, complaint):
    tests = [check_faults.Test("S.C6A", ["C6"], False), check_faults.Test("S.Slow", [], True)]
    if "C7" in row:
        tests.append(check_faults.Test("S.C7Slow", ["C7"], True))
    problems = check_faults.check_catalogue(ROW + row + "\n", tests)
    assert (problems == []) if complaint is None else any(complaint in problem for problem in problems), problems


def report(folder, name, *cases):
    text = "".join(f"<testcase {case}</testcase>" for case in cases)
    (folder / name).write_text(f"<testsuites><testsuite>{text}</testsuite></testsuites>")


@pytest.mark.parametrize(
    "binary, python, complaint",
    [
        (['classname="S/0" name="C6A">'], ['classname="tests.cli.test_x" name="test_c6_b">'], None),
        (['classname="In/S" name="C6A/0">', 'classname="In/S" name="C6A/1"><skipped message="no AVX"/>'], ['classname="tests.cli.test_x" name="test_c6_b[1]">'], None),
        (['classname="S" name="C6A"><skipped message="x.cpp:3 no data"/>'], ['classname="tests.cli.test_x" name="test_c6_b">'], "S.C6A was skipped: x.cpp:3 no data"),
        (['classname="S" name="C6A"><failure/>'], ['classname="tests.cli.test_x" name="test_c6_b">'], "S.C6A failed"),
        (['classname="S" name="C6A" status="notrun">'], ['classname="tests.cli.test_x" name="test_c6_b">'], "S.C6A was skipped: disabled"),
        (['classname="S" name="C6A">'], [], "test_x.test_c6_b did not run"),
        ([], ['classname="tests.cli.test_x" name="test_c6_b">'], "S.C6A did not run"),
    ],
)
def test_what_did_not_run_is_named(tmp_path, binary, python, complaint):
    report(tmp_path, "base_test.xml", *binary)
    report(tmp_path, "pytest.xml", *python)
    report(tmp_path, "ctest.xml", 'name="base_test">')
    tests = [check_faults.Test("S.C6A", ["C6"], False), check_faults.Test("test_x.test_c6_b", ["C6"], False), check_faults.Test("S.C6Slow", ["C6"], True)]
    catalogue = ROW + "| C6 | x | y | `S.C6A`, `test_x.test_c6_b`, `S.C6Slow` |\n"
    problems = check_faults.check_outcomes(catalogue, tests, check_faults.outcomes([tmp_path]))
    assert (problems == []) if complaint is None else (len(problems) == 1 and complaint in problems[0]), problems
