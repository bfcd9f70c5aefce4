"""Run folders made up for tests of the report: configuration, records, losses, a snapshot of the heads."""

import json
import math
import struct
from pathlib import Path

import numpy as np

WORDS = "the old river ran slowly past a small town where people met to trade wool and salt in spring".split()
LAYERS, HEADS, DIM = 4, 8, 16
STEPS = 2000

# name of the method -> attention, effect on the log-perplexity of clean and of swapped text
METHODS = {
    "softmax": ("softmax", 0.0, 0.0),
    "elliptical": ("elliptical", -0.012, -0.034),
    "matched constant": ("elliptical", -0.008, -0.010),
    "null twin": ("elliptical", -0.008, -0.010),
}


def write_safetensors(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        kind = {"float32": "F32", "int64": "I64"}[str(array.dtype)]
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def write_snapshot(path, random, has_metric, words, heads=HEADS, layers=LAYERS, dim=DIM):
    length = len(words)
    tensors = {"tokens": np.arange(length)}
    for layer in range(layers):
        queries, keys = random.normal(size=(2, heads, length, dim)).astype("f4")
        metric = np.exp(random.normal(size=(heads, 1, dim)) + 0.2 * random.normal(size=(heads, length, dim))).astype("f4")
        scores = np.einsum("hqd,hkd->hqk", queries * (metric if has_metric else 1), keys) / math.sqrt(dim)
        scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        tensors[f"layers.{layer}.attention"] = (weights / weights.sum(-1, keepdims=True)).astype("f4")
        tensors[f"layers.{layer}.queries"], tensors[f"layers.{layer}.keys"] = queries, keys
        if has_metric:
            tensors[f"layers.{layer}.metric"] = metric
    write_safetensors(path, tensors, {"words": json.dumps(words), "step": str(STEPS), "split": "valid"})


def metric_records(random, labels):
    yield {"metric": "metric_mean", "value": 0.4 + 0.3 * labels["step"] / STEPS, "count": 1000, **labels}
    for layer in range(1, LAYERS):  # the first layer has no metric
        for head in range(HEADS):
            place = {**labels, "layer": layer, "head": head}
            mean = 0.3 + 0.08 * layer + 0.03 * head + 0.2 * labels["step"] / STEPS
            yield {"metric": "metric_head_mean", "value": mean, "count": 1000, **place}
            yield {"metric": "metric_head_anisotropy", "value": 0.5, "count": 1000, **place}
            if labels["source"] == "eval":
                for i in range(DIM):
                    value = mean * math.exp(0.5 * random.normal())
                    yield {"metric": "metric_profile", "value": value, "count": 1000, "coordinate": i, **place}


def write_lines(path, records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def toml_text(text):
    return json.dumps(text)  # the same escapes


def write_run(folder, name, seed, *, attention=None, clean=0.0, swapped=0.0, blocks=12, details=True, words=None, labels=()):
    """One run; without `details` only what a comparison needs."""
    random = np.random.default_rng([seed, sum(name.encode())])
    attention = attention or METHODS.get(name, ("elliptical",))[0]
    has_metric = attention != "softmax"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'name = {toml_text(name)}\nseed = {seed}\n[task]\nname = "language_model"\n[task.data]\nname = "wikitext-2"\n'
        f'[task.model]\nwindow = 64\n[task.model.attention]\nname = "{attention}"\n[train]\nsteps = {STEPS}\n')
    common = {
        "attention": attention, "data": "wikitext-2", "leaks_future": False, "method": "block", "name": name,
        "num_parameters": 1234567, "perturbation": "none", "run": folder.name, "seed": seed, "step": STEPS,
        "task": "language_model", "window": 64, "columns": 10, **dict(labels)}
    if has_metric:
        common |= {"metric_estimator": "difference", "metric_scope": "prefix", "metric_scaling": "max"}

    noise = 0.004 * random.normal()
    base = 4.2 + 0.002 * seed
    records = []
    for step in range(200, STEPS + 1, 200) if details else [STEPS]:
        at = {**common, "source": "train", "split": "valid", "step": step}
        nll = base + clean + noise + 2.2 * math.exp(-step / 400)
        records.append({"metric": "perplexity", "value": math.exp(nll), "count": 20000, **at})
        if has_metric and details:
            records += metric_records(random, at)
    at = {**common, "source": "eval", "split": "test"}
    swap = {**at, "perturbation": "word_swap", "swap_rate": 0.025, "swap_seed": 1, "swap_unit": "line", "profile": "strict"}
    for place, nll, effect in ((at, base, clean), (swap, base + 0.28, swapped)):
        nll += effect + noise
        records.append({"metric": "perplexity", "value": math.exp(nll), "count": 24000, **place})
        for block in range(blocks):
            value = nll + 0.1 * math.sin(3.0 * block) + 0.002 * random.normal()
            records.append({"metric": "block_nll", "value": value, "count": 2000, "block": block, "blocks": blocks,
                            "targets": "all", **place})
        if place is swap:
            records.append({"metric": "perplexity_clean_targets", "value": math.exp(nll - 0.2), "count": 23000, **place})
            records.append({"metric": "perplexity_swapped_targets", "value": math.exp(nll + 3), "count": 1000, **place})
    if has_metric and details:
        records += metric_records(random, at)
    write_lines(folder / "records.jsonl", records)
    write_lines(folder / "log.jsonl", [
        {"metric": "loss", "value": base + clean + 3.5 * math.exp(-step / 350) + 0.08 * random.normal(), "count": 1024,
         "step": step, "tokens_per_second": (12000 if has_metric else 13500) + 100 * random.normal()}
        for step in range(0, STEPS + 1, 5 if details else 100)])
    if details:
        write_snapshot(folder / "snapshot.safetensors", random, has_metric, words or [WORDS[i % len(WORDS)] for i in range(48)])
    return folder


def write_comparison(root, seeds=3):
    """Four methods, some seeds of each: what `elliptical compare` leaves."""
    for name, (attention, clean, swapped) in METHODS.items():
        for seed in range(1, seeds + 1):
            folder = Path(root) / f"{name.replace(' ', '-')}-seed-{seed}"
            write_run(folder, name, seed, attention=attention, clean=clean, swapped=swapped)
    return Path(root)


def picture_records(name, seed, step=STEPS):
    """Records of `attack` and of `eval` with corruptions, of a run that classifies pictures."""
    random = np.random.default_rng([seed, sum(name.encode()), 7])
    better = 4 if name != "softmax" else 0
    common = {"data": "cifar-10", "name": name, "seed": seed, "split": "test", "step": step, "task": "classify_image"}
    records = []
    for profile in ("strict", "published"):
        for attack, strength in (("fgsm", 7), ("pgd", 12)):
            for gradient in ("through", "detached"):
                for eps in (1, 2, 4):
                    at = {"count": 500, "attack": attack, "eps": eps / 255, "profile": profile, "metric_gradient": gradient,
                          "eps_unit": "pixel" if profile == "strict" else "normalized", "source": "attack", "pictures_total": 10000,
                          "perturbation": "none", **common}
                    left = 85 + better - strength * eps ** 0.8 + (3 if gradient == "detached" else 0) + random.normal()
                    records.append({"metric": "clean_accuracy", "value": 85 + better, **at})
                    records.append({"metric": "robust_accuracy", "value": left, **at})
    at = {"count": 500, "source": "eval", "perturbation": "corruption", "corruption": "main", **common}
    for i, corruption in enumerate(("fog", "gaussian_noise", "pixelate", "snow")):
        for severity in range(1, 6):
            value = 80 + better - 3 * i - (4 + i) * severity + random.normal()
            records.append({"metric": "corrupted_accuracy", "value": value, "corruption_name": corruption,
                            "corruption_severity": severity, **at})
    records.append({"metric": "mce", "value": 72 - better + random.normal(), **at})
    return records


def write_picture_run(folder, name, seed, more=()):
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'name = {toml_text(name)}\nseed = {seed}\n[task]\nname = "classify_image"\n[task.data]\nname = "cifar-10"\n'
        f'[task.model.attention]\nname = "elliptical"\n[train]\nsteps = {STEPS}\n')
    write_lines(folder / "records.jsonl", [*picture_records(name, seed), *more])
    return folder


CLASSES = ["aeroplane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def write_attacked(path, seed, side=32, count=6, attack="pgd", eps="2/255", classes=CLASSES):
    """What `elliptical attack RUN` leaves: noisy gradients, every other one misled."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    clean = np.stack([np.stack([(x + k / count) % 1, (y * (1 + k)) % 1, (x * y + 0.1 * k) % 1]) for k in range(count)])
    attacked = np.clip(clean + 2 / 255 * np.sign(random.normal(size=clean.shape)), 0, 1)
    before = np.eye(10)[np.arange(count) % 10]
    after = np.eye(10)[(np.arange(count) + np.arange(count) % 2) % 10]
    write_safetensors(path, {
        "clean": clean.astype("f4"), "adversarial": attacked.astype("f4"), "labels": np.arange(count) % 10,
        "clean_logits": before.astype("f4"), "adversarial_logits": after.astype("f4")},
        {"attack": attack, "eps": eps, "profile": "strict", "class_names": json.dumps(classes)})


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True)).astype("f4")


def write_picture_snapshot(path, seed, *, side=32, grid=4, layers=2, heads=2, dim=8, prefix=1, has_metric=True, count=4,
                           classes=CLASSES):
    """What `elliptical eval` leaves of a classifier of pictures. The pictures are the same for all seeds."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[0:side, 0:side] / side
    pictures = np.stack([np.stack([(x + k / count) % 1, (y * (1 + k)) % 1, (x * y + 0.1 * k) % 1]) for k in range(count)])
    length = prefix + grid * grid
    tensors = {"pictures": pictures.astype("f4")}
    for layer in range(layers):
        queries, keys = random.normal(size=(2, heads, length, dim)).astype("f4")
        metric = np.exp(random.normal(size=(heads, 1, dim))).astype("f4")
        scores = np.einsum("hqd,hkd->hqk", queries * (metric if has_metric else 1), keys) / math.sqrt(dim)
        name = f"layers.{layer}"
        tensors[f"{name}.attention"], tensors[f"{name}.queries"], tensors[f"{name}.keys"] = softmax(scores), queries, keys
        if has_metric:
            tensors[f"{name}.metric"] = metric
        tensors[f"{name}.heat"] = softmax(2 * random.normal(size=(count, heads, grid * grid))).reshape(count, heads, grid, grid)
    tensors["rollout"] = softmax(random.normal(size=(count, grid * grid))).reshape(count, grid, grid)
    described = [{"number": k, "class": classes[k], "said": classes[(k + k % 2) % len(classes)]} for k in range(count)]
    write_safetensors(path, tensors, {"pictures": json.dumps(described), "prefix_tokens": str(prefix), "data": "cifar-10",
                                      "split": "test", "step": str(STEPS)})
