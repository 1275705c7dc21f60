"""What an agent merely repeats is not kept; what it says beyond that is."""

from typing import Any

import pytest

from supervisor_memory import Outcome, Scope, SupervisorMemory
from supervisor_memory.errors import BackendError, MemoryAccessDenied
from supervisor_memory.host.ways_in.workers import DENIAL
from supervisor_memory.model.records import Note
from supervisor_memory.stages.pre_insert.own_words import is_bookkeeping, own_words
from tests.host.graphs import open_memory

BOSS = Scope("ada", session_id="t1")
WORKER = Scope("ada", "worker", "t1")
ENGLISH = (
    "GMV excludes refunds",
    "delayed means more than 15 minutes late at arrival",
    "Always answer in tables",
)
CHINESE = ("GMV不含退款", "延误是指到达晚点超过15分钟", "请始终用人民币显示金额")


@pytest.fixture
def memory() -> Any:
    with open_memory() as memory:
        for text in (*ENGLISH, *CHINESE):
            memory.write(text, user_id="ada")
        yield memory


def note_for(memory: SupervisorMemory, question: str) -> Note:
    note = memory.recall(question, WORKER)
    assert len(note.ids) >= 3, note.text
    return note


@pytest.fixture
def english(memory: SupervisorMemory) -> Note:
    return note_for(memory, "Does GMV include refunds, and when is a flight delayed late at arrival?")


@pytest.fixture
def chinese(memory: SupervisorMemory) -> Note:
    return note_for(memory, "GMV含退款吗？延误到达晚点超过多少分钟？金额用人民币显示")


def brought(memory: SupervisorMemory, answer: str, note: Note | None = None) -> list[str]:
    """What of an answer was added, and why the rest was not."""
    before = {record.id for record in memory.get_all(user_id="ada")}
    done = memory.remember((), WORKER, outcome=Outcome(final_answer=answer), note=note)
    added = [r.content for r in memory.get_all(user_id="ada") if r.id not in before]
    return [*added, *(result.reason for result in done if result.status == "skipped")]


ECHOES_EN = {
    "one fact": "GMV excludes refunds.",
    "with a lead": "As you know, GMV excludes refunds.",
    "noted earlier": "According to the notes from previous sessions, GMV excludes refunds.",
    "two in a sentence": "GMV excludes refunds and delayed means more than 15 minutes late at arrival.",
    "several sentences": "GMV excludes refunds. Delayed means more than 15 minutes late at arrival.",
    "bullets": "Here is what I remember:\n- GMV excludes refunds\n- Always answer in tables.",
    "stars": "* **GMV excludes refunds**\n* _Always_ answer in tables".replace("_", ""),
    "numbers": "1. GMV excludes refunds\n2) Always answer in tables",
    "a table": "| GMV excludes refunds |\n| Always answer in tables |",
    "other frames": "• [definition · user] GMV excludes refunds\n• (preference) Always answer in tables",
    "quoted": "> GMV excludes refunds",
    "with the question": "Does GMV include refunds? GMV excludes refunds.",
}
ECHOES_ZH = {
    "one fact": "GMV不含退款。",
    "with a lead": "根据之前的记忆，GMV不含退款。",
    "two in a sentence": "GMV不含退款，并且延误是指到达晚点超过15分钟。",
    "bullets": "我记得以下内容：\n- GMV不含退款\n- 请始终用人民币显示金额",
    "numbers": "1、 GMV不含退款\n2、 请始终用人民币显示金额",
    "with the question": "GMV含退款吗？GMV不含退款。",
}


def test_an_echo_adds_nothing(memory: SupervisorMemory, english: Note, chinese: Note) -> None:
    for note, echoes in ((english, ECHOES_EN), (chinese, ECHOES_ZH)):
        done = {how: brought(memory, answer, note) for how, answer in echoes.items()}
        assert done == {how: ["recalled-text"] for how in echoes}


def test_what_is_remembered_is_no_news_without_a_note_either(memory: SupervisorMemory) -> None:
    for echoes in (ECHOES_EN, ECHOES_ZH):
        done = {how: brought(memory, answer) for how, answer in echoes.items()}
        assert done == {how: ["recalled-text"] for how in echoes}


def test_the_whole_note_adds_nothing(memory: SupervisorMemory, english: Note, chinese: Note) -> None:
    for note in (english, chinese):
        inside = "\n".join(note.text.splitlines()[1:-1])
        tail = note.text.partition("memory. ")[2] or note.text.partition("不是指令；")[2]
        assert tail
        for answer in (note.text, f"I was told:\n{note.text}", inside, tail):
            assert brought(memory, answer, note) in ([], ["recalled-text"])


NEWS = [
    "GMV (excluding refunds) fell 12 % in May",
    "GMV excludes refunds, and it fell 12 % in May.",
    "GMV excludes refunds. It fell by 12 percent.",
    "It is not true that GMV excludes refunds.",
    "GMV excludes refunds only in May.",
    "GMV excludes refunds no more.",
    "If GMV excludes refunds, then revenue is 5.",
    "Delayed means more than 30 minutes late at arrival.",
    "Delayed means more than 15 hours late at arrival.",
    "GMV excludes refunds and fees.",
    "NET GMV excludes refunds of -5 %",
    "GMV不含退款，五月下降了12%。",
    "GMV不含退款率。",
    "GMV不含退款这一点不再成立。",
    "延误是指到达晚点超过30分钟。",
]


@pytest.mark.parametrize("news", NEWS)
def test_a_new_statement_that_mentions_a_fact_is_kept(
    memory: SupervisorMemory, english: Note, chinese: Note, news: str
) -> None:
    for note in (english, chinese):
        records = memory.get_all(user_id="ada")
        brought(memory, news, note)
        assert news in [record.content for record in memory.get_all(user_id="ada")]
        assert {r.content for r in records} <= {r.content for r in memory.get_all(user_id="ada")}


def test_lines_of_the_note_are_cut_out_of_an_answer_that_says_more(
    memory: SupervisorMemory, english: Note
) -> None:
    answer = (
        "What I know:\n- GMV excludes refunds\n- Always answer in tables\n\n"
        "In May it fell by 12 % to 4 million.\nThe reasons:\n- fewer orders from Kiel"
    )
    kept = "In May it fell by 12 % to 4 million.\nThe reasons:\n- fewer orders from Kiel"
    assert brought(memory, answer, english) == [kept]


def test_a_file_that_is_only_mentioned_again_stays_whose_it_is(memory: SupervisorMemory) -> None:
    memory.remember(
        (), Scope("ada", "other", "t1"), outcome=Outcome(side_effects=({"path": "out/q1.csv", "rows": 9},))
    )
    note = memory.recall("how many rows has the csv file?", Scope("ada", "other", "t1"))
    assert "out/q1.csv" in note.text
    assert brought(memory, "csv file: out/q1.csv (9 rows)", note)[-1] == "recalled-text"
    assert [r.content for r in memory.get_all(user_id="ada", families=["worker_memories"])] == []
    rewritten = Outcome(side_effects=({"path": "out/q1.csv", "rows": 10},))
    (done,) = memory.remember((), WORKER, outcome=rewritten, note=note)
    assert done.status == "added"


def test_what_the_user_has_just_said_is_no_conclusion(memory: SupervisorMemory) -> None:
    memory.remember("Show me the revenue of May by region. Did it fall by 12 %?", BOSS)
    assert brought(memory, "Show me the revenue of May by region.") == ["recalled-text"]
    assert brought(memory, "Did it fall by 12 %? It did fall by 12 %.")[0].startswith("Did it fall")


def test_the_users_own_words_are_never_an_echo(memory: SupervisorMemory, english: Note) -> None:
    memory.write("Late flights are those of UA", user_id="ada", agent_id="worker", source_class="agent")
    (done, *_) = memory.remember("From now on answer in poems.", BOSS, note=english)
    assert done.status in ("added", "updated")
    (again, *_) = memory.remember("GMV excludes refunds.", BOSS, note=english)
    assert (again.status, again.reason) == ("skipped", "duplicate")


def test_an_agent_that_finds_the_same_again_is_a_duplicate_not_an_echo(memory: SupervisorMemory) -> None:
    assert brought(memory, "Revenue of May was 4 million.") == ["Revenue of May was 4 million."]
    assert brought(memory, "Revenue of May was 4 million.") == ["duplicate"]


def test_an_echo_leaves_one_row_that_names_the_record(memory: SupervisorMemory, english: Note) -> None:
    for _ in range(3):
        memory.remember(
            (), WORKER, outcome=Outcome(final_answer="GMV excludes refunds."), note=english, turn_id="m"
        )
    rows = [r.event for r in memory.backend.audit.tail(99) if r.event["reason"] == "recalled-text"]
    (hit,) = [hit for hit in english.hits if hit.record.content.startswith("GMV excludes refunds")]
    assert [(row["op"], row["outcome"], row["record_id"]) for row in rows] == [
        ("skip", "skipped", hit.record.id)
    ]


def test_a_direct_write_is_never_an_echo(memory: SupervisorMemory) -> None:
    done = memory.write("GMV excludes refunds", user_id="ada", agent_id="worker", source_class="agent")
    assert done.status == "added"


# --- bookkeeping, denials, errors


BOOKKEEPING = [
    "Transferring back to supervisor",
    "Successfully transferred to math",
    "Successfully transferred back to supervisor",
    "Successfully transferred to Bob.",
    "successfully transferred to sql_agent-2",
]


@pytest.mark.parametrize("text", BOOKKEEPING)
def test_bookkeeping_of_a_handoff_is_kept_nowhere(memory: SupervisorMemory, text: str) -> None:
    assert is_bookkeeping(text)
    assert brought(memory, text) == []
    assert memory.remember([("assistant", text)], BOSS) == []
    assert memory.get_all(user_id="ada", families=["session_messages"]) == []
    told = f"{text}\nRevenue of May was 4 million."
    assert brought(memory, told) == ["Revenue of May was 4 million."]


def test_a_transfer_of_something_else_is_a_statement(memory: SupervisorMemory) -> None:
    text = "The 300 orders were successfully transferred to the warehouse in Kiel on Monday."
    assert not is_bookkeeping(text)
    assert brought(memory, text) == [text]


@pytest.mark.parametrize(
    "quoted",
    [
        DENIAL,
        f"I tried, but the tool said: {DENIAL}",
        f'The tool answered "{DENIAL}" so I stopped.',
        f"{{'error': '{DENIAL}'}}",
        "BackendError: the store failed in 'search' with OSError; see the log",
        "The search failed with `DeadlineExceeded: search took longer than 800 ms`.",
        f"{MemoryAccessDenied.__name__}",
        f"{BackendError.__name__}: memory does not work now; go on without it",
    ],
)
def test_our_denials_and_errors_are_not_stored(memory: SupervisorMemory, quoted: str) -> None:
    assert brought(memory, quoted) == []
    kept = "Revenue of May was 4 million."
    assert brought(memory, f"{quoted}\n{kept}") == [kept]
    conclusion = {"conclusion": f"{quoted}\nRevenue of June was 5 million.", "figures": [5]}
    memory.remember((), WORKER, outcome=Outcome(conclusion=conclusion))
    found = memory.get_all(user_id="ada", families=["worker_memories"])
    assert sorted(r.content for r in found) == ["Revenue of June was 5 million.", kept]


def test_others_words_stay_as_they_are() -> None:
    for text in ("a  b\n\nc", "Conflict: two sources differ.", "The transferred sum was 5."):
        assert own_words(text) == text
