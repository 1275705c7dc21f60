"""Nothing of one user is in any answer to another, whatever is asked and however."""

import itertools
import re
from typing import Any

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.model.records import SESSION_FAMILY, Filter
from tests.interfaces.http.conftest import MARK, Client
from tests.interfaces.http.operations import Operation, operations

QUESTIONS = ("", "drinks tea", "The office is closed", "What does the user want?", "sort the tables")


def of_bo(memory: SupervisorMemory) -> list[Any]:
    """All that is stored of bo, in every version."""
    backend = memory.backend
    filters = [Filter(user_id="bo", statuses=None, families=each) for each in (None, (SESSION_FAMILY,))]
    found = [record for where in filters for record in backend.list(where, limit=1000)]
    return [[each.to_json() for each in backend.versions(record.id)] for record in found]


def ways(operation: Operation, record_id: str) -> list[dict[str, Any]]:
    """The ways ada can ask: by name, without one, as bo, with bo's record."""
    as_ada, as_bo = operation.of("ada", record_id), operation.of("bo", record_id)
    unnamed = {**as_ada, "params": {}}
    if "json" in as_ada:
        unnamed["json"] = {name: value for name, value in as_ada["json"].items() if name != "user_id"}
    found = [as_ada, as_bo, unnamed]
    if operation.name == "search":
        wide: list[dict[str, Any]] = [{"threshold": 0, "limit": 1000, "explain": True}, {"as_of": 9e9}]
        for text, more in itertools.product(QUESTIONS, wide):
            found.append({**as_ada, "json": {**as_ada["json"], "query": text, **more}})
        found.append({**as_ada, "json": {**as_ada["json"], "families": [SESSION_FAMILY], "threshold": 0}})
    if operation.name == "list_memories":
        found.append({**as_ada, "params": {"user_id": "ada", "family": [SESSION_FAMILY], "limit": 1000}})
    if operation.name == "list_audit":
        found.append({**as_ada, "params": {"user_id": "ada", "record_id": record_id}})
        found.append({**as_ada, "params": {"after": 0}})
    if operation.name == "erase":
        found = [as_bo, {**as_bo, "json": {"confirm": True}}]
    return found


def test_no_answer_to_ada_holds_a_word_or_an_id_of_bo_and_nothing_of_bo_changes(
    client: Client, memory: SupervisorMemory, ids: dict[str, dict[str, str]]
) -> None:
    before = of_bo(memory)
    assert MARK in str(before)
    assert MARK in client.get("/v1/turns", "bo")["turns"][0]["notes"][0]["shown"][0]["record"]["content"]
    names, asked = set(), list[dict[str, Any]]()
    for operation in operations(client.app):
        for record_id in (*ids["bo"].values(), "no-such-id"):
            for way in ways(operation, record_id):
                if way in asked:  # what names no record is asked once
                    continue
                asked.append(way)
                answer = client(token="ada", **way)
                told = f"{answer.headers} {answer.text}"
                assert answer.status_code in (200, 403, 404, 422), (operation.name, answer.text)
                assert MARK not in told, (operation.name, way)
                others = {each for each in ids["bo"].values() if each != record_id}
                assert not [each for each in others if each in told], (operation.name, way)
                names.add(operation.name)
    assert names == {operation.name for operation in operations(client.app)}
    assert len(asked) > 250
    assert of_bo(memory) == before


def without_nearest(told: str) -> str:
    """An answer without ada's own ids that are nearest to the one asked for: another one has others near."""
    return re.sub(r"; the nearest known are [^\"]*|\"nearest\": ?\[[^]]*\]", "", told)


def test_a_record_of_another_is_answered_like_one_that_is_not_there(
    client: Client, ids: dict[str, dict[str, str]]
) -> None:
    of_another, of_nobody = ids["bo"]["kept"], ids["bo"]["kept"][:-4] + "0000"
    found = 0
    for operation in operations(client.app):
        if "{id}" in operation.path or operation.name == "undo":
            told = [
                without_nearest(client(token="ada", **operation.of("ada", record)).text.replace(record, "ID"))
                for record in (of_another, of_nobody)
            ]
            assert told[0] == told[1], operation.name
            assert "record-not-found" in told[0]
            found += 1
    assert found >= 10


@pytest.mark.parametrize("which", ["kept", "gone", "waits"])
def test_that_ada_asked_for_a_record_of_bo_is_in_the_log_for_operators_alone(
    client: Client, ids: dict[str, dict[str, str]], which: str
) -> None:
    record = ids["bo"][which]
    assert client("GET", f"/v1/memories/{record}", "ada").status_code == 404
    denied = [row for row in client.get("/v1/audit", record_id=record)["rows"] if row["outcome"] == "denied"]
    assert [row["reason"] for row in denied] == ["record-of-another-user"]
    assert record not in str(client.get("/v1/audit", "ada", limit=1000))
    assert client.get("/v1/audit", "ada", record_id=record) == {"rows": [], "next": None}


def test_what_is_erased_of_ada_is_all_of_ada_and_nothing_of_bo(
    client: Client, memory: SupervisorMemory, ids: dict[str, dict[str, str]]
) -> None:
    before = of_bo(memory)
    done = client.post("/v1/users/ada/erase", {"confirm": True}, "ada")
    assert done["counts"]["records"] == 5
    assert client.get("/v1/memories", "ada")["records"] == []
    assert client("GET", f"/v1/memories/{ids['ada']['kept']}", "operator").status_code == 404
    assert of_bo(memory) == before
