"""`elliptical demo`, what ./run does without arguments: a comparison, a report, and where to go on."""

from runs import PROGRAM, ROOT, check, read_lines


def test_compares_and_reports(tmp_path):
    command = [PROGRAM, "demo", "--smoke", "--recipes", ROOT / "recipes/lm", "--run", tmp_path / "runs"]
    command += ["--report", tmp_path / "report.html", "--threads", "1"]
    result = check(command)
    for name in ("softmax", "elliptical", "matched constant", "learned temperature"):
        assert f"\n{name} " in result.stdout
        # --smoke is of the built-in language, and runs on other data have a folder of their own.
        run = tmp_path / "runs-small-language" / (name.replace(" ", "-") + "-seed-1")
        assert {line["name"] for line in read_lines(run, "records.jsonl")} == {name}
    assert "Nothing can be said with one seed" in result.stdout
    assert f"Open {tmp_path}/report.html in a browser" in result.stdout
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>") and "matched constant" in page

    again = check(command)
    assert "step" not in again.stderr, "what is finished is not done again"
    assert again.stdout == result.stdout
