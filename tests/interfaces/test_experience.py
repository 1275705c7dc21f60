"""Guidelines and ratings on the command line and by HTTP: the same service, its evidence, its errors."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.interfaces.cli.main import app

ANALYST = Scope("ada", "analyst", "s1", "run-1")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with one guideline, in the settings of the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_BACKEND", "sqlite")
    monkeypatch.setenv("MEMORY_PATH", str(tmp_path / "memory"))
    monkeypatch.setenv("EMBEDDING_MODEL", "none")
    with SupervisorMemory(Settings.from_env(None)) as memory:
        memory.experience.heard("run_sql", {"sql": "SELECT a FROM t"}, ANALYST, error="no such column: a")
        memory.experience.heard("run_sql", {"sql": "SELECT b FROM t"}, ANALYST)
    return tmp_path


def run(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, [*arguments])
    assert done.exit_code == code, done.output
    return done.output


def test_guidelines_are_listed_rated_and_withdrawn_on_the_command_line(store: Path) -> None:
    told = run("experience", "list")
    assert "run_sql: `sql`: `b`, not `a`" in told
    assert "learned in: run-1" in told
    (guideline,) = json.loads(run("experience", "list", "--user", "ada", "--json"))["guidelines"]
    assert guideline["lessons"][0]["runs"] == ["run-1"]
    rated = json.loads(run("experience", "rate", "run-1", "1", "--user", "ada", "--json"))
    assert rated["counted"] == [guideline["id"]]
    assert "score is 2.0" in run("experience", "rate", "run-1", "2", "--user", "ada", code=2)
    run("experience", "withdraw", guideline["id"], "--as", "eve@example.com")
    assert "no tool has a guideline" in run("experience", "list")
    assert guideline["id"] in run("experience", "list", "--withdrawn")
    run("review", "restore", guideline["id"], "--as", "eve@example.com")
    assert "told 0 times" in run("experience", "list"), "looking at it is not telling it"


def test_why_says_that_a_guideline_was_handed_out_for_its_tool(store: Path) -> None:
    with SupervisorMemory(Settings.from_env(None)) as memory:
        memory.recall([("user", "Run sql over t.")], replace(ANALYST, run_id="run-2"))
    told = run("why", "run-2")
    assert told.count("run_sql: `sql`: `b`, not `a`") == 1
    assert "because it is about a tool that the reader calls" in " ".join(told.split())
    assert "told 1 time" in run("experience", "list")


def test_the_same_by_http(store: Path) -> None:
    from fastapi.testclient import TestClient

    from supervisor_memory.interfaces.http.access import Tokens
    from supervisor_memory.interfaces.http.app import create_app

    tokens = Tokens.read("rita:0123456789abcdef0:*:write, bo:fedcba98765432100:bo:write")
    with SupervisorMemory(Settings.from_env(None)) as memory:
        client = TestClient(create_app(memory, tokens=tokens), base_url="http://127.0.0.1")
        rita: Any = {"Authorization": "Bearer 0123456789abcdef0"}
        bo: Any = {"Authorization": "Bearer fedcba98765432100"}
        (found,) = client.get("/v1/experience?user_id=ada", headers=rita).json()["guidelines"]
        assert found["tool"] == "run_sql"
        assert client.get("/v1/experience", headers=bo).json()["guidelines"] == []
        body = {"run_id": "run-1", "score": 1}
        rated = client.post("/v1/experience/rate?user_id=ada", json=body, headers=rita).json()
        assert rated["counted"] == [found["id"]]
        wrong = {"run_id": "run-1", "score": 7}
        assert client.post("/v1/experience/rate?user_id=ada", json=wrong, headers=rita).status_code == 422
        assert client.post(f"/v1/experience/{found['id']}/withdraw", headers=bo).status_code == 404
        done = client.post(f"/v1/experience/{found['id']}/withdraw", headers=rita).json()
        assert done["reason"] == "withdrawn"
        assert client.get("/v1/experience?user_id=ada", headers=rita).json()["guidelines"] == []
