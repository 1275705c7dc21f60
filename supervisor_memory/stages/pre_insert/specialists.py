"""Specialists: further sections of a model's one call, each with its own schema and gates.

A specialist is a TOML file, ours or one's own, with its prompt beside it: what it hears, which kinds of
records it may propose, which words must be there before it is asked, and whether a person looks at all it
finds. `delegate` decides which of them an exchange needs, by rules.
"""

import difflib
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from supervisor_memory.errors import SettingsError
from supervisor_memory.language.tokens import count_tokens
from supervisor_memory.model.records import KINDS, Kind, SourceClass

if TYPE_CHECKING:
    from supervisor_memory.stages.pre_insert.operations import Heard

PERSONAL: Final = "personal"
"""The specialist whose prompt is remember.md itself."""
OURS: Final = Path(__file__).parents[2] / "prompts" / "specialists"
_KEYS: Final[Mapping[str, type]] = {
    "name": str,
    "version": str,
    "kinds": list,
    "hears": list,
    "prompt": str,
    "words": list,
    "review": bool,
}
_NEEDED: Final = ("name", "kinds", "hears")
_MOST_TOKENS: Final = 200
"""Tokens of a specialist's prompt: together they fit into the call."""
_MOST: Final = 8
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}\Z")
_LONGEST_READ: Final = 8_000


@dataclass(frozen=True, slots=True)
class Specialist:
    """What is looked for in an exchange by a prompt of its own.

    Args:
        kinds: The kinds of records it may propose.
        hears: Whose words it reads: an exchange without any of these needs no such specialist.
        prompt: What a model is asked to look for; "": it is the prompt of the call itself.
        words: One must be found in what it hears; none: it is always needed.
        review: Whether a person looks at all it finds.
    """

    name: str
    kinds: tuple[Kind, ...]
    hears: tuple[SourceClass, ...]
    version: str = "1"
    prompt: str = ""
    words: tuple["re.Pattern[str]", ...] = field(default=(), compare=False)
    review: bool = False

    @property
    def key(self) -> str:
        """Its name and version, as records tell it."""
        return f"{self.name}@{self.version}"

    def is_needed(self, heard: "Iterable[Heard]") -> bool:
        """Whether an exchange has something for it."""
        texts = [each.text[:_LONGEST_READ] for each in heard if self.takes(each) and not each.is_idle]
        return bool(texts) and (
            not self.words or any(word.search(text) for word in self.words for text in texts)
        )

    def takes(self, heard: "Heard") -> bool:
        return heard.source.source_class in self.hears


def delegate(heard: "Sequence[Heard]", specialists: Sequence[Specialist]) -> tuple[Specialist, ...]:
    """The specialists that an exchange needs, in order."""
    return tuple(each for each in specialists if each.is_needed(heard))


def sections(specialists: Sequence[Specialist]) -> str:
    """The text before a call's prompt; "" where it is the prompt itself."""
    told = [
        f'by "{each.key}", kind {" or ".join(each.kinds)}: {each.prompt}'
        for each in specialists
        if each.prompt
    ]
    if not told:
        return ""
    head = 'Beside the rules below, look for this; say in "by" which it is:'
    return "\n".join((head, *(f"- {each}" for each in told))) + "\n\n"


def shaped(shape: Mapping[str, Any], specialists: Sequence[Specialist], *, thinking: bool) -> dict[str, Any]:
    """The schema of an answer with the kinds of the specialists, `by`, and first of all a place to think."""
    extra = [each for each in specialists if each.prompt]
    if not extra and not thinking:
        return dict(shape)
    made = cast("dict[str, Any]", _copied(shape))
    item = made["properties"]["operations"]["items"]
    if extra:
        known = item["properties"]["kind"]["enum"]
        item["properties"]["kind"]["enum"] = [
            *dict.fromkeys((*known, *(kind for each in extra for kind in each.kinds)))
        ]
        item["properties"]["by"] = {"type": ["string", "null"], "enum": [*(e.key for e in extra), None]}
        item["required"] = [*item["required"], "by"]
    if thinking:
        made["properties"] = {"thinking": {"type": "string"}, **made["properties"]}
        made["required"] = ["thinking", *made["required"]]
    return made


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def open_specialists(named: Sequence[str]) -> tuple[Specialist, ...]:
    """The specialists of a setting: names of ours, or paths of files, ours first read once.

    Raises:
        SettingsError: there is no such name or file, a file is wrong, or two have the same name.
    """
    found = tuple(_opened(each) for each in named)
    if len(found) > _MOST:
        raise SettingsError(f"{len(found)} specialists are too many for one call; name {_MOST} at most")
    names = [each.name for each in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SettingsError(f"two specialists are called {twice!r}; give each a name of its own", name=twice)
    return found


def _opened(named: str) -> Specialist:
    ours = {path.stem: path for path in OURS.glob("*.toml")}
    if named in ours:
        return read_specialist(ours[named])
    path = Path(named)
    if path.suffix != ".toml":
        near = difflib.get_close_matches(named, ours, n=1)
        hint = f"did you mean {near[0]}?" if near else f"use {', '.join(sorted(ours))}, or a .toml file"
        raise SettingsError(f"there is no specialist {named!r}; {hint}", name=named)
    return read_specialist(path)


@lru_cache(maxsize=64)
def read_specialist(path: Path) -> Specialist:
    """The specialist of a file.

    Raises:
        SettingsError: it cannot be read, or something in it is wrong; the error names the file and the line.
    """
    try:
        text = path.read_text("utf-8")
        told = tomllib.loads(text)
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"specialist {path}: {error}", path=str(path)) from error

    def wrong(key: str, why: str) -> SettingsError:
        lines = text.splitlines()
        at = next((n for n, line in enumerate(lines, 1) if re.match(rf"\s*{re.escape(key)}\s*[=.]", line)), 1)
        return SettingsError(f"{path}:{at}: {why}", path=str(path), line=at, key=key)

    for key, value in told.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(_KEYS)}"
            raise wrong(key, f"{key!r} is no key of a specialist; {hint}")
        if not isinstance(value, _KEYS[key]):
            raise wrong(key, f"{key} is {type(value).__name__}; write {_KEYS[key].__name__}")
    if missing := next((key for key in _NEEDED if not told.get(key)), None):
        raise wrong(missing, f"{missing} is missing")
    if not _NAME.match(told["name"]):
        raise wrong("name", f"{told['name'][:40]!r} is no name; use small letters, digits, '_' and '-'")
    for key, known in (("kinds", KINDS), ("hears", get_args(SourceClass))):
        if bad := next((each for each in told[key] if each not in known), None):
            near = difflib.get_close_matches(str(bad), known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"use {', '.join(known)}"
            raise wrong(key, f"{key} has {bad!r}; {hint}")
    try:
        words = tuple(re.compile(each, re.IGNORECASE) for each in told.get("words", ()))
    except (re.error, TypeError) as error:
        raise wrong("words", f"words are patterns: {error}") from error
    return Specialist(
        name=told["name"],
        kinds=tuple(told["kinds"]),
        hears=tuple(told["hears"]),
        version=told.get("version", "1"),
        prompt=_prompt(path, told, wrong),
        words=words,
        review=told.get("review", False),
    )


def _prompt(path: Path, told: Mapping[str, Any], wrong: Any) -> str:
    if "prompt" not in told:
        if told["name"] != PERSONAL:
            raise wrong("name", "prompt is missing: the name of a file beside this one")
        return ""
    file = path.parent / told["prompt"]
    try:
        text = " ".join(file.read_text("utf-8").split())
    except (OSError, UnicodeError) as error:
        raise wrong("prompt", f"the prompt {file} cannot be read: {error}") from error
    if not text or (size := count_tokens(text)) > _MOST_TOKENS:
        why = f"has {size} tokens; {_MOST_TOKENS} at most" if text else "is empty"
        raise wrong("prompt", f"the prompt {file.name} {why}")
    return text
