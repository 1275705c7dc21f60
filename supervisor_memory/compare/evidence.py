"""Evidence that two texts are about the same thing, and that the later text replaces the earlier.

`evidence` is a row of named numbers, most of them in [0, 1], which `verdict` weighs. Each can be read off the
two texts: common words, differing slots (`slots`), places of words that only one text has, and whether the
later text announces a change. Nothing here knows a domain.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import lru_cache, wraps
from typing import Any, TypeVar

from supervisor_memory.compare.reading import Reading, is_number, read, tokens_of
from supervisor_memory.compare.slots import (
    OPPOSITE,
    UNIT_TERMS,
    WAYS,
    Slots,
    dates_differ,
    numbers_differ,
    one_thing,
)
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import stem
from supervisor_memory.understand.subject import of_another, same_attribute

Evidence = Mapping[str, float]
T = TypeVar("T")

_TEMPLATE = 0.5
"""The share of common words, in order, from which two texts count as one sentence with words exchanged."""
_ONE_SENTENCE = 0.75  # the share from which nothing but a word or two was exchanged
_QUALIFIER = 2  # words, or Chinese characters
_SAME_OBJECT = 0.6  # the share of words in common from which one thing is liked and disliked
_TURNED = 2  # words exchanged with it, up to which a sentence is only turned into its opposite
_HEAD = 0.34
_DROPPED = 0.5
_FAIR = 0.15  # the share of the words of a topic by which it is another
_SEVERAL = 2
_SHORT = 7  # tokens of a sentence that says one thing
_DOTS = 3  # in an address of a network
_SLOTS = ("numbers", "dates", "identifiers", "labels")
_LEXICON = lexicon("pairs")
_EMPTY_ZH = _LEXICON.words("empty_zh")
_SORTS = dict.fromkeys(("min", "day", "week", "month", "year"), "time") | dict.fromkeys(
    ("mile", "km"), "length"
)
_SORTS |= dict.fromkeys(("yuan", "usd", "eur"), "money")
_MEASURES = dict(_LEXICON.patterns("measures"))
_OTHER_SIDES = frozenset(map(frozenset, _LEXICON.listed("other_sides")))


def rarity(readings: Collection[Reading]) -> Mapping[str, float]:
    """The weight of each term: higher for a term that few of the compared texts have."""
    seen = Counter(term for reading in readings for term in reading.terms)
    return {term: math.log(1 + len(readings) / count) for term, count in seen.items()}


@dataclass(frozen=True, slots=True)
class Exchange:
    """Words of the earlier text (`mine`) and the later one (`yours`) in the same place; either may be empty.

    `start` is the relative position, 0 to 1, in the text where the words come later. `is_in_subject` says
    that they are part of the subject in both texts: the window of apollo, and of gemini. `start_mine` and
    `start_yours` count the tokens before them; `is_last` says that nothing follows in either text.
    """

    mine: tuple[str, ...]
    yours: tuple[str, ...]
    start: float
    is_in_subject: bool = False
    start_mine: int = 0
    start_yours: int = 0
    is_last: bool = False

    @property
    def is_at_head(self) -> bool:
        return self.start < _HEAD


@dataclass(frozen=True, slots=True)
class Pair:
    """Two texts side by side, the earlier one first.

    `ratio` is the share of words that both have in the same order. `is_template` says that they are one
    sentence with words exchanged; then these words decide. Other texts are weighed by their common words.
    """

    old: Reading
    new: Reading
    exchanges: tuple[Exchange, ...]
    ratio: float
    _found: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_template(self) -> bool:
        return self.ratio >= _TEMPLATE

    @property
    def announces(self) -> bool:
        """Whether the later text announces a change or a correction, and the earlier one no change."""
        return (self.new.announces or self.new.corrects) and not self.old.announces

    @property
    def replaced(self) -> list[Exchange]:
        """The exchanges with words on both sides."""
        return [each for each in self.exchanges if each.mine and each.yours]


def of_each_pair(find: Callable[[Pair], T]) -> Callable[[Pair], T]:
    """What is found in a pair, once for each: several judges ask."""

    @wraps(find)
    def known(pair: Pair) -> T:
        found: dict[str, T] = pair._found
        if find.__name__ not in found:
            found[find.__name__] = find(pair)
        return found[find.__name__]

    return known


@lru_cache(maxsize=512)  # of one candidate and its rivals, which are read in several places
def beside(old: Reading, new: Reading) -> Pair:
    """Two texts side by side."""
    a, b = old.tokens, new.tokens
    if not a or not b:
        return Pair(old, new, (), 0.0)
    common = sum(min(old.counts[each], new.counts[each]) for each in old.counts.keys() & new.counts.keys())
    if 2 * common < _TEMPLATE * (len(a) + len(b)):
        return Pair(old, new, (), 0.0)  # whatever their order
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    found = (
        Exchange(
            _own(a[i:j], b, beside=b[k:m]),
            _own(b[k:m], a, beside=a[i:j]),
            max(i / len(a), k / len(b)),
            is_in_subject=j <= old.subject and m <= new.subject,
            start_mine=i,
            start_yours=k,
            is_last=j == len(a) and m == len(b),
        )
        for tag, i, j, k, m in matcher.get_opcodes()
        if tag != "equal"
    )
    return Pair(old, new, tuple(each for each in found if each.mine or each.yours), matcher.ratio())


def _own(words: Sequence[str], others: Collection[str], *, beside: Sequence[str]) -> tuple[str, ...]:
    """Drop the words that merely moved; a number in place of another number stays."""
    is_exchanged = any(map(is_number, beside))
    return tuple(word for word in words if word not in others or (is_exchanged and is_number(word)))


def evidence(pair: Pair, *, near: float | None, lead: float, weights: Mapping[str, float]) -> Evidence:
    """The evidence of a pair as named numbers; a missing name counts 0.

    Args:
        near: The nearness of their vectors, in [0, 1] (`nearness`); None without vectors.
        lead: The nearness minus the best of the other compared texts; positive for the nearest text alone.
        weights: The weight of each term (`rarity`); missing terms weigh 1.
    """
    old, new = pair.old, pair.new
    facts = {"any": 1.0, **of_slots(old.slots, new.slots)}
    if near is not None:
        facts |= {
            "near": near,
            "near squared": near * near,
            "lead": max(0.0, lead),
            "behind": max(0.0, -lead),
        }
    quiet = "" if pair.announces else "still " if new.announces else "quiet "
    facts |= _told_changes(old, new)
    if not pair.is_template:
        facts |= _likeness(old, new, weights)
        return {f"free: {name}": value for name, value in facts.items() if value}
    for name in _exchanged(pair):
        facts |= {name: 1.0, f"{quiet}{name}": 1.0}
    facts["one value"] = float("one exchanged" in facts and old.states_one and new.states_one)
    facts |= {"ratio": pair.ratio, "begins in new": share(old.first, new.terms)}
    facts |= {"begins in old": share(new.first, old.terms)}
    return {f"template: {name}": value for name, value in facts.items() if value}


@of_each_pair
def apart(pair: Pair) -> str:
    """The code of why two texts are about different things, however alike they are; "" if nothing says so.

    "label": line 2 and line 4, the code of 3 and of 4. "period": 2014 and 2015. "direction": over and under.
    "rate": the same figure a month, and a year. "opposite": gross and net, of two subjects. "identifier": one
    path or column in place of another. "subject": the sentences begin with different things. "person": they
    are about different people. "restriction": only one of them says "only" or "except". "qualifier": the
    later one begins with a narrower thing. "another": something else holds as well. "two-values": both the
    subject and the value have changed. A text that announces a change is kept apart by few, see `_of_two`.
    """
    if is_settled(pair):
        return ""
    return _of_two(pair) or ("" if pair.announces else _unannounced(pair))


def _of_two(pair: Pair) -> str:
    """The codes that keep texts apart even if the later one announces a change."""
    old, new = pair.old.slots, pair.new.slots
    is_late = len(pair.replaced) == 1 and not pair.replaced[0].is_at_head
    handed_over = is_late and pair.announces and _LEXICON["handed_over"].search(pair.new.text)
    if (of_another(pair.old.people, pair.new.people) and not handed_over) or _begins_with_somebody(pair):
        return "person"
    if old.labels and new.labels and not old.labels & new.labels and not _moves_to_label(pair):
        return "label"
    if len(pair.old.numbered) == len(pair.new.numbered) and pair.old.numbered != pair.new.numbered:
        return "label"
    if old.years and new.years and not old.years & new.years and not pair.new.corrects:
        return "period"
    turned = bool(old.directions and new.directions and not old.directions & new.directions)
    if turned and (numbers_differ(old.numbers, new.numbers) or not pair.announces):
        return "direction"
    is_set_right = (
        pair.announces
        and len(pair.replaced) == 1
        and not any(each.mine and not each.yours for each in pair.exchanges)
    )  # all of the earlier text again, but for one word
    if pair.is_template and old.is_opposite(new) and _is_of_parts(pair) and not is_set_right:
        return "opposite"
    if _is_of_another_topic(pair):
        return "subject"
    return "opposite" if not pair.announces and _is_on_the_other_side(pair) else ""


def _unannounced(pair: Pair) -> str:
    old, new = pair.old.slots, pair.new.slots
    another_number = numbers_differ(old.numbers, new.numbers)
    another_date = bool(old.dates - new.dates and new.dates - old.dates)
    another_rate = bool(new.rates) and _differ(old.rates, new.rates)
    if another_rate and pair.is_template and old.numbers & new.numbers:
        return "rate"
    if _is_of_other_days(pair) or (another_number and _is_of_a_part(old, new)):
        return "period"
    if pair.is_template and _is_of_another_scope(pair):
        return "scope"
    if _turns_a_way(pair):
        return "direction"
    if another_number + another_date + another_rate > 1 or (another_number and _is_another_measure(pair)):
        return "two-values"
    if _defines_another(pair):
        return "subject"
    if _likes_another(pair) or _is_done_otherwise(pair) or _are_of_each_other(pair):
        return "another"
    if _tells_otherwise_of_it(pair):
        return "another"
    if another_number and _has_another_subject(pair):
        return "two-values"
    if not pair.is_template:
        return "opposite" if old.is_opposite(new) else "another" if _does_another(pair) else ""
    if _is_restricted(pair):
        return "restriction"
    return _exchanged_subject(pair) or _exchanged_much(pair, another_number=another_number)


def _is_another_measure(pair: Pair) -> bool:
    """Whether two texts give figures of different sorts: minutes and a share, an average and a median."""
    old, new = pair.old, pair.new
    mine, yours = ({_SORTS.get(unit, unit) for _, unit in each.slots.numbers if unit} for each in (old, new))
    ours, theirs = (
        {name for name, found in _MEASURES.items() if found.search(each.text)} for each in (old, new)
    )
    return _differ(mine, yours) or _differ(ours, theirs)


def _is_of_another_topic(pair: Pair) -> bool:
    """Whether two texts share only a thing that one is about and the other mentions: the dashboard is fed by
    a table, the table is rebuilt by a job."""
    old, new = pair.old, pair.new
    common = set(old.tokens) & set(new.tokens)
    return bool(common) and any(
        one.topic and other.topic and one.topic.isdisjoint(other.tokens) and common <= other.topic
        for one, other in ((old, new), (new, old))
    )


def _are_of_each_other(pair: Pair) -> bool:
    """Whether each text is about a thing that the other mentions, and they share nothing else: invoices are
    approved by Finance, Finance gets the invoices from SAP."""
    mine, yours = pair.old.topic, pair.new.topic
    common = set(pair.old.tokens) & set(pair.new.tokens)
    is_crossed = mine <= common and yours <= common and mine.isdisjoint(yours)
    return bool(mine and yours) and is_crossed and common <= mine | yours and not is_told_otherwise(pair)


def _is_done_otherwise(pair: Pair) -> bool:
    """Whether different acts are done to the same thing: the export is read by Ada, written by Bob."""
    mine, yours = (_LEXICON["done_by"].search(each.text) for each in (pair.old, pair.new))
    return mine is not None and yours is not None and stem(mine["what"]) != stem(yours["what"])


def _is_on_the_other_side(pair: Pair) -> bool:
    """Whether one character, not the last, was exchanged for its opposite: 排练前开门, 排练后开门."""
    replaced = pair.replaced
    if len(pair.exchanges) != 1 or not replaced or replaced[0].is_last:
        return False
    return frozenset("".join((*replaced[0].mine, *replaced[0].yours))) in _OTHER_SIDES


def _moves_to_label(pair: Pair) -> bool:
    """Whether the later text announces another label as its last word: moved to room 20."""
    last = pair.exchanges[-1] if pair.exchanges else None
    is_alone = last is not None and pair.replaced == [last]
    return is_alone and pair.announces and last is not None and last.is_last and _is_of_numbers(last)


def _begins_with_somebody(pair: Pair) -> bool:
    """Whether one text is about the user and the other begins with a person or thing: Tom, my laptop."""
    old, new = pair.old.people, pair.new.people
    subjects = {old.subject, new.subject}
    if not pair.is_template or not subjects & {"i", "we"}:
        return False
    if "other" in subjects:
        return True
    for one, other, words in (
        (old, pair.new, [each.yours for each in pair.exchanges if not each.start_yours]),
        (new, pair.old, [each.mine for each in pair.exchanges if not each.start_mine]),
    ):
        if one.subject in ("i", "we") and other.people.subject == "" and any(words):
            return _LEXICON["names_somebody"].match(other.text) is not None
    return False


def _is_of_other_days(pair: Pair) -> bool:
    """Whether two texts begin with different quarters, months or days: on Mondays, on Tuesdays."""
    if not pair.is_template:
        return False
    mine, yours = ({date for date in each.opening.dates if ":" not in date} for each in (pair.old, pair.new))
    return _differ(mine, yours)


def _is_of_a_part(old: Slots, new: Slots) -> bool:
    """Whether one text's time is part of the other's: January 2013, and 2013."""
    return bool(old.dates and new.dates) and (old.dates < new.dates or new.dates < old.dates)


def _is_of_another_scope(pair: Pair) -> bool:
    """Whether two texts give the same figure for two periods, or deny a value for a narrower place: 4 % in
    the first quarter, in the second; not in the B2B shop."""
    old, new = pair.old, pair.new
    shared = old.slots.numbers | (old.slots.dates & new.slots.dates)
    another_day = _differ(old.slots.dates - new.slots.dates, new.slots.dates - old.slots.dates)
    is_one_figure = bool(shared) and old.slots.numbers == new.slots.numbers
    if is_one_figure and (another_day or any(map(_is_of_calendar, pair.replaced))):
        return True
    found = _LEXICON["scoped"].search(new.text)
    if found is None or old.slots.is_negative == new.slots.is_negative:
        return False
    return set(tokens_of(found["where"])).isdisjoint(old.tokens)


def _is_of_calendar(exchange: Exchange) -> bool:
    """Whether a day, month or quarter stands in either place of an exchange."""
    words = (word for word in (*exchange.mine, *exchange.yours) if not is_number(word))
    return any(map(_LEXICON["calendar"].fullmatch, words))


def _turns_a_way(pair: Pair) -> bool:
    """Whether only a small word was exchanged that tells the way: to the office, from the office."""
    mine, yours = pair.old.text.casefold().split(), pair.new.text.casefold().split()
    if len(mine) != len(yours):
        return False
    others = [(a, b) for a, b in zip(mine, yours, strict=True) if a != b]
    return len(others) == 1 and _LEXICON.words("ways") >= set(others[0])


def _is_restricted(pair: Pair) -> bool:
    """Whether two texts are restricted differently: only managers, except Paris, or not at all."""
    old, new = pair.old, pair.new
    if (old.slots.limits ^ new.slots.limits) == {"only"} and pair.ratio < _ONE_SENTENCE:
        return old.opening.limits != new.opening.limits
    return old.slots.limits != new.slots.limits


def _is_of_parts(pair: Pair) -> bool:
    """Whether the opposites name two parts of a thing, not two ways to do something, nor the last word."""
    old, new = pair.old.slots.sides, pair.new.slots.sides
    named = {side for side in old - new if OPPOSITE[side] in new - old} - WAYS
    is_last = len(pair.exchanges) == 1 and pair.exchanges[0].is_last
    return bool(named) and not is_last


def _exchanged_subject(pair: Pair) -> str:
    replaced = pair.replaced
    if any(any(map(_is_code, each.mine)) and any(map(_is_code, each.yours)) for each in replaced):
        return "identifier"
    other_attitude = pair.old.attitude != pair.new.attitude
    if any((each.is_at_head or each.is_in_subject) and not _is_of_numbers(each) for each in replaced):
        return "" if len(replaced) == 1 and other_attitude else "subject"
    added = [each for each in pair.exchanges if each.yours and not each.mine]
    narrower = any(map(_is_qualifier, added))
    if (added and any(map(_is_of_numbers, replaced))) or (narrower and len(added) > 1):
        return "qualifier"
    if replaced and pair.old.attitude is not None and not other_attitude:
        return "another"
    return "another" if _is_one_of_many(pair, replaced) else ""


def _likes_another(pair: Pair) -> bool:
    """Whether the attitudes differ because they are to different things: likes capers, hates olives."""
    old, new = pair.old, pair.new
    if old.attitude is None or new.attitude is None or old.attitude == new.attitude:
        return False
    return bool(old.liked - new.liked and new.liked - old.liked) and not turns(pair)


def _tells_otherwise_of_it(pair: Pair) -> bool:
    """Whether two texts tell different things of what they name first: Tom's age, and his job."""
    return _differ(pair.old.told_of_it, pair.new.told_of_it)


def _has_another_subject(pair: Pair) -> bool:
    """Whether each text's subject has a word that the other text lacks."""
    old, new = pair.old, pair.new
    mine, yours = set(old.tokens[: old.subject]), set(new.tokens[: new.subject])
    return bool(mine - set(new.tokens) and yours - set(old.tokens))


def _defines_another(pair: Pair) -> bool:
    """Whether both texts define something, and not the same thing."""
    mine, yours = pair.old.defined, pair.new.defined
    return bool(mine - yours and yours - mine)


def _is_one_of_many(pair: Pair, replaced: Sequence[Exchange]) -> bool:
    """Whether both texts may hold at once: allergic to peanuts, and to shellfish; not two team leaders."""
    return (
        len(replaced) == 1
        and len(pair.exchanges) == 1
        and not _is_of_numbers(replaced[0])
        and not (pair.old.slots.dates and pair.new.slots.dates)
        and not (pair.old.states_one and pair.new.states_one and not _LEXICON["several"].match(pair.new.text))
    )


def _does_another(pair: Pair) -> bool:
    """Whether the same person does the same with another thing: I take vitamins, I take iron."""
    old, new = pair.old, pair.new
    if not old.people.subject or old.people.subject != new.people.subject:
        return False
    if max(len(old.tokens), len(new.tokens)) >= _SHORT or (old.subject and new.subject):
        return False
    verb = next((n for n, (a, b) in enumerate(zip(old.tokens, new.tokens, strict=False)) if a != b), _SHORT)
    mine, yours = old.tokens[verb:], new.tokens[verb:]
    is_verb = verb > (old.tokens[:1] == ("我",)) or bool(
        _LEXICON["have"].match(old.text) and _LEXICON["have"].match(new.text)
    )
    return is_verb and bool(mine and yours) and mine[0] not in yours and yours[0] not in mine


def _exchanged_much(pair: Pair, *, another_number: bool) -> str:
    old, new, replaced = pair.old.slots, pair.new.slots, pair.replaced
    mine, yours = [w for each in replaced for w in each.mine], [w for each in replaced for w in each.yours]
    if min(sum(map(is_number, mine)), sum(map(is_number, yours))) > 1 or any(map(_is_of_units, replaced)):
        return "two-values"
    if any(map(_is_of_another_time, replaced)):
        return "two-values"
    if another_number and bool(new.identifiers - old.identifiers) != bool(old.identifiers - new.identifiers):
        return "qualifier"
    if another_number and not any(map(_is_of_numbers, replaced)):
        return "two-values"
    turned = old.is_negative != new.is_negative
    if replaced and turned and (len(pair.exchanges) > 1 or max(len(mine), len(yours)) > _TURNED):
        return "two-values"
    return ""


def same_but_for_case(old: Reading, new: Reading) -> bool:
    """Whether two texts differ only in the case of a word for which case counts: `abC`, `abc`."""
    return [w.casefold() for w in old.tokens] == [w.casefold() for w in new.tokens]


@of_each_pair
def turns(pair: Pair) -> bool:
    """Whether an attribute has a new value, a thing a new name, or the attitude to a thing has changed."""
    old, new = pair.old, pair.new
    if is_settled(pair) or _is_renamed(pair):
        return True
    if of_another(old.people, new.people):
        return False
    if old.attitude is None or new.attitude is None or old.attitude == new.attitude:
        return False
    common = len(old.liked & new.liked)
    return common > 0 and common >= _SAME_OBJECT * max(len(old.liked), len(new.liked))


@of_each_pair
def of_other_things(pair: Pair) -> str:
    """The code of why a text leaves another as it is, whatever change it tells; "" if nothing says so.

    "unreal": it is only supposed or wished. "denied": what it says is over is not what the other text says.
    "scope": both begin with where they hold, and elsewhere. "person": one is about the user or what is the
    user's, and the other about somebody else. "topic": both what is told of and what is told are exchanged.
    """
    if pair.new.is_unreal and not pair.old.is_unreal:
        return "unreal"
    if _denies_another(pair):
        return "denied"
    if _differ(pair.old.where, pair.new.where):
        return "scope"
    if _tells_of_somebody_else(pair):
        return "person"
    return "topic" if _tells_of_another(pair) else ""


def _tells_of_another(pair: Pair) -> bool:
    """Whether both what is told of and what is told of it differ: the board meets on Tuesdays, the council
    on Thursdays. With one of both in common it may be a value that has changed."""
    old, new = pair.old, pair.new
    mine, yours = set(old.tokens), set(new.tokens)
    if not (mine - old.about - yours and yours - new.about - mine):
        return False
    return _lacks_topic(yours, old.about, new.about) and _lacks_topic(mine, new.about, old.about)


def _lacks_topic(words: Set[str], topic: Set[str], own: Set[str]) -> bool:
    """Whether a text with a topic of its own lacks a fair part of another. One that it tells of in another
    place may be the same thing seen from another side."""
    is_told_of = 2 * len(topic & (words - own)) > len(topic)
    return len(topic - words) >= _FAIR * max(1, len(topic)) and not is_told_of


def _tells_of_somebody_else(pair: Pair) -> bool:
    """Whether one text begins with what is the user's and the other with what is another's: I live, my
    brother moved; my flight, Tom's flight."""
    owners = {pair.old.owner, pair.new.owner}
    if "i" in owners and "" not in owners and len(owners) > 1:
        return True
    leads = {each.subject: each for each in (pair.old.people, pair.new.people)}
    other = leads.get("other")
    return other is not None and not (other.is_i or other.is_we) and not leads.keys().isdisjoint(("i", "we"))


def _denies_another(pair: Pair) -> bool:
    """Whether a denial has another word where the text it might end has its own: we sell apples, we no longer
    sell pears."""
    old, new = pair.old, pair.new
    if not pair.is_template or new.corrects or not new.is_one_clause:
        return False
    is_denial = new.slots.is_negative and not old.slots.is_negative
    return is_denial and any(not each.is_at_head for each in pair.replaced)


@of_each_pair
def is_settled(pair: Pair) -> bool:
    """Whether the later text gives an attribute another value, says that the earlier value is over, or tells
    the earlier one again but for one value, with a reason."""
    return gives_another_value(pair) or takes_over(pair) or _tells_again(pair)


def _tells_again(pair: Pair) -> bool:
    """Whether a clause of the later text repeats the earlier text with another value, and the rest says why:
    "the regulator made us tighten it: a dropped call is one that ends within 10 seconds"."""
    clauses = pair.new.clauses
    if len(clauses) < _SEVERAL or any(map(_LEXICON["scope"].match, clauses)):
        return False
    is_told = pair.new.announces or pair.new.corrects
    pairs = [beside(pair.old, read(each)) for each in clauses]
    again = [each for each in pairs if each.ratio >= _TEMPLATE]
    return len(again) == 1 and _has_one_other_value(again[0], is_told=is_told)


def _has_one_other_value(pair: Pair, *, is_told: bool) -> bool:
    if (
        exchanges_two(pair)
        or not pair.replaced
        or pair.replaced[0].is_at_head
        or pair.replaced[0].is_in_subject
    ):
        return False
    if _of_two(pair) or not (is_told or takes_place(pair)):
        return False
    return is_told or not _unannounced(pair)


def gives_another_value(pair: Pair) -> bool:
    """Whether both texts state the same attribute, with different values."""
    old, new = pair.old, pair.new
    return same_attribute(old.states, new.states, is_told=new.announces or new.corrects)


def why_instead(pair: Pair) -> str:
    """The code of what tells that the later text replaces the earlier one, told in the audit.

    "attribute": the same attribute has another value. "over": the earlier value is said to be over.
    "told-again": the same sentence with another value. "name", "attitude": a thing has a new name, or is
    liked otherwise. "value": another number, date, name, or a denial. "weighed": the regression alone.
    """
    if gives_another_value(pair):
        return "attribute"
    if takes_over(pair):
        return "over"
    if _tells_again(pair):
        return "told-again"
    if _is_renamed(pair):
        return "name"
    if turns(pair):
        return "attitude"
    return "value" if takes_place(pair) else "weighed"


def states_the_same(pair: Pair) -> bool:
    """Whether both texts state the same value for the same attribute and holder, and nothing else."""
    return pair.old.stated is not None and pair.old.stated == pair.new.stated


def dropped(pair: Pair) -> float:
    """How much of the ended things in the later text the earlier text names, in [0, 1]."""
    named = pair.new.dropped - pair.old.dropped
    return len(named & set(pair.old.tokens)) / len(named) if named else 0.0


def takes_over(pair: Pair) -> bool:
    """Whether the later text ends the earlier value and shares another word: "I sold the Panda and drive a
    Skoda" after "I drive a Panda"."""
    old, new = pair.old, pair.new
    if dropped(pair) < _DROPPED or of_another(old.people, new.people):
        return False
    return bool((set(old.tokens) & set(new.tokens)) - new.dropped)


def _is_renamed(pair: Pair) -> bool:
    """Whether the later text gives the same thing a new name: our auditor is Mazars since January."""
    if not pair.announces:
        return False
    mine, yours = (_LEXICON["is_named"].fullmatch(each.text) for each in (pair.old, pair.new))
    if mine is None or yours is None:
        return False
    same = mine["what"].casefold() == yours["what"].casefold()
    return (
        same
        and mine["name"].casefold() != yours["name"].casefold()
        and not of_another(pair.old.people, pair.new.people)
    )


def shares_words(pair: Pair) -> bool:
    """Whether two texts share a word that is no number, no date, and not empty: without vectors, nothing
    less shows a paraphrase."""
    common = pair.old.terms & pair.new.terms
    return any(
        not is_number(term) and not _LEXICON["calendar"].fullmatch(term) and not _EMPTY_ZH.issuperset(term)
        for term in common
    )


def shares_a_figure_alone(pair: Pair) -> bool:
    """Whether two differently worded texts share only a figure, its unit, and dates: logs are kept for 30
    days, leave is asked for 30 days ahead."""
    old, new = pair.old.slots, pair.new.slots
    if pair.is_template or len(old.numbers & new.numbers) != 1 or old.directions & new.directions:
        return False  # "over 30 days" says more
    return all(map(_is_of_figures, pair.old.terms & pair.new.terms))


def _is_of_figures(term: str) -> bool:
    return is_number(term) or term in UNIT_TERMS or _LEXICON["calendar"].fullmatch(term) is not None


def things_in_common(pair: Pair, *, most: int) -> int:
    """Count the runs of words in common, up to `most`; runs of numbers and dates alone do not count."""
    mine, yours, found = list(pair.old.tokens), list(pair.new.tokens), 0
    while found < most:
        block = SequenceMatcher(None, mine, yours, autojunk=False).find_longest_match()
        if not block.size:
            break
        run = mine[block.a : block.a + block.size]
        found += not all(is_number(word) or _LEXICON["calendar"].fullmatch(word) for word in run)
        del mine[block.a : block.a + block.size]
        del yours[block.b : block.b + block.size]
    return found


def exchanges_two(pair: Pair) -> bool:
    """Whether a figure or day was exchanged along with a word: hay on Mondays, oats on Fridays."""

    def kinds(words: Sequence[str]) -> set[bool]:
        return {bool(is_number(word) or _LEXICON["calendar"].fullmatch(word)) for word in words}

    mine = [word for each in pair.replaced for word in each.mine]
    yours = [word for each in pair.replaced for word in each.yours]
    return len(pair.replaced) > 1 or len(kinds(mine) & kinds(yours)) > 1


@of_each_pair
def is_told_otherwise(pair: Pair) -> bool:
    """Whether more than common words links two differently worded texts: a shared figure or name, an
    announced change, two attitudes, a definition."""
    old, new = pair.old, pair.new
    # The later text first, of which many earlier ones are asked.
    return (
        any((yours := getattr(new.slots, each)) and yours & getattr(old.slots, each) for each in _SLOTS)
        or pair.announces
        or (new.attitude is not None and old.attitude is not None)
        or new.is_defining
        or old.is_defining
    )


@of_each_pair
def takes_place(pair: Pair) -> bool:
    """Whether the later text plainly replaces the earlier one, given that they are about the same thing.

    It has another number, date, rate, name or attitude, or the opposite or a denial of the same sentence.
    """
    old, new = pair.old.slots, pair.new.slots
    if numbers_differ(old.numbers, new.numbers) or dates_differ(old, new):
        return True
    if new.rates and _differ(old.rates, new.rates):
        return True
    if pair.is_template and pair.old.tokens != pair.new.tokens and same_but_for_case(pair.old, pair.new):
        return True
    if old.identifiers and new.identifiers and not _share_a_name(pair):
        return True
    if pair.old.attitude is not None and pair.new.attitude is not None:
        return pair.old.attitude != pair.new.attitude
    turned = old.is_negative != new.is_negative or old.is_opposite(new)
    return pair.is_template and turned


def has_another_figure(pair: Pair) -> bool:
    """Whether two texts are one sentence, but for one figure, time or date behind what they are about: the
    dashboards refresh at 06:00, at 07:30."""
    [only] = pair.exchanges if len(pair.exchanges) == 1 else [None]
    return only is not None and _is_of_numbers(only) and not (only.is_at_head or only.is_in_subject)


def is_denied(pair: Pair) -> bool:
    """Whether one text denies the other in its own words: I can eat gluten, I cannot eat gluten."""
    old, new = pair.old.slots, pair.new.slots
    turned = old.is_negative != new.is_negative or old.is_opposite(new)
    return turned and pair.ratio >= _ONE_SENTENCE and len(pair.exchanges) <= 1


def _share_a_name(pair: Pair) -> bool:
    """Whether one text contains a name of the other, as an identifier or as text."""
    old, new = pair.old, pair.new
    if any(one_thing(a, b) for a in old.slots.identifiers for b in new.slots.identifiers):
        return True
    return any(
        name in text.casefold()
        for names, text in ((old.slots.identifiers, new.text), (new.slots.identifiers, old.text))
        for name in names
    )


def _is_of_numbers(each: Exchange) -> bool:
    return any(map(is_number, each.mine)) and any(map(is_number, each.yours))


def _is_of_units(each: Exchange) -> bool:
    """Whether numbers were exchanged together with words beside them: 14 days in place of 24 lessons."""
    words = ([word for word in some if not is_number(word)] for some in (each.mine, each.yours))
    return _is_of_numbers(each) and all(words)


def _is_of_another_time(each: Exchange) -> bool:
    """Whether a time was exchanged together with a word: delays in July, cancellations in February."""
    return all(
        {_LEXICON["calendar"].fullmatch(word) is None for word in some} == {True, False}
        for some in (each.mine, each.yours)
    )


def _is_qualifier(each: Exchange) -> bool:
    """Whether one or two words were added at the head of the sentence: "early readmission"."""
    is_short = 0 < len(each.yours) <= _QUALIFIER and not any(map(is_number, each.yours))
    return each.is_at_head and is_short


def nearness(cosine: float, *, unrelated: float, same: float) -> float:
    """Scale a cosine to [0, 1]: 0 up to `unrelated`, 0.5 at `same`, 1 for equal texts."""
    if cosine <= same:
        return max(0.0, 0.5 * (cosine - unrelated) / (same - unrelated))
    return 0.5 + 0.5 * min(1.0, (cosine - same) / (1 - same))


def names_in_common(pair: Pair, weights: Mapping[str, float]) -> float:
    """The share of the later text's first words, identifiers and numbers that the earlier text has too.

    In [0, 1]; rare words count more.
    """
    old, new = pair.old, pair.new
    total = sum(weights.get(term, 1.0) for term in new.first)
    common = sum(weights.get(term, 1.0) for term in new.first if term in old.terms)
    for mine, yours in (
        (old.slots.identifiers, new.slots.identifiers),
        (old.slots.numbers, new.slots.numbers),
        (old.slots.rates, new.slots.rates),
    ):
        total += len(yours)
        common += len(mine & yours)
    return common / total if total else 0.0


def _likeness(old: Reading, new: Reading, weights: Mapping[str, float]) -> dict[str, float]:
    def mass(found: Collection[str]) -> float:
        return sum(weights.get(term, 1.0) for term in found) or 1e-9

    both = mass(old.terms & new.terms)
    of_new, of_old = both / mass(new.terms), both / mass(old.terms)
    return {
        "terms shared": both / mass(old.terms | new.terms),
        "terms of new": of_new,
        "terms of old": of_old,
        "contained": max(of_new, of_old),
        "begins in old": share(new.first, old.terms),
        "begins in new": share(old.first, new.terms),
    }


def share(some: Sequence[str], of: Collection[str]) -> float:
    return sum(each in of for each in some) / len(some) if some else 0.0


def of_slots(old: Slots, new: Slots) -> dict[str, float]:
    found: dict[str, float] = {}
    shared_numbers = _common(old.numbers, new.numbers)
    found["numbers shared"] = min(shared_numbers, 3) / 3
    found["number shared"] = float(shared_numbers > 0)
    found["number differs"] = float(numbers_differ(old.numbers, new.numbers))
    found["unit differs"] = float(found["number differs"] and _units_differ(old, new))
    found["number of one"] = float(bool(old.numbers) != bool(new.numbers))
    found["numbers lack"] = float(_lacks(old.numbers, new.numbers))
    found["date shared"] = float(bool(old.dates & new.dates))
    found["date differs"] = float(dates_differ(old, new))
    found["date of one"] = float(old.dates != new.dates and not found["date differs"])
    shared = {a for a in old.identifiers for b in new.identifiers if one_thing(a, b)}
    mine = any(not any(one_thing(a, b) for b in new.identifiers) for a in old.identifiers)
    yours = any(not any(one_thing(a, b) for a in old.identifiers) for b in new.identifiers)
    found["identifier shared"] = float(bool(shared))
    found["identifiers shared"] = min(len(shared), 3) / 3
    found["identifier differs"] = float(mine and yours)
    found["all identifiers differ"] = float(mine and yours and not shared)
    found["identifier of one"] = float(mine != yours)
    found["label differs"] = float(bool(old.labels) and bool(new.labels) and not old.labels & new.labels)
    found["label shared"] = float(bool(old.labels & new.labels))
    found["negation differs"] = float(old.is_negative != new.is_negative)
    found["direction differs"] = float(
        bool(old.directions and new.directions and not old.directions & new.directions)
    )
    found["opposite"] = float(old.is_opposite(new))
    differs = found["number differs"] or found["date differs"] or found["identifier differs"]
    found["slots agree"] = float(not differs and bool(shared_numbers or shared or found["date shared"]))
    found["numbers agree"] = float(
        bool(old.numbers) and shared_numbers == max(len(old.numbers), len(new.numbers))
    )
    return found


def _common(old: frozenset[tuple[str, str]], new: frozenset[tuple[str, str]]) -> int:
    return sum(any(a[0] == b[0] and (a[1] == b[1] or not a[1] or not b[1]) for b in new) for a in old)


def _lacks(old: frozenset[tuple[str, str]], new: frozenset[tuple[str, str]]) -> bool:
    return bool(old and new) and len(old) != len(new)


def _units_differ(old: Slots, new: Slots) -> bool:
    ours, theirs = ({unit for _, unit in each.numbers if unit} for each in (old, new))
    return _differ(ours, theirs)


def _differ(some: Set[str], others: Set[str]) -> bool:
    """Whether both sets have elements, and none in common."""
    return bool(some and others and not some & others)


def _exchanged(pair: Pair) -> Iterator[str]:
    """Name the kinds of exchanges of a pair, and whether they are at the head or the tail."""
    if not pair.exchanges:
        yield "same words"
        return
    replaced = pair.replaced
    if not replaced:
        where = "head" if any(each.is_at_head for each in pair.exchanges) else "tail"
        yield f"{'more' if any(each.yours for each in pair.exchanges) else 'fewer'} words, {where}"
        return
    where = "head" if any(each.is_at_head for each in replaced) else "tail"
    what = _what(replaced)
    yield f"{what} exchanged, {where}"
    yield {1: "one exchanged", 2: "two exchanged"}.get(len(replaced), "many exchanged")
    if len(replaced) == 1:
        yield f"one {what} exchanged, {where}"
    if len(pair.exchanges) > len(replaced):
        yield "words beside"


def _what(replaced: Sequence[Exchange]) -> str:
    if any(any(map(_is_code, each.mine)) and any(map(_is_code, each.yours)) for each in replaced):
        return "code"
    return "number" if any(map(_is_of_numbers, replaced)) else "word"


def _is_code(word: str) -> bool:
    if word.count(".") == _DOTS and is_number(word):
        return True  # 10.0.0.1
    return not is_number(word) and any(c in "_/." or c.isdigit() for c in word)


def _told_changes(old: Reading, new: Reading) -> dict[str, float]:
    """Evidence from announcements, endings and attitudes that the later text replaces the earlier one."""
    announced = float(new.announces and not old.announces)
    begins = share(new.first, old.terms)
    found = {
        "announces": float(new.announces),
        "both announce": float(new.announces and old.announces),
        "only new announces": announced,
        "only old announces": float(old.announces and not new.announces),
        "announces and begins in old": announced * begins,
        "ends": float(new.ends and not old.ends),
    }
    if old.attitude is not None and new.attitude is not None:
        found["attitude differs"] = float(old.attitude != new.attitude)
        found["attitude same"] = float(old.attitude == new.attitude)
    return found
