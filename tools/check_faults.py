#!/usr/bin/env python3
"""Holds docs/faults.md against the tests: no promise without a test, no test that did not run.

    tools/check_faults.py                       the tests that the catalogue names exist
    tools/check_faults.py --list                ... and which tests each ID has
    tools/check_faults.py --reports FOLDER...   ... and the ones named ran and passed (JUnit files)

A test says which faults it is about by the beginning of its name: `TEST(Suite, C6C7WhatHolds)`, `def test_c6_c7_what_holds`.
The catalogue names one or more of them for each ID as `Suite.Test`; the suite of a Python test is its file without `.py`. A test
that is marked slow need not have run. Exit status 1 when something is wrong.
"""

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CATALOGUE = Path("docs/faults.md")
FOLDERS = ("tests", "python")

# What is promised: no fault leaves the catalogue together with its tests. A new one is a number here and a line there.
COUNTS = {"C": 12, "N": 2, "K": 8, "S": 6, "D": 5, "M": 3, "R": 3, "P": 2, "A": 3}
PROMISED = [f"{kind}{number}" for kind, count in COUNTS.items() for number in range(1, count + 1)]
MAY_BE_LATER = ("D2", "P2")

ID = r"[CNKSDMRPA][0-9]{1,2}"
CPP_TEST = re.compile(r"^(?:TEST|TEST_F|TEST_P|TYPED_TEST|RC_GTEST_PROP|RC_GTEST_FIXTURE_PROP)\(\s*(\w+),\s*(\w+)", re.M)
CPP_IDS = re.compile(rf"((?:{ID}_?)+)(?=[A-Z])")
PYTHON_TEST = re.compile(r"^((?:@.*\n)*?(?:@pytest[^\n]*\n(?:[ \])][^\n]*\n)*)*)def (test_\w+)\(", re.M)
PYTHON_IDS = re.compile(rf"test_((?:{ID}_)+)", re.I)
ROW = re.compile(rf"^\| ({ID}) \|(.*)\|$", re.M)
NAMED = re.compile(r"`(\w+\.\w+)`")
LATER = re.compile(r"\blater\b")


@dataclass
class Test:
    name: str  # Suite.Test
    ids: list[str]
    is_slow: bool


@dataclass
class Outcome:
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)


def tests_of_cpp(text: str) -> list[Test]:
    result = []
    for suite, name in CPP_TEST.findall(text):
        ids = CPP_IDS.match(name)
        result.append(Test(f"{suite}.{name}", re.findall(ID, ids.group(1)) if ids else [], "Slow" in name or "Slow" in suite))
    return result


def tests_of_python(text: str, suite: str) -> list[Test]:
    result = []
    for decorators, name in PYTHON_TEST.findall(text):
        ids = PYTHON_IDS.match(name)
        found = [each.upper() for each in re.findall(ID, ids.group(1), re.I)] if ids else []
        result.append(Test(f"{suite}.{name}", found, "mark.slow" in decorators))
    return result


def all_tests(root: Path) -> list[Test]:
    result = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*_test.cpp")):
            result += tests_of_cpp(path.read_text())
        for path in sorted((root / folder).rglob("test_*.py")):
            result += tests_of_python(path.read_text(), path.stem)
    return result


def check_promises(catalogue: str, promised: list[str] = PROMISED, may_be_later: tuple[str, ...] = MAY_BE_LATER) -> list[str]:
    """Which faults the catalogue has lost, has without a number here, or puts off though it may not."""
    rows = ROW.findall(catalogue)
    present = [id for id, _ in rows]
    problems = [f"{CATALOGUE}: {id}: is promised, but has no line" for id in promised if id not in present]
    problems += [f"{CATALOGUE}: {id}: is not among the promised ones (COUNTS in tools/check_faults.py)" for id in present if id not in promised]
    for id, row in rows:
        last = row.split("|")[-1]
        if LATER.search(last) and not NAMED.findall(last) and id not in may_be_later:
            problems.append(f"{CATALOGUE}: {id}: must have a test now, only {' and '.join(may_be_later)} may have theirs later")
    return problems


def check_catalogue(catalogue: str, tests: list[Test]) -> list[str]:
    """What is wrong between the table and the names of the tests."""
    rows = ROW.findall(catalogue)
    problems = [f"{CATALOGUE}: {name}: has two lines" for name in {id for id, _ in rows} if [id for id, _ in rows].count(name) > 1]
    by_name = {test.name: test for test in tests}
    for id, row in rows:
        last = row.split("|")[-1]
        named = NAMED.findall(last)
        carriers = [test for test in tests if id in test.ids]
        if not named and LATER.search(last):
            if carriers:
                problems.append(f"{CATALOGUE}: {id}: is said to come later, but {carriers[0].name} tests it")
            continue
        if not named:
            problems.append(f"{CATALOGUE}: {id}: no test is named")
        for name in named:
            if name not in by_name:
                problems.append(f"{CATALOGUE}: {id}: there is no test {name}")
            elif id not in by_name[name].ids:
                problems.append(f"{CATALOGUE}: {id}: the name of {name} must begin with the ID")
        if named and all(by_name[name].is_slow for name in named if name in by_name):
            problems.append(f"{CATALOGUE}: {id}: one of its tests must be of the ordinary ones, all are slow")
    known = {id for id, _ in rows}
    problems += [f"{test.name}: {CATALOGUE} has no line for {id}" for test in tests for id in test.ids if id not in known]
    if not rows:
        problems.append(f"{CATALOGUE}: no line begins with an ID")
    return problems


def outcomes(folders: list[Path]) -> dict[str, Outcome]:
    """What became of each test, by Suite.Test; cases of a parameter count together."""
    result: dict[str, Outcome] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.xml")):
            if path.name == "ctest.xml":
                continue
            for case in ElementTree.parse(path).getroot().iter("testcase"):
                # Set/Suite of tests with parameters, Suite/0 of typed ones, folder.module of Python.
                suite = re.split(r"[./]", re.sub(r"/[0-9]+$", "", case.get("classname", "")))[-1]
                name = f"{suite}.{re.split('[/[]', case.get('name', ''))[0]}"
                outcome = result.setdefault(name, Outcome())
                skip = case.find("skipped")
                if case.find("failure") is not None or case.find("error") is not None:
                    outcome.failed += 1
                elif skip is not None or case.get("status") in ("notrun", "disabled"):
                    reason = (skip.text or skip.get("message") or "") if skip is not None else "disabled"
                    outcome.skipped.append(" ".join(reason.split()))
                else:
                    outcome.passed += 1
    return result


def check_outcomes(catalogue: str, tests: list[Test], ran: dict[str, Outcome]) -> list[str]:
    """Which of the tests that the catalogue names did not run to a good end."""
    slow = {test.name for test in tests if test.is_slow}
    problems = []
    for id, row in ROW.findall(catalogue):
        for name in NAMED.findall(row.split("|")[-1]):
            outcome = ran.get(name)
            if outcome is None:
                if name not in slow:
                    problems.append(f"{CATALOGUE}: {id}: {name} did not run")
            elif outcome.failed:
                problems.append(f"{CATALOGUE}: {id}: {name} failed")
            elif outcome.skipped and not outcome.passed:  # some cases of a parameter may be
                problems.append(f"{CATALOGUE}: {id}: {name} was skipped: {outcome.skipped[0]}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the tests of each ID")
    parser.add_argument("--reports", nargs="+", type=Path, metavar="FOLDER", help="folders of JUnit files of a whole ./test")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    catalogue = (arguments.root / CATALOGUE).read_text()
    tests = all_tests(arguments.root)
    problems = check_promises(catalogue) + check_catalogue(catalogue, tests)
    if arguments.reports:
        problems += check_outcomes(catalogue, tests, outcomes(arguments.reports))
    ids = [id for id, _ in ROW.findall(catalogue)]
    if arguments.list:
        for id in ids:
            print(f"{id:3}", *[test.name + (" (slow)" if test.is_slow else "") for test in tests if id in test.ids], sep="\n    ")
    for problem in problems:
        print(problem, file=sys.stderr)
    if not problems:
        num_carriers = sum(bool(test.ids) for test in tests)
        print(f"faults: {len(ids)} in the catalogue, {num_carriers} tests carry them" + (", all named ones ran" if arguments.reports else ""))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
