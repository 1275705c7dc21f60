"""Sessions on the command line."""

import pytest

from supervisor_memory import Scope, SupervisorMemory
from tests.interfaces.conftest import Run


@pytest.fixture
def said(backend: str) -> None:
    with SupervisorMemory.from_env() as memory:
        for user, session, text in (("ada", "t1", "Hello there."), ("bo", "t2", "I prefer coffee.")):
            memory.remember([("user", text)], Scope(user, session_id=session))


@pytest.mark.usefixtures("said")
def test_sessions_are_listed_and_shown(run: Run) -> None:
    assert [each["session_id"] for each in run("sessions", "list", "--json").json["sessions"]] == ["t2", "t1"]
    page = run("sessions", "list", "-n", "1", "--json").json
    rest = run("sessions", "list", "-n", "9", "--after", page["next"], "--json").json
    assert ([each["session_id"] for each in rest["sessions"]], rest["next"]) == (["t1"], None)
    assert run("sessions", "list", "-u", "ada").stdout.startswith("t1 of ada, open\n   1 messages until ")
    assert run("sessions", "list", "-u", "cy").stdout == "there is no session\n"
    shown = run("sessions", "show", "t1", "-u", "ada")
    assert shown.stdout.endswith("    1 user: Hello there.\n")
    assert "I prefer" not in shown.stdout


@pytest.mark.usefixtures("said")
def test_users_and_agents_are_listed(run: Run) -> None:
    assert run("sessions", "users").stdout.startswith("bo: 1 sessions with 1 messages until ")
    page = run("sessions", "users", "-n", "1", "--json").json
    assert [
        each["id"] for each in run("sessions", "users", "--after", page["next"], "--json").json["rows"]
    ] == ["ada"]
    assert run("sessions", "agents", "-u", "ada").stdout == "there is no session\n"
    with SupervisorMemory.from_env() as memory:
        answer = {"role": "assistant", "name": "sql", "content": "Twelve of them."}
        memory.add([("user", "Which are late?"), answer], user_id="ada", session_id="t3")
    assert run("sessions", "agents", "-u", "ada").stdout.startswith("sql: 1 sessions with 2 messages until ")


@pytest.mark.usefixtures("said")
def test_a_session_is_named_closed_and_erased(run: Run) -> None:
    assert "'The trip' of ada, open" in run("sessions", "rename", "t1", "The trip", "-u", "ada").stdout
    assert run("sessions", "close", "t1", "-u", "ada", "--json").json["status"] == "closed"
    held = run("sessions", "erase", "t1", "-u", "ada")
    assert held.stdout == "would remove of t1: 2 records, 0 kept\n"
    assert run("sessions", "erase", "t1", "-u", "ada", "--yes").stdout.startswith("removed of t1: ")
    gone = run("sessions", "show", "t1", "-u", "ada")
    assert gone.code == 1
    assert "nothing is kept of session 't1' of user 'ada'" in gone.stderr
    assert run("sessions", "show", "t1", "-u", "bo").code == 1


@pytest.mark.usefixtures("backend")
def test_a_timeline_is_told_by_day_and_session(run: Run) -> None:
    with SupervisorMemory.from_env() as memory:
        for session, minutes in (("t1", 15), ("t2", 30)):
            said = f"Delayed means arrival more than {minutes} minutes late."
            memory.add(said, user_id="ada", session_id=session, created_at=86_400.0 * minutes)
    told = run("timeline", "-u", "ada").stdout.splitlines()
    assert told[0] == "1970-01-31"
    assert told[1].startswith("  t2: 1 messages until 1970-01-31")
    changed = "Delayed means arrival more than 30 minutes late. (before: Delayed means arrival more than 15"
    assert told[2].startswith(f"    changed  {changed}")
    assert told[3] == "1970-01-16"
    assert "said " in run("timeline", "-u", "ada", "--said").stdout
    page = run("timeline", "-u", "ada", "-n", "1", "--json").json
    rest = run("timeline", "-u", "ada", "--after", page["next"], "--json").json
    assert ([each["session_id"] for each in rest["sessions"]], rest["next"]) == (["t1"], None)
    assert run("timeline", "-u", "cy").stdout == "there is no session of cy in that time\n"
