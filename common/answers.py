"""Phrase figures in the language, form, unit and precision that were asked for."""

from __future__ import annotations

from typing import Literal

from common.delays import Delay
from common.preferences import Preferences
from common.queries import delay_in_force
from common.questions import Question
from common.quotations import Quotation
from common.reports import Figures
from common.vocabulary import AIRLINE_NAMES, MONTH_NAMES

__all__ = ["acknowledge", "apologise", "axis_label", "conclude", "phrase", "recount", "refuse", "scale_of"]

Language = Literal["en", "zh"]

METRICS = {
    "flights": ("number of flights", "航班数"),
    "delayed": ("number of delayed flights", "延误航班数"),
    "delayed_rate": ("share of delayed flights", "延误率"),
    "cancelled": ("number of cancelled flights", "取消航班数"),
    "cancelled_rate": ("share of cancelled flights", "取消率"),
    "average_distance": ("average distance", "平均距离"),
    "total_distance": ("total distance", "总距离"),
    "average_air_time": ("average air time", "平均空中时间"),
}
DELAY_METRICS = {
    ("average_delay", "arr_delay"): ("average arrival delay", "平均到达延误"),
    ("average_delay", "dep_delay"): ("average departure delay", "平均出发延误"),
    ("maximum_delay", "arr_delay"): ("maximum arrival delay", "最大到达延误"),
    ("maximum_delay", "dep_delay"): ("maximum departure delay", "最大出发延误"),
}
GROUPS = {
    "airline": ("airline", "航空公司"),
    "origin": ("origin airport", "出发机场"),
    "destination": ("destination", "目的地"),
    "month": ("month", "月份"),
    "hour": ("hour of departure", "出发小时"),
}
MINUTES, HOURS, MILES = ("minutes", "分钟"), ("hours", "小时"), ("miles", "英里")
UNITS = {
    "delayed_rate": ("%", "%"),
    "cancelled_rate": ("%", "%"),
    "average_delay": MINUTES,
    "maximum_delay": MINUTES,
    "average_distance": MILES,
    "total_distance": MILES,
    "average_air_time": MINUTES,
}
WHOLE = frozenset({"flights", "delayed", "cancelled", "total_distance", "maximum_delay"})
DELAYS = frozenset({"average_delay", "maximum_delay"})
LEADING_ROWS = 5


def phrase(question: Question, wishes: Preferences, figures: Figures, *, chart: str = "") -> str:
    """Write the answer to the user.

    Args:
        question: What was asked.
        wishes: Format, language, decimals and unit.
        figures: Unrounded rows.
        chart: Path of the picture drawn for it; empty when there is none.
    """
    language = _language(wishes)
    rows = [(_label(row, question, language), _value(row[-1], question, wishes)) for row in figures.rows]
    if not rows:
        text = _say(language, "No flights match the question.", "没有符合条件的航班。")
    elif question.group is None and rows[0][1] == "":
        text = _say(language, "No flight that matches has a known value.", "符合条件的航班没有已知数值。")
    else:
        text = _laid_out(
            question, wishes, [(label, value or _say(language, "n/a", "无")) for label, value in rows]
        )
    return f"{text}\n\n{_say(language, 'Chart', '图表')}: {chart}" if chart else text


def conclude(
    question: Question, wishes: Preferences, figures: Figures, *, sql: str, path: str, chart: str
) -> str:
    """Write a conclusion that names the figures and what they rest on."""
    language = _language(wishes)
    plain = Preferences(
        format="sentence", language=language, decimals=wishes.decimals, unit=wishes.unit, delay=wishes.delay
    )
    shown = Figures(figures.columns, figures.rows[:LEADING_ROWS])
    finding = phrase(question, plain, shown)
    left_out = len(figures.rows) - len(shown.rows)
    if left_out > 0:
        finding += _say(language, f" ({left_out} more rows in the file.)", f"（文件中另有 {left_out} 行。）")
    evidence = _say(language, "Evidence", "依据")
    picture = f"\nChart: {chart}" if chart else ""
    return f"{finding}\n\n{evidence}:\n```sql\n{sql}\n```\nFile: {path} ({len(figures.rows)} rows){picture}"


def axis_label(question: Question, wishes: Preferences) -> str:
    """Name the metric and its unit in English: charts are drawn with a font that has no Chinese."""
    name, unit = _metric(question, wishes, "en"), _unit(question, wishes, "en")
    return f"{name} ({unit})" if unit else name


def scale_of(question: Question, wishes: Preferences) -> float:
    """What a stored value is divided by before it is shown."""
    return 60.0 if wishes.unit == "hours" and question.metric in DELAYS else 1.0


def acknowledge(language: Language) -> str:
    """Answer a message that asks nothing."""
    return _say(language, "Understood, I will keep to that.", "好的，已了解。")


def refuse(language: Language) -> str:
    """Say honestly that the data holds no answer, and what it does hold."""
    return _say(
        language,
        "I can't answer that with this data. I know the flights that left New York (JFK, LGA, EWR) in 2013: "
        "the number of flights, delayed and cancelled flights and their shares, average or maximum arrival "
        "and departure delay, distance and air time; overall or by airline, origin airport, destination, "
        "month or hour of departure, and for chosen months, airports and airlines.",
        "我无法用这份数据回答这个问题。我掌握 2013 年从纽约（JFK、LGA、EWR）出发的航班："
        "航班数、延误与取消的航班数及比例、平均或最大的到达/出发延误、飞行距离和空中时间；"
        "可按航空公司、出发机场、目的地、月份或出发小时统计，也可限定月份、机场和航空公司。",
    )


def recount(language: Language, said: Quotation) -> str:
    """Answer with what was said in an earlier conversation, and say that this is where it comes from."""
    if not said.who:
        return _say(language, f"On {said.day}: {said.words}", f"{said.day}：{said.words}")
    who = _say(language, "you", "您") if said.who == "user" else said.who
    return _say(
        language,
        f"On {said.day} {who} said: “{said.words}”",
        f"{said.day} {who}说过：“{said.words}”",
    )


def apologise(language: Language, reason: str) -> str:
    """Say that the figures could not be had."""
    return _say(language, f"I could not get the figures: {reason}", f"未能取得数据：{reason}")


def _say(language: Language, english: str, chinese: str) -> str:
    return chinese if language == "zh" else english


def _language(wishes: Preferences) -> Language:
    return wishes.language or "en"


def _laid_out(question: Question, wishes: Preferences, rows: list[tuple[str, str]]) -> str:
    language = _language(wishes)
    unit = _unit(question, wishes, language)
    metric = _metric(question, wishes, language)
    scope = _scope(question, language)
    name = _capital(
        f"{metric}{_say(language, f' {scope}' if scope else '', f'（{scope}）' if scope else '')}"
    )
    if wishes.format == "table":
        group = (
            _say(language, *GROUPS[question.group]) if question.group else _say(language, "metric", "指标")
        )
        value = f"{name} ({unit})" if unit else name
        if question.group is None:
            rows, value = [(name, rows[0][1])], unit or _say(language, "value", "数值")
        lines = [f"| {_capital(group)} | {_capital(value)} |", "| --- | ---: |"]
        return "\n".join(lines + [f"| {label} | {number} |" for label, number in rows])
    written = [(label, _with_unit(number, unit, language)) for label, number in rows]
    colon = _say(language, ": ", "：")
    if wishes.format == "list":
        if question.group is None:
            return f"- {name}{colon}{written[0][1]}"
        head = (
            f"{name}, {_by(question, language)}" if language == "en" else f"{name}，{_by(question, language)}"
        )
        return "\n".join(
            [head + colon.rstrip(), "", *(f"- {label}{colon}{value}" for label, value in written)]
        )
    return _sentence(question, wishes, name, written)


def _sentence(question: Question, wishes: Preferences, name: str, rows: list[tuple[str, str]]) -> str:
    language = _language(wishes)
    if question.group is None:
        return _say(language, f"The {name[0].lower()}{name[1:]} is {rows[0][1]}.", f"{name}为 {rows[0][1]}。")
    by = _by(question, language)
    if len(rows) == 1 and question.order:
        group = _say(language, *GROUPS[question.group])
        extreme = (
            _say(language, "lowest", "最低")
            if question.order == "ascending"
            else _say(language, "highest", "最高")
        )
        label, value = rows[0]
        return _say(
            language,
            f"The {group} with the {extreme} {name[0].lower()}{name[1:]} is {label}: {value}.",
            f"{name}{extreme}的{group}是 {label}：{value}。",
        )
    if wishes.format == "sentence":
        listed = _say(language, "; ", "；").join(f"{label} {value}" for label, value in rows)
        return _say(language, f"{name}, {by}: {listed}.", f"{name}，{by}：{listed}。")
    colon = _say(language, ": ", "：")
    head = _say(language, f"{name}, {by}:", f"{name}，{by}：")
    return "\n".join([head, *(f"{label}{colon}{value}" for label, value in rows)])


def _by(question: Question, language: Language) -> str:
    group = _say(language, *GROUPS[question.group or "airline"])
    return _say(language, f"by {group}", f"按{group}")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _metric(question: Question, wishes: Preferences, language: Language) -> str:
    if question.metric in DELAYS:
        column = (question.delay and question.delay.column) or "arr_delay"
        return _say(language, *DELAY_METRICS[question.metric, column])
    name = _say(language, *METRICS[question.metric])
    if question.metric in ("delayed", "delayed_rate"):
        return name + _definition(delay_in_force(question.delay, wishes.delay), language)
    return name


def _definition(delay: Delay, language: Language) -> str:
    on_arrival = delay.column != "dep_delay"
    minutes = f"{delay.minutes:g}"
    if language == "zh":
        side = "到达" if on_arrival else "出发"
        if not delay.minutes:
            return f"（{side}晚点）"
        return f"（{side}晚点{'至少' if delay.or_equal else '超过'} {minutes} 分钟）"
    side = "arriving" if on_arrival else "departing"
    if not delay.minutes:
        return f" ({side} late)"
    return f" ({side} {'at least' if delay.or_equal else 'more than'} {minutes} minutes late)"


def _scope(question: Question, language: Language) -> str:
    """The filters in words."""
    airlines = [AIRLINE_NAMES[code] for code in question.kept.airlines]
    if language == "zh":
        months = "、".join(f"{month}月" for month in question.kept.months)
        parts = (
            "、".join(airlines),
            months,
            f"从 {'、'.join(question.kept.origins)} 出发" if question.kept.origins else "",
            f"飞往 {'、'.join(question.kept.destinations)}" if question.kept.destinations else "",
        )
        return "，".join(part for part in parts if part)
    listed = (
        ("for", airlines),
        ("from", list(question.kept.origins)),
        ("to", list(question.kept.destinations)),
        ("in", [MONTH_NAMES[month - 1] for month in question.kept.months]),
    )
    return " ".join(f"{word} {_and(names)}" for word, names in listed if names)


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _unit(question: Question, wishes: Preferences, language: Language) -> str:
    if question.metric in DELAYS and wishes.unit == "hours":
        return _say(language, *HOURS)
    return _say(language, *UNITS.get(question.metric, ("", "")))


def _with_unit(number: str, unit: str, language: Language) -> str:
    if not unit or number in ("n/a", "无"):
        return number
    return f"{number}%" if unit == "%" else f"{number} {unit}"


def _label(row: tuple[str, ...], question: Question, language: Language) -> str:
    if question.group is None:
        return ""
    if question.group == "month":
        return _say(language, MONTH_NAMES[int(row[0]) - 1], f"{row[0]}月")
    if question.group == "hour":
        return _say(language, f"{int(row[0]):02d}:00", f"{row[0]}时")
    return row[0]


def _value(cell: str, question: Question, wishes: Preferences) -> str:
    if cell == "":
        return ""
    scale = scale_of(question, wishes)
    if question.metric in WHOLE and scale == 1.0:
        return f"{float(cell):.0f}"
    number = float(cell) / scale
    text = f"{number:.{2 if wishes.decimals is None else wishes.decimals}f}"
    return text.removeprefix("-") if float(text) == 0 else text
