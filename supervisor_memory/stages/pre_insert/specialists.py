"""Specialists: further sections of a model's one call, each with its own schema and gates.

A specialist is a TOML file, ours or one's own, with its prompt beside it: what it hears, which kinds of
records it may propose, which words must be there before it is asked, and whether a person looks at all it
finds. Or it is a function, registered by name@version, which needs no model and passes the same guards.
`delegate` decides which of them an exchange needs, by rules.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar, cast, get_args

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
    "adds": str,
}
_FIELDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "relations": {
        "type": "array",
        "items": {"type": "array", "items": {"type": "string"}, "minItems": 3, "maxItems": 3},
    }
}
"""What a specialist may add to each operation, with its schema."""
_NEEDED: Final = ("name", "kinds", "hears")
_MOST_TOKENS: Final = 200
"""Tokens of a specialist's prompt: together they fit into the call."""
_MOST: Final = 8
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}\Z")
_KEY: Final = re.compile(r"(?P<name>[a-z][a-z0-9_-]{0,39})@(?P<version>[A-Za-z0-9._-]{1,40})\Z")
_LONGEST_READ: Final = 8_000
Reads: TypeAlias = "Callable[[Sequence[Heard]], Iterable[Mapping[str, Any]]]"
"""A specialist that is a function. It takes the texts of an exchange and returns operations as a model would:
`content`, `kind`, `quote`, and `subject` and `attribute` where there are any."""


@dataclass(frozen=True, slots=True)
class Specialist:
    """A specialist: something to look for in an exchange, by a prompt of its own.

    Args:
        kinds: The kinds of records it may propose.
        hears: Whose words it reads: an exchange without any of these needs no such specialist.
        prompt: What a model is asked to look for; "": it is the prompt of the call itself.
        words: One must be found in what it hears; none: it is always needed.
        review: Whether a person looks at all it finds.
        reads: The function that looks, in the place of a model.
        adds: The field that it adds to the operations of others; "": it proposes operations of its own.
    """

    name: str
    kinds: tuple[Kind, ...]
    hears: tuple[SourceClass, ...]
    version: str = "1"
    prompt: str = ""
    words: tuple["re.Pattern[str]", ...] = field(default=(), compare=False)
    review: bool = False
    adds: str = ""
    reads: "Reads | None" = field(default=None, compare=False)

    @property
    def is_special(self) -> bool:
        """Whether it has a section or a function of its own; the specialist without is the base prompt."""
        return bool(self.prompt) or self.reads is not None

    @property
    def key(self) -> str:
        """Its name and version, as records tell it."""
        return f"{self.name}@{self.version}"

    def is_needed(self, heard: "Iterable[Heard]") -> bool:
        """Whether an exchange has anything that it looks for."""
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
    own = [
        f'- by "{each.key}", kind {" or ".join(each.kinds)}: {each.prompt}'
        for each in specialists
        if each.prompt and not each.adds
    ]
    if own:
        own.insert(0, 'Beside the rules below, look for this; say in "by" which it is:')
    added = [f'Give each operation "{each.adds}", too: {each.prompt}' for each in specialists if each.adds]
    return "\n".join((*own, *added)) + "\n\n" if own or added else ""


def shaped(shape: Mapping[str, Any], specialists: Sequence[Specialist], *, thinking: bool) -> dict[str, Any]:
    """The schema of an answer with the kinds of the specialists, `by`, and first of all a place to think."""
    extra = [each for each in specialists if each.prompt and not each.adds]
    fields = [each.adds for each in specialists if each.adds]
    if not extra and not fields and not thinking:
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
    item["properties"] |= {name: _FIELDS[name] for name in fields}
    item["required"] = [*item["required"], *fields]
    if thinking:
        made["properties"] = {"thinking": {"type": "string"}, **made["properties"]}
        made["required"] = ["thinking", *made["required"]]
    return made


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(each) for name, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


_REGISTERED: Final[dict[str, Specialist]] = {}
F = TypeVar("F", bound=Callable[..., Any])


def specialist(
    key: str,
    *,
    kinds: Sequence[Kind],
    hears: Sequence[SourceClass],
    words: Sequence[str] = (),
    review: bool = False,
) -> Callable[[F], F]:
    """Register a function as a specialist, as which MEMORY_SPECIALISTS and `reflect` can name it.

    The function is given what it hears of an exchange (`text`, `who`, `at`, `source` of each message), and
    answers with operations: `{"content", "kind", "quote", "subject", "attribute"}`, the quote word for word
    from one of these messages. They pass the guards that a model's operations pass. It is asked in the
    background and by `add` and `reflect`, with a model and without; where it fails, the rest goes on and the
    audit says so.

    Args:
        key: Its name and version, such as "colours@2". Versions can stand side by side.
        kinds, hears, words, review: As in a specialist's file.

    Raises:
        SettingsError: the key or something else of it is wrong, or another function has that key.
    """
    named = _KEY.match(key) if isinstance(key, str) else None
    if named is None:
        raise SettingsError(
            f"{str(key)[:60]!r} is no specialist; use a name and a version, such as 'colours@2'"
        )
    if named["name"] in {path.stem for path in OURS.glob("*.toml")}:
        raise SettingsError(f"{named['name']!r} is one of ours; choose another name", name=named["name"])
    for what, given, known in (("kinds", kinds, KINDS), ("hears", hears, get_args(SourceClass))):
        if not given or (bad := next((each for each in given if each not in known), None)) is not None:
            told = f"has {bad!r}" if given else "is empty"
            raise SettingsError(f"specialist {key}: {what} {told}; use {', '.join(known)}", key=what)
    try:
        patterns = tuple(re.compile(each, re.IGNORECASE) for each in words)
    except (re.error, TypeError) as error:
        raise SettingsError(f"specialist {key}: words are patterns: {error}", key="words") from error

    def registered(function: F) -> F:
        if not callable(function):
            raise SettingsError(f"specialist {key} is {type(function).__name__}; decorate a function")
        there = _REGISTERED.get(key)
        if there is not None and _module_and_name(there.reads) != _module_and_name(function):
            raise SettingsError(
                f"another function is the specialist {key}; give it another version", name=key
            )
        made = Specialist(named["name"], tuple(kinds), tuple(hears), named["version"], "", patterns, review)
        _REGISTERED[key] = replace(made, reads=function)
        return function

    return registered


def _module_and_name(function: Any) -> tuple[str, str]:
    return getattr(function, "__module__", ""), getattr(function, "__qualname__", "")


def functions_of(named: Sequence[str]) -> tuple[Specialist, ...]:
    """The functions among the specialists of a setting."""
    return tuple(each for name in named if (each := _function(name)) is not None)


def _function(named: str) -> Specialist | None:
    if ":" in named and not named.endswith(".toml"):
        return _imported(named)
    if "@" in named:
        return _REGISTERED.get(named)
    found = [each for each in _REGISTERED.values() if each.name == named]
    if len(found) > 1:
        keys = ", ".join(each.key for each in found)
        raise SettingsError(f"there are several specialists {named!r}; name one of {keys}", name=named)
    return found[0] if found else None


def _imported(named: str) -> Specialist:
    """The function at "package.module:name", for processes that have not imported it."""
    module, _, name = named.partition(":")
    try:
        function = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SettingsError(f"the specialist {named!r} cannot be imported: {error}", name=named) from error
    found = next((each for each in _REGISTERED.values() if each.reads is function), None)
    if found is None:
        raise SettingsError(f"{named!r} is no specialist; decorate it with `specialist`", name=named)
    return found


def open_specialists(named: Sequence[str]) -> tuple[Specialist, ...]:
    """Open the specialists that a setting names: built-in ones, functions by key or place, or files by path.

    A file is read once. Versions of one specialist can stand side by side.

    Raises:
        SettingsError: there is no such name or file, a file is wrong, or one is named twice.
    """
    found = tuple(_opened(each) for each in named)
    if len(found) > _MOST:
        raise SettingsError(f"{len(found)} specialists are too many for one call; name {_MOST} at most")
    keys = [each.key for each in found]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise SettingsError(f"two specialists are called {twice!r}; give one another name", name=twice)
    return found


def _opened(named: str) -> Specialist:
    if (function := _function(named)) is not None:
        return function
    path = Path(named)
    if path.suffix == ".toml":
        return read_specialist(path)
    ours = {each.stem: each for each in OURS.glob("*.toml")}
    name, _, version = named.partition("@")
    if name in ours:
        found = read_specialist(ours[name])
        if version in ("", found.version):
            return found
    near = difflib.get_close_matches(named, [*ours, *_REGISTERED], n=1)
    known = ", ".join((*sorted(ours), *sorted(_REGISTERED)))
    hint = f"did you mean {near[0]}?" if near and near[0] != named else f"use {known}, or a .toml file"
    raise SettingsError(f"there is no specialist {named!r}; {hint}", name=named)


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
    if (added := told.get("adds")) is not None and added not in _FIELDS:
        raise wrong("adds", f"adds is {added[:40]!r}; use {', '.join(_FIELDS)}")
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
        adds=told.get("adds", ""),
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
