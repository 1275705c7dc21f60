"""Every operation that the application has, read from its routes and its OpenAPI document."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts

__all__ = ["Operation", "operations", "routes"]


@dataclass(frozen=True)
class Operation:
    """One operation. `body` is the least that its schema takes; None: it takes none."""

    name: str
    method: str
    path: str
    body: dict[str, Any] | None
    query: frozenset[str]
    sent: frozenset[str] = field(default=frozenset())

    @property
    def names_a_user(self) -> bool:
        return "user_id" in self.query | self.sent or "{user_id}" in self.path

    def of(self, user_id: str, record_id: str = "") -> dict[str, Any]:
        """How to ask for it on behalf of a user: `method`, `path`, and what httpx takes."""
        told: dict[str, Any] = {"method": self.method}
        told["path"] = self.path.replace("{user_id}", user_id).replace("{id}", record_id or "some-id")
        told["path"] = told["path"].replace("{session_id}", "some-session")
        if "user_id" in self.query:
            told["params"] = {"user_id": user_id}
        if self.body is not None:
            told["json"] = {**self.body, **({"user_id": user_id} if "user_id" in self.sent else {})}
            if "id" in told["json"]:
                told["json"]["id"] = record_id or "some-id"
        return told


def routes(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of every route there is, in the document or not."""
    found = [(each.path, each.methods or set()) for each in iter_route_contexts(app.routes)]
    return sorted({(method, path) for path, methods in found if path for method in methods})


_of_routes: dict[tuple[tuple[str, str], ...], list[Operation]] = {}
"""Routes → the operations of a document, which takes a tenth of a second to write."""


def operations(app: FastAPI) -> list[Operation]:
    """Every operation of the OpenAPI document."""
    routed = tuple(routes(app))
    if routed not in _of_routes:
        document = app.openapi()
        _of_routes[routed] = [
            _operation(document, method, path, told)
            for path, methods in document["paths"].items()
            for method, told in methods.items()
        ]
    return list(_of_routes[routed])


def _operation(document: dict[str, Any], method: str, path: str, told: dict[str, Any]) -> Operation:
    query = frozenset(each["name"] for each in told.get("parameters", ()) if each["in"] == "query")
    if "requestBody" not in told:
        return Operation(told["operationId"], method.upper(), path, None, query)
    schema = _resolved(document, told["requestBody"]["content"]["application/json"]["schema"])
    body = dict(_least(document, schema))
    return Operation(
        told["operationId"], method.upper(), path, body, query, frozenset(schema.get("properties", ()))
    )


def _least(document: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in schema.get("required", ()):
        part = _resolved(document, schema["properties"][name])
        any_of_it = {"string": "some tea", "integer": 1, "number": 0.5, "boolean": False, "array": []}
        yield name, part["enum"][0] if "enum" in part else any_of_it[part["type"]]
    if not schema.get("required"):  # one of several has to be there
        for name in ("text", "content"):
            if name in schema["properties"]:
                yield name, "some tea"


def _resolved(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    for some in schema.get("anyOf", ()):
        if some.get("type") != "null":
            return _resolved(document, some)
    if "$ref" not in schema:
        return schema
    found: dict[str, Any] = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return found
