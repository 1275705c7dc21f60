"""Decide by rules whether a text calls for memory: to read, to write, both, or neither.

Reading is the rule and skipping it the exception: only greetings and acknowledgements need nothing from
memory. Writing is the exception: a sentence must state a lasting preference (→ user-profile) or a
definition (→ domain-facts), in its own words, not as a question and not for one time only.
"""

import unicodedata
from collections.abc import Mapping
from types import MappingProxyType

from supervisor_memory.language import phrases
from supervisor_memory.model.records import FAMILIES, Kind, Route, family_for
from supervisor_memory.understand.statements import Statements, normal, read_statements

__all__ = ["route"]

_LONGEST_SMALL_TALK = 80
_READ_BEFORE = 4_000
"""Characters at the start of a text in which a reference to earlier talk is looked for."""
_ABOUT_THE_USER = (FAMILIES["user-profile"], FAMILIES["domain-facts"])


def route(
    text: str,
    *,
    agent_id: str | None = None,
    prefixes: Mapping[str, str] = MappingProxyType({}),
) -> Route:
    """Where to read for a text and what to write of it.

    `families=()` in the answer means every family of the user: so for the supervisor. For a sub-agent
    they are its own, then the user's profile and the definitions; these two come first when the
    text refers to an earlier conversation.

    Args:
        agent_id: Who is about to work; None is the supervisor.
        prefixes: MEMORY_NAMESPACES, agent → family, where an operator renamed one.
    """
    statements = read_statements(text)
    reading, reason = _reading(text, statements)
    kinds = tuple(dict.fromkeys(s.kind for s in statements.worth_keeping if s.kind))
    return Route(
        should_read=reading,
        should_write=bool(kinds),
        families=_families(agent_id, prefixes, recalls=reason == "cross-session") if reading else (),
        kinds=kinds,
        reasons=tuple(dict.fromkeys((reason, *_writing(statements, kinds)))),
    )


def _reading(text: str, statements: Statements) -> tuple[bool, str]:
    """Whether to read, and why."""
    if not any(unicodedata.category(c)[0] in "LN" for c in text):
        return False, "empty"
    said = normal(text[:_READ_BEFORE])
    if len(said) <= _LONGEST_SMALL_TALK and phrases.SMALL_TALK.fullmatch(said):
        return False, "small-talk"
    if phrases.CROSS_SESSION.search(said):
        return True, "cross-session"
    if any(statement.does == "asks" for statement in statements.all):
        return True, "question"
    return True, "statement" if statements.worth_keeping else "task"


def _writing(statements: Statements, kinds: tuple[Kind, ...]) -> tuple[str, ...]:
    """The rules that decided about writing: those that fired, or why nothing is written."""
    if statements.refusal:
        return (statements.refusal,)
    if kinds:
        return tuple(statement.reason for statement in statements.worth_keeping)
    silent = ("question", "task", "none")
    return tuple(s.reason for s in statements.all if s.does == "nothing" and s.reason not in silent)


def _families(agent_id: str | None, prefixes: Mapping[str, str], *, recalls: bool) -> tuple[str, ...]:
    if agent_id is None:
        return ()
    own = family_for("task-traces", agent_id, prefixes)
    return (*_ABOUT_THE_USER, own) if recalls else (own, *_ABOUT_THE_USER)
