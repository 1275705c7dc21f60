"""Writes docs/settings.md from the settings themselves: python docs/settings.py > docs/settings.md"""

import json
import sys
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from supervisor_memory import Settings

HEAD = """\
# Settings

Made by `python docs/settings.py > docs/settings.md` from `supervisor_memory/settings.py`; a test keeps it so.

A setting is read once, by `Settings.from_env()` or `SupervisorMemory.from_env()`, on an event loop by
`await SupervisorMemory.afrom_env()`. An argument wins over the process environment, that over `.env`, that
over the default. Values that are mappings are written as JSON.
In `.env` an unknown `MEMORY_*` name is an error that names the nearest known one; in the process
environment, where others may put such names, it is a warning. In Python a setting has the same name in
lower case, without `MEMORY_`: `Settings(top_k=3)`.

`supervisor-memory doctor` shows what is set, and from where; `supervisor-memory doctor --all` shows all.

## One backend or another

These lines of `.env` are all that changes; the examples and the end-to-end test run on each.

| Records are kept | Lines |
|---|---|
| in this process | `MEMORY_BACKEND=in_memory`, or none |
| in a readable file | `MEMORY_BACKEND=json` `MEMORY_PATH=directory` |
| in a SQLite file | `MEMORY_BACKEND=sqlite` `MEMORY_PATH=directory` |
| on a Qdrant server | `MEMORY_BACKEND=qdrant` `QDRANT_URL=http://host:6333` `QDRANT_KEY=…` |
| the same, and a copy here | also `MEMORY_DUAL_WRITE=true` |
| in a directory, as Qdrant's client does | `MEMORY_BACKEND=qdrant` `QDRANT_URL=./points` |
| the same in this process | `MEMORY_BACKEND=qdrant` `QDRANT_URL=:memory:` |

With `qdrant`, `MEMORY_PATH` holds the [journal](journal.md) and the audit log; the last two are for
development. It needs the extra `qdrant`. A LangGraph store is
[given in Python](hosts/keep_your_database.md).

## All settings

| Name | Default | Values | Meaning |
|---|---|---|---|
"""


def page() -> str:
    """The page as it should be."""
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows())


def rows() -> Iterator[tuple[str, str, str, str]]:
    defaults = Settings().model_dump(mode="json")
    for name, field in Settings.model_fields.items():
        env = Settings.env_names()[name]
        yield (
            f"`{env}`",
            _default(defaults[name]),
            _values(field),
            (field.description or "").replace("|", "\\|"),
        )


def _default(value: Any) -> str:
    if value is None:
        return "unset"
    return f"`{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}`"


def _values(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    if field.annotation is bool:
        return "`true`, `false`"
    limits = {name: getattr(m, name) for m in field.metadata for name in ("ge", "le") if hasattr(m, name)}
    match limits:
        case {"ge": least, "le": most}:
            return f"{least:,} to {most:,}"
        case {"ge": least}:
            return f"{least} or more"
    return "JSON" if any(kind in str(field.annotation) for kind in ("Mapping", "tuple")) else "text"


if __name__ == "__main__":
    sys.stdout.write(page())
