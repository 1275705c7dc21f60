"""Write attempts and what should become of each: the form of the sets in this folder."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from supervisor_memory.model.records import Kind

__all__ = ["Decision", "Line", "Relation", "read_lines", "slots_of"]

Relation: TypeAlias = Literal["new", "unrelated", "duplicate", "conflict", "append"]
JOINED = ("duplicate", "conflict", "append")


@dataclass(frozen=True)
class Line:
    """One write attempt. Lines of a stream are one user's, written in order.

    `relation` says what it is to the earlier line `of`: the same fact again, a new value for it (which is the
    only one from then on), a further step of a task; "new" with an `of` is a look-alike to be kept apart.
    `why` tells of which class it is, for a paraphrase with its strength.
    `kind` None is told from the text by rules.
    """

    stream: str
    id: str
    language: str
    kind: Kind | None
    content: str
    day: int
    relation: Relation
    of: str | None
    why: str | None

    @property
    def is_joined(self) -> bool:
        return self.relation in JOINED

    @property
    def is_look_alike(self) -> bool:
        return self.relation == "new" and self.of is not None


@dataclass(frozen=True)
class Decision:
    """What became of a line. `into` is an earlier line that is held by the record it went into."""

    id: str
    decision: str
    into: str | None
    reason: str = ""


def read_lines(path: Path) -> list[Line]:
    """The lines of a file, one JSON object each.

    Raises:
        KeyError, ValueError: it has another form.
    """
    rows = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())
    return [_line(row) for row in rows]


def _line(row: dict[str, object]) -> Line:
    label = row["label"]
    assert isinstance(label, dict)
    why = label["why"]
    if "strength" in label:
        why = f"{label['strength']} {why}"
    plain = {name: row[name] for name in ("stream", "id", "kind", "content", "day")}
    return Line(**plain, language=row["lang"], relation=label["relation"], of=label["of"], why=why)  # type: ignore[arg-type]


def slots_of(lines: Iterable[Line]) -> dict[str, str]:
    """Line → the first line about the same thing."""
    slots: dict[str, str] = {}
    for line in lines:
        slots[line.id] = slots[line.of] if line.is_joined and line.of else line.id
    return slots
