"""The list in a model's answer, however it is wrapped: in prose, in a fence, under a key, or cut off."""

import json
from collections.abc import Iterator, Mapping

NO_LIST = "the-model-answered-no-json-list"
_MOST_READ = 400_000
"""Characters of an answer; twenty statements need a hundredth of it."""
_MOST_TRIED = 200
_MOST_ITEMS = 200


def listed(reply: str) -> list[object] | None:
    """The items that a model answered; None when there is no list and no object with a statement in it.

    Of several lists the first that holds objects counts. An answer that was cut off gives the objects that
    are whole. At most two hundred items are read: `extract.sift` keeps the first few that are sound.
    """
    reply = reply[:_MOST_READ]
    is_empty = False
    for value in _values(reply, "["):
        if isinstance(value, list):
            if any(isinstance(item, Mapping) for item in value):
                return value[:_MOST_ITEMS]
            is_empty = is_empty or not value
    objects = [
        value
        for value in _values(reply, "{")
        if isinstance(value, Mapping) and ("content" in value or "do" in value)
    ]
    if objects:
        return list(objects[:_MOST_ITEMS])
    return [] if is_empty else None


def _values(reply: str, opening: str) -> Iterator[object]:
    """The JSON values that begin with a bracket, outermost first, one behind the other."""
    decoder = json.JSONDecoder()
    at, tried = reply.find(opening), 0
    while at >= 0 and tried < _MOST_TRIED:
        tried += 1
        try:
            value, end = decoder.raw_decode(reply, at)
        except (ValueError, RecursionError):
            end = at + 1
        else:
            yield value
        at = reply.find(opening, end)
