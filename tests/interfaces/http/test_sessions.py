"""Sessions by HTTP: a token that is for users sees theirs."""

from supervisor_memory import Scope, SupervisorMemory
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
