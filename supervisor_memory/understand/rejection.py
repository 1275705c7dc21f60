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

Progress: TypeAlias = Literal["plan", "status"]

_MOST_READ = 20_000
_MOST_VALUES = 200
_DEEPEST = 20
_A_FEW = 3  # words
_WORDS = lexicon("rejection")
_INSTRUCTION = lexicon("sentences").pattern("instruction")


def progress(text: str) -> Progress | None:
    """Whether an agent's sentence is a plan or a status; None if it may state a finding."""
    text = text.strip(" *_#>`•-\n")
    words = _WORDS["listed"].sub("", text).strip(" *_")
    order, order_zh = _WORDS["order"].match(words), _WORDS["order_zh"].match(words)
    if order and not _WORDS["has_a_verb"].search(words, order.end()) and not _WORDS["is_of_one"].match(words):
        return "plan"
    if order_zh and not _WORDS["says_zh"].search(words, order_zh.end()):
        return "plan"
    label = _WORDS["labelled"].fullmatch(text)
    if label and (_WORDS["code"].fullmatch(label["value"]) or _WORDS["goes_on"].match(label["value"])):
        return "status"
    if _WORDS["figure"].search(_WORDS["of_the_work"].sub("", text)):
        return None
    is_done = _WORDS["did"].match(text) and not (
        _WORDS["finds"].match(text) or _WORDS["has_a_verb"].search(text) or _WORDS["is_of_many"].match(text)
    )
    is_done_zh = _WORDS["did_zh"].match(text) and not _WORDS["says_zh"].search(text)
    return "status" if is_done or is_done_zh else None


def _json(text: str) -> object | None:
    """Parse an answer that is nothing but JSON; None for other answers."""
    plain = _WORDS["fence"].sub("", text[:_MOST_READ]).strip()
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
        each
        for each in texts
        if _WORDS["has_a_verb"].search(each) and _WORDS["figure"].search(each) and not progress(each)
    ]
    if orders or (isinstance(data, Mapping) and any(_WORDS["next"].match(str(name)) for name in data)):
        return None if told else "plan" if orders else "status"
    tells = numbers or any(len(each.split()) >= _A_FEW or not each.isascii() for each in texts)
    return None if tells else "status"


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
are found by `stages/insert/repeats.py`."""

_JUDGED = cast("tuple[tuple[Reason, re.Pattern[str]], ...]", _WORDS.patterns("judged"))
_ECHOES = ("prompt-echo", "recalled-text")
_MARKS = "-*•#>\ufffc "
_LEAST_TERMS = 2
_MOST_JUDGED = 60
_LONGEST_JUDGED = 600


def informing(text: str) -> tuple[str, Reason | None]:
    """The part of an agent's text that may be kept, word for word; if it is empty, also the reason.

    A text with one informative sentence is kept whole, for its context; only instructions are cut out.
    """
    data = _json(text)
    if data is not None and (why := _of_json(data)) is not None:
        return "", why
    found = list(islice(sentences(text), _MOST_JUDGED))
    judged = [(each, _reason(each)) for each in found]
    reasons = [reason for _, reason in judged]
    if "prompt-echo" in reasons:
        return "", "prompt-echo"
    if all(reason is not None for reason in reasons):
        return "", next((each for each in _TELLING if each in reasons), reasons[0] if reasons else "fragment")
    if "instruction-like" not in reasons:
        return text, None
    for each, reason in judged:
        if reason == "instruction-like":
            text = text.replace(each, "", 1)
    return re.sub(r"\n{3,}", "\n\n", text).strip(), None


def is_instruction(text: str) -> bool:
    """Whether a text gives orders to an assistant or an agent instead of informing."""
    if _WORDS["role_tag"].search(_visible(text)):
        return True
    hidden = _hidden(text).strip()
    return any(pattern.search(hidden) for pattern in (_INSTRUCTION, _WORDS["to_others"], _WORDS["orders"]))


def gives_orders(told: Sequence[str], *, by_others: bool) -> bool:
    """Whether one of these sentences is like an instruction. The rules are stricter for speakers other than
    the user."""
    if by_others and any(map(is_instruction, told)):
        return True
    told = [each for each in told if not by_others or normal(each) != _hidden(each)]  # others were looked at
    return any(_INSTRUCTION.search(normal(each)) for each in told)  # also quoted: a model reads that too


def is_echo(text: str) -> bool:
    """Whether an agent repeats its prompt, or presents a statement as recalled from memory."""
    some = (_hidden(each[:_LONGEST_JUDGED]).lstrip(_MARKS) for each in islice(sentences(text), _MOST_JUDGED))
    may = any(pattern.search(each) for each in some for reason, pattern in _JUDGED if reason in _ECHOES)
    return may and informing(text)[1] in _ECHOES


def _hidden(text: str) -> str:
    return masked(normal(_WORDS["markup"].sub(" ", _visible(text))))


def _reason(sentence: str) -> Reason | None:
    """Why an agent's sentence is not informative; None if it is."""
    head = _visible(sentence[:_LONGEST_JUDGED])
    hidden = _hidden(head).lstrip(_MARKS)
    reason, first = _JUDGED[0]
    if first.search(hidden):
        return reason
    if is_instruction(head):
        return "instruction-like"
    if sentence.endswith(("?", "？")):
        return "question"
    if SMALL_TALK.fullmatch(hidden):
        return "small-talk"
    for reason, pattern in _JUDGED[1:]:
        if pattern.search(hidden) and not (reason == "announcement" and _WORDS["happened"].match(hidden)):
            return reason
    if (of_the_work := progress(head)) is not None:
        return of_the_work
    is_done = _WORDS["has_done"].search(hidden) or _WORDS["specific"].search(hidden)
    if _WORDS["of_itself"].search(hidden) and not is_done:
        return "announcement"
    return None if len(terms(_WORDS["markup"].sub(" ", head))) >= _LEAST_TERMS else "fragment"


def _visible(text: str) -> str:
    """The text as a reader sees it, without characters that hide or reorder others."""
    return text if text.isascii() and text.isprintable() else visible(_WORDS["ansi"].sub("", text))


_TELLING: tuple[Reason, ...] = (
    "instruction-like",
    "recalled-text",
    "announcement",
    "apology",
    "too-vague",
    "plan",
    "status",
)


def tally(reasons: Iterable[str]) -> str:
    """Reasons as one code for the audit: "question:2;small-talk"."""
    counts = sorted(Counter(reasons).items())
    return ";".join(f"{reason}:{count}" if count > 1 else reason for reason, count in counts)
