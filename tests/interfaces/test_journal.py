"""The commands for a server that may be out of reach, and what doctor says of it."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.model.records import Filter
from supervisor_memory.stores.journal.store import JournalBackend
from supervisor_memory.stores.open import open_backend
from supervisor_memory.testing.records import tea
from tests.interfaces.conftest import Run
from tests.stores.qdrant_double import QdrantDouble, broken, running

DELAYED = "Delayed means arrival more than 15 minutes late."
PAGE = Path(__file__).parents[2] / "docs/cli.md"
TABLES = "Use tables by default."
NOTHING = {"begun": 0, "waiting": 0, "dead": 0, "erasures": 0}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[QdrantDouble]:
    """A server that the environment names."""
    with running(QdrantDouble()) as double:
        monkeypatch.setenv("MEMORY_BACKEND", "qdrant")
        monkeypatch.setenv("QDRANT_URL", double.url)
        yield double


def remember(*texts: str) -> None:
    """As a graph does that runs a while and ends."""
    with SupervisorMemory.from_env() as memory:
        for text in texts:
            assert memory.write(text, user_id="ada").saved


def goes_down(server: QdrantDouble) -> None:
    server.before = broken(503)


def comes_back(server: QdrantDouble) -> None:
    server.before = lambda _: None


@pytest.fixture
def dead_letter(server: QdrantDouble, tmp_path: Path) -> str:
    """The id of a record whose words another instance has taken, where nobody was there to decide again."""
    settings, record = Settings.from_env(), tea("one")
    with closing(open_backend("qdrant", settings.path, settings)) as backend:
        assert isinstance(backend, JournalBackend)
        with closing(open_backend("qdrant", tmp_path / "elsewhere", settings)) as other:
            other.write([tea("one")])
        goes_down(server)
        backend.write([record])
        comes_back(server)
        backend.replay()
        assert backend.backlog()["dead"] == 1
    return record.id


# backlog


def test_what_waits_is_listed_without_asking_the_server(server: QdrantDouble, run: Run) -> None:
    goes_down(server)
    remember(DELAYED, TABLES)
    server.asked.clear()
    told = run("backlog", "--json")
    assert (told.code, told.stderr) == (0, "")
    assert told.json["counts"] == NOTHING | {"waiting": 2}
    first, second = told.json["waiting"]
    assert (first["seq"] < second["seq"], first["state"], first["changes"]) == (True, "waiting", 1)
    assert first["reason"] in ("out-of-reach", "others-wait")
    assert len(first["records"]) == 1
    assert run("backlog").stdout.splitlines()[0] == "2 waiting"
    assert DELAYED not in run("backlog").stdout
    assert server.asked == []


def test_after_an_outage_the_next_process_applies_it_and_nothing_waits(
    server: QdrantDouble, run: Run
) -> None:
    goes_down(server)
    remember(DELAYED, TABLES)
    comes_back(server)
    with SupervisorMemory.from_env() as memory:
        assert isinstance(memory.backend, JournalBackend)
        while not memory.backend.replay():
            pass
        assert memory.backend.count(Filter(user_id="ada")) == 2
    told = run("backlog")
    assert (told.code, told.stdout) == (0, "nothing waits\n")
    assert not any(run("backlog", "--json").json["counts"].values())


def test_looking_for_what_waits_makes_no_journal(server: QdrantDouble, run: Run, tmp_path: Path) -> None:
    goes_down(server)
    assert run("backlog").stdout == "nothing waits\n"
    assert list(tmp_path.iterdir()) == []


def test_dead_letters_end_with_1_until_they_are_let_wait_again(dead_letter: str, run: Run) -> None:
    told = run("backlog", "--json")
    assert told.code == 1
    assert told.json["counts"]["dead"] == 1
    assert [entry["records"] for entry in told.json["dead"]] == [[dead_letter]]
    again = run("backlog", "--retry")
    assert again.code == 0
    assert again.stdout.splitlines()[0] == "1 waiting"
    assert again.stderr == "1 dead letters wait again\n"
    with SupervisorMemory.from_env() as memory:  # this one decides again
        assert isinstance(memory.backend, JournalBackend)
        while not memory.backend.replay():
            pass
    assert run("backlog").stdout == "nothing waits\n"


@pytest.mark.parametrize("command", ["backlog", "reconcile"])
@pytest.mark.parametrize("name", ["in_memory", "json", "sqlite"])
def test_a_backend_without_a_journal_says_so_and_makes_nothing(
    command: str, name: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", name)
    told = run(command)
    assert told.code == 1
    assert f"MEMORY_BACKEND={name} keeps records on this machine and has no journal" in told.stderr
    assert list(tmp_path.iterdir()) == []


# reconcile


def test_without_a_copy_there_is_nothing_to_reconcile(server: QdrantDouble, run: Run) -> None:
    remember(DELAYED)
    told = run("reconcile")
    assert told.code == 1
    assert "MEMORY_DUAL_WRITE=true" in told.stderr


def test_the_copy_takes_what_others_wrote_and_gives_back_what_the_server_lost(
    server: QdrantDouble, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORY_DUAL_WRITE", "true")
    remember(DELAYED)
    monkeypatch.setenv("MEMORY_PATH", str(tmp_path / "elsewhere"))
    remember(TABLES)
    monkeypatch.delenv("MEMORY_PATH")
    first = run("reconcile", "--json")
    assert (first.code, first.stderr) == (0, "")
    assert first.json == {"compared": 2, "brought": 1, "restored": 0, "forgotten": 0, "refused": {}}
    for each in server.engine.get_collections().collections:
        server.engine.delete_collection(each.name)
        server.indexes.pop(each.name, None)
    assert run("reconcile", "--json").json["restored"] == 2
    assert "compared 2 records: 0 brought into the copy, 0 given back" in run("reconcile").stdout
    with SupervisorMemory.from_env() as memory:
        assert {record.content for record in memory.get_all(user_id="ada")} == {DELAYED, TABLES}


def test_while_the_server_is_down_it_says_so_and_changes_nothing(
    server: QdrantDouble, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_DUAL_WRITE", "true")
    remember(DELAYED)
    goes_down(server)
    remember(TABLES)
    told = run("reconcile")
    assert told.code == 1
    assert "commits wait for qdrant" in told.stderr
    assert run("backlog", "--json").json["counts"]["waiting"] == 1


# doctor


def test_doctor_tells_that_the_server_is_up_and_nothing_waits(server: QdrantDouble, run: Run) -> None:
    remember(DELAYED)
    told = run("doctor", "--json")
    assert told.code == 0
    backend = told.json["backend"]
    assert (backend["ok"], backend["persistent"], backend["message"]) == (True, True, "")
    assert backend["backlog"] == NOTHING
    assert server.url in backend["location"]
    assert any(file["path"].endswith("journal.db") for file in told.json["files"])
    origins = {each["env"]: each["origin"] for each in told.json["settings"]}
    assert (origins["MEMORY_BACKEND"], origins["QDRANT_URL"]) == ("environment", "environment")
    text = run("doctor").stdout
    for part in ("name     ", "qdrant, works", "1 records", "journal", "nothing (", server.url):
        assert part in text


def test_doctor_tells_that_the_server_is_down_and_what_waits(server: QdrantDouble, run: Run) -> None:
    goes_down(server)
    remember(DELAYED, TABLES)
    told = run("doctor", "--json")
    assert told.code == 1
    backend = told.json["backend"]
    assert (backend["ok"], backend["persistent"], backend["location"]) == (False, True, server.url)
    assert backend["backlog"] == NOTHING | {"waiting": 2}
    (problem,) = told.json["problems"]
    assert problem.startswith("backend qdrant: qdrant does not answer")
    assert "status 503" in problem
    assert problem.endswith("what is remembered meanwhile waits in the journal")
    assert [warned for warned in told.json["warnings"] if warned.startswith("2 commits are saved")]
    text = run("doctor").stdout
    assert "qdrant, does not work" in text
    assert "0 active" not in text


def test_doctor_tells_of_a_backlog_while_the_server_is_up(server: QdrantDouble, run: Run) -> None:
    goes_down(server)
    remember(DELAYED)
    comes_back(server)
    told = run("doctor", "--json")
    assert told.code == 0
    assert told.json["backend"]["backlog"] == NOTHING | {"waiting": 1}
    assert "warning: 1 commits are saved on this machine and wait for qdrant" in run("doctor").stdout
    assert run("backlog", "--json").json["counts"]["waiting"] == 1


@pytest.mark.usefixtures("dead_letter")
def test_doctor_warns_of_dead_letters(run: Run) -> None:
    told = run("doctor", "--json")
    assert told.code == 0
    assert told.json["backend"]["backlog"]["dead"] == 1
    (warned,) = (warned for warned in told.json["warnings"] if "dead letters" in warned)
    assert "`supervisor-memory backlog`" in warned


def test_doctor_calls_a_qdrant_in_memory_not_persistent(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", "qdrant")
    monkeypatch.setenv("QDRANT_URL", ":memory:")
    told = run("doctor", "--json")
    assert told.code == 0
    assert told.json["backend"]["persistent"] is False
    assert [warned for warned in told.json["warnings"] if warned.startswith("not persistent: ")]
    assert list(tmp_path.iterdir()) == []


def test_the_page_lists_the_keys(server: QdrantDouble, run: Run) -> None:
    goes_down(server)
    remember(DELAYED)
    told = run("backlog", "--json").json
    keys = {*told, *told["counts"], *told["waiting"][0], *run("doctor", "--json").json["backend"]}
    page = PAGE.read_text("utf-8").split("<!-- keys -->")[1]
    assert [key for key in keys if f"`{key}`" not in page] == []
