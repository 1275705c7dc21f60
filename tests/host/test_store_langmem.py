"""langmem's tools, its store manager and its reflection work over our store, and keep what is ours."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langmem import (  # type: ignore[import-untyped]  # it ships no types
    ReflectionExecutor,
    create_manage_memory_tool,
    create_memory_store_manager,
    create_search_memory_tool,
)

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.host.store.store import MemoryStore, label_for
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.stores.sqlite.store import SqliteBackend
from supervisor_memory.testing.scripted import ScriptedModel, call_of

USER = "ada@x.com"
TEMPLATE = ("memories", "{langgraph_user_id}")
NAMESPACE = ("memories", label_for(USER))
CONFIG: RunnableConfig = {"configurable": {"langgraph_user_id": label_for(USER), "thread_id": "t"}}


@pytest.fixture(params=["in_memory", "sqlite"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SupervisorMemory]:
    backend = InMemoryBackend() if request.param == "in_memory" else SqliteBackend(tmp_path)
    settings = Settings()
    with SupervisorMemory(settings, backend=backend, embedder=HashingEmbedder()) as memory:
        yield memory


@pytest.fixture
def store(memory: SupervisorMemory) -> MemoryStore:
    return MemoryStore(memory)


def remembered(memory: SupervisorMemory, query: str, user: str = USER) -> list[str]:
    return [hit.record.content for hit in memory.search(query, user_id=user, threshold=0.1)]


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def patching(text: str) -> Any:
    """A model that changes the text of the first memory it is shown."""

    def reply(messages: list[BaseMessage]) -> AIMessage:
        shown = "\n".join(str(message.content) for message in messages)
        found = re.search(r"<instance id=([0-9a-f]+)", shown)
        assert found, shown
        patch = {"op": "replace", "path": "/content", "value": text}
        return call_of("PatchDoc", json_doc_id=found[1], planned_edits="replace it", patches=[patch])

    return reply


def test_its_tools_write_and_find_memories(memory: SupervisorMemory, store: MemoryStore) -> None:
    model = ScriptedModel(
        script=[
            call_of("manage_memory", content="likes green tea"),
            call_of("search_memory", query="green tea"),
            "done",
        ]
    )
    tools = [create_manage_memory_tool(TEMPLATE), create_search_memory_tool(TEMPLATE)]
    agent: Any = create_agent(model, tools=tools, store=store)
    answer = agent.invoke(said("hello"), CONFIG)
    assert "likes green tea" in str(answer["messages"][-2].content)
    assert remembered(memory, "green tea") == ["likes green tea"]
    assert remembered(memory, "green tea", "bob") == []
    (item,) = store.search(NAMESPACE)
    assert item.value == {"content": "likes green tea"}


def test_its_tools_change_and_delete_what_memory_wrote(memory: SupervisorMemory, store: MemoryStore) -> None:
    kept = memory.write("GMV excludes refunds", user_id=USER, family="memories", metadata={"row": 7}).id
    tool = create_manage_memory_tool(TEMPLATE, store=store)
    tool.invoke({"content": "GMV includes refunds", "action": "update", "id": kept}, CONFIG)
    record = memory.get(kept)
    assert (record.content, record.metadata["row"], record.version) == ("GMV includes refunds", 7, 2)
    assert [old.content for old in memory.history(kept)] == ["GMV excludes refunds", "GMV includes refunds"]
    tool.invoke({"action": "delete", "id": kept}, CONFIG)
    assert memory.get(kept).status == "deleted"
    assert store.search(NAMESPACE) == []


def test_its_manager_writes_memories(memory: SupervisorMemory, store: MemoryStore) -> None:
    model = ScriptedModel(script=[call_of("Memory", content="likes jazz")])
    manager = create_memory_store_manager(model, namespace=TEMPLATE, store=store)
    manager.invoke(said("I like jazz"), CONFIG)
    (item,) = store.search(NAMESPACE)
    assert item.value == {"kind": "Memory", "content": {"content": "likes jazz"}}
    assert remembered(memory, "jazz") == ["likes jazz"]


async def test_its_manager_changes_what_memory_wrote_and_keeps_what_is_ours(
    memory: SupervisorMemory, store: MemoryStore
) -> None:
    kept = memory.write(
        "GMV excludes refunds",
        user_id=USER,
        family="memories",
        kind="domain-facts",
        metadata={"row": 7, "tags": ["kpi"]},
    ).id
    before = memory.get(kept)
    model = ScriptedModel(script=[patching("GMV includes refunds")])
    manager = create_memory_store_manager(model, namespace=TEMPLATE, store=store)
    await manager.ainvoke(said("GMV includes refunds after all"), CONFIG)
    assert "GMV excludes refunds" in model.prompts[0]
    after = memory.get(kept)
    assert after.content == "GMV includes refunds"
    assert after.version == before.version + 1
    assert (after.kind, after.tags, after.source, after.importance, after.metadata["row"]) == (
        *(before.kind, before.tags, before.source, before.importance, 7),
    )
    assert [old.content for old in memory.history(kept)] == ["GMV excludes refunds", "GMV includes refunds"]
    (item,) = store.search(NAMESPACE)
    assert item.key == kept


def test_its_reflection_writes_memories_in_the_background(
    memory: SupervisorMemory, store: MemoryStore
) -> None:
    model = ScriptedModel(script=[call_of("Memory", content="likes sushi")])
    manager = create_memory_store_manager(model, namespace=TEMPLATE, store=store)
    executor = ReflectionExecutor(manager, store=store)
    try:
        executor.submit(said("sushi!"), config=CONFIG, after_seconds=0).result(timeout=60)
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
    assert remembered(memory, "sushi") == ["likes sushi"]
    assert remembered(memory, "sushi", "bob") == []
