#!/usr/bin/env python3
"""Adds up what the tests of all kinds reported, and says it in one last line.

    tools/test_summary.py FOLDER...

Each folder holds `ctest.xml` (one entry per ctest test), one `NAME.xml` per GoogleTest binary and
perhaps `pytest.xml`, all in the JUnit format. A ctest entry with a NAME.xml counts as the cases in that
file; one without (a script, an example, a binary that crashed) counts as one test.
Exit status 1 when something failed or nothing ran.
"""

import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Totals:
    passed: int = 0
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)

    def add_case(self, case: ElementTree.Element) -> None:
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        skip = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            self.failed.append(name)
        elif skip is not None or case.get("status") in ("notrun", "disabled"):
            # The text has file, line and reason; the message alone may only say that it was skipped.
            reason = (skip.text or skip.get("message") or "") if skip is not None else "disabled"
            self.skipped.append(f"{name}: {' '.join(reason.split())}")
        else:
            self.passed += 1


def cases(path: Path) -> list[ElementTree.Element]:
    return list(ElementTree.parse(path).getroot().iter("testcase"))


def add_folder(folder: Path, totals: Totals) -> None:
    for entry in cases(folder / "ctest.xml"):
        own_report = folder / f"{entry.get('name')}.xml"
        if not own_report.exists():
            totals.add_case(entry)
            continue
        failures_before = len(totals.failed)
        for case in cases(own_report):
            totals.add_case(case)
        # The binary reported success and still ended badly (a crash or leak at exit).
        if entry.find("failure") is not None and len(totals.failed) == failures_before:
            totals.add_case(entry)
    if (folder / "pytest.xml").exists():
        for case in cases(folder / "pytest.xml"):
            totals.add_case(case)


def main(folders: list[str]) -> int:
    totals = Totals()
    for folder in folders:
        add_folder(Path(folder), totals)
    for name in totals.skipped:
        print(f"skipped  {name}")
    for name in totals.failed:
        print(f"FAILED   {name}")
    print(
        f"{totals.passed} passed, {len(totals.failed)} failed, {len(totals.skipped)} skipped"
    )
    return 1 if totals.failed or totals.passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
