"""Tell a group chat, in which people talk with each other, from a conversation with an assistant."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import SESSION_FAMILY, Filter, Record
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.understand.statements import Statement, normal

_LATELY_SAID = 10  # messages


@dataclass(frozen=True, slots=True)
class GroupChat:
    """The fact that an exchange is part of a group chat."""


def is_group_chat(said: Remembering, kept: Iterable[Sequence[Record]], view: ReadStore) -> bool:
    """Whether people with names talk with each other: several, and nobody else, in this session.

    A turn of a graph is said to an assistant, whether or not it has spoken. Where only one person has spoken
    in the session, the user's last messages tell.
    """
    if said.turn_id is not None or any(message.role in ("assistant", "tool") for message in said.messages):
        return False
    heard = [records[0] for records in kept if records]
    users = Filter(said.scope.user_id, families=(SESSION_FAMILY,))
    places = (replace(users, session_id=said.scope.session_id), users)
    for where in places if heard and all(map(_is_of_a_person, heard)) else ():
        before = view.list(where, limit=_LATELY_SAID)
        if not all(map(_is_of_a_person, before)):
            return False
        if len({normal(message.spoken_by or "").casefold() for message in (*heard, *before)}) > 1:
            return True
    return False


def _is_of_a_person(message: Record) -> bool:
    return message.source.source_class == "user" and message.spoken_by is not None


def about_no_user(read: Sequence[Statement]) -> Sequence[Statement]:
    """Drop what states something of the user, and what only the second reader took for a statement.

    What takes something back stays. The words are kept as messages, and told as such, with who said them.
    """
    return list(map(_statement_in_group, read))


def _statement_in_group(found: Statement) -> Statement:
    if found.kind is None:
        return replace(found, learned=None)
    if found.retracts is None and (found.kind == "user-profile" or found.is_learned):
        return Statement(found.text, "nothing", "among-people", start=found.start)
    return found
