"""Talk to the demo team. What you say is kept in `.env`'s store, or `.demo/memory` without one.

Run: make chat        (or: .venv/bin/python examples/03_chat.py --user ada)
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `agents` and `common` are in the clone, in no package

from agents.team import build_team
from common.config import config
from supervisor_memory import SupervisorMemory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--user", default="me", help="whose memory it is")
    user = parser.parse_args().user
    if not Path(".env").exists():
        os.environ.setdefault("MEMORY_BACKEND", "sqlite")
        os.environ.setdefault("MEMORY_PATH", ".demo/memory")
    print(
        f"chat model: {config().chat_model or 'rule-based, no language model; set CHAT_MODEL for a real one'}"
    )
    print("Ask about the flights from New York in 2013, in English or Chinese. Empty line or Ctrl-D ends.")
    print("Try: Use tables by default.   /   六月哪家航空公司的延误率最高？   /   leave, and ask again")
    with SupervisorMemory.from_env() as memory:
        kept = memory.settings
        where = f"MEMORY_BACKEND={kept.backend} MEMORY_PATH={kept.path}"
        print(f"To look into the memory: {where} .venv/bin/supervisor-memory list -u {user}")
        graph = memory.attach(build_team(tools=memory.tools())).compile()
        thread = {"configurable": {"thread_id": f"chat-{int(time.time())}"}}
        while text := ask(user):
            state = graph.invoke({"messages": [("user", text)], "user_id": user}, thread)
            print(f"\n{state['final_answer']}\n")


def ask(user: str) -> str:
    try:
        return input(f"{user}> ").strip()
    except (EOFError, KeyboardInterrupt):
        print()
        return ""


if __name__ == "__main__":
    main()
