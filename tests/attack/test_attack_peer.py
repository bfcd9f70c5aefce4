"""Our attacks against those of torchattacks, on the same net, pictures and budget, with equal parameters: robust
accuracy differs by 1 % of the pictures at most, ours is never weaker by more than that, and FAB, which draws nothing,
is as strong picture by picture. Skipped where the package is missing (tools/setup --tests)."""

import json
import struct
import subprocess
import warnings

import numpy
import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    torchattacks = pytest.importorskip("torchattacks", reason="torchattacks is not installed (tools/setup --tests)")

NUM_CLASSES = 6
NUM_PICTURES = 500
TYPES = {torch.float32: "F32", torch.int64: "I64"}


def write_tensors(path, tensors):
    """The safetensors format, without its package."""
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {
            "dtype": TYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_floats(path, name):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    entry = json.loads(raw[8 : 8 + length])[name]
    begin, end = (8 + length + offset for offset in entry["data_offsets"])
    return torch.from_numpy(numpy.frombuffer(raw[begin:end], "float32").reshape(entry["shape"]).copy())


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.fc = torch.nn.Linear(8 * 8 * 8, NUM_CLASSES)

    def forward(self, x):
        return self.fc(torch.relu(self.conv((x - 0.5) / 0.25)).flatten(1))


def pictures(count, generator):
    """Waves across the picture, whose direction is the class, in noise: (count, 3, 16, 16) in [0, 1]."""
    y = torch.arange(count) % NUM_CLASSES
    angle = (y * torch.pi / NUM_CLASSES).view(-1, 1, 1)
    row, column = torch.arange(16).view(16, 1), torch.arange(16).view(1, 16)
    phase = 6.28 * torch.rand(count, 3, 1, 1, generator=generator)
    wave = torch.cos(0.8 * (angle.cos() * row + angle.sin() * column).unsqueeze(1) + phase)
    strength = 0.05 + 0.25 * torch.rand(count, 1, 1, 1, generator=generator)
    noise = torch.randn(count, 3, 16, 16, generator=generator)
    return (0.5 + strength * wave + 0.15 * noise).clamp(0, 1), y


@pytest.fixture(scope="module")
def problem():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    for _ in range(300):
        x, y = pictures(128, generator)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
    net.eval()
    x, y = pictures(NUM_PICTURES, generator)
    return net, x, y


def is_correct(net, x, y):
    with torch.no_grad():
        return net(x).argmax(1) == y


def ours(root, folder, problem, attack, eps, *assignments):
    net, x, y = problem
    write_tensors(folder / "in", {**net.state_dict(), "x": x, "y": y})
    program = root / "build/release/tests/attack/attack_pictures"
    command = [program, folder / "in", folder / "out", attack, repr(eps), *assignments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    x_adv = read_floats(folder / "out", "x")
    assert (x_adv.double() - x.double()).abs().max() <= eps and x_adv.min() >= 0 and x_adv.max() <= 1
    return is_correct(net, x_adv, y)


def peers(problem, attack):
    net, x, y = problem
    attack.set_mode_default()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return is_correct(net, attack(x, y).detach(), y)


EPS = 4 / 255
CASES = {
    "pgd": (
        ["steps=20", "step_ratio=0.15"],
        lambda net: torchattacks.PGD(net, eps=EPS, alpha=0.15 * EPS, steps=20),
    ),
    "apgd-ce": (["steps=50"], lambda net: torchattacks.APGD(net, eps=EPS, steps=50)),
    "apgd-t": (["steps=50"], lambda net: torchattacks.APGDT(net, eps=EPS, steps=50, n_classes=NUM_CLASSES)),
    "fab-t": (
        ["steps=50"],
        lambda net: torchattacks.FAB(net, eps=EPS, steps=50, multi_targeted=True, n_classes=NUM_CLASSES),
    ),
    "square": (["queries=1000"], lambda net: torchattacks.Square(net, eps=EPS, n_queries=1000, resc_schedule=False)),
}


@pytest.mark.parametrize("attack", CASES)
def test_robust_accuracy_is_that_of_the_peer(root, tmp_path, problem, attack):
    net, x, y = problem
    assignments, make_peer = CASES[attack]
    clean = is_correct(net, x, y).sum().item()
    robust = ours(root, tmp_path, problem, attack, EPS, *assignments).sum().item()
    torch.manual_seed(1)
    peer = peers(problem, make_peer(net)).sum().item()
    print(f"{attack}: clean {clean}, ours {robust}, peer {peer} of {NUM_PICTURES}")
    assert 0.05 * NUM_PICTURES < robust < clean - 0.05 * NUM_PICTURES, "neither harmless nor hopeless"
    assert abs(robust - peer) <= 0.01 * NUM_PICTURES
