"""Texts that search terms cannot tell apart, and of which neither may get lost."""

import pytest

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.language.wording import same_marks, tells
from supervisor_memory.testing.clock import FixedClock
from tests.cases import every_case

RIVALS = [
    ("Threshold is -5", "Threshold is 5"),
    ("Growth was -3% in May", "Growth was 3% in May"),
    ("同比 -3%", "同比 3%"),
    ("Version 1.10 is broken today", "Version 1.1 is broken today"),
    ("The ratio is 1:2 here", "The ratio is 2:1 here"),
    ("Charge $5 per order line", "Charge €5 per order line"),
    ("收费 $5", "收费 ¥5"),
    ("Use C# for the service", "Use C for the service"),
    ("The score is A+ this time", "The score is A- this time"),
    ("Use the first warehouse then the second", "Use the second warehouse then the first"),
    (
        "Revenue is recognised at delivery in the US, at payment in the EU",
        "Revenue is recognised at payment in the US, at delivery in the EU",
    ),
    ("this year target is 100", "last year target is 100"),
]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("embedding", ["none", "all-MiniLM-L6-v2"])
@pytest.mark.parametrize(("one", "other"), RIVALS, ids=[one for one, _ in RIVALS])
def test_neither_of_two_rivals_gets_lost(one: str, other: str, embedding: str) -> None:
    memory = SupervisorMemory(Settings(embedding_model=embedding))
    memory.write(one, user_id="u", kind="domain-facts")
    second = memory.write(other, user_id="u", kind="domain-facts")
    kept = "\n".join(record.content for record in memory.get_all(user_id="u"))
    earlier = "\n".join(record.content for record in memory.history(second.id))
    assert other in kept
    assert one in kept or (second.status == "updated" and one in earlier)


@every_case(
    ("longer", "shorter"),
    [
        ("Use tables in the weekly report by default.", "use tables in the weekly report"),
        ("GMV excludes refunds and coupons", "GMV excludes refunds"),
        ("周报默认用表格。", "周报用表格"),
    ],
)
def test_a_text_that_says_more_tells_the_shorter_one_and_not_the_other_way(longer: str, shorter: str) -> None:
    assert tells(longer, shorter)
    assert not tells(shorter, longer)


def test_marks_are_words_with_digits_signs_or_symbols() -> None:
    assert same_marks("Over 15 minutes, in C#!", "in c#: over 15 minutes")
    assert not same_marks("-5", "5")
    assert not same_marks("1.10", "1.1")


def test_an_edited_record_is_not_overwritten_by_the_next_statement_on_its_old_subject() -> None:
    memory = SupervisorMemory(Settings(embedding_model="none"))
    first = memory.write("Delayed means more than 15 minutes late", user_id="u")
    memory.update(first.id, content="GMV excludes coupons")
    memory.write("Delayed means more than 30 minutes late", user_id="u")
    kept = {record.content for record in memory.get_all(user_id="u")}
    assert kept == {"GMV excludes coupons", "Delayed means more than 30 minutes late"}


def test_what_is_said_for_good_outlives_what_was_said_for_a_while() -> None:
    clock = FixedClock()
    memory = SupervisorMemory(Settings(embedding_model="none"), clock=clock)
    memory.write("GMV excludes refunds", user_id="u")
    memory.write("GMV excludes refunds and coupons", user_id="u", metadata={"ttl": 10})
    memory.write("Tax is 5 percent", user_id="u", metadata={"ttl": 10})
    memory.write("Tax is 5 percent", user_id="u")
    clock.forward(days=1)
    assert len(memory.get_all(user_id="u")) == 2
