"""Page 4: the note that an agent would be given for a question. Nothing is changed."""

from dataclasses import replace
from typing import Final

from fastapi.responses import Response

from supervisor_memory.arguments import check_amount, check_threshold
from supervisor_memory.errors import InvalidContent
from supervisor_memory.flow import Turn, recall
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.messages import LONGEST_READ
from supervisor_memory.ports import Ports
from supervisor_memory.records import Message, Note, Scope

__all__ = ["preview", "would_be_told"]

_SECONDS: Final = 10.0
_MOST_TOKENS: Final = 100_000
_MOST_NOTES: Final = 100


def preview(visit: Visit) -> Response:
    settings = visit.memory.settings
    limits = {
        "max_tokens": visit.number(
            "max_tokens", least=0, most=_MOST_TOKENS, otherwise=settings.max_context_tokens
        ),
        "top_k": visit.number("top_k", least=0, most=_MOST_NOTES, otherwise=settings.max_notes),
    }
    threshold = _threshold(visit)
    user_id, question = visit.user_id, visit.asked("question")[:LONGEST_READ]
    note = None
    if user_id is not None and question:
        scope = Scope(user_id, visit.asked("agent") or None)
        note = would_be_told(visit.memory, question, scope, threshold=threshold, **limits)
        visit.looked_at("preview", [each.hit.record for each in note.hits.considered])
    return visit.page(
        "preview.html",
        note=note,
        question=question,
        agent=visit.asked("agent"),
        limits={**limits, "threshold": threshold},
        user_id=user_id,
        users=visit.users(),
    )


def would_be_told(
    memory: SupervisorMemory, question: str, scope: Scope, *, max_tokens: int, top_k: int, threshold: float
) -> Note:
    """The note of `SupervisorMemory.recall` with other limits, explained, and not logged as given to anybody.

    Raises:
        BackendError, DeadlineExceeded: the store failed.
    """
    limits = {"max_context_tokens": max_tokens, "max_notes": check_amount(top_k, what="top_k", least=0)}
    settings = memory.settings.model_copy(update={**limits, "min_score": threshold})
    ports = Ports(replace(memory.services, settings=settings), seconds=_SECONDS, now=memory.services.clock())
    said = (Message("user", question),)
    return recall(Turn(question, scope, messages=said, explain=True), ports, memory.recipe).note


def _threshold(visit: Visit) -> float:
    if not (told := visit.asked("threshold")):
        return visit.memory.settings.min_score
    try:
        asked = check_threshold(float(told))
    except ValueError as error:
        raise InvalidContent("threshold is no number from 0 to 1") from error
    return visit.memory.settings.min_score if asked is None else asked
