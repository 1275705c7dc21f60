"""The words the rule-based model knows, in English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = [
    "AIRLINE_NAMES",
    "AIRLINE_WORDS",
    "DESTINATIONS",
    "MONTH_NAMES",
    "MONTH_PATTERN",
    "NUMBER",
    "ORIGIN_WORDS",
    "blank",
    "is_chinese",
    "legible",
    "month_of",
    "parse_number",
]

# Longer names first where one begins with another: "US Airways" before "US".
AIRLINE_WORDS: tuple[tuple[str, str], ...] = (
    (r"\bendeavou?r(?: air)?(?: inc\.?)?\b|奋进航空", "9E"),
    (r"\bus airways(?: inc\.?)?\b|全美航空|全美", "US"),
    (r"\bvirgin(?: america)?\b|维珍美国航空|维珍美国|维珍航空|维珍", "VX"),
    (r"\bamerican(?: airlines)?(?: inc\.?)?\b|美国航空|(?<!达)美航", "AA"),
    (r"\balaska(?: airlines)?(?: inc\.?)?\b|阿拉斯加航空|阿拉斯加", "AS"),
    (r"\bjet ?blue(?: airways)?\b|捷蓝航空|捷蓝", "B6"),
    (r"\bdelta(?: air ?lines)?(?: inc\.?)?\b|达美航空|达美", "DL"),
    (r"\bexpressjet(?: airlines)?(?: inc\.?)?\b|快捷航空", "EV"),
    (r"\bfrontier(?: airlines)?(?: inc\.?)?\b|边疆航空|边疆", "F9"),
    (r"\bair ?tran(?: airways)?(?: corporation)?\b|穿越航空", "FL"),
    (r"\bhawaiian(?: airlines)?(?: inc\.?)?\b|夏威夷航空", "HA"),
    (r"\benvoy(?: air)?\b|安沃伊|特使航空", "MQ"),
    (r"\bskywest(?: airlines)?(?: inc\.?)?\b|天西航空", "OO"),
    (r"\bunited(?! states)(?: air ?lines)?(?: inc\.?)?\b|美国联合航空|美联航|联合航空", "UA"),
    (r"\bsouthwest(?: airlines)?(?: co\.?)?\b|西南航空", "WN"),
    (r"\bmesa(?: airlines)?(?: inc\.?)?\b|梅萨航空", "YV"),
)
AIRLINE_NAMES = {
    "9E": "Endeavor Air Inc.",
    "AA": "American Airlines Inc.",
    "AS": "Alaska Airlines Inc.",
    "B6": "JetBlue Airways",
    "DL": "Delta Air Lines Inc.",
    "EV": "ExpressJet Airlines Inc.",
    "F9": "Frontier Airlines Inc.",
    "FL": "AirTran Airways Corporation",
    "HA": "Hawaiian Airlines Inc.",
    "MQ": "Envoy Air",
    "OO": "SkyWest Airlines Inc.",
    "UA": "United Air Lines Inc.",
    "US": "US Airways Inc.",
    "VX": "Virgin America",
    "WN": "Southwest Airlines Co.",
    "YV": "Mesa Airlines Inc.",
}

ORIGIN_WORDS: tuple[tuple[str, str], ...] = (
    (r"\bjohn f\.? kennedy\b|\bkennedy\b|\bjfk\b|肯尼迪", "JFK"),
    (r"\bla ?guardia\b|\blga\b|拉瓜迪亚|拉瓜地亚", "LGA"),
    (r"\bnewark(?: liberty)?\b|\bewr\b|纽瓦克", "EWR"),
)

_DESTINATION_CODES = """
ABQ ACK ALB ANC ATL AUS AVL BDL BGR BHM BNA BOS BQN BTV BUF BUR BWI BZN CAE CAK CHO CHS CLE CLT CMH CRW
CVG DAY DCA DEN DFW DSM DTW EGE EYW FLL GRR GSO GSP HDN HNL HOU IAD IAH ILM IND JAC JAX LAS LAX LEX LGA
LGB MCI MCO MDW MEM MHT MIA MKE MSN MSP MSY MTJ MVY MYR OAK OKC OMA ORD ORF PBI PDX PHL PHX PIT PSE PSP
PVD PWM RDU RIC ROC RSW SAN SAT SAV SBN SDF SEA SFO SJC SJU SLC SMF SNA SRQ STL STT SYR TPA TUL TVC TYS
XNA
"""
DESTINATIONS = frozenset(_DESTINATION_CODES.split())

_MONTHS = "January February March April May June July August September October November December"
MONTH_NAMES = _MONTHS.split()
# "may" is a month only when written as a name; "may I ask" is not about flights in May.
MONTH_PATTERN = (
    r"(?:\b(?P<name>(?i:january|february|april|june|july|august|september|october|november|december)"
    r"|(?i:march)|May|(?<=in )may|(?i:jan|feb|apr|jun|jul|aug|sept?|oct|nov|dec|mar)(?!\w)\.?)(?!\w)"
    r"|(?P<digits>1[0-2]|0?[1-9])(?=\s*月)\s*月份?"
    r"|(?P<hanzi>十[一二]|[一二三四五六七八九十])月份?)"
)

_UP_TO_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
ENGLISH_NUMBERS = {word: value for value, word in enumerate(_UP_TO_TWENTY.split())} | {
    "thirty": 30,
    "forty": 40,
    "forty-five": 45,
    "fifty": 50,
    "sixty": 60,
    "ninety": 90,
}
CHINESE_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"两": 2}

NUMBER = (
    r"(?:\d+(?:\.\d+)?|[零一二两三四五六七八九十百]+|\b(?:"
    + "|".join(sorted(ENGLISH_NUMBERS, key=len, reverse=True))
    + r")\b)"
)


_HALF_WIDTH = {
    code: code - 0xFEE0 for code in (*range(0xFF10, 0xFF1A), *range(0xFF21, 0xFF3B), *range(0xFF41, 0xFF5B))
}
_NEXT_TO_LATIN = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z])|(?<=[A-Za-z])(?=[\u4e00-\u9fff])")


def legible(text: str) -> str:
    """The text as the word lists spell it: half-width digits and letters, apart from Chinese characters.

    "１２月JFK出发" becomes "12月 JFK 出发": in a regular expression a Chinese character is a letter
    too, so that no word boundary stands between it and "JFK".
    """
    return _NEXT_TO_LATIN.sub(" ", text.translate(_HALF_WIDTH))


def is_chinese(text: str) -> bool:
    """Whether the text holds any Chinese character."""
    return re.search(r"[\u4e00-\u9fff]", text) is not None


def parse_number(text: str) -> float | None:
    """Read "15", "fifteen" or "十五"; None when it is no number."""
    text = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if text in ENGLISH_NUMBERS:
        return float(ENGLISH_NUMBERS[text])
    return _parse_chinese(text)


def blank(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Replace the spans by spaces, so that places in the text stay what they were."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def month_of(match: re.Match[str]) -> int:
    """The month, 1 to 12, that a match of `MONTH_PATTERN` names."""
    if match["name"]:
        start = match["name"][:3].title()
        return next(i for i, name in enumerate(MONTH_NAMES, start=1) if name.startswith(start))
    if match["digits"]:
        return int(match["digits"])
    number = _parse_chinese(match["hanzi"])
    assert number is not None
    return int(number)


def _parse_chinese(text: str) -> float | None:
    if not text or not re.fullmatch("[零一二两三四五六七八九十百]+", text):
        return None
    total, digit = 0, 0
    for character in text:
        if character == "百":
            total, digit = total + (digit or 1) * 100, 0
        elif character == "十":
            total, digit = total + (digit or 1) * 10, 0
        else:
            digit = CHINESE_DIGITS[character]
    return float(total + digit)
