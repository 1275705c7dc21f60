"""Open a recipe by its name, and check that the store has the powers it needs."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Final

from supervisor_memory.errors import SettingsError
from supervisor_memory.flow import Recipe
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.stores.protocol import MemoryBackend

GROUP: Final = "supervisor_memory.recipes"
"""The group of entry points under which other packages publish recipes: name = module:RECIPE."""
_OURS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "default": "supervisor_memory.recipes.default:DEFAULT",
        "generative_agents": "supervisor_memory.recipes.generative_agents:GENERATIVE_AGENTS",
        "mem0": "supervisor_memory.recipes.mem0:MEM0",
    }
)


def open_recipe(given: Recipe | str, store: MemoryBackend | None = None) -> Recipe:
    """The recipe of a name, or the given one, with the default's operators where it leaves a stage to them.

    Args:
        store: What the recipe will run on; None: `needs` is not checked.

    Raises:
        SettingsError: no recipe has that name, it cannot be loaded, or the store lacks what it needs.
    """
    recipe = given if isinstance(given, Recipe) else _loaded(given)
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
    return tuple(sorted({*_OURS, *entry_points(group=GROUP).names}))


def _loaded(name: str) -> Recipe:
    """Load the recipe of a name; our own come before those of other packages."""
    if name in _OURS:
        points = [EntryPoint(name, _OURS[name], GROUP)]
    else:
        points = list(entry_points(group=GROUP, name=name))
    if not points:
        known = known_recipes()
        raise SettingsError(
            f"MEMORY_RECIPE={name!r} is no recipe; choose one of {', '.join(known)}", name=name, choices=known
        )
    try:
        recipe = points[0].load()
    except Exception as error:
        raise SettingsError(
            f"MEMORY_RECIPE={name!r} cannot be loaded from {points[0].value}: "
            f"{type(error).__name__}: {error}",
            name=name,
        ) from error
    if not isinstance(recipe, Recipe):
        raise SettingsError(
            f"MEMORY_RECIPE={name!r} is {type(recipe).__name__} in {points[0].value}; publish a Recipe",
            name=name,
        )
    return recipe
