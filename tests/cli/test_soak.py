"""A tiny model through many steps and faults: the same bits, no more memory, no more open files. See soak.py."""

import json
import warnings

import pytest

from soak import soak

# A tensor of 4 floats that is kept at each of 100,000 steps would be 8 MB with its header.
MAX_GROWTH_KB = 4096


def expect_nothing_lost(tmp_path, record_property, steps, faults):
    result = soak(tmp_path, steps, faults, seed=1)
    record_property("soak", json.dumps(result))
    print(json.dumps(result, indent=1))
    if not result["full_file_system"]:
        warnings.warn("no file system can be mounted here: instead of full disks there were limits of file sizes alone")
    alone, disturbed = result["undisturbed"], result["disturbed"]
    memory = alone["resident_kb"]
    assert memory["most"] - memory["first"] < MAX_GROWTH_KB, memory
    # A checkpoint that is being written is two more: a file and the folder.
    assert alone["handles"]["most"] <= alone["handles"]["least"] + 2, alone
    assert disturbed["handles"]["most"] <= alone["handles"]["least"] + 2, disturbed
    # Who starts again reads the whole log once; four bytes for each of its bytes were measured.
    read_again = 5 * result["log_bytes"] / 1024
    assert disturbed["resident_kb"]["most"] < memory["most"] + MAX_GROWTH_KB + read_again, (disturbed, memory)
    assert result["log_bytes"] < 250 * result["steps"] / 5, "a line each five steps, none of them long"
    struck = sum(result["counts"].get(kind, 0) for kind in ("kill", "damage", "limited files", "SIGTERM", "SIGINT"))
    assert result["counts"]["processes"] > faults / 2 and struck > faults / 5, result["counts"]


def test_m3_c1_c3_c6_c9_a_soak_of_a_minute(tmp_path, record_property):
    expect_nothing_lost(tmp_path, record_property, steps=2000, faults=45)


@pytest.mark.slow
def test_m3_c1_c3_c6_c9_a_soak_of_an_hour(tmp_path, record_property):
    expect_nothing_lost(tmp_path, record_property, steps=100_000, faults=3300)
