"""From "why did it say that" to an undone memory, in five commands.

Run: .venv/bin/python examples/05_audit_review.py
Three sessions of the demo team fill a store, of which the second goes wrong. Then the five commands are run
as you would type them; the environment decides which store they look into, as it does for the graph.
"""

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # `agents` and `common` are in the clone, in no package

from agents.team import build_team
from common.llm import RuleBasedChatModel
from supervisor_memory import SupervisorMemory

STORE = Path(".demo/audit_review")
QUESTION = "Which three airlines had the highest share of delayed flights from JFK in June?"
SESSIONS = (
    ("monday", "Delayed means arrival more than 15 minutes late."),
    ("tuesday", "From now on delayed means arrival more than 60 minutes late."),  # a slip of ada's
    ("friday", QUESTION),
)

os.environ |= {"MEMORY_BACKEND": "sqlite", "MEMORY_PATH": str(STORE), "EMBEDDING_MODEL": "none"}
shutil.rmtree(STORE, ignore_errors=True)
with SupervisorMemory.from_env() as memory:
    graph = memory.attach(build_team(RuleBasedChatModel(), output_dir=STORE / "files")).compile()
    for session, text in SESSIONS:
        run = uuid.uuid4()
        state = graph.invoke(
            {"messages": [("user", text)], "user_id": "ada"},
            {"configurable": {"thread_id": session}, "run_id": run},
        )
        print(f"{session}, ada: {text}\n{session}, team: {state['messages'][-1].text}\n", flush=True)


def shell(*command: str) -> str:
    """Run one of the five, and show it."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in command)
    print(f"$ supervisor-memory {shown}", flush=True)
    program = Path(sys.executable).with_name("supervisor-memory")
    told = subprocess.run([program, *command], text=True, capture_output=True, check=True).stdout
    print(told, flush=True)
    return told


# 1. Why did it say "60 minutes"? What each reader was told in that run, by which scores.
why = shell("why", str(run))
culprit = next(line.split()[2] for line in why.splitlines() if line.strip().startswith("1."))

# 2. Where does that come from? Its versions, who changed it and when, who read it.
shell("show", culprit)

# 3. Undo the change: the text of version 1 comes back as a new version; nothing is lost.
shell("review", "revert", culprit, "--version", "1", "--as", "rita@example.com")

# 4. What would an agent be told now?
shell("preview", QUESTION, "--user", "ada", "--agent", "text2sql")

# 5. And is the log of all this whole?
shell("audit", "verify", "--deep")
