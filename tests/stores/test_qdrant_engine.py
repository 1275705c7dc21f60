"""The same over HTTP with Qdrant's own engine behind it, which is what a server runs, as a library.

Where local mode is written in Python to resemble a server, this is the code of one: its filters, its
conditional writes, its order, its sparse index. What it lacks is what a cluster adds.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from qdrant_client import models

from supervisor_memory.errors import Conflict
from supervisor_memory.model.records import Filter, Query, Record
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.protocol import MemoryBackend
from supervisor_memory.stores.qdrant.store import QdrantBackend
from supervisor_memory.testing.backend_contract import Limit, PersistentBackendContract
from supervisor_memory.testing.records import changed, direction, tea
from tests.breadth import examples
from tests.stores.qdrant_double import Asked, QdrantDouble, running
from tests.stores.test_filters import filters, of_what_it_holds, records, usual
from tests.stores.test_qdrant_server import TestServer, client_of, doing, once

if "QDRANT_ENGINE_TESTS" not in os.environ:
    pytest.skip("minutes long: make slow", allow_module_level=True)
_numbers = count()
edge: Any = pytest.importorskip("qdrant_edge")


class Shards:
    """What `qdrant_double.Engine` asks of a client, from one shard of the engine for each collection."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shards: dict[str, Any] = {}

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()

    def get_collections(self) -> models.CollectionsResponse:
        names = [models.CollectionDescription(name=name) for name in self._shards]
        return models.CollectionsResponse(collections=names)

    def create_collection(self, name: str, *, vectors_config: Any, sparse_vectors_config: Any) -> None:
        config = edge.EdgeConfig(
            vectors={
                key: edge.EdgeVectorParams(size=params.size, distance=edge.Distance.Cosine)
                for key, params in (vectors_config or {}).items()
            },
            sparse_vectors={
                key: edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)
                for key in sparse_vectors_config or {}
            },
        )
        directory = self._directory / str(len(self._shards))
        directory.mkdir(parents=True)
        self._shards[name] = edge.EdgeShard.create(str(directory), config)

    def delete_collection(self, name: str) -> bool:
        self._shards.pop(name).close()
        return True

    def create_index(self, name: str, key: str, schema: Any) -> None:
        kind = {
            "keyword": edge.PayloadSchemaType.Keyword,
            "integer": edge.PayloadSchemaType.Integer,
            "float": edge.PayloadSchemaType.Float,
        }[schema["type"]]
        self._shards[name].update(edge.UpdateOperation.create_field_index(key, kind))

    def retrieve(
        self, name: str, ids: Sequence[Any], *, with_payload: Any, with_vectors: Any
    ) -> list[dict[str, Any]]:
        asked = [str(each) for each in ids]
        vectors = with_vectors if isinstance(with_vectors, list) else False
        return [_told(p) for p in self._shards[name].retrieve(asked, _fields(with_payload), vectors)]

    def scroll(self, name: str, /, **options: Any) -> tuple[list[dict[str, Any]], Any]:
        order = options["order_by"]
        request = edge.ScrollRequest(
            offset=options["offset"],
            limit=options["limit"],
            filter=_filter(options["scroll_filter"]),
            with_payload=_fields(options["with_payload"]),
            with_vector=False,
            order_by=None if order is None else edge.OrderBy(order.key, edge.Direction.Desc),
        )
        points, offset = self._shards[name].scroll(request)
        return [_told(point) for point in points], None if offset is None else str(offset)

    def count(self, name: str, *, count_filter: Any) -> dict[str, int]:
        request = edge.CountRequest(exact=True, filter=_filter(count_filter))
        return {"count": self._shards[name].count(request)}

    def query_batch_points(self, name: str, requests: Iterable[Any]) -> list[dict[str, Any]]:
        shard = self._shards[name]
        return [{"points": [_told(p) for p in shard.query(_query(request))]} for request in requests]

    def batch_update_points(self, name: str, operations: Iterable[Any]) -> list[dict[str, Any]]:
        modes = {
            models.UpdateMode.INSERT_ONLY: edge.UpdateMode.InsertOnly,
            models.UpdateMode.UPDATE_ONLY: edge.UpdateMode.UpdateOnly,
            models.UpdateMode.UPSERT: edge.UpdateMode.Upsert,
        }
        for operation in operations:
            upsert = operation.upsert
            points = [edge.Point(str(p.id), _vectors(p.vector), p.payload) for p in upsert.points]
            where, mode = _filter(upsert.update_filter), modes[upsert.update_mode]
            self._shards[name].update(edge.UpdateOperation.upsert_points(points, where, mode))
        return [{"operation_id": 0, "status": "completed"} for _ in operations]

    def delete(self, name: str, selector: Any) -> dict[str, Any]:
        ids = [str(each) for each in selector.points]
        self._shards[name].update(edge.UpdateOperation.delete_points(ids))
        return {"operation_id": 0, "status": "completed"}


def _fields(payload: Any) -> Any:
    return edge.PayloadSelector.Include(payload) if isinstance(payload, list) else bool(payload)


def _vectors(vectors: Any) -> dict[str, Any]:
    return {name: _vector(value) for name, value in vectors.items()}


def _vector(value: Any) -> Any:
    value = getattr(value, "nearest", value)
    is_sparse = isinstance(value, models.SparseVector)
    return edge.SparseVector(value.indices, value.values) if is_sparse else value


def _query(request: Any) -> Any:
    prefetch = request.prefetch
    prefetches = [] if prefetch is None else prefetch if isinstance(prefetch, list) else [prefetch]
    common = {"query": edge.Query.Nearest(_vector(request.query), request.using), "limit": request.limit}
    inner = [
        edge.Prefetch(
            limit=each.limit,
            query=edge.Query.Nearest(_vector(each.query), each.using),
            filter=_filter(each.filter),
        )
        for each in prefetches
    ]
    return edge.QueryRequest(
        **common,
        prefetches=inner,
        filter=_filter(request.filter),
        with_payload=_fields(request.with_payload),
        with_vector=False,
    )


def _filter(where: Any) -> Any:
    if where is None:
        return None
    sides = {
        side: [_condition(c) for c in getattr(where, side) or []] for side in ("must", "should", "must_not")
    }
    return edge.Filter(**{side: conditions for side, conditions in sides.items() if conditions})


def _condition(condition: Any) -> Any:
    if isinstance(condition, models.Filter):
        return _filter(condition)
    if isinstance(condition, models.HasIdCondition):
        return edge.HasIdCondition({str(each) for each in condition.has_id})
    if isinstance(condition, models.IsEmptyCondition):
        return edge.IsEmptyCondition(condition.is_empty.key)
    match condition.match:
        case models.MatchAny(any=values):
            return edge.FieldCondition(condition.key, match=edge.MatchAny(list(values)))
        case models.MatchValue(value=value):
            return edge.FieldCondition(condition.key, match=edge.MatchValue(value))
    limits = {name: getattr(condition.range, name) for name in ("gt", "gte", "lt", "lte")}
    return edge.FieldCondition(condition.key, range=edge.RangeFloat(**limits))


def _told(point: Any) -> dict[str, Any]:
    vector = point.vector
    if isinstance(vector, dict):
        vector = {name: value for name, value in vector.items() if isinstance(value, list)}
    told = {"id": str(point.id), "payload": point.payload, "vector": vector}
    if hasattr(point, "score"):
        told |= {"score": point.score, "version": point.version}
    return told


class EngineDouble(QdrantDouble):
    """The server, with the engine in it; indexes are made there, too."""

    def apply(self, asked: Asked) -> Any:
        answer = super().apply(asked)
        if asked.what == "PUT /collections/*/index" and answer.status == 200:
            name = asked.body["field_name"]
            self.engine.create_index(asked.collection, name, self.indexes[asked.collection][name])
        return answer


@pytest.fixture
def double(tmp_path: Path) -> Iterator[QdrantDouble]:
    shards = Shards(tmp_path / "shards")
    with running(EngineDouble(shards)) as server:
        yield server
    shards.close()


class TestEngine(PersistentBackendContract):
    limits: ClassVar[Mapping[Limit, str]] = TestServer.limits

    @pytest.fixture
    def backend(self, double: QdrantDouble, tmp_path: Path) -> Iterator[MemoryBackend]:
        backend = QdrantBackend(client_of(double), audit=tmp_path)
        yield backend
        backend.close()

    @pytest.fixture
    def reopen(self, double: QdrantDouble, tmp_path: Path) -> Callable[[], MemoryBackend]:
        return lambda: QdrantBackend(client_of(double), audit=tmp_path)


del TestServer  # its tests are in its own module


@settings(
    deadline=None, max_examples=examples(8), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(stored=records(), wanted=st.lists(filters | usual, min_size=1, max_size=8))
def test_filters_mean_what_they_mean_elsewhere(
    double: QdrantDouble, stored: list[Record], wanted: list[Filter]
) -> None:
    backend = QdrantBackend(client_of(double), prefix=f"memory{next(_numbers)}")
    reference = InMemoryBackend()
    for each in (backend, reference):
        each.write(stored)
    for where in (*wanted, *map(of_what_it_holds, reference.list(Filter(statuses=None), limit=99))):
        assert backend.list(where, limit=99) == reference.list(where, limit=99)
        assert backend.list(where, limit=2, offset=1) == reference.list(where, limit=2, offset=1)
        assert backend.count(where) == reference.count(where)
        if where.user_id is not None:
            asked = Query("tea", where, ("tea",), direction(0) + direction(1), "e", 10.0)
            found, expected = backend.search(asked, limit=99), reference.search(asked, limit=99)
            assert {h.record.id: set(h.parts) for h in found} == {h.record.id: set(h.parts) for h in expected}
            for hit in expected:
                (same,) = [h for h in found if h.record.id == hit.record.id]
                assert same.parts.get("cosine") == pytest.approx(hit.parts.get("cosine"), abs=1e-4)


def test_a_write_over_something_newer_is_refused_though_it_is_completed(double: QdrantDouble) -> None:
    one, two = (QdrantBackend(client_of(double)) for _ in range(2))
    record = tea()
    one.write([record])
    once(
        double, "POST /collections/*/points/batch", doing(lambda: two.update([changed(record, content="a")]))
    )
    with pytest.raises(Conflict):
        one.update([changed(record, content="b")])
    assert [version.content for version in one.versions(record.id)] == [record.content, "a"]
