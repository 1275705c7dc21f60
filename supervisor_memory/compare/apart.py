"""Whether two texts are about different things, or the later one plainly replaces the earlier.

Neither can be told without the other: what gives a new value is not kept apart, and a text of several clauses
gives one where a single clause of it is not kept apart.
"""

from supervisor_memory.compare.differences import (
    are_of_each_other,
    begins_with_somebody,
    defines_another,
    does_another,
    exchanged_much,
    exchanges_two,
    has_another_subject,
    is_another_measure,
    is_done_otherwise,
    is_of_a_part,
    is_of_a_trait,
    is_of_another_scope,
    is_of_another_topic,
    is_of_other_days,
    is_of_parts,
    is_on_the_other_side,
    is_one_of_many,
    is_qualifier,
    is_restricted,
    moves_to_label,
    states_another_attribute,
    tells_another_attribute,
    turns_a_way,
)
from supervisor_memory.compare.pair import TEMPLATE, Pair, beside, of_each_pair
from supervisor_memory.compare.reading import read
from supervisor_memory.compare.replaces import (
    gives_another_value,
    is_renamed,
    takes_over,
    takes_place,
)
from supervisor_memory.compare.slots import differ, numbers_differ
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.understand.subject import of_another

_SAME_OBJECT = 0.6  # the share of words in common from which one thing is liked and disliked
_SEVERAL = 2
_LEXICON = lexicon("pairs")


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
    if is_settled(pair) or _tells_again(pair):
        return ""
    return _of_two(pair) or ("" if pair.announces else _unannounced(pair))


def _of_two(pair: Pair) -> str:
    """The codes that keep texts apart even if the later one announces a change."""
    old, new = pair.old.slots, pair.new.slots
    is_late = len(pair.replaced) == 1 and not pair.replaced[0].is_at_head
    handed_over = is_late and pair.announces and _LEXICON["handed_over"].search(pair.new.text)
    if (of_another(pair.old.people, pair.new.people) and not handed_over) or begins_with_somebody(pair):
        return "person"
    if states_another_attribute(pair):
        return "another"
    if old.labels and new.labels and not old.labels & new.labels and not moves_to_label(pair):
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
    if pair.is_template and old.is_opposite(new) and is_of_parts(pair) and not is_set_right:
        return "opposite"
    if is_of_another_topic(pair):
        return "subject"
    return "opposite" if not pair.announces and is_on_the_other_side(pair) else ""


def _unannounced(pair: Pair) -> str:
    old, new = pair.old.slots, pair.new.slots
    another_number = numbers_differ(old.numbers, new.numbers)
    another_date = bool(old.dates - new.dates and new.dates - old.dates)
    another_rate = bool(new.rates) and differ(old.rates, new.rates)
    if another_rate and pair.is_template and old.numbers & new.numbers:
        return "rate"
    if is_of_other_days(pair) or (another_number and is_of_a_part(old, new)):
        return "period"
    if pair.is_template and is_of_another_scope(pair):
        return "scope"
    if turns_a_way(pair):
        return "direction"
    if another_number + another_date + another_rate > 1 or (another_number and is_another_measure(pair)):
        return "two-values"
    if defines_another(pair):
        return "subject"
    if _likes_another(pair) or is_done_otherwise(pair) or are_of_each_other(pair):
        return "another"
    another_figure = another_number or another_date
    if tells_another_attribute(pair) or (is_of_a_trait(pair) and not another_figure):
        return "another"
    if another_figure and has_another_subject(pair):
        return "two-values"
    if not pair.is_template:
        return "opposite" if old.is_opposite(new) else "another" if does_another(pair) else ""
    if is_restricted(pair):
        return "restriction"
    return _exchanged_subject(pair) or exchanged_much(pair, another_number=another_number)


def _exchanged_subject(pair: Pair) -> str:
    replaced = pair.replaced
    if any(each.is_of_codes for each in replaced):
        return "identifier"
    other_attitude = pair.old.attitude != pair.new.attitude
    if any((each.is_at_head or each.is_in_subject) and not each.is_of_numbers for each in replaced):
        return "" if len(replaced) == 1 and other_attitude else "subject"
    added = [each for each in pair.exchanges if each.yours and not each.mine]
    narrower = any(map(is_qualifier, added))
    if (added and any(each.is_of_numbers for each in replaced)) or (narrower and len(added) > 1):
        return "qualifier"
    if replaced and pair.old.attitude is not None and not other_attitude:
        return "another"
    return "another" if is_one_of_many(pair, replaced) else ""


def _likes_another(pair: Pair) -> bool:
    """Whether the attitudes differ because they are to different things: likes capers, hates olives."""
    old, new = pair.old, pair.new
    if old.attitude is None or new.attitude is None or old.attitude == new.attitude:
        return False
    return bool(old.liked - new.liked and new.liked - old.liked) and not turns(pair)


@of_each_pair
def turns(pair: Pair) -> bool:
    """Whether an attribute has a new value, a thing a new name, or the attitude to a thing has changed."""
    old, new = pair.old, pair.new
    if is_settled(pair) or _tells_again(pair) or is_renamed(pair):
        return True
    if of_another(old.people, new.people):
        return False
    if old.attitude is None or new.attitude is None or old.attitude == new.attitude:
        return False
    common = len(old.liked & new.liked)
    return common > 0 and common >= _SAME_OBJECT * max(len(old.liked), len(new.liked))


@of_each_pair
def is_settled(pair: Pair) -> bool:
    """Whether the later text gives an attribute another value, or says that the earlier value is over."""
    return gives_another_value(pair) or takes_over(pair)


@of_each_pair
def _tells_again(pair: Pair) -> bool:
    """Whether a clause of the later text repeats the earlier text with another value, and the rest says why:
    "the regulator made us tighten it: a dropped call is one that ends within 10 seconds". A clause
    that shares no word with the first clause of an earlier text of several repeats nothing of it: what the
    clause is about stands elsewhere."""
    clauses, known = pair.new.clauses, pair.old.clauses
    if len(clauses) < _SEVERAL or any(map(_LEXICON["scope"].match, clauses)):
        return False
    is_told = pair.new.announces or pair.new.corrects
    pairs = [beside(pair.old, read(each)) for each in clauses]
    if len(known) >= _SEVERAL:
        pairs = [each for each in pairs if not set(read(known[0]).tokens).isdisjoint(each.new.tokens)]
    again = [each for each in pairs if each.ratio >= TEMPLATE]
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
    return is_told or not (_unannounced(pair) or _begins_later(pair))


def _begins_later(pair: Pair) -> bool:
    """Whether the later text lacks the first words of the earlier one, and has none in their place: 其电话是…
    beside 赵宇轩的电话是…."""
    return any(each.is_at_head and each.mine and not each.yours for each in pair.exchanges)


def why_instead(pair: Pair) -> str:
    """The code for the audit: why the later text replaces the earlier.

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
    if is_renamed(pair):
        return "name"
    if turns(pair):
        return "attitude"
    return "value" if takes_place(pair) else "weighed"
