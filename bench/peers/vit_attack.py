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
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))  # isolated Python looks nowhere
from serving import add_common, print_profile, seconds_of, serve  # noqa: E402
from vit import VisionTransformer  # noqa: E402


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
        return {"seconds": seconds_of(self.attack)}


def main():
    parser = argparse.ArgumentParser()
    add_common(parser)
    parser.add_argument("--through-metric", action="store_true")
    args = parser.parse_args()
    if args.serve:
        return serve(Peer, lambda peer, request: peer.run())
    peer = Peer(args.attention, args.through_metric, args.threads)
    peer.run()
    if args.profile:
        return print_profile(peer.run)
    print(f"{args.attention}: {peer.run()['seconds']:.2f} s")


if __name__ == "__main__":
    main()
