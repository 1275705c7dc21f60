"""Has specialists read a conversation now, with one answer of a model or one for each operation."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from supervisor_memory.errors import InvalidContent
from supervisor_memory.flow import Outcome, Recipe, Remembering, run
from supervisor_memory.model.records import Source, WriteResult, content_hash
from supervisor_memory.ports import ReadStore, Services
from supervisor_memory.stages.pre_insert.operations import Answered, Heard, answered, asking, by_functions
from supervisor_memory.stages.pre_insert.reply import NO_LIST, listed
from supervisor_memory.stages.pre_insert.sharpen import heard_of, with_answer
from supervisor_memory.stages.pre_insert.specialists import Specialist, open_specialists

NO_MEMORY_NEEDED: Final = "<NO_MEMORY_NEEDED>"
"""What a reflection says of a conversation in which nothing is to be remembered."""
_ROLES: Final = ("user", "assistant", "tool")
_ONE: Final = "Answer with one operation alone; with an empty list when nothing is left to ask for.\n"
_ASKED: Final = "Asked for already:\n{}\n\n"
_MOST_STEPS: Final = 100


@dataclass(frozen=True, slots=True)
class Reflected:
    """The result of a reflection.

    Args:
        results: What became of each statement, in order.
        specialists: Which of them were asked, as name@version.
        steps: Answers of the model; 0: none was asked.
        is_finished: False: the steps ran out, or the model failed, before it said that nothing is left.
        thoughts: What the model thought first, where it was given a place; kept nowhere.
        refused: Why items of its answers were not taken, as codes.
    """

    said: Remembering
    results: tuple[WriteResult, ...] = ()
    specialists: tuple[str, ...] = ()
    steps: int = 0
    is_finished: bool = True
    thoughts: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()

    def with_results(self, results: tuple[WriteResult, ...]) -> "Reflected":
        return replace(self, results=results)

    def __str__(self) -> str:
        """A line for a model: what was kept, or that nothing needed to be."""
        if not self.results:
            return NO_MEMORY_NEEDED
        return "; ".join(f"{each.status} {each.id}".strip() for each in self.results)


class Reflection:
    """One conversation, and the specialists that look at it."""

    def __init__(self, services: Services, recipe: Recipe, said: Remembering, *, thinking: bool) -> None:
        self._services, self._recipe = services, recipe
        self._said, self._thinking = said, thinking

    def run(
        self,
        names: Sequence[str] | None,
        *,
        multi: bool,
        max_steps: int,
        outcome: Outcome | None,
    ) -> Reflected:
        """Read by rules, then ask the model as often as it takes."""
        if isinstance(max_steps, bool) or not isinstance(max_steps, int) or not 1 <= max_steps <= _MOST_STEPS:
            raise InvalidContent(f"max_steps is {max_steps!r}; pass a number from 1 to {_MOST_STEPS}")
        settings = self._services.settings
        known = open_specialists(settings.specialists if names is None else tuple(names))
        ports = self._services.ports(settings.write_timeout_ms)
        view = ports.read_store()
        ruled = run(self._recipe.pre_insert, self._said, view)
        said = replace(ruled, verbatim=(), skipped=())
        if not any(not each.is_special for each in known):  # nobody was asked for what lasts of the user
            said = replace(said, candidates=())
        heard = [*heard_of(self._said, view, roles=_ROLES), *self._told_of(outcome, view)]
        found, functions = by_functions(heard, said.scope, view, specialists=known)
        done = Reflected(
            with_answer(said, found, by="function") if functions else said,
            specialists=tuple(each.key for each in functions),
            refused=(*found.refused, *map(str, ports.faults)),
        )
        if not view.has_model:
            return done
        return self._ask_model(done, heard, known, steps=1 if multi else max_steps, one=not multi)

    def _told_of(self, outcome: Outcome | None, view: ReadStore) -> list[Heard]:
        """The outcome as a line of the exchange."""
        if outcome is None or (outcome.score is None and not outcome.error):
            return []
        scope = self._said.scope
        parts = [] if outcome.score is None else [f"score {outcome.score:g} of 1"]
        parts += [f"error: {outcome.error}"] if outcome.error else ["no error"]
        source = Source("system", None, scope.session_id, scope.run_id)
        text = self._services.redactor.text("outcome: " + ", ".join(parts))
        return [Heard(text, source, "outcome", view.now)]

    def _ask_model(
        self,
        done: Reflected,
        heard: Sequence[Heard],
        known: Sequence[Specialist],
        *,
        steps: int,
        one: bool,
    ) -> Reflected:
        said, functions = done.said, done.specialists
        told: list[str] = []
        while done.steps < steps:
            ports = self._services.ports(self._services.settings.write_timeout_ms)
            view = ports.read_store()
            before = _ONE + (_ASKED.format("\n".join(f"- {each}" for each in told)) if told else "")
            asked = asking(
                heard,
                said.scope,
                view,
                specialists=known,
                thinking=self._thinking,
                before=before if one else "",
            )
            if asked is None:
                return done
            reply = view.complete(asked.prompt, shape=asked.shape)
            done = replace(
                done,
                steps=done.steps + 1,
                specialists=(*functions, *(each.key for each in asked.specialists)),
                is_finished=False,
            )
            if reply is None or (data := listed(reply)) is None:
                return replace(done, refused=(*done.refused, NO_LIST if reply is not None else ports.reasons))
            thought = _thought(reply) if self._thinking else ""
            found = answered(data[:1] if one else data, asked, said.scope, view)
            fresh = _without_known(found, told)
            told += [each.content for _, each in fresh.candidates]
            done = replace(
                done,
                said=with_answer(done.said, fresh),
                thoughts=(*done.thoughts, thought) if thought else done.thoughts,
                refused=(*done.refused, *found.refused),
                is_finished=not one or not fresh.candidates,
            )
            if done.is_finished:
                return done
        return done


def _without_known(found: Answered, told: Sequence[str]) -> Answered:
    """An answer without the operations of earlier answers."""
    known = {content_hash(each) for each in told}
    kept = tuple(pair for pair in found.candidates if content_hash(pair[1].content) not in known)
    return replace(found, candidates=kept)


def _thought(reply: str) -> str:
    """A model's thoughts by their place; "" where it gave none."""
    start = reply.find("{")
    try:
        data, _ = json.JSONDecoder().raw_decode(reply, max(start, 0))
    except (ValueError, RecursionError):
        return ""
    told = data.get("thinking") if isinstance(data, Mapping) else None
    return told if isinstance(told, str) else ""
