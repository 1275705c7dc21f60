"""Page 4: the note that an agent would be given for a question. Nothing is changed."""

from typing import Any, Final

from fastapi.responses import Response

from supervisor_memory.errors import InvalidContent
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.model.arguments import LONGEST_READ
from supervisor_memory.model.records import Scope

_MOST_TOKENS: Final = 100_000
_MOST_NOTES: Final = 100


def preview(visit: Visit) -> Response:
    now = visit.memory.settings
    limits: dict[str, Any] = {
        "max_context_tokens": visit.number(
            "max_tokens", least=0, most=_MOST_TOKENS, otherwise=now.max_context_tokens
        ),
        "max_notes": _most_lines(visit),
        "min_score": _threshold(visit),
    }
    user_id, question = visit.user_id, visit.asked("question")[:LONGEST_READ]
    note = None
    if user_id is not None and question:
        scope = Scope(user_id, visit.asked("agent") or None)
        note = visit.memory.preview(question, scope, settings=limits)
    return visit.page(
        "preview.html",
        note=note,
        question=question,
        agent=visit.asked("agent"),
        limits=limits,
        user_id=user_id,
        users=visit.users(),
    )


def _most_lines(visit: Visit) -> int | None:
    if not visit.asked("top_k"):
        return visit.memory.settings.max_notes
    return visit.number("top_k", least=0, most=_MOST_NOTES, otherwise=0)


def _threshold(visit: Visit) -> float:
    if not (told := visit.asked("threshold")):
        return visit.memory.settings.min_score
    try:
        threshold = float(told)
    except ValueError:
        threshold = -1.0
    if not 0 <= threshold <= 1:
        raise InvalidContent("threshold is no number from 0 to 1")
    return threshold
