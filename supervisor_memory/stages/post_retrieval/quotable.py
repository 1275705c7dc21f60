"""Which session messages may be quoted: none that no longer holds, no orders, no echo of a note."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from typing import Final

from supervisor_memory.compare.verdict import Compared, verdicts
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Hit, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.understand.rejection import gives_orders, is_echo
from supervisor_memory.understand.statements import asks_once, read_statements, sentences, without_pasted

UNSURE: Final = "is_unsure"  # the metadata key of messages that may be another's words
SAID_KEPT: Final = "said_kept"
"""The metadata key for the version of a record that was set aside, while its messages may be told."""
_NOT_KNOWN: Final = ("pending", "quarantined")
_ALL: Final = 100_000
_SOON: Final = 1_800.0
_LEAST_SHARED = 2
_COMPARED = 8
_SHORT = 300
_DELETED = 200  # of the latest messages that were deleted, which replies may repeat
_MOST_READ = 8_000  # characters of a message
_SOME_WORDS = 4
_MISSING = 0.2  # of the terms


@dataclass(frozen=True, slots=True)
class Became:
    """The messages that may not be quoted, and why.

    Args:
        untold: The ids of those to leave out.
        read_as: Message id → the ids of visible records that say the same.
        outdated: Message id → the terms that hold no more, of those to leave out only for a statement that
            another took the place of. What has none of them is about something else.
    """

    untold: frozenset[str] = frozenset()
    read_as: Mapping[str, frozenset[str]] = field(default_factory=dict)
    outdated: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def may_hold(self, message_id: str, text: str) -> bool:
        """Whether a text from a message, or from the reply to it, may be quoted, though a later statement may
        have replaced the message."""
        if message_id not in self.untold:
            return True
        gone = self.outdated.get(message_id)
        return gone is not None and gone.isdisjoint(terms(text))


def what_became(messages: Sequence[Record], view: ReadStore) -> Became:
    """Find the session messages that may not be quoted, by the records that were read from them.

    A message is left out as a whole, also where only one of its statements was replaced, retracted, deleted,
    rejected or quarantined. A statement that waits for review is not known yet, so its message is left out
    until somebody approves. Records that are expired, forgotten or merged into a summary hide nothing.
    """
    if not messages:
        return Became()
    contents = {message.id: message.content for message in messages}
    asked = frozenset(contents)
    users = {message.namespace[1] for message in messages}
    user_id = users.pop() if len(users) == 1 else None
    where = Filter(user_id, statuses=None, ref_ids=tuple(sorted(asked)))
    whole: set[str] = set()
    outdated: defaultdict[str, set[str]] = defaultdict(set)
    read_as: defaultdict[str, set[str]] = defaultdict(set)
    for record in view.list(where, limit=_ALL):
        if record.status in _NOT_KNOWN:  # so that it changes nothing
            whole.update(record.present_ref_ids)
            continue
        whole.update(record.ref_ids if hides(record) else ())
        for message in asked.intersection(record.former_ref_ids):
            gone = _outdated(contents[message], record.content)
            outdated[message] |= gone
            whole.update(() if gone else (message,))
        for message in record.present_ref_ids if record.is_visible(view.now) else ():
            read_as[message].add(record.id)
    told = {message: frozenset(ids) for message, ids in read_as.items() if message in asked}
    partly = {message: frozenset(gone) for message, gone in outdated.items() if message not in whole}
    return Became(asked & (whole | outdated.keys()), told, partly)


@lru_cache(maxsize=1_024)
def _outdated(text: str, later: str) -> frozenset[str]:
    """The terms of the replaced sentence that the later statement lacks.

    All terms of the sentence where the later one has them all, as with an added "not". Empty where no
    sentence of the text is near the later statement.
    """
    held = frozenset(terms(later))
    every = [frozenset(terms(each)) for each in sentences(text[:_MOST_READ])]
    words = max(every, key=lambda each: len(each & held), default=frozenset[str]())
    if len(words & held) < max(_LEAST_SHARED, min(len(words), len(held)) / 2):
        return frozenset()
    return words - held or words


def said_again(
    told: Sequence[Hit], hidden: Sequence[Record], view: ReadStore, *, answers_deleted: bool = True
) -> Iterator[str]:
    """The ids of replies that repeat a statement of a hidden message or answer a hidden message.

    Args:
        answers_deleted: Whether those are meant, too, that answer a deleted message and repeat nothing of it.
    """
    replies = {hit.record.id: hit for hit in told if not is_users(hit.record)}
    if not replies:
        return
    asked = {id_: _answered(hit.record, view) for id_, hit in replies.items()}
    answered = [*chain(*asked.values())]
    became = what_became([*answered, *hidden], view)
    deleted_ids = {each.id for each in answered if each.status != "active"} if answers_deleted else set()
    of_user = Filter(told[0].record.user_id, families=(SESSION_FAMILY,), statuses=("deleted",))
    deleted = view.list(of_user, limit=_DELETED)
    gone = became.untold | deleted_ids
    every = [*hidden, *deleted, *(message for message in answered if message.id in gone)]
    stated = [
        text
        for message in every
        for text in _statements(message.content)
        if message.status != "active"
        or message.id not in became.outdated
        or not became.may_hold(message.id, text)
    ]
    for id_, hit in replies.items():
        text = hit.excerpt or ""
        held = [frozenset(terms(text))]
        answers_gone = any(m.id in deleted_ids or not became.may_hold(m.id, text) for m in asked[id_])
        if answers_gone or any(repeats(each, held) for each in stated):
            yield id_


@lru_cache(maxsize=1_024)
def _statements(text: str) -> tuple[str, ...]:
    """The sentences of a text that tell something: statements, and others with some words."""
    stated = (each.text for each in read_statements(text).worth_keeping if terms(each.text))
    others = (each for each in sentences(text[:_MOST_READ]) if len(set(terms(each))) >= _SOME_WORDS)
    return tuple(dict.fromkeys((*stated, *others)))


def _answered(reply: Record, view: ReadStore) -> Sequence[Record]:
    """The user's message that a reply came soon after, in its session, if there is one."""
    at = reply.created_at
    where = replace(
        Filter.beside(reply), statuses=None, session_id=reply.source.session_id, since=at - _SOON, until=at
    )
    return [*filter(is_users, view.list(where, limit=_COMPARED))][:1]


def hides(record: Record) -> bool:
    """Whether a record hides its messages from notes, by its status."""
    if record.status in ("stale", "deleted"):
        return record.metadata.get(SAID_KEPT) != record.version
    return record.status in _NOT_KNOWN


def with_said_kept(record: Record) -> Record:
    """The record about to be set aside, so that it hides no message in its next version."""
    return replace(record, metadata={**record.metadata, SAID_KEPT: record.version + 1})


def may_be_told(message: Record, excerpt: str | None = None, *, requests: bool = False) -> bool:
    """Whether a session message may be in a note, by the same checks as records: no orders, no echo of notes.

    Args:
        excerpt: The part to be told; None: all of it.
        requests: Whether what the user asked for once may be told too, which a digest says was asked.
    """
    by_user = is_users(message)
    told = message.content if excerpt is None else excerpt
    if requests and by_user:
        return _gives_no_orders(told, message.content, by_user)
    return _may_be_told(told, message.content, by_user)


@lru_cache(maxsize=4_096)
def _gives_no_orders(text: str, message: str, by_user: bool) -> bool:  # noqa: FBT001
    is_own = by_user and without_pasted(message) == message
    return strip_notes(text) == text and not gives_orders([*sentences(text)], by_others=not is_own)


@lru_cache(maxsize=4_096)
def _may_be_told(text: str, message: str, by_user: bool) -> bool:  # noqa: FBT001
    if not _gives_no_orders(text, message, by_user):
        return False
    return not (len(text) <= _SHORT and asks_once(text)) if by_user else not is_echo(text)


def replaced(records: Sequence[Hit], excerpts: Sequence[Hit], became: Became, least: float) -> set[str]:
    """The ids of excerpts whose statement the user plainly replaced by one that a record holds.

    Excerpts of messages that a visible record tells are not judged once more: the write path has done it,
    and with their vectors.
    """
    unread = (hit for hit in excerpts[:_COMPARED] if hit.record.id not in became.read_as)
    first = [hit for hit in unread if is_users(hit.record)]
    newer = [hit.record for hit in records[:_COMPARED] if hit.record.source.source_class == "user"]
    gone: set[str] = set()
    for new in newer:
        older = [old for old in first if _may_be_replaced(old, new)]
        known = [Compared.of(old.excerpt or "", new.content, None) for old in older]
        judged = zip(verdicts(new.content, known, None) if known else (), older, strict=True)
        gone |= {old.record.id for verdict, old in judged if verdict.about >= least and verdict.instead == 1}
    return gone


def _may_be_replaced(old: Hit, new: Record) -> bool:
    text, later = old.excerpt or "", new.content
    if old.record.created_at >= new.updated_at or max(len(text), len(later)) > _SHORT:
        return False
    return len(frozenset(terms(text)) & frozenset(terms(later))) >= _LEAST_SHARED


def repeats(sentence: str, told: Sequence[frozenset[str]]) -> bool:
    """Whether one of the given texts has nearly all terms of a sentence, and all its numbers."""
    words = frozenset(terms(sentence))
    missing = (words - each for each in told)
    return any(len(m) <= _MISSING * len(words) and not any(map(str.isdigit, m)) for m in missing)


def is_users(message: Record) -> bool:
    """Whether a message is the user's own, not an assistant's, a worker's or a tool's."""
    return message.source.source_class == "user" and not message.is_reply
