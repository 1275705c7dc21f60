"""All signals of a question over the records of some namespaces, and the match that orders them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import DEFAULT, Weights
from supervisor_memory.signals.index import Floats, Index, Rows, bm25, idf, information
from supervisor_memory.understand.dates import DAY, FACT_DATED, OTHER_YEAR, YEAR, DateRange
from supervisor_memory.understand.names import kin, named_people
from supervisor_memory.understand.questions import asks_for_a_reply, dates_asked_for


def scaled(scores: Floats) -> Floats:
    """Scores from 0 to 1, where the best of the list is 1; negative numbers and NaN count as 0."""
    positive = np.fmax(scores, np.float32(0))
    best = positive.max(initial=0.0)
    return positive / best if best > 0 else positive


def base(
    signals: Mapping[str, Floats], weights: Weights = DEFAULT, *, alone: npt.NDArray[np.bool_] | None = None
) -> Floats:
    """The direct signals as one, from 0 to 1.

    Args:
        signals: Any of "meaning", "words" and "words_before", all of one length, at least one.
        alone: True for rows with nothing said before them. Their two signals of words are equal, and count
            as one beside meaning. None: there are no such rows.
    """
    weighed = {name: np.float32(getattr(weights, name)) * scaled(each) for name, each in signals.items()}
    nothing = np.zeros(len(next(iter(signals.values()))), dtype=np.float32)
    by_words = sum((each for name, each in weighed.items() if name != "meaning"), start=nothing)
    by_meaning = weighed.get("meaning", nothing)
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


def with_previous(index: Index, rows: Rows) -> Rows:
    """From the rows that hold a term: the rows with it in themselves or just before; twice where in both."""
    after = index.after[rows]
    return np.concatenate([rows, after[after >= 0]])


def with_previous_lengths(index: Index) -> Floats:
    """The length of each row together with the row said just before, in terms."""
    lengths = index.lengths[: index.size]
    before = index.before[: index.size]
    return lengths + np.where(before >= 0, lengths[before], np.float32(0))


def in_episodes(index: Index, rows: Rows) -> Rows:
    """From the rows that hold a term: their episodes, an episode once for each of its rows."""
    episodes = index.episodes[rows]
    return episodes[episodes >= 0].astype(np.intp)


def episode_lengths(index: Index) -> Floats:
    """The length of each episode, in terms."""
    episodes = index.episodes[: index.size]
    is_said = episodes >= 0
    lengths = np.bincount(episodes[is_said], weights=index.lengths[: index.size][is_said])
    return lengths.astype(np.float32)


def neighbours(index: Index, scores: Floats) -> Floats:
    """The better score of the rows said just before and just after; 0 where there is neither."""
    return np.maximum(taken(scores, index.before[: index.size]), taken(scores, index.after[: index.size]))


def answers(index: Index, scores: Floats) -> Floats:
    """The score of the row said just before, where somebody else asks a question in it; else 0."""
    before, voices = index.before[: index.size], index.voices
    is_answer = (before >= 0) & index.asks[before] & (voices != voices[before])
    return np.where(is_answer, scores[before], np.float32(0))


def taken(scores: Floats, rows: npt.NDArray[np.int32]) -> Floats:
    """The scores at `rows`; 0 where a row is negative, for none."""
    if not len(scores):
        return np.zeros(len(rows), dtype=np.float32)
    return np.where(rows >= 0, scores[rows], np.float32(0))


Cosines = tuple[Rows, Floats]
"""Rows of an index, and their cosines with the question."""
_ABSENT = np.float32(-2.0)
_LEAST = np.float32(1e-6)
_BY_ROLES = {"neighbour": 0.5, "answer": 0.0, "information": 0.0}
"""The share of a signal that counts where a user speaks to an assistant, or nobody is named. A request
follows an answer there as often as it asks for one, and the longest turns are the assistant's."""
_MOST_SPEAKERS = 500
_NAMES_WITHIN = 1_000  # characters of a question in which names are looked for


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, as the signals read it.

    Args:
        terms: Its different terms.
        now: Seconds since 1970; "yesterday" is the day before.
        unrelated: The cosine up to which texts have nothing in common.
    """

    text: str
    terms: Sequence[str]
    now: float
    unrelated: float = 0.0


@dataclass(frozen=True, slots=True)
class Measured:
    """The signals of all rows, removed records included, one index after the other.

    Attributes:
        match: The sum that orders the rows; see `fuse`.
        bm25: 0 where no term is shared.
        cosine: -2 where there is no vector to compare.
        context: The share of the question's terms in a row and what was said before it, in [0, 1].
        share: The share of the question's terms in a row, each by its rarity, speakers' names left out.
        added: The signals that add to the base of a match, in [0, 1].
        found: Which rows have anything to do with the question.
    """

    match: Floats
    bm25: Floats
    cosine: Floats
    context: Floats
    share: Floats
    added: Mapping[str, Floats]
    found: npt.NDArray[np.bool_]

    def parts(self, row: int) -> dict[str, float]:
        """The signals of a row by name, without those that are 0 or unknown."""
        told = {"bm25": self.bm25, "context": self.context, "share": self.share, **self.added}
        parts = {name: value for name, values in told.items() if (value := float(values[row])) > 0}
        if self.cosine[row] > _ABSENT:
            parts["cosine"] = float(self.cosine[row])
        return parts | {"match": float(self.match[row])}


def measure(
    indexes: Sequence[Index], asked: Asked, cosines: Sequence[Cosines | None], weights: Weights = DEFAULT
) -> Measured:
    """Measure a question against all records of the indexes.

    Statistics, such as how rare a word is, are taken over all indexes together.

    Args:
        cosines: An entry for each index; None: the index has no vectors to compare.
    """
    for index in indexes:
        index.settle()
    words = _Words(indexes, asked.terms)
    cosine = _joined(_placed(index, each) for index, each in zip(indexes, cosines, strict=True))
    direct = {"words": words.own(), "words_before": words.with_previous()}
    if any(each is not None for each in cosines):
        direct["meaning"] = np.where(cosine > _ABSENT, cosine - np.float32(asked.unrelated), np.float32(0))
    alone = np.concatenate([index.episodes[: index.size] < 0 for index in indexes])
    fused = base(direct, weights, alone=alone)
    each_base = np.split(fused, np.cumsum([index.size for index in indexes])[:-1])
    ranges = dates_asked_for(asked.text, asked.now)
    speakers = frozenset(name for index in indexes for name in index.names)
    named = (
        named_people(asked.text[:_NAMES_WITHIN], speakers) if len(speakers) <= _MOST_SPEAKERS else frozenset()
    )
    # Who is asked about two people and knows only these is asked about nobody in particular.
    people = frozenset() if named == speakers else named
    added = {
        "neighbour": _joined(map(neighbours, indexes, each_base)),
        "answer": _joined(map(answers, indexes, each_base)),
        "episode": scaled(words.in_episodes()),
        "speaker": _joined(_spoken_by(index, people) for index in indexes),
        "date": _joined(_dated(index, ranges, asked.now) for index in indexes),
        "information": _joined(map(information, indexes)),
    }
    by_roles = np.concatenate([index.by_roles for index in indexes])
    for name, share in _BY_ROLES.items():
        added[name] = np.where(by_roles, added[name] * np.float32(share), added[name])
    total = fused + sum(np.float32(getattr(weights, name)) * values for name, values in added.items())
    replies = np.concatenate([index.replies[: index.size] for index in indexes])
    if weights.reply and replies.any() and not asks_for_a_reply(asked.text):
        total = np.where(replies, np.fmax(total - np.float32(weights.reply), _LEAST), total)
    alive = np.concatenate([index.alive[: index.size] for index in indexes])
    related = fused + added["neighbour"] + added["answer"] + added["date"]
    has_vector = cosine > _ABSENT
    return Measured(
        match=total,
        bm25=direct["words"],
        cosine=cosine,
        context=words.shares(),
        share=words.worth(without=frozenset(term for name in named for term in terms(name))),
        added=added,
        found=alive & ((related > 0) | has_vector),
    )


class _Words:
    """The signals of a question's words, over all indexes together."""

    def __init__(self, indexes: Sequence[Index], asked: Sequence[str]) -> None:
        self._indexes = indexes
        self._asked = max(1, len(asked))
        records = sum(len(index) for index in indexes)
        held = [{term: _holders(index, term) for term in asked} for index in indexes]
        counts = {term: sum(len(each[term]) for each in held) for term in asked}
        self._rarity = {term: idf(records, count) for term, count in counts.items()}
        self._worth = {term: idf(records, count) for term, count in counts.items() if count}
        self._held = [{term: each[term] for term in self._worth} for each in held]
        self._average = sum(index.total_terms for index in indexes) / max(1, records)
        self._with_previous = [
            {term: with_previous(index, rows) for term, rows in each.items()}
            for index, each in zip(indexes, self._held, strict=True)
        ]

    def own(self) -> Floats:
        """BM25 of each row."""
        lengths = [index.lengths[: index.size] for index in self._indexes]
        return self._scores(self._held, lengths, self._average)

    def with_previous(self) -> Floats:
        """BM25 of each row together with what was said before it."""
        lengths = [with_previous_lengths(index) for index in self._indexes]
        both = zip(self._indexes, lengths, strict=True)
        alive = [length[index.alive[: index.size]] for index, length in both]
        return self._scores(self._with_previous, lengths, _mean(alive))

    def in_episodes(self) -> Floats:
        """BM25 of the episode that each row belongs to; 0 for facts by themselves."""
        found = []
        lengths = [episode_lengths(index) for index in self._indexes]
        average = _mean(lengths)
        for index, each, length in zip(self._indexes, self._held, lengths, strict=True):
            by_episode = {term: in_episodes(index, rows) for term, rows in each.items()}
            scores = self._scores([by_episode], [length], average)
            found.append(taken(scores, index.episodes[: index.size]))
        return _joined(found)

    def shares(self) -> Floats:
        """The share of the question's terms in each row and what was said before it."""
        found = []
        for index, each in zip(self._indexes, self._with_previous, strict=True):
            share = np.zeros(index.size, dtype=np.float32)
            for rows in each.values():
                holds = np.zeros(index.size, dtype=np.bool_)
                holds[rows] = True
                share += holds
            found.append(share / np.float32(self._asked))
        return _joined(found)

    def worth(self, *, without: Collection[str]) -> Floats:
        """The share of the question's terms in each row, each by its rarity.

        Args:
            without: Terms that count on neither side.
        """
        asked = {term: rarity for term, rarity in self._rarity.items() if term not in without}
        found = []
        for index, each in zip(self._indexes, self._held, strict=True):
            share = np.zeros(index.size, dtype=np.float32)
            for term, rows in each.items():
                share[rows] += np.float32(asked.get(term, 0.0))
            found.append(share / np.float32(sum(asked.values()) or 1.0))
        return _joined(found)

    def _scores(
        self, postings: Sequence[Mapping[str, Rows]], lengths: Sequence[Floats], average: float
    ) -> Floats:
        return _joined(
            bm25(each, self._worth, lengths=length, average_length=average)
            for each, length in zip(postings, lengths, strict=True)
        )


def _holders(index: Index, term: str) -> Rows:
    """The rows that hold a term of a question, or another word for the same relation."""
    if same := kin(term):
        return np.unique(np.concatenate([index.holders(each) for each in same]))
    return index.holders(term)


def _spoken_by(index: Index, people: frozenset[str]) -> Floats:
    if not people:
        return np.zeros(index.size, dtype=np.float32)
    numbers = [number for name, number in index.names.items() if name in people]
    return np.isin(index.speakers[: index.size], numbers).astype(np.float32)


def _dated(index: Index, ranges: Sequence[DateRange], now: float) -> Floats:
    """The date signal of each row, weakened for facts by themselves; see `FACT_DATED`."""
    fit = date_match(ranges, index.said_at[: index.size], now)
    return np.where(index.episodes[: index.size] >= 0, fit, fit * np.float32(FACT_DATED))


def _placed(index: Index, cosines: Cosines | None) -> Floats:
    placed = np.full(index.size, _ABSENT, dtype=np.float32)
    if cosines is not None:
        placed[cosines[0]] = cosines[1]
    return placed


def _mean(arrays: Sequence[Floats]) -> float:
    values = np.concatenate(arrays)
    return float(values.mean()) if len(values) else 0.0


def _joined(each: Iterable[Floats]) -> Floats:
    arrays = list(each)
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)
