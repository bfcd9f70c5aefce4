"""tools/convert_weights.py on checkpoints made up here."""

import json
import os
import struct
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")


def convert(root, checkpoint, folder, **options):
    source, target = folder / "in.pth", folder / "out.safetensors"
    torch.save(checkpoint, source)
    result = subprocess.run(
        [sys.executable, root / "tools" / "convert_weights.py", source, target],
        capture_output=True,
        text=True,
        **options,
    )
    return result, target


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    types = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64}
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        raw = bytearray(data[8 + length + begin : 8 + length + end])
        tensors[name] = torch.frombuffer(raw, dtype=types[entry["dtype"]]).view(entry["shape"])
    return tensors


def test_keeps_names_and_values(root, tmp_path):
    weights = {
        "module.blocks.0.attn.qkv.weight": torch.randn(6, 2),
        "module.norm.weight": torch.randn(2).half(),
        "module.pos_embed": torch.randn(1, 3, 2).bfloat16().transpose(1, 2),
        "module.bn.num_batches_tracked": torch.tensor(7),
    }
    result, target = convert(root, {"model": weights, "epoch": 3}, tmp_path)
    assert result.returncode == 0, result.stderr
    assert "3 tensors, 20 numbers" in result.stderr
    tensors = read(target)
    assert set(tensors) == {"blocks.0.attn.qkv.weight", "norm.weight", "pos_embed"}
    for name, value in tensors.items():
        assert value.dtype == weights["module." + name].dtype
        assert torch.equal(value, weights["module." + name])


def test_renames_gates_and_joins_maps(root, tmp_path):
    q, kv = torch.randn(2, 2), torch.randn(4, 2)
    weights = {
        "transformers.0.blocks.0.attn.att_mask": torch.randn(2, 4, 4),
        "blocks.0.attn.q.weight": q,
        "blocks.0.attn.kv.weight": kv,
        "blocks.0.mlp.q.weight": torch.randn(2, 2),
        "cls_attn_blocks.0.attn.q.weight": torch.randn(2, 2),
    }
    result, target = convert(root, {"state_dict": weights}, tmp_path)
    assert result.returncode == 0, result.stderr
    tensors = read(target)
    assert set(tensors) == {
        "transformers.0.blocks.0.attn.mixer.gate",
        "blocks.0.attn.qkv.weight",
        "blocks.0.mlp.q.weight",
        "cls_attn_blocks.0.attn.q.weight",
    }
    assert torch.equal(tensors["blocks.0.attn.qkv.weight"], torch.cat([q, kv]))


def test_refuses_what_is_no_dictionary_of_tensors(root, tmp_path):
    result, target = convert(root, {"epoch": 3}, tmp_path)
    assert result.returncode == 1
    assert "must be a dictionary of tensors" in result.stderr
    assert not target.exists()


class Touch:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_executes_nothing(root, tmp_path):
    result, target = convert(root, {"model": Touch(tmp_path / "executed")}, tmp_path)
    assert result.returncode != 0
    assert not (tmp_path / "executed").exists()
    assert not target.exists()
