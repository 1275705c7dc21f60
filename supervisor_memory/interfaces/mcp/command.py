"""The command `mcp`: memory for a client of the Model Context Protocol."""

from typing import TYPE_CHECKING, Annotated

from typer import Option

from supervisor_memory.errors import InvalidContent, SettingsError
from supervisor_memory.interfaces.cli.options import EnvFile, for_user, told_settings
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.settings import Settings

if TYPE_CHECKING:
    from supervisor_memory.interfaces.http.access import Tokens


def mcp(
    *,
    user: Annotated[str | None, for_user("Whose memory; with --http that of the token's user.")] = None,
    writes: Annotated[bool, Option("--writes", help="Also the tools that change something.")] = False,
    http: Annotated[bool, Option("--http", help="By HTTP at /mcp instead of stdin and stdout.")] = False,
    host: Annotated[
        str, Option(help="The address to listen on, with --http.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="With --http; 0: a free one.")] = 8766,
    env_file: EnvFile = None,
) -> None:
    """Answer an MCP client, on stdin and stdout or by HTTP. The store is made where it is missing.

    A client cannot name a user. By HTTP it needs a token of MEMORY_SERVER_TOKENS that is for one user or,
    with --user, for that one; with --user and no tokens set, one is made and printed.
    """
    if user is None and not http:
        raise InvalidContent("say whose memory it is: --user ID")
    settings = told_settings(env_file)
    try:
        from supervisor_memory.interfaces.http.serve import closed_by_sigterm, hosts_of, listening_on, run
        from supervisor_memory.interfaces.mcp.server import PATH, create_app, serve_stdio
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"mcp needs {error.name}, which is not installed: pip install 'supervisor-memory[mcp]'"
        ) from error

    if user is not None and not http:
        import asyncio

        with SupervisorMemory(settings) as memory:
            asyncio.run(serve_stdio(memory, user_id=user, writes=writes))
        return
    tokens = _tokens(settings, host, user)
    with closed_by_sigterm(), listening_on(host, port) as listening, SupervisorMemory(settings) as memory:
        app = create_app(
            memory,
            tokens=tokens,
            user_id=user,
            writes=writes,
            hosts=hosts_of(settings, host),
            rate=settings.server_rate,
        )
        run(app, listening, path=PATH)


def _tokens(settings: Settings, host: str, user: str | None) -> "Tokens":
    """The tokens, at least one of them for a known user; SettingsError: there is none, or they cannot be
    read."""
    from supervisor_memory.interfaces.http.serve import tokens_of

    if settings.server_tokens is None and user is None:
        raise SettingsError(
            "nobody says whose memory it is: name a user with --user ID, or set MEMORY_SERVER_TOKENS to "
            "tokens that are for one user each, as ada:TOKEN:ada"
        )
    tokens = tokens_of(settings, host)
    if not tokens.are_of_use(user):
        raise SettingsError(
            "no token of MEMORY_SERVER_TOKENS is for one user alone, and a client of MCP cannot name one: "
            "name a user with --user ID, or add a token such as ada:TOKEN:ada"
            if user is None
            else f"no token of MEMORY_SERVER_TOKENS is for user {user!r}; add one, such as ada:TOKEN:{user}"
        )
    return tokens
