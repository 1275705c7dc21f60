"""Our records as a LangGraph store: items that a graph or langmem puts become records, and the reverse."""

import contextlib
import heapq
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeAlias

from langchain_core.embeddings import Embeddings
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    validate_op_namespace,
)

from supervisor_memory.bridge import finished
from supervisor_memory.core import Memory
from supervisor_memory.embedding.langchain import LangChainEmbedder
from supervisor_memory.embedding.protocol import Calibration
from supervisor_memory.errors import Conflict, ReadOnlyStore
from supervisor_memory.host.store.addresses import Address, Labels, label_for, scopes, user_for
from supervisor_memory.host.store.conditions import fits, matches
from supervisor_memory.host.store.items import Entry
from supervisor_memory.host.store.puts import SECONDS_A_MINUTE, Draft, at, decided, draft_of, event, named
from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Filter, Query, Record
from supervisor_memory.ports import Ports, Services
from supervisor_memory.stages.post_retrieval.rank import coverage
from supervisor_memory.stores.protocol import Change, Commit

if TYPE_CHECKING:
    from supervisor_memory.model.records import Vector

__all__ = ["MemoryStore", "label_for", "user_for"]

_PAGE: Final = 500
_CHUNK: Final = 64  # texts embedded within one deadline
_TRIES: Final = 20
_MOST: Final = 1 << 40  # items of one search: backends count further than this
_WIDER: Final = 4
_REFRESH_AFTER: Final = 0.01  # of a life: a burst of reads is no burst of commits

_AS_THEY_ARE = Calibration(unrelated=0.0, same=1.0)  # so that scores are raw cosines

_Found: TypeAlias = tuple[Entry, float | None]


@dataclass(frozen=True, slots=True)
class Index:
    """The paths of the texts to embed, and services with the index's own embedder."""

    services: Services
    fields: tuple[str, ...]

    @classmethod
    def of(cls, config: IndexConfig, services: Services) -> "Index":
        """Read an index from its config; raises ValueError if `embed` cannot embed."""
        embeddings = ensure_embeddings(config.get("embed"))
        if hasattr(embeddings, "afunc"):
            embeddings = _OffTheLoop(embeddings)
        embedder = LangChainEmbedder(embeddings, dimension=config.get("dims"), calibration=_AS_THEY_ARE)
        alone = replace(services, embedder=embedder, vectors={}, embedder_is_known=threading.Event())
        return cls(alone, tuple(config.get("fields") or ("$",)))


class _OffTheLoop(Embeddings):
    """An async-only embedding function, called on memory's own threads, which have no event loop."""

    def __init__(self, inner: Embeddings) -> None:
        self._inner = inner

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return finished(self._inner.aembed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return finished(self._inner.aembed_query(text))


class MemoryStore(BaseStore):
    """A `BaseStore` over the records of a memory, whatever its backend.

    The namespace `("memories", label_for(user))` holds the records that `memory.search(user_id=user)` finds
    in the family `memories`; a third label is a task. Any other namespace works too, and belongs to no user.
    An item is found by its `content`, or by all of its value; a record that memory wrote is the item
    `{"kind": "Memory", "content": {"content": text}, "supervisor_memory": {…}}` with its id as key, and a
    put there changes its text and keeps the rest.

    It knows nothing of rights: whoever holds it reads and writes every user's records.

    Args:
        index: The fields and the embedder for searches here. None: the text, with the memory's embedder; if
            it has none, searches go by words. With an index, a search reads all items under its prefix.
        ttl: The `default_ttl` in minutes, and whether reading renews it (`refresh_on_read`). Expired items
            are never returned, and never swept away.

    Raises:
        InvalidContent: JSON cannot hold a value, or it is too large; nothing of that batch was put.
        BackendError, DeadlineExceeded: the store failed.
    """

    supports_ttl = True

    def __init__(
        self, memory: Memory, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None
    ) -> None:
        self.index_config = index
        self.ttl_config = ttl
        self._bridge = memory.bridge
        self._services = memory.services
        self._index = None if index is None else Index.of(index, memory.services)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run the ops; results are in their order. Reads run before puts; the last put to a key wins."""
        asked = [self._redacted(op) for op in ops]
        for op in asked:
            validate_op_namespace(op)
        results = [self._answer(op) for op in asked]
        puts = {_address(op): op for op in asked if isinstance(op, PutOp)}
        if puts:
            self._put(puts)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, off the event loop."""
        return await self._bridge.run(self.batch, list(ops))

    def _redacted(self, op: Op) -> Op:
        """Redact the value, the query and the filter of an op; its address stays."""
        redactor = self._services.redactor
        if redactor.is_off:
            return op
        if isinstance(op, PutOp) and op.value is not None:
            return op._replace(value=redactor.value(op.value))
        if isinstance(op, SearchOp):
            query = redactor.text(op.query) if op.query else op.query
            return op._replace(query=query, filter=redactor.value(op.filter))
        return op

    def _answer(self, op: Op) -> Result:
        match op:
            case GetOp():
                return self._get(op)
            case SearchOp():
                return self._search(op)
            case ListNamespacesOp():
                return self._namespaces(op)
            case PutOp():
                return None
        raise ValueError(f"{type(op).__name__} is no operation of a store")

    # --- reading

    def _get(self, op: GetOp) -> Item | None:
        address, ports = _address(op), self._reading()
        held = ports.read_store().list(named([address]), limit=2)
        entry = at(address, {record.id: record for record in held})
        if entry is None or not entry.record.is_visible(ports.now):
            return None
        if op.refresh_ttl:
            self._renew([entry])
        return entry.item()

    def _search(self, op: SearchOp) -> list[SearchItem]:
        offset, limit = max(0, op.offset), max(0, op.limit)
        found = self._first_found(op, min(offset + limit, _MOST))[offset:]
        if op.refresh_ttl:
            self._renew([entry for entry, _ in found])
        return [entry.hit(score) for entry, score in found]

    def _first_found(self, op: SearchOp, wanted: int) -> list[_Found]:
        """The first matching items: scored items first, best first, then the others, newest first."""
        scored = list(self._scored(op, op.query, wanted)) if op.query else []
        best = sorted(scored, key=lambda found: -(found[1] or 0.0))[:wanted]
        seen = {entry.record.id for entry, _ in best}
        others = (entry for entry in self._matching(op) if entry.record.id not in seen)
        return best + [(entry, None) for entry in islice(others, wanted - len(best))]

    def _scored(self, op: SearchOp, query: str, wanted: int) -> Iterator[_Found]:
        """Items with their score for a query: at least `wanted`, if that many match."""
        index = self._index
        view = self._reading(None if index is None else index.services).read_store()
        vector = view.embed_query(query)
        embedder = view.embedder if vector is not None else None
        if vector is None or embedder is None:
            asked = frozenset(terms(query))
            covered = ((entry, coverage(asked, entry.record)) for entry in self._matching(op))
            return ((entry, share) for entry, share in covered if share > 0)
        if index is None:
            asked_near = Query("", Filter(), vector=vector, embedder=embedder.fingerprint)
            return self._nearest(op, asked_near, wanted)
        return self._best_field(op, vector, embedder.fingerprint)

    def _best_field(self, op: SearchOp, vector: "Vector", embedder: str) -> Iterator[_Found]:
        for entry in self._matching(op):
            if rows := [row for row in entry.vectors(embedder) if row.shape == vector.shape]:
                yield entry, max(float(row @ vector) for row in rows)

    def _nearest(self, op: SearchOp, query: Query, wanted: int) -> Iterator[_Found]:
        """The nearest items of each user under the prefix, by the vectors of the backend."""
        for where in self._of_each_user(tuple(op.namespace_prefix)):
            take = wanted
            while True:
                ports = self._reading()
                asked = replace(query, where=where, now=ports.now)
                near = [hit for hit in ports.read_store().search(asked, limit=take) if "cosine" in hit.parts]
                entries = ((Entry.of(hit.record), hit.parts["cosine"]) for hit in near)
                found = [(entry, cosine) for entry, cosine in entries if entry and _is_meant(entry, op)]
                if len(found) >= wanted or len(near) < take:
                    yield from found
                    break
                take *= _WIDER

    def _of_each_user(self, prefix: Labels) -> Iterator[Filter]:
        """Filters that each name a user, as a search by meaning needs them."""
        for where in scopes(prefix):
            if where.user_id is not None:
                yield where
            else:
                owners = {(record.user_id, record.family) for record in self._listed(where)}
                yield from (Filter(user_id=user, families=(family,)) for user, family in sorted(owners))

    def _matching(self, op: SearchOp) -> Iterator[Entry]:
        """The items under a search's prefix that pass its filter."""
        prefix = tuple(op.namespace_prefix)
        return (entry for entry in self._entries(prefix) if matches(entry.value, op.filter))

    def _entries(self, prefix: Labels) -> Iterator[Entry]:
        """The items under a prefix, most recently updated first."""
        streams = [self._listed(where) for where in scopes(prefix)]
        for record in heapq.merge(*streams, key=lambda r: (r.updated_at, r.id), reverse=True):
            entry = Entry.of(record)
            if entry is not None and entry.address.is_under(prefix):
                yield entry

    def _listed(self, where: Filter) -> Iterator[Record]:
        while True:
            ports = self._reading()
            page = ports.read_store().list(where, limit=_PAGE)
            yield from (record for record in page if record.is_visible(ports.now))
            if len(page) < _PAGE:
                return
            where = where.after(page[-1])

    def _namespaces(self, op: ListNamespacesOp) -> list[Labels]:
        conditions = op.match_conditions or ()
        paths = [tuple(each.path) for each in conditions if each.match_type == "prefix"]
        prefix = next((path for path in paths if "*" not in path), ())
        every = {entry.address.labels for entry in self._entries(prefix)}
        found = {labels for labels in every if all(fits(labels, each) for each in conditions)}
        cut = sorted({labels[: op.max_depth] for labels in found})
        return cut[max(0, op.offset) :][: max(0, op.limit)]

    def _renew(self, entries: Sequence[Entry]) -> None:
        """Renew the lives of items that were read. If another writer changes one first, its expiry stands."""
        ports = self._writing()
        changes: list[Change] = []
        for entry in entries:
            if entry.ttl is None or (expires := entry.record.expires_at) is None:
                continue
            renewed = ports.now + entry.ttl * SECONDS_A_MINUTE
            if renewed - expires > entry.ttl * SECONDS_A_MINUTE * _REFRESH_AFTER:
                changes.append(Change(replace(entry.record, expires_at=renewed), entry.record.version))
        if changes:
            events = [event("store.put", each, before=each.record, reason="ttl-renewed") for each in changes]
            with contextlib.suppress(Conflict, ReadOnlyStore):
                ports.deciding().commit(Commit(tuple(changes), tuple(events)))

    # --- writing

    def _put(self, puts: Mapping[Address, PutOp]) -> None:
        """Put and delete, all in one commit; decided again when another writer was faster."""
        gone = [address for address, op in puts.items() if op.value is None]
        drafts = self._embedded(draft_of(address, op) for address, op in puts.items() if op.value is not None)
        verbatim: set[str] = set()
        tries = _TRIES
        while True:
            ports = self._writing()
            commit = decided(drafts, gone, verbatim, ports.deciding())
            try:
                if commit.changes:
                    ports.deciding().commit(commit)
                return
            except Conflict as error:
                twin = error.facts.get("change_id")
                if error.facts.get("what") == "content_hash" and twin not in verbatim:
                    verbatim.add(str(twin))
                    continue
                tries -= 1
                if not tries:
                    raise

    def _embedded(self, drafts: Iterable[Draft]) -> list[Draft]:
        """The drafts with their vectors: of their text, and of their fields where there is an index."""
        given, index = list(drafts), self._index
        near = {draft: draft.near_text(indexed=index is not None) for draft in given}
        vectors, embedder = self._vectors(self._services, filter(None, near.values()))
        given = [replace(d, vector=vectors.get(near[d] or ""), embedder=embedder) for d in given]
        if index is None:
            return given
        fields = [draft.texts(index.fields) for draft in given]
        vectors, embedder = self._vectors(index.services, chain.from_iterable(fields))
        rows = [tuple(vectors[text] for text in texts if text in vectors) for texts in fields]
        return [replace(d, rows=found, index=embedder) for d, found in zip(given, rows, strict=True)]

    def _vectors(self, services: Services, texts: Iterable[str]) -> "tuple[dict[str, Vector], str | None]":
        """The vectors by text, for texts that could be embedded, and the embedder's fingerprint."""
        wanted = list(dict.fromkeys(texts))
        found: dict[str, Vector] = {}
        for start in range(0, len(wanted), _CHUNK):
            chunk = wanted[start : start + _CHUNK]
            ports = self._writing(services)
            vectors = ports.deciding().embed(chunk)
            found |= {t: v for t, v in zip(chunk, vectors, strict=True) if v is not None}
            if ports.degraded:
                break
        return found, services.embedder.fingerprint if found and services.embedder else None

    def _reading(self, services: Services | None = None) -> Ports:
        used = services or self._services
        return used.ports(used.settings.search_timeout_ms, with_model=False)

    def _writing(self, services: Services | None = None) -> Ports:
        used = services or self._services
        return used.ports(used.settings.write_timeout_ms, with_model=False)


def _address(op: GetOp | PutOp) -> Address:
    return Address(tuple(op.namespace), str(op.key))


def _is_meant(entry: Entry, op: SearchOp) -> bool:
    return entry.address.is_under(tuple(op.namespace_prefix)) and matches(entry.value, op.filter)
