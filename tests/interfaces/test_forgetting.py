"""`supervisor-memory forget` tells first, and does it when it is told to."""

import pytest

from supervisor_memory import SupervisorMemory
from tests.interfaces.conftest import Run

KEYS = {"done", "counts", "taken", "summaries", "left"}


@pytest.fixture
def ticket(backend: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A record that has expired."""
    del backend
    monkeypatch.setenv("MEMORY_FORGET", "manual")
    with SupervisorMemory.from_env() as memory:
        memory.write("Bo drinks coffee.", user_id="bo")
        written = memory.write("The ticket is 4711.", user_id="ada", metadata={"ttl": 1e-6})
    return written.id


def status_of(record_id: str) -> str:
    with SupervisorMemory.from_env() as memory:
        return memory.get(record_id).status


def test_nothing_is_changed_without_yes(run: Run, ticket: str) -> None:
    told = run("forget")
    assert told.code == 0
    assert told.stdout.startswith(f"expired: {ticket} of ada (domain-facts): expired 20")
    assert told.stdout.endswith("would set aside: 1 expired\n")
    assert "4711" not in told.stdout
    assert told.stderr == "nothing was changed; --yes sets these aside\n"
    assert status_of(ticket) == "active"


def test_yes_sets_aside(run: Run, ticket: str) -> None:
    assert run("forget", "--yes", "-u", "bo").stdout == "set aside: nothing\n"
    told = run("forget", "--yes", "-u", "ada")
    assert (told.code, told.stdout, told.stderr) == (0, "set aside: 1 expired\n", "")
    assert status_of(ticket) == "deleted"
    assert run("audit", "verify", "--deep").code == 0


def test_json_tells_each_record(run: Run, ticket: str) -> None:
    told = run("forget", "--json").json
    assert set(told) == KEYS
    [one] = told["taken"]
    assert set(one) == {"record_id", "user_id", "namespace", "kind", "version", "rule", "why"}
    assert (told["done"], told["counts"], one["record_id"]) == (False, {"expired": 1}, ticket)
    assert run("forget", "--yes", "--json").json["done"] is True


def test_doctor_tells_what_has_expired_and_when_it_ran(run: Run, ticket: str) -> None:
    assert ticket
    told = run("doctor", "--json").json
    assert (told["capacity"]["expired"], told["capacity"]["forgot_at"]) == (1, None)
    assert "1 records have expired; `supervisor-memory forget --yes` sets them aside" in told["warnings"]
    run("forget", "--yes")
    told = run("doctor", "--json").json
    assert told["capacity"]["expired"] == 0
    assert told["capacity"]["forgot_at"] > 0
