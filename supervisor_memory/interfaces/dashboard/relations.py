"""Page 10: the neighbours of a thing or a record, and the path between two; drawn here, without a script."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from fastapi.responses import Response

from supervisor_memory.interfaces.dashboard.visit import Visit
from supervisor_memory.interfaces.printable import one_line
from supervisor_memory.model.arguments import LONGEST_READ
from supervisor_memory.model.records import Hit, Scope
from supervisor_memory.reading.relations import Neighbour, Step

_PAGE: Final = 16
_HITS: Final = 5
_ROW: Final = 46
_STEP: Final = 76
_LABEL: Final = 24
_TEXT: Final = 80


class Box(NamedTuple):
    """A thing in a picture: its centre, its name, cut to fit, and the address it links to."""

    x: int
    y: int
    label: str
    about: str


class Line(NamedTuple):
    """A line between two boxes, with their relation and the record that states it; "": no record."""

    x1: int
    y1: int
    x2: int
    y2: int
    label: str
    record_id: str

    @property
    def middle(self) -> tuple[int, int]:
        return (self.x1 + self.x2) // 2, (self.y1 + self.y2) // 2


@dataclass(frozen=True, slots=True)
class Picture:
    """Boxes and the lines between them; `half` is half the width of a box."""

    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int = 800
    half: int = 95


def star(name: str, about: str, beside: Sequence[Neighbour], alone: str) -> Picture:
    """A thing in the middle, its neighbours on the left and on the right.

    Args:
        alone: What is said of a neighbour that no relation is known of.
    """
    height = _ROW * max((len(beside) + 1) // 2, 1) + 20
    middle = Box(400, height // 2, one_line(name, most=_LABEL), about)
    boxes, lines = [middle], []
    for place, each in enumerate(beside):
        x, y = (100 if place % 2 else 700), 30 + place // 2 * _ROW
        boxes.append(
            Box(x, y, one_line(each.thing.name, most=_LABEL), each.thing.record_id or each.thing.name)
        )
        label = one_line(_spoken(each.relationships) or alone, most=_LABEL)
        lines.append(Line(middle.x, middle.y, x, y, label, each.record_ids[0] if each.record_ids else ""))
    return Picture(height, tuple(boxes), tuple(lines))


def _spoken(relationships: Iterable[str]) -> str:
    return ", ".join(relationships).replace("_", " ")


def chain(boxes: Sequence[tuple[str, str]], joints: Sequence[tuple[str, str]]) -> Picture:
    """Things one below the other, each with its relation to the next.

    Args:
        boxes: The name of each, and what it leads to.
        joints: What joins each to the next, and the record that says so; one fewer.
    """
    placed = [
        Box(400, 25 + at * _STEP, one_line(name, most=_TEXT), about) for at, (name, about) in enumerate(boxes)
    ]
    lines = [
        Line(400, one.y, 400, other.y, one_line(label, most=_LABEL), record_id)
        for one, other, (label, record_id) in zip(placed, placed[1:], joints, strict=False)
    ]
    return Picture(25 + _STEP * (len(boxes) - 1) + 25, tuple(placed), tuple(lines), half=330)


def of_steps(steps: Sequence[Step], alone: str) -> Picture:
    """The path between two things as a picture."""
    things = [steps[0].source, *(each.destination for each in steps)]
    named = [(each.name, each.record_id or each.name) for each in things]
    return chain(named, [(_spoken([each.relationship]) or alone, each.record_id) for each in steps])


def of_hit(hit: Hit, texts: dict[str, str]) -> Picture:
    """The path from the first hit to a neighbour that the search added, record by record.

    Args:
        texts: Of records, by id.
    """
    ids = [joint.record_id or "" for joint in hit.path]
    boxes = [(texts.get(id_, id_), id_) for id_ in ids]
    return chain([*boxes, (hit.record.content, hit.record.id)], [(joint.name, "") for joint in hit.path])


def relations(visit: Visit) -> Response:
    user_id = visit.user_id
    about, to = visit.asked("about")[:200].strip(), visit.asked("to")[:200].strip()
    question = visit.asked("question")[:LONGEST_READ].strip()
    alone = visit.say("beside")
    told = picture = way = None
    offset = visit.number("offset", least=0, most=1_000_000, otherwise=0)
    if user_id is not None and about:
        told = visit.memory.relations(about, user_id=user_id, to=to or None, limit=_PAGE, offset=offset)
        name = told.records[about].content if about in told.records else about
        if told.names:
            picture = star(name, about, told.neighbours, alone)
        way = of_steps(told.path, alone) if told.path else None
    hits = (
        list(_hits_with_paths(visit, Scope(user_id).user_id, question))
        if user_id is not None and question
        else None
    )
    asked = {"user": user_id or "", "about": about, "to": to, "question": question}
    return visit.page(
        "relations.html", told=told, picture=picture, way=way, hits=hits, asked=asked, users=visit.users()
    )


def _hits_with_paths(visit: Visit, user_id: str, question: str) -> Iterable[tuple[Hit, Picture | None]]:
    """The hits of a question, each with its path where it is a neighbour of another hit."""
    hits = visit.memory.search(question, user_id=user_id, limit=_HITS)
    texts = {hit.record.id: hit.record.content for hit in hits}
    far = {joint.record_id for hit in hits for joint in hit.path if joint.record_id} - texts.keys()
    texts |= {
        each.id: each.content for each in visit.memory.upkeep.records(sorted(far)) if each.user_id == user_id
    }
    for hit in hits:
        yield hit, of_hit(hit, texts) if hit.path else None
