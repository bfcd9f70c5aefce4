"""A tiny model through many steps and faults: the same bits, no more memory, no more open files. See soak.py."""

import json
from collections import Counter

import pytest

from damage import DAMAGES
from soak import FULL_DISKS, KINDS, make_plan, soak

# A tensor of 4 floats that is kept at each of 300,000 steps would be 24 MB with its header.
MAX_GROWTH_KB = 4096


def expect_flat(result):
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


def expect_all_happened(counts, num_faults):
    """All kinds but those that take a file system of their own."""
    happened = [*(kind for kind in KINDS if kind not in FULL_DISKS), "killed in a save", "moved aside"]
    assert not [kind for kind in happened if counts.get(kind, 0) == 0], counts
    # On a busy machine a run gets far between two looks at it, and ends before its last faults.
    assert sum(counts.get(kind, 0) for kind in KINDS) > num_faults / 5, counts


def expect_full_disks(result):
    if not result["full_file_system"]:
        pytest.skip("no file system can be mounted here: instead of full disks there were limits of file sizes alone")
    assert not [kind for kind in FULL_DISKS if result["counts"].get(kind, 0) == 0], result["counts"]


@pytest.fixture(scope="module")
def minute(tmp_path_factory):
    return soak(tmp_path_factory.mktemp("minute"), num_steps=8000, num_faults=45, seed=1)


def test_m3_c1_c3_c6_c9_a_soak_of_a_minute(minute, record_property):
    record_property("soak", json.dumps(minute))
    expect_flat(minute)
    expect_all_happened(minute["counts"], num_faults=45)


def test_c3_disks_were_full_in_the_soak_of_a_minute(minute):
    expect_full_disks(minute)


@pytest.mark.parametrize("seed", range(5))
def test_each_kind_of_fault_is_in_the_first_half_of_a_plan(seed):
    plan = make_plan(2000, 45, seed)
    assert len(plan) == 45 and {fault.kind for fault in plan[:22]} == set(KINDS)


@pytest.mark.slow
def test_m3_c1_c3_c6_c9_a_soak_of_an_hour(tmp_path, record_property):
    result = soak(tmp_path, num_steps=300_000, num_faults=5000, seed=1)
    print(json.dumps(result, indent=1))
    record_property("soak", json.dumps(result))
    expect_flat(result)
    expect_all_happened(result["counts"], num_faults=5000)
    damages = Counter({name: result["counts"].get(f"damage: {name}", 0) for name in DAMAGES})
    assert min(damages.values()) > 0, damages
    expect_full_disks(result)
