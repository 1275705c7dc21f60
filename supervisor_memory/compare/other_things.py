"""Reasons why a text that tells of a change does not change what another text states."""

from collections.abc import Set

from supervisor_memory.compare.pair import Pair, of_each_pair
from supervisor_memory.compare.slots import differ

_FAIR = 0.15  # the share of the words of a topic by which it is another


@of_each_pair
def of_other_things(pair: Pair) -> str:
    """The code of the reason why the later text changes nothing of the earlier one; "" if there is none.

    "unreal": it is only imagined or wished. "supposed": it tells what follows from a condition. "denied":
    what it says is over is not what the other text says. "scope": both begin with where they hold, and
    elsewhere. "person": one is about the user or what is the user's, and the other about somebody else.
    "topic": both what is told of and what is told are exchanged.
    """
    if pair.new.is_unreal and not pair.old.is_unreal:
        return "unreal"
    if pair.new.is_supposed and not pair.old.is_supposed:
        return "supposed"
    if _denies_another(pair):
        return "denied"
    if differ(pair.old.where, pair.new.where):
        return "scope"
    if _tells_of_somebody_else(pair):
        return "person"
    return "topic" if _tells_of_another(pair) else ""


def _tells_of_another(pair: Pair) -> bool:
    """Whether both the topics and the statements about them differ: the board meets on Tuesdays, the council
    on Thursdays. If one of the two is the same, it may be a changed value."""
    old, new = pair.old, pair.new
    mine, yours = set(old.tokens), set(new.tokens)
    if not (mine - old.about - yours and yours - new.about - mine):
        return False
    return _lacks_topic(yours, old.about, new.about) and _lacks_topic(mine, new.about, old.about)


def _lacks_topic(words: Set[str], topic: Set[str], own: Set[str]) -> bool:
    """Whether a text about something else lacks a fair part of a topic. A topic told of in another place may
    be the same thing seen from another side."""
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
    """Whether the later text denies something else than the earlier one states: we sell apples, we no longer
    sell pears."""
    old, new = pair.old, pair.new
    if not pair.is_template or new.corrects or not new.is_one_clause:
        return False
    is_denial = new.slots.is_negative and not old.slots.is_negative
    return is_denial and any(not each.is_at_head for each in pair.replaced)
