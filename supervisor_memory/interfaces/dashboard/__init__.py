"""Pages to review memory in a browser: server-rendered, no script needed. Extra `server`.

`router(memory, caller)` is mounted by `interfaces.http.app`; `OPEN` are its paths that need no token, `LOGIN`
is the one where a token is given.
"""

from supervisor_memory.interfaces.dashboard.routes import LOGIN, OPEN, router

__all__ = ["LOGIN", "OPEN", "router"]
