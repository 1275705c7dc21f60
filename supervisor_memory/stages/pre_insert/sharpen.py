"""Let functions and the model read an exchange, and change or add to the candidates of the rules."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from supervisor_memory.flow import Remembering
from supervisor_memory.model.arguments import LONGEST_READ
from supervisor_memory.model.records import Source, content_hash
from supervisor_memory.model.replacing import replace
from supervisor_memory.ports import NoStore, ReadStore
from supervisor_memory.stages.pre_insert.group_chat import GroupChat
from supervisor_memory.stages.pre_insert.own_words import readable, storable
from supervisor_memory.stages.pre_insert.session_messages import session_messages
from supervisor_memory.stages.pre_insert.specialists import functions_of

if TYPE_CHECKING:
    from supervisor_memory.stages.pre_insert.operations import Answered, Heard


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """Tells that a model has read the exchange, so that merging asks none."""


def sharpen(said: Remembering, view: ReadStore) -> Remembering:
    """Add the findings of function specialists, then those of the model, which is asked once.

    Nonsense of either is dropped, never an error.
    """
    if said.is_given:
        return said
    if functions_of(view.settings.specialists):
        from supervisor_memory.stages.pre_insert.operations import by_functions

        found, _ = by_functions(heard_of(said, view), said.scope, view)
        said = with_answer(said, found, by="function")
    if not view.has_model:
        return said
    from supervisor_memory.stages.pre_insert.operations import answered, asking
    from supervisor_memory.stages.pre_insert.reply import NO_LIST, listed

    scope = said.scope
    asked = asking(heard_of(said, view), scope, view)
    reply = None if asked is None else view.complete(asked.prompt, shape=asked.shape)
    if asked is None or reply is None:
        return said
    if (data := listed(reply)) is None:
        return replace(said, skipped=(*said.skipped, NO_LIST))
    return with_answer(said, answered(data, asked, scope, view))


def heard_of(
    said: Remembering, view: NoStore, *, roles: Collection[str] = ("user", "assistant")
) -> "list[Heard]":
    """The messages of these roles, as a model is shown them."""
    from supervisor_memory.stages.pre_insert.operations import Heard

    scope, when = said.scope, view.now if said.created_at is None else said.created_at
    heard: list[Heard] = []
    left = LONGEST_READ
    for message, kept in zip(said.messages, session_messages(said, view), strict=True):
        text = readable(message.content)[:left]
        if message.role not in roles or not text:
            continue
        left -= len(text)
        source = Source("user", None, scope.session_id, scope.run_id, message.id, message.name)
        if message.role == "assistant":
            source = replace(source, source_class="agent", agent_id=scope.agent_id, message_id=said.turn_id)
        who: str = message.role
        if message.role == "tool":
            source = replace(source, source_class="tool", agent_id=scope.agent_id, speaker=None)
            who = f"tool {message.name}" if message.name else "tool"
        ref_id = kept[0].id if kept else None
        heard.append(Heard(text, source, who, when, ref_id))
    return heard


def with_answer(said: Remembering, told: "Answered", *, by: str = "model") -> Remembering:
    """Add a model's findings to the exchange, in place of the rules' candidates that they reword.

    Args:
        by: "model", or "function": then a model is still asked.
    """
    if by == "model":
        said = said.with_fact(ModelAsked())
    ruled = (
        each for each in said.candidates if (each.event, content_hash(each.content)) not in told.given_way
    )
    found = [candidate for _, candidate in told.candidates]
    refused = [*told.refused]
    if said.fact(GroupChat):
        proposed = len(found)
        found = [each for each in found if each.kind != "user-profile" or each.event == "DELETE"]
        refused += ["among-people"] * (proposed - len(found))
    return replace(
        said,
        candidates=(*ruled, *storable(found)),
        unkept=(*said.unkept, *(f"{by}:{code}" for code in refused)),
    )
