"""Whether a sentence says that something is done, and which open sentence it closes.

What is unsure closes nothing: what is denied, hoped for, conditional, or done to another thing.
"""

import re
from functools import lru_cache
from typing import Final

from supervisor_memory.language.lexicon import lexicon
from supervisor_memory.language.terms import STOP_WORDS, has_cjk, terms
from supervisor_memory.understand.statements import masked, normal

_CUES, _WORK = lexicon("finished"), lexicon("sessions")
_MANY: Final = 3  # words of a name of which one may be left out


def is_finished(text: str) -> bool:
    """Whether a clause of a sentence affirms that something has been done, or is there."""
    return any(not leaving for _, leaving in _clauses(text))


def tells_an_end(text: str) -> bool:
    """Whether a sentence may close an open one."""
    return bool(_clauses(text))


def closes(text: str, left: str) -> bool | None:
    """Whether a sentence reports as done what an open sentence names.

    None: it names no thing ("I ordered it"), and may. A deed that leaves things open, as a call does, closes
    what was left to be done if it is that deed.
    """
    if not (clauses := _clauses(text)):
        return False
    what, asked = _chinese if has_cjk(left) else _english, {*terms(left), *left}
    found = [what(each, left) for each, leaving in clauses if leaving <= asked]
    return True if True in found else None if None in found else False


@lru_cache(maxsize=512)
def _clauses(text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """The affirmative clauses, and the whole sentence if all of it is; with verbs that leave things open."""
    hidden = masked(normal(text))
    parts = [each for each in _WORK["clause_ends"].split(hidden) if each.strip()]
    found: list[tuple[str, frozenset[str]]] = []
    for each in (*parts, *([hidden] if len(parts) > 1 else ())):
        leaving = (term for deed in _CUES["leaves_open"].finditer(each) for term in terms(deed[0]))
        if _CUES["no_longer"].search(each):
            found.append((each, frozenset()))
        elif _CUES["finished"].search(each) and not _CUES["unfinished"].search(each):
            found.append((each, frozenset(leaving)))
    return tuple(found)


def _english(text: str, left: str) -> bool | None:
    """Whether a clause closes an English sentence; None: undecided, since the clause names nothing."""
    [head, *rest] = _named_groups(_open_clause(left)) or [[]]
    held = [*terms(text)]
    others = {each for group in _named_groups(_CUES["finished"].sub(" ", text)) for each in group}
    if not others:
        return None if _CUES["pronoun"].search(text) else False
    shared = [each for each in head if each in held]
    if not shared or head[-1] not in held or len(shared) < len(head) - (len(head) > _MANY):
        return False
    beside = {each for group in rest for each in group}
    known = {*head, *beside}
    if beside and not beside & {*held} and any(not known & {*group} for group in _named_groups(text)[1:]):
        return False  # the same of another
    return _ends_name(head[-1], text)


def _named_groups(text: str) -> list[list[str]]:
    """The words that name something, from one preposition to the next; groups without any are left out."""
    bare = _CUES["states"].sub(" ", text)
    groups = ([*terms(each)] for each in _CUES["prepositions"].split(bare))
    return [each for each in groups if each]


def _open_clause(left: str) -> str:
    """The clause that makes a sentence open, without the verb of the work to do."""
    hidden = masked(normal(left))
    parts = [each for each in _WORK["clause_ends"].split(hidden) if each.strip()]
    clause = next((each for each in parts if _WORK["pending"].search(each)), hidden)
    return _CUES["to_do"].sub(" ", clause)


def _ends_name(word: str, text: str) -> bool:
    """Whether a word ends a name, as "cake" does not in "the cake stand"."""
    words = re.findall(r"[\w'-]+|[^\w\s]", text.casefold())
    for each, after in zip(words, [*words[1:], "."], strict=True):
        if word in terms(each) and (
            not after[:1].isalpha() or after in STOP_WORDS or _CUES["after_a_name"].fullmatch(after)
        ):
            return True
    return False


def _chinese(text: str, left: str) -> bool | None:
    """Whether a clause closes a Chinese sentence; None: undecided, since the clause names nothing.

    It tells the same thing by the same verb, or by one of a general meaning.
    """
    hidden = masked(normal(left))
    parts = [each for each in _WORK["clause_ends"].split(hidden) if each.strip()]
    clause = next((each for each in parts if _CUES["not_yet"].search(each)), hidden)
    before, _, after = _CUES["not_yet"].sub("\n", clause, count=1).partition("\n")
    thing, verb = {*_content(before)}, {*_content(after)}
    if _CUES["lacks"].search(clause):
        thing, verb = thing | verb, set()
    held, general = {*_content(text)}, {*_CUES.words("general_verbs")}
    if thing and thing <= held:
        does_it = not verb or verb & held or held - thing <= general
        return bool(does_it) and _ends_chinese_name(thing, verb | general, text)
    if not thing and verb <= held and len(verb) > 1:
        return True
    return None if held <= verb | general and (held & verb or not held) else False


def _content(text: str) -> list[str]:
    """The Chinese characters and other words of a clause without those of its grammar."""
    return re.findall(r"[a-z0-9]+|[\u4e00-\u9fff]", _CUES["grammar"].sub(" ", text.casefold()))


def _ends_chinese_name(thing: set[str], verbs: set[str], text: str) -> bool:
    bare = _CUES["grammar"].sub(" ", text.casefold())
    last = max(bare.rfind(each) + len(each) for each in thing)
    after = bare[last : last + 1]
    return not has_cjk(after) or after in verbs or after in thing
