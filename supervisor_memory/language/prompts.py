"""The prompts for a model: files of the package, each replaced by a file of its name in MEMORY_PROMPTS."""

import json
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from supervisor_memory.errors import SettingsError

_OURS: Final = Path(__file__).parent.parent / "prompts"
_PLACE: Final = re.compile(r"\{([a-z_]+)\}")


def prompt(name: str, own: Path | None = None, /, **values: str) -> str:
    """A prompt with its placeholders filled. A placeholder inside a filled-in value stays as it is.

    Args:
        own: The directory of MEMORY_PROMPTS; None: the package's prompts alone.

    Raises:
        SettingsError: the prompt in `own` cannot be read, or lacks a place.
    """
    return _PLACE.sub(lambda place: values.get(place[1], place[0]), _text(f"{name}.md", own).rstrip("\n"))


@lru_cache(maxsize=32)
def shape(name: str) -> dict[str, Any]:
    """The JSON schema of the answer to a prompt."""
    found: dict[str, Any] = json.loads(_text(f"{name}.json", None))
    return found


def check_prompts(own: Path) -> None:
    """Read all prompts of a directory.

    Raises:
        SettingsError: it is no directory, holds none, or one lacks a place.
    """
    known = {path.name for path in _OURS.glob("*.md")}
    found = sorted(path.name for path in own.glob("*.md")) if own.is_dir() else []
    if not found or not known.issuperset(found):
        raise SettingsError(
            f"MEMORY_PROMPTS={str(own)!r} holds {', '.join(found) or 'no prompt'}; copy one or more of "
            f"{', '.join(sorted(known))} from {_OURS} into it",
            path=str(own),
        )
    for name in found:
        _text(name, own)


@lru_cache(maxsize=32)
def _text(name: str, own: Path | None) -> str:
    ours = (_OURS / name).read_text(encoding="utf-8")
    if own is None or not (own / name).exists():
        return ours
    try:
        theirs = (own / name).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{own / name} cannot be read: {error}", path=str(own / name)) from error
    if missing := sorted(set(_PLACE.findall(ours)) - set(_PLACE.findall(theirs))):
        raise SettingsError(
            f"{own / name} has no place for {{{missing[0]}}}; without it the model would not see that",
            path=str(own / name),
        )
    return theirs
