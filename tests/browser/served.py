"""A served dashboard over a store as the demo leaves it, and a real browser in front of it."""

import importlib.util
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Dialog,
    Page,
    Request,
    sync_playwright,
)

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.interfaces.http.access import Tokens
from supervisor_memory.interfaces.http.app import create_app
from tests.browser.filled import filled

__all__ = ["REVIEWER", "Site", "browser", "demo", "opened", "page", "propose_two_hundred", "site"]

CHROMIUM = "/usr/bin/chromium"
TOKEN = "token-of-rita-0123456789"
_EXAMPLE = Path(__file__).parents[2] / "examples/10_two_hundred_proposals.py"
REVIEWER = "rita@example.com"
_ARGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--no-first-run"),
]


@dataclass
class Site:
    """What is served: the memory behind it, and its address."""

    memory: SupervisorMemory
    url: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store that tests copy: making it takes a while."""
    directory = tmp_path_factory.mktemp("demo")
    filled(directory).close()
    return directory


@pytest.fixture
def site(demo: Path, tmp_path: Path) -> Iterator[Site]:
    shutil.copytree(demo, tmp_path / "store")
    settings = Settings(backend="sqlite", path=tmp_path / "store", embedding_model="none", review="risky")
    with SupervisorMemory(settings) as memory:
        tokens = Tokens.read(f"{REVIEWER}:{TOKEN}:*:write")
        config = uvicorn.Config(
            create_app(memory, tokens=tokens, rate=100_000), port=0, log_level="warning", access_log=False
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run)
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                thread.join(0.02)
            port = server.servers[0].sockets[0].getsockname()[1]
            yield Site(memory, f"http://127.0.0.1:{port}")
        finally:
            server.should_exit = True
            thread.join(10)


def propose_two_hundred(memory: SupervisorMemory) -> None:
    """Let the two hundred proposals of the example wait, and nothing else."""
    for each in memory.review.pending():
        memory.review.reject(each.id, reviewer="before@example.com")
    spec = importlib.util.spec_from_file_location("two_hundred_proposals", _EXAMPLE)
    assert spec
    assert spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.fill(memory)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}; make test-browser installs it where it may")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """Opens signed-in pages. A test fails where a dialog shows, a script fails, the policy refuses something,
    or another host is asked."""
    wrong: list[str] = []
    contexts: list[BrowserContext] = []

    def dialog(shown: Dialog) -> None:
        wrong.append(f"dialog: {shown.message}")
        shown.dismiss()

    def asks(asked: Request) -> None:
        if not asked.url.startswith((site.url, "data:")):
            wrong.append(asked.url)

    def told(message: ConsoleMessage) -> None:
        if (
            message.type == "error" and "server responded with a status" not in message.text
        ):  # of a page itself
            wrong.append(message.text)

    def watched(page: Page) -> None:
        page.on("dialog", dialog)
        page.on("pageerror", lambda error: wrong.append(f"script: {error}"))
        page.on("console", told)
        page.on("request", asks)

    def opened(**options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1180, "height": 900}, locale="en-GB", **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)
        watched(page)
        page.goto(site.url + "/dashboard")
        page.fill("input[name=token]", TOKEN)
        page.click("button.main")
        page.wait_for_url("**/dashboard/inbox")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong, wrong


@pytest.fixture
def page(opened: Callable[..., Page]) -> Page:
    return opened()
