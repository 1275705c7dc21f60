"""Extractors of your own: functions that pick from a conversation the facts worth remembering.

    recipe = replace(DEFAULT, pre_insert=(*DEFAULT.pre_insert, extracting(find_ticket_numbers)))
    SupervisorMemory(recipe=recipe)

What an extractor finds comes on top of what the rules found, and is checked like a stranger's input: see
docs/extracting.md.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from supervisor_memory.flow import Gathering, Remembering
from supervisor_memory.language.terms import terms
from supervisor_memory.model.arguments import LONGEST_READ
from supervisor_memory.model.records import Candidate, Message, Source, content_hash
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stages.pre_insert.own_words import storable

Extractor: TypeAlias = Callable[[Sequence[Message]], object]
"""From what was said to what is worth remembering: a list of mappings, pydantic objects or texts.

Each has a `content`, and where it is known a `kind`, `subject`, `attribute`, `value` and `confidence` in
[0, 1]. A text alone is taken as what `memory.write` makes of it. Notes of ours are not in the messages.
"""

_LEAST_SURE = 0.05
_OWN_WORDS = 2 / 3
"""Share of a statement's terms that must be the user's for it to be the user's statement."""


def extracting(extractor: Extractor, *, name: str | None = None) -> Gathering:
    """An operator of the pre-insert stage that asks an extractor, in the time that is left.

    One that fails or hangs is a step without which memory goes on: the rules' findings stand, and the audit
    says `degraded` with its name.

    Args:
        name: Who it is, in the audit and in `metadata["extracted"]["by"]`. None: the function's own name.
    """
    called = name or str(getattr(extractor, "__name__", type(extractor).__name__))

    def operator(said: Remembering, view: ReadStore) -> Remembering:
        told = () if said.is_given else tuple(_conversation_of(said))
        if not told:
            return said
        answer = view.attempt(called, lambda: extractor(told))
        if answer is None:
            return said
        scope = said.scope
        source = Source("user", scope.agent_id, scope.session_id, scope.run_id)
        sifted = extract.sift(_with_kinds(answer), source=source)
        known = {content_hash(each.content) for each in said.candidates}
        new = (each for each in sifted.candidates if content_hash(each.content) not in known)
        sure = (replace(each, confidence=max(each.confidence, _LEAST_SURE)) for each in new)
        spoken = [(each, by_its_speaker(each, told)) for each in sure]
        found = (extract.noted(each, by=called) for _, each in spoken if each is not None)
        refused = (*sifted.unkept, *("not-the-users-words" for _, each in spoken if each is None))
        return replace(
            said,
            candidates=(*said.candidates, *storable(found)),
            unkept=(*said.unkept, *(f"{called}:{code}" for code in refused)),
        )

    return operator


def by_its_speaker(found: Candidate, messages: Iterable[Message]) -> Candidate | None:
    """Attribute a fact to the user if most words are the user's, else to the agent; an agent's fact is no
    preference or trait of the user."""
    own = {term for m in messages if m.role == "user" for term in terms(m.content)}
    words = terms(found.content)
    if sum(term in own for term in words) >= _OWN_WORDS * len(words):
        return found
    if found.kind in ("user-profile", "identity"):
        return None
    return replace(found, source=replace(found.source, source_class="agent"))


def _conversation_of(said: Remembering) -> Iterator[Message]:
    """The messages of the user and the agents, with an agent's outcome."""
    for message in said.messages:
        if message.role in ("user", "assistant") and (text := strip_notes(message.content[:LONGEST_READ])):
            yield replace(message, content=text)
    answer = said.outcome.final_answer
    if isinstance(answer, str) and (text := strip_notes(answer[:LONGEST_READ])):
        yield Message("assistant", text, said.scope.agent_id)


def _with_kinds(answer: object) -> object:
    """Turn bare texts into items, with the kind that the rules tell."""
    if isinstance(answer, str):
        answer = [answer]
    if not isinstance(answer, (list, tuple)):
        return answer
    return [_item(each) for each in answer[: extract.MOST_READ + 1]]


def _item(each: object) -> object:
    if not isinstance(each, str):
        return each
    short = each[: extract.MAX_CONCLUSION]
    return {"content": each, "kind": extract.describe(short).kind if short.strip() else "domain-facts"}
