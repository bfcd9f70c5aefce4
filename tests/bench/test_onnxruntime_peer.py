"""The ONNX Runtime peer of `elliptical bench` computes what it is compared with, and says what is missing."""

import json
import math
import subprocess
import sys

import pytest
import torch

PEER = "bench/peers/onnxruntime_attention.py"


def talk(root, requests, *options):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    result = subprocess.run([sys.executable, *options, root / PEER], input=lines, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("masked", [False, True])
def test_the_peer_computes_elliptical_attention(root, tmp_path, masked):
    for package in ("onnx", "onnxruntime"):
        pytest.importorskip(package, reason=f"{package} is not installed (tools/setup --tests)")
    torch.manual_seed(0)
    tensors = dict(zip("qkv", torch.randn(3, 2, 3, 5, 4), strict=True), metric=torch.rand(2, 3, 1, 4))
    if masked:
        tensors["mask"] = torch.full((5, 5), -1e9).triu(1)
    for name, tensor in tensors.items():
        tensor.numpy().tofile(tmp_path / name)
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    opening = {"open": {"folder": str(tmp_path), "inputs": shapes, "threads": 1}}
    opened, timed, written = talk(root, [opening, {"run": True}, {"write": "out"}])
    assert opened == {} and timed["seconds"] > 0 and written == {}
    scores = (tensors["q"] * tensors["metric"]) @ tensors["k"].mT / math.sqrt(4) + tensors.get("mask", 0)
    out = torch.frombuffer(bytearray((tmp_path / "out").read_bytes()), dtype=torch.float32).view(2, 3, 5, 4)
    torch.testing.assert_close(out, scores.softmax(-1) @ tensors["v"])


def test_a_missing_package_is_named_with_what_to_do(root):
    """-S: a Python without any package."""
    (answer,) = talk(root, [{"open": {"folder": "", "inputs": {}, "threads": 1}}], "-S")
    assert answer["error"].startswith("No module named ") and answer["error"].endswith(" (run: tools/setup --tests)")
