"""`elliptical generate`: text from a run, repeatable, with the reason when a model can not stream."""

import shutil

import pytest

RECIPE = """
[task]
name = "language_model"
batch_size = 2
[task.data]
train_lines = 100
[task.model]
num_layers = 2
dim = 16
num_heads = 2
feedforward_dim = 16
window = 16
cutoffs = []
[train]
steps = 2
eval_interval = 0
"""


def train(elliptical, folder, *assignments):
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE)
    settings = [word for assignment in assignments for word in ("--set", assignment)]
    result = elliptical("train", recipe, "--run", folder / "run", "--threads", "1", *settings)
    assert result.returncode == 0, result.stderr
    return folder / "run"


def test_text_goes_on_and_repeats(elliptical, tmp_path):
    run = train(elliptical, tmp_path)
    arguments = ["generate", run, "--prompt", "the zyzzyva", "--tokens", "8", "--threads", "1"]
    result = elliptical(*arguments)
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("the zyzzyva") and result.stdout.endswith("\n")
    assert len(result.stdout.split()) > 2
    assert 'prompt: "zyzzyva" is not in the vocabulary, read as <unk>' in result.stderr
    assert elliptical(*arguments).stdout == result.stdout
    longer = elliptical("generate", run, "--tokens", "20", "--temperature", "0", "--threads", "1")
    assert longer.returncode == 0
    assert "longer than the 16 tokens that the model was trained on" in longer.stderr
    wrong = elliptical("generate", run, "--temperature", "-1")
    assert wrong.returncode == 2
    assert "temperature must be finite and not negative, got -1" in wrong.stderr


@pytest.mark.parametrize(
    "assignments, reason",
    [
        (["task.model.positions=reverse"], 'model.positions = "reverse" counts back'),
        (
            [
                "task.model.attention.name=elliptical",
                "task.model.attention.preset=released-lm",
                "task.model.attention.metric_lookahead=true",
            ],
            'metric.scope = "sequence" reads the whole sequence',
        ),
    ],
)
def test_models_that_can_not_stream_say_why(elliptical, tmp_path, assignments, reason):
    run = train(elliptical, tmp_path, *assignments)
    for command in (["generate", run], ["eval", run, "--method", "stream"]):
        result = elliptical(*command, "--threads", "1")
        assert result.returncode == 2 and result.stdout == ""
        assert reason in result.stderr.splitlines()[-1]


def test_causal_model_refuses_to_look_ahead(elliptical, tmp_path):
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE)
    result = elliptical("train", recipe, "--run", tmp_path / "run",
                        "--set", "task.model.attention.preset=released-lm")
    assert result.returncode == 2
    assert 'metric.scope must be "prefix" in a causal model, got "sequence"' in result.stderr
    assert not (tmp_path / "run" / "config.toml").exists()


def test_the_training_text_is_not_needed_any_more(elliptical, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for name in ("train.txt", "valid.txt", "test.txt"):
        (data / name).write_text("the caf\u00e9 was open and the \u65e5\u672c \x1b[31m game was lost \n" * 40)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE.replace("train_lines = 100", f'name = "{data}"'))
    run = tmp_path / "run"
    trained = elliptical("train", recipe, "--run", run, "--threads", "1")
    assert trained.returncode == 0, trained.stderr
    arguments = ["generate", run, "--prompt", "the caf\u00e9", "--tokens", "8", "--threads", "1"]
    before = elliptical(*arguments)
    assert before.returncode == 0, before.stderr
    words = (run / "checkpoints" / "step-2" / "vocabulary.txt").read_text().splitlines()
    assert words[0] == "<eos>" and {"the", "caf\u00e9", "\u65e5\u672c", "\x1b[31m", "<unk>"} < set(words)
    (data / "train.txt").write_text("other words\n" * 400)
    assert elliptical(*arguments).stdout == before.stdout
    shutil.rmtree(data)
    gone = elliptical(*arguments)
    assert gone.stdout == before.stdout and gone.stderr == before.stderr
