"""What the commands share: their options, and how the settings are read."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from supervisor_memory.interfaces.printable import one_line

if TYPE_CHECKING:
    from supervisor_memory.settings import Settings

__all__ = ["FAILED", "EnvFile", "Json", "say", "settings_from", "told_settings"]

FAILED: Final = 1
EnvFile = Annotated[
    Path | None,
    typer.Option(
        "--env-file",
        exists=True,
        dir_okay=False,
        help="Settings to read instead of .env.",
        metavar="PATH",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


def settings_from(env_file: Path | None) -> tuple["Settings", list[str]]:
    """The settings, and what was said while they were read."""
    from supervisor_memory.settings import Settings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        settings = Settings.from_env(env_file or ".env")
    return settings, [str(each.message) for each in caught]


def told_settings(env_file: Path | None) -> "Settings":
    """The settings; what was said while they were read goes to stderr."""
    settings, said = settings_from(env_file)
    for warning in said:
        say(f"warning: {warning}")
    return settings


def say(line: str) -> None:
    """A line on stderr, without what would act on the terminal."""
    typer.echo(one_line(line), err=True)
