"""The imports and compiled rules of the tests' programs, made once before they are forked (`programs.py`).

Nothing here may start a thread or make an id: each program begins with what is here.
"""

import gc
from importlib import import_module

from supervisor_memory.compare.apart import apart, is_settled, why_instead
from supervisor_memory.compare.pair import beside
from supervisor_memory.compare.reading import read
from supervisor_memory.model.records import Source
from supervisor_memory.settings import Settings
from supervisor_memory.stages.pre_insert.extract import describe, taken_back
from supervisor_memory.stages.pre_retrieval.route import route
from supervisor_memory.understand.statements import read_statements
from tests.language.patterns import every_pattern

for name in (
    "agents.team",
    "langchain.agents",
    "langgraph_supervisor",
    "qdrant_client",
    "rich",
    "supervisor_memory.embedding.open",
    "supervisor_memory.stores.memory.json_file",
    "supervisor_memory.stores.qdrant.store",
    "supervisor_memory.stores.sqlite.sessions",
    "supervisor_memory.stores.sqlite.store",
    "supervisor_memory.interfaces.cli.main",
    "supervisor_memory.interfaces.http.app",
    "supervisor_memory.interfaces.mcp.server",
    "supervisor_memory.upkeep.digest",
    "uvicorn",
):
    import_module(name)
read_statements("By default, use tables. GMV means sales. Which of them is late? The report is ready.")
used: list[object] = [Settings.from_env(env_file=None)]
for text in ("I like tea.", "We meet on Monday.", "以后默认用表格。"):
    told = taken_back(text, source=Source("user")) or describe(text, kind=None, source=Source("user"))
    reading = read(told.content)
    used += reading.states, reading.dropped, reading.announces
for rival in ("I like green tea.", "We meet on Tuesday."):
    pair = beside(read("I like tea."), read(rival))
    used += apart(pair), why_instead(pair), is_settled(pair)
used.append(route("What did I order last week?"))
used += (pattern.flags for _, pattern in every_pattern())
gc.freeze()  # else each collection in a program walks all of this, and copies its pages
