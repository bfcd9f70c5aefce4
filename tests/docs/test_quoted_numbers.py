"""A perplexity says little without how the text was read (docs/data.md): whoever quotes one names the method."""

import re

import pytest

METHOD = re.compile(r"sliding window|by (the same )?blocks|by blocks of \d+ tokens")
PERPLEXITY = re.compile(r"(?<![\d.,])\d{2,3}\.\d{1,2}(?![\d.,]*\d)(?! ?%)")


def head_of(path):
    return " ".join(line.lstrip("# ") for line in path.read_text().splitlines() if line.startswith("#"))


def paragraphs(text):
    """Each with the table that follows it."""
    found = []
    for part in re.split(r"\n\s*\n", text):
        if part.lstrip("\n").startswith(("|", "    ")) and found:
            found[-1] += "\n" + part
        else:
            found.append(part)
    return found


def quoting_heads(root):
    return [path for path in sorted((root / "recipes" / "lm").glob("*.toml")) if PERPLEXITY.search(head_of(path))]


def test_heads_of_recipes_name_the_method(root):
    heads = quoting_heads(root)
    assert len(heads) >= 18, "the pattern finds them"
    unnamed = [path.name for path in heads if not METHOD.search(head_of(path))]
    assert not unnamed, "name the method: (sliding window, docs/data.md)"


def test_tables_of_text_name_the_method(root):
    """Of the README's results; those of pictures are accuracies."""
    text = (root / "README.md").read_text().split("## Results")[1].split("### Pictures")[0]
    quoting = [each for each in paragraphs(text) if re.search(r"\| ?clean|perplexity|clean and \d", each) and re.search(r"\d\.\d", each)]
    assert len(quoting) >= 3
    for each in quoting:
        assert METHOD.search(each), each


@pytest.mark.parametrize("head, is_quoting", [
    ("test perplexity 34.29, swapped 74.56", True), ("(33.21 there)", True), ("2.5 % of the words", False), ("44,018,410 parameters", False),
    ("lr 0.00025, 10.10 %", False), ("3.7 M tokens, 1.8 epochs", False),
])  # fmt: skip
def test_the_pattern_is_of_perplexities(head, is_quoting):
    assert bool(PERPLEXITY.search(head)) == is_quoting
