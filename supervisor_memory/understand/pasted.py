"""Find the pasted parts of a user's message: mails, chats, logs, documents.

They are known by their form, never by their meaning: quoted lines, mail headers, log lines, a conversation
with speakers, and everything after a line that hands over a text ("answer this mail:"). In doubt a line is
pasted: a missed wish can be said again, but somebody else's wish that is kept will be believed.
"""

from collections.abc import Iterator, Sequence

from supervisor_memory.language.lexicon import lexicon

__all__ = ["without_pasted"]

_LEXICON = lexicon("pasted")
_QUOTED_LINE = _LEXICON.pattern("quoted_line")
_LOG_LINE = _LEXICON.pattern("log_line")
_HEADER = _LEXICON.pattern("header")
_SPEAKER = _LEXICON.pattern("speaker")
_NO_SPEAKER = _LEXICON.pattern("no_speaker")
_UTTERANCE = _LEXICON.pattern("utterance")
_HANDS_OVER = _LEXICON.pattern("hands_over")
_CLOSED = (".", "。", "!", "！")
_TASK = _LEXICON.pattern("task")
_SENTENCE_END = _LEXICON.pattern("sentence_end")
_ANNOUNCES = _LEXICON.pattern("announces")


_LEAST_SPEAKERS = 2
_BLOCK = _LEXICON.pattern("block")
_BLANKED = _LEXICON.pattern("blanked")
_SALUTATION = _LEXICON.pattern("salutation")
_CLOSING = _LEXICON.pattern("closing")


def without_pasted(text: str) -> str:
    """The text with its pasted parts replaced by as many spaces, so that positions stay the same."""
    text = _BLOCK.sub(lambda block: _BLANKED.sub(" ", block[0]), text)
    if "\n" not in text:
        return " " * len(text) if _QUOTED_LINE.match(text) else text
    lines = text.split("\n")
    theirs = set(_theirs(lines))
    if not theirs:
        return text
    return "\n".join(" " * len(line) if n in theirs else line for n, line in enumerate(lines))


def _theirs(lines: Sequence[str]) -> Iterator[int]:
    """The numbers of the lines that are not the user's own."""
    for number, line in enumerate(lines):
        if _QUOTED_LINE.match(line) or _LOG_LINE.match(line):
            yield number
    start = min(
        (each for each in (_handed_over(lines), _mail(lines), _chat(lines)) if each is not None), default=None
    )
    if start is not None:
        yield from range(start, len(lines))


def _handed_over(lines: Sequence[str]) -> int | None:
    """The first line after a line that hands over a text; None if no line does."""
    for number, line in enumerate(lines[:-1]):
        if _TASK.search(last := _SENTENCE_END.split(line)[-1]) and not _ANNOUNCES.search(last):
            return number + 1
        is_open = not line.endswith(_CLOSED) or not any(
            each.strip() for each in lines[number + 1 : number + 2]
        )
        if is_open and _HANDS_OVER.search(last) and not _ANNOUNCES.search(last):
            return number + 1
    return None


def _mail(lines: Sequence[str]) -> int | None:
    """The first line of a mail: its headers, or a salutation with a closing formula later; None: no mail."""
    headers = [number for number, line in enumerate(lines) if _HEADER.match(line)]
    if headers:
        return headers[0]
    begun = next((number for number, line in enumerate(lines) if _SALUTATION.match(line)), None)
    if begun is None:
        return None
    closed = next((n for n, line in enumerate(lines) if n > begun and _CLOSING.match(line)), None)
    return (
        begun if closed is not None and sum(bool(line.strip()) for line in lines[closed + 1 :]) > 1 else None
    )


def _chat(lines: Sequence[str]) -> int | None:
    """The first line of a conversation of two or more speakers; None for others, such as a list of fields."""
    spoken = [
        (number, match["who"].casefold())
        for number, line in enumerate(lines)
        if (match := _SPEAKER.match(line))
        and not _NO_SPEAKER.fullmatch(match["who"].strip())
        and _UTTERANCE.search(line[match.end() :])
    ]
    if len({who for _, who in spoken}) < _LEAST_SPEAKERS or any(
        _ANNOUNCES.search(line) for line in lines[: spoken[0][0]]
    ):
        return None
    return spoken[0][0]
