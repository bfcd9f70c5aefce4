"""`elliptical attack`: what can go wrong before a picture is touched."""

import pytest

import runs


@pytest.fixture(scope="module")
def language_run(tmp_path_factory):
    run = tmp_path_factory.mktemp("attack") / "run"
    runs.check(runs.train_command(run, train__steps=1))
    return run


def test_a_language_model_is_refused_in_one_line(elliptical, language_run):
    before = (language_run / "records.jsonl").read_bytes()
    result = elliptical("attack", language_run, "--attack", "pgd", "--eps", "1/255", "--batch-size", "8")
    assert result.returncode == 2 and result.stdout == ""
    assert result.stderr.splitlines() == [
        "elliptical: attack: needs a run whose task classifies pictures, this one's is language_model "
        "(a text is damaged by: elliptical eval RUN --swap 0.025)"
    ]
    assert (language_run / "records.jsonl").read_bytes() == before
    assert not (language_run / "attacks.jsonl").exists()


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--attack", "pgdd", "--eps", "1/255"], '--attack: unknown "pgdd", did you mean "pgd"?'),
        (["--attack", "pgd", "--eps", "-1/255"], "--eps: must be a number or a fraction like 1/255, not negative"),
        (["--attack", "pgd", "--eps", "nan"], "--eps: must be a number or a fraction like 1/255, not negative"),
        (["--attack", "pgd", "--eps", "4"], 'the range of a pixel, got "4" (did you mean 4/255?)'),
        (["--attack", "pgd", "--eps", "0.1", "--set", "pgd.stps=1"], 'did you mean "pgd.steps"?'),
        (["--attack", "pgd", "--eps", "0.1", "--profile", "strickt"], 'did you mean "strict"?'),
        (["--attack", "pgd,fgsm", "--eps", "0.1", "--dump", "x"], "--dump: must be of one attack, one eps"),
        (["--attack", "pgd", "--eps", "0.1", "--metric-gradient", "both", "--dump", "x"], "got 2 combinations"),
        (["--attack", "pgd"], "--eps is required"),
    ],
)
def test_wrong_usage_is_told_before_a_run_is_read(elliptical, arguments, message):
    result = elliptical("attack", "no/such/run", *arguments)
    assert result.returncode == 2 and result.stdout == ""
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_attacks_are_listed(elliptical):
    result = elliptical("list", "attacks", "--format", "csv")
    assert result.returncode == 0
    names = [line.split(",")[0] for line in result.stdout.splitlines()[1:]]
    assert names == "apgd-ce apgd-dlr apgd-t auto-attack fab-t fgsm pgd spsa square".split()
