"""Turn a question into one SELECT over the flights database."""

from __future__ import annotations

from collections.abc import Iterable

from common.delays import Delay
from common.questions import Group, Question

__all__ = ["METRIC_COLUMN", "delay_in_force", "to_sql"]

METRIC_COLUMN = {
    "flights": "flights",
    "delayed": "delayed_flights",
    "delayed_rate": "delayed_percent",
    "cancelled": "cancelled_flights",
    "cancelled_rate": "cancelled_percent",
    "average_delay": "average_{column}_minutes",
    "maximum_delay": "maximum_{column}_minutes",
    "average_distance": "average_distance_miles",
    "total_distance": "total_distance_miles",
    "average_air_time": "average_air_time_minutes",
}
GROUP_COLUMN: dict[Group, str] = {
    "airline": "a.name",
    "origin": "f.origin",
    "destination": "f.dest",
    "month": "f.month",
    "hour": "f.hour",
}


def delay_in_force(asked: Delay | None, defined: Delay | None) -> Delay:
    """The definition of "delayed" for a question: its own limit first, then the standing definition.

    Column and limit are settled one by one: a limit in the question keeps the defined column, and a
    column in the question keeps the defined limit only when both speak of the same column.
    """
    defined = defined or Delay()
    if asked is None:
        return Delay(defined.column or "arr_delay", defined.minutes, defined.or_equal)
    column = asked.column or defined.column or "arr_delay"
    if asked.minutes or asked.or_equal:
        return Delay(column, asked.minutes, asked.or_equal)
    if column == (defined.column or "arr_delay"):
        return Delay(column, defined.minutes, defined.or_equal)
    return Delay(column)


def to_sql(question: Question, defined: Delay | None) -> str:
    """Write the SELECT: the group first, if any, and the metric last."""
    delay = delay_in_force(question.delay, defined)
    if question.metric in ("average_delay", "maximum_delay"):
        # Which delay is averaged is the question's to say; a definition of "delayed" is about counting.
        delay = Delay((question.delay and question.delay.column) or "arr_delay")
    column = str(delay.column)
    metric = METRIC_COLUMN[question.metric].format(column=column)
    lines = [f"SELECT {_value(question, delay, column)} AS {metric}"]
    if question.group:
        lines[0] = f"SELECT {GROUP_COLUMN[question.group]} AS {question.group}, {lines[0][7:]}"
    lines.append("FROM flights AS f")
    if question.group == "airline":
        lines.append("JOIN airlines AS a ON a.carrier = f.carrier")
    conditions = list(_conditions(question))
    if conditions:
        lines.append("WHERE " + " AND ".join(conditions))
    if question.group:
        lines.append(f"GROUP BY {GROUP_COLUMN[question.group]}")
        lines.append(f"ORDER BY {_order(question, metric)}")
    if question.limit:
        lines.append(f"LIMIT {question.limit}")
    return "\n".join(lines)


def _value(question: Question, delay: Delay, column: str) -> str:
    operator = ">=" if delay.or_equal else ">"
    delayed = f"COUNT(CASE WHEN f.{column} {operator} {delay.minutes:g} THEN 1 END)"
    return {
        "flights": "COUNT(*)",
        "delayed": delayed,
        # A flight whose delay is unknown is in neither count.
        "delayed_rate": f"100.0 * {delayed} / COUNT(f.{column})",
        "cancelled": "COUNT(CASE WHEN f.dep_time IS NULL THEN 1 END)",
        "cancelled_rate": "100.0 * COUNT(CASE WHEN f.dep_time IS NULL THEN 1 END) / COUNT(*)",
        "average_delay": f"AVG(f.{column})",
        "maximum_delay": f"MAX(f.{column})",
        "average_distance": "AVG(f.distance)",
        "total_distance": "SUM(f.distance)",
        "average_air_time": "AVG(f.air_time)",
    }[question.metric]


def _conditions(question: Question) -> Iterable[str]:
    if question.kept.months:
        yield _one_of("f.month", [str(month) for month in question.kept.months])
    if question.kept.origins:
        yield _one_of("f.origin", [f"'{code}'" for code in question.kept.origins])
    if question.kept.destinations:
        yield _one_of("f.dest", [f"'{code}'" for code in question.kept.destinations])
    if question.kept.airlines:
        yield _one_of("f.carrier", [f"'{code}'" for code in question.kept.airlines])


def _one_of(column: str, values: list[str]) -> str:
    return f"{column} = {values[0]}" if len(values) == 1 else f"{column} IN ({', '.join(values)})"


def _order(question: Question, metric: str) -> str:
    if question.order is None and question.group in ("month", "hour"):
        return f"{question.group} ASC"
    direction = "ASC" if question.order == "ascending" else "DESC"
    return f"{metric} {direction} NULLS LAST, {question.group} ASC"
