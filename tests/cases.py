"""Many small cases as one test, since a test of its own costs more than the case itself."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

__all__ = ["every_case"]


def every_case(
    names: str | Sequence[str], cases: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make one test of a function that takes a case; the test reports every case that fails.

    What else the function takes are fixtures, which all cases share: each leaves them as they were.

    Args:
        names: The parameters, as `pytest.mark.parametrize` takes them.
    """
    parameters = names.replace(",", " ").split() if isinstance(names, str) else names
    every = tuple(cases)
    assert every, "no case is no test"

    def of(check: Callable[..., None]) -> Callable[..., None]:
        def test(**fixtures: Any) -> None:
            failed = []
            for case in every:
                given = [case] if len(parameters) == 1 else case
                try:
                    check(**dict(zip(parameters, given, strict=True)), **fixtures)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001  # it is told below
                    failed.append(f"{case!r}: {type(error).__name__}: {error}")
            if failed:
                pytest.fail("\n".join((f"{len(failed)} cases fail:", *failed)), pytrace=False)

        told = inspect.signature(check)
        shared = [each for name, each in told.parameters.items() if name not in parameters]
        test.__signature__ = told.replace(parameters=shared)  # type: ignore[attr-defined]
        test.__name__, test.__qualname__ = check.__name__, check.__qualname__
        test.__module__, test.__doc__ = check.__module__, check.__doc__
        return test

    return of
