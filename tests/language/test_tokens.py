"""What a text costs."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.language.tokens import COUNTERS, count_tokens
from tests.cases import every_case

PROSE = (
    "We moved the quarterly planning meeting to Thursday, because the finance department needs another day "
    "to reconcile the invoices that arrived from Rotterdam over the weekend."
)
SQL = "SELECT carrier, AVG(arr_delay) AS mean_delay FROM flights WHERE year = 2013 GROUP BY carrier;"


@every_case(
    ("text", "tokens"),
    [
        ("", 0),
        ("   ", 1),
        ("a", 1),
        ("flights were late", 4),
        ("延误的航班", 5),
        ("以后默认用 markdown 表格", 9),
        ("arr_delay > 15", 5),
        ("getArrivalDelay of ATL and JFK", 7),
        ("2013", 2),
        ("- one\n- two", 5),
        ("Привет", 6),
        ("😀", 2),
    ],
)
def test_what_a_text_costs(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@every_case(
    ("text", "known"),
    [
        # Counted once with the tokenizer of GPT-4.
        ("The quick brown fox jumps over the lazy dog.", 10),
        ("hello world", 2),
        (PROSE, 28),
        (SQL, 22),
    ],
)
def test_it_rather_counts_too_many_than_too_few_and_by_no_half_too_many(text: str, known: int) -> None:
    assert known <= count_tokens(text) < 1.5 * known


@given(st.text(), st.text())
def test_more_text_never_costs_less(one: str, other: str) -> None:
    assert count_tokens(one + other) >= max(count_tokens(one), count_tokens(other))


@given(st.text(), st.text())
def test_two_texts_cost_no_more_together_than_apart_and_a_space_between(one: str, other: str) -> None:
    assert count_tokens(one + other) <= count_tokens(one) + count_tokens(other) + 1


@given(st.text(alphabet=st.characters(categories=["Lo"])))
def test_every_cjk_character_costs_at_least_one(text: str) -> None:
    assert count_tokens(text) >= sum("\u3400" <= c <= "\u9fff" or "\u3041" <= c <= "\u30fc" for c in text)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ["延误", "a b ", "a", " ", ".", "😀"])
def test_a_megabyte_takes_a_moment(text: str) -> None:
    started = time.perf_counter()
    count_tokens(text * (1_000_000 // len(text)))
    assert time.perf_counter() - started < 5


@every_case("line", ["She said: 12 flights … were late 😀", "航班晚点了…… 两个小时", "a  \n  b"])
def test_a_long_text_costs_as_much_as_its_lines_and_their_ends(line: str) -> None:
    assert count_tokens("\n".join([line] * 500)) == 500 * count_tokens(line) + 499


def test_the_counter_is_named_approximate() -> None:
    assert COUNTERS["approximate"] is count_tokens
