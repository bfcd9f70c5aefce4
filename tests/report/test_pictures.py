"""What `elliptical report` shows of runs that classify pictures."""

import made_runs
import pytest
from test_report import HOSTILE, LOOK, make_report, needs_chromium, open_report


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "runs"
    for name in ("softmax", "elliptical", "matched constant"):
        for seed in (1, 2, 3):
            run = made_runs.write_picture_run(folder / f"{name}-{seed}", name, seed)
            made_runs.write_attacked(run / "attack.safetensors", seed, side=224 if name == "softmax" else 32)
    return make_report(folder)


@needs_chromium
def test_accuracy_under_attack_and_corruption_is_drawn(pictures):
    (page,) = open_report(pictures)
    plots = page["plots"]
    assert {"attack-0", "attack-1", "attack-2", "attack-3", "corruptions", "severities", "mce"} <= set(plots)
    for name, plot in plots.items():
        assert not plot["empty"] and plot["marks"] > 3, name
    # Three methods, two gradients, eps 0, 1, 2, 4; the legend has the methods.
    assert plots["attack-0"]["points"] == 3 * 2 * 4 + 3
    assert "detached" in plots["attack-0"]["text"] and "normalized" in plots["attack-2"]["text"]
    assert plots["corruptions"]["points"] == 4 * 3 + 3
    assert "Attacks" in page["headings"] and "Corruptions" in page["headings"]


@needs_chromium
def test_a_corruption_can_be_chosen(pictures):
    before, after = open_report(
        pictures, LOOK, {"do": "select", "id": "select-corruption", "value": "snow", "changes": "severities"}, LOOK)
    assert before["options"]["select-corruption"] == ["mean of 4", "fog", "gaussian_noise", "pixelate", "snow"]
    assert before["plots"]["corruptions"]["picture"] == after["plots"]["corruptions"]["picture"]


@needs_chromium
def test_attacked_pictures_are_drawn(pictures):
    assert pictures.stat().st_size < 4_000_000
    (page,) = open_report(pictures, {"do": "select", "id": "select-attacked", "value": "0", "changes": "attacked"}, LOOK)
    assert len(page["canvases"]) == 3 * 6 and len(set(page["canvases"].values())) == 3 * 6
    assert len(page["options"]["select-attacked"]) == 3  # a run of each method
    # Changed first; 2/255 of a pixel's range fill the half of it.
    assert list(page["canvases"])[:3] == ["0 clean: class 1 \u2713", "0 attacked: class 2", "0 difference: times 64"]


@needs_chromium
def test_pictures_on_a_phone_and_in_the_dark(pictures):
    (page,) = open_report(pictures, width=360, scheme="dark")
    assert page["overflow"] <= 0


@needs_chromium
def test_hostile_labels_are_text(tmp_path):
    hostile = {"count": 1, "attack": HOSTILE, "eps": 0.5, "profile": HOSTILE, "metric_gradient": HOSTILE, "source": "attack",
               "corruption_name": HOSTILE, "corruption_severity": 3, "data": "cifar-10", "split": "test",
               "step": made_runs.STEPS}
    records = [{"metric": metric, "value": 5, **hostile} for metric in ("robust_accuracy", "corrupted_accuracy", "mce")]
    made_runs.write_picture_run(tmp_path / "runs" / "a", HOSTILE, 1, records)
    made_runs.write_attacked(tmp_path / "runs" / "a" / "attack.safetensors", 1, attack=HOSTILE, eps=HOSTILE)
    (page,) = open_report(make_report(tmp_path / "runs"))
    assert page["images"] == 0 and HOSTILE in page["text"]
    assert HOSTILE in page["options"]["select-corruption"]
