"""The active records of one namespace, side by side: their words, and their place in a conversation.

Words are understood by the words before them. So the utterances of a conversation (verbatim records with a
speaker or a session) are a *stream*, in order of time; after half an hour of silence a new *episode* begins.
All other records are facts by themselves, in no stream.
"""

import json
import math
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import count
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Record

Floats = npt.NDArray[np.float32]
Rows = npt.NDArray[np.intp]
Numbers = npt.NDArray[np.float64]

K1 = 1.2
B = 0.75


def idf(records: int, holders: int) -> float:
    """The weight of a term held by `holders` of `records`; above 0."""
    return math.log(1 + (records - holders + 0.5) / (holders + 0.5))


def idfs(records: int, holders: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """`idf` for many terms."""
    return np.log1p((records - holders + 0.5) / (holders + 0.5))


def norms_of(lengths: Floats, average: float) -> Numbers:
    """What BM25 divides by, beside how often a term occurs, for rows of these lengths in terms.

    Args:
        average: Of the lengths of all records that are searched.
    """
    return (K1 * (1 - B + B * lengths / max(average, 1.0))).astype(np.float64)


def bm25(rows: Rows, times: Numbers | float, worth: Numbers, norms: Numbers) -> Floats:
    """The BM25 score of every row; 0 where no term is shared.

    Args:
        rows, times, worth: That a row holds a term so many times, and the idf of the term; each pair of a row
            and a term once.
        norms: Of each row; see `norms_of`.
    """
    scores = worth * (K1 + 1) * times / (times + norms[rows])
    return np.bincount(rows, scores, minlength=len(norms)).astype(np.float32)


_Numbers: TypeAlias = npt.NDArray[np.int32]
_FEW = 4_096  # entries beside the block
_BYTES_A_TERM = 130  # of a short text and its place in a dictionary
_BYTES_AN_ARRAY = 200


class Postings:
    """For each term the rows that hold it, each once. Rows are only ever added; the owner skips dead ones."""

    def __init__(self) -> None:
        self._number_of: dict[str, int] = {}
        self._lay(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32))
        self._later: dict[str, array[int]] = {}
        self._added = 0

    @classmethod
    def of(cls, number_of: dict[str, int], numbers: npt.NDArray[np.int64], rows: _Numbers) -> "Postings":
        """Make postings from pairs: row `rows[i]` holds the term `numbers[i]`; rows in rising order."""
        postings = cls()
        postings._number_of = number_of
        postings._sort(numbers, rows)
        return postings

    @classmethod
    def unpacked(
        cls, numbers: Mapping[str, int], starts: npt.NDArray[np.int64], rows: _Numbers
    ) -> "Postings":
        """Postings from what `numbers` and `all` said of others, the counts summed up to starts."""
        postings = cls()
        postings._number_of = dict(numbers)
        postings._lay(starts, rows)
        return postings

    def _lay(self, starts: npt.NDArray[np.int64], rows: _Numbers) -> None:
        """Take a block: the rows of the term `n` are those from `starts[n]` to `starts[n + 1]`."""
        self._starts, self._rows = starts, rows
        self._at, self._held = starts.data, rows.data  # a few are read so more quickly

    def _sort(self, numbers: npt.NDArray[np.int64], rows: _Numbers) -> None:
        """Make the block from pairs: row `rows[i]` holds the term `numbers[i]`."""
        counts = np.bincount(numbers, minlength=len(self._number_of))
        starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)])
        self._lay(starts, rows[np.argsort(numbers, kind="stable")])

    @property
    def nbytes(self) -> int:
        """About how much memory they take."""
        arrays = len(self._later) * _BYTES_AN_ARRAY + 4 * self._added
        return self._rows.nbytes + self._starts.nbytes + len(self._number_of) * _BYTES_A_TERM + arrays

    def add(self, row: int, terms: Collection[str]) -> None:
        """Add a row with its terms, each term once. A row may be added only once."""
        for term in terms:
            held = self._later.get(term)
            if held is None:
                self._later[term] = array("i", (row,))
            else:
                held.append(row)
        self._added += len(terms)

    def rows(self, term: str) -> Rows:
        """The rows that hold a term."""
        number, later = self._number_of.get(term), self._later.get(term)
        if number is None:
            return np.array(later or (), dtype=np.intp)
        block = self._rows[self._at[number] : self._at[number + 1]].astype(np.intp)
        return np.concatenate([block, np.array(later, dtype=np.intp)]) if later else block

    def count(self, term: str) -> int:
        """How many rows hold a term."""
        number, later = self._number_of.get(term), self._later.get(term)
        block = 0 if number is None else self._at[number + 1] - self._at[number]
        return block + (len(later) if later else 0)

    def few(self, term: str, most: int) -> list[int] | None:
        """The rows that hold a term; None: they are more than `most`."""
        number, later = self._number_of.get(term), self._later.get(term)
        found: list[int] = []
        if number is not None:
            start, end = self._at[number], self._at[number + 1]
            if end - start > most:
                return None
            found = self._held[start:end].tolist()
        if later:
            found += later
        return found if len(found) <= most else None

    @property
    def numbers(self) -> Mapping[str, int]:
        """The place of each term in what `all` gives."""
        self._fold()
        return self._number_of

    def all(self) -> tuple[npt.NDArray[np.int64], _Numbers]:
        """How many rows each term has, and these rows, one term after the other."""
        self._fold()
        return np.diff(self._starts), self._rows

    def fold_some(self) -> None:
        """Merge the later rows into the block, where they are many."""
        if self._added > max(_FEW, len(self._rows) // 2):
            self._fold()

    def moved(self, places: _Numbers) -> "Postings":
        """Postings with row `r` renumbered to `places[r]`; rows renumbered to -1 are left out."""
        counts, rows = self.all()
        numbers, moved = np.repeat(np.arange(len(counts)), counts), places[rows]
        kept = moved >= 0
        held = np.bincount(numbers[kept], minlength=len(counts)) > 0
        names = (term for term, is_held in zip(self._number_of, held.tolist(), strict=True) if is_held)
        number_of = {term: number for number, term in enumerate(names)}
        return Postings.of(number_of, (np.cumsum(held) - 1)[numbers[kept]], moved[kept])

    def _fold(self) -> None:
        if not self._later:
            return
        known = len(self._number_of)
        for term in self._later:
            self._number_of.setdefault(term, len(self._number_of))
        block = np.repeat(np.arange(known), np.diff(self._starts))
        later = np.repeat(
            np.array([self._number_of[term] for term in self._later]),
            np.array([len(rows) for rows in self._later.values()]),
        )
        terms = np.concatenate([block, later])
        later_rows = (np.array(each, dtype=np.int32) for each in self._later.values())
        rows = np.concatenate([self._rows, *later_rows])
        self._sort(terms, rows)
        self._later, self._added = {}, 0


class Filling:
    """Adds many rows to postings, in rising order from `first`, without keeping the terms of earlier rows."""

    def __init__(self, postings: Postings, first: int) -> None:
        self._counts, self._block = postings.all()
        self._number_of, self._first = dict(postings.numbers), first
        self._numbers, self._lengths = array("q"), array("q")

    def add(self, terms: Collection[str]) -> None:
        """Add the next row with its terms, each term once."""
        numbers = self._number_of
        self._numbers.extend([numbers.setdefault(term, len(numbers)) for term in terms])
        self._lengths.append(len(terms))

    def done(self) -> Postings:
        """The postings of all rows."""
        lengths = np.array(self._lengths, dtype=np.int64)
        rows = np.repeat(np.arange(self._first, self._first + len(lengths), dtype=np.int32), lengths)
        numbers = np.array(self._numbers, dtype=np.int64)
        if len(self._block):
            known = np.repeat(np.arange(len(self._counts)), self._counts)
            numbers, rows = np.concatenate([known, numbers]), np.concatenate([self._block, rows])
        return Postings.of(self._number_of, numbers, rows)


GAP_SECONDS = 1_800.0
"""Silence after which another episode begins."""

_FIRST_ROWS = 16
_NONE, _AN_ASSISTANT = -1, -2
_ASKS = ("?", "？")
_FEW_DEAD = 64
_BYTES_A_ROW = 8 + 8 + 4 * 6 + 2 + 100 + 40  # the columns, a key and a row in a dictionary, and the layout
_Array = TypeVar("_Array", bound=npt.NDArray[np.generic])
_Text = TypeVar("_Text", int, str)


def _numbered(some: Iterable[_Text]) -> dict[_Text, int]:
    return dict(zip(some, count()))


@dataclass(frozen=True, slots=True)
class Entry:
    """What the index knows of a record.

    Args:
        terms: Its different terms.
        said_at: When it was said, in seconds since 1970.
        stream: The conversation that it was said in; None: it is a fact by itself.
        speaker: Who said it there, where it is somebody with a name.
        asks: Whether it is a question to others there.
        is_reply: Whether an assistant said it there.
    """

    terms: Collection[str]
    said_at: float
    stream: str | None = None
    speaker: str | None = None
    asks: bool = False
    is_reply: bool = False


def entry_of(record: Record) -> Entry:
    """The entry of a record."""
    source, end = record.source, record.content.rstrip().rstrip("\"'”’」』)）")
    return Entry(
        terms=tuple(dict.fromkeys(terms(record.searched_text))),
        said_at=record.created_at,
        stream=(source.session_id or "") if record.is_said else None,
        speaker=record.spoken_by,
        asks=end.endswith(_ASKS),
        is_reply=record.is_reply,
    )


@dataclass(frozen=True, slots=True)
class Layout:
    """Rows of an index, or of several in order, as signals read them: the same until a change.

    Attributes:
        with_previous: The length of each row together with the row said just before, in terms.
        before, after: The rows said just before and just after; -1: none.
        episodes: The episode of each row, as a place in `episode_lengths`; behind its end for facts.
        alone: Which rows are in no episode.
        information: See `information`.
        answering: The rows before which somebody else asks a question.
        by_roles: Which rows were said in a conversation by nobody with a name: by a user or an assistant.
        records, terms: How many records there are, and terms in them.
        of_once: The BM25 score of each row by a term that it holds, for an idf of 1.
        norms_with_previous, norms_of_episodes: See `norms_of`.
    """

    alive: npt.NDArray[np.bool_]
    said_at: npt.NDArray[np.float64]
    lengths: Floats
    with_previous: Floats
    before: Rows
    after: Rows
    episodes: Rows
    episode_lengths: Floats
    information: Floats
    answering: Rows
    by_roles: npt.NDArray[np.bool_]
    replies: npt.NDArray[np.bool_]
    records: int
    terms: int
    alone: npt.NDArray[np.bool_] = field(init=False)
    of_once: Numbers = field(init=False)
    norms_with_previous: Numbers = field(init=False)
    norms_of_episodes: Numbers = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alone", self.episodes == len(self.episode_lengths))
        with_previous, episodes = self.with_previous, self.episode_lengths
        norms = {
            "of_once": (K1 + 1) / (1 + norms_of(self.lengths, self.terms / max(1, self.records))),
            "norms_with_previous": norms_of(with_previous, _mean(with_previous[self.alive])),
            "norms_of_episodes": norms_of(episodes, _mean(episodes)),
        }
        for name, values in norms.items():
            object.__setattr__(self, name, values)

    @classmethod
    def of(cls, index: "Index") -> "Layout":
        """The rows of an index as they are now."""
        rows = slice(index.size)
        lengths, replies, speakers = index.lengths[rows], index.replies[rows], index.speakers[rows]
        before = index.before[rows].astype(np.intp)
        is_said = index.episodes[rows] >= 0
        episodes = index.episodes[rows].astype(np.intp)
        of_episodes = np.bincount(episodes[is_said], lengths[is_said]).astype(np.float32)
        episodes[~is_said] = len(of_episodes)
        by_roles = is_said & (speakers == _NONE)
        voices = np.where(by_roles, np.where(replies, _AN_ASSISTANT, _NONE), speakers)
        answering = (before >= 0) & index.asks[before] & (voices != voices[before])
        with_previous = lengths + np.where(before >= 0, lengths[before], np.float32(0))
        return cls(
            *(index.alive[rows], index.said_at[rows], lengths, with_previous),
            *(before, index.after[rows].astype(np.intp), episodes, of_episodes),
            *(information(index), np.flatnonzero(answering), by_roles, replies),
            *(len(index), index.total_terms),
        )

    @classmethod
    def joined(cls, layouts: "Sequence[Layout]") -> "Layout":
        """All rows, in the order of the indexes."""
        if len(layouts) == 1:
            return layouts[0]
        *names, records, terms = (each.name for each in fields(cls) if each.init)
        start, first, last = 0, 0, sum(len(each.episode_lengths) for each in layouts)
        moved: list[Mapping[str, npt.NDArray[Any]]] = []
        for each in layouts:
            rows, episodes = len(each), len(each.episode_lengths)
            columns = {name: getattr(each, name) for name in names} | {
                "before": np.where(each.before >= 0, each.before + start, _NONE),
                "after": np.where(each.after >= 0, each.after + start, _NONE),
                "episodes": np.where(each.episodes < episodes, each.episodes + first, last),
                "answering": each.answering + start,
            }
            moved.append(columns)
            start, first = start + rows, first + episodes
        whole: dict[str, Any] = {name: np.concatenate([each[name] for each in moved]) for name in names}
        whole |= {name: sum([getattr(each, name) for each in layouts]) for name in (records, terms)}
        return cls(**whole)

    def __len__(self) -> int:
        return len(self.alive)


def _mean(values: Floats) -> float:
    return float(values.mean()) if len(values) else 0.0


class Index:
    """The records of a namespace as rows, each with the store's key. Not safe between threads.

    A row stays the same until `compact`; an entry that changes gets another row.
    """

    def __init__(self) -> None:
        self.size = 0
        """How many rows there are, those of removed records included."""
        self.alive = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self.keys = np.zeros(_FIRST_ROWS, dtype=np.int64)
        self.said_at = np.zeros(_FIRST_ROWS, dtype=np.float64)
        self.lengths = np.zeros(_FIRST_ROWS, dtype=np.float32)
        self.speakers = np.full(_FIRST_ROWS, _NONE, dtype=np.int32)
        self.before = np.full(_FIRST_ROWS, _NONE, dtype=np.int32)
        self.after = np.full(_FIRST_ROWS, _NONE, dtype=np.int32)
        self.episodes = np.full(_FIRST_ROWS, _NONE, dtype=np.int32)
        self.rarity = np.zeros(_FIRST_ROWS, dtype=np.float32)
        self.asks = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self.replies = np.zeros(_FIRST_ROWS, dtype=np.bool_)
        self._names: dict[str, int] = {}
        self._spoken: list[int] = []
        self.total_terms = 0
        self._postings = Postings()
        self._row_of: dict[int, int] = {}
        self._last_of: dict[str, int] = {}
        self._stream_of: dict[int, str] = {}
        self._episodes = 0
        self._is_ordered = True
        self._changes = 0
        self._layout: Layout | None = None

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def nbytes(self) -> int:
        """About how much memory it takes."""
        return self._postings.nbytes + len(self.alive) * _BYTES_A_ROW

    @property
    def has_streams(self) -> bool:
        return bool(self._stream_of)

    @property
    def names(self) -> dict[str, int]:
        """The speakers, with their numbers in `speakers`."""
        return {name: number for name, number in self._names.items() if self._spoken[number]}

    def row(self, key: int) -> int | None:
        """The row of a key; None when there is none."""
        return self._row_of.get(key)

    def rows(self, keys: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The row of each key; -1 where there is none."""
        own, asked = self.keys[: self.size], np.asarray(keys, dtype=np.int64)
        if len(own) and np.all(own[1:] > own[:-1]):  # as they are loaded: so quicker than one by one
            rows = np.minimum(np.searchsorted(own, asked), len(own) - 1)
            return np.where((own[rows] == asked) & self.alive[rows], rows, _NONE)
        return np.fromiter((self._row_of.get(key, _NONE) for key in asked.tolist()), dtype=np.int64)

    def living_keys(self) -> list[int]:
        """The keys of all records."""
        return list(self._row_of)

    def put(self, key: int, entry: Entry) -> int:
        """Add a record, or replace its entry. Returns its row."""
        self.drop(key)
        row, self._layout = self._new_row(key), None
        self.said_at[row], self.lengths[row] = entry.said_at, len(entry.terms)
        self.asks[row], self.replies[row], self.speakers[row] = False, False, _NONE
        self.total_terms += len(entry.terms)
        self._postings.add(row, entry.terms)
        records = len(self._row_of)
        rarest = sum(idf(records, min(records, self._postings.count(term))) for term in entry.terms)
        self.rarity[row] = rarest / idf(records, 1) / max(len(entry.terms), 1)
        self._changes += 1
        if entry.stream is not None:
            self._place(row, entry, entry.stream)
            self._link(row, entry.stream)
        return row

    def drop(self, key: int) -> None:
        """Remove a record; nothing happens when it is not there."""
        row = self._row_of.pop(key, None)
        if row is None:
            return
        self.alive[row], self._layout = False, None
        self.total_terms -= int(self.lengths[row])
        self.lengths[row] = 0.0
        self._changes += 1
        if (speaker := int(self.speakers[row])) != _NONE:
            self._spoken[speaker] -= 1
        if self._stream_of.pop(row, None) is not None:
            self._is_ordered = False

    def load(self, entries: Iterable[tuple[int, Entry]]) -> None:
        """Add many records at once.

        Args:
            entries: Keys that the index does not have, and the entry of each. They are read one by one and
                not kept.
        """
        row, filling = self.size, Filling(self._postings, self.size)
        for key, entry in entries:
            self._room_for(row + 1)
            self.keys[row], self.said_at[row], self.lengths[row] = key, entry.said_at, len(entry.terms)
            self.asks[row], self.replies[row], self.speakers[row] = False, False, _NONE
            self._row_of[key] = row
            filling.add(entry.terms)
            if entry.stream is not None:
                self._place(row, entry, entry.stream)
            row += 1
        self.alive[self.size : row] = True
        self.size = row
        self._postings = filling.done()
        self._settle_anew()

    def _settle_anew(self) -> None:
        """Leave everything that is made of all rows for `settle`."""
        for column in (self.before, self.after, self.episodes):
            column[: self.size] = _NONE
        self.total_terms = int(self.lengths[: self.size].sum(dtype=np.int64))
        self._changes, self._is_ordered, self._layout = self.size, not self._stream_of, None

    def packed(self) -> bytes:
        """The index as one value, for `unpacked`; it gives up the rows of removed records."""
        if self.size != len(self._row_of):
            self.compact()
        streams: dict[str, int] = {}
        of_streams = [streams.setdefault(stream, len(streams)) for stream in self._stream_of.values()]
        counts, rows = self._postings.all()
        columns = {name: getattr(self, name)[: self.size] for name, _ in _PACKED}
        columns |= {"starts": np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(counts)]), "rows": rows}
        columns |= {"said": np.array([*self._stream_of]), "said_in": np.array(of_streams)}
        values = [columns[name].astype(kind).tobytes() for name, kind in _LAID_OUT]
        sizes = {name: len(columns[name]) for name, _ in _LAID_OUT}
        texts = {"terms": [*self._postings.numbers], "names": [*self._names], "streams": [*streams]}
        head = json.dumps({"sizes": sizes, **texts}, ensure_ascii=False).encode()
        head += b" " * (-len(head) % _ALIGNED)
        return b"".join([len(head).to_bytes(_ALIGNED, "little"), head, *values])

    @classmethod
    def unpacked(cls, value: bytes) -> "Index":
        """The index that `packed` made the value of. Raises ValueError, KeyError: the value is damaged."""
        at = _ALIGNED + int.from_bytes(value[:_ALIGNED], "little")
        head, columns = json.loads(value[_ALIGNED:at].decode()), dict[str, npt.NDArray[Any]]()
        for name, kind in _LAID_OUT:
            columns[name] = np.frombuffer(value, dtype=kind, count=head["sizes"][name], offset=at)
            at += columns[name].nbytes
        index = cls()
        size = index.size = len(columns["keys"])
        index._room_for(size)
        for name, _ in _PACKED:
            getattr(index, name)[:size] = columns[name]
        index.alive[:size] = True
        index._row_of = _numbered(columns["keys"].tolist())
        index._postings = Postings.unpacked(_numbered(head["terms"]), columns["starts"], columns["rows"])
        index._names = _numbered(head["names"])
        spoken = index.speakers[:size]
        index._spoken = np.bincount(spoken[spoken >= 0], minlength=len(index._names)).tolist()
        said = zip(columns["said"].tolist(), columns["said_in"].tolist(), strict=True)
        index._stream_of = {row: head["streams"][stream] for row, stream in said}
        index._settle_anew()
        return index

    def holders(self, term: str) -> Rows:
        """The rows of the records that hold a term."""
        found = self._postings.rows(term)
        return found if self.size == len(self._row_of) else found[self.alive[found]]

    def count(self, term: str) -> int:
        """How many rows hold a term, those of removed records included."""
        return self._postings.count(term)

    def few(self, term: str, most: int) -> Sequence[int] | None:
        """The rows that hold a term, those of removed records included; None: they are more than `most`."""
        return self._postings.few(term, most)

    def living(self, rows: Sequence[int]) -> Sequence[int]:
        """Leave out the rows of removed records."""
        return rows if self.size == len(self._row_of) else [row for row in rows if self.alive[row]]

    def is_said(self, row: int) -> bool:
        """Whether it was said in a conversation; else it is a fact by itself."""
        return row in self._stream_of

    @property
    def is_sparse(self) -> bool:
        """Whether most rows are of removed records, so that `compact` is worth it."""
        return self.size - len(self._row_of) > max(_FEW_DEAD, len(self._row_of))

    def settle(self) -> Layout:
        """Bring into order what changes have left undone. Called before each search."""
        self._postings.fold_some()
        if not self._is_ordered:
            self._order()
        if self._changes * 8 > self.size:
            self._weigh()
        if self._layout is None:
            self._layout = Layout.of(self)
        return self._layout

    def _place(self, row: int, entry: Entry, stream: str) -> None:
        self._stream_of[row], self.asks[row], self.replies[row] = stream, entry.asks, entry.is_reply
        if entry.speaker is not None:
            self.speakers[row] = self._number(entry.speaker)

    def _new_row(self, key: int) -> int:
        row = self.size
        self._room_for(row + 1)
        self.keys[row], self.alive[row] = key, True
        for column in (self.before, self.after, self.episodes):
            column[row] = _NONE
        self._row_of[key] = row
        self.size += 1
        return row

    def _room_for(self, rows: int) -> None:
        if rows <= len(self.alive):
            return
        more = max(rows, 2 * len(self.alive))
        for name in _COLUMNS:
            setattr(self, name, _grown(getattr(self, name), more))

    def _number(self, speaker: str) -> int:
        number = self._names.setdefault(speaker, len(self._names))
        if number == len(self._spoken):
            self._spoken.append(0)
        self._spoken[number] += 1
        return number

    def _link(self, row: int, stream: str) -> None:
        """Append a row to its stream; where the row belongs elsewhere, all streams are ordered anew later."""
        last = self._last_of.get(stream)
        if not self._is_ordered:
            return
        if last is None:
            self._begin_episode(row)
        elif not self.alive[last] or self._time_of(row) < self._time_of(last):
            self._is_ordered = False
            return
        elif self.said_at[row] - self.said_at[last] > GAP_SECONDS:
            self._begin_episode(row)
        else:
            self.before[row], self.after[last] = last, row
            self.episodes[row] = self.episodes[last]
        self._last_of[stream] = row

    def _time_of(self, row: int) -> tuple[float, int]:
        return float(self.said_at[row]), int(self.keys[row])

    def _begin_episode(self, row: int) -> None:
        self.episodes[row] = self._episodes
        self._episodes += 1

    def _order(self) -> None:
        """Order the rows of all streams by time, rows of equal time as they were stored."""
        for column in (self.before, self.after, self.episodes):
            column[: self.size] = _NONE
        numbers: dict[str, int] = {}
        rows = np.fromiter(self._stream_of, dtype=np.int32, count=len(self._stream_of))
        streams = np.fromiter(
            (numbers.setdefault(stream, len(numbers)) for stream in self._stream_of.values()),
            dtype=np.intp,
            count=len(rows),
        )
        order = np.lexsort((self.keys[rows], self.said_at[rows], streams))
        rows, streams = rows[order], streams[order]
        follows = streams[1:] == streams[:-1]
        is_near = follows & (np.diff(self.said_at[rows]) <= GAP_SECONDS)
        self.episodes[rows] = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(~is_near)])[: len(rows)]
        self.before[rows[1:][is_near]] = rows[:-1][is_near]
        self.after[rows[:-1][is_near]] = rows[1:][is_near]
        self._episodes = int(self.episodes[rows[-1]]) + 1 if len(rows) else 0
        names = list(numbers)
        ends = np.flatnonzero(np.concatenate([~follows, np.ones(min(1, len(rows)), dtype=np.bool_)]))
        self._last_of = {names[int(streams[end])]: int(rows[end]) for end in ends}
        self._is_ordered = True

    def _weigh(self) -> None:
        """Work out anew how rare the words of each record are."""
        records = len(self._row_of)
        if records:
            counts, rows = self._postings.all()
            worth = idfs(records, np.minimum(counts, records)) / idf(records, 1)
            sums = np.bincount(rows, weights=np.repeat(worth, counts), minlength=self.size)
            self.rarity[: self.size] = sums / np.maximum(self.lengths[: self.size], 1)
        self._changes = 0

    def compact(self) -> None:
        """Give up the rows of removed records; the others get new ones."""
        kept = np.flatnonzero(self.alive[: self.size])
        moved = np.full(self.size, _NONE, dtype=np.int32)
        moved[kept] = np.arange(len(kept), dtype=np.int32)
        self._postings = self._postings.moved(moved)
        for name in _COLUMNS:
            column = getattr(self, name)
            column[: len(kept)] = column[kept]
        self.alive[len(kept) :] = False
        self._stream_of = {int(moved[row]): stream for row, stream in self._stream_of.items()}
        self._row_of = {int(key): row for row, key in enumerate(self.keys[: len(kept)])}
        self.size = len(kept)
        for column in (self.before, self.after, self.episodes):
            column[: self.size] = _NONE
        self._last_of.clear()
        self._is_ordered, self._layout = not self._stream_of, None


_MANY_TERMS = 54
_ALIGNED = 8
_PACKED = (
    *(("keys", "<i8"), ("said_at", "<f8"), ("lengths", "<f4"), ("speakers", "<i4")),
    *(("asks", "?"), ("replies", "?")),
)
"""The columns from which the others are made, but for what is of terms and streams."""
_LAID_OUT = (("starts", "<i8"), ("said", "<i8"), ("said_in", "<i8"), ("rows", "<i4"), *_PACKED)
_COLUMNS = (
    *("alive", "keys", "said_at", "lengths", "speakers", "before", "after", "episodes"),
    *("rarity", "asks", "replies"),
)


def _grown(column: _Array, rows: int) -> _Array:
    larger = np.zeros(rows, dtype=column.dtype)
    larger[: len(column)] = column
    return larger  # type: ignore[return-value]  # of the same type as the column


def information(index: Index) -> Floats:
    """How much a record can tell whatever the question, in [0, 1]: by the number and rarity of its words.

    "Wow, that's great!" answers nothing. Only utterances are weighed: a fact by itself has 1.

    Source: document priors, Kraaij, Westerveld and Hiemstra, "The importance of prior probabilities for
    entry page search" (2002).
    """
    length = np.minimum(np.log1p(index.lengths[: index.size]) / math.log1p(_MANY_TERMS), 1.0)
    told = (length + index.rarity[: index.size]) / 2
    return np.where(index.episodes[: index.size] >= 0, told, 1.0).astype(np.float32)
