#!/usr/bin/env python3
"""PyTorch eager as a peer of `elliptical bench --what attack`: PGD on the same vision transformer.

DeiT with scaled_dot_product_attention, one product for q, k and v, parameters without gradient, and the attack as one writes
it in PyTorch: gradient of the summed cross entropy with respect to the pictures, a signed step, two clamps.
`elliptical` scales q by the mean of |v - v_prev| over tokens divided by its maximum, with or without gradient through it.

Speaks JSON, one line in, one line out; ends with its input:

    {"open": {"attention": "softmax", "threads": 2, ...}}  ->  {"parameters": n}
    {"run": 1}    ->  {"seconds": s}     one attack

By hand: python bench/peers/vit_attack.py [--attention elliptical] [--through-metric] [--profile]
"""

import argparse
import json
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

# The caller's OpenMP threads spin for a moment after their last call; they must not share our cores.
SETTLE_SECONDS = 0.01


def metric(v, v_prev):
    """(B, H, 1, D): mean over tokens of |v - v_prev|, divided by its maximum."""
    change = (v - v_prev).abs().mean(2, keepdim=True)
    largest = change.amax(-1, keepdim=True)
    return torch.where(largest > 0, change / largest, 1.0)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, v_prev, through_metric):
        B, N, C = x.shape
        qkv = self.qkv(self.norm1(x)).view(B, N, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # (B, H, N, D)
        if v_prev is not None:
            with torch.set_grad_enabled(through_metric):
                m = metric(v, v_prev)
            q = q * m
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(y.transpose(1, 2).reshape(B, N, C))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x)))), v


class Vit(nn.Module):
    def __init__(self, image_size, patch_size, layers, width, heads, classes, elliptical, through_metric):
        super().__init__()
        self.elliptical, self.through_metric = elliptical, through_metric
        self.patches = nn.Conv2d(3, width, patch_size, patch_size)
        self.cls = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.pos = nn.Parameter(torch.randn(1, 1 + (image_size // patch_size) ** 2, width) * 0.02)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width, eps=1e-6), nn.Linear(width, classes)

    def forward(self, pixels):
        x = self.patches((pixels - 0.45) / 0.225).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1) + self.pos
        v_prev = None
        for block in self.blocks:
            x, v = block(x, v_prev, self.through_metric)
            v_prev = v if self.elliptical else None
        return self.head(self.norm(x)[:, 0])


class Peer:
    def __init__(
        self,
        attention="softmax",
        through_metric=False,
        threads=2,
        pictures=64,
        image_size=32,
        patch_size=4,
        layers=12,
        width=192,
        heads=3,
        classes=10,
        steps=20,
        eps=1 / 255,
    ):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        elliptical = attention == "elliptical"
        self.model = Vit(image_size, patch_size, layers, width, heads, classes, elliptical, through_metric)
        self.model.eval().requires_grad_(False)
        self.x = torch.rand(pictures, 3, image_size, image_size)
        self.y = torch.arange(pictures) % classes
        self.steps, self.eps = steps, eps

    def attack(self):
        x = (self.x + self.eps * (2 * torch.rand_like(self.x) - 1)).clamp_(0, 1)
        for _ in range(self.steps):
            x.requires_grad_(True)
            loss = F.cross_entropy(self.model(x), self.y, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, x)
            x = x.detach() + 0.15 * self.eps * gradient.sign_()
            x = (self.x + (x - self.x).clamp_(-self.eps, self.eps)).clamp_(0, 1)
        return x

    def run(self):
        time.sleep(SETTLE_SECONDS)
        start = time.perf_counter()
        self.attack()
        return {"seconds": time.perf_counter() - start}


def serve():
    peer = None
    for line in sys.stdin:
        request = json.loads(line)
        if "open" in request:
            peer = Peer(**request["open"])
            answer = {"parameters": sum(p.numel() for p in peer.model.parameters())}
        else:
            answer = peer.run()
        print(json.dumps(answer), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--attention", default="softmax", choices=["softmax", "elliptical"])
    parser.add_argument("--through-metric", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    if args.serve:
        return serve()
    peer = Peer(args.attention, args.through_metric, args.threads)
    peer.run()
    if args.profile:
        with torch.profiler.profile() as profile:
            peer.run()
        print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25))
        return
    print(f"{args.attention}: {peer.run()['seconds']:.2f} s")


if __name__ == "__main__":
    main()
