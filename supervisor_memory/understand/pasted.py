"""Find the pasted parts of a user's message: mails, chats, logs, documents.

They are known by their form, never by their meaning: quoted lines, mail headers, log lines, a conversation
with speakers, and everything after a line that hands over a text ("answer this mail:"). In doubt a line is
pasted: a missed wish can be said again, but somebody else's wish that is kept will be believed.
"""

import re
from collections.abc import Iterator, Sequence

__all__ = ["without_pasted"]

_QUOTED_LINE = re.compile(r"\s*(?:>|\|(?!\|).*\|\s*$)")
_LOG_LINE = re.compile(
    r"\s*(?:\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d\b|\[?(?:ERROR|WARN(?:ING)?|INFO|DEBUG|FATAL|"
    r"TRACE)\]?[ :]|Traceback \(|File \"|at [\w.$<>]+\(|(?:\$|>>>|In \[\d+\]:|sqlite>|mysql>) )"
)
_HEADER = re.compile(
    r"\s*(?:from|subject|sent|fwd?|reply-to|发件人|收件人|主题|转发)"
    r"\s*[:：]\s*\S",
    re.IGNORECASE,
)
_SPEAKER = re.compile(
    r"\s*(?:\[[^\]\n]{1,24}\]\s*)?(?P<who>[^\W\d][\w .'’\-]{0,24})(?:\s*\([^)\n]{1,24}\))?[:：]\s*"
)
_NO_SPEAKER = re.compile(
    r"(?:please )?(?:remember|note|also|fyi|btw|ps|p\.s\.|correction|ok|okay|yes|no|well|hi|hello|actually|"
    r"first|second|"
    r"third|finally|by the way|one more thing|decision|definition|rule|记住|记一下|注意|另外|补充|更正|"
    r"纠正|还有|对了|规则|偏好|定义|"
    r"决定).*",
    re.IGNORECASE,
)
_UTTERANCE = re.compile(r"\b(?:I|you|we|me|my)\b|[我你您咱]|[.!?。！？…]\s*$|\S \S+ \S+ \S")
_A_TEXT = (
    r"(?:e-?mails?|mails?|letters?|texts?|transcripts?|logs?|readme|docs?|documents?|articles?|posts?|"
    r"reviews?|comments?|contracts?|tickets?|chats?|conversations?|paragraphs?|essays?|drafts?|outputs?|"
    r"snippets?|code|messages?|minutes|notes?|stack ?traces?|tracebacks?|bios?|cvs?|r[eé]sum[eé]s?|prompts?|"
    r"speech(?:es)?|stor(?:y|ies)|poems?|lyrics|page|passage|excerpt|quotes?|feedback|response)"
)
_A_TEXT_ZH = (
    r"(?:邮件|来信|信件|这封信|文本|原文|记录|纪要|日志|文章|评论|评价|合同|工单|聊天|对话|段话|段落|这段|"
    r"这篇|说明|草稿|报错|代码|"
    r"文案|简历|通知|帖子|消息|短信|反馈|脚本|提示词|故事|演讲稿|投诉)"
)
_HANDS_OVER = re.compile(
    rf"\b(?:this|the|that|these|his|her|their|my|a|an|below|following) (?:[\w'-]+ ){{0,3}}?{_A_TEXT}\b"
    rf"|\b(?:here(?:'s| is| are)?|below|as follows|the following|wrote|writes|says?|said)\b[^.?!]{{0,60}}$"
    r"|\b(?:proofread|translate|rewrite|rephrase|summari[sz]e|polish|correct|paraphrase|fix|explain|review)\b"
    r"[^.?!]{0,40}[:：]\s*$"
    rf"|{_A_TEXT_ZH}|(?:下面|以下|如下)[^。]{{0,20}}[:：]\s*$"
    r"|(?:翻译|润色|改写|校对|总结|概括|解释)[^。]{0,20}[:：]\s*$",
    re.IGNORECASE,
)
_CLOSED = (".", "。", "!", "！")
_TASK = re.compile(
    r"(?:^(?:please |can you |could you )?(?:find|fix|debug|check|explain|review|improve|format|refactor|"
    r"rate|answer|grade|edit)\b|"
    r"^(?:请|帮我|麻烦你?)*(?:找|改|看|检查|修|解释|优化|分析|评价|打分|回复|"
    r"回答))[^.?!。？！]{0,60}[:：]\s*$",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=\S)|(?<=[。！？])(?=\S)")
_ANNOUNCES = re.compile(
    r"\b(?:remember|keep in mind|note (?:that|down|the following)|about (?:me|us|myself)|from now on|"
    r"(?:my|our|these|the following|some|a few) (?:[\w-]+ )?(?:preferences|rules|details|facts|definitions|"
    r"wishes|conventions|habits))\b|记住|记下|记一下|记得|偏好|规则|习惯|口径|关于我|我的(?:情况|信息|"
    r"要求)|以后|约定",
    re.IGNORECASE,
)


_LEAST_SPEAKERS = 2
_BLOCK = re.compile(
    r"<(?!(?:b|i|u|em|strong|code|span|sub|sup|a|kbd|mark)\b)([a-z][\w-]{0,30})\b[^<>]{0,80}>.{1,4000}?</\1>",
    re.IGNORECASE | re.DOTALL,
)
"""A text between tags, except tags that only mark a word."""
_BLANKED = re.compile(r"[^\n]")
_SALUTATION = re.compile(
    r"\s*(?:(?:dear|hi|hello) [^\W\d][\w .'-]{0,30}[,:]|(?:尊敬的|亲爱的)?\w{1,8}"
    r"(?:你好|您好)?[:：,，])\s*$",
    re.IGNORECASE,
)
_CLOSING = re.compile(
    r"\s*(?:(?:(?:best|kind|warm) (?:regards|wishes)|best|regards|cheers|sincerely|yours[\w ]{0,40}|"
    r"thanks|thank you)\b[,. ]*[\w .-]{0,30}|此致.*|敬礼.*|祝好.*|顺祝.*)$",
    re.IGNORECASE,
)


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
