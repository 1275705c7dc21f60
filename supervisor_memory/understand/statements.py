"""Judge each sentence of a text: it states a preference, defines a word, asks, or does none of these.

By rules, in English and Chinese; the words are in wishes.toml, facts.toml, retractions.toml and
sentences.toml of `language`. `stages/pre_retrieval/route.py` decides by it whether there is something to
write, `stages/pre_insert/extract.py` writes it.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice
from typing import Literal, TypeAlias

from supervisor_memory.language.lexicon import alternatives, lexicon
from supervisor_memory.language.terms import HAN
from supervisor_memory.language.unseen import UNSEEN
from supervisor_memory.model.records import Kind
from supervisor_memory.model.replacing import replace
from supervisor_memory.understand.learned import Learned, is_ordinary, weigh, weights

Relation: TypeAlias = Literal["definition", "alias", "includes", "excludes"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A definition of `term`, which is normalised: casefolded, without articles and quotes."""

    term: str
    relation: Relation
    value: str


_DEFINES = lexicon("definitions")
_RULES: list[tuple[Relation, re.Pattern[str]]] = [
    (block["relation"], pattern) for block, pattern in _DEFINES.blocks("rules")
]
_NOT_TERMS = _DEFINES.words("pronouns")
_LONGEST_TERM = 60


def find_definition(text: str, hidden: str) -> Definition | None:
    """The definition a sentence gives, or None.

    Args:
        text: The sentence without greeting and announcement.
        hidden: The same with quotations masked, character by character.
    """
    for relation, rule in _RULES:
        match = rule.search(hidden)
        if match is None or _is_average(match):
            continue
        term = normal_term(text[slice(*match.span("term"))])
        value = text[slice(*match.span("value"))].strip(" .。!")
        if _is_sound(term, value, relation, hidden):
            return _sorted_out(Definition(term, relation, value), match)
    return None


def _is_average(match: re.Match[str]) -> bool:
    """Whether "mean" is the average here, not a verb: "the mean fare is"."""
    words = match.string[match.end("term") : match.start("value")].casefold().split()
    if not words or words[-1] != "mean" or not all(map(_DEFINES["adverb"].fullmatch, words[:-1])):
        return False
    is_of_many = _DEFINES["of_many"].search(match["term"])
    return not is_of_many or _DEFINES["has_a_verb"].match(match["value"]) is not None


def normal_term(term: str) -> str:
    """The form in which terms are compared: casefolded, without articles, quotes and a trailing 的."""
    return " ".join(_DEFINES["edges"].sub("", term.casefold()).removesuffix("的").split())


def _is_sound(term: str, value: str, relation: Relation, hidden: str) -> bool:
    if any(map(_DEFINES["negated"].search, (term, value))) or _DEFINES["code"].search(hidden):
        return False
    if not value or not 0 < len(term) <= _LONGEST_TERM or not any(c.isalpha() for c in term):
        return False
    if _NOT_TERMS & set(term.split()) or _DEFINES["not_terms_zh"].search(term):
        return False
    return relation not in ("includes", "excludes") or not _DEFINES["outputs"].search(term)


def _sorted_out(found: Definition, match: re.Match[str]) -> Definition:
    """Turn "a cancelled flight counts as delayed" into a part that the term includes, not its meaning."""
    names_the_term_last = match.start("value") < match.start("term")
    conditional = match.end("term") < match.end() - 3
    is_member = found.relation == "definition" and names_the_term_last and not conditional
    is_rule = _DEFINES["quantified"].search(found.value) or found.value.startswith(("we ", "我们"))
    return replace(found, relation="includes") if is_member and not is_rule else found


_PASTED = lexicon("pasted")
_LEAST_SPEAKERS = 2
_ENDS = ".!?。！？\n"


def without_pasted(text: str) -> str:
    """The text with its pasted parts replaced by as many spaces, so that positions stay the same."""
    return _known_own(text) if len(text) <= _LONGEST_KNOWN else _without_pasted(text)


def _without_pasted(text: str) -> str:
    text = _PASTED["block"].sub(lambda block: _PASTED["blanked"].sub(" ", block[0]), text)
    for opened in _PASTED["opens"].finditer(text) if _PASTED["goes_on"].search(text) else ():
        begun = max(text.rfind(mark, 0, opened.start()) for mark in _ENDS) + 1
        if not _PASTED["announces"].search(text, begun, opened.end()):
            text = text[: opened.end()] + _PASTED["blanked"].sub(" ", text[opened.end() :])
            break
    if "\n" not in text:
        return " " * len(text) if _is_theirs(text) else text
    lines = text.split("\n")
    theirs = set(_lines_of_others(lines))
    if not theirs:
        return text
    return "\n".join(" " * len(line) if n in theirs else line for n, line in enumerate(lines))


def _lines_of_others(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines that are not the user's own."""
    for number, line in enumerate(lines):
        if _is_theirs(line):
            yield number
    starts = [each for each in (_mail(lines), _chat(lines)) if each is not None]
    yield from range(min(starts, default=len(lines)), len(lines))


def _is_theirs(line: str) -> bool:
    return bool(_PASTED["quoted_line"].match(line) or _PASTED["log_line"].match(line)) or _is_somebodys(line)


def _is_somebodys(line: str) -> bool:
    """Whether somebody, by a name that is no other word, speaks of himself in a line."""
    who = _speaker(line)
    if who is None or not _PASTED["of_oneself"].search(line):
        return False
    name = _PASTED["somebody"].fullmatch(who)
    is_name = name is not None and bool(name["nickname"] or not _is_heading(who))
    return is_name or line.lstrip().startswith("[")


def _is_heading(label: str) -> bool:
    """Whether the words before a colon are a heading, not a name: common words, or words for telling of
    oneself."""
    return all(is_ordinary(word) or _is_own(word) for word in label.casefold().split())


def _is_own(word: str) -> bool:
    """Whether a word is in the rules for statements about oneself, other than a word for a person."""
    return word not in _persons() and not _own_words().isdisjoint((word, word.removesuffix("s")))


@cache
def _own_words() -> frozenset[str]:
    return _FACTS.vocabulary | lexicon("attributes").vocabulary


@cache
def _persons() -> frozenset[str]:
    named = map(_OF_THE_USER.meanings, ("people", "kin"))
    return lexicon("names").words("roles").union(*named)


def _without_heading(text: str) -> str:
    """The text without a heading by which people tell of themselves: "Diet: …"."""
    match = _PASTED["speaker"].match(text)
    is_own = match is not None and all(map(_is_own, match["who"].casefold().split()))
    return text[match.end() :] if match and is_own and not _FACTS["imperative"].match(text) else text


def _mail(lines: Sequence[str]) -> int | None:
    """The first line of a mail: its headers, or a salutation with a closing formula later; None: no mail."""
    headers = [number for number, line in enumerate(lines) if _PASTED["header"].match(line)]
    if headers:
        return headers[0]
    begun = next((number for number, line in enumerate(lines) if _PASTED["salutation"].match(line)), None)
    if begun is None:
        return None
    closed = next((n for n, line in enumerate(lines) if n > begun and _PASTED["closing"].match(line)), None)
    is_signed = closed is not None and sum(bool(line.strip()) for line in lines[closed + 1 :]) > 1
    return begun if is_signed else None


def _chat(lines: Sequence[str]) -> int | None:
    """The first line of a conversation of two or more speakers; None for others, such as a list of fields."""
    spoken = [(number, who.casefold()) for number, line in enumerate(lines) if (who := _speaker(line))]
    if len({who for _, who in spoken}) < _LEAST_SPEAKERS:
        return None
    start = spoken[0][0]
    return None if any(map(_PASTED["announces"].search, lines[:start])) else start


def _speaker(line: str) -> str | None:
    """Who speaks in a line, if somebody does."""
    match = _PASTED["speaker"].match(line)
    who = match["who"].strip() if match and _PASTED["utterance"].search(line[match.end() :]) else ""
    return who if who and not _PASTED["no_speaker"].fullmatch(who) else None


Does: TypeAlias = Literal["states", "asks", "nothing"]

MAX_SENTENCES = 100
MAX_SENTENCE = 1_000
"""Characters. Nobody states a preference in more; a longer sentence is material, not a statement."""

_WISHES, _SENTENCES, _FACTS, _RETRACT = map(lexicon, ("wishes", "sentences", "facts", "retractions"))
_OF_THE_USER = lexicon("people")
_FACTS.give(kin=f"(?:{alternatives(_OF_THE_USER.meanings('kin'))})s?")
MASK = lexicon("common").text("mask")
"""Stands for one character that was quoted or is code: it says nothing by itself."""

_STANDING = _WISHES.pattern("preferences.standing-instruction")
_PREFERENCES = _WISHES.patterns("preferences")

_SENTENCES.give(
    small_word="|".join(
        f"{re.escape(word)}(?![a-z])" if word.isascii() else word
        for word in sorted(
            (*_SENTENCES.listed("small_words"), *_SENTENCES.listed("reply_words")), key=len, reverse=True
        )
    )
)
SMALL_TALK = _SENTENCES.pattern("small_talk")
"""A whole message of this is an acknowledgement: there is nothing to look up."""
_LONGEST_SMALL_TALK = 80

_FACT_RULES = _FACTS.patterns("facts")

_RETRACTED = _RETRACT.each("retracted")
_NO_MORE = _RETRACT.blocks("no_longer")


@dataclass(frozen=True, slots=True)
class Statement:
    """A judged sentence. `reason` names the rule that decided.

    `kind` is set if the sentence is worth remembering; `text` is the sentence as it was written, and `start`
    its place in the message. `retracts` is the part taken back: "I want tables" of "forget that I want
    tables". `learned` is what the second reader says of a sentence on which the rules have no verdict, or
    which they would keep.
    """

    text: str
    does: Does
    reason: str
    kind: Kind | None = None
    definition: Definition | None = None
    start: int = 0
    retracts: str | None = None
    learned: Learned | None = None

    @property
    def is_learned(self) -> bool:
        """Whether the second reader keeps it, and no rule."""
        return self.reason in (LEARNED_WISH, LEARNED_FACT)


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
        for start, sentence in islice(placed_sentences(_unwrapped(own)), MAX_SENTENCES)
        for statement in _judged(sentence)
    )
    if _SENTENCES["tale"].search(own):
        found = tuple(_without_tale(each) for each in found)
    if own != text:
        found += (Statement("", "nothing", "pasted"),)
    refusals = [s.reason for s in found if s.reason in ("do-not-remember", "instruction-to-assistant")]
    return Statements(found, refusals[0] if refusals else "")


def _without_tale(found: Statement) -> Statement:
    """The sentence, marked as made up if it tells of a dream or a tale; the sentences around it stay the
    user's."""
    is_told = _SENTENCES["tale"].search(masked(normal(found.text))) is not None
    return Statement(found.text, "nothing", "hypothetical", start=found.start) if is_told else found


_MOST_READ = MAX_SENTENCES * MAX_SENTENCE
_LONGEST_KNOWN = 2_000
_known = lru_cache(maxsize=1_024)(_read)  # one question is routed for the supervisor and for each sub-agent
_known_own = lru_cache(maxsize=1_024)(_without_pasted)  # a message is read, digested and quoted


def _unwrapped(text: str) -> str:
    """Replace line breaks inside sentences by spaces, at the same length; text with code stays."""
    if "\n" not in text or "```" in text:
        return text
    return _SENTENCES["soft_wrap"].sub(lambda match: " " * len(match[0]), text)


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text, trimmed. Numbers, file names, URLs, quotations and code are not cut."""
    return iter(_parted(text)) if len(text) <= _LONGEST_KNOWN else _sentences(text)


def _sentences(text: str) -> Iterator[str]:
    return (sentence for _, sentence in placed_sentences(text))


_parted = lru_cache(maxsize=1_024)(lambda text: tuple(_sentences(text)))  # several judges read a text


def placed_sentences(text: str) -> Iterator[tuple[int, str]]:
    """The sentences of a text, each with its start."""
    start = 0
    for match in _SENTENCES["ends"].finditer(text):
        if match["quoted"] is not None:
            continue
        if match["end"][0] == "\n" and text.startswith("```", match.end()):
            continue
        before = text[max(start, match.start() - 8) : match.start()]
        if match["end"][0] == "." and _SENTENCES["abbreviation"].search(before):
            continue
        yield from _placed(text[start : match.end()], start)
        start = match.end()
    yield from _placed(text[start:], start)


def _placed(piece: str, start: int) -> Iterator[tuple[int, str]]:
    if sentence := piece.strip():
        yield start + len(piece) - len(piece.lstrip()), sentence


def normal(sentence: str) -> str:
    """The form in which sentences are judged: NFKC, straight apostrophes, single spaces, nothing unseen."""
    if sentence.isascii() and sentence.isprintable():
        return " ".join(sentence.split())
    text = unicodedata.normalize("NFKC", sentence).replace("’", "'")
    return " ".join(UNSEEN.sub("", text).split())


def masked(text: str) -> str:
    """The text with quotations, code and URLs masked, at the same length."""
    return _SENTENCES["quoted_span"].sub(lambda span: MASK * len(span[0]), text)


def is_small_talk(text: str) -> bool:
    """Whether a message is an acknowledgement or a greeting and nothing else."""
    said = normal(text) if len(text) <= 4 * _LONGEST_SMALL_TALK else text
    return len(said) <= _LONGEST_SMALL_TALK and SMALL_TALK.fullmatch(said) is not None


def judge(sentence: str) -> Statement:
    """Judge one sentence."""
    if len(sentence) > MAX_SENTENCE:
        return Statement(sentence, "nothing", "too-long")
    return _known_judgement(sentence)


@lru_cache(maxsize=1_024)  # what a turn keeps its digest reads again
def _known_judgement(sentence: str) -> Statement:
    text = normal(sentence)
    hidden = masked(text)
    reason = _refusal(hidden)
    if reason in ("", "forget") and (what := _retracted(hidden)):
        if _put_off(hidden, what):
            return Statement(sentence, "nothing", "hypothetical")
        taken_back = text[slice(*what)].strip()
        return Statement(sentence, "states", "forget", "user-profile", retracts=taken_back)
    if reason:
        return Statement(sentence, "nothing", reason)
    if _is_question(hidden):
        return Statement(sentence, "asks", "question")
    if reason := _disclaimer(hidden):
        return Statement(sentence, "nothing", reason)
    if _speaks_of_forgetting(without_address(hidden)):
        return Statement(sentence, "nothing", "forget")
    if definition := _definition(text, hidden):
        return Statement(sentence, "states", "definition", "domain-facts", definition)
    found = _stated(sentence, hidden)
    if found.kind is None and found.reason == "none" and (before := _affirmed(hidden)):
        kind = _stated(sentence, before).kind
        return Statement(sentence, "states", "no-longer", kind) if kind is not None else found
    return found


def _stated(sentence: str, hidden: str) -> Statement:
    found = _preference(sentence, hidden)
    return found if found.kind is not None or found.reason == "one-off" else _fact(sentence, hidden) or found


def without_address(hidden: str) -> str:
    """The text without greeting and announcement: "Hi, please remember that …"."""
    for lead in (_SENTENCES["address"], _SENTENCES["remember_that"], _SENTENCES["address"]):
        hidden = lead.sub("", hidden, count=1)
    return hidden


def _retracted(hidden: str) -> tuple[int, int] | None:
    """The span of the part that the sentence takes back; None if it takes nothing back."""
    start, end = 0, len(hidden)
    if polite := _SENTENCES["polite"].match(hidden):
        start, end = polite.span("rest") if polite["rest"] is not None else polite.span("rest_zh")
    elif _is_question(hidden):
        return None
    for until in (end, *_ends_of_clauses(hidden, start, end)):  # what follows may say why
        if found := _taken_back(hidden[start:until]):
            return found[0] + start, found[1] + start
    return None


def _ends_of_clauses(hidden: str, start: int, end: int) -> Iterator[int]:
    """The ends of a text's first clauses, the furthest first."""
    cuts = [match.start() for match in islice(_SENTENCES["clause_end"].finditer(hidden, start, end), 3)]
    yield from (cut for cut in reversed(cuts) if cut > start)


def _taken_back(hidden: str) -> tuple[int, int] | None:
    """The span of the statement that the user takes back; None: nothing named is taken back."""
    for pattern in _RETRACTED:
        match = pattern.search(hidden)
        if match is None or _RETRACT["not_to"].search(hidden[: match.start()]):
            continue
        what, start = match["what"].strip(), match.start("what")
        is_at_hand = _RETRACT["at_hand"].match(what) and not _RETRACT["said_about"].search(hidden[:start])
        if not _RETRACT["meaningless"].match(what) and not is_at_hand:
            return match.span("what")
    return None


def _speaks_of_forgetting(said: str) -> bool:
    """Whether a sentence is about forgetting something or not; it is no statement to remember.

    That somebody forgets things is told like anything else.
    """
    match = _RETRACT["forgetting"].search(said)
    before = said[: match.start()] if match else ""
    is_somebodys = _RETRACT["who_forgets"].search(before) and not _RETRACT["bids"].search(before)
    return match is not None and not is_somebodys


def _affirmed(hidden: str) -> str:
    """The statement without its negation: "I live in Rome" for "I no longer live in Rome"; else ""."""
    for block, pattern in _NO_MORE:
        found, count = pattern.subn(block["put"], hidden, count=1)
        if count:
            return found
    return ""


def _put_off(hidden: str, what: tuple[int, int]) -> bool:
    """Whether the retraction is conditional, for later, or in somebody else's words."""
    before, after = hidden[: what[0]], hidden[what[1] :]
    is_conditional = _RETRACT["under_condition"].search(f"{before} {after}")
    return bool(is_conditional or _RETRACT["upon_asking"].search(hidden[: what[1]]) or _disclaimer(before))


def _fact(sentence: str, hidden: str) -> Statement | None:
    """Judge whether a sentence states a fact of the user, a decision, a correction or a house rule."""
    if _SENTENCES["condition"].search(hidden):
        return None
    said = without_address(hidden)
    is_request = _FACTS["imperative"].match(said) or _SENTENCES["request"].search(said)
    for reason, rule in () if is_request else _FACT_RULES:
        if match := rule.search(said):
            around = f"{said[: match.start()]} {said[match.end() :]}"
            if not _FACTS["passing"].search(around):
                return Statement(sentence, "states", reason, "user-profile")
    if _FACTS["passing"].search(said):
        return None
    if _FACTS["decision"].search(said):
        return Statement(sentence, "states", "decision", "domain-facts")
    if match := _FACTS["correction"].match(said) or _FACTS["correction"].match(hidden):
        rest = (match["rest"] or match["rest_zh"]).strip()
        if _FACTS["states_something"].search(rest):
            return Statement(sentence, "states", "correction", "domain-facts")
    if match := _FACTS["house_rule"].match(said):
        rest = (match["rest"] or match["rest_zh"] or match["rest_said"]).strip()
        if _says_enough(rest) and not _SENTENCES["request"].search(rest):
            return Statement(sentence, "states", "house-rule", "domain-facts")
    return None


_LEAST_WORDS, _LEAST_CHARACTERS_ZH = 3, 5
_COUNTED = re.compile(rf"[{HAN}]|\d+")


def _says_enough(text: str) -> bool:
    """Whether a text is more than a fragment: three words, or five Chinese characters or numbers."""
    return len(text.split()) >= _LEAST_WORDS or len(_COUNTED.findall(text)) >= _LEAST_CHARACTERS_ZH


def _judged(sentence: str) -> Iterator[Statement]:
    """Judge a sentence; a statement and a question joined by a comma are judged apart."""
    whole = _with_second_reader(judge(sentence))
    if whole.does == "asks" and (clauses := without_question(sentence)):
        before = _with_second_reader(judge(clauses))
        if before.kind is not None:
            yield before
            yield Statement(sentence[len(clauses) :].strip(), "asks", "question", start=len(clauses))
            return
    yield whole


def _with_second_reader(found: Statement) -> Statement:
    """The verdict of the rules or, where they have none, of the second reader.

    What is quoted says nothing by itself: 'Proofread: "I prefer the early shift."' is too little to judge,
    and so is a sentence that is quoted or code for the most part. A quoted name or value is one of the
    sentence's words, and is read where the sentence is surer with it.
    """
    text = normal(found.text)
    own = masked(text)
    is_ruled = found.kind is not None and found.retracts is None and not _is_deliberate(found, own)
    is_own = _says_enough(own) and (is_ruled or 2 * own.count(MASK) <= len(own))
    if not (is_ruled or found.reason == "none") or not is_own:
        return found
    if is_ruled:
        return replace(found, learned=weigh(without_address(_without_heading(_wish(text))), weights()))
    # "could you …?" reads like a question, a greeting like small talk; the mark of a list tells of tasks.
    is_listed = _SENTENCES["listed"].match(text) is not None
    named = _SENTENCES["quoted_span"].sub(_name, text)
    said = [each if is_listed else without_address(each) for each in dict.fromkeys((own, named))]
    return decided(found, max([weigh(each, weights()) for each in said], key=lambda learned: learned.chance))


def _is_deliberate(found: Statement, hidden: str) -> bool:
    """Whether the user announces the statement, or says what "we mean by" a word: then nobody doubts it."""
    starts, announced = _announced(hidden)
    is_defined = found.reason == "definition" and _DEFINES["of_ones_own"].search(hidden[starts:]) is not None
    return announced or is_defined


def _name(span: re.Match[str]) -> str:
    """What is quoted, if it is a name or value ("Finch", “苍鹭”), else the mask: it says something itself, or
    somebody says it of themselves ("I smoke")."""
    quoted = span[0]
    is_said = _OF_THE_USER["i"].search(quoted) or _OF_THE_USER["i_zh"].search(quoted)
    says = is_said or _says_enough(quoted) or weigh(quoted, weights()).chance >= _PERHAPS
    return MASK * len(quoted) if says else quoted


def believed(found: Statement) -> Statement:
    """Drop a statement that the rules would keep if the second reader doubts it; others stay as they are.

    What the user announces ("remember that …") or defines in the first person ("by churn we mean …") is not
    doubted; nor is, by its words alone, what has words of wishing or defining.
    """
    learned = found.learned
    if found.kind is None or found.is_learned or learned is None or not learned.is_doubtful:
        return found
    if not learned.by_sense and found.reason not in _TELLING:
        return found
    return replace(found, does="nothing", reason="doubted", kind=None, definition=None)


def decided(found: Statement, learned: Learned) -> Statement:
    """The sentence with the second reader's judgement, which decides where the rules have no verdict."""
    if found.kind is not None and not found.is_learned:
        return replace(found, learned=learned)
    if not learned.is_lasting:
        return replace(found, does="nothing", reason="none", kind=None, learned=learned)
    said = masked(normal(found.text))
    is_users = _OF_THE_USER["i"].search(said) or _OF_THE_USER["i_zh"].search(said)
    is_users = is_users or _WISHES["about_the_user"].search(said)
    is_wish = learned.wish >= _EVEN
    return replace(
        found,
        does="states",
        reason=LEARNED_WISH if is_wish else LEARNED_FACT,
        kind="user-profile" if is_wish or is_users else "domain-facts",
        learned=learned,
    )


_EVEN = 0.5
_TELLING = ("personal-fact", "habit", "decision", "correction", "house-rule")
_PERHAPS = 0.25
"""The least chance of a sentence to change a known statement, though the sentence is not kept by itself."""


def perhaps_stated(found: Statement, *, is_news: bool = False) -> Statement | None:
    """The possible statement of a sentence on which the second reader is unsure; else None.

    Args:
        is_news: The sentence gives an attribute a value, or says that something is over: then it counts
            however small the chance, and also where the rules take it for a task.
    """
    learned = found.learned
    if is_news and found.reason == "task":
        return decided(found, replace(weigh(normal(found.text), weights()), chance=0.0, is_lasting=True))
    if found.kind is not None or learned is None or learned.is_lasting:
        return None
    if learned.chance < _PERHAPS and not is_news:
        return None
    return decided(found, replace(learned, is_lasting=True))


LEARNED_WISH, LEARNED_FACT = "learned-wish", "learned-fact"


def without_question(sentence: str) -> str:
    """The clauses of a sentence before the one that asks; "" if none are."""
    return sentence[: _where_the_question_begins(sentence)] if _is_question(masked(normal(sentence))) else ""


def _where_the_question_begins(sentence: str) -> int:
    """The end of the clauses before a question; 0 if there are none."""
    cut = 0
    for match in islice(_SENTENCES["clause_end"].finditer(masked(sentence)), 8):
        clause = normal(sentence[cut : match.start()])
        if _asks(clause):
            break
        cut = match.end()
    return cut


def _refusal(hidden: str) -> str:
    if _SENTENCES["instruction"].search(hidden):
        return "instruction-to-assistant"
    if _SENTENCES["do_not_remember"].search(hidden):
        return "do-not-remember"
    return "forget" if _SENTENCES["forget"].search(hidden) and not _STANDING.search(hidden) else ""


def _disclaimer(hidden: str) -> str:
    """The reason why a sentence is not the user's own or not meant now: "reported", "hypothetical", "past";
    else ""."""
    if _SENTENCES["by_another"].match(hidden):
        return "reported"
    if _SENTENCES["hypothetical"].search(hidden):
        return "hypothetical"
    if _SENTENCES["reported"].search(hidden):
        return "reported"
    return "past" if _SENTENCES["past"].search(hidden) else ""


def _is_question(hidden: str) -> bool:
    untagged = _SENTENCES["tag"].sub("", hidden)
    return _asks(untagged) and not _is_polite_wish(untagged)


def _asks(hidden: str) -> bool:
    if hidden.rstrip("!. )").endswith("?"):
        return True
    if _SENTENCES["question_ends_zh"].search(hidden) or _SENTENCES["question_starts"].search(hidden):
        return True
    if _SENTENCES["asks_to_be_told"].search(hidden):
        return True
    return bool(_SENTENCES["question_words_zh"].search(hidden)) and not _SENTENCES["anyhow"].search(hidden)


def _is_polite_wish(hidden: str) -> bool:
    """Whether a "could you …?" asks for a lasting habit, not for information."""
    match = _SENTENCES["polite"].match(hidden)
    if match is None:
        return False
    rest = match["rest"] or match["rest_zh"] or ""
    if _SENTENCES["question_words_zh"].search(rest):
        return False
    return bool(_SENTENCES["polite_wish"].search(rest) or _STANDING.search(rest))


def _definition(text: str, hidden: str) -> Definition | None:
    start, announced = _announced(hidden)
    body = hidden[start:]
    if not announced and _SENTENCES["request"].search(body):
        return None
    return find_definition(text[start:], body)


def _announced(hidden: str) -> tuple[int, bool]:
    """The start of the statement proper, and whether words like "remember that" announce it."""
    start, announced = 0, False
    for lead in ("address", "remember_that", "here") * 3:
        if match := _SENTENCES[lead].match(hidden[start:]):
            start += match.end()
            announced = announced or lead != "address"
    return start, announced


def asks_once(text: str) -> bool:
    """Whether each sentence of a text asks for something this time alone, and tells nothing."""
    wishes = (_wish(masked(normal(each))) for each in sentences(_unwrapped(text)))
    return all(
        _SENTENCES["one_off"].search(each) and not _SENTENCES["for_the_moment"].search(each)
        for each in wishes
    ) and all(each.reason == "one-off" for each in read_statements(text).all)


def _wish(hidden: str) -> str:
    """The sentence without "could you …?" around it."""
    polite = _SENTENCES["polite"].match(hidden)  # most begin otherwise
    polite = polite and _SENTENCES["polite"].match(_SENTENCES["tag"].sub("", hidden))
    return ((polite["rest"] or polite["rest_zh"]) if polite else None) or hidden


def _preference(sentence: str, hidden: str) -> Statement:
    wish = _wish(hidden)
    if _SENTENCES["one_off"].search(wish) and not _STANDING.search(wish):
        return Statement(sentence, "nothing", "one-off")
    for reason, rule in _PREFERENCES:
        if rule.search(wish) and not (reason == "default" and _WISHES["outsiders"].search(wish)):
            return Statement(sentence, "states", reason, "user-profile")
    return Statement(sentence, "nothing", "task" if _SENTENCES["request"].search(hidden) else "none")
