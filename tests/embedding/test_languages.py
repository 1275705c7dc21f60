"""Which texts an embedder can read."""

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.embedding.langchain import LangChainEmbedder
from supervisor_memory.embedding.languages import hint, is_chinese, reads
from supervisor_memory.embedding.minilm import MiniLM
from tests.cases import every_case
from tests.embedding.test_langchain import Counting


@every_case(
    ("text", "expected"),
    [
        ("用户喜欢喝绿茶", True),
        ("生产环境运行在 PostgreSQL 16", True),
        ("The user likes 绿茶 more than any other drink", False),
        ("The user likes tea", False),
        ("ユーザーは緑茶が好きです", False),
        ("12:30", False),
        ("", False),
    ],
)
def test_chinese_is_told_by_its_share_of_the_letters(text: str, expected: bool) -> None:
    assert is_chinese(text) is expected


def test_chinese_under_an_english_model_gets_a_hint() -> None:
    said = hint("用户喜欢喝绿茶", embedder=MiniLM())
    assert said is not None
    assert "EMBEDDING_MODEL=multilingual-e5-small" in said
    assert not reads("用户喜欢喝绿茶", embedder=MiniLM())


def test_what_the_model_reads_gets_no_hint() -> None:
    assert hint("likes tea", embedder=MiniLM()) is None
    assert hint("用户喜欢喝绿茶", embedder=HashingEmbedder()) is None


def test_a_model_of_unknown_languages_gets_no_hint() -> None:
    assert hint("用户喜欢喝绿茶", embedder=LangChainEmbedder(Counting())) is None
