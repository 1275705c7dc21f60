"""A recipe as plain values, to show it and to compare two: its settings, and each stage's operators."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any, Final

from supervisor_memory.flow import Chore, Recipe
from supervisor_memory.recipes.open import known_recipes, open_recipe, published
from supervisor_memory.recipes.published import is_file

STAGES: Final = (
    *("pre_retrieval", "retrieval", "post_retrieval", "pre_insert", "insert", "post_insert", "upkeep"),
)
_PLAIN: Final = (str, int, float, bool, type(None))


def described(recipe: Recipe) -> dict[str, Any]:
    """Name, settings, and the operators of each stage with the values that they were made of."""
    stages = {stage: [told(each) for each in getattr(recipe, stage)] for stage in STAGES}
    needs = [need.__name__ for need in recipe.needs]
    return {"name": recipe.name, "settings": dict(recipe.settings), **stages, "needs": needs}


def told(operator: Callable[..., Any] | Chore) -> str:
    """An operator's name and the plain values that it holds, such as "first(most=6)"."""
    if isinstance(operator, Chore):
        return f"{operator.name}{_values(operator.plan)}"
    if isinstance(operator, functools.partial):
        judge = operator.keywords.get("judge")
        return f"{told(operator.func)}{f' by {told(judge)}' if judge is not None else ''}"
    name = getattr(operator, "__qualname__", type(operator).__name__).partition(".<locals>")[0]
    return f"{name}{_values(operator)}"


def _values(operator: Callable[..., Any]) -> str:
    held = inspect.getclosurevars(operator).nonlocals if inspect.isfunction(operator) else {}
    plain = [f"{name}={value!r}" for name, value in sorted(_flat(held))]
    return f"({', '.join(plain)})" if plain else ""


def _flat(held: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in held.items():
        if isinstance(value, _PLAIN):
            yield name, value
        elif is_dataclass(value) and not isinstance(value, type):
            yield from ((key, each) for key, each in asdict(value).items() if isinstance(each, _PLAIN))
        elif inspect.isfunction(value) and not name.startswith("_"):
            yield name, told(value)


def as_toml(name: str) -> str:
    """A file that makes the same recipe, with each constant's source beside it.

    Raises:
        SettingsError: no recipe has that name.
    """
    about = published(name)
    lines = [f'base = "{name}"', f'name = "{name}"']
    if about is not None and about.sources:
        lines += ["", "[constants]"]
        lines += [f"{key} = {_toml(value)}  # {source}" for key, value, source in about.sources]
    return "\n".join([*lines, ""])


def _toml(value: object) -> str:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else f'"{value}"'
        if isinstance(value, str)
        else repr(value)
    )


def differences(one: str, other: str) -> list[tuple[str, str, str]]:
    """The differences of two recipes: key, first value, second value.

    Raises:
        SettingsError: there is no such recipe.
    """
    rows: list[tuple[str, str, str]] = []
    mine, yours = described(open_recipe(one)), described(open_recipe(other))
    for key in mine:
        if mine[key] == yours[key]:
            continue
        if isinstance(mine[key], dict):
            keys = dict.fromkeys([*mine[key], *yours[key]])
            rows += [
                (f"settings.{each}", repr(mine[key].get(each)), repr(yours[key].get(each)))
                for each in keys
                if mine[key].get(each) != yours[key].get(each)
            ]
        else:
            one_has, other_has = _only_in_first(mine[key], yours[key]), _only_in_first(yours[key], mine[key])
            is_order = not (one_has or other_has)
            told_of = ("another order", "another order") if is_order else (one_has, other_has)
            rows.append((key, *told_of))
    return rows


def _only_in_first(one: Any, other: Any) -> str:
    """What one value has and the other has not."""
    return " · ".join(e for e in one if e not in other) if isinstance(one, list) else str(one)


def listed() -> list[dict[str, Any]]:
    """Name, idea and what is followed, of each recipe that is installed."""
    rows = []
    for name in known_recipes():
        about = published(name) if not is_file(name) else None
        follows = about.said["Follows"] if about else ""
        rows.append({"name": name, "idea": about.idea if about else "", "follows": follows})
    return rows
