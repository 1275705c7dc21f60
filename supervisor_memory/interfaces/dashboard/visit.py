"""One request to a page: the caller, the parameters, the language, and the possible answers."""

import hashlib
import hmac
import json
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

from supervisor_memory.core import Receipt
from supervisor_memory.errors import InvalidContent, MemoryAccessDenied, RecordNotFound
from supervisor_memory.interfaces.alike import compared, parts_of
from supervisor_memory.interfaces.dashboard import pictures
from supervisor_memory.interfaces.dashboard.words import LANGUAGES, NAMES, WORDS, Language, preferred, worded
from supervisor_memory.interfaces.differences import marked
from supervisor_memory.interfaces.http.access import Caller, Tokens
from supervisor_memory.interfaces.printable import moment, printable
from supervisor_memory.memory import SupervisorMemory
from supervisor_memory.model.arguments import as_filter
from supervisor_memory.model.records import TEAM, Filter, Record

BASE: Final = "/dashboard"
LANGUAGE_COOKIE: Final = "supervisor_memory_language"
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",  # "no-referrer" makes a form's Origin "null", which the guard refuses
    "X-Content-Type-Options": "nosniff",
}
_A_YEAR: Final = 365 * 86_400
_MOST_FIELDS: Final = 250
_KEPT_DECISIONS: Final = 20
_CAME: Final = ("added", "merged", "appended", "updated", "known", "outdated", "skipped", "pending")
_BESIDE: Final = ("rejected", "settled", "decided", "left")
NUMBERS: Final = ("n", *_CAME, *_BESIDE)
"""What an address tells in numbers of a decision on many."""
_KEPT_RECEIPTS: Final = 100
_STATIC: Final = Path(__file__).parent / "static"


class FormIsOld(MemoryAccessDenied):
    """A form without this process's CSRF token: an old form, or one of another site."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What a reviewer decided, which the inbox offers to take back.

    Args:
        what: "approve", "edit" or "reject".
        ids: Of the proposals.
        text: Of the first of them.
        status: What became of it, where it is one.
        came: What came of many, as numbers; see `Visit.outcome`.
    """

    what: str
    ids: tuple[str, ...]
    text: str
    status: str
    came: Mapping[str, int] = field(default_factory=dict)


class Shelf:
    """State that the pages keep between requests, as long as the process lives."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._decided: dict[str, deque[Decision]] = {}
        self.receipts: dict[str, Receipt] = {}
        self.others: dict[str, str] = {}
        """Caller → who was faster with what they decided last."""

    def form_word(self, caller: Caller) -> str:
        """The CSRF token in the forms of a caller."""
        return hmac.digest(self._key, caller.name.encode(), "sha256").hex()

    def decided(self, caller: Caller) -> deque[Decision]:
        """The caller's latest decisions that can be taken back, the newest last."""
        return self._decided.setdefault(caller.name, deque(maxlen=_KEPT_DECISIONS))

    def keep(self, receipt: Receipt) -> str:
        """Keep a receipt, the oldest making room; returns its key."""
        key = secrets.token_urlsafe(16)
        self.receipts[key] = receipt
        while len(self.receipts) > _KEPT_RECEIPTS:
            self.receipts.pop(next(iter(self.receipts)))
        return key


@dataclass(frozen=True)
class Visit:
    """One request. `form` holds what was sent, {} for a GET; `caller` is None before sign-in alone."""

    memory: SupervisorMemory
    request: Request
    shelf: Shelf
    caller: Caller | None
    form: Mapping[str, str] = field(default_factory=dict)

    # --- what is asked

    @property
    def asker(self) -> Caller:
        """Whoever is signed in."""
        if self.caller is None:
            raise MemoryAccessDenied("sign in first")
        return self.caller

    @property
    def language(self) -> Language:
        asked = self.asked("lang") or self.request.cookies.get(LANGUAGE_COOKIE, "")
        known = next((each for each in LANGUAGES if each == asked), None)
        return known or preferred(self.request.headers.get("accept-language", ""))

    def asked(self, name: str) -> str:
        """The value of a query parameter; "" where it is missing."""
        return self.request.query_params.get(name, "").strip()

    def number(self, name: str, *, least: int, most: int, otherwise: int) -> int:
        """A query parameter as a whole number; InvalidContent: it is no number, or out of range."""
        told = self.asked(name)
        if not told:
            return otherwise
        if not (told.isascii() and told.isdigit() and len(told) <= 9 and least <= int(told) <= most):  # noqa: PLR2004
            raise InvalidContent(f"{name} is no whole number from {least} to {most}")
        return int(told)

    @property
    def part(self) -> str:
        """The value of a path parameter."""
        return str(self.request.path_params.get("id", ""))

    @property
    def user_id(self) -> str | None:
        """The user whose memory is shown; None: everybody's. Callers with several users see one at a time."""
        asked = self.asked("user") or None
        mine = self.asker.user_ids
        if asked is None and mine:
            asked = min(mine)
        return self.asker.user(asked)

    def users(self) -> list[str]:
        """The users that the caller may choose among, some hundreds at most."""
        mine = self.asker.user_ids
        known = self.memory.audit.users() if mine is None else mine
        return sorted(each for each in known if not each.startswith(TEAM))[:_MOST_USERS]

    @property
    def people(self) -> frozenset[str]:
        """The names of the people who read memory; the logs have them beside the names of agents."""
        tokens: Tokens = self.request.app.state.tokens
        return tokens.names | {self.asker.name}

    def may_see(self, record: Record) -> bool:
        return self.asker.user_ids is None or record.user_id in self.asker.user_ids

    def own(self, id: str) -> str:
        """The id, where the caller may see that record; else RecordNotFound."""
        mine = self.asker.user_ids
        if mine is not None:
            found = self.memory.upkeep.records([id])
            if not found or not self.may_see(found[0]):
                for user_id in sorted(mine)[:1]:
                    self.memory.get(id, user_id=user_id)  # refused, and noted
                raise RecordNotFound(f"there is no record {id[:64]!r} of yours", id=id)
        return id

    def times(self) -> Filter:
        """The fields `since` and `until`, where a day counts whole."""
        return as_filter({"since": self.asked("since") or None, "until": self.asked("until") or None})

    # --- what is answered

    def say(self, key: str, **values: object) -> str:
        return worded(key, self.language, **values)

    def because(self, reason: str) -> str:
        """The reason in an audit row: several codes, or a code with a name."""
        told = []
        for code in _CODES.split(reason):
            head, _, named = code.partition(":")
            known = next((key for key in (f"because.{code}", f"why.{code}") if key in WORDS), None)
            if known is None and f"because.{head}" in WORDS:
                told.append(self.say(f"because.{head}") + self.say("colon") + named)
            elif known is None and (version := _VERSION.fullmatch(code)):
                told.append(self.say("because.to-version", n=version[1]))
            else:
                told.append(self.say(known or f"because.{code}"))
        return self.say("comma").join(told)

    def status(self, record: Record) -> str:
        """The status of a record, or that a reviewer rejected it."""
        return self.say("status.rejected" if is_rejected(record) else f"status.{record.status}")

    @property
    def root(self) -> str:
        """The address of the first page, behind a proxy too."""
        return str(self.request.scope.get("root_path", "")) + BASE

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """An HTML page. Every value is escaped, and what hides in a text is spelled out."""
        html = (
            _environment()
            .get_template(template)
            .render(
                visit=self,
                t=self.say,
                root=self.root,
                language=self.language,
                other_languages=[(each, NAMES[each], self._here_in(each)) for each in LANGUAGES],
                form_word=self.shelf.form_word(self.caller) if self.caller else "",
                flash=self._flash,
                **values,
            )
        )
        answer = HTMLResponse(html, status, dict(HEADERS))
        if self.asked("lang") in LANGUAGES:
            answer.set_cookie(
                LANGUAGE_COOKIE,
                self.asked("lang"),
                max_age=_A_YEAR,
                path=self.root,
                httponly=True,
                samesite="strict",
            )
        return answer

    @property
    def _flash(self) -> str:
        """The result of the last form in words; "" where the address does not tell."""
        said = self.asked("said")
        if f"said.{said}" not in WORDS:
            return ""
        told = {name: self.asked(name) for name in NUMBERS}
        numbers = {name: int(n) if n.isascii() and n.isdigit() else 0 for name, n in told.items()}
        return self.outcome(said, numbers) if said.endswith("-all") else self.say(f"said.{said}")

    def outcome(self, said: str, numbers: Mapping[str, int]) -> str:
        """The result of a decision on many proposals: "40 approved: 31 new, 5 joined; 2 rejected."

        Args:
            said: As an address has it: "approve-all".
            numbers: By the names in NUMBERS; one that is missing is 0.
        """

        def counted(names: tuple[str, ...]) -> list[str]:
            who = self.shelf.others.get(self.asker.name, "")
            told = [(name, n) for name in names if (n := numbers.get(name, 0))]
            return [self.say(f"came.{name}", n=n, who=who or self.say("somebody")) for name, n in told]

        told = self.say(f"said.{said}", n=numbers.get("n", 0))
        if came := counted(_CAME):
            told += self.say("colon") + self.say("comma").join(came)
        return self.say("semicolon").join([told, *counted(_BESIDE)]) + self.say("stop")

    def go(self, path: str, **query: str) -> RedirectResponse:
        """Redirect to another page, which is requested with GET."""
        asked = f"?{urlencode(query)}" if query else ""
        return RedirectResponse(f"{self.root}{path}{asked}", 303, dict(HEADERS))

    def here(self, **changes: str | int | None) -> str:
        """The address of this page with other values; None takes one out."""
        gone = {"said", "lang", *NUMBERS, *changes}
        kept = {name: value for name, value in self.request.query_params.items() if name not in gone}
        return f"?{urlencode(kept | {name: value for name, value in changes.items() if value is not None})}"

    def _here_in(self, language: Language) -> str:
        return self.here(lang=language) if self.request.method == "GET" else f"?lang={language}"


_MOST_USERS: Final = 500
_CODES: Final = re.compile(r"[;+]")
_VERSION: Final = re.compile(r"to-version-(\d+)")


def is_rejected(record: Record) -> bool:
    """Whether a reviewer refused what a record proposed."""
    told = record.metadata.get("review")
    verdict = told.get("verdict") if isinstance(told, Mapping) else None
    return record.status == "deleted" and verdict == "rejected"


async def form_of(request: Request) -> Mapping[str, str]:
    """The fields of a form as browsers send it; raises InvalidContent for anything else."""
    body = await request.body()
    try:
        read = parse_qsl(
            body.decode(),
            keep_blank_values=True,
            strict_parsing=bool(body),
            max_num_fields=_MOST_FIELDS,
            errors="strict",
        )
    except (ValueError, UnicodeError) as error:
        raise InvalidContent("this is no form as a browser sends it") from error
    # A textarea's lines end in CR LF on the wire.
    return {name: value.replace("\r\n", "\n") for name, value in read}


@lru_cache(maxsize=1)
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__, "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        finalize=_spelled_out,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["moment"] = _moment
    environment.filters["day"] = _day
    environment.globals.update(
        compared=compared,
        parts_of=parts_of,
        marked=marked,
        pictures=pictures,
        asset=asset,
        query=_query,
        json=_json,
    )
    return environment


def _spelled_out(value: object) -> object:
    """Replace invisible and direction-changing characters of a text with their code points."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _moment(seconds: float | None) -> str:
    """A time as an HTML element; the script shows it in the reader's time zone."""
    if seconds is None:
        return "–"
    told = moment(seconds)
    at = told.replace(" ", "T")
    return Markup('<time datetime="{}">{}</time>').format(at, told)


def _day(seconds: float) -> str:
    return moment(seconds)[:10]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _query(**values: str | int | None) -> str:
    return f"?{urlencode({name: value for name, value in values.items() if value not in (None, '')})}"


@lru_cache(maxsize=8)
def asset(name: str) -> tuple[bytes, str]:
    """The content of a static file, and a digest of it."""
    content = (_STATIC / name).read_bytes()
    return content, hashlib.sha256(content).hexdigest()[:12]


Handler = Callable[[Visit], Any]
