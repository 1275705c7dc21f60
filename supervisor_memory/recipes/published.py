"""A published memory system as a recipe: where it is from, where it differs, and its constants.

What it says of itself stands at the head of its module, one paragraph a heading: `Paper`, `Code`, `Follows`
(the paper, or the code), `Differs` and `Without a model`. Pages and commands read it from there.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from supervisor_memory.errors import SettingsError
from supervisor_memory.flow import Recalling, Recipe
from supervisor_memory.ports import ReadStore

HEADINGS: Final = ("Paper", "Code", "Follows", "Differs", "Without a model")
_PARAGRAPH: Final = re.compile(rf"^({'|'.join(HEADINGS)}): ", re.MULTILINE)


def is_file(name: str) -> bool:
    """Whether a recipe's name is that of a file, by its ending."""
    return name.endswith((".toml", ".yaml", ".yml"))


def constant(
    default: Any,
    source: str,
    *,
    least: float | None = None,
    most: float | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """A field of a recipe's constants.

    Args:
        source: Where the value is from: the file and function of the code, or the section of the paper.
        least, most: The range of a number, both inclusive.
        choices: The values that a text may have.
    """
    told = {"source": source, "least": least, "most": most, "choices": choices}
    return field(default=default, metadata=told)


@dataclass(frozen=True, slots=True)
class NoConstants:
    """The constants of a recipe that has none."""


@dataclass(frozen=True, slots=True)
class Published:
    """A recipe with constants.

    Args:
        idea: What it does, in a line.
        about: The docstring of its module.
        build: The recipe of some constants.
        constants: Their class, a frozen dataclass of `constant` fields.
    """

    name: str
    idea: str
    about: str
    build: Callable[[Any], Recipe]
    constants: Any = NoConstants

    def recipe(self, **changed: Any) -> Recipe:
        """The recipe, with some constants changed.

        Raises:
            SettingsError: there is no such constant, or its value is of another type or out of its range.
        """
        built = self.build(self.checked(changed))
        return replace(
            built,
            name=self.name,
            post_retrieval=(*built.post_retrieval, _telling(self.name, self.said["Without a model"])),
        )

    def checked(self, changed: Mapping[str, Any]) -> Any:
        """The constants, with some of them changed; raises as `recipe` does."""
        known = {each.name: each for each in fields(self.constants)}
        for name, value in changed.items():
            if name not in known:
                raise SettingsError(
                    f"recipe {self.name!r} has no constant {name!r}; it has {', '.join(known) or 'none'}",
                    constant=name,
                    choices=tuple(known),
                )
            usual = known[name].default
            numbers = (int, float) if isinstance(usual, float) else (type(usual),)
            if isinstance(value, bool) is not isinstance(usual, bool) or not isinstance(value, numbers):
                raise SettingsError(
                    f"constant {name!r} of recipe {self.name!r} is {type(value).__name__} {value!r}; it is "
                    f"{type(usual).__name__} {usual!r} by default",
                    constant=name,
                )
            if (choices := known[name].metadata["choices"]) and value not in choices:
                raise SettingsError(
                    f"constant {name!r} of recipe {self.name!r} is {value!r}; choose one of "
                    f"{', '.join(choices)}",
                    constant=name,
                    choices=tuple(choices),
                )
            least, most = known[name].metadata["least"], known[name].metadata["most"]
            if (least is not None and not value >= least) or (most is not None and not value <= most):
                raise SettingsError(
                    f"constant {name!r} of recipe {self.name!r} is {value!r}; it is from {least} to {most}",
                    constant=name,
                )
        return self.constants(**changed)

    @property
    def said(self) -> Mapping[str, str]:
        """What the module says of the recipe, by heading."""
        first, *rest = _PARAGRAPH.split(self.about.strip())
        told = dict(zip(rest[::2], rest[1::2], strict=True))
        return {"Title": _line(first), **{name: _line(told.get(name, "")) for name in HEADINGS}}

    @property
    def sources(self) -> Sequence[tuple[str, Any, str]]:
        """Name, value and source of each constant."""
        return [(each.name, each.default, each.metadata["source"]) for each in fields(self.constants)]


def _line(text: str) -> str:
    return " ".join(text.split())


def _telling(name: str, told: str) -> Callable[[Recalling, ReadStore], Recalling]:
    """An operator that notes in a search what the recipe does otherwise where there is no model."""

    def tell_what_no_model_did(plan: Recalling, view: ReadStore) -> Recalling:
        if view.has_model or plan.turn.purpose != "hits" or told.startswith("the same"):
            return plan
        note = f"{name} without a model: {told}"
        return replace(plan, hits=replace(plan.hits, notes=(*plan.hits.notes, note)))

    return tell_what_no_model_did
