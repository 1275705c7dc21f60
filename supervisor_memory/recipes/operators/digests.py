"""Digests as a chore: what was said and kept on a day becomes one more record, made from the others."""

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from supervisor_memory.flow import Chore, Due
from supervisor_memory.language.terms import has_cjk
from supervisor_memory.model.records import Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.operators.compress import leading
from supervisor_memory.recipes.operators.derived import made_from
from supervisor_memory.recipes.operators.retention import DAY, everything
from supervisor_memory.stores.protocol import Change

DIGEST: Final = "digest"
"""The tag of a digest, and of a digest alone."""
_FEWEST: Final = 2
_MOST_SOURCES: Final = 200


def daily(*, most_tokens: int = 200) -> Chore:
    """A chore: digest each finished day, by a model or by leading sentences.

    When all that a digest was made from is forgotten it is forgotten too. Users' namespaces stay apart, and
    so do tasks.

    Args:
        most_tokens: Of a digest's text where no model words it.
    """

    def plan(user_id: str, view: ReadStore) -> Sequence[Due]:
        of_day: defaultdict[tuple[str | None, int], list[Record]] = defaultdict(list)
        digests: list[Record] = []
        there: set[str] = set()
        for record in everything(user_id, view):
            there.add(record.id)
            if DIGEST in record.tags:
                digests.append(record)
            elif not record.made_from:
                of_day[record.task, int(record.created_at // DAY)].append(record)
        due = [_due_to_forget(each, view.now) for each in digests if not there.intersection(each.made_from)]
        known = {(each.task, each.metadata.get("day")) for each in digests}
        today = int(view.now // DAY)
        for (task, day), records in sorted(of_day.items(), key=lambda pair: pair[0][1]):
            if day < today and len(records) >= _FEWEST and (task, _date(day)) not in known:
                due.append(_due_digest(day, records, view, most_tokens=most_tokens))
        return due

    return Chore("daily_digest", plan)


def _due_to_forget(digest: Record, now: float) -> Due:
    forgotten = replace(digest, status="deleted", updated_at=now, valid_to=now)
    return Due(Change(forgotten, expects=digest.version), "all that it was made from is forgotten")


def _due_digest(day: int, records: Sequence[Record], view: ReadStore, *, most_tokens: int) -> Due:
    """The digest of a day; its sources are told in the order in which they were said."""
    said = sorted(records, key=lambda record: (record.created_at, record.id))[:_MOST_SOURCES]
    text = "\n".join(record.content for record in said)
    words = view.complete(view.prompt("summary", goal="a diary", notes=text)) if view.has_model else None
    joint = "" if has_cjk(text) else " "
    firsts = joint.join(leading(r.content, most_tokens=1, count_tokens=view.count_tokens) for r in said)
    short = leading(firsts, most_tokens=most_tokens, count_tokens=view.count_tokens)
    told = words.strip() if words and words.strip() else short
    new = made_from(said, f"{_date(day)}: {told}", tag=DIGEST, now=view.now, day=_date(day))
    return Due(Change(new), f"{len(said)} records of {_date(day)}")


def _date(day: int) -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(day * DAY))
