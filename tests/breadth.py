"""The share of cases that run: all of them with SLOW, as in `make slow`, and a part in `make test`."""

import os

import pytest

__all__ = ["HOW", "examples", "size"]

_ALL = bool(os.environ.get("SLOW"))
_EITHER = pytest.mark.either("sync", "async")
HOW = pytest.mark.parametrize("how", [pytest.param(how, marks=_EITHER) for how in ("sync", "async")])
"""Both lead to the same code, for the async twin of a verb is the verb on a thread: so `make test` tries each
case in one of them, which differs from case to case."""


def examples(full: int) -> int:
    """The full number of generated examples, or a sixth of it."""
    return full if _ALL else max(8, full // 6)


def size(full: int, *, less: int) -> int:
    """The full size, or a smaller size that reaches the same bound."""
    return full if _ALL else less
