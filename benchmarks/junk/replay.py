"""A corpus of turns, replayed through the public verb, and what memory held after each."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from supervisor_memory import Outcome, Scope, SupervisorMemory

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Line:
    """One turn. `before` is what a retraction takes back; `holds` words that a record must hold."""

    language: str
    role: str
    about: str
    text: str
    keep: bool
    holds: str = ""
    before: str = ""


@dataclass(frozen=True)
class Judged:
    """A turn, what memory held after it, and whether that is what it should."""

    line: Line
    stored: tuple[str, ...]
    is_right: bool


def read(name: str) -> Iterator[Line]:
    """The lines of a corpus file, such as "en"."""
    for each in json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")):
        yield Line(
            name.rpartition("_")[2],
            each["role"],
            each["class"],
            each["text"],
            each["keep"],
            each.get("holds", ""),
            each.get("before", ""),
        )


def judged(memory: SupervisorMemory, lines: Iterable[Line]) -> list[Judged]:
    """Replay the lines, each for a user of its own."""
    return [_replayed(memory, line, f"reader-{number}") for number, line in enumerate(lines)]


def _replayed(memory: SupervisorMemory, line: Line, user: str) -> Judged:
    if line.before:
        memory.write(line.before, user_id=user)
    if line.role == "assistant":
        memory.remember([], Scope(user, agent_id="analyst"), outcome=Outcome(final_answer=line.text))
    else:
        message = {"role": line.role, "content": line.text, "tool_call_id": "call-1"}
        memory.remember([message], Scope(user))
    stored = tuple(record.content for record in memory.get_all(user_id=user))
    return Judged(line, stored, _is_right(line, stored))


def _is_right(line: Line, stored: Sequence[str]) -> bool:
    if line.before:
        return not any(line.before.rstrip("。.") in text for text in stored)
    if line.keep:
        return any(line.holds in text for text in stored)
    return not stored


def table(results: Sequence[Judged]) -> str:
    """Right and all, by language and class."""
    lines = []
    for keep, title in ((False, "chatter that is stored"), (True, "statements that are kept")):
        of = [each for each in results if each.line.keep is keep]
        for name in (*dict.fromkeys(each.line.language for each in of), "all"):
            those = [each for each in of if name in ("all", each.line.language)]
            lines.append(f"{title:26} {name:4} {_share(those, keep)}")
        groups = Counter(each.line.about for each in of)
        lines += [
            f"    {about:18} {_share([each for each in of if each.line.about == about], keep)}"
            for about in groups
        ]
    return "\n".join(lines)


def _share(results: Sequence[Judged], keep: bool) -> str:  # noqa: FBT001
    count = sum(each.is_right is keep for each in results)
    return f"{count:3} of {len(results):3}  {count / max(len(results), 1):6.1%}"
