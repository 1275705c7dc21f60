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
    comparing,
    evaluating,
    experience,
    markdown,
    moving,
    queue,
    recipes,
    records,
    relations,
    reviewing,
    sessions,
    stats,
    upkeep,
)
from supervisor_memory.interfaces.cli.options import FAILED, EnvFile, say, told_settings
from supervisor_memory.interfaces.mcp.command import mcp

WRONG_USAGE: Final = 2


class _Root(TyperGroup):
    """Our errors, and those of the file system, as one line and an exit code; others are bugs."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Commands by what they are for; see `_COMMANDS`."""
        width = max(map(len, self.commands))
        for title, names in _COMMANDS.items():
            with formatter.section(title):
                room = formatter.width - width - 6
                formatter.write_dl(
                    [(name.ljust(width), self.commands[name].get_short_help_str(room)) for name in names]
                )

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
    cls=_Root,
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


_COMMANDS: Final[dict[str, dict[str, Callable[..., None] | typer.Typer]]] = {
    "What is remembered": {
        "search": records.search,
        "list": records.list_,
        "show": records.show,
        "topics": records.topics,
        "history": records.history,
        "diff": records.diff,
        "timeline": sessions.timeline,
        "relations": relations.relations,
        "sessions": sessions.sessions,
        "experience": experience.experience,
    },
    "Why": {
        "preview": auditing.preview,
        "why": auditing.why,
        "stats": stats.stats,
        "evaluate": evaluating.evaluate,
        "audit": auditing.audit,
    },
    "Taking back": {
        "review": reviewing.review,
        "delete": records.delete,
        "forget": upkeep.forget,
        "erase": upkeep.erase,
    },
    "The store": {
        "doctor": upkeep.doctor,
        "reembed": upkeep.reembed,
        "repair": upkeep.repair,
        "export": moving.export,
        "import": moving.import_,
        "markdown": markdown.markdown,
        "copy": moving.copy,
        "queue": queue.queue,
        "backlog": upkeep.backlog,
        "reconcile": upkeep.reconcile,
    },
    "Recipes": {"recipe": recipes.recipe, "compare": comparing.compare},
    "Servers": {"serve": serve, "mcp": mcp},
}
"""By what somebody wants; `--help` lists them so."""
for _commands in _COMMANDS.values():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name)
        else:
            app.command(_name)(_command)


def main() -> None:
    """The entry point `supervisor-memory`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # characters it cannot show become escapes
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="supervisor-memory")
