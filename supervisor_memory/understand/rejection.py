"""Decide why an agent's words are not kept: a code for each reason, None for words that may be.

An agent's words are no statement of the user and no rule for anybody. Only sentences with information count:
not announcements, offers, echoes of its prompt, or claims to recall. Orders to others ("from now on all
agents must …") are cut out, and never kept.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, TypeAlias, cast

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import terms
from supervisor_memory.language.unseen import visible
from supervisor_memory.understand.statements import SMALL_TALK, masked, normal, sentences

__all__ = [
    "Progress",
    "Reason",
    "informing",
    "is_instruction",
    "json_progress",
    "progress",
    "tally",
]

Progress: TypeAlias = Literal["plan", "status"]

_MOST_READ = 20_000
_MOST_VALUES = 200
_DEEPEST = 20
_A_FEW = 3  # words
_REJECTION = lexicon("rejection")
_INSTRUCTION = lexicon("sentences").pattern("instruction")
_NEXT = _REJECTION.pattern("next")
_FENCE = _REJECTION.pattern("fence")
_LISTED = _REJECTION.pattern("listed")
_ORDER = _REJECTION.pattern("order")
_ORDER_ZH = _REJECTION.pattern("order_zh")
_FIGURE = _REJECTION.pattern("figure")
_OF_THE_WORK = _REJECTION.pattern("of_the_work")
_DID = _REJECTION.pattern("did")
_FINDS = _REJECTION.pattern("finds")
_HAS_A_VERB = _REJECTION.pattern("has_a_verb")
_IS_OF_MANY = _REJECTION.pattern("is_of_many")
_IS_OF_ONE = _REJECTION.pattern("is_of_one")
_DID_ZH = _REJECTION.pattern("did_zh")
_SAYS_ZH = _REJECTION.pattern("says_zh")
_CODE = _REJECTION.pattern("code")
_GOES_ON = _REJECTION.pattern("goes_on")
_LABELLED = _REJECTION.pattern("labelled")


def json_progress(text: str) -> Progress | None:
    """Whether a JSON answer is a plan or a status; None for other texts, and JSON with a finding."""
    data = _json(text)
    return None if data is None else _of_json(data)


def progress(text: str) -> Progress | None:
    """Whether an agent's sentence is a plan or a status; None if it may state a finding."""
    text = text.strip(" *_#>`•-\n")
    words = _LISTED.sub("", text).strip(" *_")
    order, order_zh = _ORDER.match(words), _ORDER_ZH.match(words)
    if order and not _HAS_A_VERB.search(words, order.end()) and not _IS_OF_ONE.match(words):
        return "plan"
    if order_zh and not _SAYS_ZH.search(words, order_zh.end()):
        return "plan"
    label = _LABELLED.fullmatch(text)
    if label and (_CODE.fullmatch(label["value"]) or _GOES_ON.match(label["value"])):
        return "status"
    if _FIGURE.search(_OF_THE_WORK.sub("", text)):
        return None
    is_done = _DID.match(text) and not (
        _FINDS.match(text) or _HAS_A_VERB.search(text) or _IS_OF_MANY.match(text)
    )
    is_done_zh = _DID_ZH.match(text) and not _SAYS_ZH.search(text)
    return "status" if is_done or is_done_zh else None


def _json(text: str) -> object | None:
    """Parse an answer that is nothing but JSON; None for other answers."""
    plain = _FENCE.sub("", text[:_MOST_READ]).strip()
    if plain[:1] not in ("{", "["):
        return None
    try:
        data: object = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return data


def _of_json(data: object) -> Progress | None:
    """Whether JSON data is a plan or a status; None: it has a finding.

    In a plan (it gives orders) and a routing decision (it has a key like "next") only a sentence with a
    figure is a finding; in other data any number, a text of three words, or a Chinese text is.
    """
    texts, numbers = [], 0
    for value in islice(_leaves(data), _MOST_VALUES):
        if isinstance(value, str):
            texts.append(value)
        else:
            numbers += 1
    orders = [progress(each) for each in texts].count("plan")
    told = [
        each for each in texts if _HAS_A_VERB.search(each) and _FIGURE.search(each) and not progress(each)
    ]
    if orders or (isinstance(data, Mapping) and any(_NEXT.match(str(name)) for name in data)):
        return None if told else "plan" if orders else "status"
    return (
        None
        if numbers or any(len(each.split()) >= _A_FEW or not each.isascii() for each in texts)
        else "status"
    )


def _leaves(data: object, depth: int = 0) -> Iterator[str | int | float]:
    if isinstance(data, Mapping):
        data = list(data.values())
    if isinstance(data, list) and depth < _DEEPEST:
        for each in data:
            yield from _leaves(each, depth + 1)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield data


Reason: TypeAlias = Literal[
    "small-talk",
    "question",
    "announcement",
    "apology",
    "prompt-echo",
    "recalled-text",
    "instruction-like",
    "too-vague",
    "plan",
    "status",
    "fragment",
]
"""Why an agent's words are not kept. `recalled-text`: the agent says that it remembers them. Repeated records
are found by `stages/pre_insert/gather.py`."""

_ROLE_TAG = _REJECTION.pattern("role_tag")
_TO_OTHERS = _REJECTION.pattern("to_others")
_ORDERS = _REJECTION.pattern("orders")
_JUDGED = cast("tuple[tuple[Reason, re.Pattern[str]], ...]", _REJECTION.patterns("judged"))
_LEAST_TERMS = 2
_MOST_JUDGED = 60
_LONGEST_JUDGED = 600


def informing(text: str) -> tuple[str, Reason | None]:
    """The part of an agent's text that may be kept, word for word; if it is empty, also the reason.

    A text with one informative sentence is kept whole, for its context; only instructions are cut out.
    """
    if (why := json_progress(text)) is not None:
        return "", why
    found = list(islice(sentences(text), _MOST_JUDGED))
    judged = [(each, _reason(each)) for each in found]
    reasons = [reason for _, reason in judged]
    if "prompt-echo" in reasons:
        return "", "prompt-echo"
    if all(reason is not None for reason in reasons):
        return "", _main(reasons)
    if "instruction-like" not in reasons:
        return text, None
    for each, reason in judged:
        if reason == "instruction-like":
            text = text.replace(each, "", 1)
    return re.sub(r"\n{3,}", "\n\n", text).strip(), None


def is_instruction(text: str) -> bool:
    """Whether a text gives orders to an assistant or an agent instead of informing."""
    text = _visible(text)
    if _ROLE_TAG.search(text):
        return True
    hidden = masked(normal(_MARKUP.sub(" ", text))).strip()
    return any(pattern.search(hidden) for pattern in (_INSTRUCTION, _TO_OTHERS, _ORDERS))


def _reason(sentence: str) -> Reason | None:
    """Why an agent's sentence is not informative; None if it is."""
    head = _visible(sentence[:_LONGEST_JUDGED])
    hidden = masked(normal(_MARKUP.sub(" ", head))).lstrip("-*•#>\ufffc ")
    for reason, pattern in _JUDGED[:1]:
        if pattern.search(hidden):
            return reason
    if is_instruction(head):
        return "instruction-like"
    if sentence.endswith(("?", "？")):
        return "question"
    if SMALL_TALK.fullmatch(hidden):
        return "small-talk"
    for reason, pattern in _JUDGED[1:]:
        if pattern.search(hidden) and not (reason == "announcement" and _HAPPENED.match(hidden)):
            return reason
    if (of_the_work := progress(head)) is not None:
        return of_the_work
    if _OF_ITSELF.search(hidden) and not _HAS_DONE.search(hidden) and not _SPECIFIC.search(hidden):
        return "announcement"
    return None if len(terms(_MARKUP.sub(" ", head))) >= _LEAST_TERMS else "fragment"


_HAPPENED = _REJECTION.pattern("happened")
_OF_ITSELF = _REJECTION.pattern("of_itself")
_HAS_DONE = _REJECTION.pattern("has_done")
_SPECIFIC = _REJECTION.pattern("specific")


_MARKUP = _REJECTION.pattern("markup")
_ANSI = _REJECTION.pattern("ansi")


def _visible(text: str) -> str:
    """The text as a reader sees it, without characters that hide or reorder others."""
    if text.isascii() and text.isprintable():
        return text
    return visible(_ANSI.sub("", text))


_TELLING: tuple[Reason, ...] = (
    "instruction-like",
    "recalled-text",
    "announcement",
    "apology",
    "too-vague",
    "plan",
    "status",
)


def _main(reasons: Sequence[Reason | None]) -> Reason:
    """The most telling of several reasons."""
    found = [each for each in reasons if each is not None]
    return next((each for each in _TELLING if each in found), found[0] if found else "fragment")


def tally(reasons: Iterable[str]) -> str:
    """Reasons as one code for the audit: "question:2;small-talk"."""
    return ";".join(
        f"{reason}:{count}" if count > 1 else reason for reason, count in sorted(Counter(reasons).items())
    )
