#!/usr/bin/env python3
"""Turns a published PyTorch checkpoint (.pth) into a safetensors file that `elliptical` loads.

    tools/convert_weights.py deit_tiny_patch16_224.pth deit-tiny.safetensors

Nothing in a .pth file is executed: it is opened with weights_only=True. Accepted are a dictionary of tensors,
or one below "model", "state_dict" or "model_ema"; "module." in front of all names is dropped. Names are kept but for two
models whose published layout is another one: the gates of RVT ("attn.att_mask") and the separate q and kv maps of
FAN's token mixing, which become one qkv. Tensors that are no floating point numbers are left out.
"""

import argparse
import json
import os
import struct
import sys
import tempfile
import zipfile

import torch

TYPES = {
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float32: "F32",
    torch.float64: "F64",
}


def tensors_of(checkpoint, name):
    """The dictionary of tensors in a checkpoint, whatever it is wrapped in."""
    for _ in range(3):
        if not isinstance(checkpoint, dict):
            break
        if checkpoint and all(isinstance(value, torch.Tensor) for value in checkpoint.values()):
            return checkpoint
        inner = [key for key in ("model", "state_dict", "model_ema") if key in checkpoint]
        if not inner:
            break
        checkpoint = checkpoint[inner[0]]
    raise SystemExit(
        f"{name}: must be a dictionary of tensors, or hold one as model, state_dict or model_ema"
    )


def renamed(tensors):
    """With the names of this project's models."""
    if tensors and all(name.startswith("module.") for name in tensors):
        tensors = {name.removeprefix("module."): value for name, value in tensors.items()}
    result = {}
    for name, value in tensors.items():
        if name.endswith("attn.att_mask"):
            name = name.removesuffix("att_mask") + "mixer.gate"
        elif ".attn.kv." in name and name.replace(".kv.", ".q.") in tensors:
            q = tensors[name.replace(".kv.", ".q.")]
            name, value = name.replace(".kv.", ".qkv."), torch.cat([q, value])
        elif ".attn.q." in name and name.replace(".q.", ".kv.") in tensors:
            continue  # part of qkv
        if value.is_floating_point():
            result[name] = value
    return result


def check_archive(path):
    """Throws ValueError unless it is what torch.save writes: stored members, inside the archive, no larger than the file."""
    if not zipfile.is_zipfile(path):
        return  # a bare pickle, as torch wrote them before 1.6
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    for member in members:
        parts = member.filename.split("/")
        if member.filename.startswith("/") or ".." in parts or "\\" in member.filename:
            raise ValueError(f"names must be inside of the archive, got {member.filename!r}")
        if member.compress_type != zipfile.ZIP_STORED:
            raise ValueError(f"members must be stored as they are, {member.filename!r} is packed")
    if sum(member.file_size for member in members) > os.path.getsize(path):
        raise ValueError("members must be parts of the file, they claim more than it has")


def read_checkpoint(path):
    """The contents of a .pth file; nothing in it is executed."""
    try:
        check_archive(path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # whatever a file that somebody else made makes torch throw
        reason = " ".join(str(error).split()) or type(error).__name__
        raise SystemExit(f"{path}: can not be read: {reason[:400]}") from None


def write_safetensors(path, tensors):
    """Writes it beside and renames it: there is never half a file."""
    header, offset = {}, 0
    for name, value in tensors.items():
        size = value.numel() * value.element_size()
        header[name] = {
            "dtype": TYPES[value.dtype],
            "shape": list(value.shape),
            "data_offsets": [offset, offset + size],
        }
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    new = None
    try:
        with tempfile.NamedTemporaryFile(dir=os.path.dirname(os.path.abspath(path)), delete=False) as file:
            new = file.name
            file.write(struct.pack("<Q", len(text)) + text)
            for value in tensors.values():
                data = value.detach().cpu().contiguous().flatten()
                file.write(data.view(torch.uint8).numpy().tobytes())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(new, 0o644)
        os.replace(new, path)
    except OSError as error:
        if new is not None:
            os.unlink(new)
        raise SystemExit(f"{path}: can not be written: {error.strerror}") from None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkpoint", help=".pth file")
    parser.add_argument("output", help="safetensors file to write")
    args = parser.parse_args()
    checkpoint = read_checkpoint(args.checkpoint)
    tensors = renamed(tensors_of(checkpoint, args.checkpoint))
    write_safetensors(args.output, tensors)
    count = sum(value.numel() for value in tensors.values())
    print(f"{args.output}: {len(tensors)} tensors, {count} numbers", file=sys.stderr)


if __name__ == "__main__":
    main()
