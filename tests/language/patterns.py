"""All patterns that the package's modules use."""

import ast
import functools
import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from supervisor_memory.language.lexicon import Lexicon

__all__ = ["every_pattern"]


@functools.cache
def every_pattern() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Each pattern with its module and its name; lazy ones are compiled on use."""
    return [
        (f"{module.__name__}:{name}", pattern)
        for module in _modules()
        for name, value in (*vars(module).items(), *_used_keys(module))
        for pattern in _patterns_in(value)
    ]


def _modules() -> Iterator[Any]:
    for room in ("understand", "compare", "stages", "redact"):
        root = importlib.import_module(f"supervisor_memory.{room}")
        for each in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
            yield importlib.import_module(each.name)


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, Lexicon):
        return
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, tuple | list):
        for each in value:
            yield from _patterns_in(each)
    elif isinstance(getattr(value, "pattern", None), str):
        yield value  # type: ignore[misc]  # or what stands for one until it is used


def _used_keys(module: Any) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The patterns that a module takes from a file where it uses them: `_WISHES["outsiders"]`."""
    for node in ast.walk(ast.parse(Path(module.__file__).read_text("utf-8"))):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
            words = getattr(module, node.value.id, None)
            if isinstance(words, Lexicon) and isinstance(node.slice, ast.Constant):
                yield str(node.slice.value), words[str(node.slice.value)]
