"""Statistics: the agent that aggregates a query result and draws it."""

from __future__ import annotations

import io
import statistics
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, ToolException, tool

from agents.member import Member, ResultFolder, Run
from common.memory_state import CustomState
from common.reports import Figures

__all__ = ["StatisticsAgent"]

PROMPT = """\
You are statistics. You work on the CSV file that text2sql reported; its last column is the metric.

- Call summarize_result for count, mean, lowest and highest value.
- When the user wants a picture, call draw_chart: bars unless lines are wished for. Write title and
  label in English, because the font of the charts has no other script. divide_by is 60 when minutes are to
  be shown as hours, otherwise 1.
- Then report what the tools returned, the lines beginning "Chart:" unchanged. Invent no figures.
"""


# More labels than this overlap unless they lean.
UPRIGHT_LABELS = 4


class StatisticsAgent(Member):
    """Aggregates the rows of a result and draws a PNG.

    Args:
        model: Any chat model that can call tools.
        output_dir: Where results lie and pictures go.
    """

    name = "statistics"

    def __init__(self, model: BaseChatModel, *, output_dir: Path) -> None:
        self.model = model
        self.results = ResultFolder(output_dir)
        self.tools = self._init_tools()
        self.agent = self._init_agent()

    def _init_tools(self) -> list[BaseTool]:
        @tool
        def summarize_result(csv_path: str) -> str:
            """Count, mean, lowest and highest value of the last column of a result.

            Args:
                csv_path: The CSV file named in text2sql's report.
            """
            return summarize(self.results.read(csv_path))

        @tool(response_format="content_and_artifact")
        def draw_chart(
            csv_path: str, kind: Literal["bar", "line"], title: str, value_label: str, divide_by: float = 1.0
        ) -> tuple[str, list[dict[str, Any]]]:
            """Draw the last column of a result over its first one as a PNG.

            Args:
                csv_path: The CSV file named in text2sql's report.
                kind: "bar" or "line".
                title: Heading of the chart, in English.
                value_label: Name and unit of the metric, in English.
                divide_by: What every value is divided by before it is drawn; 60 turns minutes to hours.
            """
            return self.chart(csv_path, kind=kind, title=title, value_label=value_label, divide_by=divide_by)

        summarize_result.handle_tool_error = True
        draw_chart.handle_tool_error = True
        return [summarize_result, draw_chart]

    def _init_agent(self) -> Runnable[Any, Any]:
        return create_agent(self.model, self.tools, system_prompt=PROMPT, name=self.name, checkpointer=False)

    def chart(
        self, csv_path: str, *, kind: Literal["bar", "line"], title: str, value_label: str, divide_by: float
    ) -> tuple[str, list[dict[str, Any]]]:
        """Draw a result; returns the line that names the picture and the side effect.

        Raises:
            ToolException: The file is no result of this team, holds no numbers, or divide_by is 0.
        """
        figures = self.results.read(csv_path)
        points = [(row[0] if len(row) > 1 else "all", float(row[-1])) for row in figures.rows if row[-1]]
        if not points or not divide_by:
            raise ToolException("there is nothing to draw: no rows with a value, or divide_by is 0")
        labels = [label for label, _ in points]
        values = [value / divide_by for _, value in points]
        name = sha256(repr((labels, values, kind, title, value_label)).encode()).hexdigest()[:16]
        path = self.results.folder / f"{name}.png"
        path.write_bytes(draw(labels, values, kind=kind, title=title, value_label=value_label))
        drawn = {"type": "chart", "agent": self.name, "path": str(path), "chart": kind}
        return f"Chart: {path}", [drawn | {"rests_on": [("file", csv_path)]}]

    def update(self, state: CustomState, run: Run) -> dict[str, Any]:
        """The report and the picture."""
        return run.as_update(state)


def summarize(figures: Figures) -> str:
    """Describe the metric column in one line."""
    values = [(float(row[-1]), row[0]) for row in figures.rows if row[-1]]
    if not values:
        return "The result holds no values."
    numbers = [value for value, _ in values]
    lowest, highest = min(values), max(values)
    return (
        f"{figures.columns[-1]}: {len(numbers)} values, mean {statistics.fmean(numbers):g}, "
        f"lowest {lowest[0]:g} ({lowest[1]}), highest {highest[0]:g} ({highest[1]})"
    )


def draw(
    labels: list[str], values: list[float], *, kind: Literal["bar", "line"], title: str, value_label: str
) -> bytes:
    """A PNG of the values over their labels."""
    # Importing matplotlib takes longer than answering most questions, which want no chart.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(6.4, 0.3 * len(labels)), 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    places = range(len(labels))
    if kind == "line":
        axes.plot(places, values, marker="o")
    else:
        axes.bar(places, values)
    if len(labels) > UPRIGHT_LABELS:
        axes.set_xticks(places, labels, rotation=60, ha="right")
    else:
        axes.set_xticks(places, labels)
    axes.set_title(title)
    axes.set_ylabel(value_label)
    picture = io.BytesIO()
    # Without the name of the program the same figures give the same bytes everywhere.
    figure.savefig(picture, format="png", metadata={"Software": None})
    return picture.getvalue()
