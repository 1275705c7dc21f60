"""Which tool results are events, and what an event holds of one."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Settings
from supervisor_memory.model.records import Scope
from supervisor_memory.upkeep.queue.capture import Capture
from supervisor_memory.upkeep.queue.event import MAX_TEXT_BYTES, Event, cut
from tests.cases import every_case

ADA = Scope("ada", "analyst", "s1")
SELECT = "SELECT region FROM sales"


def capture(**settings: Any) -> Capture:
    return Capture(Settings(**settings), str)


def taken(text: str, *, by: Capture | None = None, tool: str = "run_sql", **options: Any) -> Event | None:
    arguments = options.pop("arguments", {"sql": SELECT})
    given = {"artifact": None, "scope": ADA, "call_id": "c1", "turn_id": "m1", "at": 1.0, **options}
    return (by or capture()).event(tool, arguments, text, **given)


@every_case("tool", ["run_sql", "Write_File", "export_report", "draw_chart", "bash", "query_db"])
def test_what_changes_something_or_asks_a_database_is_taken(tool: str) -> None:
    assert capture().takes(tool, {})


@every_case(
    "tool",
    ["read_file", "list_tables", "get_schema", "sql_schema", "web_search", "transfer_to_sql", "weather"],
)
def test_what_only_looks_is_not(tool: str) -> None:
    assert not capture().takes(tool, {})


@every_case(
    "command",
    [
        "PRAGMA table_info(sales)",
        "  -- what is there?\nEXPLAIN SELECT 1",
        "/* 看看 */ show tables",
        "DESCRIBE sales",
        "select name\nfrom sqlite_master",
        "SELECT * FROM information_schema.tables",
        "git  status",
        "ls -la",
    ],
)
def test_commands_that_only_look_are_not_taken(command: str) -> None:
    assert not capture().takes("run_sql", {"sql": command})


@every_case("command", [SELECT, "INSERT INTO shows VALUES (1)", "WITH x AS (SELECT 1) SELECT 2"])
def test_other_commands_are(command: str) -> None:
    assert capture().takes("run_sql", {"sql": command})


def test_the_lists_are_settings() -> None:
    mine = capture(capture_tools=("weather*",), skip_tools=("*_old",), skip_commands=("* limit 0",))
    assert mine.takes("weather_now", {"where": "Kiel"})
    assert not mine.takes("weather_old", {})
    assert not mine.takes("run_sql", {})
    assert not mine.takes("weather_now", {"sql": "SELECT * FROM t LIMIT 0"})


@every_case(
    "text",
    [
        "",
        "  \n",
        "Error: no such table",
        "Traceback (most recent",
        "失败:没有该表",
        '{"error": "no such table"}',
    ],
)
def test_a_result_that_tells_of_a_failure_or_of_nothing_is_no_event(text: str) -> None:
    assert taken(text) is None


@every_case(
    "text",
    ["Error rate by region: north 3 %", "Failed flights: 12", "失败航班：12", '{"error": null, "rows": 3}'],
)
def test_a_result_that_speaks_of_errors_is_one(text: str) -> None:
    assert taken(text) is not None


def test_an_event_tells_the_call_and_the_result() -> None:
    event = taken("north\nsouth")
    assert event is not None
    assert event.text == f"run_sql(sql={SELECT})\nnorth\nsouth"
    assert (event.tool, event.source_class, event.turn_id) == ("run_sql", "tool", "m1")
    assert event.effects == ({"type": "sql", "sql": SELECT},)
    assert Event.from_json(event.to_json()) == event


def test_effects_are_read_from_the_call_the_artifact_and_json() -> None:
    artifact = [{"type": "csv", "path": "/out/a.csv", "rows": 3, "frame": object()}, "noise", {"x": 1}]
    told = json.dumps({"path": "/out/b.png", "ok": True})
    event = taken(told, tool="write_chart", arguments={"path": "/out/c.png", "size": 3}, artifact=artifact)
    assert event is not None
    assert event.effects == (
        {"type": "csv", "path": "/out/a.csv", "rows": 3},
        {"path": "/out/b.png", "ok": True},
        {"path": "/out/c.png"},
    )


def test_the_same_result_of_the_same_call_is_the_same_event() -> None:
    one, two, other = taken("north"), taken("north"), taken("south")
    assert one is not None
    assert two is not None
    assert other is not None
    assert one.id == two.id != other.id
    assert taken("north", call_id=None) != taken("north", call_id=None)


def test_personal_data_is_masked_before_anything_is_kept_or_cut() -> None:
    secret = "ada@example.org"
    masking = Capture(Settings(), lambda text: text.replace(secret, "[EMAIL]"))
    long = "x" * (MAX_TEXT_BYTES - 60) + f" {secret} {secret}"
    event = taken(
        long, by=masking, arguments={"sql": f"SELECT '{secret}'", "path": f"/out/{secret}.csv"}, artifact=None
    )
    assert event is not None
    assert "ada@" not in event.to_json()
    assert "[EMAIL]" in event.to_json()


@given(st.text(max_size=3_000), st.integers(0, 4))
def test_a_text_is_cut_between_characters(text: str, repeat: int) -> None:
    whole = text * repeat
    kept = cut(whole, 512)
    assert len(kept.encode()) <= 512
    clean = cut(whole, 10**6)
    assert clean.startswith(kept)
    assert kept == clean or len(clean.encode()) > 512 - 4


@given(st.text(alphabet=st.characters(), max_size=300))
def test_any_result_makes_an_event_that_can_be_kept_or_none(text: str) -> None:
    event = taken(text + "\ud800🎉" * 2_000, arguments={text: text, "n": float("nan"), "o": object()})
    if event is not None:
        assert len(event.text.encode()) <= MAX_TEXT_BYTES
        assert Event.from_json(event.to_json()).text == event.text
