"""What a page of sessions, and of a user's timeline, costs in a SQLite store with many.

Run: python benchmarks/session_list.py [--sessions 100000] [--users 500] [--rounds 200] [--json FILE]

A store is filled with sessions of two messages each, one by the user and one by one of 40 agents; a tenth
of the sessions has a name, each one record that was read from it. Then pages of 50 rows are asked for: of
everybody, of a user, of an agent that speaks often and of one that seldom does, within a week, long ago, and
far down the list; of all users and agents; and pages of ten chapters of a user's timeline, also of an agent
that never spoke. Another user has ten sessions, the last of 10,000 messages with a record read from each and
two notes a turn, the others of 200: pages of all ten, and of the long one at its end, anywhere, in a period,
and with its words. Figures are milliseconds of wall time, p50 and p95 over the rounds; the target is a p95
of 50.
"""

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from supervisor_memory import Settings, SupervisorMemory
from supervisor_memory.audit.turns import given
from supervisor_memory.model.records import (
    DIGEST_FAMILY,
    SESSION_FAMILY,
    Filter,
    Hit,
    Record,
    Scope,
    Source,
    new_id,
)
from supervisor_memory.stores.sessions import NAME, SUBJECT, list_parties, list_sessions
from supervisor_memory.stores.sqlite.store import SqliteBackend

START = 1_700_000_000.0
APART = 600.0
TOGETHER = 5_000
PAGE = 50
CHAPTERS = 10
Place: TypeAlias = tuple[float, str, str] | None
DAY = 86_400.0


def of_session(number: int, users: int) -> Iterator[Record]:
    user, session, at = f"user-{number % users}", f"thread-{number}", START + number * APART
    agent = "seldom" if number % 1_000 == 0 else f"agent-{number % 40}"
    ids = new_id(), new_id()
    for place, by in enumerate((None, agent)):
        yield Record(
            *(ids[place], (SESSION_FAMILY, user), f"Message {place} of {session}", "task-traces"),
            created_at=at + place,
            updated_at=at + place,
            layer="history",
            source=Source("agent" if by else "user", by, session),
        )
    learned = f"Learned in {session}: {random.Random(number).random()}"
    yield Record(
        *(new_id(), ("domain_facts", user), learned, "domain-facts"),
        created_at=at,
        updated_at=at,
        source=Source("user", None, session),
        ref_id=ids[0],
    )
    if number % 10 == 0:
        yield Record(
            *(new_id(), (DIGEST_FAMILY, user), f"Name of {session}", "task-traces", at, at, "summary"),
            metadata={NAME: f"Name of {session}"},
            subject=SUBJECT,
            attribute=session,
        )


LONG, ORDINARY, TALKS = 10_000, 200, 10


def of_talker(number: int) -> Iterator[Record]:
    """A session of "talker": the messages, and a record read from each."""
    long = number == TALKS - 1
    session, at = f"talk-{number}", START + number * 10 * DAY
    for place in range(LONG if long else ORDINARY):
        agent = f"agent-{place % 3}" if place % 2 else None
        id_, when = new_id(), at + place * 60
        yield Record(
            *(id_, (SESSION_FAMILY, "talker"), f"Message {place} of {session}", "task-traces"),
            created_at=when,
            updated_at=when,
            layer="history",
            source=Source("agent" if agent else "user", agent, session),
        )
        yield Record(
            *(new_id(), ("domain_facts", "talker"), f"Learned from {place} of {session}", "domain-facts"),
            created_at=when,
            updated_at=when,
            source=Source("agent" if agent else "user", agent, session),
            ref_id=id_,
        )


def talk(backend: SqliteBackend) -> None:
    """The sessions of "talker", and the notes of all turns of the long one."""
    for number in range(TALKS):
        records = [*of_talker(number)]
        for start in range(0, len(records), TOGETHER):
            backend.write(records[start : start + TOGETHER])
    told = [record for record in records if record.layer != "history"]
    for place in range(0, len(told), 2):
        hits = [Hit(record, 0.5) for record in told[max(0, place - 5) : place]]
        for agent in (None, "agent-1"):
            scope = Scope("talker", agent_id=agent, session_id=f"talk-{TALKS - 1}")
            entry = given("inject", scope, at=told[place].created_at, hits=hits, tokens=120)
            backend.audit.record_access([entry])
        backend.audit.flush()


def fill(backend: SqliteBackend, sessions: int, users: int) -> None:
    batch: list[Record] = []
    for number in range(sessions):
        batch += of_session(number, users)
        if len(batch) >= TOGETHER or number == sessions - 1:
            backend.write(batch)
            batch = []


def timed(act: Callable[[], object]) -> float:
    """How many milliseconds it took."""
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1_000


def _figures(times: Sequence[float]) -> dict[str, float]:
    return {"p50": statistics.median(times), "p95": statistics.quantiles(times, n=20)[-1]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=100_000)
    parser.add_argument("--users", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    chance, end = random.Random(7), START + asked.sessions * APART
    with tempfile.TemporaryDirectory() as place, closing(SqliteBackend(Path(place))) as backend:
        fill(backend, asked.sessions, asked.users)
        talk(backend)

        def anywhere() -> float:
            return START + chance.random() * (end - START)

        questions = {
            "everybody": lambda: (Filter(), None),
            "a user": lambda: (Filter(f"user-{chance.randrange(asked.users)}"), None),
            "an agent": lambda: (Filter(agent_id=f"agent-{chance.randrange(40)}"), None),
            "a rare agent": lambda: (Filter(agent_id="seldom"), None),
            "a week": lambda: (Filter(since=(at := anywhere()), until=at + 7 * DAY), None),
            "long ago": lambda: (Filter(until=START + 3 * DAY), None),
            "far down": lambda: (Filter(), (anywhere(), "user-1", "thread-1")),
        }
        parties = {
            "all users": lambda: list_parties(backend, "user", limit=PAGE),
            "all agents": lambda: list_parties(backend, "agent", limit=PAGE),
            "a user's agents": lambda: list_parties(
                backend, "agent", user_id=f"user-{chance.randrange(asked.users)}", limit=PAGE
            ),
        }
        memory = SupervisorMemory(Settings(embedding_model="none"), backend=backend)

        def chapters(where: Filter, after: Place, *, with_said: bool = False) -> object:
            cursor = after and json.dumps(after)
            asked_of: dict[str, Any] = {
                "user_id": where.user_id or "",
                "agent_id": where.agent_id,
                "session_id": where.session_id,
                "since": where.since,
                "until": where.until,
            }
            return memory.timeline(**asked_of, limit=CHAPTERS, after=cursor, with_said=with_said)

        def listed(where: Filter, after: Place) -> object:
            return list_sessions(backend, where, limit=PAGE, after=after)

        verbs: dict[str, Callable[[Filter, Place], object]] = dict.fromkeys(questions, listed)
        questions["a timeline"] = questions["a user"]
        questions["a timeline's week"] = lambda: (
            Filter(f"user-{chance.randrange(asked.users)}", since=(at := anywhere()), until=at + 7 * DAY),
            None,
        )
        questions["a silent agent's timeline"] = lambda: (
            Filter(f"user-{chance.randrange(asked.users)}", agent_id="silent"),
            None,
        )
        of_long = Filter("talker", session_id=f"talk-{TALKS - 1}")
        began = START + (TALKS - 1) * 10 * DAY

        def within() -> float:
            return began + chance.random() * LONG * 60

        questions["ten long sessions"] = lambda: (Filter("talker"), None)
        questions["a long session's end"] = lambda: (of_long, None)
        questions["within a long session"] = lambda: (replace(of_long, until=within()), None)
        questions["a part of a long session"] = lambda: (
            replace(of_long, since=(at := within()), until=at + DAY),
            None,
        )
        questions["a long session's words"] = questions["within a long session"]
        verbs["a long session's words"] = partial(chapters, with_said=True)
        told: dict[str, dict[str, float]] = {}
        for name, ask in questions.items():
            verb, times = verbs.get(name, chapters), list[float]()
            for _ in range(asked.rounds):
                where, after = ask()
                times.append(timed(partial(verb, where, after)))
            told[name] = _figures(times)
        for name, count in parties.items():
            told[name] = _figures([timed(count) for _ in range(asked.rounds)])
    print(f"{asked.sessions:,} sessions of {asked.users} users, a page of {PAGE}, {asked.rounds} rounds, ms")
    for name, each in told.items():
        print(f"{name:<26} p50 {each['p50']:7.2f}   p95 {each['p95']:7.2f}")
    if asked.json is not None:
        asked.json.write_text(json.dumps(told, indent=1))


if __name__ == "__main__":
    main()
