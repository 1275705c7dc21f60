"""Embed the records that have no vector by the present embedder.

There are some after a change of EMBEDDING_MODEL, and after an embedder failed; session messages come without.
Until they are embedded, they are found by words alone: vectors of two embedders are never compared.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from supervisor_memory.embedding.languages import reads
from supervisor_memory.errors import BackendError, Conflict, EmbeddingError, RecordNotFound, SettingsError
from supervisor_memory.model.records import SESSION_FAMILY, AuditEvent, Filter, Record
from supervisor_memory.ports import Ports, Services
from supervisor_memory.stores.protocol import Change, Commit

if TYPE_CHECKING:
    from supervisor_memory.embedding.protocol import Embedder, Vector

Progress = Callable[[int, int], None]
"""Called after each commit with the number of records looked at, and the number that waited at first."""

_PAGE: Final = 1_000
_TOGETHER: Final = 128
_MESSAGES_TOGETHER: Final = 16  # long ones take a second or two, for which a process that ends waits
_SAID: Final = (SESSION_FAMILY,)
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


def waiting_for(fingerprint: str, user_id: str | None = None, *families: str) -> Filter:
    """A filter for the records without a vector by an embedder; session messages only by their family."""
    return Filter(user_id=user_id, families=families or None, not_embedded_by=fingerprint)


def reembed(services: Services, user_id: str | None, progress: Progress) -> Reembedded:
    """Embed records and messages without a vector, a page at a time. It may be cut off and run again.

    A record keeps its version, its times and its history; only the way it is found changes. If others change
    or delete a record meanwhile, it is read again.

    Raises:
        SettingsError: there is no embedder.
        EmbeddingError: it fails on every text; the error's fact `embedded` is the number done before.
        BackendError, DeadlineExceeded: the store failed.
    """
    if services.embedder is None:
        raise SettingsError("there is no embedder to embed records with; set EMBEDDING_MODEL")
    run = _Reembedding(services, _embedder(services), user_id)
    wheres = waiting_for(run.done.embedder, user_id).everywhere()
    total = sum(run.ports().store(services.backend.count, where) for where in wheres)
    progress(0, total)
    for _ in chain.from_iterable(map(run.steps, wheres)):
        progress(run.done.embedded + run.done.unread + len(run.done.refused), total)
    return run.done


def embedding_messages(
    services: Services, user_id: str | None, ids: Collection[str] | None = None
) -> Iterator[None]:
    """Embed session messages without a vector, the latest first, with a pause after each commit.

    The audit log gets no event, since nothing that was said changes. `user_id` None: everybody's; `ids` None:
    all. Raises EmbeddingError, BackendError and DeadlineExceeded as `reembed` does.
    """
    run = _Reembedding(services, _embedder(services), user_id, is_told=False)
    where = waiting_for(run.done.embedder, user_id, *_SAID)
    return run.steps(where if ids is None else replace(where, ids=tuple(ids)))


def _embedder(services: Services) -> "Embedder":
    view = Ports(services, seconds=_SECONDS, now=services.clock()).no_store()
    if (embedder := view.embedder) is None:
        raise EmbeddingError("the embedder could not be loaded; see the log, and `supervisor-memory doctor`")
    return embedder


@dataclass
class _Reembedding:
    """One run. `is_told`: the audit log gets an event for each commit."""

    _services: Services
    _embedder: "Embedder"
    _user_id: str | None
    is_told: bool = True

    def __post_init__(self) -> None:
        self._seen: set[str] = set()
        self.done = Reembedded(self._embedder.fingerprint)

    def steps(self, where: Filter) -> Iterator[None]:
        """Embed all that match, with a pause after each commit."""
        self._where, before = where, -1
        while before != self.done.embedded:  # because others may have moved or added records meanwhile
            before = self.done.embedded
            yield from self._pass()

    def _pass(self) -> Iterator[None]:
        """Go once through the records without a vector."""
        offset, together = 0, _TOGETHER if self.is_told else _MESSAGES_TOGETHER
        while page := self._page(offset):
            fresh = [record for record in page if record.id not in self._seen]
            self._seen.update(record.id for record in fresh)
            embedded = self.done.embedded
            legible = [record for record in fresh if reads(record.embedded_text, embedder=self._embedder)]
            self.done = replace(self.done, unread=self.done.unread + len(fresh) - len(legible))
            for start in range(0, len(legible), together):
                some = legible[start : start + together]
                self._write(some, self._vectors(some))
                yield
            offset += len(page) - (self.done.embedded - embedded)  # those embedded wait no more

    def _page(self, offset: int) -> Sequence[Record]:
        ports = self.ports()
        page = ports.read_store().list(self._where, limit=_PAGE, offset=offset)
        if ports.degraded and not self.is_told:
            raise BackendError("the store is out of reach, so its messages are embedded later")
        return page

    def _vectors(self, records: Sequence[Record]) -> "dict[str, Vector]":
        """Text → vector. If embedding them together fails, each is tried alone: one text may be the cause."""
        ports = self.ports()
        texts = list(dict.fromkeys(record.embedded_text for record in records))
        found = dict(zip(texts, ports.deciding().embed(texts), strict=True))
        if ports.degraded:
            if self.ports().deciding().embed([_ANY_TEXT])[0] is None:
                name, embedded = self.done.embedder, self.done.embedded
                told = f"{name} fails on every text; {embedded:,} records were embedded before and stay so. "
                raise EmbeddingError(f"{told}See the log, mend it, and run this again", embedded=embedded)
            for text in texts:
                alone = replace(ports, seconds=ports.left(), faults=[])
                (found[text],) = alone.deciding().embed([text])
        return {text: vector for text, vector in found.items() if vector is not None}

    def _write(self, records: Sequence[Record], known: "dict[str, Vector]", *, tries: int = _TRIES) -> None:
        """Write the vectors in one commit; after a conflict, read the records and write them again."""
        taken = [record for record in records if record.embedded_text in known]
        refused = [record.id for record in records if record.embedded_text not in known]
        if taken:
            try:
                self.ports().deciding().commit(self._commit(taken, known))
            except (Conflict, RecordNotFound):
                if not tries:
                    raise
                self._write_again(taken, known, tries - 1)
            else:
                self.done = replace(self.done, embedded=self.done.embedded + len(taken))
        self.done = replace(self.done, refused=(*self.done.refused, *refused))

    def _write_again(self, records: Sequence[Record], known: "dict[str, Vector]", tries: int) -> None:
        """Write in two halves, so that in the end only the conflicting record is written alone."""
        half = (len(records) + 1) // 2
        for part in (records[:half], records[half:]):
            where = replace(self._where, ids=tuple(record.id for record in part))
            waiting = self.ports().read_store().list(where, limit=len(part)) if part else ()
            changed = [record for record in waiting if record.embedded_text not in known]
            self._write(waiting, {**known, **(self._vectors(changed) if changed else {})}, tries=tries)

    def _commit(self, records: Sequence[Record], known: "dict[str, Vector]") -> Commit:
        name = self._embedder.fingerprint
        changes = tuple(
            Change(replace(record, vector=known[record.embedded_text], embedder=name), expects=record.version)
            for record in reversed(records)  # the oldest first, as they lie in files
        )
        detail: dict[str, str | int] = {"records": len(records), "embedder": name}
        event = AuditEvent("memory.reembed", user_id=self._user_id, actor="operator", detail=detail)
        return Commit(changes, (event,) if self.is_told else ())

    def ports(self) -> Ports:
        """New ports with more time than a turn has, since many texts are embedded at once."""
        return Ports(self._services, seconds=_SECONDS, now=self._services.clock())
