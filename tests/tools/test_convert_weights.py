"""tools/convert_weights.py on checkpoints made up here."""

import copy
import json
import os
import resource
import struct
import subprocess
import sys
import zipfile

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


def run_converter(root, source, target, **options):
    command = [sys.executable, root / "tools" / "convert_weights.py", source, target]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def expect_refused(result, source, target):
    """One line that names the file; nothing is written, under any name."""
    assert result.returncode == 1, (result.returncode, result.stderr)
    assert result.stderr.startswith(f"{source}: ") and result.stderr.count("\n") == 1, result.stderr
    assert {path.name for path in target.parent.iterdir()} == {source.name}
    return result.stderr


@pytest.mark.parametrize("is_archive", [True, False], ids=["archive", "bare pickle"])
def test_s3_executes_nothing(root, tmp_path, is_archive):
    executed, folder = tmp_path / "executed", tmp_path / "folder"
    folder.mkdir()
    source, target = folder / "in.pth", folder / "out.safetensors"
    for payload in (Touch(executed), {"model": Touch(executed)}, {"model": {"w": torch.zeros(2), "x": Touch(executed)}}):
        torch.save(payload, source, _use_new_zipfile_serialization=is_archive)
        expect_refused(run_converter(root, source, target), source, target)
    # A global that is called without a class of anybody's: protocol 0, `os.system("touch ...")`.
    source.write_bytes(b"cos\nsystem\n(S'touch " + str(executed).encode() + b"'\ntR.")
    expect_refused(run_converter(root, source, target), source, target)
    assert not executed.exists()


def rewritten(source, change, compression=zipfile.ZIP_STORED):
    """The archive again, each member as `change(name, bytes)` has it: a list of (name, bytes)."""
    with zipfile.ZipFile(source) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    with zipfile.ZipFile(source, "w", compression) as archive:
        for member in members:
            for name, data in change(*member):
                archive.writestr(name, data)


@pytest.mark.parametrize("lie", ["storage is short", "storage is gone", "bomb", "leaves", "cut", "overlap", "other storage"])
def test_s3_archives_that_lie_are_refused(root, tmp_path, lie):
    source, target = tmp_path / "in.pth", tmp_path / "out.safetensors"
    torch.save({"model": {"weight": torch.ones(1000), "bias": torch.ones(10)}}, source)
    check_it_works = run_converter(root, source, target)
    assert check_it_works.returncode == 0, check_it_works.stderr
    target.unlink()
    if lie == "storage is short":
        rewritten(source, lambda name, data: [(name, data[:100] if len(data) == 4000 else data)])
    elif lie == "storage is gone":
        rewritten(source, lambda name, data: [] if len(data) == 4000 else [(name, data)])
    elif lie == "bomb":
        rewritten(source, lambda name, data: [(name, bytes(2**28) if len(data) == 4000 else data)], zipfile.ZIP_DEFLATED)
        assert source.stat().st_size < 2**20
    elif lie == "leaves":
        rewritten(source, lambda name, data: [(name, data), ("../../leaves", b"x")])
    elif lie == "cut":
        source.write_bytes(source.read_bytes()[:-300])
    elif lie == "overlap":  # two entries of the directory name the same bytes
        rewritten(source, lambda name, data: [(name, data)])
        with zipfile.ZipFile(source, "a") as archive:
            (large,) = [info for info in archive.infolist() if info.file_size == 4000]
            for number in range(1000):
                other = copy.copy(large)
                other.filename = other.orig_filename = f"{large.filename}{number}"
                archive.filelist.append(other)
            archive._didModify = True
    else:  # the pickle claims more numbers than its storage has
        rewritten(source, lambda name, data: [(name, data.replace(b"M\xe8\x03", b"M\xff\xff") if name.endswith("data.pkl") else data)])

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))

    line = expect_refused(run_converter(root, source, target, preexec_fn=limit), source, target)
    if lie in ("bomb", "leaves", "overlap"):
        assert "must be" in line, line
    assert not (tmp_path.parent.parent / "leaves").exists()


def test_c3_a_disk_that_is_full_leaves_the_old_file(root, tmp_path):
    source, target = tmp_path / "in.pth", tmp_path / "out.safetensors"
    torch.save({"weight": torch.ones(100_000)}, source)
    target.write_bytes(b"old")

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    result = run_converter(root, source, target, preexec_fn=limit)
    assert result.returncode == 1 and result.stderr.startswith(f"{target}: can not be written: ")
    assert target.read_bytes() == b"old" and {path.name for path in tmp_path.iterdir()} == {"in.pth", "out.safetensors"}
