"""Read the JSON of a model's answer."""

import json
from collections.abc import Mapping
from typing import Any


def told_in(answer: str | None) -> Mapping[str, Any]:
    """The JSON object in an answer, whatever stands around it; empty where there is none."""
    text = answer or ""
    try:
        told = json.loads(text[text.index("{") : text.rindex("}") + 1])
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def texts_of(told: object, *, most: int) -> list[str]:
    """The first texts in the list by a model; none, if there is no such list."""
    given = told if isinstance(told, list) else []
    return [each.strip() for each in given if isinstance(each, str) and each.strip()][:most]
