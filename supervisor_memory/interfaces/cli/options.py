"""What the commands share: their options, how settings are read, and how a memory is opened."""

import warnings
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer import Argument, Option

from supervisor_memory.errors import InvalidContent
from supervisor_memory.interfaces.printable import as_json, one_line
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.settings import Settings

FAILED: Final = 1
_OPERATOR: Final = "operator"
"""The reader's name in the access log for all commands."""
Json = Annotated[bool, Option("--json", help="Print one JSON value instead of text.")]
_WHOLE: Final = 36
"""Characters of an id."""
_LEAST: Final = 4
_NAMED: Final = 10
"""Ids that an error names."""
RecordId = Annotated[str, Argument(help="A record's id, or enough of its beginning or end.", metavar="ID")]


def for_user(help: str) -> Any:
    """The option `--user`."""
    return Option("--user", "-u", help=help, metavar="ID")


def for_file(name: str, help: str, *, metavar: str = "FILE") -> Any:
    """An option for a file that is there."""
    return Option(name, exists=True, dir_okay=False, help=help, metavar=metavar)


User = Annotated[str, for_user("Whose memory.")]
EnvFile = Annotated[Path | None, for_file("--env-file", "Settings to read instead of .env.", metavar="PATH")]


def settings_from(env_file: Path | None) -> tuple[Settings, list[str]]:
    """The settings, and the warnings raised while they were read."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = Settings.from_env(env_file or ".env")
    return settings, [str(each.message) for each in caught]


def told_settings(env_file: Path | None) -> Settings:
    """The settings; warnings raised while they were read go to stderr."""
    settings, said = settings_from(env_file)
    for warning in said:
        say(f"warning: {warning}")
    return settings


def existing_memory(settings: Settings, *, embedder: bool = False) -> SupervisorMemory:
    """The memory over a store that exists, read by the operator; see `SupervisorMemory.existing`."""
    return SupervisorMemory.existing(settings, embedder=embedder).read_by(_OPERATOR)


def opened(env_file: Path | None, *, embedder: bool = False) -> SupervisorMemory:
    """The existing memory of the settings."""
    return existing_memory(told_settings(env_file), embedder=embedder)


def whole_id(memory: SupervisorMemory, given: str) -> str:
    """Complete the beginning of an id, or its end; what no id begins or ends with is given back as it is.

    Ids made within a minute begin with the same eight characters; their ends differ.

    Raises:
        InvalidContent: several begin so, or none does and several end so.
    """
    if not _LEAST <= len(given) < _WHOLE:
        return given
    found, how = memory.audit.ids(given, limit=_NAMED + 1), "begin"
    if not found:
        found, how = memory.audit.ids_by_end(given, limit=_NAMED + 1), "end"
    if len(found) > 1:
        more = ", ".join([*found[:_NAMED], *(["…"] if found[_NAMED:] else [])])
        raise InvalidContent(
            f"several ids {how} with {given!r}: {more}; write more of it, or the end of the one meant"
        )
    return found[0] if found else given


def say(line: str) -> None:
    """Print a line on stderr, with control characters made harmless."""
    typer.echo(one_line(line), err=True)


def print_json(value: Any) -> None:
    """The one JSON value of a command."""
    typer.echo(as_json(value))
