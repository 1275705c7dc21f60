"""All signals of a question over the records of some namespaces."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.language.terms import terms
from supervisor_memory.model.records import Record, Source
from supervisor_memory.signals.index import Index, entry_of
from supervisor_memory.signals.measure import Asked, Cosines, Measured, measure
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import record
from supervisor_memory.understand.dates import OTHER_YEAR, closeness, named_dates
from tests.cases import every_case


def index_of(*records: Record) -> Index:
    index = Index()
    for key, each in enumerate(records):
        index.put(key, entry_of(each))
    return index


def said(text: str, seconds: float = 0.0, *, session: str = "s1", speaker: str | None = None) -> Record:
    source = Source(session_id=session, speaker=speaker)
    return record(text, layer="history", now=MONDAY + seconds, source=source)


def chat(*talk: str, apart: float, speakers: tuple[str, ...] = ("Ann", "Bob")) -> list[Record]:
    return [said(text, apart * n, speaker=speakers[n % len(speakers)]) for n, text in enumerate(talk)]


def asked(text: str, *indexes: Index, cosines: list[list[float] | None] | None = None) -> Measured:
    known: list[Cosines | None] = [None] * len(indexes)
    if cosines is not None:
        known = [
            None if each is None else (np.arange(len(each)), np.array(each, dtype=np.float32))
            for each in cosines
        ]
    question = Asked(text, tuple(dict.fromkeys(terms(text))), MONDAY + 9e6)
    return measure(indexes, question, known)


def order(measured: Measured) -> list[int]:
    return [int(row) for row in np.argsort(-measured.match, kind="stable") if measured.found[row]]


@every_case(
    ("question", "talk"),
    [
        (
            "Where in Lisbon did they stay?",
            ["Where did you stay in Lisbon?", "A little inn by the river.", "Nice.", "I have to go now."],
        ),
        ("他们在里斯本住哪里", ["你们在里斯本住在哪里？", "河边的一家小旅馆。", "真好。", "我得走了。"]),
    ],
)
def test_an_answer_is_found_by_the_question_before_it(question: str, talk: list[str]) -> None:
    measured = asked(question, index_of(*chat(*talk, apart=30.0)))
    assert 1 in order(measured)[:2]
    assert measured.added["answer"].tolist() == [0.0, 1.0, 0.0, 0.0]
    assert measured.context[1] > 0
    assert measured.bm25[1] == 0
    assert 3 not in order(measured)


def test_an_answer_in_another_session_is_none() -> None:
    measured = asked("Lisbon", index_of(said("Lisbon?"), said("An inn.", 1, session="s2")))
    assert order(measured) == [0]


def test_nothing_is_found_when_nothing_is_shared() -> None:
    measured = asked("zebra 斑马", index_of(record("green tea"), said("coffee"), record("绿茶")))
    assert order(measured) == []
    assert set(measured.parts([0])[0]) <= {"match", "information", "coverage"}
    assert order(asked("zebra", Index())) == []
    assert order(asked("", index_of(record("tea")))) == []


def test_what_was_removed_is_not_found() -> None:
    index = index_of(record("green tea"), record("black tea"))
    index.drop(0)
    assert order(asked("tea", index)) == [1]


def test_two_namespaces_are_measured_with_common_statistics() -> None:
    records = [record(f"tea number {n}") for n in range(4)] + [record("green tea"), record("mango")]
    apart = asked("green tea", index_of(*records[:2]), index_of(*records[2:]))
    together = asked("green tea", index_of(*records))
    assert apart.match.tolist() == pytest.approx(together.match.tolist())
    assert apart.bm25.tolist() == pytest.approx(together.bm25.tolist())


def test_neighbours_are_of_the_same_namespace_even_in_one_session() -> None:
    measured = asked("Lisbon", index_of(said("Lisbon?")), index_of(said("An inn.", 1)))
    assert order(measured) == [0]


def test_a_cosine_is_told_as_it_is_and_where_there_is_none_it_is_left_out() -> None:
    measured = asked("zebra", index_of(record("tea"), record("juice")), cosines=[[-0.25]])
    near, unknown = measured.parts([0, 1])
    assert near["cosine"] == -0.25
    assert "cosine" not in unknown
    assert order(measured) == [0]


def test_the_terms_of_the_question_in_each_record_are_counted_unless_some_were_not_looked_for() -> None:
    index = index_of(record("green tea"), record("tea"), record("mango"))
    question = Asked("green tea", ("green", "tea"), MONDAY)
    whole = measure([index], question, [None])
    assert [each["coverage"] for each in whole.parts([0, 1, 2])] == [1.0, 0.5, 0.0]
    cut = measure([index], replace(question, is_cut=True), [None])
    assert "coverage" not in cut.parts([0])[0]


def test_however_few_terms_are_looked_up_at_a_time_the_signals_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = ["Green tea?", "Tea from Fujian.", "Honey in the tea?", "No honey, green."]
    index = index_of(*chat(*talk, apart=30.0), record("honey"))
    together = asked("green tea with honey", index)
    monkeypatch.setattr("supervisor_memory.signals.measure._MOST_CELLS", 1)
    apart = asked("green tea with honey", index)
    assert apart.match.tolist() == pytest.approx(together.match.tolist())
    assert apart.context.tolist() == together.context.tolist()


def test_who_is_asked_about_comes_before_who_is_not() -> None:
    index = index_of(
        said("I like tea", 0, speaker="Bob"),
        said("I like tea", 4_000, speaker="Ann"),
        said("I like tea", 8_000, speaker="Eve"),
    )
    assert order(asked("What does Ann like?", index))[0] == 1


def test_what_was_said_in_the_month_that_is_asked_for_comes_first() -> None:
    index = index_of(said("We drank tea", -200 * 86_400.0), said("We drank tea", 0))
    measured = asked("What did we drink in January 2026?", index)
    assert measured.added["date"][1] > measured.added["date"][0]
    assert order(measured)[0] == 1


def test_asides_come_after_what_tells_something() -> None:
    talk = ["tea", "tea from Fujian with jasmine flowers and honey in the morning"]
    measured = asked("tea", index_of(*chat(*talk, apart=4_000.0)))
    assert measured.added["information"][0] < measured.added["information"][1] < 1
    assert asked("tea", index_of(record("tea"))).added["information"].tolist() == [1.0]


def test_to_an_assistant_neither_length_nor_the_place_behind_a_question_speaks_for_a_turn() -> None:
    talk = ["Is our tea from Fujian?", "It is; " + "steep the leaves in hot water for a while. " * 5]
    measured = asked("tea from Fujian", index_of(*chat(*talk, apart=30.0, speakers=("user", "assistant"))))
    assert measured.added["information"].tolist() == measured.added["answer"].tolist() == [0.0, 0.0]
    assert order(measured)[0] == 0


def test_a_stream_may_change_from_people_to_an_assistant_midway() -> None:
    people, dialogue = (
        chat("Tea?", "Yes, tea.", apart=30.0),
        chat("Tea?", "Here.", apart=30.0, speakers=("user", "ai")),
    )
    later = [replace(each, created_at=each.created_at + 90.0) for each in dialogue]
    measured = asked("tea", index_of(*people, *later))
    assert [value > 0 for value in measured.added["information"]] == [True, True, False, False]
    assert [value > 0 for value in measured.added["answer"]] == [False, True, False, False]


@every_case(
    ("question", "first"),
    [
        ("Which hotel in Lisbon?", 0),
        ("Which hotel in Lisbon did you recommend?", 1),
        ("里斯本的酒店", 0),
        ("你推荐过的里斯本的酒店", 1),
    ],
)
def test_the_users_words_come_first_unless_the_assistants_are_asked_for(question: str, first: int) -> None:
    pair = ("I booked a hotel in Lisbon", "I recommend a hotel in Lisbon")
    if not question.isascii():
        pair = ("我订了里斯本的酒店", "推荐里斯本的酒店")
    index = index_of(*chat(*pair, apart=4_000.0, speakers=("user", "assistant")))
    measured = asked(question, index)
    assert order(measured)[0] == first


TEXTS = st.sampled_from(
    ["tea", "Tea?", "绿茶", "绿茶？", "", "!?", "in May 2023", "昨天", "green tea and honey"]
)
COSINES = st.floats(-1, 1, width=32) | st.just(float("nan"))


@given(
    TEXTS, st.lists(st.tuples(TEXTS, st.booleans(), COSINES, st.floats(-1e9, 1e9)), max_size=8), st.booleans()
)
def test_no_signal_is_ever_no_number_or_beyond_its_bounds(
    question: str, kept: list[tuple[str, bool, float, float]], with_vectors: bool
) -> None:
    records = [said(text, when) if is_said else record(text or "x") for text, is_said, _, when in kept]
    cosines: list[list[float] | None] | None = [[each[2] for each in kept]] if with_vectors and kept else None
    measured = asked(question, index_of(*records), cosines=cosines)
    assert np.isfinite(measured.match).all()
    assert (measured.match >= 0).all()
    for name, values in {**measured.added, "context": measured.context}.items():
        assert ((values >= 0) & (values <= 1)).all(), name
    for parts in measured.parts(order(measured)):
        assert all(np.isfinite(value) for value in parts.values())


@every_case(
    ("asked", "text", "fit"),
    [
        ("net revenue in Q2 2026?", "Net revenue in Q2 2026 was 3.9 million.", 1.0),
        ("net revenue in Q2 2026?", "Net revenue in May 2026 was 1.3 million.", 1.0),
        ("net revenue in Q2 2026?", "Net revenue in Q1 2026 was 4.2 million.", 0.0),
        ("net revenue in Q2 2026?", "Net revenue in 2026 was 16 million.", None),
        ("net revenue in Q2 2026?", "Net revenue excludes refunds.", None),
        ("net revenue in Q2?", "Net revenue in Q2 2024 was 3.1 million.", OTHER_YEAR),
        ("net revenue in Q2?", "Net revenue in Q1 2026 was 4.2 million.", 0.0),
        ("2026年7月的流失率？", "2026年7月流失率为1.8%。", 1.0),
        ("2026年7月的流失率？", "2026年6月流失率为2.1%。", 0.0),
    ],
)
def test_a_text_that_names_a_time_says_how_well_that_fits(asked: str, text: str, fit: float | None) -> None:
    now = datetime(2026, 11, 20, tzinfo=UTC).timestamp()
    assert closeness(named_dates(asked, now), named_dates(text, now)) == fit
