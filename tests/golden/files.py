"""The golden files: name → the lines that it should hold.

A line is a sentence or a pair as JSON, a tab, and what is said of it, as JSON with sorted keys. The commonest
answer is left out; the first line of a file shows it.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import benchmarks.junk.replay
from benchmarks.merging.lines import Line, read_lines
from benchmarks.merging.replay import FIRST_DAY, replay
from benchmarks.quality.corpus import Item, read_corpora
from tests.golden import asked

__all__ = ["FILES", "HERE"]

HERE = Path(__file__).parent
BENCHMARKS = HERE.parent.parent / "benchmarks"
JUNK = ("en", "zh", "second_en", "second_zh", "third_en", "third_zh")
MERGING = ("en", "zh", "pairs")
QUALITY = ("en", "zh", "facts_en", "facts_zh")
QUESTIONS = 60
USER = "reader"

Lines: TypeAlias = Iterator[str]
Asked: TypeAlias = Callable[[str], dict[str, Any]]


def as_json(value: object) -> str:
    return json.dumps(_rounded(value), ensure_ascii=False, sort_keys=True)


def _rounded(value: object) -> object:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {name: _rounded(each) for name, each in value.items()}
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _digest(value: object) -> str:
    return hashlib.sha256(as_json(value).encode()).hexdigest()[:12]


def sentences() -> list[str]:
    """The frozen list: texts of benchmarks and tests, a JSON string a line."""
    lines = (HERE / "sentences.jsonl").read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def of_sentences(ask: Asked, usual: str, every: int) -> Lines:
    """The result for every n-th sentence, except the commonest result."""
    yield f"left out: {usual}"
    for sentence in sentences()[::every]:
        if (answer := as_json(ask(sentence))) != usual:
            yield f"{as_json(sentence)}\t{answer}"


# --- pairs


def _lines(name: str) -> list[Line]:
    return read_lines(BENCHMARKS / "merging" / f"{name}.jsonl")


def labelled_pairs() -> Lines:
    """All evidence of each pair that a label names, and the verdict with no other rival."""
    for name in MERGING:
        lines = _lines(name)
        texts = {line.id: line.content for line in lines}
        for line in lines:
            if line.of is not None:
                old, new = texts[line.of], line.content
                [bare], [near] = (asked.verdicts_on(new, [old], with_vectors=each) for each in (False, True))
                yield f"{line.of} {line.id} {as_json(old)} {as_json(new)}"
                yield f"  verdict {as_json(bare)}, with vectors {as_json(near)}"
                yield f"  evidence {as_json(asked.evidence_of(old, new))}"


_SHARE_NOTHING = ("no word in common", "little in common")


def pairs(name: str) -> Lines:
    """The verdicts on every second line and each earlier one of its stream, with a digest of the evidence."""
    yield f"left out: apart, both without and with vectors, with {' or '.join(_SHARE_NOTHING)}"
    for _, stream in groupby(_lines(name), key=lambda line: line.stream):
        lines = list(stream)
        for nth in range(1, len(lines), 2):
            new, known = lines[nth], [line.content for line in lines[:nth]]
            evidence = [asked.evidence_of(text, new.content) for text in known]
            yield f"{new.id} {as_json(new.content)}\tevidence {_digest(evidence)}"
            both = [asked.verdicts_on(new.content, known, with_vectors=each) for each in (False, True)]
            for old, *found in zip(lines[:nth], *both, strict=True):
                if any(each.get("apart") not in _SHARE_NOTHING for each in found):
                    yield f"  {new.id} and {old.id}\t{as_json(found[0])}\t{as_json(found[1])}"


# --- whole stores


def merged(name: str, *, with_vectors: bool) -> Lines:
    """The result of each written line, then the records of the store, then the audit rows."""
    lines = _lines(name)
    with asked.opened(with_vectors=with_vectors) as memory:
        for each in replay(lines, memory):
            yield f"{each.id}\t{' '.join(filter(None, (each.decision, each.into, each.reason)))}"
        yield from _store(memory, [line.stream for line in lines])


def remembered() -> Lines:
    """The same for the turns of the junk sets, each by a user of its own."""
    for name in JUNK:
        yield f"== {name}"
        with asked.opened(with_vectors=False) as memory:
            replayed = benchmarks.junk.replay.judged(memory, benchmarks.junk.replay.read(name))
            for each in replayed:
                yield f"{each.line.role} {as_json(each.line.text)}\t{as_json(each.stored)}"
            yield from _store(memory, [f"reader-{number}" for number in range(len(replayed))])


def remembered_of_one(*, with_vectors: bool) -> Lines:
    """The same with all turns by one user, so that later turns meet the records of earlier ones."""
    with asked.opened(with_vectors=with_vectors) as memory:
        for line in (line for name in JUNK for line in benchmarks.junk.replay.read(name)):
            if line.role == "user":
                for text in filter(None, (line.before, line.text)):
                    results = asked.said(memory, text, USER)
                    yield f"{as_json(text)}\t{as_json([f'{each.status} {each.reason}' for each in results])}"
        yield from _store(memory, [USER])


def _store(memory: Any, users: Iterable[str]) -> Lines:
    records, rows = asked.held(memory, users)
    yield from ("-- records", *map(as_json, records), "-- audit", *map(as_json, rows))


# --- notes


def recalled(name: str, *, with_vectors: bool) -> Lines:
    """For the questions of a set: the ids and the text of the note, and the best hits, relevant or not."""
    corpora = read_corpora(BENCHMARKS / "quality" / f"{name}.json")
    asked_of = [(corpus, question) for corpus in corpora for question in corpus.questions]
    count = min(QUESTIONS, len(asked_of))
    chosen = [asked_of[nth * len(asked_of) // count] for nth in range(count)]
    for corpus, questions in groupby(chosen, key=itemgetter(0)):
        with asked.opened(with_vectors=with_vectors, now=corpus.asked) as memory:
            ids = {_kept(memory, item, nth): item.id for nth, item in enumerate(corpus.items)}
            for _, question in questions:
                found, text = asked.note(memory, question.text, USER)
                hits = asked.hits(memory, question.text, USER)
                yield as_json(question.text)
                yield f"  hits {' '.join(ids[each] for each in hits)}"
                yield f"  note {' '.join(ids[each] for each in found)}".rstrip()
                yield from (f"  | {line}".rstrip() for line in text.split("\n") if text)


def _kept(memory: Any, item: Item, nth: int) -> str:
    """A line of a dialogue is kept as it was said; a fact, which nobody said, is written."""
    if item.speaker is None:
        return str(memory.write(item.text, user_id=USER, created_at=FIRST_DAY + nth * 3_600).id)
    line = {"content": item.text, "speaker": item.speaker, "created_at": item.created_at}
    [result] = memory.add_many([line], user_id=USER)
    return str(result.id)


_ANSWERS: Mapping[str, tuple[Asked, str, int]] = {
    "statements": (asked.stated_in, '{"sentences": [{"does": "nothing", "reason": "none"}]}', 1),
    "users_turns": (asked.users_turn, '{"unkept": "no-statement"}', 1),
    "explicit_writes": (asked.explicit_write, '{"kind": "domain-facts"}', 2),
    "agents_answers": (asked.agents_answer, '{"kept_whole": true}', 1),
    "definitions": (asked.definition, "{}", 1),
    "preferences": (asked.preference, "{}", 2),
    "people": (asked.spoken_of, "{}", 1),
    "slots": (asked.slots_of, "{}", 1),
    "routes": (
        asked.routes,
        '{"families_of_an_agent": ["analyst_memories", "user_profile", "domain_facts"], "reads": true, '
        '"reasons": ["task"]}',
        2,
    ),
}
"""File → what is asked of a sentence, the commonest answer, and of how many sentences one is asked."""

FILES: Mapping[str, Callable[[], Lines]] = {
    **{name: partial(of_sentences, *answers) for name, answers in _ANSWERS.items()},
    "labelled_pairs": labelled_pairs,
    **{f"pairs_{name}": partial(pairs, name) for name in MERGING},
    **{f"merged_{name}": partial(merged, name, with_vectors=False) for name in MERGING},
    **{f"merged_{name}_vectors": partial(merged, name, with_vectors=True) for name in MERGING},
    "remembered": remembered,
    "remembered_of_one": partial(remembered_of_one, with_vectors=False),
    "remembered_of_one_vectors": partial(remembered_of_one, with_vectors=True),
    **{f"recalled_{name}": partial(recalled, name, with_vectors=False) for name in QUALITY},
    **{f"recalled_{name}_vectors": partial(recalled, name, with_vectors=True) for name in QUALITY},
}
