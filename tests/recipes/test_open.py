"""A recipe is chosen by name or given, and checked when a memory is opened."""

from dataclasses import replace
from typing import Protocol, runtime_checkable

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import SettingsError
from supervisor_memory.flow import Recalling, Recipe
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.recipes.open import known_recipes, open_recipe
from supervisor_memory.stores.protocol import Erases, Moves


def settings(**values: object) -> Settings:
    return Settings(embedding_model="none", queue_worker=False, **values)


def test_the_setting_names_the_recipe_and_the_argument_wins() -> None:
    with SupervisorMemory(settings()) as memory:
        assert memory.recipe == DEFAULT
    with SupervisorMemory(settings(recipe="mem0")) as memory:
        assert memory.recipe.name == "mem0"
    with SupervisorMemory(settings(recipe="mem0"), recipe="generative_agents") as memory:
        assert memory.recipe.name == "generative_agents"
    with SupervisorMemory(settings(recipe="mem0"), recipe=replace(DEFAULT, name="mine")) as memory:
        assert memory.recipe.name == "mine"


def test_the_environment_names_the_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_RECIPE", "mem0")
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    with SupervisorMemory.from_env(None) as memory:
        assert memory.recipe.name == "mem0"


def test_an_unknown_recipe_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        SettingsError,
        match="'quite_another' is no recipe; choose one of a_mem, baseline, default, ",
    ):
        SupervisorMemory(settings(recipe="quite_another"))
    with pytest.raises(SettingsError, match="'mem_0' is no recipe; did you mean 'mem0'"):
        SupervisorMemory(settings(recipe="mem_0"))
    assert set(known_recipes()) >= {"default", "generative_agents", "mem0"}


@runtime_checkable
class Links(Protocol):
    """A power that no store of ours has."""

    def neighbours(self, record_id: str) -> list[str]: ...


def test_what_a_recipe_needs_is_checked_when_a_memory_is_opened() -> None:
    assert SupervisorMemory(settings(), recipe=replace(DEFAULT, needs=(Erases, Moves))).recipe.needs
    with pytest.raises(
        SettingsError, match="recipe 'graph' needs a store that is Links, and InMemoryBackend is not"
    ):
        SupervisorMemory(settings(), recipe=replace(DEFAULT, name="graph", needs=(Links,)))


def test_what_a_recipe_leaves_open_is_the_defaults_and_what_it_names_is_its_own() -> None:
    bare = Recipe("bare", *(getattr(DEFAULT, stage) for stage in Recipe.__slots__[1:6]))
    assert (open_recipe(bare).sharpen, open_recipe(bare).browse) == (DEFAULT.sharpen, DEFAULT.browse)
    assert open_recipe(replace(bare, sharpen=())).sharpen == ()

    def nothing(plan: Recalling, view: ReadStore) -> Recalling:
        return plan

    quiet = replace(DEFAULT, browse=replace(DEFAULT, retrieval=(nothing,)))
    for recipe, count in ((DEFAULT, 1), (quiet, 0)):
        with SupervisorMemory(settings(), recipe=recipe) as memory:
            memory.write("GMV is net.", user_id="ada")
            assert len(memory.search("", user_id="ada")) == count
