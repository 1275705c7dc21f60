"""The options of the command line that say which records are meant."""

import json
import re
import time
from collections.abc import Sequence
from typing import Annotated, Any, Final, NoReturn

from typer import Option

from supervisor_memory.errors import InvalidContent
from supervisor_memory.model.arguments import as_filter

_TIME = "2026-01-31, 2026-01-31T18:00+08:00, yesterday, 7d (or 2w, 12h, 30m) ago, or seconds since 1970"
_AGO = re.compile(r"(\d{1,5})([mhdw])")
_SECONDS: Final = {"m": 60, "h": 3_600, "d": 86_400, "w": 7 * 86_400}
_DAYS_AGO: Final = {"today": 0, "yesterday": 1}


def at(when: str | None) -> str | None:
    """A time as written on a command line, as `search` takes it: "7d" is seven days before now."""
    told = (when or "").strip().casefold().removesuffix(" ago")
    if told in _DAYS_AGO:
        day = time.gmtime(time.time() - _DAYS_AGO[told] * _SECONDS["d"])
        return time.strftime("%Y-%m-%d", day)
    if found := _AGO.fullmatch(told):
        return f"{time.time() - int(found[1]) * _SECONDS[found[2]]:.3f}"
    return when


Kinds = Annotated[
    list[str] | None,
    Option("--kind", "-k", help="Only of this kind, as user-profile; repeatable: any.", metavar="KIND"),
]
Tags = Annotated[
    list[str] | None, Option("--tag", "-t", help="Only with this tag; repeatable: all.", metavar="TAG")
]
Since = Annotated[
    str | None,
    Option("--since", help=f"Only what was said from then on: {_TIME}.", metavar="WHEN", callback=at),
]
Until = Annotated[
    str | None,
    Option("--until", help="Only what was said before; a day counts whole.", metavar="WHEN", callback=at),
]
AsOf = Annotated[
    str | None, Option("--as-of", help=f"What was valid then: {_TIME}.", metavar="WHEN", callback=at)
]
Metadata = Annotated[
    list[str] | None,
    Option(
        "--meta",
        "-m",
        help="Only with this in its metadata, as project=apollo; repeatable: all keys, any value of one.",
        metavar="KEY=VALUE",
    ),
]


def where_of(
    kinds: Sequence[str] | None,
    tags: Sequence[str] | None,
    since: str | None,
    until: str | None,
    metadata: Sequence[str] | None,
) -> dict[str, Any]:
    """The options as `search` takes them; InvalidContent: metadata is not written KEY=VALUE."""
    asked: dict[str, list[Any]] = {}
    for entry in metadata or ():
        key, equals, text = entry.partition("=")
        if not equals:
            raise InvalidContent(f"--meta {entry[:40]!r} has no '='; write KEY=VALUE, as project=apollo")
        asked.setdefault(key, []).append(_value(text))
    return {
        "kind": kinds or None,
        "tags": tags or None,
        "since": since,
        "until": until,
        "metadata": asked or None,
    }


def moment_of(when: str | None, *, end: bool) -> float | None:
    """A time as seconds since 1970, None where none is given.

    Args:
        end: Whether a day without a time of day means its end, and not its beginning.

    Raises:
        InvalidContent: it is no time.
    """
    asked = as_filter({"until": when} if end else {"since": when})
    return asked.until if end else asked.since


def _value(text: str) -> object:
    """A number, true, false, null or "quoted text" as JSON reads it; else the text itself."""
    try:
        value = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, (list, dict)) else value


def _refused(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and the like are no JSON, so they are text
