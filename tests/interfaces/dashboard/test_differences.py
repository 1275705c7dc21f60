"""Word by word: what is marked as new and as gone is all there is, and the rest is in both."""

from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory.interfaces.differences import Piece, differences, marked

TEXTS = st.text(alphabet=st.sampled_from("ab 不含款 ，.\n<&\u202e\U0001f642"), max_size=40) | st.text(
    max_size=20
)


@given(before=TEXTS, after=TEXTS)
def test_the_pieces_are_both_texts(before: str, after: str) -> None:
    pieces = differences(before, after)
    assert "".join(piece.text for piece in pieces if piece.what != "ins") == before
    assert "".join(piece.text for piece in pieces if piece.what != "del") == after
    assert all(piece.text for piece in pieces)


def test_a_word_is_compared_as_a_whole() -> None:
    assert differences("more than 15 minutes", "more than 30 minutes") == [
        Piece("same", "more than "),
        Piece("del", "15"),
        Piece("ins", "30"),
        Piece("same", " minutes"),
    ]


def test_chinese_is_compared_by_characters_beside_latin_words() -> None:
    pieces = differences("GMV包含退款", "GMV不包含退款")
    assert pieces == [Piece("same", "GMV"), Piece("ins", "不"), Piece("same", "包含退款")]


def test_long_texts_are_not_compared_word_by_word() -> None:
    before, after = "a b " * 4_000, "a c " * 4_000
    assert differences(before, after) == [Piece("del", before), Piece("ins", after)]


@given(text=TEXTS, words=TEXTS)
def test_marking_loses_nothing(text: str, words: str) -> None:
    assert "".join(marked(text, words)) == text


def test_the_words_it_was_read_from_are_marked_whatever_their_spaces_and_capitals() -> None:
    assert marked("Well, Use  tables\nplease.", "use tables") == ("Well, ", "Use  tables", "\nplease.")
    assert marked("Nothing of it.", "use tables") == ("Nothing of it.", "", "")
