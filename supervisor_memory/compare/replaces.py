"""Signs that the later of two texts replaces the earlier, given that both are about the same thing."""

from collections.abc import Iterable

from supervisor_memory.compare.pair import ONE_SENTENCE, Pair, is_code, of_each_pair
from supervisor_memory.compare.reading import Reading, is_number
from supervisor_memory.compare.slots import Slots, differ, gives_another_figure, one_thing
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.understand.subject import of_another, same_attribute

_DROPPED = 0.5
_LEXICON = lexicon("pairs")


@of_each_pair
def takes_place(pair: Pair) -> bool:
    """Whether the later text plainly replaces the earlier one, given that they are about the same thing.

    It has another number, date, rate, name or attitude, or the opposite or a denial of the same sentence.
    """
    old, new = pair.old.slots, pair.new.slots
    if gives_another_figure(old, new) and not _was_of_another(pair):
        return True
    if new.rates and differ(old.rates, new.rates):
        return True
    if pair.is_template and pair.old.tokens != pair.new.tokens and same_but_for_case(pair.old, pair.new):
        return True
    if _are_of_one_form(old.identifiers, new.identifiers) and not _share_a_name(pair):
        return True
    if pair.old.attitude is not None and pair.new.attitude is not None:
        return pair.old.attitude != pair.new.attitude
    turned = old.is_negative != new.is_negative or old.is_opposite(new)
    return pair.is_template and turned


def _was_of_another(pair: Pair) -> bool:
    """Whether the later text names its figure's old value, and the earlier one lacks it: 由8216改成8300."""
    named = pair.new.former - pair.old.former
    was = {number for word in named if is_number(word) for number, _ in Slots(word).numbers}
    return bool(was) and was.isdisjoint(number for number, _ in pair.old.slots.numbers)


def _are_of_one_form(some: Iterable[str], others: Iterable[str]) -> bool:
    """Whether both sides have code words, or both have names: no name takes the place of a table."""
    return not {is_code(each) for each in some}.isdisjoint(is_code(each) for each in others)


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


def gives_another_value(pair: Pair) -> bool:
    """Whether both texts state the same attribute, with different values."""
    old, new = pair.old, pair.new
    return same_attribute(old.states, new.states, is_told=new.announces or new.corrects)


def takes_over(pair: Pair) -> bool:
    """Whether the later text ends the earlier value and shares half of the other words: "I sold the Panda and
    drive a Skoda" after "I drive a Panda"."""
    old, new = pair.old, pair.new
    if dropped(pair) < _DROPPED or of_another(old.people, new.people):
        return False
    common = set(old.tokens) & set(new.tokens)
    return bool(common - new.dropped) and len(common) >= _DROPPED * len(set(old.tokens))


def dropped(pair: Pair) -> float:
    """How much of the ended things in the later text the earlier text names, in [0, 1]."""
    named = pair.new.dropped - pair.old.dropped
    return len(named & set(pair.old.tokens)) / len(named) if named else 0.0


def is_renamed(pair: Pair) -> bool:
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


def states_the_same(pair: Pair) -> bool:
    """Whether both texts state the same value for the same attribute and holder, and nothing else."""
    return pair.old.stated is not None and pair.old.stated == pair.new.stated


def has_another_figure(pair: Pair) -> bool:
    """Whether two texts are one sentence, but for one figure, time or date behind what they are about: the
    dashboards refresh at 06:00, at 07:30."""
    [only] = pair.exchanges if len(pair.exchanges) == 1 else [None]
    return only is not None and only.is_of_numbers and not (only.is_at_head or only.is_in_subject)


def is_denied(pair: Pair) -> bool:
    """Whether one text denies the other in its own words: I can eat gluten, I cannot eat gluten."""
    old, new = pair.old.slots, pair.new.slots
    turned = old.is_negative != new.is_negative or old.is_opposite(new)
    return turned and pair.ratio >= ONE_SENTENCE and len(pair.exchanges) <= 1


def same_but_for_case(old: Reading, new: Reading) -> bool:
    """Whether two texts differ only in the case of a word for which case counts: `abC`, `abc`."""
    return [w.casefold() for w in old.tokens] == [w.casefold() for w in new.tokens]
