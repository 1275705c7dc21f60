"""Which task a conclusion is a step of: the one that the host names, or the user by an issue key.

What an agent writes names no task: "Summary:" and "UTF-8" stand in any answer.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from supervisor_memory.flow import Remembering
from supervisor_memory.model.records import SESSION_FAMILY, Candidate, Filter
from supervisor_memory.ports import ReadStore

__all__ = ["STEPS", "issue_key", "of_their_tasks"]

STEPS = "steps"
"""The attribute of a record that holds the steps of a task; its subject is the task."""

_LONGEST_READ = 2_000
_LATEST = 20  # messages of a session, among which is the one that is answered
_KEY = r"(?-i:[A-Z][A-Z0-9]{0,9}-\d{1,7}|#\d{1,7})(?![\w-]|[.,]\d)"
_LABEL = (
    r"(?:update|progress|status|findings?|takeaways?|conclusions?|results?|notes?|summary|进展|更新|结论|结果)"
    r"(?: (?:of|from|by) \w+)?"
)
_WORK = (
    r"\b(?:tasks?|tickets?|issues?|jobs?|projects?|stor(?:y|ies)|bugs?|epics?|cases?)\s|"
    r"任务|工单|项目|需求|缺陷"
)
_GOES_ON = (
    r"\b(?:continu(?:e|ing)|resum(?:e|ing)|proceed|go(?:ing)? (?:on|back)|carry(?:ing)? on|back|work(?:ing)?|"
    r"start(?:ing)?|begin|finish(?:ing)?|clos(?:e|ing)|progress|status|news)(?: (?:on|with|to|of|for))*\s|"
    r"继续|处理|跟进|推进|开始|完成"
)
_NAMED = re.compile(
    rf"(?:^|[.!?,。！？，])\W*(?:(?:for|on|re|about|regarding|关于|针对)\s*)?"
    rf"(?P<at_head>{_KEY})(?: ?{_LABEL})?\s*(?:[:：,，]|$)"
    rf"|[\[(（【](?P<inside>{_KEY})[\])）】]"
    rf"|(?:{_WORK})\s*(?P<of_work>{_KEY})"
    rf"|(?:{_GOES_ON})\s*(?P<gone_on_with>{_KEY})(?!\s*[A-Za-z])",
    re.MULTILINE | re.IGNORECASE,
)
"""Where a key names what the words are about: at their head, in brackets, behind a word for work, or as what
is gone on with. "COVID-19 cases" and "as UTF-8" name no task."""

_SEVERAL = re.compile(
    rf"{_KEY}(?:\s*(?:,|/|&|、|and|or|with|to|和|与|及|到)\s*)+(?:{_WORK})?\s*{_KEY}", re.IGNORECASE
)


def of_their_tasks(said: Remembering, view: ReadStore) -> Remembering:
    """The same with each conclusion as a step of its task, where somebody has named one."""
    if not any(candidate.kind == "task-traces" for candidate in said.candidates):
        return said
    task = said.scope.task or issue_key(_users_words(said, view))
    return replace(said, candidates=tuple(_of_its_task(each, task) for each in said.candidates))


def _of_its_task(candidate: Candidate, task: str | None) -> Candidate:
    if candidate.kind != "task-traces":
        return candidate
    if task is None and candidate.source.source_class == "user":
        task = issue_key([candidate.content])
    return candidate if task is None else replace(candidate, subject=task, attribute=STEPS, value=None)


def issue_key(words: Iterable[str]) -> str | None:
    """The issue key (`AIR-12`, `#12`) that the user's words are about; None: there is none, or several."""
    texts = [unicodedata.normalize("NFKC", text[:_LONGEST_READ]) for text in words]
    named = (match for text in texts for match in _NAMED.finditer(text))
    found = {key.casefold() for match in named for key in match.groups() if key is not None}
    if any(map(_SEVERAL.search, texts)):
        return None
    return found.pop() if len(found) == 1 else None


def _users_words(said: Remembering, view: ReadStore) -> Iterator[str]:
    """What the user said in this turn: told with it, or kept of the session."""
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
