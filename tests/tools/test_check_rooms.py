"""check_rooms.py must accept the tree as it is and name every kind of violation planted in another."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPDX = "// SPDX-License-Identifier: MIT\n"


def check(root):
    command = [sys.executable, str(ROOT / "tools" / "check_rooms.py"), str(root)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode in (0, 1), result.stderr
    return result.returncode, result.stdout


def plant(root, path, text):
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "path, include",
    [
        ("elliptical/kernels/a.cpp", '#include "elliptical/kernels/simd.h"'),
        ("elliptical/kernels/a.cpp", '#include "hwy/highway.h"'),
        ("elliptical/ops/a.cpp", '#include "elliptical/kernels/simd.h"'),
        ("elliptical/ops/a.cpp", "#include <torch/torch.h>"),
        ("elliptical/ops/a.h", "#include <ATen/core/Tensor.h>"),
        ("elliptical/cli/a.cpp", '#include "bench/cases.h"'),
        ("tests/ops/a.cpp", '#include "elliptical/ops/attention.h"'),
    ],
)
def test_accepts_what_the_table_allows(tmp_path, path, include):
    plant(tmp_path, path, SPDX + include + "\n")
    assert check(tmp_path) == (0, "")


@pytest.mark.parametrize(
    "path, text, complaint",
    [
        ("elliptical/kernels/a.cpp", '#include "elliptical/base/names.h"', "not base"),
        (
            "elliptical/kernels/a.cpp",
            "#include <ATen/core/Tensor.h>",
            "may not use torch",
        ),
        ("elliptical/base/a.h", "  #  include <c10/util/Exception.h>", "may not use torch"),
        ("elliptical/report/a.cpp", "#include <torch/torch.h>", "may not use torch"),
        ("elliptical/ops/a.cpp", '#include "hwy/highway.h"', "may not use Highway"),
        ("elliptical/nn/a.cpp", '#include "elliptical/kernels/simd.h"', "not kernels"),
        ("elliptical/run/a.cpp", '#include "elliptical/report/html.h"', "not report"),
        ("elliptical/ops/a.cpp", '#include "bench/cases.h"', "not bench"),
        ("elliptical/ops/a.cpp", '#include "tests/ops/support.h"', "not tests"),
        ("elliptical/ops/a.h", "#include <torch/torch.h>", "must not stand in a header"),
        ("elliptical/ops/a.cpp", '#include "attention.h"', "full path"),
        ("elliptical/utils/a.cpp", "#include <vector>", "no room of the table"),
        ("elliptical/ops/a.cpp", "// caf\u00e9", "ASCII"),
    ],
)
def test_names_violations(tmp_path, path, text, complaint):
    plant(tmp_path, path, SPDX + text + "\n")
    status, output = check(tmp_path)
    assert status == 1
    assert output.startswith(f"{path}:2: ") and complaint in output


def test_asks_for_the_spdx_line(tmp_path):
    plant(tmp_path, "elliptical/ops/a.cpp", "#include <vector>\n")
    status, output = check(tmp_path)
    assert status == 1 and output.startswith("elliptical/ops/a.cpp:1: first line must be")
