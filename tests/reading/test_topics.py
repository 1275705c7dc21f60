"""The table of contents: its lines, what is in it, and what never is."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor_memory import Record, Settings, SupervisorMemory
from supervisor_memory.errors import InvalidContent
from supervisor_memory.language.tokens import count_tokens
from supervisor_memory.model.records import KINDS, SESSION_FAMILY, Filter, Source
from supervisor_memory.reading.topics import Topic, table_of_contents
from supervisor_memory.testing.clock import MONDAY, FixedClock
from supervisor_memory.testing.ports import record
from tests.cases import every_case
from tests.opened import EACH, opened

LINE = re.compile(r"- (?P<kind>[a-z-]+)\((?P<target>[^()\n:]+)\): (?P<description>[^\n]+)")


def contents(*records: Record, most: int = 800) -> list[Topic]:
    return table_of_contents(records, most_tokens=most, count_tokens=count_tokens)


def lines(*records: Record, most: int = 800) -> list[str]:
    return [str(topic) for topic in contents(*records, most=most)]


def wish(text: str, **facts: Any) -> Record:
    return record(text, kind="user-profile", **facts)


def test_a_line_is_kind_target_and_description() -> None:
    assert lines(wish("Always answer in tables.")) == ["- user-profile(user): Always answer in tables"]


def test_records_of_one_kind_and_target_share_a_line_newest_first() -> None:
    older = wish("Call me Jo.", now=MONDAY - 60)
    newer = wish("Always answer in tables.")
    (topic,) = contents(older, newer)
    assert str(topic) == "- user-profile(user): Always answer in tables; Call me Jo"
    assert (topic.ids, topic.count) == ((newer.id, older.id), 2)


def test_the_target_of_a_definition_is_what_it_defines() -> None:
    defined = record("delayed means over 15 minutes late", subject="delayed", attribute="definition")
    assert lines(defined) == ["- domain-facts(delayed): delayed means over 15 minutes late"]


def test_the_target_of_what_an_agent_brought_is_the_agent() -> None:
    agents = Source("agent", "analysis")
    found = record("Delays peak in July.", kind="task-traces", source=agents)
    file = record("csv file: out/q1.csv (3 rows)", kind="tool-effects", source=agents)
    assert lines(found, file) == [
        "- task-traces(analysis): Delays peak in July",
        "- tool-effects(analysis): csv file: out/q1.csv (3 rows)",
    ]


def test_a_preference_is_its_speakers_whoever_heard_it() -> None:
    heard = wish("Use tables.", source=Source("user", "analysis", speaker="Jin"))
    assert lines(heard) == ["- user-profile(Jin): Use tables"]


def test_a_target_can_be_joint_and_is_one_in_any_order() -> None:
    both = record("They share a flat.", metadata={"target": "jinli&jiaji"}, now=MONDAY + 1)
    again = record("Both like tea.", metadata={"target": ["jiaji", "jinli"]})
    assert lines(both, again) == ["- domain-facts(jinli&jiaji): They share a flat; Both like tea"]


def test_chinese_records_have_chinese_lines() -> None:
    newer = wish("以后都用表格回答。不要列表。")
    older = wish("叫我小金。", now=MONDAY - 60)
    assert lines(older, newer) == ["- user-profile(user): 以后都用表格回答；叫我小金"]


def test_many_records_are_counted_not_listed() -> None:
    (line,) = lines(*(wish(f"wish number {n}", now=MONDAY - n) for n in range(20)))
    assert line == "- user-profile(user): wish number 0; wish number 1; wish number 2; … +17"


def test_a_long_record_is_cut_between_words() -> None:
    (english,) = lines(wish("word " * 200))
    (chinese,) = lines(wish("表格" * 200))
    assert english.endswith(" word…")
    assert chinese.endswith("表格…")
    assert max(map(count_tokens, (english, chinese))) < 40


def test_a_greeting_describes_nothing_where_there_is_more() -> None:
    assert lines(wish("Hi! I like tea. Bye.")) == ["- user-profile(user): I like tea"]
    assert lines(wish("好的。我喜欢喝茶。")) == ["- user-profile(user): 我喜欢喝茶"]
    assert lines(wish("Hi!")) == ["- user-profile(user): Hi!"]


def test_pinned_and_important_records_come_first() -> None:
    new = wish("new", now=MONDAY + 10)
    important = wish("important", importance=0.9, now=MONDAY - 10)
    pinned = wish("pinned", metadata={"pinned": True}, now=MONDAY - 20)
    (topic,) = contents(new, important, pinned)
    assert topic.ids == (pinned.id, important.id, new.id)


def test_what_does_not_fit_into_the_budget_is_left_out_oldest_first() -> None:
    facts = [record(f"fact {n}", subject=f"s{n}", attribute="definition", now=MONDAY - n) for n in range(50)]
    told = contents(*facts, most=60)
    assert [topic.target for topic in told] == [f"s{n}" for n in range(len(told))]
    assert 1 < len(told) < 50
    assert count_tokens("\n".join(map(str, told))) <= 60
    assert contents(*facts, most=0) == []


@given(
    target=st.one_of(st.text(), st.lists(st.text()), st.none(), st.integers()),
    subject=st.one_of(st.none(), st.text(min_size=1)),
    speaker=st.one_of(st.none(), st.text(min_size=1)),
    content=st.text().map("a{}".format),
    kind=st.sampled_from(KINDS),
)
def test_whatever_a_record_says_its_line_can_be_read_back(
    target: object, subject: str | None, speaker: str | None, content: str, kind: Any
) -> None:
    told = record(
        content,
        kind=kind,
        subject=subject,
        attribute="definition",
        metadata={"target": target},
        source=Source(speaker=speaker),
    )
    for line in lines(told, most=10_000):
        read = LINE.fullmatch(line)
        assert read is not None
        assert read["kind"] == kind
        assert line.splitlines() == [line]


@given(st.permutations(range(6)))
def test_the_order_of_records_does_not_matter(order: list[int]) -> None:
    facts = [record(f"fact {n}", id=f"id{n}", metadata={"target": f"t{n % 2}"}) for n in range(6)]
    assert contents(*(facts[n] for n in order)) == contents(*facts)


# --- of a memory


@pytest.mark.parametrize("store", EACH)
def test_topics_are_of_one_user_and_task_and_never_of_what_was_merely_said(
    store: str, tmp_path: Path
) -> None:
    with opened(store, tmp_path) as backend:
        memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend, clock=FixedClock())
        memory.add("Always answer in tables. The moon is up.", user_id="alice", session_id="s1")
        memory.write("Always answer in lists.", user_id="bob")
        memory.write("以后用图表回答", user_id="alice", task="audit")
        gone = memory.write("Call me Jo", user_id="alice")
        memory.delete(gone.id, user_id="alice")
        assert [str(topic) for topic in memory.topics(user_id="alice")] == [
            "- user-profile(user): Always answer in tables"
        ]
        assert len(memory.topics(user_id="alice", task="audit")[0].ids) == 2
        assert memory.topics(user_id="carol") == []
        assert memory.backend.list(Filter(user_id="alice", families=(SESSION_FAMILY,)), limit=9)
        memory.close()


def test_each_topic_leads_to_its_records_and_the_log_says_which_were_seen() -> None:
    with SupervisorMemory(Settings(embedding_model="none"), clock=FixedClock()) as memory:
        for n in range(5):
            memory.write(f"flight {n} was late on day {n}", user_id="alice", kind="task-traces")
        (topic,) = memory.topics(user_id="alice")
        assert {memory.get(id_, user_id="alice").kind for id_ in topic.ids} == {"task-traces"}
        seen = [row.record_id for row in memory.backend.audit.accesses(50) if row.op == "topics"]
        assert seen == list(topic.quoted)
        assert len(seen) == 3


@every_case("amount", [-1, 1.5, True, "many"])
def test_a_budget_that_is_no_number_of_tokens_is_refused(amount: Any) -> None:
    with SupervisorMemory(Settings(embedding_model="none")) as memory, pytest.raises(InvalidContent):
        memory.topics(user_id="alice", max_tokens=amount)
