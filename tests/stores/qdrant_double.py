"""A server on the loopback that speaks Qdrant's REST for what the backend asks, and can be made to fail.

It reads requests with the client's own models and answers from a store of points: the client's local
mode, or Qdrant's own engine (`test_qdrant_engine.py`). It is stricter than a server by default: what is
filtered or ordered by must be indexed.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from pydantic import BaseModel, TypeAdapter
from qdrant_client import QdrantClient, models

__all__ = ["Answer", "Asked", "Engine", "QdrantDouble", "broken", "running"]


class Engine(Protocol):
    """What of a client the double hands requests to."""

    def get_collections(self) -> Any: ...
    def create_collection(self, name: str, /, *, vectors_config: Any, sparse_vectors_config: Any) -> Any: ...
    def delete_collection(self, name: str, /) -> Any: ...
    def retrieve(self, name: str, /, ids: Any, *, with_payload: Any, with_vectors: Any) -> Any: ...
    def scroll(self, name: str, /, **options: Any) -> Any: ...
    def count(self, name: str, /, *, count_filter: Any) -> Any: ...
    def query_batch_points(self, name: str, /, requests: Any) -> Any: ...
    def batch_update_points(self, name: str, /, update_operations: Any) -> Any: ...
    def delete(self, name: str, /, points_selector: Any) -> Any: ...


@dataclass(frozen=True)
class Asked:
    """A request: `what` is its method and path, with "*" for the collection."""

    what: str
    collection: str
    body: Any
    headers: dict[str, str] = field(default_factory=dict)
    parameters: str = ""


@dataclass(frozen=True)
class Answer:
    """A response. With `pause`, its bytes come one by one, so many seconds apart."""

    result: Any = None
    status: int = 200
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0

    @property
    def body(self) -> bytes:
        if self.raw is not None:
            return self.raw
        status: object = "ok" if self.status == 200 else {"error": self.result}
        result = self.result if self.status == 200 else None
        return json.dumps({"result": _plain(result), "status": status, "time": 0.0}).encode()


def _none(asked: Asked) -> Answer | None:
    return None


def _same(asked: Asked, answer: Answer) -> Answer:
    return answer


class QdrantDouble:
    """The state of the server, and the hooks that tests set.

    Attributes:
        before: Answers a request instead of the server; None lets it through.
        after: Changes what the server answers.
        asked: Every request so far.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine: Any = engine or QdrantClient(":memory:")
        self.before: Callable[[Asked], Answer | None] = _none
        self.after: Callable[[Asked, Answer], Answer] = _same
        self.asked: list[Asked] = []
        self.indexes: dict[str, dict[str, Any]] = {}
        self.url = ""
        self._lock = threading.RLock()

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        instead = self.before(asked)
        if instead is not None:
            return instead
        return self.after(asked, self.apply(asked))

    def apply(self, asked: Asked) -> Answer:
        """What a sound server does. One request at a time."""
        with self._lock:
            if asked.what != "PUT /collections/*" and asked.collection not in self._names():
                message = f"Not found: Collection `{asked.collection}` doesn't exist!"
                return Answer(message, status=404)
            if missing := self._not_indexed(asked):
                return Answer(f"Bad request: Index required but not found for {missing}", status=400)
            if asked.what == "DELETE /collections/*":
                self.indexes.pop(asked.collection, None)
                return Answer(self.engine.delete_collection(asked.collection))
            return self._apply(asked)

    def _names(self) -> set[str]:
        return {"", *(each.name for each in self.engine.get_collections().collections)}

    def _not_indexed(self, asked: Asked) -> list[str]:
        filtered = set(_filtered(asked.body)) if asked.what.startswith("POST") else set()
        return sorted(filtered - self.indexes.get(asked.collection, {}).keys())

    def _apply(self, asked: Asked) -> Answer:
        name, body, engine = asked.collection, asked.body, self.engine
        match asked.what:
            case "GET /":
                return Answer(raw=b'{"title": "double", "version": "1.20.0"}')
            case "GET /collections":
                return Answer(engine.get_collections())
            case "PUT /collections/*":
                if name in self._names():
                    return Answer(f"Wrong input: Collection `{name}` already exists!", status=409)
                wanted = models.CreateCollection.model_validate(body)
                engine.create_collection(
                    name, vectors_config=wanted.vectors, sparse_vectors_config=wanted.sparse_vectors
                )
                return Answer(True)
            case "GET /collections/*":
                return Answer(_information(self.indexes.get(name, {})))
            case "PUT /collections/*/index":
                index = models.CreateFieldIndex.model_validate(body)
                self.indexes.setdefault(name, {})[index.field_name] = _plain(index.field_schema)
                return Answer({"operation_id": 0, "status": "completed"})
            case "POST /collections/*/points":
                read = models.PointRequest.model_validate(body)
                return Answer(
                    engine.retrieve(
                        name, read.ids, with_payload=read.with_payload, with_vectors=read.with_vector
                    )
                )
            case "POST /collections/*/points/scroll":
                scroll = models.ScrollRequest.model_validate(body)
                points, offset = engine.scroll(
                    name,
                    scroll_filter=scroll.filter,
                    limit=scroll.limit,
                    offset=scroll.offset,
                    order_by=scroll.order_by,
                    with_payload=scroll.with_payload,
                    with_vectors=scroll.with_vector,
                )
                return Answer({"points": points, "next_page_offset": offset})
            case "POST /collections/*/points/count":
                count = models.CountRequest.model_validate(body)
                return Answer(engine.count(name, count_filter=count.filter))
            case "POST /collections/*/points/query/batch":
                searches = models.QueryRequestBatch.model_validate(body).searches
                return Answer(engine.query_batch_points(name, searches))
            case "POST /collections/*/points/batch":
                operations = TypeAdapter(models.UpdateOperations).validate_python(body).operations
                return Answer(engine.batch_update_points(name, operations))
            case "POST /collections/*/points/delete":
                selector = models.PointIdsList.model_validate(body)
                return Answer(engine.delete(name, selector))
        return Answer(f"no such request: {asked.what}", status=404)


@contextmanager
def running(
    double: QdrantDouble, *, keeps_connections: bool = False, port: int = 0
) -> Iterator[QdrantDouble]:
    """Serve on the loopback. Any prefix of the path leads to the same place.

    Args:
        port: 0: a free one.
        keeps_connections: As a real server does; what is open then outlives the block.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1" if keeps_connections else "HTTP/1.0"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def handle_any(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(size)
            path = re.sub(r".*?(?=/collections|/$)", "", self.path.partition("?")[0], count=1)
            collection = next(iter(re.findall(r"/collections/([^/]+)", path)), "")
            what = f"{self.command} {path.replace(collection, '*', 1) if collection else path}"
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(
                what,
                collection,
                json.loads(text) if text else None,
                headers,
                self.path.partition("?")[2],
            )
            try:
                answer = double.answer(asked)
            except Exception as error:  # noqa: BLE001  # the test sees it in the answer
                answer = Answer(f"{type(error).__name__}: {error}", status=500)
            body = answer.body
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            for piece in [bytes([byte]) for byte in body] if answer.pause else [body]:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(answer.pause)

        do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815  # names that http.server calls

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that gave up is no error of the test."""

    server = Server(("127.0.0.1", port), Handler)
    double.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _filtered(body: Any) -> Iterator[str]:
    """The payload keys that a request filters or orders by."""
    if isinstance(body, dict):
        if isinstance(body.get("key"), str):
            yield body["key"]
        for name, value in body.items():
            if name not in ("payload", "vector"):
                yield from _filtered(value)
    elif isinstance(body, list):
        for value in body:
            yield from _filtered(value)


def _information(indexes: dict[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = {"vectors": {}}
    return {
        "status": "green",
        "optimizer_status": "ok",
        "segments_count": 1,
        "config": {
            "params": params,
            "hnsw_config": {"m": 16, "ef_construct": 100, "full_scan_threshold": 10_000},
            "optimizer_config": {
                "deleted_threshold": 0.2,
                "vacuum_min_vector_number": 1000,
                "default_segment_number": 0,
                "flush_interval_sec": 5,
            },
        },
        "payload_schema": {
            name: {"data_type": schema["type"], "params": schema, "points": 0}
            for name, schema in indexes.items()
        },
    }


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", warnings=False)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return value


def broken(status: int, text: str = "", **headers: str) -> Callable[[Asked], Answer]:
    """A hook for `before`: every request fails so."""
    return lambda asked: replace(Answer(text, status=status), headers=headers)
