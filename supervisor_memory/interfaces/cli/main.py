"""The command line: it reads arguments, calls SupervisorMemory, and shows what comes back.

Exit codes: 0 fine, 1 failed or unhealthy, 2 wrong usage. With `--json`, stdout holds one JSON value and
nothing else; docs/cli.md lists its keys. What is said besides goes to stderr.
"""

import io
import sys
from collections.abc import Callable
from importlib.metadata import version as version_of
from typing import Annotated, Any, Final

import typer
from typer import Option
from typer.core import TyperGroup

from supervisor_memory.errors import IdentityError, InvalidContent, SettingsError, SupervisorMemoryError
from supervisor_memory.interfaces.cli import (
    auditing,
    moving,
    queue,
    records,
    reviewing,
    sessions,
    stats,
    upkeep,
)
from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, say, told_settings
from supervisor_memory.interfaces.mcp.command import mcp

WRONG_USAGE: Final = 2


class _OneLineErrors(TyperGroup):
    """Our errors, and those of the file system, as one line and an exit code; others are bugs."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (SupervisorMemoryError, OSError) as error:
            say(f"error: {error}")
            is_wrong_usage = isinstance(error, (IdentityError, InvalidContent))
            raise typer.Exit(WRONG_USAGE if is_wrong_usage else FAILED) from error


app = typer.Typer(
    cls=_OneLineErrors,
    help="Look into the long-term memory of a LangGraph supervisor.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,  # its tracebacks would show records
)


@app.callback(invoke_without_command=True)
def _root(
    *, version: Annotated[bool, Option("--version", help="Print the version and exit.")] = False
) -> None:
    if version:
        typer.echo(version_of("supervisor-memory"))
        raise typer.Exit


def serve(
    *,
    host: Annotated[str, Option(help="The address to listen on.", metavar="ADDRESS")] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="0: a free one.")] = 8765,
    env_file: EnvFile = None,
) -> None:
    """Answer by HTTP, as docs/http.md tells, and show the dashboard. The store is made where it is missing.

    Whoever asks needs a token of MEMORY_SERVER_TOKENS; where there are none, one is made and printed.
    """
    settings = told_settings(env_file)
    try:
        from supervisor_memory.interfaces.http.serve import serve as answer
    except ModuleNotFoundError as error:
        raise SettingsError(
            f"serve needs {error.name}, which is not installed: pip install 'supervisor-memory[server]'"
        ) from error
    answer(settings, host=host, port=port)


_COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "doctor": upkeep.doctor,
    "search": records.search,
    "list": records.list_,
    "show": records.show,
    "delete": records.delete,
    "erase": upkeep.erase,
    "reembed": upkeep.reembed,
    "serve": serve,
    "why": auditing.why,
    "preview": auditing.preview,
    "topics": records.topics,
    "timeline": sessions.timeline,
    "forget": upkeep.forget,
    "export": moving.export,
    "import": moving.import_,
    "copy": moving.copy,
    "repair": upkeep.repair,
    "stats": stats.stats,
    "history": records.history,
    "diff": records.diff,
    "backlog": upkeep.backlog,
    "reconcile": upkeep.reconcile,
    "mcp": mcp,
}
for _name, _command in _COMMANDS.items():
    app.command(_name)(_command)
_GROUPS: Final = {
    "audit": auditing.audit,
    "review": reviewing.review,
    "queue": queue.queue,
    "sessions": sessions.sessions,
}
for _name, _group in _GROUPS.items():
    app.add_typer(_group, name=_name)


def main() -> None:
    """The entry point `supervisor-memory`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # characters it cannot show become escapes
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="supervisor-memory")
