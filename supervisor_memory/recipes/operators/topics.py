"""Topics as chores: group the records of a tier by topic, and draw a portrait of the user from hot topics. A
topic is a record that is made from its pages."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from supervisor_memory.flow import Chore, Due
from supervisor_memory.model.records import MADE_FROM, TIER, Filter, Query, Record
from supervisor_memory.ports import ReadStore
from supervisor_memory.recipes.operators.answers import texts_of, told_in
from supervisor_memory.recipes.operators.compress import leading
from supervisor_memory.recipes.operators.derived import made_from
from supervisor_memory.recipes.operators.retention import everything
from supervisor_memory.recipes.operators.tiers import visits
from supervisor_memory.signals.index import GAP_SECONDS
from supervisor_memory.stores.protocol import Change

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

TOPIC, PORTRAIT, KNOWLEDGE = "topic", "portrait", "knowledge"
"""Tags: a topic, a user's portrait, a line of knowledge."""
KEYWORDS: Final = "keywords"
"""The metadata key for a topic's keywords."""
_ANALYSED: Final = "analysed"  # the metadata key for a topic's visits and pages when it was last read
_LONGEST, _MOST_PAGES = 400, 50  # characters of a page that a model is shown; pages
_MOST_TOPICS, _MOST_WORDS, _MOST_LINES = 5, 10, 20  # of an answer
_NEAREST: Final = 50  # topics that one is compared with
_TOKENS: Final = 100  # of a topic's text where no model words it

Joining: TypeAlias = Callable[[float, Sequence[str], Sequence[str]], float]
"""From the cosine of two topics, and the keywords of both, to how well they are one."""
Heat: TypeAlias = Callable[[int, int, float], float]
"""From visits, pages and hours since the last visit to how hot a topic is."""


@dataclass(frozen=True, slots=True)
class _Theme:
    """The topic of some pages: a text and keywords."""

    text: str
    keywords: tuple[str, ...] = ()


def gather_topics(tier: str, joining: Joining, *, joins_from: float) -> Chore:
    """A chore: each page of a tier gets the best topic above a threshold, or a new one.

    A model names the topics of some pages, which belong to each of them. Without one the pages of an episode
    have one topic, which grows with it.
    """

    def plan(user_id: str, view: ReadStore) -> Sequence[Due]:
        there = [*everything(user_id, view)]
        topics = _Topics({r.id: r for r in there if TOPIC in r.tags}, joining, joins_from, view)
        known = {id: each.version for id, each in topics.records.items()}
        held = {id for record in topics.records.values() for id in record.made_from}
        for episode in _episodes([r for r in there if r.metadata.get(TIER) == tier and not r.made_from]):
            waiting = [page for page in episode if page.id not in held]
            for theme in _themes(waiting, view) if waiting else ():
                into = topics.of_words(theme, waiting[0]) if theme.keywords else topics.of_pages(episode)
                topics.put(waiting, theme, tier, into)
        return [
            Due(Change(each, expects=known.get(each.id)), f"{len(each.made_from)} pages")
            for each in topics.changed.values()
        ]

    return Chore("gather_topics", plan)


class _Topics:
    """The topics of a user as a plan has them so far."""

    def __init__(
        self, records: dict[str, Record], joining: Joining, joins_from: float, view: ReadStore
    ) -> None:
        self.records, self.changed = records, dict[str, Record]()
        self._joining, self._joins_from, self._view = joining, joins_from, view
        self._new: dict[str, Vector] = {}

    def of_pages(self, pages: Sequence[Record]) -> Record | None:
        """The topic that holds one of some pages."""
        ids = {page.id for page in pages}
        return next((each for each in self.records.values() if not ids.isdisjoint(each.made_from)), None)

    def of_words(self, theme: _Theme, page: Record) -> Record | None:
        """The nearest topic a theme fits; None: no topic fits."""
        (vector,), embedder = self._view.embed([theme.text]), self._view.embedder
        if vector is None or embedder is None:
            return None
        where = Filter(page.user_id, tasks=(page.task,), tags=(TOPIC,))
        asked = Query("", where, (), vector, embedder.fingerprint, now=self._view.now)
        near = {h.record.id: h.parts.get("cosine", 0.0) for h in self._view.search(asked, limit=_NEAREST)}
        near |= {id: float(vector @ each) for id, each in self._new.items()}
        scores = {
            id: self._joining(cosine, theme.keywords, self.records[id].metadata.get(KEYWORDS) or ())
            for id, cosine in near.items()
            if id in self.records
        }
        best = max(scores, key=scores.__getitem__, default=None)
        return self.records[best] if best is not None and scores[best] >= self._joins_from else None

    def put(self, pages: Sequence[Record], theme: _Theme, tier: str, into: Record | None) -> None:
        """Add pages to a topic; None: to a new one."""
        now = self._view.now
        if into is None:
            told: dict[str, Any] = {TIER: tier, KEYWORDS: [*theme.keywords]}
            made = made_from(pages, theme.text, tag=TOPIC, now=now, **told)
            (vector,) = self._view.embed([theme.text]) if theme.keywords else (None,)
            self._new |= {} if vector is None else {made.id: vector}
        else:
            held = [*dict.fromkeys((*into.made_from, *(page.id for page in pages)))]
            made = replace(into, metadata={**into.metadata, MADE_FROM: held}, updated_at=now)
        self.records[made.id] = self.changed[made.id] = made


def _episodes(pages: Sequence[Record]) -> Iterator[Sequence[Record]]:
    """Pages in order of time, cut where the task or conversation changes or half an hour passes."""
    found = sorted(pages, key=_time_key)
    starts = [0, *(n for n, (one, next_) in enumerate(pairwise(found), start=1) if _is_apart(one, next_))]
    yield from (found[at:end] for at, end in pairwise([*starts, len(found)]))


def _time_key(record: Record) -> tuple[str, str, float, str]:
    return record.task or "", record.source.session_id or "", record.created_at, record.id


def _is_apart(one: Record, other: Record) -> bool:
    return _time_key(one)[:2] != _time_key(other)[:2] or other.created_at - one.created_at > GAP_SECONDS


def _themes(pages: Sequence[Record], view: ReadStore) -> Sequence[_Theme]:
    """What the model says that pages are about; where it says nothing, their first sentences."""
    told = told_in(view.complete(view.prompt("topics", pages=_as_list(pages)))) if view.has_model else {}
    given = told.get("topics")
    found = [
        _Theme(each["summary"].strip(), tuple(texts_of(each.get("keywords"), most=_MOST_WORDS)))
        for each in (given if isinstance(given, list) else [])
        if isinstance(each, dict) and isinstance(each.get("summary"), str) and each["summary"].strip()
    ]
    firsts = " ".join(leading(page.content, most_tokens=1, count_tokens=view.count_tokens) for page in pages)
    short = leading(firsts, most_tokens=_TOKENS, count_tokens=view.count_tokens)
    return [each for each in found if each.keywords][:_MOST_TOPICS] or [_Theme(short)]


def _as_list(pages: Sequence[Record]) -> str:
    return "\n".join(f"- {page.content[:_LONGEST]}" for page in pages[:_MOST_PAGES])


def draw_portrait(tier: str, heat: Heat, *, hot_from: float) -> Chore:
    """A chore that has a model read the new pages of each hot topic, for a portrait and knowledge.

    There is one portrait a task, which is written anew. Knowledge is kept in a tier, line by line. A topic's
    visits and pages count from 0 again. Without a model nothing is due.
    """

    def plan(user_id: str, view: ReadStore) -> Sequence[Due]:
        there = {record.id: record for record in everything(user_id, view)} if view.has_model else {}
        topics = [record for record in there.values() if TOPIC in record.tags]
        asked = dict.fromkeys(id for topic in topics for id in topic.made_from)
        reads = dict(view.reads([*asked])) if asked else {}
        portraits = {r.task: r for r in there.values() if PORTRAIT in r.tags}
        before = dict(portraits)
        due: list[Due] = []
        for topic in topics:
            seen, (visited, counted) = visits(topic, reads), topic.metadata.get(_ANALYSED) or (0, 0)
            pages = [there[id] for id in topic.made_from[counted:] if id in there]
            since = max(seen.last_at or 0.0, topic.updated_at)
            found = heat(max(seen.times - visited, 0), len(pages), (view.now - since) / 3_600)
            if found < hot_from or not pages:
                continue
            portrait, why = portraits.get(topic.task), f"heat {found:.1f}, from {hot_from:g}"
            text, lines = _read(pages, portrait, view)
            kept: dict[str, Any] = {TIER: tier}
            new = [made_from(pages, each, tag=KNOWLEDGE, now=view.now, **kept) for each in lines]
            due += (Due(Change(each), why) for each in new)
            if text:
                sources = [
                    *(there[id] for id in (portrait.made_from if portrait else ()) if id in there),
                    *pages,
                ]
                drawn = made_from(sources, text, tag=PORTRAIT, now=view.now)
                portraits[topic.task] = (
                    replace(portrait, content=text, metadata=drawn.metadata, updated_at=view.now)
                    if portrait
                    else drawn
                )
            counts = [seen.times, len(topic.made_from)]
            after = replace(topic, metadata={**topic.metadata, _ANALYSED: counts}, updated_at=view.now)
            due.append(Due(Change(after, expects=topic.version), why))
        for task, after in portraits.items():
            if after != (known := before.get(task)):
                due.append(Due(Change(after, expects=known.version if known else None), "of hot topics"))
        return due

    return Chore("draw_portrait", plan)


def _read(pages: Sequence[Record], portrait: Record | None, view: ReadStore) -> tuple[str, Sequence[str]]:
    """The model's portrait from pages, "" without any, and lines of knowledge."""
    known = portrait.content if portrait else "none"
    told = told_in(view.complete(view.prompt("portrait", portrait=known, pages=_as_list(pages))))
    text = told.get("portrait")
    said = text.strip() if isinstance(text, str) and text.strip().casefold() != "none" else ""
    return said, texts_of(told.get("knowledge"), most=_MOST_LINES)
