"""Makes untrusted text safe for a terminal: nothing in it can move the cursor, colour or hide anything."""

import json
import re
import sys
import time
from typing import Any, Final

from supervisor_memory.language.unseen import HIDDEN
from supervisor_memory.model.explain import counted
from supervisor_memory.model.records import Record

__all__ = ["as_json", "counted", "moment", "one_line", "printable", "who_said"]

# What hides, and breaks of lines that are none to all terminals.
_UNSEEN: Final = re.compile(f"{HIDDEN.pattern}|[\x0b-\x0d\x85\u2028\u2029]")


def printable(text: str) -> str:
    """The text with every control or invisible character spelled out, `\\x1b`; lines and tabs stay."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def one_line(text: str, *, most: int | None = None) -> str:
    """As `printable`, on one line, cut after `most` characters."""
    line = printable(" ".join(text.split()))
    return line if most is None or len(line) <= most else line[: most - 1] + "…"


def as_json(value: Any, *, indent: int | None = 2) -> str:
    """JSON that is the same data and just as harmless on a terminal; without `indent`, on one line."""
    plain = (sys.stdout.encoding or "ascii").lower().startswith("utf")
    text = json.dumps(value, ensure_ascii=not plain, indent=indent)
    return _UNSEEN.sub(_escaped, text)


def moment(seconds: float) -> str:
    """A time as people read it, in UTC."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f}"


def _escaped(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def who_said(record: Record) -> str:
    """Who said or brought a record: an agent, a speaker by name, or the class of its source."""
    return one_line(record.source.agent_id or record.source.speaker or record.source.source_class)
