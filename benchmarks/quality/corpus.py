"""What is remembered and what is asked of it: a corpus is all that one user's memory holds.

A file of dialogues or facts is JSON: `{"conversations": [{"id", "asked", "turns", "questions"}]}`. A turn is
`{"id", "text"}`, in a dialogue also `session`, `t` (seconds since 1970) and `speaker`; a fact has `kind`
instead. A question is `{"q", "cat", "evidence"}` with the ids of the turns that answer it. `asked`, which may
be missing, is when the questions are asked: "last May" means something else next year.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .locomo import as_conversation

__all__ = ["Corpus", "Item", "Question", "read_corpora", "read_merges"]

_LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
_MERGES = ("duplicate", "conflict")
_DAY = 86_400
_FIRST_DAY = 1_735_689_600  # 2025-01-01; a file of write attempts numbers its days


@dataclass(frozen=True, slots=True)
class Item:
    """One text to remember; a fact by itself has no speaker and no time."""

    id: str
    text: str
    speaker: str | None = None
    created_at: float | None = None

    @property
    def said(self) -> str:
        """The text as a transcript shows it."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, of what sort it is, and the ids of the items that answer it."""

    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Corpus:
    """All that one memory holds, in order, and its questions. `asked` None: they are asked today."""

    id: str
    items: tuple[Item, ...]
    questions: tuple[Question, ...]
    asked: float | None = None


def read_corpora(path: Path) -> list[Corpus]:
    """The conversations of a file, or its collections of facts; LoCoMo's own file is read as it is.

    Raises:
        KeyError: an entry lacks what it must have.
        ValueError: an id is there twice, or a question's evidence is no item.
    """
    told = json.loads(path.read_text(encoding="utf-8"))
    conversations = map(as_conversation, told) if isinstance(told, list) else told["conversations"]
    return [_corpus(each) for each in conversations]


def _corpus(conversation: Mapping[str, Any]) -> Corpus:
    corpus = Corpus(
        id=conversation["id"],
        items=tuple(
            Item(turn["id"], turn["text"], turn.get("speaker"), turn.get("t"))
            for turn in conversation["turns"]
        ),
        questions=tuple(
            Question(each["q"], _LOCOMO.get(each["cat"], each["cat"]), tuple(each["evidence"]))
            for each in conversation["questions"]
        ),
        asked=conversation.get("asked"),
    )
    known = {item.id for item in corpus.items}
    if len(known) != len(corpus.items):
        raise ValueError(f"{corpus.id}: an id is there twice")
    for question in corpus.questions:
        if not question.evidence or not known.issuperset(question.evidence):
            raise ValueError(f"{corpus.id}: {question.text!r} has evidence that is no item")
    return corpus


def read_merges(path: Path) -> dict[str, list[Corpus]]:
    """Write attempts with labels, as questions by language: do duplicates and conflicts find what they mean?

    A line of the file is `{"stream", "id", "lang", "content", "day", "label": {"relation", "of"}}`. Each
    duplicate and each conflict asks for the line that its label names. What it is asked of is the stream
    before it, as right decisions would have left it: no duplicates, and nothing that a conflict replaced.

    Raises:
        ValueError: a label names a line that such a memory would not hold.
    """
    streams: dict[str, list[Mapping[str, Any]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        streams.setdefault(entry["stream"], []).append(entry)
    found: dict[str, list[Corpus]] = {}
    for entries in streams.values():
        found.setdefault(entries[0]["lang"], []).extend(_attempts(entries))
    return dict(sorted(found.items()))


def _attempts(entries: Sequence[Mapping[str, Any]]) -> Iterator[Corpus]:
    held: dict[str, Item] = {}
    for entry in entries:
        label = entry["label"]
        if label["relation"] in _MERGES:
            if label["of"] not in held:
                raise ValueError(f"{entry['id']} is about {label['of']}, which is not held any more")
            question = Question(entry["content"], label["relation"], (label["of"],))
            yield Corpus(entry["id"], tuple(held.values()), (question,), _FIRST_DAY + _DAY * entry["day"])
        if label["relation"] == "conflict":
            del held[label["of"]]
        if label["relation"] != "duplicate":
            when = _FIRST_DAY + _DAY * entry["day"]
            held[entry["id"]] = Item(entry["id"], entry["content"], created_at=when)
