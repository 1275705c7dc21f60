"""Pages to review memory in a browser: server-rendered, no script needed. Extra `server`.

`router()` is mounted by `interfaces.http.app`, which keeps a `Shelf` in its state; `OPEN` are its paths that
need no token, `LOGIN` is the one where a token is given.
"""

from supervisor_memory.interfaces.dashboard.routes import LOGIN, OPEN, router
from supervisor_memory.interfaces.dashboard.visit import Shelf

__all__ = ["LOGIN", "OPEN", "Shelf", "router"]
