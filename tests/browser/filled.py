"""A store as the demo leaves it behind: two users, real turns of the team, and statements that wait."""

import time
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig

from agents.team import build_team
from supervisor_memory import Scope, Settings, SupervisorMemory

__all__ = ["TURNS", "filled"]

_DAY = 86_400.0
TURNS = (
    ("ada", "以后默认用表格"),
    ("ada", "Delayed means arrival more than 15 minutes late."),
    ("ada", "Which three airlines had the highest share of delayed flights from JFK in June?"),
    ("bo", "Which three airlines had the highest share of delayed flights from LaGuardia in June?"),
)
PROPOSED = (
    ("The user prefers bar charts for monthly totals.", "user-profile", "web", "tool"),
    ("用户希望结果按航空公司排序。", "user-profile", "sql", "agent"),
    ("The user works from the Lisbon office.", "identity", "web", "tool"),
)


def filled(directory: Path) -> SupervisorMemory:
    """The memory over such a store, open."""
    settings = Settings(backend="sqlite", path=directory, embedding_model="none", review="risky")
    memory = SupervisorMemory(settings)
    graph = memory.attach(build_team(tools=memory.tools())).compile()
    for turn, (user, text) in enumerate(TURNS):
        config: RunnableConfig = {
            "configurable": {"thread_id": f"session-{user}"},
            "metadata": {"run_id": f"run-{turn}"},
        }
        asked: Any = {"messages": [("user", text)], "user_id": user}
        graph.invoke(asked, config)
    # A reader that sees all of the conversation: of the note is left out what stands there.
    spoken = [("user", text) for user, text in TURNS if user == "ada"]
    memory.recall(spoken, Scope("ada", "text2sql", session_id="session-ada", run_id="run-2"))
    office = memory.write(
        "The June report goes to the Porto office.", user_id="ada", created_at=time.time() - 20 * _DAY
    )
    memory.update(office.id, content="The June report goes to the Porto and Lisbon offices.", user_id="ada")
    memory.write(
        "Delayed means departure more than 15 minutes late.",
        user_id="ada",
        source_class="agent",
        agent_id="sql",
    )
    for text, kind, agent, by in PROPOSED:
        memory.write(text, user_id="ada", kind=kind, agent_id=agent, source_class=by, run_id="run-web")  # type: ignore[arg-type]
    memory.remember(
        [("user", "Delayed means arrival more than 30 minutes late.")],
        Scope("ada", session_id="session-later", run_id="run-later"),
        turn_id="m-later",
    )
    memory.flush(seconds=20)
    return memory
