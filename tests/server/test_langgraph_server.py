"""Memory on a LangGraph server: the template, used as its clients use it."""

import asyncio
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from langgraph_sdk.client import LangGraphClient

from tests.server.served import TOKENS, Server, open_server

pytestmark = pytest.mark.asyncio
TABLES = "Use tables by default."


def said(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def answer(client: LangGraphClient, text: str, thread: str | None = None, **options: Any) -> str:
    state: Any = await client.runs.wait(thread, "team", input=said(text), **options)
    return str(state["messages"][-1]["content"])


async def new_thread(client: LangGraphClient) -> str:
    return str((await client.threads.create())["thread_id"])


@pytest.fixture(scope="module", autouse=True)
def cron(server: Server) -> dict[str, Any]:
    """What ada wants, and a job of bo's for every minute: made first, so that no test waits for it long."""

    async def make() -> Any:
        ada, bo = server.client("ada"), server.client("bo")
        assert TABLES in await answer(ada, TABLES, await new_thread(ada))
        asked = said("What is my project code?")
        return await bo.crons.create("team", schedule="* * * * *", input=asked)

    return dict(asyncio.run(make()))


async def test_what_a_user_says_crosses_threads_and_reaches_nobody_else(server: Server) -> None:
    ada, bo = server.client("ada"), server.client("bo")
    second = await new_thread(ada)
    assert f"user] {TABLES}" in await answer(ada, "What are the figures of Q2?", second)
    assert f"user] {TABLES}" in await answer(ada, "How do I like answers?")
    assert TABLES not in await answer(bo, "How do I like answers?")
    history: Any = await ada.threads.get_history(second)
    assert not any(m["type"] == "system" for state in history for m in state["values"].get("messages", []))


async def test_background_runs_remember(server: Server) -> None:
    ada = server.client("ada")
    thread = await new_thread(ada)
    run = await ada.runs.create(thread, "team", input=said("My report is due on Fridays."))
    await ada.runs.join(thread, run["run_id"])
    assert "due on Fridays" in await answer(ada, "When is my report due?")


async def test_what_an_interrupt_is_resumed_with_is_heard(server: Server) -> None:
    ada = server.client("ada")
    thread = await new_thread(ada)
    waiting: Any = await ada.runs.wait(thread, "team", input=said("Publish the report."))
    assert waiting["__interrupt__"][0]["value"] == "May this be published?"
    await ada.runs.wait(thread, "team", command={"resume": "Yes. Always put a title on the first page."})
    assert "put a title on the first page" in await answer(ada, "What do I want on the first page?")


async def test_assistants_and_context_name_no_other_user(server: Server) -> None:
    ada = server.client("ada")
    assistant = await ada.assistants.create("team", name="mine")
    state: Any = await ada.runs.wait(None, assistant["assistant_id"], input=said("How do I like answers?"))
    assert TABLES in state["messages"][-1]["content"]
    assert TABLES in await answer(ada, "How do I like answers?", context={"user_id": "ada"})
    other = await answer(server.client("bo"), "How do I like answers?", context={"user_id": "ada"})
    assert TABLES not in other
    configured = {"configurable": {"user_id": "ada"}}
    assert TABLES not in await answer(server.client("bo"), "How do I like answers?", config=configured)


async def test_forty_runs_at_once_keep_their_users_apart_and_block_nothing(server: Server) -> None:
    clients = {"ada": server.client("ada"), "bo": server.client("bo")}
    users = ["ada", "bo"] * 20
    told = await asyncio.gather(
        *(answer(clients[user], f"What are the figures of week {week}?") for week, user in enumerate(users))
    )
    assert [TABLES in text for text in told] == [user == "ada" for user in users]
    log = server.log.read_text("utf-8", "replace")
    assert "BlockingError" not in log
    assert "Traceback" not in log


async def test_nobody_gets_in_without_a_token_and_nobody_into_the_store(server: Server) -> None:
    for headers in ({}, {"x-auth-scheme": "langsmith"}):
        assert httpx.post(f"{server.url}/threads", json={}, headers=headers).status_code == 401
    asked = {"namespace_prefix": ["supervisor_memory"]}
    for headers, refused in (({}, 401), ({"authorization": f"Bearer {TOKENS['ada']}"}, 403)):
        found = httpx.post(f"{server.url}/store/items/search", json=asked, headers=headers)
        assert found.status_code == refused


async def test_api_metrics_and_dashboard_are_below_memory_with_tokens_of_their_own(server: Server) -> None:
    records = server.memory("/v1/memories?user_id=ada").json()["records"]
    assert TABLES in [each["content"] for each in records]
    assert "supervisor_memory_records" in server.memory("/metrics").text
    assert httpx.get(f"{server.url}/memory/v1/memories?user_id=ada").status_code == 401
    with httpx.Client(headers={"accept": "text/html"}, follow_redirects=True) as browser:
        page = browser.get(f"{server.url}/memory")
    assert page.status_code == 200
    assert "/memory/dashboard/static/" in page.text


async def test_a_cron_job_acts_as_the_user_who_made_it(server: Server, cron: dict[str, Any]) -> None:
    until = time.monotonic() + 90

    def has_answered() -> bool:
        sessions = server.memory("/v1/sessions?user_id=bo").json()["sessions"]
        told = (server.memory(f"/v1/sessions/{each['session_id']}?user_id=bo").text for each in sessions)
        return any("What is my project code?" in each for each in told)

    while not await asyncio.to_thread(has_answered):
        assert time.monotonic() < until, "the job did not run"
        await asyncio.sleep(1)
    await server.client("bo").crons.delete(cron["cron_id"])


async def test_a_reload_keeps_what_is_remembered_and_opens_memory_once(server: Server) -> None:
    ada = server.client("ada")
    began = server.log.read_text("utf-8", "replace").count("Application started up")
    file = server.folder / "remembering.py"
    file.write_text(file.read_text("utf-8") + "\nprint('memory was opened')\n", "utf-8")
    until = time.monotonic() + 60
    while server.log.read_text("utf-8", "replace").count("Application started up") == began:
        assert time.monotonic() < until, "it did not load again"
        await asyncio.sleep(0.5)
    server.wait()
    assert TABLES in await answer(ada, "How do I like answers?")
    assert server.log.read_text("utf-8", "replace").count("memory was opened") == 1


async def test_without_an_auth_handler_any_client_picks_any_user(tmp_path: Path) -> None:
    with open_server(tmp_path / "open", with_auth=False) as server:
        nobody = server.client(None)
        as_ada = {"configurable": {"user_id": "ada"}}
        await answer(nobody, TABLES, config=as_ada)
        assert TABLES in await answer(nobody, "How do I like answers?", config=as_ada)
