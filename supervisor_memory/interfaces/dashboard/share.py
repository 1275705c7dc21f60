"""Share a record with a team: its text as it would be told, its readers, and its fate."""

from typing import Final

from fastapi.responses import Response

from supervisor_memory.errors import Conflict, InvalidContent
from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.review.promotion import OnErase

_CHOICES: Final[tuple[OnErase, ...]] = ("erase", "anonymise")


def ask(visit: Visit) -> Response:
    visit.asker.as_operator()
    seen = visit.memory.review.preview_promotion(visit.own(visit.part))
    return visit.page("share.html", seen=seen)


def share(visit: Visit) -> Response:
    visit.asker.as_operator()
    id_, told = visit.own(visit.part), visit.form.get("on-erase", "")
    chosen = next((each for each in _CHOICES if each == told), None)
    if chosen is None:
        raise InvalidContent("nobody chose what becomes of it when its author is erased")
    desk = visit.memory.review
    seen = desk.preview_promotion(id_)
    if str(seen.record.version) != visit.form.get("version"):
        raise Conflict("the record was changed since the page was shown; look at it again", record_id=id_)
    # What the page has named and the reviewer has ticked is no person, as a whole.
    names = seen.names if visit.form.get("names-ok") == "yes" else ()
    done = desk.promote(
        id_, reviewer=visit.asker.name, on_erase=chosen, names_ok=names, version=seen.record.version
    )
    return visit.go(f"/records/{done.id}", said="share")
