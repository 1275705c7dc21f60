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
