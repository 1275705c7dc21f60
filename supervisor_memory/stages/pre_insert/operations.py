"""Ask a model about an exchange in one call, and read its operations as candidates.

The model may word a statement as it likes. What it may not: bring a number, name or date that nobody said, or
say for the user what others said. Each operation quotes its message, from which its source is told; records
go by the ids that the model was shown. The rule's record of a quoted sentence gives way to the model's.
"""

import json
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, Final

from supervisor_memory.compare.slots import Slots
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.prompts import shape
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.model.records import (
    RELATIONS,
    Candidate,
    Filter,
    Hit,
    Kind,
    Message,
    Query,
    Record,
    Scope,
    Source,
    content_hash,
    family_for,
)
from supervisor_memory.ports import ReadStore
from supervisor_memory.stages.insert.review_reasons import REVIEW
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.pre_insert import extract
from supervisor_memory.stages.pre_insert.claim import Operation, Unusable, read_claim
from supervisor_memory.stages.pre_insert.specialists import (
    Specialist,
    delegate,
    functions_of,
    open_specialists,
    sections,
    shaped,
)
from supervisor_memory.understand.dates import named_dates
from supervisor_memory.understand.learned import is_ordinary
from supervisor_memory.understand.statements import is_small_talk, normal, read_statements, without_pasted

NAME: Final = "remember"
"""The name of the prompt, and of the schema of its answer."""
_MOST_TOKENS = 1_500
"""Tokens of the prompt beside the exchange: rules, examples, schema and records."""
_KINDS: tuple[Kind, ...] = ("user-profile", "domain-facts", "identity")
_NEAREST, _MOST_QUERIES, _MOST_SEARCHED = 6, 5, 2_000
_MOST_FOUND = 50
"""Operations that are taken of a function."""
_LONGEST_RECORD = 300  # characters; a longer one would be cut, and an update would lose the rest
_LEAST_QUOTE, _LEAST_QUOTE_ZH = 4, 2
_ANOTHERS, _OWN = 0.8, 1 / 3
_SPECIAL = frozenset({"experience", "identity"})
"""Kinds that only a specialist proposes."""
_SET_ASIDE = ("deleted", "stale", "quarantined")
_NAMES = lexicon("names")
_NOT_NAMES = frozenset({"i", "user", "users"})


@dataclass(frozen=True)
class Heard:
    """A text of an exchange: what the user, an agent or a tool said, and when.

    `who` is the speaker's name for the model. `ref_id` is the session message with the text, if one was kept;
    `id` is the caller's own.
    """

    text: str
    source: Source
    who: str
    at: float
    ref_id: str | None = None
    id: str = ""

    @property
    def is_users(self) -> bool:
        return self.source.source_class == "user"

    @cached_property
    def key(self) -> str:
        """The text in which quotes are looked up; of the user's words only the user's own, without pasted
        text."""
        return _key(without_pasted(self.text) if self.is_users else self.text)

    @property
    def named(self) -> str:
        """The name of the tool that answers, for comparing names; "" for other speakers."""
        return _key(self.who) if self.source.source_class == "tool" else ""

    @cached_property
    def slots(self) -> Slots:
        return Slots(self.text)

    @cached_property
    def ruled(self) -> tuple[Candidate, ...]:
        """What the rules read in it."""
        return extract.read_user(Message("user", self.text)).candidates if self.is_users else ()

    @property
    def is_idle(self) -> bool:
        return is_small_talk(self.text)


@dataclass(frozen=True)
class Asked:
    """A prompt, what was heard in it, and the records shown: the id in the prompt → the record's own."""

    prompt: str
    heard: tuple[Heard, ...]
    shown: Mapping[str, str]
    specialists: tuple[Specialist, ...] = ()
    shape: Mapping[str, Any] = field(default_factory=lambda: shape(NAME))
    """The schema of the answer."""


def asking(
    heard: Iterable[Heard],
    scope: Scope,
    view: ReadStore,
    *,
    specialists: Sequence[Specialist] | None = None,
    thinking: bool = False,
    before: str = "",
) -> Asked | None:
    """The prompt about an exchange; None where there is nothing to ask about.

    A message that the user asked not to remember is not shown, nor what answers it.

    Args:
        specialists: Among whom the exchange is divided; None: those of the settings.
        thinking: Whether the model is given a place to think before it answers.
        before: What is said before all.
    """
    told = tuple(_without_refused(heard))
    if not any(each.text.strip() and not each.is_idle for each in told if each.is_users or not _spoke(told)):
        return None
    known = open_specialists(view.settings.specialists) if specialists is None else specialists
    needed = tuple(each for each in delegate(told, known) if each.reads is None)
    if not needed:
        return None
    special = before + sections(needed)
    exchange = "\n".join(f"[{_day(each.at)}] {each.who}: {_quoted(each.text)}" for each in told)
    left = _MOST_TOKENS - view.count_tokens(view.prompt(NAME, records="", exchange=""))
    wanted = shaped(shape(NAME), needed, thinking=thinking)
    left -= view.count_tokens(json.dumps(shape(NAME)))
    shown: dict[str, str] = {}
    lines: list[str] = []
    for record in _nearest(told, scope, view):
        line = f"r{len(shown) + 1}: [{_day(record.updated_at)}] {_quoted(record.content)}"
        if (left := left - view.count_tokens(line) - 1) < 0:
            break
        shown[f"r{len(shown) + 1}"] = record.id
        lines.append(line)
    prompt = special + view.prompt(NAME, records="\n".join(lines) or "(none)", exchange=exchange)
    return Asked(prompt, told, shown, needed, wanted)


def _spoke(told: Sequence[Heard]) -> bool:
    return any(each.is_users for each in told)


def _without_refused(heard: Iterable[Heard]) -> Iterator[Heard]:
    heard = tuple(heard)
    refused = {
        each.source.message_id for each in heard if each.is_users and read_statements(each.text).refusal
    }
    is_answer = False
    for each in heard:
        if each.is_users:
            is_answer = bool(read_statements(each.text).refusal)
        is_one_turn = each.source.message_id is not None and each.source.message_id in refused
        if not is_answer and not is_one_turn:
            yield each


def _nearest(told: Sequence[Heard], scope: Scope, view: ReadStore) -> list[Record]:
    """The records that the exchange may be about, the best first, then the newest."""
    families = {family_for(kind, scope.agent_id, view.settings.namespaces) for kind in _KINDS}
    where = Filter(scope.user_id, families=tuple(sorted(families)), tasks=(scope.task,), kinds=_KINDS)
    found: dict[str, Hit] = {}
    asked = [each.text[:_MOST_SEARCHED] for each in told if each.is_users and not each.is_idle]
    for text in asked[-_MOST_QUERIES:]:
        vector = view.embed_query(text)
        name = view.embedder.fingerprint if vector is not None and view.embedder is not None else None
        for hit in view.search(Query(text, where, terms(text), vector, name, now=view.now), limit=_NEAREST):
            known = found.get(hit.record.id)
            if known is None or known.score < hit.score:
                found[hit.record.id] = hit
    nearest = [hit.record for hit in sorted(found.values(), key=lambda hit: -hit.score)]
    newest = (each for each in view.list(where, limit=_NEAREST) if each.id not in found)
    own = {content_hash(rule.content) for each in told for rule in each.ruled}  # written in this very turn
    others = (r for r in (*nearest, *newest) if r.content_hash not in own)
    return [r for r in others if r.is_visible(view.now) and len(r.content) <= _LONGEST_RECORD]


@dataclass(frozen=True, slots=True)
class Answered:
    """A model's answer, read: candidates by their messages, and the codes of refused items.

    `given_way` are the rules' candidates, by event and hash, that stand in the answer in other words.
    """

    candidates: tuple[tuple[Heard, Candidate], ...]
    refused: tuple[str, ...]
    given_way: frozenset[tuple[str | None, str]]


def answered(reply: object, asked: Asked, scope: Scope, view: ReadStore, *, by: str = "model") -> Answered:
    """The operations of an answer as candidates, of which each passes the guards; nonsense is refused.

    Args:
        by: Who answered, as records tell it.
    """
    where = Filter(scope.user_id, ids=tuple(asked.shown.values()))
    records = {each.id: each for each in view.list(where, limit=len(asked.shown))} if asked.shown else {}
    reader = _Reader(asked, scope, view, records, by)
    sifted = extract.sift(reply, check=reader.read)
    return reader.settled(sifted)


def by_functions(
    heard: Sequence[Heard],
    scope: Scope,
    view: ReadStore,
    *,
    specialists: Sequence[Specialist] | None = None,
) -> tuple[Answered, tuple[Specialist, ...]]:
    """Run the specialists that are functions on an exchange; returns their findings, and the names of those
    that were run.

    Args:
        specialists: None: those of the settings.
    """
    known = functions_of(view.settings.specialists) if specialists is None else specialists
    functions = tuple(each for each in known if each.reads is not None)
    if not functions:
        return Answered((), (), frozenset()), ()
    told = tuple(_without_refused(heard))
    needed = delegate(told, functions)
    every = [_by_function(each, told, scope, view) for each in needed]
    return Answered(
        tuple(pair for each in every for pair in each.candidates),
        tuple(code for each in every for code in each.refused),
        frozenset().union(*(each.given_way for each in every)),
    ), needed


def _by_function(by: Specialist, told: Sequence[Heard], scope: Scope, view: ReadStore) -> Answered:
    def read() -> list[dict[str, Any]]:
        assert by.reads is not None  # only functions are asked here
        found = by.reads([each for each in told if by.takes(each)])
        return [{**each, "by": by.key, "do": "add"} for each in islice(found, _MOST_FOUND)]

    found = view.attempt(f"specialist.{by.name}.{by.version}", read)
    return answered(found or [], Asked("", tuple(told), {}, (by,)), scope, view, by=by.key)


@dataclass
class _Reader:
    """Reads the operations of one answer; `made` has where each candidate came from."""

    asked: Asked
    scope: Scope
    view: ReadStore
    records: Mapping[str, Record]
    by: str = "model"
    made: dict[int, tuple[Heard, Sequence[Candidate]]] = field(default_factory=dict)

    def read(self, item: Mapping[Any, Any]) -> Candidate | None:
        """The candidate of an operation; None: it asks for nothing.

        Raises:
            Unusable: it does not pass a guard.
        """
        asks = read_claim(item, Operation)
        if asks.do == "nothing":
            return None
        record = self._record(asks)
        if asks.do == "delete" and record is not None:
            asks = asks.model_copy(update={"content": record.content})
        by = self._specialist(asks)
        heard = self._message_with(asks.quote or asks.content)
        if by is not None and not by.takes(heard):
            raise Unusable("not-heard-by-it")
        rules = [each for each in heard.ruled if _overlap(each.evidence, asks.quote or asks.content)]
        if asks.do != "delete":
            extract.refuse_instructions(asks.content)
            self._check_words(asks.content, heard, record)
        found = self._candidate(asks, heard, record, rules[0] if rules else None)
        if by is not None:
            found = replace(
                found,
                strategy=REVIEW if by.review else found.strategy,
                metadata={**found.metadata, "specialist": by.key},
            )
        if told := self._relations(asks, heard):
            found = replace(found, metadata={**found.metadata, RELATIONS: told})
        self.made[id(found)] = heard, rules
        return found

    def _relations(self, asks: Operation, heard: Heard) -> list[list[str]]:
        """The relations whose two ends the speaker has named; others are dropped."""
        if asks.do == "delete" or not any(each.adds == RELATIONS for each in self.asked.specialists):
            return []
        by = heard.source.source_class
        said = [each.key for each in self.asked.heard if each.source.source_class == by]
        return [
            [source, named.casefold().replace(" ", "_").replace("-", "_"), destination]
            for source, named, destination in asks.relations
            if all((key := _key(end)) and any(key in text for text in said) for end in (source, destination))
        ]

    def _specialist(self, asks: Operation) -> Specialist | None:
        """The specialist that proposes; None: the one whose prompt is the call's own.

        Raises:
            Unusable: nobody was asked for that.
        """
        if asks.do == "delete":
            return None
        every = [each for each in self.asked.specialists if not each.adds]
        named = next((each for each in every if each.is_special and each.key == asks.by), None)
        found = named or next((each for each in every if not each.is_special), None)
        if found is None or (asks.kind not in found.kinds and (named is not None or asks.kind in _SPECIAL)):
            raise Unusable("not-its-kind")
        return named

    def _record(self, asks: Operation) -> Record | None:
        if asks.do == "add":
            return None
        id_ = self.asked.shown.get((asks.id or "").strip(" []"), asks.id)
        if id_ not in self.asked.shown.values():
            raise Unusable("unknown-id")
        if id_ is None or id_ not in self.records:
            raise Unusable("changed-since")
        return self.records[id_]

    def _message_with(self, quote: str) -> Heard:
        """The message with the quote: the user's if it is there, else that of the least trusted."""
        parts = [key for part in quote.replace("…", "...").split("...") if (key := _key(part))]
        least = _LEAST_QUOTE_ZH if has_cjk(quote) else _LEAST_QUOTE
        if sum(map(len, parts)) < least:
            raise Unusable("no-quote")
        found = [each for each in self.asked.heard if all(part in each.key for part in parts)]
        if not found:
            is_pasted = any(all(p in _key(each.text) for p in parts) for each in self.asked.heard)
            raise Unusable("pasted" if is_pasted else "no-quote")
        order = ("user", "tool", "agent", "system")
        return min(found, key=lambda each: order.index(each.source.source_class))

    def _check_words(self, content: str, heard: Heard, record: Record | None) -> None:
        """Raise `Unusable` for words that nobody said, and for others' words that are given as the user's."""
        known = [e for e in self.asked.heard if not heard.is_users or e.source.source_class != "tool"]
        if record is not None:
            known.append(Heard(record.content, record.source, "", record.updated_at))
        if (why := _invented(content, known, heard.at)) is not None:
            raise Unusable(why)
        if not heard.is_users:
            return
        words = set(terms(content))
        own = {term for each in known if each.is_users for term in terms(each.text)}
        own |= set(terms(record.content)) if record is not None else set()
        others = (set(terms(each.text)) for each in self.asked.heard if not each.is_users)
        if len(words & own) < _OWN * len(words) and any(
            len(words & theirs) >= _ANOTHERS * len(words) for theirs in others
        ):
            raise Unusable("anothers-words")

    def _candidate(
        self, asks: Operation, heard: Heard, record: Record | None, rule: Candidate | None
    ) -> Candidate:
        kind = asks.kind if record is None else record.kind
        by = heard.source.source_class
        if by == "tool" and extract.describe(asks.content, source=heard.source).kind == "user-profile":
            kind = "user-profile"  # whatever the model calls it, so that it goes to review
        if by == "agent" and kind in ("user-profile", "identity"):
            raise Unusable("about-the-user-by-agent")
        evidence = rule.evidence if rule is not None else asks.quote or asks.content
        told = extract.describe(asks.content, kind, source=heard.source)
        if (told.subject is None or told.attribute is None) and asks.named:
            attribute = f"{asks.attribute} in {asks.scope}" if asks.scope else asks.attribute
            told = replace(told, subject=asks.subject, attribute=attribute, value=asks.value)
        found = replace(
            told,
            content=asks.content,
            confidence=asks.confidence,
            evidence=evidence,
            ref_id=heard.ref_id,
            event=None if asks.do == "add" else "UPDATE" if asks.do == "update" else "DELETE",
            target=None if record is None else record.id,
        )
        return extract.noted(found, by=self.by)

    # --- what the rules found in the same sentences

    def settled(self, sifted: extract.Extracted) -> Answered:
        """All candidates, each sentence told once: by the model, or by the rule where the model says less."""
        kept: list[tuple[Heard, Candidate]] = []
        refused, given_way = list(sifted.unkept), set[tuple[str | None, str]]()
        taken: set[str] = set()
        made = [(each, *self.made[id(each)]) for each in sifted.candidates]
        for found, heard, rules in made:
            changes = found.event in ("UPDATE", "DELETE")
            ruled = [each for each in rules if changes or each.event != "DELETE"]
            if len(ruled) == 1 and sum(ruled[0] in others for _, _, others in made) == 1:
                found = _about_as(ruled[0], found)  # noqa: PLW2901
            beside = [each.content for each, _, others in made if any(rule in others for rule in ruled)]
            there = [] if changes else [self._known_or_code(rule, heard) for rule in ruled]
            if not changes and any(_loses(rule.content, beside) for rule in ruled):
                refused.append("says-less")
                continue
            if why := next((each for each in there if isinstance(each, str)), None):
                refused.append(why)
                continue
            given_way |= {(rule.event, content_hash(rule.content)) for rule in ruled}
            if changes:
                there = [self._known_or_code(rule, heard) for rule in ruled if rule.event != "DELETE"]
            stored = [each for each in there if isinstance(each, Record) and each.id not in taken]
            taken |= {each.id for each in stored}
            same = [each for each in stored if each.content_hash == content_hash(found.content)]
            if not changes and stored and not same:
                first = stored.pop(0)
                kept.append((heard, replace(found, kind=first.kind, target=first.id)))
            elif changes or not same:
                kept += ((heard, each) for each in self._without_double(found))
            for each in stored:
                if each not in same and each.id != found.target:
                    gone = replace(found, content=each.content, kind=each.kind)
                    kept.append((heard, replace(gone, event="DELETE", target=each.id)))
        return Answered(tuple(kept), tuple(refused), frozenset(given_way))

    def _without_double(self, found: Candidate) -> Iterator[Candidate]:
        """The candidate; where another record has an update's new words, the old one is taken back."""
        if found.event == "UPDATE" and found.target is not None:
            same = self._with_words(content_hash(found.content), statuses=("active",))
            if any(each.id != found.target for each in same):
                yield replace(found, content=self.records[found.target].content, event="DELETE")
                return
        yield found

    def _known_or_code(self, rule: Candidate, heard: Heard) -> Record | str | None:
        """The record with the rule's words, or the code of why it was set aside."""
        found = self._with_words(content_hash(rule.content), statuses=None)
        active = next((each for each in found if each.status == "active"), None)
        if active is not None or not found:
            return active
        if any(each.status == "pending" for each in found):
            return "waits-for-review"
        is_later = any(
            max(e.updated_at, e.valid_to or 0.0) > heard.at for e in found if e.status in _SET_ASIDE
        )
        return "set-aside-since" if is_later else None

    def _with_words(self, hash_: str, *, statuses: Any) -> Sequence[Record]:
        scope = self.scope
        where = Filter(scope.user_id, tasks=(scope.task,), statuses=statuses, content_hash=hash_)
        return [each for each in self.view.list(where, limit=_NEAREST) if each.layer != "history"]


def _key(text: str) -> str:
    """The letters and figures of a text, for looking for a quote in it."""
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _about_as(rule: Candidate, found: Candidate) -> Candidate:
    """The candidate with the subject that the rules would give it, so that they match later statements."""
    if rule.subject is None or rule.attribute is None:
        return found
    value = {} if rule.value is None else {"value": rule.value}
    metadata = {**found.metadata, **value}
    return replace(
        found,
        subject=rule.subject,
        attribute=rule.attribute,
        value=rule.value,
        tags=rule.tags,
        metadata=metadata,
    )


def _overlap(one: str, other: str) -> bool:
    one, other = _key(one), _key(other)
    return bool(one and other) and (one in other or other in one)


def _loses(said: str, told: Sequence[str]) -> bool:
    """Whether statements leave out a number or a name of the sentence that they tell."""
    one, others = Slots(said), [Slots(each) for each in told]
    text = _key(" ".join(told))
    numbers = {value for each in others for value, _ in each.numbers}
    lost = {value for value, _ in one.numbers} - numbers
    return any(value not in text for value in lost) or any(_key(each) not in text for each in one.identifiers)


def _invented(content: str, known: Sequence[Heard], at: float) -> str | None:
    """The code of an invented number, date or name in a statement; None: nothing is invented."""
    mine = Slots(content)
    text = " ".join(f"{each.key} {each.named}" for each in known)
    numbers = {value for each in known for value, _ in each.slots.numbers}
    if any(value not in numbers and _key(value) not in text for value, _ in mine.numbers):
        return "invented-number"
    if mine.dates and not mine.dates <= {date for each in known for date in each.slots.dates}:
        ranges = [when for each in known for when in named_dates(each.text, each.at)]
        days = [(each.at - each.at % 86_400, each.at - each.at % 86_400 + 86_400) for each in known]
        spans = [*((when.start, when.end) for when in ranges), *days]
        for when in named_dates(content, at):
            if not any(when.start < end and start < when.end for start, end in spans):
                return "invented-date"
    names = {name for name in (*mine.identifiers, *_first_names(content)) if name not in _NOT_NAMES}
    return "invented-name" if any(_key(name) not in text for name in names) else None


def _first_names(content: str) -> Iterator[str]:
    """Words that must be names by their place alone, common words left out."""
    text = normal(content)
    for match in _NAMES["begins_with"].finditer(text):
        yield from (each.lower() for each in match["name"].split() if not _is_word(each.lower()))
    for match in _NAMES["called_zh"].finditer(text):
        if not is_ordinary(match["name"][:2]):
            yield match["name"]


def _is_word(word: str) -> bool:
    return word.endswith("ing") or is_ordinary(word) or is_ordinary(word.removesuffix("s"))


def _day(at: float) -> str:
    return time.strftime("%Y-%m-%d %a", time.gmtime(max(at, 0.0)))


def _quoted(text: str) -> str:
    """Quote a text so that it stays on its line of the prompt."""
    return strip_notes(text).replace("\n", "\n  ")
