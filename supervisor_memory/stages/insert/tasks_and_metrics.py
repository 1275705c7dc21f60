"""Link an agent's conclusions to their task and to the metrics they use.

The host names the task, or the user does by an issue key. What an agent writes names none: "Summary:" and
"UTF-8" stand in any answer.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from itertools import islice

from supervisor_memory.flow import Remembering
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.model.records import FAMILIES, SESSION_FAMILY, Candidate, Filter
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.pre_insert import extract

_RESULTS = ("task-traces", "tool-effects")
_DEFINITIONS = 500
_LONGEST_WORDS = 2_000
_LATEST = 20  # messages of a session, among which is the one that is answered
_TASKS = lexicon("tasks")


def with_tasks(said: Remembering, view: ReadStore) -> Remembering:
    """Make each conclusion a step of its task, where the host or the user has named one."""
    if not any(candidate.kind == "task-traces" for candidate in said.candidates):
        return said
    task = said.scope.task or issue_key(_users_words(said, view))
    return replace(said, candidates=tuple(_with_task(each, task) for each in said.candidates))


def with_metrics(said: Remembering, view: ReadStore) -> Remembering:
    """Let each result of an agent rest on the metrics it uses, as the user has defined them."""
    if not any(each.kind in _RESULTS and each.source.source_class != "user" for each in said.candidates):
        return said
    of_user = Filter(said.scope.user_id, families=(FAMILIES["domain-facts"],), attribute="definition")
    known = view.list(of_user, limit=_DEFINITIONS)
    if not known:
        return said
    resting = extract.resting_on_metrics(said.candidates, said.outcome.asked, known)
    return replace(said, candidates=tuple(resting))


def _with_task(candidate: Candidate, task: str | None) -> Candidate:
    if candidate.kind != "task-traces":
        return candidate
    if task is None and candidate.source.source_class == "user":
        task = issue_key([candidate.content])
    if task is None:
        return candidate
    return replace(candidate, subject=task, attribute=extract.STEPS, value=None)


def issue_key(words: Iterable[str]) -> str | None:
    """The issue key (`AIR-12`, `#12`) that the user's words are about; None: there is none, or several."""
    texts = [unicodedata.normalize("NFKC", text[:_LONGEST_WORDS]) for text in words]
    named = (match for text in texts for match in _TASKS["named"].finditer(text))
    found = {key.casefold() for match in named for key in match.groups() if key is not None}
    if len(found) != 1 or any(map(_TASKS["several"].search, texts)):
        return None
    return found.pop()


def _users_words(said: Remembering, view: ReadStore) -> Iterator[str]:
    """The user's words of this turn: from the turn itself, or from the kept session."""
    yield from (message.content for message in said.messages if message.role == "user")
    if said.outcome.asked:
        yield said.outcome.asked
    elif said.turn_id is not None and said.scope.session_id is not None:
        of_session = Filter(said.scope.user_id, families=(SESSION_FAMILY,), session_id=said.scope.session_id)
        answered = (
            record.content
            for record in view.list(of_session, limit=_LATEST)
            if record.source.source_class == "user" and record.source.message_id == said.turn_id
        )
        yield from islice(answered, 1)
