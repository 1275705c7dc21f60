"""Every phrase is there in both languages, is used, and says the same with the same values."""

import re
from pathlib import Path
from typing import get_args

from supervisor_memory.interfaces import dashboard
from supervisor_memory.interfaces.dashboard.words import LANGUAGES, WORDS, preferred, worded
from supervisor_memory.model.explain import REASONS
from supervisor_memory.model.records import KINDS, SourceClass, Status, WriteStatus
from supervisor_memory.reading.timeline import What
from supervisor_memory.stages.insert.review_reasons import ASKED_FOR
from supervisor_memory.understand.digest import SECTIONS
from tests.cases import every_case

HERE = Path(dashboard.__file__).parent
SOURCES = [*HERE.glob("*.py"), *HERE.glob("templates/*.html")]

DYNAMIC = (
    "kind.",
    "status.",
    "source.",
    "decision.",
    "entry.",
    "section.",
    "why.",
    "because.",
    "op.",
    "operation.",
    "reason.",
    "part.",
    "removed.",
    "said.",
    "came.",
    "key-",
    "error.",
    "backlog.",
    "queue.",
)
SAME_IN_BOTH = ("supervisor", "agent", "agent-named", "source.agent")
CHINESE = re.compile("[\u4e00-\u9fff：，；。]")


def test_each_phrase_is_there_in_both_languages() -> None:
    for key, phrases in WORDS.items():
        assert set(phrases) == set(LANGUAGES), key
        assert all(phrases[language].strip() for language in LANGUAGES), key
        assert CHINESE.search(phrases["zh"]) or key in SAME_IN_BOTH, key
        assert not CHINESE.search(phrases["en"]), key
        values = [sorted(re.findall(r"{(\w+)}", phrases[language])) for language in LANGUAGES]
        assert values[0] == values[1], key


def test_what_pages_say_is_worded_and_what_is_worded_is_said() -> None:
    text = "\n".join(source.read_text("utf-8") for source in SOURCES if source.name != "words.py")
    said = set(re.findall(r'\b(?:t|say)\(\s*"([^"{}]+)"', text)) - set(DYNAMIC)
    assert said - set(WORDS) == set()
    quoted = set(re.findall(r"[\"']([a-z0-9.-]+)[\"']", text))
    unsaid = {key.removesuffix(".one") for key in WORDS if not key.startswith(DYNAMIC)} - quoted
    assert unsaid == set()


def test_every_code_that_is_shown_is_worded() -> None:
    told = [
        *(f"kind.{kind}" for kind in KINDS),
        *(f"status.{status}" for status in get_args(Status)),
        *(f"source.{each}" for each in get_args(SourceClass)),
        *(f"entry.{each}" for each in get_args(What)),
        *(f"section.{each}" for each in SECTIONS if each != "topics"),
        *(f"decision.{each}" for each in get_args(WriteStatus)),
        *(f"reason.{code}" for code in REASONS),
        f"why.{ASKED_FOR}",
        *(f"why.about-the-user-by-{each}" for each in ("agent", "tool")),
    ]
    assert [key for key in told if key not in WORDS] == []
    assert all(WORDS[f"reason.{code}"]["en"] == words for code, words in REASONS.items())


def test_a_code_that_nobody_worded_is_shown_as_words() -> None:
    assert worded("reason.of-my-own:twice", "zh") == "of my own, twice"


@every_case(
    ("accepts", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,en;q=0.9,zh;q=0.8", "en"),
        ("fr, zh;q=0.5", "zh"),
        ("de", "en"),
        ("zh;q=x", "zh"),
        ("zhx", "en"),
    ],
)
def test_the_browser_says_which_language(accepts: str, language: str) -> None:
    assert preferred(accepts) == language
