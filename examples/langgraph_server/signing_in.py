"""Who asks. Without this file any client of the server picks any `user_id`, and reads that user's memory.

Put your own authentication into `who`. The server gives its answer to memory, which takes it for the user
and turns itself off for a run in which a client names another one.
"""

import os
from typing import Any

from langgraph_sdk import Auth

auth = Auth()
USERS = dict(entry.rsplit(":", 1) for entry in os.environ.get("APP_TOKENS", "").replace(",", " ").split())
if not USERS:
    raise RuntimeError("APP_TOKENS is empty, so nobody could sign in; write token:user into .env")


@auth.authenticate
async def who(headers: dict[Any, Any]) -> str:
    """The user of a bearer token."""
    given = headers.get(b"authorization") or headers.get("authorization") or b""
    text = given.decode() if isinstance(given, bytes) else str(given)
    user = USERS.get(text.removeprefix("Bearer ").strip())
    if user is None:
        raise Auth.exceptions.HTTPException(status_code=401, detail="sign in with a token of APP_TOKENS")
    return user


@auth.on
async def own(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, str]:
    """Threads, runs and crons belong to who made them."""
    value.setdefault("metadata", {})["owner"] = ctx.user.identity
    return {"owner": ctx.user.identity}


@auth.on.assistants.read
@auth.on.assistants.search
async def graphs(ctx: Auth.types.AuthContext, value: Any) -> bool:
    """Everybody may use the graphs that the server brings."""
    return True


@auth.on.store
async def no_store(ctx: Auth.types.AuthContext, value: Any) -> bool:
    """Nobody reads the store by HTTP: memory has its own API below /memory."""
    return False
