"""Open a recipe by its name, and check that the store has the powers it needs."""

import difflib
import re
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Final

from supervisor_memory.errors import SettingsError
from supervisor_memory.flow import Recipe
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.recipes.published import Published, is_file
from supervisor_memory.stores.protocol import MemoryBackend

GROUP: Final = "supervisor_memory.recipes"
"""The group of entry points under which other packages publish recipes: name = module:RECIPE."""
_PUBLISHED: Final = (
    *("a_mem", "baseline", "emotional_rag", "generative_agents", "hipporag", "hipporag2"),
    *("ld_agent", "locomo", "mem0", "mem0_now", "mem0g"),
    *("memgpt", "memgpt_agent", "memorybank", "memoryos", "scm", "secom", "tim", "tim_basic"),
)
OURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default": "supervisor_memory.recipes.default:DEFAULT",
        **{name: f"supervisor_memory.recipes.{name}:PUBLISHED" for name in _PUBLISHED},
    }
)


_PLACE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


def open_recipe(given: Recipe | str, store: MemoryBackend | None = None) -> Recipe:
    """The recipe of a name, or the given one, with the default's operators where it leaves a stage to them.

    A name is that of one of ours or of an installed package, a path to a `.toml` or `.yaml` file, or
    `module:NAME` of a `Recipe` in Python.

    Args:
        store: What the recipe will run on; None: `needs` is not checked.

    Raises:
        SettingsError: no recipe has that name, it cannot be loaded, or the store lacks what it needs.
    """
    recipe = given if isinstance(given, Recipe) else _built(given)
    for need in recipe.needs if store is not None else ():
        if not isinstance(store, need):
            raise SettingsError(
                f"recipe {recipe.name!r} needs a store that is {need.__name__}, and {type(store).__name__} "
                "is not; choose another MEMORY_BACKEND or MEMORY_RECIPE",
                recipe=recipe.name,
                need=need.__name__,
                store=type(store).__name__,
            )
    return replace(
        recipe,
        sharpen=DEFAULT.sharpen if recipe.sharpen is None else recipe.sharpen,
        browse=DEFAULT.browse if recipe.browse is None else recipe.browse,
    )


def known_recipes() -> tuple[str, ...]:
    """The names of all recipes that are installed."""
    return tuple(sorted({*OURS, *entry_points(group=GROUP).names}))


def published(name: str) -> Published | None:
    """What a recipe says of itself, with its constants; None: it has none, as the default and many others.

    Raises:
        SettingsError: no recipe has that name, or it cannot be loaded.
    """
    found = _loaded(name)
    return found if isinstance(found, Published) else None


def _built(name: str) -> Recipe:
    if is_file(name):
        from supervisor_memory.recipes.file import read_recipe  # it knows all operators

        return read_recipe(Path(name), _loaded)
    found = _loaded(name)
    return found.recipe() if isinstance(found, Published) else found


def _loaded(name: str) -> Recipe | Published:
    """Load the recipe of a name; our own come before those of other packages."""
    if name in OURS:
        points = [EntryPoint(name, OURS[name], GROUP)]
    elif _PLACE.fullmatch(name):
        points = [EntryPoint(name, name, GROUP)]
    else:
        points = list(entry_points(group=GROUP, name=name))
    if not points:
        known = known_recipes()
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else f"; choose one of {', '.join(known)}"
        raise SettingsError(f"MEMORY_RECIPE={name!r} is no recipe{hint}", name=name, choices=known)
    try:
        recipe = points[0].load()
    except Exception as error:
        raise SettingsError(
            f"MEMORY_RECIPE={name!r} cannot be loaded from {points[0].value}: "
            f"{type(error).__name__}: {error}",
            name=name,
        ) from error
    if not isinstance(recipe, (Recipe, Published)):
        raise SettingsError(
            f"MEMORY_RECIPE={name!r} is {type(recipe).__name__} in {points[0].value}; publish a Recipe",
            name=name,
        )
    return recipe
