"""Keep what was said, word for word, as session messages."""

import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter

from supervisor_memory.errors import ContentTooLarge, InvalidContent
from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import (
    MAX_MESSAGE_BYTES,
    SESSION_FAMILY,
    Message,
    Record,
    Source,
    check_content,
    parts_of_message,
)
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.post_retrieval.quotable import UNSURE
from supervisor_memory.stages.pre_insert.own_words import own_words

_RECORDS = uuid.UUID("6f1d5a52-6d0e-5d43-9a34-0f2b1c1f7a10")
_APART = 1e-6  # seconds between two messages of one turn; times since 1970 have no finer place


def keep_messages(said: Remembering, view: ReadStore) -> Remembering:
    """Keep what was said, word for word, as session messages; what cannot be kept is reported as skipped."""
    if said.is_given:
        return said
    spoken = [m for m in said.messages if m.role in ("user", "assistant")]
    skipped = tuple(code for message in spoken if (code := _obstacle(message)))
    kept = chain.from_iterable(session_messages(said, view))
    return replace(said, skipped=(*said.skipped, *skipped), verbatim=(*said.verbatim, *kept))


def session_messages(said: Remembering, view: NoStore) -> Sequence[Sequence[Record]]:
    """The session messages that each message becomes: several for a long message, none for an unkept one."""
    made = said.fact(_SessionMessages)
    return made.records if made and made.made_of == _made_of(said) else _new_session_messages(said, view)


def with_session_messages(said: Remembering, view: NoStore) -> Remembering:
    """The exchange with its session messages as a fact, so that later operators need not make them again."""
    return said.with_fact(_SessionMessages(_made_of(said), _new_session_messages(said, view)))


@dataclass(frozen=True, slots=True)
class _SessionMessages:
    """A fact of an exchange: its session messages, and the values from which they were made."""

    made_of: tuple[object, ...]
    records: Sequence[Sequence[Record]]


_made_of = attrgetter("messages", "scope", "turn_id", "created_at", "keeps_messages", "is_unsure")


def _new_session_messages(said: Remembering, view: NoStore) -> Sequence[Sequence[Record]]:
    """Make the session messages.

    Their ids come from what was said and where, so that a turn that runs again adds nothing. Their times are
    a microsecond apart, so that what was said at once stays in order.
    """
    keeps = view.settings.keep_messages if said.keeps_messages is None else said.keeps_messages
    if not keeps or said.scope.session_id is None:
        return [()] * len(said.messages)
    when = view.now if said.created_at is None else said.created_at
    seen: Counter[tuple[str, str]] = Counter()
    kept: list[Sequence[Record]] = []
    place = 0
    for message in said.messages:
        is_kept = message.role in ("user", "assistant") and _obstacle(message) is None
        parts = parts_of_message(strip_notes(message.content)) if is_kept else ()
        records = []
        for nth, text in enumerate(parts):
            seen[message.role, text] += 1
            of_part = replace(message, id=f"{message.id}|{nth}") if nth and message.id else message
            id_ = _session_message_id(said, of_part, text, seen[message.role, text])
            records.append(_session_message(said, message, text, id_, when + (place + nth) * _APART))
        kept.append(records)
        place += max(1, len(parts))
    return kept


def _session_message_id(said: Remembering, message: Message, text: str, nth: int) -> str:
    """The id of a session message: the same whenever the words are said again in the same place.

    Args:
        nth: How often these words were said in this exchange so far, this time included.
    """
    scope = said.scope
    words = f"{message.role}|{message.name}|{text}|{nth}"
    if said.turn_id is None:
        place = message.id or words
    else:  # a model that is asked again gives its answer another id
        place = f"{(message.role == 'user' and message.id) or said.turn_id}|{words}"
    key = f"{scope.user_id}\0{scope.session_id}\0{place}".encode(errors="backslashreplace")
    return str(uuid.uuid5(_RECORDS, key.decode()))


def _session_message(said: Remembering, message: Message, text: str, id_: str, when: float) -> Record:
    scope = said.scope
    where = (scope.session_id, scope.run_id, message.id, message.name)
    is_user = message.role == "user"
    return Record(
        id=id_,
        namespace=scope.namespace(SESSION_FAMILY),
        content=text,
        kind="task-traces",
        layer="history",
        metadata={UNSURE: True} if said.is_unsure else {},
        created_at=when,
        updated_at=when,
        source=Source("user", None, *where) if is_user else Source("agent", message.name, *where),
    )


def _obstacle(message: Message) -> str | None:
    """Why a message cannot be kept, as a code; "" when there is nothing in it, None when it can."""
    text = strip_notes(message.content)
    if message.role == "assistant" and not own_words(text):
        return ""
    try:
        check_content(text, most=MAX_MESSAGE_BYTES)
    except ContentTooLarge:
        return "content-too-large"
    except InvalidContent:
        return "content-unreadable" if text.strip() else ""
    return None
