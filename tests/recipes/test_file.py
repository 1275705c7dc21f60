"""A recipe from a file: what it changes, and how all that it may not say is refused."""

from pathlib import Path

import pytest

from supervisor_memory import RecipeError, Settings, SettingsError, SupervisorMemory
from supervisor_memory.recipes.describe import as_toml, described, differences
from supervisor_memory.recipes.open import open_recipe
from supervisor_memory.recipes.registered import OPERATORS
from tests.recipes.names import NAMES

WIDE = """
# wider than the paper
base = "memorybank"
name = "memorybank-wide"

[constants]
top_k = 2

[settings]
max_notes = 3
top_k = 9

[stages]
post_retrieval = ["rank", "by_meaning", {use = "first", most = 4}, "gate", "format_note"]
"""
WIDE_YAML = """
base: memorybank
name: memorybank-wide
constants:
  top_k: 2
settings: {max_notes: 3, top_k: 9}
stages:
  post_retrieval:
    - rank
    - by_meaning
    - {use: first, most: 4}
    - gate
    - format_note
"""


def written(tmp_path: Path, text: str, ending: str = "toml") -> str:
    path = tmp_path / f"mine.{ending}"
    path.write_text(text, "utf-8")
    return str(path)


@pytest.mark.parametrize(("text", "ending"), [(WIDE, "toml"), (WIDE_YAML, "yaml"), (WIDE_YAML, "yml")])
def test_a_file_changes_constants_settings_and_operators(text: str, ending: str, tmp_path: Path) -> None:
    settings = Settings(embedding_model="none", queue_worker=False, recipe=written(tmp_path, text, ending))
    with SupervisorMemory(settings) as memory:
        assert memory.recipe.name == "memorybank-wide"
        assert (memory.settings.max_notes, memory.settings.origin("max_notes")) == (3, "recipe")
        assert [chore.name for chore in memory.recipe.upkeep] == ["fade", "daily_digest"]
        memory.add_many([f"Depot {n} is in Kiel." for n in range(9)], user_id="ada", infer=False)
        assert len(memory.search("depot in Kiel", user_id="ada")) == 4
    with SupervisorMemory(settings.tried({"max_notes": 7})) as memory:
        assert memory.settings.max_notes == 7


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ('bas = "default"', 1, "a recipe has no key 'bas'; did you mean 'base'?"),
        ('name = "x"', 1, "names no base"),
        ('base = "memorybnak"', 1, "did you mean 'memorybank'?"),
        ('base = "other.toml"', 1, "not another file"),
        ('base = "default"\nname = "a b"', 2, "name is 'a b'"),
        ('base = "memorybank"\n[constants]\ntopk = 3', 3, "no constant 'topk'; did you mean 'top_k'?"),
        (
            'base = "memorybank"\n\n[constants]\nfloor = 3.0',
            4,
            "'floor' of recipe 'memorybank' is 3.0; it is",
        ),
        ('base = "memorybank"\n[constants]\ndays = "5"', 3, "is str '5'; it is float 5.0 by default"),
        ('base = "default"\n[constants]\ndays = 5', 3, "recipe 'default' has no constants"),
        ('base = "default"\n[settings]\ntop_j = 5', 3, "no setting 'top_j'; did you mean 'top_k'?"),
        ('base = "default"\n[settings]\ntop_k = 0', 3, "MEMORY_TOP_K=0"),
        ('base = "default"\n[settings]\nbackend = "sqlite"', 3, "a recipe may not set 'backend'"),
        ('base = "default"\n[stages]\nretreival = []', 3, "no stage 'retreival'; did you mean 'retrieval'?"),
        ('base = "default"\n[stages]\nretrieval = "search_store"', 3, "retrieval is str; give a list"),
        ('base = "default"\n[stages]\nretrieval = [3]', 3, "3 names no operator"),
        (
            'base = "default"\n[stages]\nretrieval = [\n  "search_store",\n  "add_standin",\n]',
            5,
            "there is no operator 'add_standin'; did you mean 'add_standing'?",
        ),
        (
            'base = "default"\n[stages]\nretrieval = ["rank"]',
            3,
            "'rank' is one of post_retrieval, not of ret",
        ),
        ('base = "default"\n[stages]\npost_retrieval = ["gate"]', 3, "'gate' needs 'rank' before it"),
        (
            'base = "default"\n[stages]\npost_retrieval = ["rank", {use = "first", mots = 3}]',
            3,
            "operator 'first': it has no parameter 'mots', but most",
        ),
        (
            'base = "default"\n[stages]\npost_retrieval = [{use = "first", most = 0}]',
            3,
            "most is 0; use 1 or",
        ),
        ('base = "default"\n[stages]\npost_retrieval = [{use = "first", most = "3"}]', 3, "most is str '3'"),
        ('base = "default"\n[stages]\nupkeep = [{use = "fade", floor = 2.0}]', 3, "floor is 2.0"),
        ('base = "default"\nconstants = 3', 2, "constants is int; give keys and values"),
    ],
)
def test_what_it_may_not_say_is_refused_with_file_line_and_the_nearest_name(
    text: str, line: int, told: str, tmp_path: Path
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(RecipeError) as refused:
        open_recipe(path)
    assert str(refused.value).startswith(f"{path}:{line}: ")
    assert told in str(refused.value)
    assert refused.value.facts == {"file": path, "line": line}


@pytest.mark.parametrize(
    ("text", "ending", "told"),
    [
        ('base = "default"\nbase = "scm"', "toml", "mine.toml:2:"),
        ("base = ", "toml", "mine.toml:1:"),
        ("base: default\nbase: scm", "yaml", "key 'base' is there twice"),
        ("base: [", "yaml", "mine.yaml:1:"),
        ("- default", "yaml", "it holds no keys"),
        ("!!python/object/apply:os.system ['true']", "yaml", "mine.yaml:1:"),
        ("base: default\nstages: {retrieval: [rnak]}", "yaml", "mine.yaml:2: there is no operator 'rnak'"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(text: str, ending: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as refused:
        open_recipe(written(tmp_path, text, ending))
    assert told in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot be read"):
        open_recipe(str(tmp_path / "none.toml"))


def test_a_recipe_in_python_is_named_by_its_place() -> None:
    assert open_recipe("supervisor_memory.recipes.default:RECENT").name == "recent"
    with pytest.raises(SettingsError, match="cannot be loaded"):
        open_recipe("supervisor_memory.recipes.default:NOTHING")


@pytest.mark.parametrize("name", ["default", *NAMES])
def test_what_show_writes_makes_the_same_recipe(name: str, tmp_path: Path) -> None:
    read = described(open_recipe(written(tmp_path, as_toml(name))))
    assert read == described(open_recipe(name))


def test_every_operator_that_can_be_named_can_be_made_without_parameters() -> None:
    assert all(callable(each.make()) or each.stage == "upkeep" for each in OPERATORS.values())


def test_a_difference_is_told_by_operators_and_constants(tmp_path: Path) -> None:
    wide = written(tmp_path, WIDE)
    rows = {key: (mine, yours) for key, mine, yours in differences("memorybank", wide)}
    assert rows["name"] == ("memorybank", "memorybank-wide")
    assert rows["settings.max_notes"] == ("None", "3")
    assert "first(most=6)" in rows["post_retrieval"][0]
    assert "first(most=4)" in rows["post_retrieval"][1]
    assert not differences("scm", "scm")
