"""Pairs to calibrate by: a query, and a memory that answers or repeats it.

Half of them are a question and the fact that answers it, half two wordings of one fact. Each pair has
a subject of its own, so that a query and the memory of another pair are unrelated. All are written in
the manner of memories, because unrelated memories are more alike than unrelated sentences: most begin
with "The user". They are in pairs.toml.

The first six of each language are the short set for embedders that charge by the call.
"""

import tomllib
from collections.abc import Mapping, Sequence
from importlib.resources import files

Pair = tuple[str, str]

PAIRS: Mapping[str, Sequence[Pair]] = {
    language: tuple((query, memory) for query, memory in pairs)
    for language, pairs in tomllib.loads(files(__package__).joinpath("pairs.toml").read_text("utf-8")).items()
}
"""The pairs of each language, by its two letters."""
