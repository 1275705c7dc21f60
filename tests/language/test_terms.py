"""The words of a text."""

import re
import threading
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.language.terms import STOP_WORDS, has_cjk, language, terms
from tests.cases import every_case


@every_case(
    ("text", "expected"),
    [
        ("Flights were delayed", ("flight", "delay")),
        ("delays, delaying; DELAYED!", ("delay", "delay", "delay")),
        ("What is the definition?", ("definit",)),
        ("don't use it", ("use",)),
        ("It’s the carriers' delay", ("carrier", "delay")),
        ("not delayed", ("not", "delay")),
        ("on-time flights", ("time", "flight")),
        ("arr_delay", ("arr_delay", "arr", "delay")),
        ("is_late", ("is_late", "late")),
        (
            "reports/carrier_delay_2013.csv",
            ("report", "carrier_delay_2013", "carrier", "delay", "2013", "csv"),
        ),
        ("B737 and 2013", ("b737", "2013")),
        ("__ _", ()),
        ("延误", ("延误",)),
        ("延误航班", ("延误", "误航", "航班")),
        ("延误的航班", ("延误", "航班")),
        ("你记得吗？", ("你记", "记得")),
        ("目的地", ("目的", "的地")),
        ("了解", ("了解",)),
        ("表", ("表",)),
        ("用 pandas 画图", ("用", "panda", "画图")),
        ("GMV口径", ("gmv", "口径")),
        ("ＧＭＶ　１５％", ("gmv", "15")),
        ("カタカナ", ("カタ", "タカ", "カナ")),
        ("한국어", ("한국", "국어")),
        ("", ()),
        ("？！… 😀", ()),
    ],
)
def test_terms_of_a_text(text: str, expected: tuple[str, ...]) -> None:
    assert terms(text) == expected


@every_case(
    ("question", "record"),
    [
        ("how were flights delayed?", "A delayed flight arrives 15 minutes late."),
        ("延误怎么定义？", "延误是指到达晚于计划 15 分钟。"),
        ("what does arr_delay mean", "Arr_Delay counts minutes after the scheduled arrival"),
        ("the delay on arrival", "arr_delay is in minutes"),
        ("ＣＳＶ", "csv"),
    ],
)
def test_a_question_shares_terms_with_its_record(question: str, record: str) -> None:
    assert set(terms(question)) & set(terms(record))


def test_stop_words_keep_what_turns_a_meaning_round() -> None:
    assert not STOP_WORDS & {"not", "no", "never", "more", "less", "before", "after"}


@given(st.text())
def test_every_term_is_one_word(text: str) -> None:
    assert all(re.fullmatch(r"\w+", term) for term in terms(text))
    assert " ".join(terms(text)).split() == list(terms(text))


@given(st.text(alphabet=st.characters(codec="utf-8")))
def test_terms_do_not_depend_on_the_normal_form(text: str) -> None:
    assert terms(unicodedata.normalize("NFD", text)) == terms(unicodedata.normalize("NFC", text))


@given(st.text(), st.text())
def test_a_text_keeps_its_terms_when_another_follows(one: str, other: str) -> None:
    assert terms(f"{one}\n{other}") == terms(one) + terms(other)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ["延误", "delay_x ", "a_", "_", "的", "x"])
def test_a_megabyte_takes_a_moment(text: str) -> None:
    long = text * (1_000_000 // len(text))
    started = time.perf_counter()
    terms(long)
    assert time.perf_counter() - started < 10


def test_threads_stem_the_same_words_to_the_same_stems() -> None:
    words = [f"{a}{b}{end}" for a in "bcdfg" for b in ("enerat", "onnect") for end in ("ion", "ing", "ions")]
    results: list[tuple[str, ...]] = []

    def work() -> None:
        results.append(terms(" ".join(words)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(results)) == 1


@every_case(
    ("text", "expected"),
    [
        ("以后默认用表格", "zh"),
        ("以后默认用 markdown 表格", "zh"),
        ("请按 carrier 分组统计 arr_delay 的平均值", "zh"),
        ("GMV 的口径是什么？", "zh"),
        ("What does 口径 mean in this table?", "en"),
        ("use tables from now on", "en"),
        ("123 !", "en"),
        ("", "en"),
    ],
)
def test_the_language_to_answer_in(text: str, expected: str) -> None:
    assert language(text) == expected


def test_cjk_is_seen_anywhere_in_a_text() -> None:
    assert all(has_cjk(text) for text in ("ok 表", "かな", "한"))
    assert not has_cjk("naïve – café, “ok”。")
