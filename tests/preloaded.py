"""What programs import, and the rules that they compile, once for all that are forked off (`programs.py`).

Nothing here may start a thread, as onnxruntime does, or make an id: each program begins with what is here.
"""

from importlib import import_module

from supervisor_memory.understand.statements import read_statements

for name in (
    "agents.team",
    "langchain.agents",
    "langgraph_supervisor",
    "qdrant_client",
    "rich",
    "supervisor_memory.stores.memory.json_file",
    "supervisor_memory.stores.qdrant.store",
    "supervisor_memory.stores.sqlite.store",
    "supervisor_memory.interfaces.cli.main",
    "supervisor_memory.interfaces.http.app",
    "supervisor_memory.interfaces.mcp.server",
    "tokenizers",
    "uvicorn",
):
    import_module(name)
read_statements("By default, use tables. GMV means sales. Which of them is late? The report is ready.")
