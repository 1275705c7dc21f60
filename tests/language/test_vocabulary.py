"""Which words are unusual, and which pairs of Chinese characters."""

from supervisor_memory.language.terms import terms
from supervisor_memory.language.vocabulary import unusual, unusual_zh
from tests.cases import every_case


@every_case(
    "text", ["The machines answered", "Companies calculate", "He happily carries boxes", "during the day"]
)
def test_a_word_is_known_in_each_of_its_forms(text: str) -> None:
    assert not [*unusual(terms(text))]


def test_a_made_up_or_rare_word_is_unusual_and_no_figure_identifier_or_other_script() -> None:
    text = "The hushbook runs each night on kestrel 2024, beside arr_2 and 数据 in Ωμεγα"
    assert {*unusual(terms(text))} == {"hushbook", "kestrel"}


def test_a_text_in_another_language_has_no_unusual_words() -> None:
    assert not unusual(terms("Der Nachtlauf wird von Lena gewartet und schreibt nach Speicherplatz"))


def test_the_characters_of_a_chinese_name_are_an_unusual_pair_and_those_of_a_common_word_are_not() -> None:
    assert unusual_zh(terms("平台现在由尹航维护")) == ["台现", "在由", "由尹", "尹航", "航维"]
    assert not unusual_zh(["現在", "數據", "カタ", "한국", "night_job", "尹"])
