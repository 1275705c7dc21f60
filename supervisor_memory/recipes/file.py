"""Read a recipe from a file: constants, settings and the order of registered operators, of a base.

TOML, or YAML with the same keys. Nothing falls back silently: what is unknown, out of range, twice there or
in the wrong place is a `RecipeError` with file, line and the nearest name. No code is loaded from a file.

    base = "memorybank"
    name = "memorybank-wide"
    [constants]
    top_k = 9
    [settings]
    max_notes = 12
    [stages]                # a stage that is named is replaced whole
    post_retrieval = ["rank", "by_meaning", {use = "first", most = 9}, "gate", "format_note"]
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from supervisor_memory.errors import RecipeError, SettingsError
from supervisor_memory.flow import Recipe
from supervisor_memory.recipes.published import Published, is_file
from supervisor_memory.recipes.registered import OPERATORS, STAGES, missing_before
from supervisor_memory.settings import Settings

_KEYS: Final = ("base", "name", "constants", "settings", "stages")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,63}\Z")
_LARGEST: Final = 1_000_000  # bytes


def read_recipe(path: Path, find: Callable[[str], Recipe | Published]) -> Recipe:
    """The recipe of a file.

    Args:
        find: The base of a name.

    Raises:
        RecipeError: the file cannot be read, or says what it may not.
    """
    return _File(path, _text(path)).recipe(find)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST:
            raise RecipeError(f"{path} is over {_LARGEST:,} bytes, so it is no recipe", file=str(path))
        return path.read_text("utf-8")
    except (OSError, UnicodeError) as error:
        raise RecipeError(f"{path} cannot be read: {error}", file=str(path)) from error


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    text: str

    def recipe(self, find: Callable[[str], Recipe | Published]) -> Recipe:
        told = self._parsed()
        self._check_known(told, _KEYS, "a recipe")
        base, name = told.get("base"), told.get("name", self.path.stem)
        if not isinstance(base, str):
            self._refuse("base", 'names no base, such as base = "default"')
        if not isinstance(name, str) or not _NAME.match(name):
            self._refuse("name", f"name is {name!r}; use letters, digits, '_', '-' and '.'")
        if is_file(base):
            self._refuse("base", "the base of a file is a recipe's name, not another file")
        try:
            found = find(base)
        except SettingsError as error:
            self._refuse("base", str(error))
        constants = self._table(told, "constants")
        recipe = self._of_constants(found, constants)
        settings = self._settings({**recipe.settings, **self._table(told, "settings")})
        stages: dict[str, Any] = {
            stage: self._stage(stage, listed) for stage, listed in self._stages(told).items()
        }
        return replace(recipe, name=name, settings=settings, **stages)

    def _parsed(self) -> Mapping[str, Any]:
        try:
            found = tomllib.loads(self.text) if self.path.suffix == ".toml" else _from_yaml(self.text)
        except (ValueError, RecursionError) as error:
            told = re.search(r"line (\d+)", str(error))
            line = int(told[1]) if told else len(self.text.splitlines())  # at the end of the document
            raise RecipeError(f"{self.path}:{line}: {error}", file=str(self.path), line=line) from error
        if not isinstance(found, dict):
            raise RecipeError(f"{self.path}: it holds no keys", file=str(self.path))
        return found

    def _of_constants(self, base: Recipe | Published, constants: Mapping[str, Any]) -> Recipe:
        if isinstance(base, Recipe):
            if constants:
                self._refuse(next(iter(constants)), f"recipe {base.name!r} has no constants", "constants")
            return base
        known = {name: value for name, value, _ in base.sources}
        self._check_known(constants, known, f"recipe {base.name!r}", "constants", what="constant")
        for name, value in constants.items():
            try:
                base.checked({name: value})
            except SettingsError as error:
                self._refuse(name, str(error), "constants")
        return base.recipe(**constants)

    def _settings(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        self._check_known(given, Settings.model_fields, "the package", "settings", what="setting")
        for name, value in given.items():
            try:
                Settings().filled({name: value})
            except SettingsError as error:
                self._refuse(name, str(error), "settings")
        return given

    def _stages(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        stages = self._table(told, "stages")
        self._check_known(stages, STAGES, "a recipe", "stages", what="stage")
        return stages

    def _stage(self, stage: str, listed: object) -> tuple[Callable[..., Any], ...]:
        if not isinstance(listed, list):
            self._refuse(stage, f"{stage} is {type(listed).__name__}; give a list of operators", "stages")
        made: list[Callable[..., Any]] = []
        names: list[str] = []
        for each in listed:
            parameters = dict(each) if isinstance(each, dict) else {"use": each}
            name = parameters.pop("use", None)
            if not isinstance(name, str):
                self._refuse(stage, f"{each!r} names no operator; write a name, or use = a name", "stages")
            self._check_place(name, stage, names)
            try:
                made.append(OPERATORS[name].make(**parameters))
            except (ValueError, SettingsError) as error:
                self._refuse(stage, f"operator {name!r}: {error}", "stages", value=name)
            names.append(name)
        return tuple(made)

    def _check_place(self, name: str, stage: str, earlier: Sequence[str]) -> None:
        if name not in OPERATORS:
            there = [each for each, it in OPERATORS.items() if it.stage == stage]
            near = _nearest(name, OPERATORS) or f"in {stage} there are {', '.join(there)}"
            self._refuse(stage, f"there is no operator {name!r}; {near}", "stages", value=name)
        if (own := OPERATORS[name].stage) != stage:
            self._refuse(stage, f"operator {name!r} is one of {own}, not of {stage}", "stages", value=name)
        if (lacks := missing_before(name, earlier)) is not None:
            self._refuse(
                stage, f"operator {name!r} needs {lacks!r} before it in {stage}", "stages", value=name
            )

    def _table(self, told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
        found = told.get(name, {})
        if not isinstance(found, dict):
            self._refuse(name, f"{name} is {type(found).__name__}; give keys and values")
        return found

    def _check_known(
        self, told: Iterable[Any], known: Iterable[str], whose: str, table: str = "", *, what: str = "key"
    ) -> None:
        names = [*known]
        for each in told:
            if each not in names:
                near = _nearest(str(each), names) or f"it has {', '.join(names) or 'none'}"
                self._refuse(str(each), f"{whose} has no {what} {each!r}; {near}", table)

    def _refuse(self, key: str, told: str, table: str = "", *, value: str = "") -> NoReturn:
        line = _line(self.text, table, key, value)
        raise RecipeError(f"{self.path}:{line}: {told}", file=str(self.path), line=line)


def _nearest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, [*known], n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _line(text: str, table: str, key: str, value: str) -> int:
    """The line, from 1, of a value; else of its key, else of its table."""
    lines, at = text.splitlines(), 0
    for sought in (
        rf"\s*(\[\s*{re.escape(table)}\s*\]|[\"']?{re.escape(table)}[\"']?\s*[:=.])" if table else "",
        rf"\s*(\[?\s*|.*[{{,.]\s*)[\"']?{re.escape(key)}[\"']?\s*[:=\]]",
        rf".*\b{re.escape(value)}\b" if value else "",
    ):
        found = (n for n in range(at, len(lines)) if re.match(sought, lines[n])) if sought else iter(())
        at = next(found, at)
    return at + 1


def _from_yaml(text: str) -> object:
    """The value of a YAML text, by the safe loader.

    Raises:
        ValueError: it is no YAML, or a key is there twice, of which the loader would take the last.
    """
    import yaml

    try:
        _refuse_twice(yaml.compose(text, Loader=yaml.SafeLoader))
        found: object = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark is not None else ""
        raise ValueError(f"{getattr(error, 'problem', None) or error}{where}") from error
    return found


def _refuse_twice(node: Any) -> None:
    """ValueError: a mapping of a YAML document has a key twice."""
    value = getattr(node, "value", None)
    if not isinstance(value, list):
        return
    keys: set[object] = set()
    for each in value:
        key, *rest = each if isinstance(each, tuple) else (None, each)
        if key is not None and key.value in keys:
            raise ValueError(f"key {key.value!r} is there twice (line {key.start_mark.line + 1})")
        keys |= {key.value} if key is not None else set()
        for inner in rest:
            _refuse_twice(inner)
