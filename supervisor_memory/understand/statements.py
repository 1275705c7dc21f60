"""Judge each sentence of a text: it states a preference, defines a word, asks, or does none of these.

By rules, in English and Chinese; the words are in `phrases`. `recall/route` decides by it whether there
is something to write, `remember/extract` writes it.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import Literal, TypeAlias

from supervisor_memory.language import facts, phrases
from supervisor_memory.language.phrases import MASK
from supervisor_memory.model.records import Kind
from supervisor_memory.text.unseen import UNSEEN
from supervisor_memory.understand.definitions import Definition, find_definition
from supervisor_memory.understand.pasted import without_pasted

__all__ = [
    "MAX_SENTENCE",
    "Statement",
    "Statements",
    "judge",
    "masked",
    "normal",
    "read_statements",
    "sentences",
]

Does: TypeAlias = Literal["states", "asks", "nothing"]

MAX_SENTENCES = 100
MAX_SENTENCE = 1_000
"""Characters. Nobody states a preference in more; a longer sentence is material, not a statement."""

_QUOTED = (
    r"```.*?(?:```|\Z)|`[^`\n]{1,300}`|https?://[^\s，。；！？）]{1,500}"
    r"|\"[^\"\n]{1,300}\"|“[^“”\n]{1,300}”|「[^「」\n]{1,300}」|『[^『』\n]{1,300}』|《[^《》\n]{1,100}》|"
    r"‘[^‘’\n]{1,300}’"
)
_QUOTED_SPAN = re.compile(_QUOTED, re.DOTALL)
_CJK_OR_SPACE = r"(?=\s|\Z|[\u3400-\u9fff，。；！？])"
_ENDS = re.compile(
    rf"(?P<quoted>{_QUOTED})"
    r"|(?P<end>[。！？!?]{1,10}[”’」』）)\"']{0,3}(?<=[。！？])"  # a full-width mark always ends
    rf"|[。！？.!?]{{1,10}}[”’」』）)\"']{{0,3}}{_CJK_OR_SPACE}"
    r"|[。！？]|\n\s*)",
    re.DOTALL,
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|dr|mr|mrs|ms|no|approx|incl|excl|fig|st|cf|u\.s|a\.m|p\.m)|^\s*\d{1,2})\Z",
    re.I,
)
_CLAUSE_END = re.compile(r"[,;，；] ?")


@dataclass(frozen=True, slots=True)
class Statement:
    """A judged sentence. `reason` names the rule that decided.

    `kind` is set if the sentence is worth remembering; `text` is the sentence as it was written, and `start`
    its place in the message. `retracts` is the part taken back: "I want tables" of "forget that I want
    tables".
    """

    text: str
    does: Does
    reason: str
    kind: Kind | None = None
    definition: Definition | None = None
    start: int = 0
    retracts: str | None = None


@dataclass(frozen=True, slots=True)
class Statements:
    """The judged sentences of a text. `refusal` says why none may be remembered; "" if they may."""

    all: tuple[Statement, ...]
    refusal: str = ""

    @property
    def worth_keeping(self) -> tuple[Statement, ...]:
        return () if self.refusal else tuple(s for s in self.all if s.kind is not None)


def read_statements(text: str) -> Statements:
    """Judge the first hundred sentences of a text, each by itself. Pasted parts state nothing."""
    return _known(text) if len(text) <= _LONGEST_KNOWN else _read(text)


def _read(text: str) -> Statements:
    text = text[:_MOST_READ]
    own = without_pasted(text)
    found = tuple(
        replace(statement, start=start + statement.start)
        for start, sentence in islice(_placed_sentences(_unwrapped(own)), MAX_SENTENCES)
        for statement in _judged(sentence)
    )
    if own != text:
        found += (Statement("", "nothing", "pasted"),)
    refusals = [s.reason for s in found if s.reason in ("do-not-remember", "instruction-to-assistant")]
    return Statements(found, refusals[0] if refusals else "")


_MOST_READ = MAX_SENTENCES * MAX_SENTENCE
_LONGEST_KNOWN = 2_000
_known = lru_cache(maxsize=1_024)(_read)  # one question is routed for the supervisor and for each sub-agent


_SOFT_WRAP = re.compile(
    r"(?<![ \t.!?:;。！？：；…\n])[ \t]*\n[ \t]*(?=[a-z(])"
    r"(?!(?:i|i'm|we|my|our|please|don't|do|always|never|also|and then|then|what|how|who|when|where|why|use|"
    r"call)\b)"
    r"|(?<=[，、])[ \t]*\n[ \t]*(?=[^\s\-*•\d])"
)


def _unwrapped(text: str) -> str:
    """Replace line breaks inside sentences by spaces, at the same length; text with code stays."""
    if "\n" not in text or "```" in text:
        return text
    return _SOFT_WRAP.sub(lambda match: " " * len(match[0]), text)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, trimmed. Numbers, file names, URLs, quotations and code are not cut."""
    return (sentence for _, sentence in _placed_sentences(text))


def _placed_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text, each with its start."""
    start = 0
    for match in _ENDS.finditer(text):
        if match["quoted"] is not None:
            continue
        if match["end"][0] == "\n" and text.startswith("```", match.end()):
            continue
        if match["end"][0] == "." and _ABBREVIATION.search(
            text[max(start, match.start() - 8) : match.start()]
        ):
            continue
        yield from _placed(text[start : match.end()], start)
        start = match.end()
    yield from _placed(text[start:], start)


def _placed(piece: str, start: int) -> Iterator[tuple[int, str]]:
    if sentence := piece.strip():
        yield start + len(piece) - len(piece.lstrip()), sentence


def normal(sentence: str) -> str:
    """The form in which sentences are judged: NFKC, straight apostrophes, single spaces, nothing unseen."""
    text = unicodedata.normalize("NFKC", sentence).replace("’", "'")
    return " ".join(UNSEEN.sub("", text).split())


def masked(text: str) -> str:
    """The text with quotations, code and URLs masked, at the same length."""
    return _QUOTED_SPAN.sub(lambda span: MASK * len(span[0]), text)


def judge(sentence: str) -> Statement:
    """Judge one sentence."""
    if len(sentence) > MAX_SENTENCE:
        return Statement(sentence, "nothing", "too-long")
    text = normal(sentence)
    hidden = masked(text)
    reason = _refusal(hidden)
    if reason in ("", "forget") and (what := _retracted(hidden)):
        if _put_off(hidden, what):
            return Statement(sentence, "nothing", "hypothetical")
        return _retraction(sentence, text[slice(*what)])
    if reason:
        return Statement(sentence, "nothing", reason)
    if _is_question(hidden):
        return Statement(sentence, "asks", "question")
    if reason := _disclaimer(hidden):
        return Statement(sentence, "nothing", reason)
    if facts.speaks_of_forgetting(_without_address(hidden)):
        return Statement(sentence, "nothing", "forget")
    if definition := _definition(text, hidden):
        return Statement(sentence, "states", "definition", "domain-facts", definition)
    found = _stated(sentence, hidden)
    if found.kind is None and found.reason == "none" and (before := facts.affirmed(hidden)):
        kind = _stated(sentence, before).kind
        return Statement(sentence, "states", "no-longer", kind) if kind is not None else found
    return found


def _stated(sentence: str, hidden: str) -> Statement:
    found = _preference(sentence, hidden)
    return found if found.kind is not None or found.reason == "one-off" else _fact(sentence, hidden) or found


def _without_address(hidden: str) -> str:
    for lead in (phrases.ADDRESS, phrases.REMEMBER_THAT, phrases.ADDRESS):
        hidden = lead.sub("", hidden, count=1)
    return hidden


def _retracted(hidden: str) -> tuple[int, int] | None:
    """The span of the part that the sentence takes back; None if it takes nothing back."""
    start, end = 0, len(hidden)
    if polite := phrases.POLITE.match(hidden):
        start, end = polite.span("rest") if polite["rest"] is not None else polite.span("rest_zh")
    elif _is_question(hidden):
        return None
    found = facts.retracted(hidden[start:end])
    return (found[0] + start, found[1] + start) if found else None


def _put_off(hidden: str, what: tuple[int, int]) -> bool:
    """Whether the retraction is conditional, for later, or in somebody else's words."""
    before, after = hidden[: what[0]], hidden[what[1] :]
    is_conditional = facts.UNDER_CONDITION.search(f"{before} {after}")
    return bool(is_conditional or facts.UPON_ASKING.search(hidden[: what[1]]) or _disclaimer(before))


def _retraction(sentence: str, what: str) -> Statement:
    return Statement(sentence, "states", "forget", "user-profile", retracts=what.strip())


def _fact(sentence: str, hidden: str) -> Statement | None:
    """Judge whether a sentence states a fact of the user, a decision, a correction or a house rule."""
    if phrases.CONDITION.search(hidden):
        return None
    said = _without_address(hidden)
    is_request = facts.IMPERATIVE.match(said) or phrases.REQUEST.search(said)
    for reason, rule in () if is_request else facts.FACTS:
        if match := rule.search(said):
            around = f"{said[: match.start()]} {said[match.end() :]}"
            if not facts.PASSING.search(around):
                return Statement(sentence, "states", reason, "user-profile")
    if facts.PASSING.search(said):
        return None
    if facts.DECISION.search(said):
        return Statement(sentence, "states", "decision", "domain-facts")
    if match := facts.CORRECTION.match(said) or facts.CORRECTION.match(hidden):
        rest = (match["rest"] or match["rest_zh"]).strip()
        if facts.STATES_SOMETHING.search(rest):
            return Statement(sentence, "states", "correction", "domain-facts")
    if match := facts.HOUSE_RULE.match(said):
        rest = (match["rest"] or match["rest_zh"] or match["rest_said"]).strip()
        if _says_enough(rest) and not phrases.REQUEST.search(rest):
            return Statement(sentence, "states", "house-rule", "domain-facts")
    return None


_LEAST_WORDS, _LEAST_CHARACTERS_ZH = 3, 5


def _says_enough(text: str) -> bool:
    """Whether a text is more than a fragment: three words, or five Chinese characters."""
    return (
        len(text.split()) >= _LEAST_WORDS
        or sum("\u3400" <= c <= "\u9fff" for c in text) >= _LEAST_CHARACTERS_ZH
    )


def _judged(sentence: str) -> Iterator[Statement]:
    """Judge a sentence; a statement and a question joined by a comma are judged apart."""
    whole = judge(sentence)
    if whole.does == "asks" and (cut := _where_the_question_begins(sentence)):
        before = judge(sentence[:cut])
        if before.kind is not None:
            yield before
            yield Statement(sentence[cut:].strip(), "asks", "question", start=cut)
            return
    yield whole


def _where_the_question_begins(sentence: str) -> int:
    """The end of the clauses before a question; 0 if there are none."""
    cut = 0
    for match in islice(_CLAUSE_END.finditer(masked(sentence)), 8):
        clause = normal(sentence[cut : match.start()])
        if _asks(clause):
            break
        cut = match.end()
    return cut


def _refusal(hidden: str) -> str:
    if phrases.INSTRUCTION.search(hidden):
        return "instruction-to-assistant"
    if phrases.DO_NOT_REMEMBER.search(hidden):
        return "do-not-remember"
    return "forget" if phrases.FORGET.search(hidden) and not phrases.STANDING.search(hidden) else ""


def _disclaimer(hidden: str) -> str:
    """Why a sentence is not the user's own, or not meant now: "reported", "hypothetical", "past"; or ""."""
    if _BY_ANOTHER.match(hidden):
        return "reported"
    if phrases.HYPOTHETICAL.search(hidden):
        return "hypothetical"
    if phrases.REPORTED.search(hidden):
        return "reported"
    return "past" if phrases.PAST.search(hidden) else ""


_BY_ANOTHER = re.compile(
    r"(?:assistant|system|developer|tool|function|agent|supervisor|bot|ai|助手|助理|系统|工具|智能体|机器人)"
    r"(?: (?:message|result|output|reply|said|call)|消息|结果|输出|回复)?\s*[:>]"
    r"|</?[a-z][\w-]*>|<\||\[/?(?:INST|SYS)",
    re.IGNORECASE,
)
"""What marks the words of another in a conversation: a speaker's name, a tag."""


def _is_question(hidden: str) -> bool:
    untagged = phrases.TAG.sub("", hidden)
    return _asks(untagged) and not _is_polite_wish(untagged)


def _asks(hidden: str) -> bool:
    if hidden.rstrip("!. )").endswith("?"):
        return True
    if phrases.QUESTION_ENDS_ZH.search(hidden) or phrases.QUESTION_STARTS.search(hidden):
        return True
    if phrases.ASKS_TO_BE_TOLD.search(hidden):
        return True
    return bool(phrases.QUESTION_WORDS_ZH.search(hidden)) and not phrases.ANYHOW.search(hidden)


def _is_polite_wish(hidden: str) -> bool:
    """Whether a "could you …?" asks for a lasting habit, not for information."""
    match = phrases.POLITE.match(hidden)
    if match is None:
        return False
    rest = match["rest"] or match["rest_zh"] or ""
    if phrases.QUESTION_WORDS_ZH.search(rest):
        return False
    return bool(phrases.POLITE_WISH.search(rest) or phrases.STANDING.search(rest))


def _definition(text: str, hidden: str) -> Definition | None:
    start, announced = _announced(hidden)
    body = hidden[start:]
    if not announced and phrases.REQUEST.search(body):
        return None
    return find_definition(text[start:], body)


def _announced(hidden: str) -> tuple[int, bool]:
    """The start of the statement proper, and whether words like "remember that" announce it."""
    start, announced = 0, False
    for _ in range(3):
        for lead, announces in (
            (phrases.ADDRESS, False),
            (phrases.REMEMBER_THAT, True),
            (phrases.HERE, True),
        ):
            if match := lead.match(hidden[start:]):
                start += match.end()
                announced = announced or announces
    return start, announced


def _preference(sentence: str, hidden: str) -> Statement:
    polite = phrases.POLITE.match(phrases.TAG.sub("", hidden))
    wish = ((polite["rest"] or polite["rest_zh"]) if polite else None) or hidden
    lasting = phrases.STANDING.search(wish)
    if phrases.ONE_OFF.search(wish) and not lasting:
        return Statement(sentence, "nothing", "one-off")
    for reason, rule in phrases.PREFERENCES:
        if rule.search(wish) and not (reason == "default" and phrases.OUTSIDERS.search(wish)):
            return Statement(sentence, "states", reason, "user-profile")
    return Statement(sentence, "nothing", "task" if phrases.REQUEST.search(hidden) else "none")
