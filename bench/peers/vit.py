#!/usr/bin/env python3
"""PyTorch eager as a peer of `elliptical bench --what vision`: the same vision transformer, weights and step.

DeiT as published, with PyTorch's best tools: scaled_dot_product_attention on views of one product for q, k and v, the
exact GELU in place, fused AdamW. `elliptical` is the eager form of our attention: the mean over tokens of
|v - v_prev|, scaled by its maximum, times q, then SDPA.

Speaks JSON, one line in, one line out; ends with its input:

    {"open": {"attention": "softmax", "weights": "file.safetensors", "threads": 2, ...}}  ->  {"parameters": n}
    {"logits": true}                      ->  {"logits": [...]}
    {"run": "inference" | "training"}     ->  {"seconds": s}

By hand: python bench/peers/vit.py [--attention elliptical] [--steps 10] [--profile]
"""

import argparse
import json
import math
import struct
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))  # isolated Python looks nowhere
from serving import add_common, print_profile, seconds_of, serve  # noqa: E402


def read_safetensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), bytearray(file.read())
    header.pop("__metadata__", None)
    types = {"F32": torch.float32, "I64": torch.int64}
    return {
        name: torch.frombuffer(
            data, dtype=types[entry["dtype"]], offset=entry["data_offsets"][0], count=math.prod(entry["shape"])
        ).view(entry["shape"])
        for name, entry in header.items()
    }


def sequence_metric(v, v_prev):
    """The mean over tokens of |v - v_prev|, divided by its maximum (the count cancels)."""
    change = (v - v_prev).abs_().mean(2, keepdim=True)
    largest = change.amax(-1, keepdim=True)
    return torch.where(largest > 0, change / largest, 1.0)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x, v_prev, through_metric):
        B, N, C = x.shape
        qkv = self.qkv(x).view(B, N, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # (B, H, N, D)
        if v_prev is not None:
            with torch.set_grad_enabled(through_metric):
                m = sequence_metric(v, v_prev)
            q = q * m
        y = F.scaled_dot_product_attention(q, k, v)
        return self.proj(y.transpose(1, 2).reshape(B, N, C)), v


class Mlp(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc1 = nn.Linear(width, 4 * width)
        self.fc2 = nn.Linear(4 * width, width)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x)))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = Mlp(width)

    def forward(self, x, v_prev, through_metric):
        y, v = self.attn(self.norm1(x), v_prev, through_metric)
        x = x + y
        return x + self.mlp(self.norm2(x)), v


class VisionTransformer(nn.Module):
    def __init__(self, size, patch, width, layers, heads, classes, elliptical, through_metric=False):
        super().__init__()
        self.elliptical = elliptical
        self.through_metric = through_metric  # whether gradients pass through the metric
        tokens = 1 + (size // patch) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, width))
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, patch, patch)})
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.head = nn.Linear(width, classes)

    def forward(self, pixels):
        patches = self.patch_embed["proj"](pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(pixels), -1, -1), patches], 1) + self.pos_embed
        v_prev = None
        for block in self.blocks:
            x, v = block(x, v_prev, self.through_metric)
            v_prev = v if self.elliptical else None
        return self.head(self.norm(x[:, 0]))


class Peer:
    def __init__(
        self,
        attention="softmax",
        weights=None,
        threads=2,
        batch=16,
        size=224,
        patch=16,
        width=192,
        layers=12,
        heads=3,
        classes=1000,
    ):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.model = VisionTransformer(size, patch, width, layers, heads, classes, attention == "elliptical")
        if weights:
            self.model.load_state_dict(read_safetensors(weights))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, weight_decay=0.05, fused=True)
        count = batch * 3 * size * size
        pixels = (torch.arange(count, dtype=torch.double) * 0.7).sin()
        self.pixels = pixels.view(batch, 3, size, size).float()
        self.labels = torch.arange(batch) % classes

    def infer(self):
        with torch.inference_mode():
            return self.model(self.pixels)

    def train(self):
        self.optimizer.zero_grad(set_to_none=True)
        F.cross_entropy(self.model(self.pixels), self.labels).backward()
        self.optimizer.step()

    def run(self, what):
        return {"seconds": seconds_of({"inference": self.infer, "training": self.train}[what])}

    def answer(self, request):
        if "logits" in request:
            return {"logits": self.infer().flatten().tolist()}
        return self.run(request["run"])


def main():
    parser = argparse.ArgumentParser()
    add_common(parser)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    if args.serve:
        return serve(Peer, Peer.answer)
    peer = Peer(args.attention, threads=args.threads)
    for what in ("inference", "training"):
        peer.run(what)
        if args.profile:
            print_profile(lambda what=what: [peer.run(what) for _ in range(args.steps)])
            continue
        seconds = sorted(peer.run(what)["seconds"] for _ in range(args.steps))
        print(f"{args.attention}, {what}, {args.threads} threads: {seconds[0]:.4f} s ({seconds[len(seconds) // 2]:.4f} median)")


if __name__ == "__main__":
    main()
