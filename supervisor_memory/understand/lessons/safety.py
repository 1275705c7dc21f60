"""The kinds of edits that are learned without a person."""

import re
from itertools import pairwise

from supervisor_memory.understand.lessons.lesson import Call, Edit, is_named
from supervisor_memory.understand.lessons.values import (
    IDENTIFIER,
    MASK,
    QUOTED,
    STRUCTURE,
    WORDS,
    as_text,
    is_same,
    last_name,
    stands_in,
)
from supervisor_memory.understand.lineage import tables_by_words
from supervisor_memory.understand.sql import OWN_WORDS, query_of, without_comments


def is_safe(edit: Edit, before: Call, after: Call, said: str) -> bool:
    """Whether an edit is safe: it names no recipient, address or action, and the errors confirm it."""
    one, other = (as_text(each.arguments.get(edit.argument)) for each in (before, after))
    if one and other and query_of(one) is not None and query_of(other) is not None:
        return _is_of_structure(edit, without_comments(one), without_comments(other), said)
    if edit.after is None:
        return False
    if edit.before is not None and is_same(edit.before, edit.after, said):
        return is_named(edit, said) or MASK.search(said) is not None or bool(WORDS["of_form"].search(said))
    return _is_quantity(edit, said) or _is_name_of_data(edit, said)


def _is_name_of_data(edit: Edit, said: str) -> bool:
    """Whether an edit replaces a table, a column or the like that an error names."""
    names = (edit.before or "", edit.after or "")
    if not all(map(IDENTIFIER.fullmatch, names)) or any(map(is_credential, names)):
        return False
    is_of_data = not WORDS.words("of_data").isdisjoint(_parts(last_name(edit.argument))[-1:])
    return is_of_data and stands_in(said.casefold(), names[0].casefold())


def _is_of_structure(edit: Edit, one: str, other: str, said: str) -> bool:
    """Whether an edit of a statement that reads changes names an error calls unknown, or its structure."""
    if not all(map(_reads, (one, other))):
        return False
    parts = [each or "" for each in (edit.before, edit.after)]
    if all(map(QUOTED.match, parts)) and is_same(parts[0], parts[1], said):
        return is_named(edit, said) or bool(WORDS["of_form"].search(said))
    if any(re.search(r"'|[^\w\s(),.=<>*+\-/:\"`]", each) for each in parts):
        return False
    old, new = (IDENTIFIER.findall(each.casefold()) for each in parts)
    wholes = [set(IDENTIFIER.findall(each.casefold())) for each in (one, other)]
    lost = set(old) - wholes[1] - STRUCTURE
    added = set(new) - wholes[0] - STRUCTURE
    numbers = [set(re.findall(r"(?<![\w.])\d+", each)) for each in parts]
    is_limit = all(re.search(rf"(?i)\blimit\s+{each}\b", other) for each in numbers[1] - numbers[0])
    is_one = all(map(IDENTIFIER.fullmatch, parts))
    if (not is_one and (lost | added) & OWN_WORDS) or len(added) > len(lost) or not is_limit:
        return False
    if any(not each.isascii() or is_credential(each) for each in added):
        return False
    if any(
        re.search(rf"(?i)\b{re.escape(each)}\s*\(", other) for each in added - OWN_WORDS
    ):  # may do anything
        return False
    text = said.casefold()
    if added or lost:
        is_unknown = WORDS["of_names"].search(said) and any(stands_in(text, each) for each in lost)
        is_told = WORDS["right"].search(said) and any(stands_in(text, each) for each in added)
        return bool(is_unknown or is_told)
    of_it = {*old, *new} | ({"limit"} if numbers[0] != numbers[1] else set())
    return edit.after is not None and any(stands_in(text, each) for each in of_it)


def _reads(statement: str) -> bool:
    plain = statement.strip().rstrip(";")
    return (
        re.match(r"(?i)select\b|with\b", plain) is not None
        and ";" not in plain
        and not tables_by_words(plain).written
        and re.search(r"(?i)\b(?:into|insert|update|delete|merge)\b", plain) is None
    )


def _is_quantity(edit: Edit, said: str) -> bool:
    """Whether an edit changes a limit or a size to another number above zero, and an error mentions it."""
    parts = set(_parts(last_name(edit.argument)))
    numbers = [each for each in (edit.before, edit.after) if each is not None]
    is_number = all(re.fullmatch(r"[1-9]\d{0,8}", each, re.ASCII) for each in numbers)
    return is_number and bool(parts) and parts <= WORDS.words("quantities") and is_named(edit, said)


def is_credential(name: str) -> bool:
    parts = _parts(name)
    pairs = (one + other for one, other in pairwise(parts))
    return not WORDS.words("credentials").isdisjoint((*parts, *pairs))


def _parts(name: str) -> list[str]:
    """The words inside a name: of `maxRows`, `max_rows`."""
    return re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).casefold())
