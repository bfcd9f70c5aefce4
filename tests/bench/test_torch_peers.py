"""The peers in PyTorch answer as bench/peer_program.h asks them, isolated as it starts them."""

import json
import math
import subprocess
import sys

import pytest

LM = {"vocab_size": 25000, "threads": 1, "batch": 1, "length": 4, "layers": 1, "width": 8, "heads": 2, "hidden": 8}
PICTURES = {"threads": 1, "width": 8, "layers": 1, "heads": 2, "classes": 3}
VIT = {**PICTURES, "batch": 2, "size": 8, "patch": 4}
ATTACKED = {**PICTURES, "pictures": 2, "image_size": 8, "patch_size": 4, "steps": 2}


def talk(root, script, requests):
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    command = [sys.executable, "-I", root / "bench" / "peers" / script, "--serve"]
    result = subprocess.run(command, input=lines, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("attention", ["softmax", "elliptical"])
def test_training_answers_with_its_loss(root, attention):
    opened, ran = talk(root, "lm_training.py", [{"open": {**LM, "attention": attention}}, {"run": 2}])
    assert opened["parameters"] > 25000 * 8 and ran["seconds"] > 0
    assert math.isclose(ran["loss"], math.log(25000), rel_tol=0.2)  # nearly every word as likely as another


@pytest.mark.parametrize("attention", ["softmax", "elliptical"])
def test_vision_answers_with_times_and_logits(root, attention):
    runs = [{"run": "inference"}, {"run": "training"}, {"logits": True}]
    opened, inferred, trained, said = talk(root, "vit.py", [{"open": {**VIT, "attention": attention}}, *runs])
    assert opened["parameters"] > 0 and inferred["seconds"] > 0 and trained["seconds"] > 0
    assert len(said["logits"]) == 2 * 3


@pytest.mark.parametrize("through_metric", [False, True])
def test_attack_answers_with_its_time(root, through_metric):
    peer = {**ATTACKED, "attention": "elliptical", "through_metric": through_metric}
    opened, ran = talk(root, "vit_attack.py", [{"open": peer}, {"run": 1}])
    assert opened["parameters"] > 0 and ran["seconds"] > 0
