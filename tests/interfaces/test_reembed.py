"""The command that embeds what EMBEDDING_MODEL has not read, and what doctor says of it."""

import re
from pathlib import Path

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from tests.interfaces.conftest import Run

ANOTHER = HashingEmbedder(64).fingerprint


@pytest.fixture
def another_model(ids: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many records wait now; one session message waits beside them."""
    monkeypatch.setenv("EMBEDDING_DIM", "64")
    with SupervisorMemory.from_env() as memory:
        return sum(len(memory.get_all(user_id=user)) for user in ("ada", "bo"))


def test_doctor_tells_how_many_records_wait_until_they_are_embedded(run: Run, another_model: int) -> None:
    told = run("doctor")
    assert f"warning: {another_model} records have no vector of {ANOTHER}" in told.stdout
    assert "supervisor-memory reembed" in told.stdout
    assert re.search(r"said +1 messages without a vector", told.stdout)
    assert run("doctor", "--json").json["capacity"]["waiting"] == another_model

    done = run("reembed")
    assert (done.code, done.stderr) == (0, "")
    assert done.stdout == f"embedded {another_model + 1} records with {ANOTHER}\n"
    assert "have no vector" not in run("doctor").stdout
    assert run("doctor", "--json").json["capacity"] | {"vectors": {}} == run("doctor", "--json").json[
        "capacity"
    ] | {"vectors": {}, "waiting": 0, "messages": 0}


def test_one_user_at_a_time(run: Run, another_model: int) -> None:
    ada = run("reembed", "--user", "ada", "--json").json["embedded"]
    bo = run("reembed", "--user", "bo", "--json").json["embedded"]
    assert (ada + bo, run("reembed", "--json").json["embedded"]) == (another_model + 1, 0)
    assert run("reembed", "--user", "null").code == 2


@pytest.mark.usefixtures("another_model")
def test_as_json_it_has_the_keys_that_the_page_lists(run: Run) -> None:
    page = Path(__file__).parents[2].joinpath("docs/cli.md").read_text("utf-8").split("<!-- keys -->")[1]
    (row,) = (line for line in page.splitlines() if line.startswith("| `reembed` |"))
    assert set(run("reembed", "--json").json) == set(re.findall(r"`(\w+)`", row)) - {"reembed"}


@pytest.mark.usefixtures("ids")
def test_without_an_embedder_it_says_what_to_set(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    told = run("reembed")
    assert (told.code, told.stdout) == (1, "")
    assert "EMBEDDING_MODEL" in told.stderr
    assert run("doctor", "--json").json["capacity"]["waiting"] is None
