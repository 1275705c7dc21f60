"""Before retrieval: route a turn by rules, and write the query for it.

Reading is the rule and skipping it the exception: only greetings and acknowledgements need nothing from
memory. Writing is the exception: a sentence must state a lasting preference (→ user-profile) or a
definition (→ domain-facts), in its own words, not as a question and not for one time only.
"""

import unicodedata
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from supervisor_memory.flow import Recalling
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import FAMILIES, Hits, Kind, Query, Route, family_for
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import NoStore
from supervisor_memory.understand.questions import parts_of_question
from supervisor_memory.understand.statements import Statements, is_small_talk, normal, read_statements

_QUERY_CHARACTERS = 8_000
"""A longer question is read to here; embedders stop far earlier, at 256 tokens."""
_READ_BEFORE = 4_000
"""Characters at the start of a text in which a reference to earlier talk is looked for."""
_ABOUT_THE_USER = (FAMILIES["user-profile"], FAMILIES["domain-facts"])
_UNSURE = "task"
"""The reason of a text that neither asks nor states nor refers to earlier talk."""
_ROUTE_SECONDS = 0.3
_CROSS_SESSION = lexicon("sentences").pattern("cross_session")


def route(
    text: str, *, agent_id: str | None = None, prefixes: Mapping[str, str] = MappingProxyType({})
) -> Route:
    """A route: the families to read for a text, and the statements to write.

    `families=()` in the answer means every family of the user: so for the supervisor. For a sub-agent
    they are its own, then the user's profile and the definitions; these two come first when the
    text refers to an earlier conversation.

    Args:
        agent_id: Who is about to work; None is the supervisor.
        prefixes: MEMORY_NAMESPACES, agent → family, where an operator renamed one.
    """
    statements = read_statements(text)
    reading, reason = _reading(text)
    kinds = tuple(dict.fromkeys(s.kind for s in statements.worth_keeping if s.kind))
    return Route(
        should_read=reading,
        should_write=bool(kinds),
        families=_families(agent_id, prefixes, recalls=reason == "cross-session") if reading else (),
        kinds=kinds,
        reasons=tuple(dict.fromkeys((reason, *_writing(statements, kinds)))),
    )


@lru_cache(maxsize=64)  # one question is routed for the supervisor and for each sub-agent
def _reading(text: str) -> tuple[bool, str]:
    """Whether to read, and why."""
    if not any(unicodedata.category(c)[0] in "LN" for c in text):
        return False, "empty"
    said = normal(text[:_READ_BEFORE])
    if is_small_talk(said):
        return False, "small-talk"
    if _CROSS_SESSION.search(said):
        return True, "cross-session"
    statements = read_statements(text)
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


def route_turn(plan: Recalling, view: NoStore) -> Recalling:
    """Decide whether a note is wanted, and from which families. A search has been decided already."""
    turn = plan.turn
    if turn.purpose == "hits":
        return plan
    agent_id, prefixes, by = turn.scope.agent_id, view.settings.namespaces, view.settings.route
    decided = route(turn.text, agent_id=agent_id, prefixes=prefixes)
    if by == "always" and not decided.should_read:
        families = _families(agent_id, prefixes, recalls=False)
        decided = replace(decided, should_read=True, families=families, reasons=(*decided.reasons, by))
    if by == "model" and _UNSURE in decided.reasons and not _is_wanted(turn.text, view):
        decided = replace(decided, should_read=False, families=(), reasons=(*decided.reasons, by))
    return replace(plan, route=decided)


def _is_wanted(text: str, view: NoStore) -> bool:
    """Whether a model says that memory helps; True if it is late or gives no clear answer."""
    asked = view.prompt("route", message=text[:_READ_BEFORE]) if view.has_model else ""
    said = view.complete(asked, seconds=_ROUTE_SECONDS) if asked else None
    return said is None or not said.strip().casefold().startswith("no")


def write_query(plan: Recalling, view: NoStore) -> Recalling:
    """The question and each of its parts, in words and, where an embedder works, as a vector."""
    if not plan.route.should_read:
        return plan
    turn = plan.turn
    # Without lone surrogates, which no embedder takes.
    text = turn.text[:_QUERY_CHARACTERS].encode("utf-8", "replace").decode().strip()
    empty = Query(
        text="",
        now=view.now,
        weights=view.settings.match_weights,
        where=replace(
            turn.where,
            user_id=turn.scope.user_id,
            families=turn.families or plan.route.families or None,
            tasks=turn.scope.tasks,
        ),
    )
    query = asking(text, empty, view)
    if parts := tuple(asking(p, empty, view) for p in parts_of_question(text)):
        query = replace(query, parts=parts)
    told = f"the question has {len(turn.text):,} characters; the first {_QUERY_CHARACTERS:,} were read"
    notes = (told,) if len(turn.text) > _QUERY_CHARACTERS else ()
    return replace(plan, query=query, hits=Hits(notes=notes))


def asking(text: str, empty: Query, view: NoStore) -> Query:
    """The query for a text, everything else as in an empty one."""
    vector = view.embed_query(text) if text else None
    embedder = view.embedder if vector is not None else None
    scale = embedder.calibration if embedder else None
    return Query(
        text,
        empty.where,
        terms(text),
        vector,
        embedder.fingerprint if embedder else None,
        empty.now,
        scale.unrelated if scale else 0.0,
        scale.same if scale else 1.0,
        empty.weights,
        empty.parts,
        empty.names,
    )
