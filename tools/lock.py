#!/usr/bin/env python3
"""Writes FILE.lock beside each FILE.txt of pinned PyPI packages: the same packages with the SHA-256 of their wheels.

    .venv/bin/python tools/lock.py [FILE.txt...]      without files: every requirements*.txt

The hashes are those of the wheels that pip chooses for each Python and machine below, as its own report says; pip asks
whatever index it is configured for. tools/setup installs the locks with --require-hashes, so that a wheel which is not
one of these is refused. torch is left out: its builds for CPU and GPU have one version and different indexes, and
tools/setup checks what was installed instead.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
MACHINES = ("x86_64", "aarch64")
NEWEST_GLIBC = 36  # of Debian 12: 2.36
NOT_LOCKED = "torch"


def read_pins(path: Path) -> list[str]:
    """The lines that name a package, as they stand."""
    lines = [line.strip() for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def platforms(machine: str) -> list[str]:
    tags = [f"manylinux_2_{minor}_{machine}" for minor in range(NEWEST_GLIBC, 4, -1)]
    return [*tags, f"manylinux2014_{machine}", f"linux_{machine}"]


def applies(pin: str, python: str, machine: str) -> bool:
    marker = Requirement(pin).marker
    environment = {"python_version": python, "python_full_version": f"{python}.0", "platform_machine": machine}
    return marker is None or marker.evaluate(environment)


def wheel_hashes(pins: list[str], python: str, machine: str) -> dict[str, str]:
    """Hash of the wheel of each pin that applies."""
    # pip would judge markers by the Python that runs it.
    wanted = {f"{(r := Requirement(pin)).name}{r.specifier}": pin for pin in pins if applies(pin, python, machine)}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "wanted.txt").write_text("\n".join(wanted))
        command = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet", "install"]
        command += ["--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:", "--implementation", "cp"]
        command += ["--python-version", python, "--target", folder, "--report", f"{folder}/report.json"]
        command += [word for tag in platforms(machine) for word in ("--platform", tag)]
        result = subprocess.run([*command, "-r", f"{folder}/wanted.txt"], cwd="/")
        if result.returncode != 0:
            sys.exit(f"lock: pip has no wheel of something for Python {python} on {machine}: see its message above")
        report = json.loads((Path(folder) / "report.json").read_text())
    found = {}
    for item in report["install"]:
        name = f"{item['metadata']['name']}=={item['metadata']['version']}"
        found[name.lower().replace("_", "-")] = item["download_info"]["archive_info"]["hashes"]["sha256"]
    return {pin: found[name.lower().replace("_", "-")] for name, pin in wanted.items()}


def lock(path: Path) -> None:
    pins = [pin for pin in read_pins(path) if Requirement(pin).name != NOT_LOCKED]
    hashes = {pin: set() for pin in pins}
    for python in PYTHONS:
        for machine in MACHINES:
            print(f"lock: {path.name} for Python {python} on {machine}", file=sys.stderr)
            for pin, digest in wheel_hashes(pins, python, machine).items():
                hashes[pin].add(digest)
    lines = [f"# Made from {path.name} by tools/lock.py: wheels for Python {PYTHONS[0]} to {PYTHONS[-1]} on Linux."]
    for pin in pins:
        if not hashes[pin]:
            sys.exit(f"lock: {path.name}: {pin} applies to no Python")
        lines.append(" ".join([pin, *(f"--hash=sha256:{digest}" for digest in sorted(hashes[pin]))]))
    path.with_suffix(".lock").write_text("\n".join(lines) + "\n")


def main() -> None:
    for path in [Path(word) for word in sys.argv[1:]] or sorted(ROOT.glob("requirements*.txt")):
        lock(path)


if __name__ == "__main__":
    main()
