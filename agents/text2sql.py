"""Text2SQL: the agent that turns a question into one SELECT and a CSV file."""

from __future__ import annotations

import os
import tempfile
from hashlib import sha256
from pathlib import Path
from typing import Any

import sqlglot
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool, ToolException, tool
from sqlglot import exp
from sqlglot.errors import SqlglotError

from agents.member import Member, Run
from common.database import SCHEMA, QueryFailed, select
from common.memory_state import CustomState
from common.reports import to_csv, write_report

__all__ = ["Text2SQLAgent", "check_single_select"]

PROMPT = f"""\
You are text2sql. You answer the data part of the user's question with one SQLite SELECT.

{SCHEMA}

- Call run_sql with exactly one SELECT statement. Repair it when the tool reports an error.
- Select the group column first, if there is one, and the metric last; do not round.
- By default the late flights are those with arr_delay > 0. What the user or a note above the conversation
  says instead goes first, and a limit in the question itself before that.
- A rate is a percentage, 0 to 100, of the flights whose delay is known (not NULL).
- Show the full name from airlines when grouping by airline.
- When the tool has answered, repeat its answer as it stands: SQL, file and rows. Invent no figures.
"""
PREVIEW_ROWS = 200
MAX_ROWS = 10_000
TIMEOUT_SECONDS = 10.0


class Text2SQLAgent(Member):
    """Writes SQL, runs it without the right to write, and leaves the result in a file.

    Args:
        model: Any chat model that can call tools.
        database: The SQLite file.
        output_dir: Where CSV files go; created when the first one is written.
    """

    name = "text2sql"

    def __init__(self, model: BaseChatModel, *, database: Path, output_dir: Path) -> None:
        self.model = model
        self.database = database
        self.output_dir = output_dir
        self.tools = self._init_tools()
        self.agent = self._init_agent()

    def _init_tools(self) -> list[BaseTool]:
        @tool(response_format="content_and_artifact")
        def run_sql(sql: str) -> tuple[str, list[dict[str, Any]]]:
            """Run one read-only SELECT on the flights database; returns SQL, CSV file and rows.

            Args:
                sql: Exactly one SQLite SELECT statement.
            """
            return self.query(sql)

        run_sql.handle_tool_error = True
        return [run_sql]

    def _init_agent(self) -> Runnable[Any, Any]:
        return create_agent(self.model, self.tools, system_prompt=PROMPT, name=self.name, checkpointer=False)

    def query(self, sql: str) -> tuple[str, list[dict[str, Any]]]:
        """Run the statement and write its CSV; returns the report and the side effects.

        Raises:
            ToolException: The statement is not one SELECT, or SQLite refused it.
        """
        sql = sql.strip().rstrip(";").rstrip()
        check_single_select(sql)
        try:
            result = select(self.database, sql, max_rows=MAX_ROWS, timeout_seconds=TIMEOUT_SECONDS)
        except QueryFailed as error:
            raise ToolException(str(error)) from error
        path = self.output_dir / f"{sha256(sql.encode()).hexdigest()[:16]}.csv"
        text = to_csv(result.columns, result.rows)
        write_whole(path, text)
        digest = sha256(text.encode()).hexdigest()[:16]
        report = write_report(
            sql,
            path=str(path),
            row_count=len(result.rows),
            preview=to_csv(result.columns, result.rows[:PREVIEW_ROWS]),
        )
        if result.is_cut:
            report += f"\nOnly the first {MAX_ROWS} rows are in the file."
        return report, [
            {"type": "sql", "agent": self.name, "sql": sql},
            {
                "type": "csv",
                "agent": self.name,
                "path": str(path),
                "rows": len(result.rows),
                "digest": digest,
            },
        ]

    def update(self, state: CustomState, run: Run) -> dict[str, Any]:
        """The report and what it left behind."""
        return run.as_update(state)


def check_single_select(sql: str) -> None:
    """Refuse anything but one SELECT, with words a model can act on.

    The connection would refuse it too; this says why before SQLite is asked.

    Raises:
        ToolException: The text is no SQL, or more or something else than one SELECT.
    """
    try:
        parsed = sqlglot.parse(sql, read="sqlite")
    except SqlglotError as error:
        raise ToolException(f"this is not valid SQLite: {error}; send one SELECT") from error
    if len(parsed) != 1 or not isinstance(parsed[0], exp.Select | exp.SetOperation):
        raise ToolException("only a single SELECT statement is allowed; send exactly one")
    if parsed[0].find(exp.Insert, exp.Update, exp.Delete, exp.Create, exp.Drop, exp.Into):
        raise ToolException("the statement would write; send one SELECT that only reads")


def write_whole(path: Path, text: str) -> None:
    """Write a file that readers see complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.replace(draft, path)
    finally:
        Path(draft).unlink(missing_ok=True)
