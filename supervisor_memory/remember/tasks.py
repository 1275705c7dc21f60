"""Which task a step belongs to: its id (AIR-12), or the name that it is given."""

import re
import unicodedata

__all__ = ["same_task"]

_LONGEST_NAME = 60
_ID = re.compile(r"(?<![\w-])[A-Za-z][A-Za-z0-9]{0,9}[-_#]\d{1,7}(?![\w-])|(?<!\w)#\d{1,7}(?!\w)")
_OPENING = 400
"""Characters in which a step names its task."""
_NAMED = re.compile(
    r"^(?:task|job|ticket|project|任务|项目|工单)\s*(?P<after>[^:：,，。.;；()（）\n]{2,60}?)"
    r"\s*(?:[:：(（]|\b(?:opened|started|begins|is|was|update|progress)\b|启动|进展|更新|完成)"
    r"|^(?P<before>[^:：,，。.;；()（）\n]{2,60}?)\s*(?:task\b|任务|update\b|progress\b|进展|更新|结论)?\s*[:：]"
    r"|[(（](?P<inside>[^()（）\n]{2,60})[)）]",
    re.IGNORECASE,
)
_EDGES = " \t\"'“”‘’「」《》-"


def same_task(old: str, new: str) -> bool:
    """Whether a step continues the task of an earlier one: the same id or, where neither has one, name."""
    mine, yours = _id(old), _id(new)
    if mine or yours:
        return mine == yours
    return bool(_names(old) & _names(new))


def _id(text: str) -> str | None:
    match = _ID.search(_plain(text))
    return match[0].casefold() if match else None


def _names(text: str) -> set[str]:
    found = (next(filter(None, match.groups())) for match in _NAMED.finditer(_plain(text)))
    return {name for each in found if (name := " ".join(each.strip(_EDGES).casefold().split()))}


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text.split("\n", 1)[0][:_OPENING]).strip()
