"""Memory for a graph that knows nothing of memory: the lines between the marks are all there is to it.

Run: .venv/bin/python examples/01_attach.py
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `agents` and `common` are in the clone, in no package

from agents.team import build_team
from supervisor_memory import SupervisorMemory

# --- memory, from here
memory = SupervisorMemory.from_env()
team = build_team(tools=memory.tools())
graph = memory.attach(team, supervisor="supervisor").compile()
# --- to here

ASKS = (
    "Use tables by default. Delayed means arrival more than 15 minutes late.",
    "Which three airlines had the highest share of delayed flights from JFK in June?",
)
for thread, text in enumerate(ASKS):  # two threads: what the second knows of the first is memory
    state = graph.invoke(
        {"messages": [("user", text)], "user_id": "ada"}, {"configurable": {"thread_id": f"example-{thread}"}}
    )
    print(f"ada: {text}\n{state['final_answer']}\n")
memory.close()
