"""The table of contents of a user's memory: a line for each kind and target of records.

Step one of three: from a topic to its records, and from a record to what was said; see docs/disclosure.md.
Pure functions of values. No model is asked: a description is the beginnings of the records themselves.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from supervisor_memory.language.terms import CJK, language, terms
from supervisor_memory.language.tokens import TokenCounter
from supervisor_memory.model.records import KINDS, Kind, Record
from supervisor_memory.stages.post_retrieval.format import clean
from supervisor_memory.stages.post_retrieval.rank import importance
from supervisor_memory.understand.statements import MAX_SENTENCE, sentences

_Key: TypeAlias = tuple[Kind, frozenset[str]]

_QUOTED: Final = 3  # records of a topic whose beginnings describe it
_BEGINNING: Final = 16  # tokens of each
_LEAST_TERMS: Final = 2
_SHORTEST: Final = 8  # tokens of a line that says anything
_LONGEST_NAME: Final = 64
_MOST_NAMES: Final = 8
_USER: Final = "user"
_NOBODY: Final = "?"
_PARTS = re.compile(rf"[{CJK}]|[^\s{CJK}]{{1,24}}|\s+")
_MARKS = str.maketrans("():&", "（）：＆")  # they frame the line; their wide forms read the same


@dataclass(frozen=True, slots=True)
class Topic:
    """One line of the table of contents; `str(topic)` is the line.

    Attributes:
        target: Whom or what it is about: `user`, an agent, a speaker, the term that is defined; several
            are joined by `&`.
        description: How its first records begin.
        ids: Its records, those first that are pinned, more important, newer.
        quoted: The ids of the records in the description.
    """

    kind: Kind
    target: str
    description: str
    ids: tuple[str, ...]
    quoted: tuple[str, ...]

    def __str__(self) -> str:
        return f"- {self.kind}({self.target}): {self.description}"

    @property
    def count(self) -> int:
        """How many records it has."""
        return len(self.ids)

    def to_dict(self) -> dict[str, Any]:
        """A plain dictionary that JSON can hold."""
        return {
            "kind": self.kind,
            "target": self.target,
            "description": self.description,
            "count": self.count,
            "ids": list(self.ids),
        }


def table_of_contents(
    records: Iterable[Record], *, most_tokens: int, count_tokens: TokenCounter
) -> list[Topic]:
    """The topics of these records, the same whatever order they come in.

    Args:
        most_tokens: What all lines may take together. Topics of pinned, important and new records come
            first; one that does not fit is left out.
    """
    grouped: dict[_Key, list[Record]] = {}
    for record in sorted(records, key=_order_key):
        grouped.setdefault((record.kind, frozenset(_names(record))), []).append(record)
    topics = _fitting((_topic(each, count_tokens) for each in grouped.values()), most_tokens, count_tokens)
    return sorted(topics, key=lambda topic: KINDS.index(topic.kind))


def _order_key(record: Record) -> tuple[bool, float, float, str]:
    return record.metadata.get("pinned") is not True, -importance(record), -record.updated_at, record.id


def _fitting(topics: Iterable[Topic], most: int, count_tokens: TokenCounter) -> list[Topic]:
    chosen: list[Topic] = []
    left = most
    for topic in topics:
        size = count_tokens(f"{topic}\n")
        if size <= left:
            chosen.append(topic)
            left -= size
        if left < _SHORTEST:
            break
    return chosen


def _topic(records: Sequence[Record], count_tokens: TokenCounter) -> Topic:
    """The topic of records that share kind and target; the first records describe it."""
    quoted: dict[str, str] = {}  # beginning → record
    for record in records:
        quoted.setdefault(_beginning(record.content, count_tokens), record.id)
        if len(quoted) == _QUOTED:
            break
    comma = "；" if language(" ".join(quoted)) == "zh" else "; "
    more = f"{comma}… +{left}" if (left := len(records) - len(quoted)) else ""
    return Topic(
        kind=records[0].kind,
        target="&".join(_names(records[0])),
        description=comma.join(quoted) + more,
        ids=tuple(record.id for record in records),
        quoted=tuple(quoted.values()),
    )


# --- whom or what it is about ----------------------------------------------------------------------------


def _names(record: Record) -> Sequence[str]:
    """The names of a record's target, each once; `metadata["target"]` wins: "jin&jia", or a list of names."""
    told = record.metadata.get("target")
    names = told.split("&") if isinstance(told, str) else told
    given = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    plain = (_name(name) for name in given[:_MOST_NAMES])
    return list(dict.fromkeys(filter(None, plain))) or [_name(_topic_of(record)) or _NOBODY]


def _topic_of(record: Record) -> str:
    """Name a record's topic: a definition's term, a preference's holder, else the agent that brought it."""
    source = record.source
    if record.kind == "domain-facts" and record.subject:
        return record.subject
    agent = None if record.kind == "user-profile" else source.agent_id
    return agent or source.speaker or _USER


def _name(text: str) -> str:
    return clean(text[:_LONGEST_NAME]).translate(_MARKS)


# --- how it begins ---------------------------------------------------------------------------------------


def _beginning(content: str, count_tokens: Callable[[str], int]) -> str:
    """The first sentence that is no mere greeting, cut after so many tokens, between words."""
    head = content[:MAX_SENTENCE]
    lines = [line for each in sentences(head) if (line := clean(each).rstrip("。.;；"))]
    telling = [line for line in lines if len(terms(line)) >= _LEAST_TERMS]
    line = next(iter([*telling, *lines]), clean(head))
    begun = ""
    for part in _PARTS.findall(line):
        if begun and count_tokens(begun + part) > _BEGINNING:
            return begun.rstrip(" ,，、;；:：") + "…"
        begun += part
    return begun
