"""The two flows, stage by stage, without disk or event loop."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from supervisor_memory.embedding.hashing import HashingEmbedder
from supervisor_memory.errors import StageDenied
from supervisor_memory.flow import Recalling, Remembering, Turn, recall, remember
from supervisor_memory.model.records import Filter, Hits, Message, Record, Scope
from supervisor_memory.ports import Deciding, Maintaining, NoStore, ReadStore
from supervisor_memory.recipes.default import DEFAULT
from supervisor_memory.settings import Settings
from supervisor_memory.stores.memory.in_memory import InMemoryBackend
from supervisor_memory.testing.clock import MONDAY
from supervisor_memory.testing.ports import ports, record

ALICE = Scope("alice", session_id="s1")


def turn(text: str, *, scope: Scope = ALICE, messages: tuple[Message, ...] = ()) -> Turn:
    return Turn(text=text, scope=scope, messages=messages)


def said(text: str) -> Remembering:
    return Remembering(ALICE, messages=(Message("user", text),))


def test_what_was_remembered_reaches_the_note() -> None:
    likes_tea = record("Alice likes tea after lunch")
    note = recall(turn("which drink after lunch does she like?"), ports([likes_tea]), DEFAULT).note
    assert "likes tea" in note.text
    assert note.ids == (likes_tea.id,)
    assert not note.degraded


def test_one_user_never_sees_another() -> None:
    world = ports([record("Bob likes tea", user_id="bob")])
    assert not recall(turn("who likes tea?"), world, DEFAULT).note


def test_what_stands_in_the_conversation_is_not_repeated() -> None:
    world = ports([record("GMV excludes refunds")])
    asked = "does GMV exclude refunds?"
    assert recall(turn(asked), world, DEFAULT).note
    seen = (Message("user", "remember: GMV excludes refunds"), Message("user", asked))
    assert not recall(turn(asked, messages=seen), world, DEFAULT).note


def test_a_sub_agent_sees_its_own_family_and_what_is_about_the_user() -> None:
    records = [
        record("late flights were counted in March", family="analyst_memories", kind="task-traces"),
        record("late flights were plotted in March", family="plotter_memories", kind="task-traces"),
        record("late flights are those over 15 minutes in March"),
    ]
    note = recall(
        turn("late flights in March", scope=Scope("alice", "analyst")), ports(records), DEFAULT
    ).note
    assert "counted" in note.text
    assert "over 15" in note.text
    assert "plotted" not in note.text


def test_nonsense_finds_nothing() -> None:
    world = ports([record("GMV excludes refunds")], embedder=HashingEmbedder())
    assert not recall(turn("zebra crossing xylophone"), world, DEFAULT).note


def test_a_turn_is_remembered_and_its_words_kept() -> None:
    backend = InMemoryBackend()
    done = remember(said("Always answer in tables. The moon is up."), ports(backend=backend), DEFAULT)
    assert [r.status for r in done.results] == ["added", "added"]
    assert [r.content for r in backend.list(Filter(user_id="alice"), limit=9)] == ["Always answer in tables."]
    (spoken,) = backend.list(Filter(user_id="alice", families=("session_messages",)), limit=9)
    assert spoken.content == "Always answer in tables. The moon is up."


def test_a_turn_that_runs_again_changes_nothing() -> None:
    world = ports()
    remember(said("Always answer in tables."), world, DEFAULT)
    before = world.services.backend.list(Filter(user_id="alice"), limit=9)
    again = remember(said("Always answer in tables."), world, DEFAULT)
    assert [r.status for r in again.results] == ["skipped"]
    assert world.services.backend.list(Filter(user_id="alice"), limit=9) == before


def test_one_commit_holds_a_whole_turn() -> None:
    class Counted(InMemoryBackend):
        commits = 0

        def batch(self, commit):  # type: ignore[no-untyped-def]
            self.commits += 1
            return super().batch(commit)

    backend = Counted()
    remember(said("Always answer in tables. GMV means total sales."), ports(backend=backend), DEFAULT)
    assert backend.commits == 1


def test_what_follows_retrieval_runs_where_nothing_was_found() -> None:
    def with_core_memory(plan: Recalling, view: ReadStore) -> Recalling:
        return replace(plan, note=replace(plan.note, text="You are Sam, a supervisor."))

    mine = replace(DEFAULT, post_retrieval=(*DEFAULT.post_retrieval, with_core_memory))
    assert recall(turn("who are you?"), ports(), mine).note.text == "You are Sam, a supervisor."


def test_a_search_that_finds_nothing_says_so() -> None:
    asked = Turn("GMV?", ALICE, purpose="hits")
    (note,) = recall(asked, ports(), DEFAULT).hits.notes
    assert note.startswith("nothing found: this user has no memories")


def test_a_users_own_operator_takes_part() -> None:
    def shout(plan: Recalling, view: ReadStore) -> Recalling:
        return replace(plan, note=replace(plan.note, text=plan.note.text.upper()))

    def only_newest(plan: Recalling, view: ReadStore) -> Recalling:
        newest = max(plan.hits, key=lambda hit: hit.record.updated_at)
        return replace(plan, hits=Hits((newest,)))

    mine = replace(
        DEFAULT,
        name="mine",
        post_retrieval=(*DEFAULT.post_retrieval[:-1], only_newest, DEFAULT.post_retrieval[-1], shout),
    )
    records = [record("refunds take 5 days", now=MONDAY - 5), record("refunds take 6 days")]
    note = recall(turn("how long do refunds take?"), ports(records), mine).note
    assert "REFUNDS TAKE 6 DAYS" in note.text
    assert "5 DAYS" not in note.text


@dataclass(frozen=True)
class Entities:
    """What a question names, for the operators behind the one that read it."""

    names: tuple[str, ...]


def test_a_fact_travels_from_one_operator_to_the_next_by_its_type() -> None:
    def read(plan: Recalling, view: NoStore) -> Recalling:
        return plan.with_fact(Entities(("GMV",)))

    def show(plan: Recalling, view: ReadStore) -> Recalling:
        known = plan.fact(Entities)
        return replace(plan, note=replace(plan.note, text=str(known and known.names)))

    mine = replace(DEFAULT, pre_retrieval=(read, *DEFAULT.pre_retrieval), post_retrieval=(show,))
    assert recall(turn("GMV?"), ports(), mine).note.text == "('GMV',)"
    assert recall(turn("GMV?"), ports(), replace(mine, pre_retrieval=())).note.text == "None"


def test_a_fact_reaches_what_follows_an_insert_and_the_latest_of_its_type_counts() -> None:
    seen: list[Entities | None] = []

    def name(*names: str) -> Callable[[Remembering, object], Remembering]:
        return lambda told, view: told.with_fact(Entities(names))

    def look(told: Remembering, view: Maintaining) -> Remembering:
        seen.append(told.fact(Entities))
        return told

    mine = replace(DEFAULT, pre_insert=(name("a"), name("b")), post_insert=(look,))
    remember(said("Always answer in tables."), ports(), mine)
    assert seen == [Entities(("b",))]


def test_a_fact_that_can_be_changed_is_refused() -> None:
    with pytest.raises(TypeError, match="make list a frozen dataclass"):
        said("tea").with_fact(["tea"])


def test_an_operator_that_reaches_too_far_is_stopped() -> None:
    def sneaky(plan: Recalling, view: NoStore) -> Recalling:
        view.search(plan.query, limit=5)  # type: ignore[attr-defined]
        return plan

    with pytest.raises(StageDenied, match="'search'"):
        recall(turn("GMV?"), ports(), replace(DEFAULT, pre_retrieval=(sneaky,)))


def test_an_insert_operator_of_ones_own_sees_the_candidates() -> None:
    seen: list[str] = []

    def look(told: Remembering, view: Deciding) -> Remembering:
        seen.extend(candidate.content for candidate in told.candidates)
        return told

    remember(said("Always answer in tables."), ports(), replace(DEFAULT, insert=(look,)))
    assert seen == ["Always answer in tables."]


def test_the_flow_knows_one_now() -> None:
    gone = record("GMV excludes refunds", expires_at=MONDAY + 10)
    assert recall(turn("GMV refunds?"), ports([gone], now=MONDAY + 9), DEFAULT).note
    assert not recall(turn("GMV refunds?"), ports([gone], now=MONDAY + 11), DEFAULT).note


def test_a_turn_without_search_words_still_gets_standing_preferences() -> None:
    wish = record("Always answer in tables", kind="user-profile")
    world = ports([wish], settings=Settings(standing_notes=1))
    assert recall(turn("go on with what we did"), world, DEFAULT).note.ids == (wish.id,)


def test_two_agents_one_question_one_embedding() -> None:
    class Counting(HashingEmbedder):
        asked = 0

        def embed_query(self, text: str):  # type: ignore[no-untyped-def]
            self.asked += 1
            return super().embed_query(text)

    embedder = Counting()
    world = ports([record("GMV excludes refunds")], embedder=embedder)
    for scope in (ALICE, Scope("alice", "analyst"), Scope("alice", "plotter")):
        assert recall(turn("GMV refunds?", scope=scope), world, DEFAULT).note
    assert embedder.asked == 1


def test_records_in_are_records_out() -> None:
    kept: Record = record("Alice likes tea after lunch", tags=("drink",), metadata={"page": 3})
    (hit,) = recall(turn("tea after lunch"), ports([kept]), DEFAULT).hits
    assert hit.record == kept
