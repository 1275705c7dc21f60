"""Characters that nobody sees: one list for notes, names, terminals, pages, the gate and redaction.

A text is kept as it was said. Hidden characters are left out of notes, and spelled out on terminals and
pages.

Unseen are control and format characters, Unicode's Default_Ignorable_Code_Point (variation selectors,
fillers, joiners, tags) and blank letters. Spaces, tabs and line breaks are not.

An unseen character is not hidden where it changes the look: a selector after an emoji, a joiner between two
emoji, a joiner between two letters of Persian, Hindi or the like. There it stays in texts and in names of
agents, tasks and sessions; a user's id may hold none.
"""

import re
from typing import Final

_CHARACTERS: Final = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160"
    "\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff"
    "\uffa0\ufff0-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
UNSEEN: Final = re.compile(f"[{_CHARACTERS}]+")
"""A run of unseen characters, at any place."""

_EMOJI: Final = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55\u3030"
    "\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_SPELLED_SO: Final = "[\u0620-\u06d3\u0750-\u077f\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17d3]"
_AT_ITS_PLACE: Final = "|".join((
    f"(?<={_EMOJI})[\ufe0e\ufe0f]",
    "(?<=[#*0-9])\ufe0f(?=\u20e3)",
    f"(?:(?<={_EMOJI})|(?<={_EMOJI}\ufe0f))\u200d(?={_EMOJI})",
    f"(?<={_SPELLED_SO})[\u200c\u200d](?={_SPELLED_SO})",
))  # fmt: skip
HIDDEN: Final = re.compile(f"(?!{_AT_ITS_PLACE})[{_CHARACTERS}]")
"""An unseen character at a place where it does not change the look."""


def visible(text: str) -> str:
    """The text as a reader sees it, without hidden characters."""
    is_plain = (text.isascii() and text.isprintable()) or not UNSEEN.search(text)
    return text if is_plain else HIDDEN.sub("", text)
