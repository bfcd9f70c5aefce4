"""A transformer that we train on CIFAR-10, attacked by `elliptical attack` and, loaded into PyTorch by name, by
torchattacks: same pictures, budget and parameters, gradients through the metric on both sides. Robust accuracy differs
by 1 % of the pictures at most. Skipped where the package or the data are missing (tools/setup --tests)."""

import json
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "peers"))
from vit import VisionTransformer, read_safetensors  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torchattacks = pytest.importorskip("torchattacks", reason="torchattacks is not installed (tools/setup --tests)")

NUM_PICTURES = 500
EPS = 1 / 255
STEPS, QUERIES = 30, 500
PROGRAM = ROOT / "build" / "release" / "elliptical"


def run_program(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, timeout=1200)
    assert result.returncode == 0, result.stderr
    return result.stdout


class Classifier(torch.nn.Module):
    """The trained transformer on pixels in [0, 1]."""

    def __init__(self, weights):
        super().__init__()
        self.model = VisionTransformer(
            size=32, patch=4, width=64, layers=4, heads=4, classes=10, elliptical=True, through_metric=True
        )
        self.model.load_state_dict(read_safetensors(weights))
        self.mean = torch.tensor([0.485, 0.456, 0.406]).view(3, 1, 1)
        self.std = torch.tensor([0.229, 0.224, 0.225]).view(3, 1, 1)

    def forward(self, x):
        return self.model((x - self.mean) / self.std)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Run folder and the same model in PyTorch."""
    places = {entry["name"]: entry["place"] for entry in json.loads(run_program("data", "list", "--format", "json"))}
    if not places["cifar-10"]:
        pytest.skip("needs CIFAR-10 (elliptical data get cifar-10)")
    run = tmp_path_factory.mktemp("peer") / "run"
    recipe = ROOT / "recipes" / "vit" / "two-core-elliptical.toml"
    steps = ["--set", "train.steps=400", "--set", "train.eval_interval=0"]
    run_program("train", recipe, "--run", run, *steps)
    model = Classifier(run / "checkpoints" / "step-400" / "model.safetensors")
    model.eval().requires_grad_(False)
    return run, model


def count_correct(model, x, y):
    with torch.no_grad():
        return (model(x).argmax(1) == y).sum().item()


def apgd(model):
    return torchattacks.APGD(model, eps=EPS, steps=STEPS)


def apgd_t(model):
    return torchattacks.APGDT(model, eps=EPS, steps=STEPS, n_classes=10)


def fab_t(model):
    return torchattacks.FAB(model, eps=EPS, steps=STEPS, multi_targeted=True, n_classes=10)


def square(model):
    return torchattacks.Square(model, eps=EPS, n_queries=QUERIES, resc_schedule=False)


def auto_attack(model):
    """Its own AutoAttack has other parameters; this is the same driver with ours."""
    return torchattacks.MultiAttack([make(model) for make in (apgd, apgd_t, fab_t, square)])


PREFIXES = {"auto-attack": ["auto-attack.apgd", "auto-attack.apgd_t", "auto-attack.fab", "auto-attack.square"]}
CASES = {"apgd-ce": apgd, "apgd-t": apgd_t, "fab-t": fab_t, "square": square, "auto-attack": auto_attack}


@pytest.mark.slow
@pytest.mark.parametrize("attack", CASES)
def test_robust_accuracy_of_a_trained_run_is_that_of_the_peer(tmp_path, trained, attack):
    run, model = trained
    dump = tmp_path / "dump.safetensors"
    changes = []
    for prefix in PREFIXES.get(attack, [attack]):
        count = f"queries={QUERIES}" if prefix.endswith("square") else f"steps={STEPS}"
        changes += ["--set", f"{prefix}.{count}"]
    records = json.loads(
        run_program(
            *["attack", run, "--attack", attack, "--eps", "1/255", "--split", "test", "--dump", dump],
            *["--max-pictures", str(NUM_PICTURES), "--format", "json", *changes],
        )
    )
    (robust,) = [record for record in records if record["metric"] == "robust_accuracy"]
    tensors = read_safetensors(dump)
    x, adversarial, labels = tensors["clean"], tensors["adversarial"], tensors["labels"]
    assert len(x) == NUM_PICTURES
    # What we say about our pictures, PyTorch says, too, but for near ties.
    ours = count_correct(model, adversarial, labels)
    assert abs(ours - robust["value"] / 100 * NUM_PICTURES) <= 1.01

    torch.manual_seed(1)
    peer_attack = CASES[attack](model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = count_correct(model, peer_attack(x, labels).detach(), labels)
    clean = count_correct(model, x, labels)
    print(f"{attack}: clean {clean}, ours {ours}, peer {peer} of {NUM_PICTURES}")
    tolerance = 0.01 * NUM_PICTURES
    assert ours < clean - 2 * tolerance, "an attack that does nothing can not agree"
    assert abs(ours - peer) <= tolerance
