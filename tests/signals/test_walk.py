"""Records are joined by what few others hold; hubs join nothing, cycles end, and worth only falls."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.language.terms import terms
from supervisor_memory.signals.index import Entry, Floats, Index, Rows
from supervisor_memory.signals.walk import MOST_HOLDERS, Joints, Reached, Start, joined, walk
from supervisor_memory.understand.entities import named_terms


def index_of(texts: Sequence[str], *, said: Sequence[int] = ()) -> Index:
    index = Index()
    for row, text in enumerate(texts):
        index.put(row, Entry(tuple(dict.fromkeys(terms(text))), 0.0, "talk" if row in said else None))
    return index


def start(text: str, weight: float = 1.0) -> Start:
    return Start(terms(text), lambda: named_terms(text), weight)


def alike(rows: Rows) -> Floats:
    return np.full(len(rows), 0.5, dtype=np.float32)


def walked(
    texts: Sequence[str], begun: str, *, without: str = "", steps: int = 2, said: Sequence[int] = ()
) -> Sequence[Reached]:
    def read(rows: Sequence[int]) -> Mapping[int, Start]:
        return {row: start(texts[row]) for row in rows}

    index = index_of(texts, said=said)
    return walk([index], [start(begun)], without=frozenset(terms(without)), fit=alike, read=read, steps=steps)


CHAIN = [
    "Basket Health is built on fct_orders",
    "the rows of fct_orders come out of night_job",
    "night_job was written by Ilse Brandt",
    "the canteen opens at noon",
]


def test_a_second_step_goes_on_from_what_the_first_has_reached() -> None:
    reached = {each.row: each for each in walked(CHAIN, CHAIN[0])}
    assert reached[1].by == ()
    assert reached[2].by == (1,)
    assert 3 not in reached
    assert reached[1].worth > reached[2].worth


def test_one_step_goes_no_further() -> None:
    assert {each.row for each in walked(CHAIN, CHAIN[0], steps=1)} == {0, 1}


def test_what_the_question_names_joins_nothing() -> None:
    assert {each.row for each in walked(CHAIN, CHAIN[1], without="fct_orders fct orders night_job")} == {1}


def test_a_name_joins_closer_than_a_word() -> None:
    texts = ["ask Marla about lunch", "Marla is away", "lunch is late", *(f"other {n}" for n in range(20))]
    told = joined(Joints([index_of(texts)], ()), start(texts[0]))
    assert told[1] > told[2]


def test_what_many_hold_joins_nothing_however_often_it_is_named() -> None:
    texts = [f"Hub_name and thing{n}" for n in range(MOST_HOLDERS + 1)]
    assert [each.row for each in walked(texts, "Hub_name Hub_name")] == []


def test_a_cycle_ends() -> None:
    texts = ["alpha_1 and beta_2", "beta_2 and gamma_3", "gamma_3 and alpha_1"]
    assert {each.row for each in walked(texts, texts[0], steps=9)} == {0, 1, 2}


def test_what_was_said_in_a_conversation_is_no_part_of_a_walk() -> None:
    assert {each.row for each in walked(CHAIN, CHAIN[0], said=[1])} == {0}


def test_what_was_dropped_is_joined_to_nothing() -> None:
    index = index_of(CHAIN)
    index.drop(1)
    assert 1 not in joined(Joints([index], ()), start(CHAIN[0]))


@given(
    texts=st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4).map(" ".join), min_size=1, max_size=12),
    weight=st.floats(0, 1),
)
def test_nothing_is_worth_more_than_its_start(texts: Sequence[str], weight: float) -> None:
    def read(rows: Sequence[int]) -> Mapping[int, Start]:
        return {row: start(texts[row]) for row in rows}

    found = walk([index_of(texts)], [start(texts[0], weight)], without=(), fit=alike, read=read)
    assert all(0 <= each.worth <= each.carried <= weight + 1e-6 for each in found)
    assert len({each.row for each in found}) == len(found)


@given(
    texts=st.lists(
        st.lists(st.sampled_from(["ann", "ben_1", "cat_2", "dog", "eel_3"]), max_size=3).map(" ".join),
        min_size=2,
        max_size=10,
    ),
    cut=st.integers(1, 9),
)
def test_an_index_that_grew_joins_as_one_made_at_once(texts: Sequence[str], cut: int) -> None:
    grown = index_of(texts[:cut])
    for row, text in enumerate(texts[cut:], start=len(texts[:cut])):
        grown.put(row, Entry(tuple(dict.fromkeys(terms(text))), 0.0))
    whole = Index()
    whole.load((row, Entry(tuple(dict.fromkeys(terms(text))), 0.0)) for row, text in enumerate(texts))
    for text in texts:
        one, same = (joined(Joints([index], ()), start(text)) for index in (grown, whole))
        assert one == pytest.approx(same)


def test_a_hub_of_a_hundred_thousand_records_floods_no_walk() -> None:
    index = Index()
    index.load((n, Entry(("hub_table", f"thing_{n // 2}"), 0.0)) for n in range(100_000))
    begun = [Start(("hub_table", "thing_3"), lambda: ("hub_table", "thing_3"))]

    def read(rows: Sequence[int]) -> Mapping[int, Start]:
        return {row: Start(("hub_table", f"thing_{row // 2}"), lambda: ("hub_table",)) for row in rows}

    before = time.process_time()
    for _ in range(20):
        reached = walk([index], begun, without=(), fit=alike, read=read)
    assert {each.row for each in reached} == {6, 7}
    assert (time.process_time() - before) / 20 < 0.02


def test_the_names_of_a_text_are_looked_for_only_where_another_row_may_be_close_enough() -> None:
    def named() -> Sequence[str]:
        raise AssertionError("nobody shares enough")

    alone = Start(terms(CHAIN[3]), named, row=3)
    assert joined(Joints([index_of(CHAIN)], ()), alone) == {}
    of_many = Start(terms(CHAIN[0]), named)
    assert joined(Joints([index_of([*CHAIN, *CHAIN, *CHAIN])], ()), of_many, least=5.0) == {}


def test_no_step_is_taken_where_no_row_can_be_like_the_question_enough() -> None:
    asked = list[float]()

    def read(_: Sequence[int]) -> Mapping[int, Start]:
        raise AssertionError("nothing can come of a second step")

    def is_any(likeness: float) -> bool:
        asked.append(likeness)
        return likeness < 0.6

    index, least = index_of(CHAIN), 0.75
    found = walk([index], [start(CHAIN[0])], without=(), fit=alike, read=read, is_any=is_any, least=least)
    assert {each.row for each in found} == {0, 1}
    assert asked[0] == pytest.approx((least / 0.8 - 0.7) / 0.3, abs=1e-4)  # .8 is left behind one step
