"""Short by default; `make faults` sets FAULTS=long and prints what was counted."""

import os
from collections.abc import Callable

import pytest

LONG = os.environ.get("FAULTS") == "long"


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[..., None]:
    """Take down what a test counted, for the table at the end."""

    def note(**counted: float | str) -> None:
        for name, value in counted.items():
            record_property(name.replace("_", " "), value)

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if not LONG:
        return
    terminalreporter.section("counted")
    for outcome in ("passed", "failed"):
        for report in terminalreporter.getreports(outcome):
            if report.when == "call" and report.user_properties:
                name = report.nodeid.partition("::")[2].removeprefix("test_").replace("_", " ")
                counted = ", ".join(f"{value} {what}" for what, value in report.user_properties)
                terminalreporter.write_line(f"{outcome:7}{report.duration:6.0f} s  {name}: {counted}")
