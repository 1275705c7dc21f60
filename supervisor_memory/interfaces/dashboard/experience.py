"""Page 8: guidelines of tools with their evidence, times told, and whether they helped."""

from typing import Final

from fastapi.responses import Response

from supervisor_memory.interfaces.dashboard.visit import Visit

_MOST: Final = 200


def experience(visit: Visit) -> Response:
    withdrawn = visit.asked("withdrawn") == "yes"
    found = visit.memory.experience.guidelines(
        user_id=visit.user_id, tool=visit.asked("tool") or None, withdrawn=withdrawn, limit=_MOST
    )
    return visit.page(
        "experience.html",
        guidelines=found,
        asked={"user": visit.user_id or "", "tool": visit.asked("tool"), "withdrawn": withdrawn},
        users=visit.users(),
    )


def withdraw(visit: Visit) -> Response:
    id_ = visit.own(visit.part)
    visit.memory.experience.withdraw(id_, reviewer=visit.asker.name)
    return visit.go("/experience", said="withdraw", user=visit.form.get("user", ""))
