#!/usr/bin/env python3
"""PyTorch eager as a peer of `elliptical bench --what training`: the same language model and step.

The model of the paper at LM-small (post-norm, tied adaptive softmax) with PyTorch's best tools:
scaled_dot_product_attention, fused cross entropy on the head and on each cluster's own tokens, fused Adam,
in-place ReLU and dropout, one product for q, k and v, a sparse gradient of the embedding that is added
into the dense one of the output. `elliptical` is the eager form of our attention: the running mean of |v - v_prev| by
cumsum, scaled by its maximum, times q, then SDPA.

Speaks JSON, one line in, one line out; ends with its input:

    {"open": {"attention": "softmax", "vocab_size": 33278, "threads": 2, ...}}  ->  {"parameters": n}
    {"run": 3}    ->  {"seconds": s, "loss": l}     three training steps, timed together

By hand: python bench/peers/lm_training.py [--vocab-size 33278] [--attention elliptical] [--steps 10] [--profile]
"""

import argparse
import math
import sys
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))  # isolated Python looks nowhere
from serving import add_common, print_profile, seconds_of, serve  # noqa: E402

CUTOFFS = (20000, 40000, 200000)


def prefix_metric(v, v_prev):
    """Row n: mean over tokens <= n of |v - v_prev|, divided by its maximum (the count cancels)."""
    with torch.no_grad():
        change = (v - v_prev).abs_().cumsum(2)
        largest = change.amax(-1, keepdim=True)
        return torch.where(largest > 0, change / largest, 1.0)


class Block(nn.Module):
    def __init__(self, width, heads, hidden, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.norm1 = nn.LayerNorm(width)
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)
        self.norm2 = nn.LayerNorm(width)

    def forward(self, x, v_prev):
        B, N, C = x.shape
        qkv = self.qkv(x).view(B, N, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)  # (B, H, N, D)
        if v_prev is not None:
            q = q * prefix_metric(v, v_prev)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = self.out(y.transpose(1, 2).reshape(B, N, C))
        x = self.norm1(x + F.dropout(y, self.dropout, inplace=True))
        y = F.dropout(torch.relu_(self.up(x)), self.dropout)  # ReLU's gradient needs its output
        x = self.norm2(x + F.dropout(self.down(y), self.dropout, inplace=True))
        return x, v


class LanguageModel(nn.Module):
    def __init__(self, vocab_size, layers, width, heads, hidden, dropout, elliptical):
        super().__init__()
        self.dropout, self.elliptical = dropout, elliptical
        self.cutoffs = [c for c in CUTOFFS if c < vocab_size]
        self.table = nn.Parameter(torch.randn(vocab_size, width) * 0.02)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.cluster_weight = nn.Parameter(torch.randn(len(self.cutoffs), width) * 0.02)
        self.cluster_bias = nn.Parameter(torch.zeros(len(self.cutoffs)))
        self.blocks = nn.ModuleList(
            Block(width, heads, hidden, dropout) for _ in range(layers)
        )
        ends = [0, *self.cutoffs, vocab_size]
        self.sizes = [end - begin for begin, end in zip(ends, ends[1:])]

    def positions(self, N, width):
        p = torch.arange(N - 1, -1, -1.0)[:, None]
        f = 10000.0 ** (-torch.arange(0, width, 2) / width)
        return torch.cat([(p * f).sin(), (p * f).cos()], 1)

    def forward(self, tokens, targets):
        C = self.table.shape[1]
        x = F.embedding(tokens, self.table, sparse=True) * math.sqrt(C)
        x = F.dropout(x + self.positions(tokens.shape[1], C), self.dropout, inplace=True)
        v_prev = None
        for block in self.blocks:
            x, v = block(x, v_prev)
            v_prev = v.detach() if self.elliptical else None
        return self.loss(F.dropout(x, self.dropout).flatten(0, 1), targets.flatten())

    def loss(self, hidden, targets):
        """Mean of -log p. split, not slices: its gradient is one concatenation."""
        weights, biases = self.table.split(self.sizes), self.bias.split(self.sizes)
        head_weight = torch.cat([weights[0], self.cluster_weight])
        head_bias = torch.cat([biases[0], self.cluster_bias])
        column, total = targets.clone(), 0.0
        for c, begin in enumerate(self.cutoffs, start=1):
            inside = (targets >= begin) & (targets < begin + self.sizes[c])
            column[inside] = self.cutoffs[0] + len(self.cutoffs) - c
            tokens = inside.nonzero().squeeze(1)
            logits = F.linear(hidden.index_select(0, tokens), weights[c], biases[c])
            total = total + F.cross_entropy(logits, targets[tokens] - begin, reduction="sum")
        head = F.cross_entropy(F.linear(hidden, head_weight, head_bias), column, reduction="sum")
        return (total + head) / targets.numel()


class Peer:
    def __init__(
        self,
        vocab_size=33278,
        attention="softmax",
        threads=2,
        batch=8,
        length=256,
        layers=16,
        width=128,
        heads=8,
        hidden=2048,
        dropout=0.1,
    ):
        torch.set_num_threads(threads)
        torch.manual_seed(1)
        self.model = LanguageModel(
            vocab_size, layers, width, heads, hidden, dropout, attention == "elliptical"
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2.5e-4, fused=True)
        # Zipf's law: the rank's logarithm is uniform.
        rank = torch.rand(batch, length + 1, dtype=torch.double).mul_(math.log(vocab_size)).exp()
        tokens = rank.long() - 1
        self.tokens, self.targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.model(self.tokens, self.targets)
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 0.25)
        self.optimizer.step()
        self.loss = loss.detach()

    def run(self, steps):
        seconds = seconds_of(lambda: [self.step() for _ in range(steps)])
        return {"seconds": seconds, "loss": self.loss.item()}


def main():
    parser = argparse.ArgumentParser()
    add_common(parser)
    parser.add_argument("--vocab-size", type=int, default=33278)
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    if args.serve:
        return serve(Peer, lambda peer, request: peer.run(request["run"]))
    peer = Peer(args.vocab_size, args.attention, args.threads)
    peer.run(2)
    if args.profile:
        return print_profile(lambda: peer.run(args.steps))
    tokens, parameters = peer.tokens.numel(), sum(p.numel() for p in peer.model.parameters())
    seconds = sorted(peer.run(1)["seconds"] for _ in range(args.steps))
    best, median = seconds[0], seconds[len(seconds) // 2]
    print(
        f"{args.attention}, vocabulary {args.vocab_size}, {parameters} parameters, "
        f"{args.threads} threads: {tokens / best:.0f} tokens/s ({tokens / median:.0f} median)"
    )


if __name__ == "__main__":
    main()
