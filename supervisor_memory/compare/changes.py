"""Judge by its words whether a sentence reads like a change: a correction, a new value, an ending.

Logistic regression over the features of the second reader (`understand/learned.py`), trained by
`benchmarks/pairing.py` on the corrections and endings of benchmarks/sentences. Words like "from now on" are
one of many signs: "Sorry, I got that wrong", 说错了, "we ditched Trello". The weights are in changes.json.
"""

import json
import math
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.resources import files

from supervisor_memory.understand.learned import features, weights
from supervisor_memory.understand.statements import normal

_MOST = 3.0
_LONGEST = 1_000  # characters that are read


@lru_cache(maxsize=2_048)
def change(text: str) -> float:
    """How much a text reads like a change: log odds, between -3 and 3; above 0 more likely than not."""
    known = [weight for each in marks(text) if (weight := _weights().get(each))]
    score = _weights()[""] + sum(known) / math.sqrt(len(known) or 1)
    return max(-_MOST, min(_MOST, score))


def marks(text: str) -> list[str]:
    """The features that are weighed, in one order, so that sums agree to the last digit."""
    return sorted(features(normal(text[:_LONGEST]), weights().common))


@cache
def _weights() -> Mapping[str, float]:
    found = json.loads(files(__package__).joinpath("changes.json").read_text("utf-8"))
    return {name: weight / 100 for name, weight in found.items()}
