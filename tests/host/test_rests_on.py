"""Twenty chains on the demo team: what rests on what has changed is set aside, and nothing else."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from agents.team import build_team
from common.llm import RuleBasedChatModel
from common.memory_state import CustomState
from supervisor_memory import Outcome, Scope, Settings, SupervisorMemory
from supervisor_memory.interfaces.cli.tables import show_notes
from supervisor_memory.interfaces.present import notes_of
from supervisor_memory.model.records import Filter, Record

DELAYED = "How many flights were delayed per origin?"
OVER_AN_HOUR = "How many flights were delayed by more than 60 minutes?"
BY_AIRLINE = "Which 3 airlines have the highest average departure delay? Draw a chart."
DISTANCE = "Total distance to LAX and SFO"
RATE = "各月的延误率"
AIR_TIME = "肯尼迪机场的平均空中时间"
FIFTEEN, THIRTY = (f"Delayed means arrival more than {n} minutes late." for n in (15, 30))
ON_FLIGHTS = frozenset({DELAYED, OVER_AN_HOUR, BY_AIRLINE, DISTANCE, RATE, AIR_TIME})


class Team:
    """The demo team with memory, and one user of it."""

    def __init__(self, memory: SupervisorMemory, database: Path, folder: Path) -> None:
        team = build_team(RuleBasedChatModel(), database=database, output_dir=folder)
        self.memory, self.database = memory, database
        self._graph = memory.attach(team).compile()
        self._threads = 0

    def say(self, text: str) -> str:
        """The team's answer in a new session."""
        self._threads += 1
        asked: CustomState = {"messages": [HumanMessage(text)], "user_id": "ada"}
        return str(
            self._graph.invoke(asked, {"configurable": {"thread_id": f"t{self._threads}"}})["final_answer"]
        )

    def brings(self, *effects: Any, answer: str | None = None) -> None:
        """A loader that is no part of the team tells what it has done."""
        outcome = Outcome(final_answer=answer, side_effects=effects)
        self.memory.remember((), Scope("ada", agent_id="loader"), outcome=outcome)

    def records(self, status: str, kind: str) -> Sequence[Record]:
        found = self.memory.backend.list(Filter("ada", statuses=None), limit=1_000)
        return [each for each in found if (each.status, each.kind) == (status, kind)]

    def asked(self, status: str) -> set[str]:
        """The questions whose conclusions have a status."""
        told = self.records(status, "task-traces")
        return {each.metadata["question"] for each in told if "question" in each.metadata}

    def file_of(self, question: str) -> str:
        every = [*self.records("active", "task-traces"), *self.records("stale", "task-traces")]
        return str(next(each.metadata["csv_path"] for each in every if each.metadata["question"] == question))

    def definition(self) -> Record:
        return next(each for each in self.records("active", "domain-facts") if each.attribute == "definition")


@pytest.fixture
def team(flights: Path, tmp_path: Path) -> Iterator[Team]:
    with SupervisorMemory(
        Settings(backend="sqlite", path=tmp_path / "memory", embedding_model="none")
    ) as memory:
        yield Team(memory, flights, tmp_path / "results")


@dataclass(frozen=True)
class Chain:
    """What is known and asked, what changes, and which conclusions no longer stand."""

    name: str
    asked: tuple[str, ...]
    change: Callable[[Team], Any]
    stale: frozenset[str] = frozenset()
    defined: str = ""


def says(text: str) -> Callable[[Team], Any]:
    return lambda team: team.say(text)


def runs(sql: str, **effect: Any) -> Callable[[Team], Any]:
    return lambda team: team.brings({"sql": sql, **effect})


def writes(question: str, **effect: Any) -> Callable[[Team], Any]:
    return lambda team: team.brings({"path": team.file_of(question), **effect})


def edits(team: Team) -> None:
    team.memory.update(team.definition().id, content=THIRTY)


CHAINS = [
    Chain("a metric is redefined", (DELAYED, DISTANCE), says(THIRTY), frozenset({DELAYED}), FIFTEEN),
    Chain("by hand", (DELAYED, BY_AIRLINE), edits, frozenset({DELAYED}), FIFTEEN),
    Chain(
        "in Chinese",
        (RATE, AIR_TIME),
        says("到达晚点 45 分钟以上算延误"),
        frozenset({RATE}),
        "到达晚点 30 分钟以上算延误",
    ),
    Chain(
        "the question has a limit of its own",
        (OVER_AN_HOUR, DELAYED),
        says(THIRTY),
        frozenset({DELAYED}),
        FIFTEEN,
    ),
    Chain("restated", (DELAYED,), says("delayed means arriving over 15 minutes late"), defined=FIFTEEN),
    Chain("said again", (DELAYED, DISTANCE), says(FIFTEEN), defined=FIFTEEN),
    Chain(
        "another metric is defined",
        (DELAYED,),
        says("Long-haul means a distance of more than 2000 miles."),
        defined=FIFTEEN,
    ),
    Chain(
        "rows are added", (DELAYED, BY_AIRLINE), runs("INSERT INTO flights SELECT * FROM january"), ON_FLIGHTS
    ),
    Chain(
        "rows are changed",
        (AIR_TIME, RATE),
        runs("UPDATE flights SET air_time = 0 WHERE air_time < 0"),
        ON_FLIGHTS,
    ),
    Chain("rows are deleted", (DISTANCE,), runs("DELETE FROM flights WHERE month = 12"), ON_FLIGHTS),
    Chain(
        "of a joined table",
        (BY_AIRLINE, DISTANCE),
        runs("UPDATE airlines SET name = 'Envoy' WHERE carrier = 'MQ'"),
        frozenset({BY_AIRLINE}),
    ),
    Chain("of another table", (DELAYED, BY_AIRLINE), runs("INSERT INTO weather SELECT * FROM flights")),
    Chain("a table is only read", (DELAYED, DISTANCE), runs("SELECT COUNT(*) FROM flights")),
    Chain("a statement has failed", (DELAYED,), runs("DELETE FROM flights", error="locked")),
    Chain("a temporary table", (DELAYED,), runs("CREATE TEMP TABLE flights AS SELECT 1 AS origin")),
    Chain(
        "a statement is only shown",
        (DISTANCE,),
        lambda team: team.brings(
            answer="You could run this statement, which I have not done:\n```sql\nDELETE FROM flights\n```"
        ),
    ),
    Chain(
        "a file has other rows",
        (DISTANCE, AIR_TIME),
        writes(DISTANCE, type="csv", rows=7),
        frozenset({DISTANCE}),
    ),
    Chain(
        "a file has other contents",
        (BY_AIRLINE, RATE),
        writes(BY_AIRLINE, type="csv", rows=3, digest="0"),
        frozenset({BY_AIRLINE}),
    ),
    Chain(
        "a file is only named",
        (DISTANCE,),
        lambda team: team.brings(answer=f"The distances are in {team.file_of(DISTANCE)}, as I said before."),
    ),
    Chain(
        "a file is written again", (DISTANCE, DELAYED), lambda team: [team.say(DISTANCE), team.say(DELAYED)]
    ),
]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)
def test_a_chain_is_broken_where_something_changed(chain: Chain, team: Team) -> None:
    for text in filter(None, (chain.defined, *chain.asked)):
        team.say(text)
    assert team.asked("active") == set(chain.asked)

    chain.change(team)

    assert team.asked("stale") == chain.stale & set(chain.asked)
    assert team.asked("active") == set(chain.asked) - chain.stale


def test_there_are_twenty_chains() -> None:
    assert len({chain.name for chain in CHAINS}) == 20


@pytest.mark.one_in(6)
@pytest.mark.parametrize("chain", [each for each in CHAINS if each.stale], ids=lambda chain: chain.name)
def test_a_change_that_is_undone_brings_back_what_rests_on_it(chain: Chain, team: Team) -> None:
    for text in filter(None, (chain.defined, *chain.asked)):
        team.say(text)
    chain.change(team)

    if chain.defined:
        team.memory.revert(team.definition().id, version=1)
    else:
        made = next(r for r in team.records("active", "tool-effects") if r.source.agent_id == "loader")
        team.memory.delete(made.id)

    assert team.asked("active") == set(chain.asked)
    assert not team.records("stale", "tool-effects")


def test_the_files_and_queries_made_for_a_metric_are_set_aside_with_it(team: Team) -> None:
    for text in (FIFTEEN, DELAYED, BY_AIRLINE):
        team.say(text)

    team.say(THIRTY)

    gone = team.records("stale", "tool-effects")
    assert {each.metadata.get("path", "sql") for each in gone} == {team.file_of(DELAYED), "sql"}


def test_new_data_break_the_chain_and_a_new_answer_stands(team: Team, flights: Path, tmp_path: Path) -> None:
    ours = Path(shutil.copy(flights, tmp_path / "flights.sqlite"))
    team = Team(team.memory, ours, tmp_path / "results")
    team.say(DISTANCE)
    with closing(sqlite3.connect(ours)) as connection, connection:
        connection.execute("UPDATE flights SET distance = distance + 1")

    team.say(DISTANCE)

    [old], [new] = (team.records(status, "task-traces") for status in ("stale", "active"))
    assert old.metadata["csv_path"] == new.metadata["csv_path"]
    assert old.content != new.content


def test_a_stale_conclusion_is_not_recalled_and_its_history_says_why(team: Team) -> None:
    for text in (FIFTEEN, DELAYED):
        team.say(text)
    [conclusion] = team.records("active", "task-traces")

    team.say(THIRTY)

    found = [hit.record.id for hit in team.memory.search(DELAYED, user_id="ada", limit=50)]
    assert conclusion.id not in found
    assert team.memory.history(conclusion.id)[-1].reason == "what-it-rests-on-changed"


def test_why_tells_of_a_conclusion_that_it_has_lost_its_ground(
    team: Team, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (FIFTEEN, DELAYED):
        team.say(text)
    [conclusion] = team.records("active", "task-traces")
    team.memory.preview(DELAYED, Scope("ada"))

    team.say(THIRTY)

    notes = notes_of(team.memory, conclusion.id, limit=9)
    show_notes(notes)
    assert "[stale, rests on metric:delayed, which has changed since]" in capsys.readouterr().out


def test_a_users_own_words_are_flagged_and_never_hidden(team: Team) -> None:
    team.say(FIFTEEN)
    target = "Our target is 20 percent of delayed flights."
    kept = team.memory.write(target, user_id="ada", kind="domain-facts", rests_on=[("metric", "Delayed")])

    team.say(THIRTY)

    note = team.memory.preview("What is our target for delayed flights?", Scope("ada"))
    assert f"{target} (rests on delayed, which has changed since)" in note.text
    team.memory.revert(team.definition().id, version=1)
    assert (
        "changed since"
        not in team.memory.preview("What is our target for delayed flights?", Scope("ada")).text
    )
    assert team.memory.get(kept.id).status == "active"


def test_what_a_person_brings_back_is_flagged_until_it_holds_again(team: Team) -> None:
    for text in (FIFTEEN, DELAYED, THIRTY):
        team.say(text)
    [conclusion] = team.records("stale", "task-traces")

    team.memory.review.restore(conclusion.id, reviewer="eve")

    assert "which has changed since" in team.memory.preview(DELAYED, Scope("ada")).text
    team.memory.revert(team.definition().id, version=1)
    assert "which has changed since" not in team.memory.preview(DELAYED, Scope("ada")).text
    assert team.memory.get(conclusion.id).status == "active"


def test_an_erased_user_leaves_no_chain(team: Team) -> None:
    for text in (FIFTEEN, DELAYED, THIRTY):
        team.say(text)

    team.memory.erase(user_id="ada", confirm=True)

    assert not team.memory.backend.list(Filter("ada", statuses=None, ref_ids=("metric:delayed",)), limit=10)
