"""Our safetensors reader and writer against the Python package: what it wrote, we read and write again, and it
reads the same. What it refuses, we refuse."""

import json
import struct
import subprocess

import numpy
import pytest

safetensors = pytest.importorskip("safetensors", reason="safetensors is not installed (tools/setup --tests)")
numpy_format = pytest.importorskip("safetensors.numpy")

TYPES = "bool uint8 int8 int16 uint16 float16 int32 uint32 float32 int64 uint64 float64".split()


@pytest.fixture
def copy(root):
    def run(source, target):
        program = root / "build/release/tests/base/safetensors_copy"
        return subprocess.run([program, source, target], capture_output=True, text=True)

    return run


def test_tensors_go_there_and_back(copy, tmp_path):
    generator = numpy.random.default_rng(1)
    tensors = {f"t/{name}": generator.integers(0, 2, (3, 2)).astype(name) for name in TYPES}
    tensors |= {"scalar": numpy.array(3, "float32"), "empty": numpy.zeros((0, 4), "float32"), '\u00e9 "\\\n': tensors["t/int8"]}
    metadata = {"format": "pt", "\u00fc": "\t\x01"}
    numpy_format.save_file(tensors, tmp_path / "in", metadata=metadata)
    result = copy(tmp_path / "in", tmp_path / "out")
    assert result.returncode == 0, result.stderr
    back = numpy_format.load_file(tmp_path / "out")
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype and back[name].shape == tensor.shape
        assert (back[name] == tensor).all()
    with safetensors.safe_open(tmp_path / "out", "numpy") as file:
        assert file.metadata() == metadata


def entry(begin, end, shape=(4,), dtype="U8"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


@pytest.mark.parametrize(
    "header, data_bytes",
    [
        ({"a": entry(0, 4)}, 3),
        ({"a": entry(0, 4)}, 5),
        ({"a": entry(0, 4), "b": entry(3, 7)}, 7),
        ({"a": entry(0, 4), "b": entry(5, 9)}, 9),
        ({"a": entry(4, 0)}, 4),
        ({"a": entry(0, 4, (3,))}, 4),
        ({"a": entry(0, 4, (4194305, 4194305, 211106198978564))}, 4),
        ({"a": entry(0, 4, (-4,))}, 4),
        ({"a": entry(0, 4, dtype="U7")}, 4),
        ({"a": {"dtype": "U8", "shape": [4]}}, 4),
        ({"__metadata__": {"k": 1}}, 0),
    ],
)
def test_what_the_package_refuses_we_refuse(copy, tmp_path, header, data_bytes):
    text = json.dumps(header).encode()
    (tmp_path / "in").write_bytes(struct.pack("<Q", len(text)) + text + bytes(data_bytes))
    with pytest.raises(Exception):
        numpy_format.load_file(tmp_path / "in")
    result = copy(tmp_path / "in", tmp_path / "out")
    assert result.returncode == 1 and result.stderr.startswith(f"{tmp_path}/in: ")
