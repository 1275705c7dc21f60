"""A store of two users behind the pages, and a visitor who sends forms as a browser without scripts."""

import asyncio
import html
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app
from supervisor_memory.model.records import Filter, Record

ADDRESS = "http://127.0.0.1:8765"
REVIEWER = "rita@example.com"
TOKENS = {
    "operator": "operator-0123456789abcdef",
    "reader": "reader-0123456789abcdefgh",
    "bo": "bo-0123456789abcdefghijkl",
    "two": "two-0123456789abcdefghijk",
}
_WORD = re.compile(r'name="word" value="([0-9a-f]{64})"')
PAGES = ("inbox", "turns", "timeline", "relations", "experience", "records", "preview", "figures", "health")
LATE = "Delayed means arrival more than 15 minutes late."
LATER = "Delayed means arrival more than 30 minutes late."
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class Visitor:
    """A browser without scripts: it keeps cookies, and sends back the CSRF token of the last form it saw."""

    def __init__(self, app: FastAPI, token: str | None = None, language: str = "en") -> None:
        self.app = app
        self.cookies = httpx.Cookies()
        self.headers = {"Accept": "text/html", "Accept-Language": language, "Origin": ADDRESS}
        self.word = ""
        if token is not None:
            assert self.post("/dashboard/sign-in", token=TOKENS[token]).status_code == 303
            self.get("/dashboard/inbox")

    def ask(self, method: str, path: str, **options: object) -> httpx.Response:
        async def asked() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url=ADDRESS, cookies=self.cookies, headers=self.headers
            ) as client:
                answer = await client.request(method, path, **options)  # type: ignore[arg-type]
                self.cookies = client.cookies
                return answer

        answer = asyncio.run(asked())
        if found := _WORD.search(answer.text):
            self.word = found[1]
        return answer

    def get(self, path: str, **params: object) -> httpx.Response:
        return self.ask("GET", path, params={name: str(value) for name, value in params.items()} or None)

    def post(self, path: str, **fields: str) -> httpx.Response:
        return self.ask("POST", path, data={"word": self.word, **fields})

    def text(self, path: str, **params: object) -> str:
        """The text of a page without tags; follows a redirect."""
        answer = self.get(path, **params)
        if answer.status_code == 303:
            answer = self.get(answer.headers["location"])
        assert answer.status_code == 200, answer.text
        return html.unescape(re.sub(r"<[^>]*>", "", answer.text))


def _opened(place: Path) -> SupervisorMemory:
    return SupervisorMemory(Settings(backend="sqlite", path=place, embedding_model="none", review="risky"))


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """The files of a store, and its records; it is filled once and copied."""
    place = tmp_path_factory.mktemp("filled")
    with _opened(place) as memory:
        return place, _fill(memory)


@pytest.fixture
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    """A memory, filled where the test asks for `ids`."""
    if "ids" in request.fixturenames:
        place, _ = request.getfixturevalue("filled")
        shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    with _opened(tmp_path) as memory:
        yield memory


@pytest.fixture
def app(memory: SupervisorMemory) -> FastAPI:
    told = (
        f"{REVIEWER}:{TOKENS['operator']}:*:write, reader:{TOKENS['reader']}:*, bo:{TOKENS['bo']}:bo:write, "
        f"two:{TOKENS['two']}:ada|bo:write"
    )
    return create_app(memory, tokens=Tokens.read(told), rate=100_000)


@pytest.fixture
def visitor(app: FastAPI) -> Visitor:
    return Visitor(app, "operator")


@pytest.fixture
def ids(filled: tuple[Path, dict[str, str]], memory: SupervisorMemory) -> dict[str, str]:
    """Record ids by name: known records, proposals of each kind, and a turn with notes."""
    return dict(filled[1])


def _fill(memory: SupervisorMemory) -> dict[str, str]:
    written = {
        "tables": memory.write("Use tables by default.", user_id="ada").id,
        "late": memory.write("Delayed means arrival more than 15 minutes late.", user_id="ada").id,
        "bo": memory.write("Invoices mean orders that were paid.", user_id="bo").id,
    }
    memory.remember(
        [("user", "Please note. Delayed means arrival more than 30 minutes late. Thank you.")],
        Scope("ada", session_id="session-1", run_id="run-1"),
        turn_id="message-1",
    )
    written["rival"] = next(each.id for each in memory.review.pending(user_id="ada"))
    for name, text in (("charts", "The user prefers bar charts."), ("lisbon", "The user works in Lisbon.")):
        written[name] = memory.write(
            text, user_id="ada", kind="user-profile", source_class="tool", agent_id="web", run_id="run-1"
        ).id
    for agent in (None, "sql"):
        memory.recall(
            [("user", "How many flights were delayed?")],
            Scope("ada", agent, session_id="session-2", run_id="run-2"),
        )
    return written


@pytest.fixture
def known(memory: SupervisorMemory) -> Callable[[str], set[str]]:
    """User → the contents of the active records."""
    return lambda user_id: {record.content for record in memory.get_all(user_id=user_id)}


def last(memory: SupervisorMemory, record_id: str) -> tuple[str, str]:
    event = memory.backend.audit.tail(1, record_id=record_id)[0].event
    return event["op"], event["actor"]


def status(memory: SupervisorMemory, record_id: str) -> str:
    return memory.backend.get([record_id])[0].status


def next_page(page: str) -> str:
    """The address behind "older"; "" where there is none."""
    found = re.search(r'rel="next" href="([^"]*)"', page)
    return html.unescape(found[1]) if found else ""


def proposed(memory: SupervisorMemory, *texts: str) -> list[str]:
    """The ids of proposals by a tool about ada; the page has the last of them first."""
    asked: Any = {"user_id": "ada", "kind": "user-profile", "source_class": "tool", "agent_id": "web"}
    return [memory.write(text, metadata={"strategy": "review"}, **asked).id for text in texts]


def waiting_of(memory: SupervisorMemory) -> Sequence[Record]:
    return memory.upkeep.listed(Filter("ada", statuses=("pending",)), limit=100)
