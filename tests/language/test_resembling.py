"""Which word may be meant by another."""

from supervisor_memory.language.resembling import Words, is_like_a_word, is_slip_of
from tests.cases import every_case


@every_case(
    ("word", "other"),
    [
        ("widnlass", "windlass"),
        ("plver", "plover"),
        ("viw", "view"),
        ("catherine", "katharine"),
        ("colour", "color"),
        ("fct_ordres", "fct_orders"),
    ],
)
def test_a_letter_of_four_may_be_a_slip(word: str, other: str) -> None:
    assert is_slip_of(word, other)


@every_case(
    ("word", "other"), [("depot_9", "depot_7"), ("stoat", "weasel"), ("bo", "jo"), ("dim_seats", "dim_rows")]
)
def test_a_digit_and_half_a_word_are_no_slips(word: str, other: str) -> None:
    assert not is_slip_of(word, other)


@every_case(
    ("name", "text"),
    [
        ("Bright Axle", "BrightAxle pays"),
        ("sunrisemix", "the job sunrise_mix"),
        ("data base", "our database"),
        ("Tomás", "Tomas pays"),
        ("Plovers", "the Plover"),
        ("kestrel", "kestrel-2 runs"),
        ("Kathy", "Kathi sings"),
        ("the Lantern", "Lantern has six"),
    ],
)
def test_a_name_may_be_spelled_in_another_way(name: str, text: str) -> None:
    assert Words.of(["nothing", text]).may_name(name)


@every_case(
    ("name", "text"),
    [
        ("Otter", "some other thing"),
        ("Otter", "the Rotterdam office"),
        ("depot_9", "depot_7"),
        ("Project Otter", "Project Badger"),
    ],
)
def test_a_word_of_its_own_is_no_slip_of_a_small_word_nor_the_end_of_another(name: str, text: str) -> None:
    assert not Words.of([text]).may_name(name)


def test_a_name_is_a_slip_of_another_name_though_both_are_words() -> None:
    assert Words.of(["the Hatter is here"]).may_name("Matter")


@every_case("word", ["hanbdook", "childen", "recieve"])
def test_a_misspelled_word_is_like_one_of_the_vocabulary(word: str) -> None:
    assert is_like_a_word(word)


def test_a_rare_word_is_like_none() -> None:
    assert not any(map(is_like_a_word, ("plover", "hushbook", "sandpiper", "windlass")))
