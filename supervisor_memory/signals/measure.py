"""All signals of a question over the records of some namespaces, and the match that orders them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import DEFAULT, FrozenDict, Weights
from supervisor_memory.signals.index import K1, Floats, Index, Layout, Rows, bm25, idf
from supervisor_memory.understand.dates import DAY, FACT_DATED, OTHER_YEAR, YEAR, DateRange
from supervisor_memory.understand.names import kin, named_people
from supervisor_memory.understand.questions import asks_for_a_reply, dates_asked_for


def scaled(scores: Floats) -> Floats:
    """Scores from 0 to 1, where the best of the list is 1; negative numbers and NaN count as 0."""
    positive, best = _positive(scores)
    return positive / best if best > 0 else positive


def _weighed(scores: Floats, weight: float) -> Floats:
    """The same, times a weight."""
    positive, best = _positive(scores)
    if best > 0:
        positive *= np.float32(weight / best)
    return positive


def _positive(scores: Floats) -> tuple[Floats, float]:
    """The scores, where negative numbers and NaN are 0, and the best."""
    positive: Floats = np.fmax(scores, _NO_SCORE)
    return positive, float(np.maximum.reduce(positive, initial=0.0))


_NO_SCORE = np.float32(0)


def base(
    signals: Mapping[str, Floats], weights: Weights = DEFAULT, *, alone: npt.NDArray[np.bool_] | None = None
) -> Floats:
    """The direct signals as one, from 0 to 1.

    Args:
        signals: Any of "meaning", "words" and "words_before", all of one length, at least one.
        alone: True for rows with nothing said before them. Their two signals of words are equal, and count
            as one beside meaning. None: there are no such rows.
    """
    weighed = {name: _weighed(each, getattr(weights, name)) for name, each in signals.items()}
    by_meaning = weighed.pop("meaning", _NOTHING)
    by_words: Floats = reduce(np.add, weighed.values()) if weighed else _NOTHING
    total: Floats = by_meaning + by_words
    if alone is not None and "meaning" in signals:
        once, twice = weights.words or weights.words_before, weights.words + weights.words_before
        # By the same sum of weights as other rows, so that being alone is no advantage.
        stretch = np.float32((weights.meaning + twice) / (weights.meaning + once))
        total = np.where(alone, (by_meaning + by_words * np.float32(once / twice)) * stretch, total)
    return scaled(total)


_SHORTEST_TAIL, _LONGEST_TAIL = 7 * DAY, 30 * DAY
_AHEAD = 0.5


def date_match(
    ranges: Sequence[DateRange], times: npt.NDArray[np.float64], now: float
) -> npt.NDArray[np.float32]:
    """How well each time fits the times that a question names, in [0, 1]; all 0 when it names none.

    1 inside a range. People speak of a day in the days after it, so behind its end the fit falls by
    exp(-t/tail), where the tail is as long as the range, but at least a week and at most a month. Ahead of
    the range the tail is half as long, for plans and for clocks ahead of UTC; it is whole for a range that
    is still to come at `now`, since people can only have spoken of it ahead. A range without a year fits
    every year: the latest fully, the others by 0.8. The best of several ranges counts.

    Args:
        times: Seconds since 1970. NaN fits nothing.
        now: Seconds since 1970.
    """
    fit = np.zeros(times.shape, dtype=np.float32)
    for each in ranges:
        np.maximum(fit, _fit(each, times, now), out=fit)
    return fit


def _fit(each: DateRange, times: npt.NDArray[np.float64], now: float) -> npt.NDArray[np.float32]:
    tail = min(max(each.end - each.start, _SHORTEST_TAIL), _LONGEST_TAIL)
    tail_ahead = tail if each.start > now else tail * _AHEAD
    with np.errstate(invalid="ignore"):  # infinite times against open ends
        late, early = times - each.end, each.start - times
        if each.year_open:
            # Around the year each time is both behind and ahead; the better of the two counts.
            behind, ahead = np.mod(late, YEAR), np.mod(early, YEAR)
            fit = np.maximum(np.exp(-behind / tail), np.exp(-ahead / tail_ahead))
            fit = np.where(np.mod(-early, YEAR) < each.end - each.start, 1.0, fit)
            fit = np.where(np.abs(early) > YEAR / 2, OTHER_YEAR * fit, fit)
        else:
            fit = np.exp(-np.maximum(late, 0.0) / tail - np.maximum(early, 0.0) / tail_ahead)
    return np.nan_to_num(fit, nan=0.0).astype(np.float32)


def neighbours(layout: Layout, scores: Floats) -> Floats:
    """The better score of the rows said just before and just after; 0 where there is neither."""
    known = _and_nothing(scores)
    return np.maximum(known[layout.before], known[layout.after])


def answers(layout: Layout, scores: Floats) -> Floats:
    """The score of the row said just before, where somebody else asks a question in it; else 0."""
    found = np.zeros(len(layout), dtype=np.float32)
    found[layout.answering] = scores[layout.before[layout.answering]]
    return found


def _and_nothing(scores: Floats) -> Floats:
    """The scores with a 0 behind them, which is at -1, too."""
    return np.concatenate((scores, _NOTHING))


Cosines = tuple[Rows, Floats]
"""Rows of an index, and their cosines with the question."""
_NOTHING: Floats = np.zeros(1, dtype=np.float32)
_ABSENT = -2.0
_LEAST = np.float32(1e-6)
_BY_ROLES = {"neighbour": 0.5, "answer": 0.0, "information": 0.0}
"""The share of a signal that counts where a user speaks to an assistant, or nobody is named. A request
follows an answer there as often as it asks for one, and the longest turns are the assistant's."""
_RELATES = {"neighbour", "answer", "date"}  # to a question, though nothing of it is in the record
_MOST_CELLS = 1 << 20
_MOST_SPEAKERS = 500
_NAMES_WITHIN = 1_000  # characters of a question in which names are looked for


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, as the signals read it.

    Args:
        terms: Its different terms.
        now: Seconds since 1970; "yesterday" is the day before.
        unrelated: The cosine up to which texts have nothing in common.
        is_cut: Whether it may have more terms than these.
        names: Of these terms, those by which it names something.
    """

    text: str
    terms: Sequence[str]
    now: float
    unrelated: float = 0.0
    is_cut: bool = False
    names: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """The signals of all rows, removed records included, one index after the other.

    Attributes:
        match: The sum that orders the rows; see `fuse`.
        bm25: 0 where no term is shared.
        cosine: -2 where there is no vector to compare.
        context: The share of the question's terms in a row and what was said before it, in [0, 1].
        coverage: The share of them in the row itself; None: the question has more terms than were looked for.
        added: The signals that add to the base of a match, in [0, 1]; without those that are 0 in all rows.
        found: Which rows have anything to do with the question.
        names: 1 for rows with a name of the question in them or in what was said before; None: it has none.
    """

    match: Floats
    bm25: Floats
    cosine: Floats
    context: Floats
    share: Floats
    coverage: npt.NDArray[np.float64] | None
    added: Mapping[str, Floats]
    found: npt.NDArray[np.bool_]
    names: Floats | None = None

    def parts(self, rows: Sequence[int]) -> Sequence[FrozenDict]:
        """Signals of each row by name, without zeros and unknown ones."""
        signals = {"bm25": self.bm25, "context": self.context, "share": self.share, **self.added}
        others = {"cosine": self.cosine, "match": self.match, "coverage": self.coverage}
        columns = [
            *((name, values, 0.0) for name, values in (*signals.items(), ("names", self.names))),
            *((name, values, _ABSENT) for name, values in others.items()),
        ]
        places = np.array(rows, dtype=np.intp)
        found: list[dict[str, float]] = [{} for _ in rows]
        for name, values, absent in columns:
            if values is None:
                continue
            for parts, value in zip(found, values[places].tolist(), strict=True):
                if value > absent:
                    parts[name] = value
        return [*map(FrozenDict, found)]


def measure(
    indexes: Sequence[Index], asked: Asked, cosines: Sequence[Cosines | None], weights: Weights = DEFAULT
) -> Measured:
    """Measure a question against all records of the indexes.

    Statistics, such as how rare a word is, are taken over all indexes together.

    Args:
        cosines: An entry for each index; None: the index has no vectors to compare.
    """
    layout = Layout.joined([index.settle() for index in indexes])
    words = _Words(indexes, layout, asked.terms)
    cosine = _placed(indexes, cosines)
    direct = {"words": words.own, "words_before": words.with_previous}
    if any(each is not None for each in cosines):
        direct["meaning"] = cosine - np.float32(asked.unrelated)
    has_streams = len(layout.episode_lengths) > 0
    fused = base(direct, weights, alone=layout.alone)
    ranges = dates_asked_for(asked.text, asked.now)
    speakers = frozenset(name for index in indexes for name in index.names)
    named = (
        named_people(asked.text[:_NAMES_WITHIN], speakers) if len(speakers) <= _MOST_SPEAKERS else frozenset()
    )
    # Who is asked about two people and knows only these is asked about nobody in particular.
    people = frozenset() if named == speakers else named
    added: dict[str, Floats] = {}
    if has_streams:
        added["neighbour"], added["answer"] = neighbours(layout, fused), answers(layout, fused)
        added["episode"] = scaled(words.in_episodes())
    if people:
        named_in = ([number for name, number in index.names.items() if name in people] for index in indexes)
        spoken = [
            np.isin(each.speakers[: each.size], some) for each, some in zip(indexes, named_in, strict=True)
        ]
        added["speaker"] = np.concatenate(spoken).astype(np.float32)
    if ranges:
        fit = date_match(ranges, layout.said_at, asked.now)
        added["date"] = np.where(layout.alone, fit * np.float32(FACT_DATED), fit)
    added["information"] = layout.information
    if layout.by_roles.any():
        for name, share in _BY_ROLES.items():
            added[name] = np.where(layout.by_roles, added[name] * np.float32(share), added[name])
    total = sum((np.float32(getattr(weights, name)) * each for name, each in added.items()), start=fused)
    if weights.reply and layout.replies.any() and not asks_for_a_reply(asked.text):
        total = np.where(layout.replies, np.fmax(total - np.float32(weights.reply), _LEAST), total)
    related = (fused > 0) | (cosine > _ABSENT)
    for name in _RELATES & added.keys():
        related |= added[name] > 0
    return Measured(
        match=total,
        bm25=words.own,
        cosine=cosine,
        context=words.shares,
        share=words.worth(without=frozenset(term for name in named for term in terms(name))),
        coverage=None if asked.is_cut else words.coverage,
        added=added,
        found=layout.alive & related,
        names=words.naming(asked.names) if asked.names else None,
    )


class _Words:
    """The signals of a question's words, over all indexes together.

    Attributes:
        own: BM25 of each row.
        with_previous: BM25 of each row together with what was said before it.
        coverage, shares: The share of the question's terms in each row; and in it and what was said before.
    """

    def __init__(self, indexes: Sequence[Index], layout: Layout, asked: Sequence[str]) -> None:
        self._layout, size = layout, len(layout)
        found = {term: _holders(indexes, term) for term in asked}
        self._rarity = {term: idf(layout.records, len(rows)) for term, rows in found.items()}
        self._held = [term for term, rows in found.items() if len(rows)]
        held = [found[term] for term in self._held]
        self._counts = [len(rows) for rows in held]
        self._ends = [*accumulate(self._counts, initial=0)]
        self._worth = np.array([self._rarity[term] for term in self._held])
        self._numbers = np.arange(len(held)).repeat(self._counts)
        self._rows = np.concatenate(held) if held else np.zeros(0, dtype=np.intp)
        self._worths = np.bincount(self._rows, self._worth.repeat(self._counts), minlength=size)
        self.own = (self._worths * layout.of_once).astype(np.float32)
        self.coverage = np.bincount(self._rows, minlength=size) / max(1, len(asked))
        if not len(layout.episode_lengths):
            self.with_previous, self.shares = self.own, self.coverage.astype(np.float32)
            self._around = self._rows, self._numbers
            return
        said = [*self._said_before()]
        rows, numbers, times = said[0] if len(said) == 1 else map(np.concatenate, zip(*said, strict=True))
        self._around = rows, numbers
        self.with_previous = bm25(rows, times, self._worth[numbers], layout.norms_with_previous)
        self.shares = (np.bincount(rows, minlength=size) / max(1, len(asked))).astype(np.float32)

    def naming(self, names: Collection[str]) -> Floats:
        """1 for the rows with one of these terms in themselves or just before, else 0."""
        named = np.array([term in names for term in self._held], dtype=np.bool_)
        rows, numbers = self._around
        found = np.zeros(len(self._layout), dtype=np.float32)
        found[rows[named[numbers]]] = 1.0
        return found

    def worth(self, *, without: frozenset[str]) -> Floats:
        """The share of the question's terms in each row, each by its rarity.

        Args:
            without: Terms that count on neither side.
        """
        asked, worths = self._rarity, self._worths
        if not without.isdisjoint(asked):
            asked = {term: rarity for term, rarity in asked.items() if term not in without}
            each = np.array([asked.get(term, 0.0) for term in self._held]).repeat(self._counts)
            worths = np.bincount(self._rows, each, minlength=len(self._layout))
        return (worths / (sum(asked.values()) or 1.0)).astype(np.float32)

    def _some(self, cells: int) -> Iterator[tuple[Rows, Rows, int, int]]:
        """The rows that hold terms, the terms' numbers, the first number and how many there are: a few terms
        at a time, so that a table of them with so many cells a term stays small."""
        step = max(1, _MOST_CELLS // max(1, cells))
        for first in range(0, max(1, len(self._worth)), step):
            few = min(step, len(self._worth) - first)
            some = slice(self._ends[first], self._ends[first + few])
            yield self._rows[some], self._numbers[some], first, few

    def _said_before(self) -> Iterator[tuple[Rows, Rows, npt.NDArray[np.float64]]]:
        """The rows with a term in themselves or just before, the term's number, and 2.0 where in both."""
        size, before, after = len(self._layout), self._layout.before, self._layout.after
        for rows, numbers, first, few in self._some(size + 1):
            holds = np.zeros(few * (size + 1), dtype=np.bool_)  # a cell behind all rows is for -1: no row
            cells = (numbers - first) * (size + 1)
            holds[cells + rows] = True
            twice = holds[cells + before[rows]]
            holds[size :: size + 1] = True
            following = after[rows]
            follows = ~holds[cells + following]
            then, of_them = following[follows], numbers[follows]
            times = np.concatenate((1.0 + twice, np.ones(len(then))))
            yield np.concatenate((rows, then)), np.concatenate((numbers, of_them)), times

    def in_episodes(self) -> Floats:
        """BM25 of the episode that each row belongs to; 0 for facts by themselves."""
        norms, episodes = self._layout.norms_of_episodes, self._layout.episodes
        size = len(norms)
        scores = np.zeros(size)
        for rows, numbers, first, few in self._some(size):
            counts = np.bincount((numbers - first) * (size + 1) + episodes[rows], minlength=few * (size + 1))
            times = counts.reshape(few, size + 1)[:, :size]
            worth = self._worth[first : first + few, np.newaxis]
            scores += (K1 + 1) * np.add.reduce(worth * times / (times + norms), axis=0)
        return _and_nothing(scores.astype(np.float32))[episodes]


def _holders(indexes: Sequence[Index], term: str) -> Rows:
    """The rows that hold a term of a question, or another word for the same relation, index by index."""
    words = kin(term) or (term,)
    found: list[Rows] = []
    start = 0
    for index in indexes:
        held = (rows for each in words if len(rows := index.holders(each)))
        found += (rows + start for rows in held) if start else held
        start += index.size
    if len(found) <= 1:
        return found[0] if found else np.zeros(0, dtype=np.intp)
    every = np.concatenate(found)
    return every if len(words) == 1 else np.unique(every)


def _placed(indexes: Sequence[Index], cosines: Sequence[Cosines | None]) -> Floats:
    """The cosine of each row, one index after the other."""
    placed = np.full(sum(index.size for index in indexes), _ABSENT, dtype=np.float32)
    start = 0
    for index, each in zip(indexes, cosines, strict=True):
        if each is not None:
            placed[start : start + index.size][each[0]] = each[1]
        start += index.size
    return placed
