"""What `elliptical report` shows of runs that classify pictures."""

import made_runs
import pytest
from test_report import HOSTILE, LOOK, PROGRAM, ROOT, make_report, needs_chromium, open_report, runs


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pictures") / "runs"
    for name in ("softmax", "elliptical", "matched constant"):
        for seed in (1, 2, 3):
            run = made_runs.write_picture_run(folder / f"{name}-{seed}", name, seed)
            made_runs.write_attacked(run / "attack.safetensors", seed, side=224 if name == "softmax" else 32)
            made_runs.write_picture_snapshot(run / "snapshot.safetensors", [seed, len(name)], has_metric=name != "softmax")
    return make_report(folder)


@needs_chromium
def test_accuracy_under_attack_and_corruption_is_drawn(pictures):
    (page,) = open_report(pictures)
    plots = page["plots"]
    assert {"attack-0", "attack-1", "attack-2", "attack-3", "corruptions", "severities", "mce"} <= set(plots)
    for name, plot in plots.items():
        assert not plot["empty"] and (plot["marks"] > 3 or plot["picture"].startswith("data:image/png")), name
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
    # Changed first, called as the data call them; 2/255 of a pixel's range fill the half of it.
    assert list(page["canvases"])[:3] == ["0 clean: car \u2713", "0 attacked: bird", "0 difference: times 64"]
    assert "car \u2192 bird" in page["captions"] and "aeroplane" in page["captions"]


@needs_chromium
def test_the_table_of_a_chart_has_what_it_draws(pictures):
    (page,) = open_report(pictures, {"do": "open", "chart": "attack-1"}, {"do": "open", "chart": "mce"}, LOOK)
    head, *rows = page["tables"]["attack-1"]
    assert len(rows) == page["plots"]["attack-1"]["points"] - 3 == 3 * 2 * 4
    assert {row[head.index("attack")] for row in rows} == {"pgd"}
    assert {row[head.index("profile")] for row in rows} == {"strict"}
    assert len(page["tables"]["mce"]) == 1 + 3


@needs_chromium
def test_heat_maps_are_drawn(pictures):
    picture, layer, head = ({"do": "select", "id": f"select-{name}", "value": value, "changes": "heat"}
                            for name, value in (("picture", "1"), ("heat-layer", "0"), ("heat-head", "1")))
    looks = open_report(pictures, LOOK, picture, LOOK, layer, LOOK, head, LOOK)
    first = looks[0]
    assert first["options"]["select-picture"] == ["0", "1", "2", "3"]
    assert first["options"]["select-heat-layer"] == ["0", "1"]
    assert first["options"]["select-heat-head"] == ["-1", "0", "1"]
    # Three methods side by side: the picture is the same, what they look at is not.
    assert len(first["heat"]) == 9 and len(set(first["heat"].values())) == 1 + 3 + 3
    assert [name[:11] for name in first["heat"]][:3] == ["0 picture: ", "0 layer 1, ", "0 rollout: "]
    assert any("cifar-10, test: aeroplane, says aeroplane \u2713" in caption for caption in first["captions"])
    assert any("cifar-10, test: car, says bird" in caption for caption in looks[1]["captions"])
    kinds = [{kind: [data for name, data in look["heat"].items() if f" {kind}" in name]
              for kind in ("picture", "layer", "rollout")} for look in looks]
    assert kinds[0]["picture"] != kinds[1]["picture"] == kinds[2]["picture"]
    assert kinds[1]["rollout"] == kinds[2]["rollout"] == kinds[3]["rollout"] != kinds[0]["rollout"]
    assert len({tuple(kind["layer"]) for kind in kinds}) == 4


@needs_chromium
def test_heads_of_pictures_have_patches_for_words(pictures):
    (page,) = open_report(pictures)
    # The class token sees all patches.
    assert page["plots"]["ellipse"]["points"] >= 17 + 1
    assert page["options"]["select-query"] == [str(i) for i in range(17)]
    assert page["plots"]["attention"]["picture"].startswith("data:image/png") and not page["plots"]["attention"]["empty"]
    assert "0: class" in page["text"] and "16: 3, 3" in page["text"]


@needs_chromium
def test_twelve_runs_of_large_pictures_fit(tmp_path):
    for i in range(12):
        run = made_runs.write_picture_run(tmp_path / "runs" / f"r{i}", f"method {i}", 1)
        made_runs.write_attacked(run / "attack.safetensors", i, side=224, count=8)
        made_runs.write_picture_snapshot(run / "snapshot.safetensors", i, side=224, grid=14, layers=12, heads=3, dim=64)
    file = make_report(tmp_path / "runs")
    assert file.stat().st_size < 4_000_000
    (page,) = open_report(file)
    assert len(page["heat"]) == 3 * 12
    assert page["options"]["select-heat-head"] == ["-1", "0", "1", "2"]
    print(f"{file.stat().st_size / 1e6:.2f} MB")


@needs_chromium
def test_runs_without_the_chosen_map_say_so(tmp_path):
    for name, layers, heads, prefix in (("softmax", 2, 2, 1), ("deep", 3, 1, 0)):
        run = made_runs.write_picture_run(tmp_path / "runs" / name, name, 1)
        made_runs.write_picture_snapshot(run / "snapshot.safetensors", 1, layers=layers, heads=heads, prefix=prefix)
    shallow, one_head = open_report(
        make_report(tmp_path / "runs"), LOOK, {"do": "select", "id": "select-heat-layer", "value": "1", "changes": "heat"},
        {"do": "select", "id": "select-heat-head", "value": "1", "changes": "heat"}, LOOK)
    missing = "this run has no such map"
    assert [name for name in shallow["heat"] if missing in name] == [f"0 layer 2, mean of heads: {missing}"]
    assert [name for name in one_head["heat"] if missing in name] == [f"1 layer 1, head 1: {missing}"]


@needs_chromium
def test_pictures_on_a_phone_and_in_the_dark(pictures):
    (page,) = open_report(pictures, width=360, scheme="dark")
    assert page["overflow"] <= 0


@needs_chromium
def test_r1_hostile_labels_are_text(tmp_path):
    hostile = {"count": 1, "attack": HOSTILE, "eps": 0.5, "profile": HOSTILE, "metric_gradient": HOSTILE, "source": "attack",
               "pictures_total": 1, "corruption_name": HOSTILE, "corruption_severity": 3, "data": "cifar-10", "split": "test",
               "step": made_runs.STEPS}
    records = [{"metric": metric, "value": 5, **hostile} for metric in ("robust_accuracy", "corrupted_accuracy", "mce")]
    made_runs.write_picture_run(tmp_path / "runs" / "a", HOSTILE, 1, records)
    made_runs.write_attacked(tmp_path / "runs" / "a" / "attack.safetensors", 1, attack=HOSTILE, eps=HOSTILE, classes=[HOSTILE] * 10)
    made_runs.write_picture_snapshot(tmp_path / "runs" / "a" / "snapshot.safetensors", 1, classes=[HOSTILE] * 10)
    (page,) = open_report(make_report(tmp_path / "runs"))
    assert page["images"] == 0 and HOSTILE in page["text"]
    assert f"{HOSTILE} \u2192 {HOSTILE}" in page["captions"]
    assert any(HOSTILE in name for name in page["heat"])
    assert HOSTILE in page["options"]["select-corruption"]


@needs_chromium
def test_real_runs_of_pictures(tmp_path):
    small = {"train.steps": 4, "train.eval_interval": 0, "task.batch_size": 4, "task.model.image_size": 16, "task.model.dim": 16}
    for name in ("softmax", "elliptical"):
        run = tmp_path / "runs" / name
        settings = {**small, "task.model.attention.name": name}
        runs.check([PROGRAM, "train", ROOT / "recipes" / "smoke" / "vit.toml", "--run", run, "--threads", "1",
                    *(word for key, value in settings.items() for word in ("--set", f"{key}={value}"))])
        runs.check([PROGRAM, "eval", run, "--split", "test", "--threads", "1", "--set", "max_pictures=40"])
        runs.check([PROGRAM, "attack", run, "--attack", "fgsm", "--eps", "2/255,8/255", "--max-pictures", "10", "--threads", "1"])
    (page,) = open_report(make_report(tmp_path / "runs"))
    assert len(page["heat"]) == 2 * 3
    assert any("small-pictures, test: disc, says " in caption for caption in page["captions"])
    assert "fgsm, eps 8/255." in page["text"] and any(name.startswith("0 clean: ") for name in page["canvases"])
    assert not page["plots"]["ellipse"]["empty"] and not page["plots"]["attention"]["empty"]
