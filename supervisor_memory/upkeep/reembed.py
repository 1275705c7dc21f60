"""Embed the records that have no vector by the present embedder.

There are some after a change of EMBEDDING_MODEL, and after an embedder failed during writes. Until they are
embedded, they are found by words alone: vectors of two embedders are never compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from supervisor_memory.embedding.languages import reads
from supervisor_memory.errors import Conflict, EmbeddingError, RecordNotFound, SettingsError
from supervisor_memory.model.records import AuditEvent, Filter, Record
from supervisor_memory.ports import Ports, Services
from supervisor_memory.stores.protocol import Change, Commit

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Embedder, Vector

Progress = Callable[[int, int], None]
"""Called after each commit with the number of records looked at, and the number that waited at first."""

_PAGE: Final = 1_000
_TOGETHER: Final = 128
_SECONDS: Final = 300.0
_TRIES: Final = 20
_ANY_TEXT: Final = "What did we agree on?"


@dataclass(frozen=True, slots=True)
class Reembedded:
    """The result of embedding again.

    Attributes:
        embedder: The fingerprint of the embedder.
        embedded: The number of records with a new vector.
        unread: The number of records in a language that it does not read; they are found by words alone.
        refused: The ids of records on which it failed, though not on others; the next run tries them again.
    """

    embedder: str
    embedded: int = 0
    unread: int = 0
    refused: tuple[str, ...] = ()


def waiting_for(fingerprint: str, user_id: str | None = None) -> Filter:
    """A filter for the records without a vector by an embedder. Session messages never have one."""
    return Filter(user_id=user_id, not_embedded_by=fingerprint)


def reembed(services: Services, user_id: str | None, progress: Progress) -> Reembedded:
    """Embed the records without a vector, a page at a time. It may be cut off at any time and run again.

    A record keeps its version, its times and its history; only the way it is found changes. If others change
    or delete a record meanwhile, it is read again.

    Raises:
        SettingsError: there is no embedder.
        EmbeddingError: it fails on every text; the error's fact `embedded` is the number done before.
        BackendError, DeadlineExceeded: the store failed.
    """
    view = Ports(services, seconds=_SECONDS, now=services.clock()).no_store()
    if services.embedder is None:
        raise SettingsError("there is no embedder to embed records with; set EMBEDDING_MODEL")
    if (embedder := view.embedder) is None:
        raise EmbeddingError("the embedder could not be loaded; see the log, and `supervisor-memory doctor`")
    return _Reembedding(services, embedder, user_id, progress).run()


@dataclass
class _Reembedding:
    _services: Services
    _embedder: "Embedder"
    _user_id: str | None
    _progress: Progress

    def __post_init__(self) -> None:
        self._where = waiting_for(self._embedder.fingerprint, self._user_id)
        self._seen: set[str] = set()
        self._done = Reembedded(self._embedder.fingerprint)

    def run(self) -> Reembedded:
        ports = self._ports()
        self._total = ports.store(self._services.backend.count, self._where)
        self._progress(0, self._total)
        while self._pass():  # because others may have moved or added records meanwhile
            pass
        return self._done

    def _pass(self) -> int:
        """Go once through the records without a vector; returns how many were embedded."""
        before, offset = self._done.embedded, 0
        while page := self._ports().read_store().list(self._where, limit=_PAGE, offset=offset):
            fresh = [record for record in page if record.id not in self._seen]
            self._seen.update(record.id for record in fresh)
            embedded = self._done.embedded
            legible = [record for record in fresh if reads(record.embedded_text, embedder=self._embedder)]
            self._done = replace(self._done, unread=self._done.unread + len(fresh) - len(legible))
            for start in range(0, len(legible), _TOGETHER):
                some = legible[start : start + _TOGETHER]
                self._write(some, self._vectors(some))
                done = self._done
                self._progress(done.embedded + done.unread + len(done.refused), self._total)
            offset += len(page) - (self._done.embedded - embedded)  # those embedded wait no more
        return self._done.embedded - before

    def _vectors(self, records: Sequence[Record]) -> "dict[str, Vector]":
        """Text → vector. If embedding them together fails, each is tried alone: one text may be the cause."""
        ports = self._ports()
        texts = list(dict.fromkeys(record.embedded_text for record in records))
        found = dict(zip(texts, ports.deciding().embed(texts), strict=True))
        if ports.degraded:
            for text in texts:
                alone = replace(ports, seconds=ports.left(), faults=[])
                (found[text],) = alone.deciding().embed([text])
        known = {text: vector for text, vector in found.items() if vector is not None}
        if not known and self._ports().deciding().embed([_ANY_TEXT])[0] is None:
            name, embedded = self._embedder.fingerprint, self._done.embedded
            raise EmbeddingError(
                f"{name} fails on every text; {embedded:,} records were embedded before that and stay so. "
                "See the log, mend it, and run this again",
                embedded=embedded,
            )
        return known

    def _write(self, records: Sequence[Record], known: "dict[str, Vector]", *, tries: int = _TRIES) -> None:
        """Write the vectors in one commit; after a conflict, read the records and write them again."""
        taken = [record for record in records if record.embedded_text in known]
        refused = [record.id for record in records if record.embedded_text not in known]
        if taken:
            try:
                self._ports().deciding().commit(self._commit(taken, known))
            except (Conflict, RecordNotFound):
                if not tries:
                    raise
                self._write_again(taken, known, tries - 1)
            else:
                self._done = replace(self._done, embedded=self._done.embedded + len(taken))
        self._done = replace(self._done, refused=(*self._done.refused, *refused))

    def _write_again(self, records: Sequence[Record], known: "dict[str, Vector]", tries: int) -> None:
        """Write in two halves, so that in the end only the conflicting record is written alone."""
        half = (len(records) + 1) // 2
        for part in (records[:half], records[half:]):
            where = replace(self._where, ids=tuple(record.id for record in part))
            waiting = self._ports().read_store().list(where, limit=len(part)) if part else ()
            changed = [record for record in waiting if record.embedded_text not in known]
            self._write(waiting, {**known, **(self._vectors(changed) if changed else {})}, tries=tries)

    def _commit(self, records: Sequence[Record], known: "dict[str, Vector]") -> Commit:
        name = self._embedder.fingerprint
        changes = tuple(
            Change(replace(record, vector=known[record.embedded_text], embedder=name), expects=record.version)
            for record in records
        )
        detail: dict[str, str | int] = {"records": len(records), "embedder": name}
        event = AuditEvent("memory.reembed", user_id=self._user_id, actor="operator", detail=detail)
        return Commit(changes, (event,))

    def _ports(self) -> Ports:
        """New ports with more time than a turn has, since many texts are embedded at once."""
        return Ports(self._services, seconds=_SECONDS, now=self._services.clock())
