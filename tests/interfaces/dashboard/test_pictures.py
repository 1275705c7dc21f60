"""Where things are in the pictures: inside, beside each other, in order."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.audit.turns import Injection, grouped
from supervisor_memory.interfaces.dashboard.pictures import bars, columns, hand_offs, parts, timeline
from supervisor_memory.model.versions import Version

DAY = 86_400.0
NUMBERS = st.floats(-5, 5, allow_nan=False)


def note(id: str, at: float, agent: str | None = None, **more: object) -> Injection:
    values = {"session": "t-1", "run_id": None, "tokens": 5, "degraded": False, **more}
    return Injection(id, at, "inject", agent, shown=(), dropped=(), **values)  # type: ignore[arg-type]


def version(number: int, since: float, until: float | None) -> Version:
    where = ("domain_facts", "ada")
    return Version(
        "r", where, "x", "domain-facts", since, since, version=number, valid_from=since, valid_to=until
    )


@given(st.dictionaries(st.sampled_from(["relevance", "sim", "cosine", "bm25", "context", "decay"]), NUMBERS))
def test_bars_stay_in_their_place_and_leave_raw_scales_out(values: dict[str, float]) -> None:
    drawn = parts(values)
    assert {bar.name for bar in drawn} == set(values) - {"cosine", "bm25"}
    assert all(0 <= bar.width <= 100 for bar in drawn)


def test_the_largest_count_is_the_longest_bar() -> None:
    assert [bar.width for bar in bars({"a": 4, "b": 1, "c": 0})] == [100, 25, 0]
    assert [bar.width for bar in bars({"a": 0})] == [0]


def test_hand_offs_do_not_lie_upon_each_other() -> None:
    notes = [note(str(at), at, agent) for at, agent in enumerate([None, "sql", None, "chart", "sql"])]
    drawn = hand_offs(notes)
    assert [edge.at for edge in drawn.edges] == [0, 1, 2, 3, 4]
    for side in ([0, 2], [1, 3, 4]):
        heights = [drawn.edges[at].y for at in side]
        assert all(b - a >= 60 for a, b in pairwise(heights))
    assert all(0 < edge.y < drawn.height for edge in drawn.edges)


def test_the_line_of_valid_time_is_in_order_and_ends_now() -> None:
    spans = timeline([version(1, 0, 10 * DAY), version(2, 10 * DAY, None)], now=40 * DAY)
    assert [(span.version, round(span.x), round(span.width)) for span in spans] == [(1, 0, 25), (2, 25, 75)]
    assert timeline([], now=1.0) == []


@given(st.lists(st.tuples(NUMBERS, st.none() | NUMBERS), max_size=5), NUMBERS)
def test_whatever_times_a_record_has_the_line_holds_them(
    times: list[tuple[float, float | None]], now: float
) -> None:
    drawn = timeline([version(at, since, until) for at, (since, until) in enumerate(times)], now)
    assert all(0 <= span.x <= 100 and span.width > 0 for span in drawn)


def test_notes_are_counted_by_day() -> None:
    notes = [
        note("a", 9.5 * DAY),
        note("b", 9.6 * DAY, degraded=True),
        note("c", 8.1 * DAY),
        note("old", DAY),
    ]
    drawn = columns(notes, 9.9 * DAY, days=3)
    assert [(column.total, column.degraded) for column in drawn] == [(0, 0), (1, 0), (2, 1)]
    assert [column.height for column in drawn] == [0, 50, 100]


def test_a_turn_is_a_run_and_without_one_a_session_without_a_long_pause() -> None:
    told = [
        note("a", 0, run_id="r1"),
        note("b", 1),
        note("c", 2, "sql", run_id="r1"),
        note("d", 60, "sql"),
        note("e", 400),
        note("f", 401, session=None),
    ]
    found = grouped(reversed(told))
    assert [[each.id for each in turn.notes] for turn in found] == [["f"], ["e"], ["b", "d"], ["a", "c"]]
