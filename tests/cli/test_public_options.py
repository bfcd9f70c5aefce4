"""Every recipe has the options of the public code behind it, or says where it differs (tests/fixtures/public_options.toml)."""

import re
import tomllib
from fnmatch import fnmatch

import pytest

from runs import PROGRAM, ROOT, check

TABLE = tomllib.loads((ROOT / "tests" / "fixtures" / "public_options.toml").read_text())
RECIPES = [str(path.relative_to(ROOT / "recipes")) for room in ("lm", "vit") for path in sorted((ROOT / "recipes" / room).glob("*.toml"))]
FULL_SIZE = ("task.", "optimizer.", "schedule.", "train.steps", "train.ema_decay", "train.eval_weights")
RELATIVE = ("task.model.attention.",)


def flat(table, prefix=""):
    """{"a": {"b": 1}} as {"a.b": 1}"""
    result = {}
    for key, value in table.items():
        if isinstance(value, dict):
            result |= flat(value, f"{prefix}{key}.")
        else:
            result[prefix + key] = value
    return result


def is_of(entry, recipe):
    wanted, unwanted = entry.get("recipes", ["*"]), entry.get("except", [])
    return any(fnmatch(recipe, each) for each in wanted) and not any(fnmatch(recipe, each) for each in unwanted)


def effective(recipe):
    text = check([PROGRAM, "config", ROOT / "recipes" / recipe, "--no-measure"]).stdout
    return text, flat(tomllib.loads(text))


def heads_of(recipe):
    """The comments of a recipe and of those that it builds on, as one line."""
    path, text = ROOT / "recipes" / recipe, ""
    while path:
        lines = path.read_text().splitlines()
        text += " ".join(line.lstrip("# ") for line in lines if line.startswith("#")) + " "
        base = tomllib.loads("\n".join(lines)).get("base")
        path = path.parent / base if base else None
    return text


def passages_of(entry):
    """Paragraphs of the page that say what is said and name the option: a number may stand anywhere."""
    if "page" not in entry:
        return []
    key = entry["option"].split(".")[-1].removeprefix("metric_")
    paragraphs = (ROOT / entry["page"]).read_text().split("\n\n")
    return [each for each in paragraphs if entry["said"] in each and key in each]


def test_what_is_said_on_a_page_is_said_of_the_option():
    entry = {"option": "task.model.attention.num_features", "page": "docs/attention.md"}
    assert passages_of(entry | {"said": "through 64 random directions"})
    assert not passages_of(entry | {"said": "16 directions"})
    assert not passages_of(entry | {"said": "blocks"}), "it stands in paragraphs of others only"
    for each in TABLE["difference"]:
        assert len(each["said"]) >= 8, each["option"]
        assert "page" not in each or passages_of(each), each["option"]


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_recipe_has_the_public_options(recipe):
    text, options = effective(recipe)
    covered = set()
    for entry in TABLE["public"]:
        if not is_of(entry, recipe):
            continue
        public = flat(entry["options"])
        given = {key: options.get(key, "absent") for key in public}
        assert given == public, entry["source"]
        covered |= public.keys()
    for entry in TABLE["difference"]:
        if not is_of(entry, recipe):
            continue
        assert options.get(entry["option"], "absent") == entry["ours"], f"{entry['option']}, public: {entry['public']}"
        assert entry["said"] in heads_of(recipe) or passages_of(entry), entry["option"]
        covered.add(entry["option"])
    own = [pattern for entry in TABLE["own"] if is_of(entry, recipe) for pattern in entry["options"]]
    kinds = RELATIVE if "two-core" in recipe else FULL_SIZE
    left = [key for key in options if key.startswith(kinds) and key not in covered and not any(fnmatch(key, each) for each in own)]
    assert not left, "neither public, nor a difference that is meant, nor ours alone: add them to public_options.toml"

    count = re.search(r"# parameters      ([\d,]+)", text).group(1)
    said = re.findall(r"(\d[\d,]*) parameters", "\n".join(line for line in (ROOT / "recipes" / recipe).read_text().splitlines() if line.startswith("#")))
    assert all(each == count for each in said), f"has {count} parameters"


def test_every_line_of_the_table_is_of_some_recipe():
    for entry in TABLE["public"] + TABLE["difference"] + TABLE["own"]:
        for pattern in entry.get("recipes", ["*"]) + entry.get("except", []):
            assert any(fnmatch(recipe, pattern) for recipe in RECIPES), pattern
    assert all(entry["source"] for entry in TABLE["public"])


def test_the_two_halves_of_the_table_of_heads_are_of_one_size():
    sizes = set()
    for recipe in RECIPES:
        if "two-core-three-heads" in recipe or "two-core-six-heads" in recipe:
            sizes.add(re.search(r"# parameters      ([\d,]+)", effective(recipe)[0]).group(1))
    assert sizes == {"459,562"}
