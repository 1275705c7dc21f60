"""The memory of this server: opened once, when the server imports it, before there is an event loop to block.

The server hands `store` to every graph and to its own /store routes in place of any store that a graph is
compiled with; this one lets only memory's tools through.
"""

from supervisor_memory import SupervisorMemory

memory = SupervisorMemory.from_env()
store = memory.store()
