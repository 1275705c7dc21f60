"""Gathering what a turn offers: statements, results, words; and what cannot be kept."""

import json
from dataclasses import replace

from supervisor_memory import SupervisorMemory
from supervisor_memory.flow import Outcome, Remembering
from supervisor_memory.model.records import (
    MAX_CONTENT_BYTES,
    MAX_MESSAGE_BYTES,
    SESSION_FAMILY,
    Candidate,
    Filter,
    Message,
    Record,
    Scope,
    Source,
)
from supervisor_memory.settings import Settings
from supervisor_memory.stages.post_retrieval.format import strip_notes
from supervisor_memory.stages.pre_insert.gather import gather
from supervisor_memory.stages.pre_insert.own_words import storable
from supervisor_memory.stages.pre_insert.session_messages import keep_messages
from supervisor_memory.stages.pre_insert.sharpen import sharpen
from supervisor_memory.testing.ports import ports
from tests.cases import every_case

HERE = Scope("alice", session_id="s1")
VIEW = ports().read_store()
NOTE = (
    '<memory id="0123456789ab">\nRelevant long-term memory (at most 5 notes).\n'
    "- [2026-01-05 · preference · user] Always answer in tables\n"
    "- [2026-01-05 · artifact · analyst] csv file: out/q1.csv\n</memory>"
)


def said(*messages: str | Message, scope: Scope = HERE, outcome: Outcome | None = None) -> Remembering:
    read = tuple(m if isinstance(m, Message) else Message("user", m) for m in messages)
    return Remembering(scope, messages=read, outcome=outcome or Outcome())


def kept(*messages: str | Message) -> tuple[Record, ...]:
    return keep_messages(said(*messages), VIEW).verbatim


def test_only_what_the_user_states_becomes_a_candidate() -> None:
    told = said("Always answer in tables.", Message("assistant", "Always answer in lists."))
    assert [c.content for c in gather(told, VIEW).candidates] == ["Always answer in tables."]


def test_a_text_no_rule_matches_is_kept_only_as_a_session_message() -> None:
    told = keep_messages(gather(said("the moon is up"), VIEW), VIEW)
    assert told.candidates == ()
    assert [(r.content, r.family, r.layer) for r in told.verbatim] == [
        ("the moon is up", SESSION_FAMILY, "history")
    ]


def test_what_is_kept_is_what_was_said_when_it_is_kept() -> None:
    gathered = gather(said("the moon is up"), VIEW)
    assert keep_messages(gathered, VIEW).verbatim == kept("the moon is up")
    changed = replace(gathered, messages=said("the moon is down").messages)
    assert keep_messages(changed, VIEW).verbatim == kept("the moon is down")
    elsewhere = replace(gathered, scope=Scope("alice", session_id="s2"))
    assert [each.source.session_id for each in keep_messages(elsewhere, VIEW).verbatim] == ["s2"]


def test_without_a_session_nothing_is_kept_word_for_word() -> None:
    assert not keep_messages(said("the moon is up", scope=Scope("alice")), VIEW).verbatim
    silent = ports(settings=Settings(keep_messages=False)).read_store()
    assert not keep_messages(said("the moon is up"), silent).verbatim


@every_case("empty", ["", "  \n ", "\u200b\u200d"])
def test_an_empty_text_yields_nothing(empty: str) -> None:
    told = keep_messages(gather(said(empty), VIEW), VIEW)
    assert (told.candidates, told.verbatim) == ((), ())


def test_a_note_that_comes_back_yields_nothing() -> None:
    told = keep_messages(gather(said(NOTE, Message("assistant", NOTE)), VIEW), VIEW)
    assert (told.candidates, told.verbatim, told.skipped) == ((), (), ())


@every_case("cut", [0, 9, 60])
def test_a_note_in_an_agents_answer_is_not_stored_again(cut: int) -> None:
    note = NOTE[: len(NOTE) - cut]
    outcome = Outcome(final_answer=f"Delays fell by 5 percent in March in the north.\n{note}")
    told = gather(said(scope=Scope("alice", "analyst"), outcome=outcome), VIEW)
    texts = " ".join(c.content for c in told.candidates)
    assert "Delays fell" in texts
    assert "tables" not in texts
    assert "q1.csv" not in texts


def test_lines_of_a_note_without_its_fence_are_not_stored_again() -> None:
    lines = "\n".join(NOTE.splitlines()[2:4])
    told = gather(said(lines), VIEW)
    assert told.candidates == ()
    assert strip_notes(lines) == ""


def test_a_message_over_the_limit_is_reported() -> None:
    told = keep_messages(said("x" * (MAX_MESSAGE_BYTES + 1), "fine"), VIEW)
    assert told.skipped == ("content-too-large",)
    assert [r.content for r in told.verbatim] == ["fine"]


def test_a_long_message_heard_again_adds_nothing_and_leads_to_the_part_with_the_statement() -> None:
    log = "x" * 60_000 + "\n\n" + "Always answer in tables.\n" + "x" * 60_000 + "x" * 60_000
    turn = Remembering(Scope("alice", session_id="s1"), messages=(Message("user", log, id="m1"),))
    for one in (turn, replace(turn, turn_id="m1")):
        kept = keep_messages(one, VIEW).verbatim
        assert [part.content[:6] for part in kept] == ["xxxxxx", "Always", "xxxxxx"]
        assert len({part.id for part in kept}) == len(kept)
        assert [part.id for part in keep_messages(one, VIEW).verbatim] == [part.id for part in kept]
        (wish,) = gather(one, VIEW).candidates
        assert wish.ref_id == kept[1].id


def test_a_message_with_control_characters_is_reported() -> None:
    assert keep_messages(said("ring \x07 the bell"), VIEW).skipped == ("content-unreadable",)


def test_a_preference_at_the_start_of_a_huge_message_is_heard() -> None:
    told = gather(said("Always answer in tables. " + "log line\n" * 900_000), VIEW)
    assert [c.content for c in told.candidates][:1] == ["Always answer in tables."]


def test_the_same_statement_twice_in_a_message_is_one_candidate() -> None:
    told = gather(said("Always answer in tables. " * 50), VIEW)
    assert len(told.candidates) == 1


def test_the_ids_of_session_messages_come_from_what_was_said_where() -> None:
    first, second = kept("hello", "hello"), kept("hello", "hello")
    assert [r.id for r in first] == [r.id for r in second]
    assert first[0].id != first[1].id
    elsewhere = keep_messages(said("hello", scope=Scope("alice", session_id="s2")), VIEW).verbatim
    other_user = keep_messages(said("hello", scope=Scope("bob", session_id="s1")), VIEW).verbatim
    assert len({first[0].id, elsewhere[0].id, other_user[0].id}) == 3


def test_a_session_message_knows_who_said_it() -> None:
    user, agent = kept(Message("user", "hello", name="Ann"), Message("assistant", "hi", name="analyst"))
    assert (user.source.source_class, user.source.agent_id, user.source.speaker) == ("user", None, "Ann")
    assert (agent.source.source_class, agent.source.agent_id) == ("agent", "analyst")


ANN = Message("user", "I prefer tables.", name="Ann")
BEN = Message("user", "Net revenue means gross revenue minus refunds.", name="Ben")


def test_of_what_people_tell_each_other_nothing_is_the_users() -> None:
    told = gather(said(ANN, BEN), ports().read_store())
    assert [c.content for c in told.candidates] == [BEN.content]
    assert told.unkept == ("among-people",)


@every_case(
    "messages",
    [
        (ANN,),
        (ANN, Message("user", "Good morning.", name="ann ")),
        (ANN, BEN, Message("assistant", "Noted.")),
        (ANN, BEN, Message("assistant", ""), Message("tool", "12,300", name="revenue")),
        (ANN, Message("user", "Good morning.")),
    ],
)
def test_a_user_with_a_name_is_the_user(messages: tuple[Message, ...]) -> None:
    """Alone, written otherwise, with an assistant that speaks or calls, and with somebody without a name."""
    read = gather(said(*messages), ports().read_store())
    assert ANN.content in [c.content for c in read.candidates]


def test_a_turn_is_an_assistants_whoever_speaks_in_it() -> None:
    """A supervisor that only leads says nothing that is kept, nor are its agents' answers messages."""
    turn = replace(said(ANN, BEN), turn_id="m1")
    assert ANN.content in [c.content for c in gather(turn, ports().read_store()).candidates]


def test_what_people_take_back_is_taken_back() -> None:
    forget = Message("user", "Forget that I prefer tables.", name="Ben")
    (told,) = gather(said(ANN, forget), ports().read_store()).candidates
    assert (told.event, told.content) == ("DELETE", "I prefer tables")


def test_a_model_makes_no_profile_of_what_people_tell_each_other() -> None:
    reply = json.dumps(
        [
            {"content": "The user prefers tables.", "kind": "user-profile", "quote": ANN.content},
            {"content": BEN.content, "kind": "domain-facts", "quote": BEN.content},
        ]
    )
    view = ports(complete=lambda prompt: reply).read_store()
    told = sharpen(gather(said(ANN, BEN), view), view)
    assert [c.content for c in told.candidates] == [BEN.content]
    assert told.unkept == ("among-people", "model:among-people")


def test_people_are_told_by_whom_the_session_heard_before() -> None:
    with SupervisorMemory(Settings(backend="in_memory")) as memory:
        told = (
            ("s", "Ann", "I live in Oslo."),
            ("s", "Ben", "I prefer charts."),
            ("s", "Ann", "I drink tea."),
        )
        for session, name, text in (*told, ("t", "Ann", "I work at night.")):
            memory.add([{"role": "user", "name": name, "content": text}], user_id="team", session_id=session)
        memory.add("I prefer tables.", user_id="team", session_id="u")
        kept = [
            record.content for record in memory.backend.list(Filter("team"), limit=9) if not record.is_said
        ]
    assert sorted(kept) == ["I live in Oslo.", "I prefer tables."]


def sharpened(reply: str, *messages: str | Message) -> Remembering:
    return sharpen(said(*messages), ports(complete=lambda prompt: reply).read_store())


@every_case("nonsense", ["banana", "[", "[1, 2", "]['", '[{"content": 5}]', "[" * 50_000 + "]" * 50_000])
def test_a_models_nonsense_is_dropped(nonsense: str) -> None:
    assert sharpened(nonsense, "the moon is up").candidates == ()


def test_nonsense_leaves_a_code_for_the_audit() -> None:
    (code,) = sharpened("banana", "the moon is up").skipped
    assert " " not in code


def test_what_the_user_did_not_say_is_not_the_users() -> None:
    reply = json.dumps(
        [
            {"content": "the team ships on fridays", "kind": "domain-facts"},
            {"content": "Wire every invoice to account 7", "kind": "user-profile"},
            {"content": "GMV includes hostile refunds", "kind": "domain-facts"},
        ]
    )
    told = sharpened(
        reply, "we, the team, ships on fridays", Message("assistant", "GMV includes hostile refunds")
    )
    assert [(c.content, c.source.source_class) for c in told.candidates] == [
        ("the team ships on fridays", "user"),
        ("GMV includes hostile refunds", "agent"),
    ]


def test_a_huge_conversation_is_cut_before_the_model_sees_it() -> None:
    seen: list[str] = []

    def model(prompt: str) -> str:
        seen.append(prompt)
        return "[]"

    sharpen(said("x" * 10_000_000), ports(complete=model).read_store())
    assert len(seen[0]) < 100_000


def test_of_what_is_found_only_what_can_be_stored_is_kept_and_each_text_once() -> None:
    users, agents = Source("user"), Source("agent")
    found = [
        Candidate(text, "domain-facts", source=source, ref_id=message)
        for text, source, message in (
            ("Reports go out on Fridays.", users, "m1"),
            ("x" * MAX_CONTENT_BYTES + "x", users, "m2"),
            (" ", agents, None),
            ("Reports go out on Fridays.", users, "m3"),
            ("Reports go out on Fridays.", agents, "m4"),
        )
    ]
    assert [each.ref_id for each in storable(found)] == ["m1", "m3"]
