#!/usr/bin/env python3
"""PyTorch eager as a peer of `elliptical bench --what attack`: PGD on the vision transformer of vit.py.

Parameters without gradient, and the attack as one writes it in PyTorch: gradient of the summed cross entropy with respect
to the pictures, a signed step, two clamps; gradients pass through the metric or not.

Speaks JSON, one line in, one line out; ends with its input:

    {"open": {"attention": "softmax", "threads": 2, ...}}  ->  {"parameters": n}
    {"run": 1}    ->  {"seconds": s}     one attack

By hand: python bench/peers/vit_attack.py [--attention elliptical] [--through-metric] [--profile]
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))  # isolated Python looks nowhere
from vit import SETTLE_SECONDS, VisionTransformer  # noqa: E402


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
        self.model = VisionTransformer(
            image_size, patch_size, width, layers, heads, classes, attention == "elliptical", through_metric
        )
        for parameter in self.model.parameters():
            torch.nn.init.normal_(parameter, std=0.02)
        self.model.eval().requires_grad_(False)
        self.x = torch.rand(pictures, 3, image_size, image_size)
        self.y = torch.arange(pictures) % classes
        self.steps, self.eps = steps, eps

    def attack(self):
        x = (self.x + self.eps * (2 * torch.rand_like(self.x) - 1)).clamp_(0, 1)
        for _ in range(self.steps):
            x.requires_grad_(True)
            loss = F.cross_entropy(self.model((x - 0.45) / 0.225), self.y, reduction="sum")
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
