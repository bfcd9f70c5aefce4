#!/usr/bin/env python3
"""Checks that each C++ file keeps to its room.

    tools/check_rooms.py [ROOT]

The table ROOMS says which rooms a room may include and whether it may use torch and Highway. Beside that:
no header of ours includes torch/torch.h (20 s of compile time for everybody who includes it), sources
are ASCII, and each starts with the SPDX line. One line per violation; exit status 1 if there is any.
"""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Room:
    includes: frozenset[str]  # other rooms
    torch: bool = True
    highway: bool = False


def room(*includes: str, torch: bool = True, highway: bool = False) -> Room:
    return Room(frozenset(includes), torch, highway)


EVERY_ROOM = (
    "base kernels ops nn models data store measure tasks run attack analysis report cli".split()
)
ALL_BUT_REPORT_AND_CLI = [r for r in EVERY_ROOM if r not in ("report", "cli")]

# Who may include whom: the table of CONTRIBUTING.md. Folders outside elliptical/ stand below it.
ROOMS = {
    "base": room(torch=False),
    "kernels": room(torch=False, highway=True),
    "ops": room("kernels", "base"),
    "nn": room("ops", "base"),
    "data": room("base"),
    "attack": room("base"),
    "models": room("nn", "base"),
    "measure": room("base", torch=False),
    "report": room("measure", "base", torch=False),
    "analysis": room("nn", "ops", "base"),
    "store": room("base"),
    "tasks": room("models", "nn", "data", "store", "measure", "base"),
    "run": room(*ALL_BUT_REPORT_AND_CLI),
    "cli": room(*EVERY_ROOM, "bench"),
    "bench": room("models", "attack", "nn", "ops", "kernels", "base"),
    "examples": room(*EVERY_ROOM),
    "tests": room(*EVERY_ROOM, "bench", highway=True),
}
OUTSIDE = ("bench", "examples", "tests")

SPDX = "// SPDX-License-Identifier: MIT"
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TORCH_PREFIXES = ("torch/", "ATen/", "c10/", "caffe2/")


def room_of(path: Path) -> str | None:
    """The room a file or an included path lies in: its folder below elliptical/, or its top folder."""
    parts = path.parts
    if parts[0] == "elliptical" and len(parts) > 2:
        return parts[1]
    return parts[0] if parts[0] in OUTSIDE else None


def check_include(path: Path, included: str) -> str | None:
    """Why `path` must not include `included`, or None."""
    own = room_of(path)
    if own not in ROOMS:
        return f"no room of the table: {path.parent} (add it to ROOMS)"
    rules = ROOMS[own]
    if included.startswith(TORCH_PREFIXES):
        if not rules.torch:
            return f"room {own} may not use torch, includes {included}"
        if included == "torch/torch.h" and path.suffix == ".h":
            return "torch/torch.h must not stand in a header; include <ATen/core/Tensor.h> or a source file"
    elif included.startswith("hwy/"):
        if not rules.highway:
            return f"room {own} may not use Highway, includes {included}"
    elif included.startswith(("elliptical/", *(f"{name}/" for name in OUTSIDE))):
        other = room_of(Path(included))
        if other != own and other not in rules.includes:
            allowed = ", ".join(sorted(rules.includes)) or "no other room"
            return f"room {own} may include {allowed}, not {other}: {included}"
    return None


def check_file(root: Path, path: Path) -> list[str]:
    raw = (root / path).read_bytes()
    violations = []
    text = raw.decode("utf-8", errors="replace")
    lines = text.splitlines()
    if not lines or lines[0] != SPDX:
        violations.append(f"{path}:1: first line must be: {SPDX}")
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            violations.append(f"{path}:{number}: sources must be ASCII")
        match = INCLUDE.match(line)
        if not match:
            continue
        quote, included = match.groups()
        if quote == '"' and "/" not in included:
            violations.append(
                f'{path}:{number}: include by the full path from the root, not "{included}"'
            )
        reason = check_include(path, included)
        if reason:
            violations.append(f"{path}:{number}: {reason}")
    return violations


def sources(root: Path) -> list[Path]:
    """C++ files that git knows or would add; every file where there is no git."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=root, capture_output=True, text=True)
    if listing.returncode == 0:
        names = [Path(name) for name in listing.stdout.split("\0") if name]
    else:
        names = [path.relative_to(root) for path in root.rglob("*")]
    return sorted(
        p for p in names if p.suffix in (".h", ".cpp") and (root / p).is_file()
    )


def main(arguments: list[str]) -> int:
    root = Path(arguments[0] if arguments else ".").resolve()
    violations = [line for path in sources(root) for line in check_file(root, path)]
    for line in violations:
        print(line)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
