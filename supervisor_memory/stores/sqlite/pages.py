"""Reads the rows of a damaged SQLite file page by page, without SQLite.

SQLite goes down a tree to find a row, and gives up where a page on the way is damaged. But every page with
rows lists them by itself: so the rows of all undamaged pages can be read, whatever leads to them. Only rows
that a page lists are read, never remains of deleted rows between them.

Source: https://www.sqlite.org/fileformat2.html
"""

import struct
from collections.abc import Generator, Iterator, Sequence
from typing import Final, TypeAlias

Value: TypeAlias = int | float | str | bytes | None
Row: TypeAlias = tuple[int | None, Sequence[Value]]
"""The rowid and the values; rowid None in an index, or in a table WITHOUT ROWID."""

_INDEX, _INDEX_LEAF, _TABLE, _TABLE_LEAF = 2, 10, 5, 13
_EMPTY: Final = 0  # free, or the continuation of a row that is longer than a page
_USUAL_SIZE: Final = 4096
_SIZES: Final = tuple(1 << power for power in range(9, 17))
_HEADER, _LOG_HEADER, _FRAME_HEADER = 100, 32, 24
_INTEGERS: Final = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
_FLOAT, _ZERO, _ONE, _BLOB = 7, 8, 9, 12
_LONGEST_VARINT: Final = 9


class Pages:
    """A database's pages, from its file and its write-ahead log, as of the last commit."""

    def __init__(self, file: bytes, log: bytes = b"") -> None:
        self._size = _page_size(file, log)
        self._file = file
        self._later, self._count = _of_log(log, self._size)
        self._count = self._count or -(-len(file) // self._size)
        self.damaged = 0
        """How many of the pages that `rows` has gone through could not be read, or not completely."""

    def rows(self) -> Iterator[Row]:
        """Every row of every page that can be read, in no order."""
        for number in range(1, self._count + 1):
            page = self._page(number)
            start = _HEADER if number == 1 else 0
            kind = page[start] if len(page) == self._size else None
            if kind in (_TABLE, _EMPTY):
                continue
            if kind not in (_INDEX, _INDEX_LEAF, _TABLE_LEAF):
                self.damaged += 1
                continue
            readable = yield from self._rows_of(page, start, kind)
            self.damaged += not readable

    def _page(self, number: int) -> bytes:
        if (later := self._later.get(number)) is not None:
            return later
        return self._file[(number - 1) * self._size : number * self._size]

    def _rows_of(self, page: bytes, start: int, kind: int) -> Generator[Row, None, bool]:
        """Yields the rows of a page that can be read; returns whether all of them could be."""
        head = start + (12 if kind == _INDEX else 8)
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        readable = head + 2 * count <= self._size
        for at in range(head, min(head + 2 * count, self._size - 1), 2):
            (place,) = struct.unpack_from(">H", page, at)
            try:
                yield self._row(page, place + (4 if kind == _INDEX else 0), kind)
            except (IndexError, ValueError, struct.error):
                readable = False
        return readable

    def _row(self, page: bytes, place: int, kind: int) -> Row:
        length, place = _varint(page, place)
        rowid = None
        if kind == _TABLE_LEAF:
            rowid, place = _varint(page, place)
        return rowid, _values(self._payload(page, place, length, kind))

    def _payload(self, page: bytes, place: int, length: int, kind: int) -> bytes:
        here = self._kept_on_the_page(length, kind)
        if length > len(self._file) + len(self._later) * self._size or place + here > self._size:
            raise ValueError("a row longer than the file")
        payload = page[place : place + here]
        if here == length:
            return payload
        parts, missing = [payload], length - here
        (number,) = struct.unpack_from(">I", page, place + here)
        while missing > 0:
            continued = self._page(number) if number else b""
            if len(continued) != self._size:
                raise ValueError("a row that does not go on")
            parts.append(continued[4 : 4 + missing])
            missing -= len(parts[-1])
            (number,) = struct.unpack_from(">I", continued, 0)
        return b"".join(parts)

    def _kept_on_the_page(self, length: int, kind: int) -> int:
        most = self._size - 35 if kind == _TABLE_LEAF else (self._size - 12) * 64 // 255 - 23
        if length <= most:
            return length
        least = (self._size - 12) * 32 // 255 - 23
        kept = least + (length - least) % (self._size - 4)
        return kept if kept <= most else least


def _page_size(file: bytes, log: bytes) -> int:
    sizes = [int.from_bytes(file[16:18], "big"), int.from_bytes(log[8:12], "big")]
    sizes = [_SIZES[-1] if size == 1 else size for size in sizes]
    return next((size for size in sizes if size in _SIZES), _USUAL_SIZE)


def _of_log(log: bytes, size: int) -> tuple[dict[int, bytes], int]:
    """The pages up to the last commit in the log, and the file's number of pages then; 0: no commit there."""
    pages: dict[int, bytes] = {}
    uncommitted: dict[int, bytes] = {}
    count, salts = 0, log[_LOG_HEADER + 8 : _LOG_HEADER + 16]
    for at in range(_LOG_HEADER, len(log) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
        number, commits = struct.unpack_from(">II", log, at)
        if log[at + 8 : at + 16] != salts:  # of an earlier round of the log
            break
        uncommitted[number] = log[at + _FRAME_HEADER : at + _FRAME_HEADER + size]
        if commits:
            pages |= uncommitted
            uncommitted, count = {}, commits
    return pages, count


def _varint(data: bytes, place: int) -> tuple[int, int]:
    """A number in SQLite's varint form, and the place after it."""
    value = 0
    for at in range(place, place + _LONGEST_VARINT - 1):
        value = value << 7 | data[at] & 0x7F
        if not data[at] & 0x80:
            return value, at + 1
    value = value << 8 | data[place + _LONGEST_VARINT - 1]
    return value, place + _LONGEST_VARINT


def _values(payload: bytes) -> Sequence[Value]:
    length, at = _varint(payload, 0)
    kinds = []
    while at < length:
        kind, at = _varint(payload, at)
        kinds.append(kind)
    values: list[Value] = []
    for kind in kinds:
        value, at = _value(payload, at, kind)
        values.append(value)
    return values


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in (_ZERO, _ONE):
        return kind - _ZERO, at
    if kind >= _BLOB:
        size = (kind - _BLOB) // 2
        data = _slice(payload, at, size)
        return (data.decode() if kind % 2 else data), at + size
    if kind == _FLOAT:
        return float(struct.unpack(">d", _slice(payload, at, 8))[0]), at + 8
    if kind not in _INTEGERS:
        raise ValueError("a kind of value that there is not")
    size = _INTEGERS[kind]
    return int.from_bytes(_slice(payload, at, size), "big", signed=True), at + size


def _slice(payload: bytes, at: int, size: int) -> bytes:
    data = payload[at : at + size]
    if len(data) != size:
        raise ValueError("a value longer than its row")
    return data
