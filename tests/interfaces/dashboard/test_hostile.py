"""No text of anybody's becomes a part of a page: it is shown, on every page, in every field."""

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest

from supervisor_memory import SupervisorMemory
from supervisor_memory.interfaces.printable import printable
from tests.interfaces.dashboard.conftest import POLICY, Visitor
from tests.interfaces.dashboard.hostile import PAYLOADS, attack

TAGS = frozenset(
    re.findall(
        r"\S+",
        "html head meta title link script body a header strong nav span form input button main h1 h2 h3 p "
        "footer label datalist option details summary kbd dl dt dd article section div ins del mark ul ol "
        "li textarea q table thead tbody tr th td code svg g rect text polyline figure figcaption select "
        "pre time ",
    )
)
ATTRIBUTES = frozenset(
    re.findall(
        r"\S+",
        "lang charset name content rel href src defer class aria-label aria-current aria-hidden hreflang "
        "method action type value role id tabindex title data-item data-main data-do data-undo data-effect "
        "data-proposed data-note data-chain dir open list placeholder maxlength rows required "
        "autocomplete autofocus min max step selected scope viewbox width height preserveaspectratio x y "
        "rx points datetime data-zone data-picked data-all data-label data-group data-together data-question "
        "data-shown data-split data-reject data-nothing data-comma data-kept data-sections data-like "
        "data-pick hidden formaction checked disabled ",
    )
)
BIDI = "\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u200b\u200e\u200f\ufeff\x00"


class Read(HTMLParser):
    """A page as a browser takes it: its tags, its attributes, and what is left as text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.wrong: list[str] = []
        self.texts: list[str] = []
        self._in_script = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        if tag not in TAGS:
            self.wrong.append(f"<{tag}>")
        for name, value in attrs:
            self.texts.append(value or "")
            if name not in ATTRIBUTES:
                self.wrong.append(f"<{tag} {name}={value}>")
            if name in ("href", "src", "action") and value not in ("data:,", "#content"):
                there = urlsplit(value or "")
                if there.scheme or there.netloc or not (value or "").startswith(("/dashboard", "?")):
                    self.wrong.append(f"{name}={value}")
        if tag == "script" and not any(name == "src" for name, _ in attrs):
            self.wrong.append("an inline script")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip():
            self.wrong.append(f"script: {data}")
        self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"comment: {data}")


def harmless(visitor: Visitor, path: str, **params: object) -> Read:
    answer = visitor.get(path, **params)
    assert answer.headers["content-security-policy"] == POLICY, path
    assert answer.headers["content-type"] == "text/html; charset=utf-8", path
    assert not any(character in answer.text for character in BIDI), path
    read = Read(answer.text)
    assert read.wrong == [], path
    return read


@pytest.fixture
def hostile(memory: SupervisorMemory) -> list[str]:
    return attack(memory)


def paths(ids: list[str]) -> Iterator[str]:
    count = len(PAYLOADS)
    yield from (
        "/dashboard/inbox",
        "/dashboard/inbox/together",
        "/dashboard/inbox/together?user=eve&kind=user-profile",
        "/dashboard/timeline?user=eve",
        "/dashboard/relations?user=eve&question=alert+script&about=alert&to=script",
        "/dashboard/experience?user=eve",
        "/dashboard/turns",
        "/dashboard/health",
        "/dashboard/figures",
        "/dashboard/figures?user=eve",
        "/dashboard/preview?user=eve&question=alert+script",
    )
    yield from ("/dashboard/records?status=any", "/dashboard/records?status=any&kind=user-profile")
    yield from ("/dashboard/records?user=eve&q=alert+script", "/dashboard/records?family=session_messages")
    yield from (f"/dashboard/turn?run=run-{at}" for at in range(count))
    yield from (f"/dashboard/records/{id_}" for id_ in ids[:: 1 if os.environ.get("SLOW") else 4])
    yield f"/dashboard/records/{ids[0]}/delete"


@pytest.mark.parametrize("language", ["en", pytest.param("zh", marks=pytest.mark.slow)])
def test_every_page_shows_hostile_texts_as_texts(
    app: object, visitor: Visitor, hostile: list[str], language: str
) -> None:
    visitor.get("/dashboard/inbox", lang=language)
    told = {path: "".join(harmless(visitor, path).texts) for path in paths(hostile)}
    inbox = "".join(text for path, text in told.items() if "/inbox" in path)
    assert all(f" waits {at}" in inbox for at in range(len(PAYLOADS)))
    shown = "".join(told.values())
    for payload in PAYLOADS:
        kept = payload.replace("\x00", "").replace("\r", "").strip()
        assert printable(kept) in shown, payload


ASKED = {
    "inbox": ("user", "after", "why", "agent", "run", "said", "n", "lang"),
    "inbox/together": ("user", "why", "agent", "run", "picked", "unpicked"),
    "turns": ("user", "before"),
    "turn": ("run", "note", "edge"),
    "records": ("q", "user", "family", "since", "status", "nothing-known"),
    "preview": ("user", "agent", "threshold"),
    "health": ("user", "verify"),
    "figures": ("user",),
    "relations": ("user", "about", "to", "question", "offset"),
    "users/forget": ("user",),
}
"""What each page reads of its address, and one thing that it does not."""


@pytest.mark.one_in(6)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_an_address_says_is_shown_as_text(visitor: Visitor, payload: str) -> None:
    for page, names in ASKED.items():
        for name in names:
            harmless(visitor, f"/dashboard/{page}", **{name: payload})
    harmless(visitor, "/dashboard/preview", user="ada", agent="x", question=payload)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("payload", PAYLOADS)
def test_what_a_form_says_is_shown_as_text(
    visitor: Visitor, memory: SupervisorMemory, ids: dict[str, str], payload: str
) -> None:
    for path, fields in (
        (f"inbox/{ids['charts']}/edit", {"content": payload}),
        (f"inbox/{ids['lisbon']}/reject", {"reason": payload}),
        ("users/forget", {"user": "ada", "typed": payload}),
        (f"records/{ids['tables']}/revert", {"version": payload}),
        ("sign-in", {"token": payload}),
        ("inbox/undo", {"user": payload}),
    ):
        answer = visitor.post(f"/dashboard/{path}", **fields)
        assert answer.status_code < 500, path
        assert answer.headers["content-security-policy"] == POLICY
        assert Read(answer.text).wrong == []
        assert "evil.example" not in urlsplit(answer.headers.get("location", "")).netloc
    for path in ("inbox", f"records/{ids['charts']}", f"records/{ids['lisbon']}"):
        harmless(visitor, f"/dashboard/{path}")
