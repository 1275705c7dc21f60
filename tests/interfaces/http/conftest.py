"""A store of two users behind the application, and a client."""

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from fastapi import FastAPI

from supervisor_memory import Scope, Settings, SupervisorMemory
from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app

ADDRESS: Final = "http://127.0.0.1:8765"
TOKENS: Final = {
    "operator": "operator-0123456789abcdef",
    "ada": "ada-0123456789abcdefghijk",
    "bo": "bo-0123456789abcdefghijkl",
    "reader": "reader-0123456789abcdefgh",
    "two": "two-0123456789abcdefghijk",
}
SETTING: Final = (
    f"operator:{TOKENS['operator']}:*:write, ada:{TOKENS['ada']}:ada:write, bo:{TOKENS['bo']}:bo:write, "
    f"reader:{TOKENS['reader']}:ada, two:{TOKENS['two']}:ada|bo:write"
)
MARK: Final = "zqxbocanary"
"""Part of every word of bo's."""


class Client:
    """Asks an application; `token` is a name in TOKENS, or None."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app

    def __call__(
        self, method: str, path: str, token: str | None = "operator", **options: Any
    ) -> httpx.Response:
        headers = dict(options.pop("headers", {}))
        if token is not None:
            headers.setdefault("Authorization", f"Bearer {TOKENS[token]}")

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
                return await client.request(method, path, headers=headers, **options)

        return asyncio.run(ask())

    def get(self, path: str, token: str | None = "operator", **params: Any) -> Any:
        """The JSON of an answer; the status has to be fine."""
        return self._fine(self("GET", path, token, params=params))

    def post(self, path: str, body: Any = None, token: str | None = "operator", **params: Any) -> Any:
        return self._fine(self("POST", path, token, json=body, params=params))

    @staticmethod
    def _fine(answer: httpx.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()


def _opened(place: Path) -> SupervisorMemory:
    given: dict[str, Any] = {"embedding_model": "hashing", "review": "risky", "queue_worker": False}
    return SupervisorMemory(Settings(backend="sqlite", path=place, **given))


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, dict[str, str]]]:
    """The files of a store, and its records; it is filled once and copied."""
    place = tmp_path_factory.mktemp("filled")
    with _opened(place) as memory:
        return place, {"ada": fill(memory, "ada", "ada"), "bo": fill(memory, "bo", MARK)}


@pytest.fixture
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    """A memory, filled where the test asks for `ids`."""
    if "ids" in request.fixturenames:
        place, _ = request.getfixturevalue("filled")
        shutil.copytree(place, tmp_path, dirs_exist_ok=True)
    with _opened(tmp_path) as memory:
        yield memory


@pytest.fixture
def make_client(memory: SupervisorMemory) -> Callable[..., Client]:
    def make(**options: Any) -> Client:
        given = {"tokens": Tokens.read(SETTING), "rate": 1_000_000, **options}
        return Client(create_app(memory, **given))

    return make


@pytest.fixture
def client(make_client: Callable[..., Client]) -> Client:
    return make_client()


def fill(memory: SupervisorMemory, user: str, mark: str) -> dict[str, str]:
    """Write a record of every kind, each with a word unique to the user; returns kind → record."""
    kept = memory.write(
        f"{mark}1 drinks tea.", user_id=user, metadata={"note": f"{mark}2", "tags": [f"{mark}3"]}
    )
    memory.update(kept.id, content=f"{mark}1 drinks black tea with {mark}4.", user_id=user)
    gone = memory.write(f"The office of {mark}5 is closed.", user_id=user, kind="tool-effects")
    memory.delete(gone.id, user_id=user)
    waits = memory.write(
        f"The user wants {mark}6.", user_id=user, kind="user-profile", source_class="tool", run_id=f"{mark}7"
    )
    memory.remember(
        [("user", f"From now on sort the tables by {mark}8.")],
        Scope(user, session_id=f"{mark}9"),
        turn_id="t",
    )
    memory.recall(
        [("user", f"What does {mark}1 drink?")], Scope(user, session_id=f"{mark}9", run_id=f"run-{user}")
    )
    assert waits.status == "pending"
    return {"kept": kept.id, "gone": gone.id, "waits": waits.id}


@pytest.fixture
def ids(
    filled: tuple[Path, dict[str, dict[str, str]]], memory: SupervisorMemory
) -> dict[str, dict[str, str]]:
    """User → kind → record."""
    return {user: dict(written) for user, written in filled[1].items()}
