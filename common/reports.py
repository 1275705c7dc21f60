"""The form in which agents pass figures on to each other: SQL, file and rows, in one text."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass

__all__ = ["Figures", "chart_in", "csv_in", "figures_in", "sql_in", "to_csv", "write_report"]


@dataclass(frozen=True)
class Figures:
    """A result as agents see it: unrounded, the group first if there is one, the metric last."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def to_csv(columns: tuple[str, ...], rows: tuple[tuple[object, ...], ...]) -> str:
    """Header and rows as CSV text; NULL becomes an empty cell."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return lines.getvalue()


def write_report(sql: str, *, path: str, row_count: int, preview: str) -> str:
    """Phrase a query's result for the next reader.

    Args:
        sql: The statement that ran.
        path: The CSV file.
        row_count: Rows in that file.
        preview: The file's text, or its beginning.
    """
    return f"```sql\n{sql}\n```\nFile: {path} ({row_count} rows)\n```csv\n{preview}```"


def figures_in(report: str) -> Figures | None:
    """The rows that a report shows; None when it shows none."""
    found = re.search(r"```csv\n(.*?)```", report, re.DOTALL)
    if not found:
        return None
    header, *rows = list(csv.reader(io.StringIO(found.group(1)))) or [[]]
    return Figures(tuple(header), tuple(tuple(row) for row in rows if row))


def sql_in(report: str) -> str:
    """The statement that a report shows; empty when it shows none."""
    found = re.search(r"```sql\n(.*?)\n```", report, re.DOTALL)
    return found.group(1) if found else ""


def csv_in(report: str) -> str:
    """The path of the CSV file that a report names; empty when it names none."""
    found = re.search(r"^File: (.+\.csv)\b", report, re.MULTILINE)
    return found.group(1) if found else ""


def chart_in(report: str) -> str:
    """The path of the picture that a report names; empty when it names none."""
    found = re.search(r"^Chart: (.+\.png)\b", report, re.MULTILINE)
    return found.group(1) if found else ""
