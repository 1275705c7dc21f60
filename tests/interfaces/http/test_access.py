"""Who is let in: every route there is, asked by those who may not."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.errors import SettingsError
from supervisor_memory.interfaces import dashboard
from supervisor_memory.interfaces.http import access
from supervisor_memory.interfaces.http.access import COOKIE, MOST_BYTES, Tokens
from supervisor_memory.interfaces.http.app import create_app
from tests.cases import every_case
from tests.interfaces.http.conftest import ADDRESS, SETTING, TOKENS, Client
from tests.interfaces.http.operations import operations, routes

OF_NOBODY = {"healthz", "health"}
"""Operations that concern no user's memory."""
OF_ALL = {"verify", "metrics", "list_users", "list_shared"}
"""Operations that concern everybody's, for operators alone."""


OPEN = {"/healthz", *dashboard.OPEN}


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """For tests that get no further."""
    settings = Settings(backend="sqlite", path=tmp_path_factory.mktemp("store"), embedding_model="none")
    with SupervisorMemory(settings) as memory:
        yield Client(create_app(memory, tokens=Tokens.read(SETTING), rate=1_000_000))


def asked(client: Client) -> list[tuple[str, str]]:
    """Every route, with something in place of what its path names."""
    found = [(method, re.sub(r"\{\w+(:\w+)?\}", "ada", path)) for method, path in routes(client.app)]
    assert len(found) > 20
    return found


def test_no_route_answers_without_a_token_or_with_a_wrong_one(door: Client) -> None:
    refused = 0
    for method, path in asked(door):
        if path in OPEN:
            continue
        for headers in (
            {},
            {"Authorization": "Bearer wrong-0123456789abcdef"},
            {"Authorization": f"Basic {TOKENS['operator']}"},
            {"Authorization": TOKENS["operator"]},
            {"Authorization": f"Bearer {TOKENS['operator'][:-1]}"},
            {"Authorization": "Bearer "},
        ):
            answer = door(method, path, None, headers=headers)
            refused += 1
            if method == "GET" and f"{path}/".startswith("/dashboard/"):  # a page sends who asks to the door
                assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/sign-in"), path
                continue
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"] == "Bearer"
            assert method == "HEAD" or answer.json()["error"]["code"] == "unauthenticated"
    assert refused > 100


def test_a_page_is_asked_for_by_a_browser_whatever_it_accepts(door: Client) -> None:
    for path in ("/dashboard", "/dashboard/", "/dashboard/inbox", "/dashboard/nope"):
        answer = door("GET", path, None, headers={"Accept": "*/*"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/dashboard/sign-in"), path
    assert door("GET", "/dashboards", None, headers={"Accept": "*/*"}).status_code == 401
    assert door("POST", "/dashboard/nope", None).status_code == 401


def test_an_unknown_path_is_not_told_from_a_known_one_without_a_token(door: Client) -> None:
    assert door("GET", "/v1/nothing", None).json() == door("GET", "/v1/audit", None).json()
    assert door("GET", "/v1/nothing").json()["error"]["code"] == "no-such-route"


@every_case(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "evil.example:8765", "127.0.0.1@evil.example", "", "[::2]"],
)
def test_no_route_answers_under_another_name_than_the_servers(door: Client, host: str) -> None:
    for method, path in asked(door):
        answer = door(method, path, headers={"Host": host})
        assert answer.status_code == 400, (method, path)


@every_case(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1.evil.example:8765",
        "http://127.0.0.1:3000",
        "http://localhost:8765",
        "null",
        "http://[evil",
    ],
)
def test_no_route_answers_a_page_of_another_origin(door: Client, origin: str) -> None:
    for method, path in asked(door):
        answer = door(method, path, headers={"Origin": origin})
        assert (answer.status_code, "access-control-allow-origin" in answer.headers) == (403, False)


def test_names_of_the_server_and_pages_of_its_own_are_let_in(make_client: Callable[..., Client]) -> None:
    client = make_client(hosts=["Memory.example.com"])
    for host in ("127.0.0.1", "localhost:99", "[::1]:8765", "memory.example.com", "MEMORY.example.com:443"):
        assert client("GET", "/v1/health", headers={"Host": host}).status_code == 200
        same = {"Host": host, "Origin": f"https://{host}"}
        assert client("GET", "/v1/health", headers=same).status_code == 200


def test_a_request_that_a_browser_says_comes_from_elsewhere_is_refused(door: Client) -> None:
    def status(method: str, **headers: str) -> int:
        return door(method, "/v1/review", headers=headers).status_code

    assert status("GET", **{"Sec-Fetch-Site": "cross-site"}) == 403
    assert status("GET", **{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"}) == 403
    assert status("POST", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}) == 403
    assert status("GET", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}) == 200
    assert status("GET", **{"Sec-Fetch-Site": "same-origin"}) == 200


def test_every_operation_refuses_the_token_of_another_user_whoever_that_is(
    client: Client, ids: dict[str, dict[str, str]]
) -> None:
    found = operations(client.app)
    assert {each.name for each in found if not each.names_a_user} == OF_NOBODY | OF_ALL
    for operation in found:
        if not operation.names_a_user:
            status = client(token="ada", **operation.of("bo")).status_code
            assert status == (403 if operation.name in OF_ALL else 200), operation.name
            continue
        answers = [
            client(token="ada", **operation.of("bo", ids["bo"]["kept"])),
            client(token="ada", **operation.of("bo", "no-such-id")),
            client(token="ada", **operation.of("nobody", ids["bo"]["waits"])),
            client(token="ada", **operation.of("Bo", ids["bo"]["waits"])),
        ]
        assert {each.status_code for each in answers} == {403}, operation.name
        assert len({each.content for each in answers}) == 1, operation.name


def test_a_token_that_may_read_changes_nothing(
    client: Client, memory: SupervisorMemory, ids: dict[str, dict[str, str]]
) -> None:
    before = memory.backend.audit.count()
    refused = set()
    for operation in operations(client.app):
        if operation.method != "GET" and operation.name != "search":
            for record in ids["ada"].values():
                answer = client(token="reader", **operation.of("ada", record))
                assert (answer.status_code, answer.json()["error"]["code"]) == (403, "memory-access-denied")
            refused.add(operation.name)
    assert {"add", "update_memory", "delete_memory", "approve", "undo", "erase"} <= refused
    assert memory.backend.audit.count() == before


def test_a_token_of_several_users_has_to_say_which(client: Client, ids: dict[str, dict[str, str]]) -> None:
    assert client("GET", "/v1/memories", "two").status_code == 422
    assert client("GET", f"/v1/memories/{ids['bo']['kept']}", "two").status_code == 422
    assert client.get("/v1/memories", "two", user_id="bo")["user_id"] == "bo"
    assert client.get("/v1/memories", "ada")["user_id"] == "ada"
    assert client("GET", "/v1/memories", "operator").status_code == 422
    assert client.get(f"/v1/memories/{ids['bo']['kept']}", "operator")["id"] == ids["bo"]["kept"]


def test_a_body_of_one_byte_too_many_is_refused_on_every_route_that_takes_one(door: Client) -> None:
    def spaces(size: int) -> bytes:
        return b'{"text":"tea","user_id":"ada"}'.ljust(size)

    async def in_pieces(size: int) -> AsyncIterator[bytes]:
        for start in range(0, size, 65_536):
            yield spaces(size)[start : start + 65_536]

    json = {"Content-Type": "application/json"}
    for operation in operations(door.app):
        if operation.body is None:
            continue
        path = operation.of("ada")["path"]
        told = door(operation.method, path, content=spaces(MOST_BYTES + 1), headers=json)
        untold = door(operation.method, path, content=in_pieces(MOST_BYTES + 1), headers=json)
        assert "content-length" not in untold.request.headers
        assert (told.status_code, untold.status_code) == (413, 413), operation.name
        assert told.json()["error"]["code"] == untold.json()["error"]["code"] == "too-large"
    fits = door("POST", "/v1/memories", content=in_pieces(MOST_BYTES), headers=json)
    assert (fits.status_code, fits.json()["results"][0]["memory"]) == (200, "tea")
    lies = {**json, "Content-Length": "9" * 5_000}
    assert door("POST", "/v1/memories", content=spaces(40), headers=lies).status_code == 413
    assert (
        door("POST", "/v1/memories", content=spaces(40), headers={**json, "Content-Length": "-1"}).status_code
        == 400
    )


def test_a_body_that_does_not_come_is_not_waited_for(door: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_BODY_SECONDS", 0.1)

    async def late() -> AsyncIterator[bytes]:
        yield b"{"
        await asyncio.sleep(60)

    answer = door("POST", "/v1/memories", content=late(), headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (408, "too-slow")


def test_who_asks_too_fast_waits_as_long_as_it_says_and_others_do_not(
    make_client: Callable[..., Client],
) -> None:
    client = make_client(rate=30)
    for _ in range(30):
        assert client("GET", "/v1/health", "ada").status_code == 200
    refused = client("GET", "/v1/health", "ada")
    assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too-many-requests")
    assert 1 <= int(refused.headers["retry-after"]) <= 2
    assert client("GET", "/v1/health", "bo").status_code == 200
    guesses = [client("GET", "/v1/health", None).status_code for _ in range(31)]
    assert (guesses[:30], guesses[30]) == ([401] * 30, 429)


def test_a_cookie_counts_on_pages_alone_and_changes_nothing_for_a_page_of_others(door: Client) -> None:
    kept = {"Cookie": f"{COOKIE}={TOKENS['operator']}"}
    assert door("GET", "/v1/health", None, headers=kept).status_code == 401
    assert door("GET", "/openapi.json", None, headers=kept).status_code == 200
    assert door("GET", "/openapi.json", None, headers={"Cookie": f"{COOKIE}=wrong"}).status_code == 401
    assert door("GET", "/openapi.json", None, headers={"Cookie": "a=\x01;;=;\x7f"}).status_code == 401
    assert door("POST", "/openapi.json", None, headers=kept).status_code == 401
    own = {**kept, "Origin": ADDRESS}
    assert door("POST", "/openapi.json", None, headers=own).status_code == 405


@pytest.mark.parametrize("path", ["/healthz", "/v1/health", "/v1/nothing", "/v1/audit"])
@pytest.mark.parametrize("token", [None, "operator"])
def test_every_answer_says_that_nobody_may_frame_sniff_or_keep_it(
    door: Client, path: str, token: str | None
) -> None:
    headers = door("GET", path, token).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert (headers["x-frame-options"], headers["cache-control"]) == ("DENY", "no-store")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"


def test_tokens_are_read_with_their_users_and_rights() -> None:
    ada, bot = "a" * 16, "b" * 256
    read = Tokens.read(f" ada@example.com:{ada}:*:write,\n bot:{bot}:u%3A1|%E6%9D%8E%E5%9B%9B ")
    assert len(read) == 2
    found, bound = read.caller(ada), read.caller(bot)
    assert found
    assert (found.name, found.user_ids, found.may_write) == ("ada@example.com", None, True)
    assert bound
    assert (bound.name, bound.user_ids, bound.may_write) == ("bot", frozenset({"u:1", "李四"}), False)
    assert [read.caller(wrong) for wrong in ("", "c" * 16, ada + "a", "é\udcff", ada.upper())] == [None] * 5


SECRET = "s3cr3t-0123456789"


@every_case(
    "text",
    [
        SECRET,
        f"ada:{SECRET}",
        f"ada:{SECRET}:",
        f"ada:{SECRET}:*:admin",
        f"ada:{SECRET}:*:write:more",
        f"ada:{SECRET[:15]}:*",
        f"ada:{SECRET}!:*",
        f"a da:{SECRET}:*",
        f":{SECRET}:*",
        f"ada:{SECRET}:null",
        f"ada:{SECRET}:a||b",
        f"ada:{SECRET}:%ff",
        f"ada:{SECRET}:*,ada:{SECRET}2:*",
        f"ada:{SECRET}:*,bo:{SECRET}:*",
    ],
)
def test_what_is_no_list_of_tokens_is_refused_without_showing_one(text: str) -> None:
    with pytest.raises(SettingsError, match="MEMORY_SERVER_TOKENS: entry") as refused:
        Tokens.read(text)
    assert "s3cr3t" not in str(refused.value)


def test_a_fault_of_ours_is_told_without_its_words(
    client: Client,
    memory: SupervisorMemory,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fails(**_: Any) -> None:
        raise ZeroDivisionError("what ada said")

    monkeypatch.setattr(memory, "get_all", fails)
    answer = client("GET", "/v1/memories", "ada")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "ZeroDivisionError at " in caplog.text
    assert "what ada said" not in caplog.text + answer.text


def test_requests_are_logged_one_a_line_whatever_is_in_them(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "supervisor_memory.http")
    nasty = "%0d%0a%1b[31mERROR%20forged%e2%80%ae%00"
    for path in (f"/{nasty}/x", f"/v1/{nasty}", f"/v1/memories/{nasty}", f"/v1/users/{nasty}/holds"):
        for token in (None, "operator"):
            answer = client("GET", path, token, headers={"User-Agent": "a\tb", "X-Forwarded-For": "c"})
            assert answer.status_code in (401, 404, 422), answer.text
            assert isinstance(answer.json()["error"]["message"], str)
    lines = [record.getMessage() for record in caplog.records if record.name == "supervisor_memory.http"]
    assert len(lines) == 8
    assert not any(c in line for line in lines for c in "\r\n\x1b\u202e\x00")


def test_the_log_names_operations_and_callers_and_no_users(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "supervisor_memory.http")
    client("GET", "/v1/users/bo%40example.com/holds")
    client("GET", "/v1/users/bo%40example.com/holds", None)
    client("GET", "/v1/memories", "ada", params={"user_id": "bo@example.com"})
    told = [
        record.getMessage().rsplit(" ", 2)[0] for record in caplog.records if record.name.endswith("http")
    ]
    assert told == ["operator GET holds 200", "- GET /v1/users 401", "ada GET list_memories 403"]


def test_what_else_than_http_is_asked_is_not_answered(door: Client) -> None:
    sent: list[Any] = []

    async def ask() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": "websocket.connect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "websocket", "path": "/v1/memories", "headers": [], "query_string": b""}
        await door.app(scope, receive, send)

    asyncio.run(ask())
    assert [each["type"] for each in sent] in ([], ["websocket.close"])


def test_an_application_that_is_mounted_is_entered_as_one_that_is_not(client: Client) -> None:
    outer = FastAPI()
    outer.mount("/memory", client.app)
    mounted = Client(outer)
    html = {"accept": "text/html"}
    sent = mounted("GET", "/memory/dashboard/inbox", None, headers=html)
    assert (sent.status_code, sent.headers["location"]) == (303, "/memory/dashboard/sign-in")
    assert mounted("GET", "/memory/dashboard/sign-in", None, headers=html).status_code == 200
    assert mounted("GET", "/memory/healthz", None).status_code == 200
    assert mounted("GET", "/memory/v1/memories", None).status_code == 401
    kept = {"cookie": f"{COOKIE}={TOKENS['operator']}"}
    assert mounted("GET", "/memory/v1/health", None, headers=kept).status_code == 401
    assert mounted("GET", "/memory/dashboard/inbox", None, headers=kept).status_code == 200
