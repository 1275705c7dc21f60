"""One spelling for figures that are written in many ways: ½, minus 5, 零下5, 9 pm, 下午九点.

What compares two texts reads them through `plain`, so that a sign, a fraction or half a day cannot get lost.
"""

import re
import unicodedata

__all__ = ["plain"]

_FRACTION = re.compile(r"(?:(?<![\d.,])(\d{1,9}) ?)?([¼-¾⅐-⅞])")
_HALF = re.compile(r"\bhalf an? (?!hour\b)(?=[a-z])|半(?=[吨斤升米克里箱桶]|公[斤里])", re.IGNORECASE)
_MINUS = re.compile(
    r"(?:零下|摄氏负|华氏负|负) ?(?=\d)|(?:零下|负)(?P<zh>[一二两三四五六七八九]?十[一二三四五六七八九]?|"
    r"[一二两三四五六七八九])(?=度|摄氏|华氏|[,，。]|$)"
    r"|\b(?:minus|negative) (?=\d)|(?<![A-Za-z0-9_%)])−(?=\d)",
    re.IGNORECASE,
)
_BELOW = re.compile(
    r"(?<![\w.-])(\d{1,4}(?:\.\d{1,4})? ?(?:degrees?|°)? ?[CF]?) below (?:zero|freezing)\b", re.I
)
_CHINESE = {**{c: n for n, c in enumerate("零一二三四五六七八九十")}, "两": 2, "十一": 11, "十二": 12}
_CLOCK = re.compile(
    r"(?<![A-Za-z0-9_.:])(?P<hour>1[0-2]|0?[1-9])(?:[:.](?P<minute>[0-5]\d))? ?(?P<half>[ap])(?:\.m\.|\.?m\b)"
    r"|(?P<zh>凌晨|清晨|早[上晨]|上午|今早|明早|中午|下午|午后|傍晚|晚上|今晚|明晚|夜[里间]) ?"
    r"(?P<hourzh>2[0-3]|1\d|0?\d|十[一二]?|[一二两三四五六七八九])"
    r"(?:[:：](?P<minutezh>[0-5]\d)| ?点(?:钟|(?P<thirty>半)|(?P<past>[0-5]?\d)分?)?)(?!\d)",
    re.IGNORECASE,
)
_MORNING = frozenset(["凌晨", "清晨", "早上", "早晨", "上午", "今早", "明早"])
_NOON = 12


def plain(text: str) -> str:
    """The text in normal form (NFKC, straight apostrophes, single spaces) and its figures in one spelling.

    Times whose half of the day is told are written as 21:00, negatives as -5, fractions as 0.5.
    """
    text = _FRACTION.sub(_decimal, text)
    text = " ".join(unicodedata.normalize("NFKC", text).replace("’", "'").split())
    text = _BELOW.sub(r"-\1", _MINUS.sub(_signed, _HALF.sub("0.5 ", text)))
    return _CLOCK.sub(_of_day, text)


def _decimal(match: re.Match[str]) -> str:
    value = int(match[1] or 0) + unicodedata.numeric(match[2])
    return f"{value:.4f}".rstrip("0")


def _signed(match: re.Match[str]) -> str:
    if not (words := match["zh"]):
        return "-"
    tens, ten, ones = words.rpartition("十")
    return f"-{10 * _CHINESE.get(tens, 1) * len(ten) + _CHINESE.get(ones, 0)}"


def _of_day(match: re.Match[str]) -> str:
    if match["half"]:
        hour = int(match["hour"]) % _NOON + (_NOON if match["half"].casefold() == "p" else 0)
        return f"{hour:02}:{match['minute'] or '00'}"
    hour = _CHINESE[match["hourzh"]] if match["hourzh"] in _CHINESE else int(match["hourzh"])
    minute = match["minutezh"] or ("30" if match["thirty"] else (match["past"] or "0").zfill(2))
    if match["zh"] in _MORNING:
        hour %= _NOON
    elif match["zh"] != "中午" or hour < _NOON - 1:
        hour = hour % _NOON + _NOON if hour < _NOON else hour
    return f"{hour:02}:{minute}"
