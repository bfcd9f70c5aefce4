"""What the peers in PyTorch have in common: how they are asked, timed and profiled.

They speak JSON, one line in, one line out, and end with their input. The first request opens a peer, the others are its
own:

    {"open": {...}}  ->  {"parameters": n}
"""

import json
import sys
import time

import torch

# The caller's OpenMP threads spin for a moment after their last call; they must not share our cores.
SETTLE_SECONDS = 0.01


def seconds_of(action):
    time.sleep(SETTLE_SECONDS)
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def serve(open_peer, answer):
    """`open_peer(**what the first request says)` makes the peer, `answer(peer, request)` a dictionary."""
    peer = None
    for line in sys.stdin:
        request = json.loads(line)
        if "open" in request:
            peer = open_peer(**request["open"])
            reply = {"parameters": sum(p.numel() for p in peer.model.parameters())}
        else:
            reply = answer(peer, request)
        print(json.dumps(reply), flush=True)


def print_profile(action):
    with torch.profiler.profile() as profile:
        action()
    print(profile.key_averages().table(sort_by="self_cpu_time_total", row_limit=25))


def add_common(parser):
    parser.add_argument("--serve", action="store_true")
    parser.add_argument("--attention", default="softmax", choices=["softmax", "elliptical"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--profile", action="store_true")
