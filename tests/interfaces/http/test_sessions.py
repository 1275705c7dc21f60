"""Sessions by HTTP: a token that is for users sees theirs."""

from supervisor_memory import Scope, SupervisorMemory
from supervisor_memory.model.records import Message
from tests.interfaces.http.conftest import Client


def say(memory: SupervisorMemory, user: str, session: str, text: str) -> None:
    memory.remember([("user", text)], Scope(user, session_id=session))


def test_sessions_are_listed_shown_named_closed_and_erased(memory: SupervisorMemory, client: Client) -> None:
    say(memory, "ada", "a/1", "Hello there.")
    say(memory, "bo", "b1", "I prefer coffee.")
    page = client.get("/v1/sessions", limit=1)
    assert [each["session_id"] for each in page["sessions"]] == ["b1"]
    rest = client.get("/v1/sessions", after=page["next"])
    assert [each["session_id"] for each in rest["sessions"]] == ["a/1"]
    (message,) = client.get("/v1/sessions/a/1", "ada")["messages"]
    assert (message["role"], message["sequence"], message["content"]) == ("user", 1, "Hello there.")
    told = client("PATCH", "/v1/sessions/a/1", "ada", json={"name": "Greetings", "closed": True}).json()
    assert (told["name"], told["status"]) == ("Greetings", "closed")
    asked = client("DELETE", "/v1/sessions/a/1", "ada").json()
    assert (asked["erased_at"], asked["counts"]["records"]) == (None, 2)
    done = client("DELETE", "/v1/sessions/a/1", "ada", params={"confirm": True}).json()
    assert (done["session_id"], done["counts"]["records"], done["pending"]) == ("a/1", 2, [])
    assert client("GET", "/v1/sessions/a/1", "ada").status_code == 404


def test_a_token_sees_and_changes_the_sessions_of_its_user_alone(
    memory: SupervisorMemory, client: Client
) -> None:
    say(memory, "bo", "b1", "I prefer coffee.")
    say(memory, "ada", "a1", "Hello there.")
    assert [each["session_id"] for each in client.get("/v1/sessions", "ada")["sessions"]] == ["a1"]
    assert client("GET", "/v1/sessions", "ada", params={"user_id": "bo"}).status_code == 403
    assert client("GET", "/v1/sessions/b1", "ada").status_code == 404
    assert client("PATCH", "/v1/sessions/b1", "ada", json={"name": "Mine"}).status_code == 404
    assert client("DELETE", "/v1/sessions/b1", "ada", params={"confirm": True}).status_code == 404
    assert client("PATCH", "/v1/sessions/a1", "reader", json={"closed": True}).status_code == 403
    assert client("DELETE", "/v1/sessions/a1", "reader", params={"confirm": True}).status_code == 403


def test_who_spoke_in_sessions_is_told_by_user_and_agent(memory: SupervisorMemory, client: Client) -> None:
    for user, agent in (("bo", "sql"), ("ada", "charts")):
        said = [("user", "Which delays?"), Message("assistant", "Many.", name=agent)]
        memory.remember(said, Scope(user, session_id=f"{user}-1"))
    first = client.get("/v1/users", limit=1)
    rest = client.get("/v1/users", after=first["next"])
    assert {each["id"] for each in (*first["rows"], *rest["rows"])} >= {"ada", "bo"}
    [mine] = client.get("/v1/agents", "ada")["rows"]
    assert (mine["id"], mine["sessions"], mine["messages"]) == ("charts", 1, 2)
    assert {each["id"] for each in client.get("/v1/agents")["rows"]} >= {"charts", "sql"}
    assert client("GET", "/v1/users", "ada").status_code == 403
    assert client("GET", "/v1/agents", "ada", params={"user_id": "bo"}).status_code == 403


def test_a_long_session_is_read_on_from_where_its_timeline_begins(
    memory: SupervisorMemory, client: Client
) -> None:
    lines = [{"content": f"Line {n}.", "session_id": "long", "created_at": 1e9 + n} for n in range(101)]
    memory.add_many(lines, user_id="ada")
    [last] = client.get("/v1/timeline", "ada", said=True)["sessions"]
    assert (last["said"], len(last["entries"])) == (101, 100)
    [first] = client.get("/v1/timeline", "ada", session="long", until=last["earlier"], said=True)["sessions"]
    assert ([each["text"] for each in first["entries"]], first["earlier"]) == (["Line 0."], None)


def test_a_timeline_is_of_the_tokens_user_alone(memory: SupervisorMemory, client: Client) -> None:
    say(memory, "bo", "b1", "I prefer coffee.")
    say(memory, "ada", "a1", "Delayed means arrival more than 15 minutes late.")
    [session] = client.get("/v1/timeline", "ada")["sessions"]
    assert (session["session_id"], session["said"], session["cost"]["notes"]) == ("a1", 1, 0)
    assert [(each["what"], each["text"]) for each in session["entries"]] == [
        ("learned", "Delayed means arrival more than 15 minutes late.")
    ]
    assert client("GET", "/v1/timeline", "ada", params={"user_id": "bo"}).status_code == 403
    assert client.get("/v1/timeline", "ada", session="b1")["sessions"] == []
    assert client("GET", "/v1/timeline", "ada", params={"since": "lately"}).status_code == 422
