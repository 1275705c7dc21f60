"""Why a text leaves another as it is, whatever change it tells."""

from collections.abc import Sequence, Set
from difflib import SequenceMatcher
from itertools import pairwise

from supervisor_memory.compare.apart import turns
from supervisor_memory.compare.pair import Pair, of_each_pair
from supervisor_memory.compare.reading import Reading
from supervisor_memory.compare.replaces import takes_place
from supervisor_memory.compare.slots import differ
from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import has_cjk, terms
from supervisor_memory.understand.entities import entities

THING_ALONE = "thing-alone"
"""A change is told of a thing and the other text tells something else of it; see `of_other_things`."""
_LEXICON = lexicon("pairs")
_ALIKE = 0.65  # the share from which a word or two were exchanged that may be any value
_FAIR = 0.15  # the share of the words of a topic by which it is another


@of_each_pair
def of_other_things(pair: Pair) -> str:
    """The code of why a text leaves another as it is, whatever change it tells; "" if nothing says so.

    "unreal": it is only imagined or wished. "supposed": it tells what follows from a condition. "denied":
    what it says is over is not what the other text says. "scope": both begin with where they hold, and
    elsewhere. "person": one is about the user or what is the user's, and the other about somebody else.
    "topic": both what is told of and what is told are exchanged. "thing-alone": it changes something else
    of a thing that both name.
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
    if _tells_of_another(pair):
        return "topic"
    return THING_ALONE if _changes_something_else(pair) else ""


def _changes_something_else(pair: Pair) -> bool:
    """Whether a text of one clause changes something else of a thing: the kiln room is fed from the north, it
    moved to a new roster. Both share no other word, and the thing gets no other value.

    A figure in place of another is a value, and so is a word or two in one sentence. Where both texts begin
    with the thing a name in place of another is one; where the earlier one begins with somebody who has it,
    only who is said to take it over. What "I" or "we" do with a thing may change in any words.
    """
    old, new = pair.old, pair.new
    if not pair.announces or not new.tokens or new.tokens[0] not in old.counts or not new.is_one_clause:
        return False
    thing = _only_thing(old.tokens, new.tokens)
    if not thing or max(pair.ratio, len(thing) / len(old.tokens)) >= _ALIKE:
        return False
    if turns(pair) or takes_place(pair) or old.people.is_i or old.people.is_we:
        return False
    if old.tokens[: len(thing)] == thing:
        return not (_has_own_names(old, new) and _has_own_names(new, old))
    return _LEXICON["handed_over"].search(new.text) is None


def _only_thing(mine: Sequence[str], yours: Sequence[str]) -> Sequence[str]:
    """The words that one text begins with, where they stand in the other in one piece and both share no more;
    empty where there are none. A Chinese character alone is no word."""
    found = SequenceMatcher(None, mine, yours, autojunk=False).find_longest_match()
    thing = yours[: found.size]
    others = [*mine[: found.a], "", *mine[found.a + found.size :]]
    if found.b or not _pieces(thing) or not _pieces(others).isdisjoint(_pieces(yours[found.size :])):
        return ()
    return thing


def _pieces(tokens: Sequence[str]) -> Set[str]:
    """The words among tokens, and each two of the Chinese characters beside each other."""
    pairs = {one + other for one, other in pairwise(tokens) if has_cjk(one) and has_cjk(other)}
    return pairs | {token for token in tokens if token and not has_cjk(token)}


def _has_own_names(one: Reading, other: Reading) -> bool:
    """Whether a text names something that another lacks; Latin words in a Chinese text are names."""
    words = set(terms(one.text)) - set(terms(other.text))
    is_zh = has_cjk(one.text)
    named = {term for each in entities(one.text) for term in terms(each.key)}
    return any(word in named or (is_zh and word.isascii() and word.isalpha()) for word in words)


def _tells_of_another(pair: Pair) -> bool:
    """Whether the topics differ, and what is told of them too: the board meets on Tuesdays, the council on
    Thursdays. With one of both in common it may be a value that has changed."""
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
    """Whether a denial has another word where the text it might end has its own: we sell apples, we no longer
    sell pears."""
    old, new = pair.old, pair.new
    if not pair.is_template or new.corrects or not new.is_one_clause:
        return False
    is_denial = new.slots.is_negative and not old.slots.is_negative
    return is_denial and any(not each.is_at_head for each in pair.replaced)
