"""Calls to Qdrant: locks, requests of a size that servers take, checks that writes are done, errors as ours.

The client's own timeout is no deadline (a server that trickles can hold a call for any time); callers set
a deadline with `supervisor_memory.bridge`.
"""

import contextlib
import inspect
import logging
import re
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar

from qdrant_client import QdrantClient, models

from supervisor_memory.disk.database import LOCK_SECONDS
from supervisor_memory.errors import BackendError, BackendUnavailable, SettingsError
from supervisor_memory.stores.qdrant.points import (
    DENSE,
    INDEXES,
    INDEXES_OF_VERSIONS,
    READ,
    WORDS,
    also,
    updated_at,
)

T = TypeVar("T")
_PAGE: Final = 1_000
_MOST_IN_ORDER: Final = 10_000
WRITTEN_TOGETHER: Final = 100
_LATELY: Final = 1.0  # seconds
_MAJORITY: Final = models.ReadConsistencyType.MAJORITY
_NO_ANSWER: Final = 500
_TOO_MANY: Final = 429
_MISSING: Final = 404
_REFUSED: Final = 400
_REDIRECTS: Final = range(300, 400)
_DENIED: Final = (401, 403)
_log = logging.getLogger("supervisor_memory")
_locks: "weakref.WeakValueDictionary[str, threading.RLock]" = weakref.WeakValueDictionary()
"""A lock for each server or local store, by its address; it goes with the last `QdrantCalls` there."""
_making_locks = threading.Lock()


class QdrantCalls:
    """The calls to a server or a local store. All `QdrantCalls` of this process to one place share a lock.

    Raises:
        SettingsError: the client is not a synchronous one.
    """

    _made_one: ClassVar[float] = 0.0  # when this process last made a collection anywhere

    def __init__(self, client: QdrantClient) -> None:
        if inspect.iscoroutinefunction(getattr(client, "get_collections", None)):
            raise SettingsError(
                "this is an async client; pass a qdrant_client.QdrantClient, the async verbs of memory call "
                "it from worker threads",
                client=type(client).__name__,
            )
        self._client = client
        options = client.init_options
        self.is_local = options.get("location") == ":memory:" or options.get("path") is not None
        self.is_volatile = options.get("location") == ":memory:"
        self.address = _address(options)
        key = f"client {id(client)}" if self.is_volatile else self.address
        with _making_locks:
            self._lock = _locks.setdefault(key, threading.RLock())
        self._ready: set[str] = set()
        self._listed: tuple[float, Sequence[str]] | None = None

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other backends of this process from writing to the same place within the block.

        Raises:
            BackendUnavailable: another backend wrote for too long.
        """
        if not self._lock.acquire(timeout=LOCK_SECONDS):
            told = f"waited {LOCK_SECONDS:g} s for another write to {self.address}; look whether it hangs"
            raise BackendUnavailable(told, location=self.address)
        try:
            yield
        finally:
            self._lock.release()

    # Reading

    def server_version(self) -> str:
        return str(self._call("look", self._client.info).version)

    def collections(self) -> Sequence[str]:
        """The names of all collections, also of others."""
        asked = time.monotonic()
        found = self._call("list of collections", self._client.get_collections)
        names = sorted(each.name for each in found.collections)
        self._listed = asked, names
        return names

    def collections_lately(self) -> Sequence[str]:
        """As `collections`, but may be up to a second old with regard to other processes."""
        if self._listed is not None and not self.is_local:
            asked, names = self._listed
            if asked > max(time.monotonic() - _LATELY, QdrantCalls._made_one):
                return names
        return self.collections()

    def retrieve(
        self, name: str, points: Sequence[str], *, payload: Sequence[str] = READ, vectors: bool = False
    ) -> Sequence[models.Record]:
        """The points with these ids, as most replicas have them; none where there is no collection."""
        found: list[models.Record] = []
        wanted: dict[str, Any] = {"with_payload": [*payload], "with_vectors": [DENSE] if vectors else False}
        for some in chunks(points):
            ask = partial(self._client.retrieve, name, some, **wanted, consistency=_MAJORITY)
            found += self._call("read", ask, missing=[])
        return found

    def all(
        self,
        name: str,
        where: models.Filter,
        *,
        payload: Sequence[str] = READ,
        consistency: models.ReadConsistencyType | None = None,
    ) -> Sequence[models.Record]:
        """All points that match. `consistency` None: as any replica has them."""
        found: list[models.Record] = []
        read = partial(self._scroll, name, where, payload, limit=_PAGE, consistency=consistency)
        offset: Any = None
        while True:
            page, offset = read(offset=offset)
            found += page
            if offset is None:
                return found

    def in_order(
        self, name: str, where: models.Filter, *, after: str | None, together: int, vectors: bool
    ) -> Iterator[models.Record]:
        """The points that match, in order of their ids, from behind `after`; read in pages of `together`."""
        offset: Any = after
        limit = min(together + 1, _PAGE)
        while True:
            page, offset = self._scroll(name, where, READ, limit=limit, offset=offset, vectors=vectors)
            yield from (point for point in page if str(point.id) != after)
            if offset is None:
                return

    def newest(self, name: str, where: models.Filter, *, most: int) -> Sequence[models.Record]:
        """The `most` last updated points that match, at least, with all that tie with the last of them."""
        if most > _MOST_IN_ORDER:
            return self.all(name, where)
        order = models.OrderBy(key="updated_at", direction=models.Direction.DESC)
        page, _ = self._scroll(name, where, [*READ, "updated_at"], limit=most + 1, order_by=order)
        if len(page) <= most:
            return page
        # Qdrant breaks ties as it likes.
        last = (page[most - 1].payload or {}).get("updated_at")
        before = [point for point in page if (point.payload or {}).get("updated_at") != last]
        return [*before, *self.all(name, also(where, updated_at(float(last or 0.0))))]

    def count(self, name: str, where: models.Filter | None) -> int:
        """How many points match; `where` None: how many points there are."""
        ask = partial(self._client.count, name, count_filter=where, exact=True)
        return int(self._filtered(name, "count", ask, missing=models.CountResult(count=0)).count)

    def queries(
        self, name: str, requests: Sequence[models.QueryRequest]
    ) -> Sequence[Sequence[models.ScoredPoint]]:
        """The answers to several queries of a collection, in one request."""

        def ask() -> Sequence[Sequence[models.ScoredPoint]]:
            return [answer.points for answer in self._client.query_batch_points(name, requests)]

        none: Sequence[Sequence[models.ScoredPoint]] = [[] for _ in requests]
        answers = self._filtered(name, "search", ask, missing=none)
        if len(answers) != len(requests):
            told = (
                f"{self.address} answered {len(requests)} queries with {len(answers)} results; look whether "
            )
            raise BackendError(told + "a proxy is in between", location=self.address)
        return answers

    # Writing

    def ensure(self, name: str, *, dimension: int | None) -> None:
        """Make a collection with its indexes, unless it is there.

        `dimension` is that of its vectors; 0: it has only words; None: it is the collection of versions.
        """
        if name not in self._ready:
            if name not in self.collections():
                self._create(name, dimension)
            self.index(name)

    def index(self, name: str) -> None:
        """Make the indexes that a collection lacks: its maker may have been interrupted."""
        if name in self._ready:
            return
        indexes = INDEXES_OF_VERSIONS if name.endswith("~versions") else INDEXES
        if not self.is_local:  # a local store has none and warns that it has none
            present = self._call("look", lambda: self._client.get_collection(name)).payload_schema
            for key in indexes.keys() - present.keys():
                make = partial(
                    self._client.create_payload_index, name, key, field_schema=indexes[key], wait=True
                )
                self._check_done("index", [self._call("index", make)])
        self._ready.add(name)

    def write(self, name: str, operations: Sequence[models.UpsertOperation]) -> None:
        """Make upserts, one after the other. After an error, any of them may have been made."""
        for some in _requests(operations):
            apply = partial(
                self._client.batch_update_points, name, some, wait=True, ordering=models.WriteOrdering.STRONG
            )
            self._check_done("write", self._call("write", apply))

    def remove(self, name: str, points: Sequence[str]) -> None:
        """Delete points by their ids. A missing collection is fine: its points are gone."""
        done = models.UpdateResult(status=models.UpdateStatus.COMPLETED)
        for some in chunks(points):
            ids = models.PointIdsList(points=[*some])
            remove = partial(self._client.delete, name, ids, wait=True, ordering=models.WriteOrdering.STRONG)
            self._check_done("write", [self._call("write", remove, missing=done)])

    def drop(self, name: str) -> None:
        """Delete a collection with all its points."""
        self._call("removal of a collection", lambda: self._client.delete_collection(name))
        self.look_again()

    def look_again(self) -> None:
        """Check collections and their indexes anew: another instance may have dropped some."""
        self._ready.clear()

    def _create(self, name: str, dimension: int | None) -> None:
        # No graph over all users: their vectors are reached through the index of the user alone.
        graphs, cosine = models.HnswConfigDiff(m=0, payload_m=16), models.Distance.COSINE
        dense = {DENSE: models.VectorParams(size=dimension or 0, distance=cosine, hnsw_config=graphs)}
        # In the collection of versions, too: not every release makes a collection for payloads alone.
        words = {WORDS: models.SparseVectorParams(modifier=models.Modifier.IDF)}
        try:
            make = partial(self._client.create_collection, name, vectors_config=dense if dimension else {})
            self._call("creation of a collection", partial(make, sparse_vectors_config=words))
        except BackendError:
            if name not in self.collections():  # else another process was faster
                raise
        QdrantCalls._made_one = time.monotonic()

    def _check_done(self, verb: str, results: Sequence[models.UpdateResult]) -> None:
        if not results or any(each.status != models.UpdateStatus.COMPLETED for each in results):
            self._ready.clear()
            told = f"took a {verb} without completing it, so it may or may not be there; read "
            told += "again, and look at the load of the server"
            raise BackendUnavailable(f"{self.address} {told}", location=self.address)

    def _scroll(
        self,
        name: str,
        where: models.Filter,
        payload: Sequence[str],
        *,
        limit: int,
        offset: Any = None,
        order_by: models.OrderBy | None = None,
        vectors: bool = False,
        consistency: models.ReadConsistencyType | None = None,
    ) -> tuple[Sequence[models.Record], Any]:
        none: tuple[list[models.Record], Any] = ([], None)
        ask: Callable[[], tuple[list[models.Record], Any]] = partial(
            self._client.scroll,
            name,
            scroll_filter=where,
            limit=limit,
            offset=offset,
            order_by=order_by,
            with_payload=list(payload),
            with_vectors=[DENSE] if vectors else False,
            consistency=consistency,
        )
        return self._filtered(name, "read", ask, missing=none)

    def _filtered(self, name: str, verb: str, ask: Callable[[], T], *, missing: T) -> T:
        try:
            return self._call(verb, ask, missing=missing)
        except BackendError as error:
            if error.facts.get("status") != _REFUSED:
                raise
            # It orders only by what is indexed, and in strict mode filters by nothing else.
            self.index(name)
            return self._call(verb, ask, missing=missing)

    def _call(self, verb: str, call: Callable[[], T], *, missing: T | None = None) -> T:
        # A local store is not safe between threads.
        with self.writing() if self.is_local else contextlib.nullcontext():
            try:
                answer = call()
            except Exception as error:
                self._listed = None
                if missing is not None and _says_no_collection(error):
                    return missing
                self._ready.clear()
                told = self._translated(verb, error)
                # Its text goes to the log alone: it may hold what was sent, and ours may reach a model. Where
                # the server is out of reach a trace of a hundred lines says no more than the text.
                trace = None if isinstance(told, BackendUnavailable) else error
                _log.warning("%s failed in a %s: %s", self.address, verb, error, exc_info=trace)
                raise told from error
        if answer is None:
            nothing = f"{self.address} answered a {verb} with nothing; look whether it is a Qdrant server"
            raise BackendError(nothing, location=self.address)
        return answer

    def _translated(self, verb: str, error: Exception) -> BackendError:
        status = getattr(error, "status_code", None)
        source = getattr(error, "source", error)  # what a ResponseHandlingException was raised for
        name, number = type(source).__name__, status if isinstance(status, int) else 0
        modules = {cls.__module__.partition(".")[0] for cls in type(source).__mro__}
        kind: type[BackendError] = BackendUnavailable
        if number in _DENIED:
            why = f": it refuses the key ({status}); check QDRANT_KEY"
        elif number in _REDIRECTS:
            why = f": it redirects ({status}), which is never followed; set QDRANT_URL to the address itself"
        elif number == _TOO_MANY or hasattr(error, "retry_after_s"):
            why = f": it is asked too much ({_TOO_MANY}); try again later"
        elif number >= _NO_ANSWER:
            why = f" with status {status}; look at the server's log"
        elif "Timeout" in name:
            why = f": no answer in time ({name}); look at the load of the server and the network"
        elif isinstance(source, OSError) or modules & {"httpx", "httpcore", "grpc"}:
            why = f": it cannot be reached ({name}); check QDRANT_URL and whether the server runs"
        elif isinstance(source, RuntimeError) and "closed" in str(source):
            why = ": its client is closed; open memory again"
        elif number:
            kind, why = BackendError, f": it does not take the request (status {status}); see the log, and "
            why += "check that the server is Qdrant of a release that fits the installed qdrant-client"
        else:
            kind, why = BackendError, f" with {name}; see the log, and "
            why += "check that QDRANT_URL is the address of a Qdrant server"
        failed = f"{self.address} failed in a {verb}"
        return kind(f"{failed}{why}", location=self.address, verb=verb, status=status)


def chunks(values: Sequence[T]) -> Iterable[list[T]]:
    return (list(values[at : at + WRITTEN_TOGETHER]) for at in range(0, len(values), WRITTEN_TOGETHER))


def _requests(operations: Sequence[models.UpsertOperation]) -> Iterable[list[models.UpsertOperation]]:
    """The operations divided into requests of a size that any server takes."""
    request: list[models.UpsertOperation] = []
    size = 0
    for operation in operations:
        points = len(operation.upsert.points) if isinstance(operation.upsert, models.PointsList) else 1
        if request and size + points > WRITTEN_TOGETHER:
            yield request
            request, size = [], 0
        request.append(operation)
        size += points
    if request:
        yield request


def _says_no_collection(error: Exception) -> bool:
    """Whether Qdrant says that a collection is missing: any web server can answer 404."""
    if getattr(error, "status_code", None) == _MISSING:
        return b"doesn't exist" in getattr(error, "content", b"")
    return isinstance(error, ValueError) and bool(re.fullmatch(r"Collection .* not found", str(error)))


def _address(options: Mapping[str, Any]) -> str:
    """The address of the client's server or directory, without user, password and query."""
    if options.get("path") is not None:
        return str(Path(options["path"]).absolute())
    location = options.get("location") or options.get("url")
    if location is None:
        location = f"{options.get('host') or 'localhost'}:{options.get('port')}{options.get('prefix') or ''}"
    return re.sub(r"//[^@/]*@", "//", str(location)).partition("?")[0]
