"""Differences between two texts, a rule each; `apart` says which of them count, and in which order."""

from collections.abc import Sequence

from supervisor_memory.compare.in_common import is_told_otherwise
from supervisor_memory.compare.pair import ONE_SENTENCE, Exchange, Pair
from supervisor_memory.compare.reading import is_number, tokens_of
from supervisor_memory.compare.slots import OPPOSITE, WAYS, Slots, differ
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import stem

_QUALIFIER = 2  # words, or Chinese characters
_TURNED = 2  # words exchanged with it, up to which a sentence is only turned into its opposite
_SHORT = 7  # tokens of a sentence that says one thing
_LEXICON = lexicon("pairs")
_MEASURES = dict(_LEXICON.patterns("measures"))
_OTHER_SIDES = frozenset(map(frozenset, _LEXICON.listed("other_sides")))


def begins_with_somebody(pair: Pair) -> bool:
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


def moves_to_label(pair: Pair) -> bool:
    """Whether the later text announces another label as its last word: moved to room 20."""
    last = pair.exchanges[-1] if pair.exchanges else None
    is_alone = last is not None and pair.replaced == [last]
    return is_alone and pair.announces and last is not None and last.is_last and last.is_of_numbers


def is_of_another_topic(pair: Pair) -> bool:
    """Whether two texts share only a thing that one is about and the other mentions: the dashboard is fed by
    a table, the table is rebuilt by a job."""
    old, new = pair.old, pair.new
    common = set(old.tokens) & set(new.tokens)
    return bool(common) and any(
        one.topic and other.topic and one.topic.isdisjoint(other.tokens) and common <= other.topic
        for one, other in ((old, new), (new, old))
    )


def is_of_parts(pair: Pair) -> bool:
    """Whether the opposites name two parts of a thing, not two ways to do something, nor the last word."""
    old, new = pair.old.slots.sides, pair.new.slots.sides
    named = {side for side in old - new if OPPOSITE[side] in new - old} - WAYS
    is_last = len(pair.exchanges) == 1 and pair.exchanges[0].is_last
    return bool(named) and not is_last


def is_on_the_other_side(pair: Pair) -> bool:
    """Whether one character, not the last, was exchanged for its opposite: 排练前开门, 排练后开门."""
    replaced = pair.replaced
    if len(pair.exchanges) != 1 or not replaced or replaced[0].is_last:
        return False
    return frozenset("".join((*replaced[0].mine, *replaced[0].yours))) in _OTHER_SIDES


def is_of_other_days(pair: Pair) -> bool:
    """Whether two texts begin with different quarters, months or days: on Mondays, on Tuesdays."""
    if not pair.is_template:
        return False
    mine, yours = ({date for date in each.opening.dates if ":" not in date} for each in (pair.old, pair.new))
    return differ(mine, yours)


def is_of_a_part(old: Slots, new: Slots) -> bool:
    """Whether one text's time is part of the other's: January 2013, and 2013."""
    return bool(old.dates and new.dates) and (old.dates < new.dates or new.dates < old.dates)


def is_of_another_scope(pair: Pair) -> bool:
    """Whether two texts give the same figure for two periods, or deny a value for a narrower place: 4 % in
    the first quarter, in the second; not in the B2B shop."""
    old, new = pair.old, pair.new
    shared = old.slots.numbers | (old.slots.dates & new.slots.dates)
    another_day = differ(old.slots.dates - new.slots.dates, new.slots.dates - old.slots.dates)
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


def turns_a_way(pair: Pair) -> bool:
    """Whether only a small word was exchanged that tells the way: to the office, from the office."""
    mine, yours = pair.old.text.casefold().split(), pair.new.text.casefold().split()
    if len(mine) != len(yours):
        return False
    others = [(a, b) for a, b in zip(mine, yours, strict=True) if a != b]
    return len(others) == 1 and _LEXICON.words("ways") >= set(others[0])


def is_another_measure(pair: Pair) -> bool:
    """Whether two texts give figures of different sorts: minutes and a share, hours and pages, an average
    and a median."""
    old, new = pair.old, pair.new
    ours, theirs = (
        {name for name, found in _MEASURES.items() if found.search(each.text)} for each in (old, new)
    )
    return differ(old.slots.measures, new.slots.measures) or differ(ours, theirs)


def defines_another(pair: Pair) -> bool:
    """Whether both texts define something, and not the same thing."""
    mine, yours = pair.old.defined, pair.new.defined
    return bool(mine - yours and yours - mine)


def is_done_otherwise(pair: Pair) -> bool:
    """Whether different acts are done to the same thing: the export is read by Ada, written by Bob."""
    mine, yours = (_LEXICON["done_by"].search(each.text) for each in (pair.old, pair.new))
    return mine is not None and yours is not None and stem(mine["what"]) != stem(yours["what"])


def are_of_each_other(pair: Pair) -> bool:
    """Whether each text is about a thing that the other mentions, and they share nothing else: invoices are
    approved by Finance, Finance gets the invoices from SAP."""
    mine, yours = pair.old.topic, pair.new.topic
    common = set(pair.old.tokens) & set(pair.new.tokens)
    is_crossed = mine <= common and yours <= common and mine.isdisjoint(yours)
    return bool(mine and yours) and is_crossed and common <= mine | yours and not is_told_otherwise(pair)


def tells_another_attribute(pair: Pair) -> bool:
    """Whether two texts tell different attributes of things: Tom's age, and his job; the length of time, and
    the time."""
    return bool(pair.old.attributes and pair.new.attributes) and not any(
        _are_one_attribute(mine, yours) for mine in pair.old.attributes for yours in pair.new.attributes
    )


def states_another_attribute(pair: Pair) -> bool:
    """Whether each text states an attribute of one holder and nothing else, and not the same: the name of my
    aide, and what the aide does."""
    old, new = pair.old.stated, pair.new.stated
    if old is None or new is None or old.whose != new.whose:
        return False
    return old.attribute != new.attribute


def _are_one_attribute(mine: Sequence[str], yours: Sequence[str]) -> bool:
    """Whether two names of attributes share a word, and neither is the other with words that narrow it before
    it: 持续时间 is no 时间, but 电话号码 is the 电话."""
    short, long = sorted((mine, yours), key=len)
    is_narrowed = len(short) < len(long) and long[-len(short) :] == short
    return not set(mine).isdisjoint(yours) and not is_narrowed


def has_another_subject(pair: Pair) -> bool:
    """Whether each text's subject has a word that the other text lacks."""
    old, new = pair.old, pair.new
    mine, yours = set(old.tokens[: old.subject]), set(new.tokens[: new.subject])
    return bool(mine - set(new.tokens) and yours - set(old.tokens))


def is_of_a_trait(pair: Pair) -> bool:
    """Whether only one of two texts is about the thing itself, the other about what belongs to it.

    "My aide is a nurse", and "my aide's home is Rome". In both languages the thing stands before what is its.
    """
    short, long = sorted((pair.old.said_to_be, pair.new.said_to_be), key=len)
    return 0 < len(short) < len(long) and long[: len(short)] == short


def is_restricted(pair: Pair) -> bool:
    """Whether two texts are restricted differently: only managers, except Paris, or not at all."""
    old, new = pair.old, pair.new
    if (old.slots.limits ^ new.slots.limits) == {"only"} and pair.ratio < ONE_SENTENCE:
        return old.opening.limits != new.opening.limits
    return old.slots.limits != new.slots.limits


def does_another(pair: Pair) -> bool:
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


def is_one_of_many(pair: Pair, replaced: Sequence[Exchange]) -> bool:
    """Whether both texts may hold at once: allergic to peanuts, and to shellfish; not two team leaders."""
    return (
        len(replaced) == 1
        and len(pair.exchanges) == 1
        and not replaced[0].is_of_numbers
        and not (pair.old.slots.dates and pair.new.slots.dates)
        and not (pair.old.states_one and pair.new.states_one and not _LEXICON["several"].match(pair.new.text))
    )


def exchanged_much(pair: Pair, *, another_number: bool) -> str:
    old, new, replaced = pair.old.slots, pair.new.slots, pair.replaced
    mine, yours = [w for each in replaced for w in each.mine], [w for each in replaced for w in each.yours]
    if min(sum(map(is_number, mine)), sum(map(is_number, yours))) > 1 or any(map(_is_of_units, replaced)):
        return "two-values"
    if any(map(_is_of_another_time, replaced)):
        return "two-values"
    if another_number and bool(new.identifiers - old.identifiers) != bool(old.identifiers - new.identifiers):
        return "qualifier"
    if another_number and not any(each.is_of_numbers for each in replaced):
        return "two-values"
    turned = old.is_negative != new.is_negative
    if replaced and turned and (len(pair.exchanges) > 1 or max(len(mine), len(yours)) > _TURNED):
        return "two-values"
    return ""


def exchanges_two(pair: Pair) -> bool:
    """Whether a figure or day was exchanged along with a word: hay on Mondays, oats on Fridays."""

    def kinds(words: Sequence[str]) -> set[bool]:
        return {bool(is_number(word) or _LEXICON["calendar"].fullmatch(word)) for word in words}

    mine = [word for each in pair.replaced for word in each.mine]
    yours = [word for each in pair.replaced for word in each.yours]
    return len(pair.replaced) > 1 or len(kinds(mine) & kinds(yours)) > 1


def _is_of_units(each: Exchange) -> bool:
    """Whether numbers were exchanged together with words beside them: 14 days in place of 24 lessons."""
    words = ([word for word in some if not is_number(word)] for some in (each.mine, each.yours))
    return each.is_of_numbers and all(words)


def _is_of_another_time(each: Exchange) -> bool:
    """Whether a time was exchanged together with a word: delays in July, cancellations in February."""
    return all(
        {_LEXICON["calendar"].fullmatch(word) is None for word in some} == {True, False}
        for some in (each.mine, each.yours)
    )


def is_qualifier(each: Exchange) -> bool:
    """Whether one or two words were added at the head of the sentence: "early readmission"."""
    is_short = 0 < len(each.yours) <= _QUALIFIER and not any(map(is_number, each.yours))
    return each.is_at_head and is_short
